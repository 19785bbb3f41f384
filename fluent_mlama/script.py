"""Rank facts with a language model: one command from benchmark files to rank dumps.

    python script.py -l ru -r P19,P36 --model smollm2 --data fixed_data/starter --out stats/smollm2
    python script.py -l all --models models.txt --data fixed_data/starter --out stats/models
    python script.py explain -l ru -r P101 --subject Q7251 --model smollm2
    python script.py export lm-eval --data fixed_data/starter --out exports/lm-eval

Nothing here imports torch before the arguments and the data are known to be good.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fluent_mlama.console import UserError, note
from fluent_mlama.ranking.arguments import parse_arguments

if TYPE_CHECKING:
    from fluent_mlama.processor import Processor
    from fluent_mlama.ranking.arguments import Arguments
    from fluent_mlama.ranking.outputs import AskedModel
    from fluent_mlama.ranking.settings import Settings
    from fluent_mlama.ranking.summary import Summary
    from fluent_mlama.records.benchmark import Benchmark
    from fluent_mlama.scoring.contract import Scorer


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
    from fluent_mlama.ranking.outputs import asked_model
    from fluent_mlama.ranking.summary import format_summaries
    from fluent_mlama.runner.run import run_jobs

    processors = open_processors(asked, benchmarks)
    model = asked_model(asked.settings)
    todo = unranked(asked, processors, model)
    if todo:
        scorer = load(asked)
        folder = processors[0].folder
        folder.refuse_others(scorer.describe())
        folder.check(scorer.describe())
        todo = [one for one in todo if one.state(scorer.describe()) in {"missing", "replace"}]
        run_jobs(todo, scorer)
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


def unranked(
    asked: Arguments, processors: Sequence[Processor], model: AskedModel
) -> list[Processor]:
    """The files that are not ranked yet; an output folder that cannot take them is a ``UserError`` before any model is loaded."""
    from fluent_mlama.records.atomic import check_writable
    from fluent_mlama.runner.run import tidy

    settings = asked.settings
    processors[0].folder.check(model)
    todo = [one for one in processors if one.state(model) in {"missing", "replace"}]
    for one in processors:
        if one not in todo:
            tidy(one)
    for folder in (settings.out, settings.wide):
        if folder is not None and todo:
            check_writable(folder, "--out")
    for one in todo:
        one.outputs.check_free()
    return todo


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
    """A processor for each of these files, all in one output folder."""
    from fluent_mlama.processor import Processor
    from fluent_mlama.ranking.outputs import Folder

    folder = Folder(asked.settings, asked.source())
    processors = [Processor(benchmark, asked.settings, folder) for benchmark in benchmarks]
    if asked.settings.overwrite:
        folder.replaced = tuple(one.outputs for one in processors)
    return processors


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
