"""Rank facts with a language model: one command from benchmark files to rank dumps.

    python script.py -l ru -r P19,P36 --model smollm2 --data fixed_data/starter --out stats/smollm2
    python script.py -l all --models models.txt --data fixed_data/starter --out stats/models
    python script.py explain -l ru -r P101 --subject Q7251 --model smollm2
    python script.py export lm-eval --data fixed_data/starter --out exports/lm-eval

Nothing here imports torch before the arguments and the data are known to be good.
"""

from __future__ import annotations

import contextlib
import sys
import time
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fluent_mlama.console import UserError, note, progress_bar, run_main
from fluent_mlama.ranking.arguments import parse_arguments

if TYPE_CHECKING:
    from fluent_mlama.ranking.arguments import Arguments
    from fluent_mlama.ranking.outputs import AskedModel, Outputs
    from fluent_mlama.ranking.settings import Settings
    from fluent_mlama.ranking.summary import Summary
    from fluent_mlama.records.benchmark import Benchmark
    from fluent_mlama.scoring.contract import Scorer
    from processor import Processor


def main(arguments: Sequence[str] | None = None) -> int:
    """Rank, explain one fact, or export the benchmark to another tool; returns the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["export"]:
        from fluent_mlama.exporting.command import main as export

        return export(words[1:])
    asked = parse_arguments(words)
    if asked.subject:
        return explain(asked)
    if asked.models:
        return rank_models(asked)
    rank(asked, asked.benchmarks())
    return 0


def rank(asked: Arguments, benchmarks: Sequence[Benchmark]) -> list[Summary]:
    """Rank every file that was asked for and is not ranked yet, then say what all of them show."""
    from fluent_mlama.ranking.outputs import asked_model, at_work
    from fluent_mlama.ranking.sharing import share_files
    from fluent_mlama.ranking.summary import format_summaries

    settings = asked.settings
    processors = open_processors(asked, benchmarks)
    replaced = replaceable(processors)
    model = asked_model(settings)
    todo = unranked(asked, processors, model)
    if todo:
        scorer = load(asked)
        with at_work(settings, scorer.describe(), asked.source(), replaced):
            todo = [one for one in todo if one.state(scorer.describe()) in {"missing", "replace"}]
            share_files(
                todo,
                lambda one: rank_one(
                    one, scorer, f"{todo.index(one) + 1} of {len(todo)}: {one.label}"
                ),
                scorer,
            )
    tell_untouched(processors, todo, model)
    summaries = [one.summary() for one in processors]
    print(format_summaries(summaries))
    return summaries


def rank_models(asked: Arguments) -> int:
    """Rank with each model in turn, one in memory at a time; where one fails the others go on, and the end tells of it."""
    from fluent_mlama.ranking.outputs import asked_model
    from fluent_mlama.ranking.summary import format_side_by_side

    benchmarks, turns = asked.benchmarks(), asked.each()
    waiting = [
        turn.settings
        for turn in turns
        if unranked(turn, open_processors(turn, benchmarks), asked_model(turn.settings))
    ]
    troubles = check_models(waiting)
    if len(troubles) == len(turns):
        raise UserError(f"none of the models can be loaded: {'; '.join(troubles)}")
    done: dict[str, list[Summary]] = {}
    failed = []
    for number, turn in enumerate(turns, start=1):
        settings = turn.settings
        note(f"model {number} of {len(turns)}: {settings.model}, dumps in {settings.out}")
        try:
            done[settings.out.name] = rank(turn, benchmarks)
        except OSError:  # a full disk is no model's fault
            raise
        except Exception as error:
            failed.append(why_failed(settings.model, error))
        if settings in waiting:
            release()
    if done:
        print(f"\n{format_side_by_side(done)}")
    if failed:
        raise UserError(
            f"{len(failed)} of {len(turns)} models failed, the same command tries them again; {'; '.join(failed)}"
        )
    note(
        f"are the differences real: python stats.py compare --stats {','.join(str(turn.settings.out) for turn in turns)}"
    )
    return 0


def check_models(waiting: Sequence[Settings]) -> list[str]:
    """Say before the first is loaded what name and config tell against any of these models."""
    from fluent_mlama.scoring.models import check_model

    troubles = []
    for settings in waiting:
        try:
            check_model(
                settings.model,
                revision=settings.revision,
                trust_remote_code=settings.trust_remote_code,
            )
        except UserError as error:
            troubles.append(str(error))
            note(f"this will fail, the others go on: {error}")
    return troubles


def why_failed(model: str, error: Exception) -> str:
    """In one line, why a model's turn ended; what nobody foresaw keeps its traceback as well."""
    from fluent_mlama.scoring.failures import is_out_of_memory, memory_error

    if isinstance(error, UserError):
        return str(error) if model in str(error) else f"{model}: {error}"
    if is_out_of_memory(error):
        return str(memory_error(model))
    traceback.print_exception(error)
    return f"{model}: {type(error).__name__}: {error}"


def release() -> None:
    """Free the memory of the model that has had its turn."""
    from fluent_mlama.scoring.devices import release_memory

    release_memory()


def replaceable(processors: Sequence[Processor]) -> list[Outputs]:
    """What ``--overwrite`` makes anew anyway."""
    return [one.outputs for one in processors if one.settings.overwrite]


def unranked(
    asked: Arguments, processors: Sequence[Processor], model: AskedModel
) -> list[Processor]:
    """The files that are not ranked yet; an output folder that cannot take them is a ``UserError`` before any model is loaded."""
    from fluent_mlama.ranking.outputs import check_folder
    from fluent_mlama.records.atomic import check_writable

    settings = asked.settings
    check_folder(settings, asked.source(), replaceable(processors), model)
    todo = [one for one in processors if one.state(model) in {"missing", "replace"}]
    for one in processors:
        if one not in todo:
            one.tidy()
    for folder in (settings.out, settings.wide):
        if folder is not None and todo:
            check_writable(folder, "--out")
    for one in todo:
        one.outputs.check_free()
    return todo


def rank_one(processor: Processor, scorer: Scorer, label: str) -> None:
    """Rank one file under a bar of facts, facts/s and time left."""
    with contextlib.ExitStack() as shown:
        bar = None

        def on_facts(done: int, total: int) -> None:
            nonlocal bar
            if bar is None:  # what an earlier run finished does not count as this run's speed
                bar = shown.enter_context(
                    progress_bar(total=total, unit="facts", label=label, initial=done)
                )
            bar.update(done - bar.n)

        started = time.monotonic()
        summary = processor.rank(scorer, on_facts)
        seconds = time.monotonic() - started
    if bar is None:
        note(f"{processor.label}: another run has just ranked it")
    else:
        note(
            f"{processor.label}: {summary.rows_scored} facts in {seconds:.0f} s ({summary.rows_scored / seconds:.1f} facts/s)"
        )


def tell_untouched(
    processors: Sequence[Processor], ranked: Sequence[Processor], model: AskedModel
) -> None:
    """Say which dumps were there already, and which of them are not as they were written."""
    from fluent_mlama.records.run import NOT_AS_WRITTEN

    untouched = [one for one in processors if one not in ranked]
    if untouched:
        names = ", ".join(one.label for one in untouched)
        note(
            f"{'nothing to do, ' if not ranked else ''}already ranked: {names} (--overwrite ranks them again)"
        )
        if model.trouble:
            note(
                f"whether the model is still the one that ranked them could not be checked: {model.trouble}"
            )
    for one in untouched:
        if one.state(model) == "changed":
            note(f"{one.label}: {one.outputs.dump} or its wide twin {NOT_AS_WRITTEN}")


def open_processors(asked: Arguments, benchmarks: Sequence[Benchmark]) -> list[Processor]:
    """A processor for each of these files."""
    from processor import Processor

    return [Processor(benchmark, asked.settings) for benchmark in benchmarks]


def load(asked: Arguments) -> Scorer:
    """The scorer, on whatever device; from here on torch is there."""
    from fluent_mlama.scoring.causal import load_scorer
    from fluent_mlama.scoring.executors import load_in

    note(f"loading {asked.settings.model} …")
    scorer: Scorer = load_in(
        asked.cluster, load_scorer, asked.settings.model, **asked.settings.loading()
    )
    description = scorer.describe()
    note(
        f"{description.model}: {description.dtype} on {description.device}, scoring method {description.path} ({description.path_reason})"
    )
    return scorer


def explain(asked: Arguments) -> int:
    """Print one subject's prompts, tokens, candidates and scores, best first."""
    from fluent_mlama.ranking.explain import explain_task, only_subject

    tasks = [
        only_subject(one.task(), asked.subject, asked.object)
        for one in open_processors(asked, asked.benchmarks())
    ]
    left_out = [
        f"{task.benchmark.name} row {row}: {reason}"
        for task in tasks
        for row, reason in task.left_out.items()
    ]
    asking = [task for task in tasks if task.questions]
    if not asking:
        names = ", ".join(task.benchmark.name for task in tasks)
        why = (
            f"is left out ({'; '.join(left_out)})"
            if left_out
            else f"is in none of {names}; check the id"
        )
        raise UserError(
            f"--subject {asked.subject}{f' --object {asked.object}' if asked.object else ''} {why}"
        )
    scorer = load(asked)
    for task in asking:
        print(explain_task(task, scorer, asked.settings.arithmetic))
    return 0


if __name__ == "__main__":
    run_main(main)
