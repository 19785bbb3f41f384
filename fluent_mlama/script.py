"""Rank facts with a language model: one command from benchmark files to rank dumps.

    python script.py -l ru -r P19,P36 --model smollm2 --data fixed_data/starter --out stats/smollm2
    python script.py -l all --models models.txt --data fixed_data/starter --out stats/models
    python script.py explain -l ru -r P101 --subject Q7251 --model smollm2
    python script.py export lm-eval --data fixed_data/starter --out exports/lm-eval

Nothing here imports torch before the arguments and the data are known to be good.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from fluent_mlama.command_line import run_command
from fluent_mlama.console import UserError, note
from fluent_mlama.options import ClusterOptions, File, Limit, LoadOptions, Name
from fluent_mlama.ranking.arguments import DataOptions, ProtocolOptions, Run, settings_of
from fluent_mlama.ranking.models import choose_models, read_models
from fluent_mlama.ranking.settings import DEFAULT_MODEL
from fluent_mlama.runner.models import each_model, require_all

if TYPE_CHECKING:
    from fluent_mlama.processor import Processor
    from fluent_mlama.ranking.outputs import AskedModel, Summary
    from fluent_mlama.ranking.settings import Settings
    from fluent_mlama.records.benchmark import Benchmark
    from fluent_mlama.scoring.contract import Scorer

Model = Annotated[
    Name | None,
    Parameter(
        group="the model",
        show_default=lambda _: DEFAULT_MODEL,
        help="Hugging Face id, folder, .gguf file, or smollm2, the embedded one; "
        "several, comma-separated: one after the other, each into its own folder below --out",
    ),
]
ModelList = Annotated[
    File | None,
    Parameter(
        group="the model",
        help="a model per line, with its own options behind it: NAME --revision X --folder Y",
    ),
]
Out = Annotated[
    File,
    Parameter(group="where to", help="rank dumps; wide ones go to stats_wide likewise"),
]
Overwrite = Annotated[bool, Parameter(group="where to", help="rank again what is there")]
QId = Annotated[Name, Parameter(group="which facts")]


def main(words: Sequence[str] | None = None) -> int:
    """Rank, explain one fact, or export the benchmark to another tool; returns the exit status."""
    words = list(sys.argv[1:] if words is None else words)
    if words[:1] == ["export"]:
        from fluent_mlama.exporting.command import main as export

        return export(words[1:])
    if words[:1] == ["explain"]:
        return run_command(explain, words[1:], program="script.py explain")
    return run_command(rank_files, words, program="script.py")


def rank_files(
    *,
    data: DataOptions,
    limit: Annotated[
        Limit | None,
        Parameter(
            group="which facts",
            help="score the first N rows only; candidates still come from the whole file",
        ),
    ] = None,
    protocol: ProtocolOptions = ProtocolOptions(),
    model: Model = None,
    models: ModelList = None,
    loading: LoadOptions = LoadOptions(),
    where: ClusterOptions = ClusterOptions(),
    out: Out = Path("stats"),
    overwrite: Overwrite = False,
) -> int:
    """Rank facts with a language model: benchmark files in, rank dumps out.

        script.py -l ru -r P19,P36 --model smollm2 --data starter --out stats/smollm2
        script.py -l all --models models.txt --data starter --out stats/models

    One fact, candidate by candidate: script.py explain --help
    The benchmark in other tools' formats: script.py export --help
    """
    if models is not None and model is not None:
        raise UserError("--model and --models exclude each other; give one of them")
    settings = settings_of(
        model or DEFAULT_MODEL, protocol, data, loading, limit=limit, out=out, overwrite=overwrite
    )
    several = read_models(models, settings) if models is not None else choose_models(settings)
    run = Run(settings, data, where.cluster())
    if several:
        return rank_models(run, several)
    rank(run, data.benchmarks())
    return 0


def rank(asked: Run, benchmarks: Sequence[Benchmark]) -> list[Summary]:
    """Rank every file that was asked for and is not ranked yet, then say what all of them show."""
    from fluent_mlama.ranking.outputs import asked_model, format_summaries
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


def rank_models(asked: Run, models: Sequence[Settings]) -> int:
    """Rank with each model in turn, one in memory at a time; where one fails the others go on, and the end tells of it."""
    from fluent_mlama.ranking.outputs import asked_model, format_side_by_side

    benchmarks, turns = asked.data.benchmarks(), [asked.by(settings) for settings in models]
    waiting = [
        turn.settings
        for turn in turns
        if unranked(turn, open_processors(turn, benchmarks), asked_model(turn.settings))
    ]
    troubles = check_models(waiting)
    if len(troubles) == len(turns):
        raise UserError(f"none of the models can be loaded: {'; '.join(troubles)}")
    done, failed = each_model(
        turns,
        lambda turn: (turn.settings.out.name, rank(turn, benchmarks)),
        model=lambda turn: turn.settings.model,
        place=lambda turn: turn.settings.out,
    )
    if done:
        print(f"\n{format_side_by_side(dict(done))}")
    require_all(failed, len(turns))
    places = ",".join(str(turn.settings.out) for turn in turns)
    note(f"are the differences real: python stats.py compare --stats {places}")
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


def unranked(asked: Run, processors: Sequence[Processor], model: AskedModel) -> list[Processor]:
    """The files that are not ranked yet; an output folder that cannot take them is a ``UserError`` before any model is loaded."""
    from fluent_mlama.files import check_writable
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
    from fluent_mlama.records.results import NOT_AS_WRITTEN

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


def open_processors(asked: Run, benchmarks: Sequence[Benchmark]) -> list[Processor]:
    """A processor for each of these files, all in one output folder."""
    from fluent_mlama.processor import Processor
    from fluent_mlama.ranking.outputs import Folder

    folder = Folder(asked.settings, asked.data.source())
    processors = [Processor(benchmark, asked.settings, folder) for benchmark in benchmarks]
    if asked.settings.overwrite:
        folder.replaced = tuple(one.outputs for one in processors)
    return processors


def load(asked: Run) -> Scorer:
    """The scorer, on whatever device; from here on torch is there."""
    from fluent_mlama.scoring.causal import load_scorer
    from fluent_mlama.scoring.executors import load_in
    from fluent_mlama.scoring.models import is_masked
    from fluent_mlama.scoring.typed import load_typed_scorer

    settings = asked.settings
    note(f"loading {settings.model} …")
    try:
        masked = is_masked(settings.model, settings.revision)
    except UserError:  # loading it stops at the same line, or before at an unreachable cluster
        masked = False
    if masked and settings.protocol == "paper":
        raise UserError(
            f"{settings.model} is a masked model, and protocol paper sums what follows a prompt; "
            "give --protocol corrected"
        )
    options = settings.load_options()
    scorer: Scorer = (
        load_in(asked.cluster, load_typed_scorer, settings.model, **options.masked())
        if masked
        else load_in(asked.cluster, load_scorer, settings.model, **options.causal())
    )
    description = scorer.describe()
    note(
        f"{description.model}: {description.dtype} on {description.device}, scoring method {description.path} ({description.path_reason})"
    )
    return scorer


def explain(
    *,
    data: DataOptions,
    subject: Annotated[QId, Parameter(help="sub_uri of the fact, for example Q7251")],
    object: Annotated[
        QId | None, Parameter(help="obj_uri, where the subject has several objects")
    ] = None,
    protocol: ProtocolOptions = ProtocolOptions(),
    model: Annotated[Model, Parameter(help="as in ranking, one")] = None,
    loading: LoadOptions = LoadOptions(),
) -> None:
    """Print one fact's prompts, tokens, candidates and scores, best first.

    script.py explain -l ru -r P101 --subject Q7251 --model smollm2 --data starter
    """
    from fluent_mlama.ranking.explain import explain_task, only_subject

    settings = settings_of(model or DEFAULT_MODEL, protocol, data, loading)
    if choose_models(settings):
        raise UserError(f"--model {model}: explain asks one model; name one")
    run = Run(settings, data)
    tasks = [
        only_subject(one.task(), subject, object or "")
        for one in open_processors(run, data.benchmarks())
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
        fact = f"--subject {subject}" + (f" --object {object}" if object else "")
        raise UserError(f"{fact} {why}")
    scorer = load(run)
    for task in asking:
        print(explain_task(task, scorer, settings.arithmetic))
