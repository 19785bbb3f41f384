"""``evaluate``: models on minimal pairs, every linking function from one scoring pass."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from fluent_mlama.console import UserError, note, progress
from fluent_mlama.options import ClusterOptions, Count, File, LoadOptions, Names
from fluent_mlama.zhoblimp.data import PairRow, read_pairs
from fluent_mlama.zhoblimp.vocabulary import read_utf8

if TYPE_CHECKING:
    import pandas as pd

    from fluent_mlama.linking import Linking, Unigrams
    from fluent_mlama.scoring.causal import CausalScorer
    from fluent_mlama.zhoblimp.measures import Result
    from fluent_mlama.zhoblimp.scores import Kept, Place, Target

DEFAULTS = ("lp", "mean", "slln", "log", "penlp", "normlp", "slor", "morcela", "per-char")
LOADING, WHERE = LoadOptions(), ClusterOptions()
_LOW_COVERAGE = 0.9
_LINES = 2000


def evaluate(
    *,
    model: Annotated[Names, Parameter(help="hub names, folders, .gguf or smollm2")],
    data: Annotated[File, Parameter(help="pairs: a folder, a .jsonl or a tar archive")],
    out: Annotated[File, Parameter(help="folder for scores, tables and plots")],
    revisions: Names = (),
    per_paradigm: Count | None = None,
    linking: Names = DEFAULTS,
    unigrams: File | None = None,
    human: File | None = None,
    no_plots: bool = False,
    loading: LoadOptions = LOADING,
    where: ClusterOptions = WHERE,
) -> None:
    """Score minimal pairs and count the correct ones under every linking function.

        fluent-mlama zhoblimp evaluate --model smollm2 --data pairs --out results
        fluent-mlama zhoblimp evaluate --model A,B --data ZhoBLiMP.tar.gz --linking all --out R

    The same command continues an interrupted run and takes finished models from --out.

    Args:
        revisions: hub revisions, or checkpoint sub-folders of a local folder (ALL: each of them)
        per_paradigm: the first N pairs of each paradigm only
        linking: linking functions, comma-separated; all: these and the published grids
        unigrams: JSON of token id: probability, or a text to count (default: the pairs, a toy)
        human: CSV with UID and acc, people's accuracy per paradigm
        no_plots: tables only
    """
    from fluent_mlama.files import check_writable
    from fluent_mlama.outcomes import write_outcomes
    from fluent_mlama.reporting.table_io import write_tables
    from fluent_mlama.runner.models import each_model, require_all
    from fluent_mlama.zhoblimp import measures
    from fluent_mlama.zhoblimp.scores import Place, find_targets

    where.cluster()
    functions = measures.linking_functions(linking)
    rows = chosen_rows(read_pairs(data), per_paradigm)
    people = read_human(human) if human else {}
    check_writable(out, "--out")
    if loading.revision and not revisions:
        revisions = (loading.revision,)
    source = UnigramSource(unigrams)
    targets = find_targets(model, revisions)

    def one(target: Target) -> tuple[Result, str]:
        place = Place.of(out, target)
        result, signature = evaluate_target(target, rows, place, source, loading, where)
        measures.write_pairs_with_scores(place.pairs, rows, result, functions)
        return result, signature

    done, failed = each_model(
        targets,
        one,
        model=lambda target: target.label,
        place=lambda target: Place.of(out, target).folder,
    )
    if not done:
        require_all(failed, len(targets))
    results = [result for result, _ in done]
    signatures = " / ".join(signature for _, signature in done)
    write_outcomes(out, measures.outcomes_of(results, functions, signatures))
    tables = measures.make_tables(results, functions, people)
    write_tables(out / "tables", tables)
    shown = measures.main_functions(functions)
    if not no_plots:
        from fluent_mlama.zhoblimp.plots import write_plots

        write_plots(out / "plots", results, shown, tables["alpha"], people)
    print(overview(tables["overall"], shown))
    print(
        f"unigrams: {results[0].unigram_source}. Tables, plots and scores of each pair are in {out}"
    )
    require_all(failed, len(targets))


def chosen_rows(
    paradigms: Mapping[str, Sequence[PairRow]], per_paradigm: int | None
) -> list[PairRow]:
    """The pairs to be scored, paradigm by paradigm."""
    return [row for rows in paradigms.values() for row in rows[:per_paradigm]]


def evaluate_target(
    target: Target,
    rows: Sequence[PairRow],
    place: Place,
    source: UnigramSource,
    loading: LoadOptions,
    where: ClusterOptions,
) -> tuple[Result, str]:
    """One model's evidence and signature, from kept scores where exactly this run made them."""
    from fluent_mlama.ranking.settings import without_home
    from fluent_mlama.runner.run import run_jobs, tidy
    from fluent_mlama.scoring.executors import load_in
    from fluent_mlama.zhoblimp import measures, scores

    settings: dict[str, Any] = {
        "model": without_home(target.name),
        "revision": target.revision,
        "identity": target.identity(),
        "device": loading.device,
        "dtype": loading.dtype,
        "pairs": len(rows),
        "pairs_sha256": scores.digest(rows),
    }
    # Only what differs from the default is recorded: scores of earlier releases stay valid.
    for name in ("quantization", "scoring_method"):
        if getattr(loading, name) != getattr(LOADING, name):
            settings[name] = getattr(loading, name)

    def load() -> CausalScorer:
        return load_in(where.cluster(), scores.load, target, loading)

    job = scores.Pairs(rows, place, target.label, settings)
    scorer = None
    if job.is_finished():
        tidy(job)
    else:
        scorer = load()
        run_jobs([job], scorer)
    kept = scores.kept(settings, place)
    if kept is None:
        raise UserError(f"{place.scores} has been changed since it was written; score it again")
    if source.corpus is None:
        table = source.table
        if table is not None:
            _check_made_for(table, kept, target.label)
    else:
        tokenizer = (scorer or load()).loaded.tokenizer
        table = corpus_unigrams(tokenizer, source.corpus, source.name)
    return measures.make_result(target.label, kept.frame, table), kept.signature


class UnigramSource:
    """A table of unigram probabilities, a text to count with each model's tokenizer, or neither."""

    def __init__(self, path: Path | None) -> None:
        from fluent_mlama.linking import read_unigrams

        self.name = path.name if path else ""
        is_table = path is not None and path.suffix == ".json"
        self.table = read_unigrams(path) if path and is_table else None
        self.corpus = read_utf8(path) if path and not is_table else None


def _check_made_for(table: Unigrams, kept: Kept, label: str) -> None:
    """``UserError`` or a warning where the table belongs to another tokenizer."""
    table.check_made_for(kept.tokenizer, label)
    columns = (kept.frame["good_ids"], kept.frame["bad_ids"])
    share = table.coverage(token for column in columns for ids in column for token in ids)
    if share < _LOW_COVERAGE:
        note(
            f"{table.source} has {share:.0%} of the tokens of {label}: "
            "probably made for another tokenizer"
        )


def corpus_unigrams(tokenizer: Any, corpus: str, source: str) -> Unigrams:
    """Token counts of a text, line by line, with add-one smoothing over the vocabulary."""
    from fluent_mlama.linking import count_unigrams

    lines = [line for line in corpus.splitlines() if line.strip()]
    if not lines:
        raise UserError(
            f"{source}: no text to count unigrams in; "
            "give a text file with one sentence or paragraph per line"
        )
    starts = range(0, len(lines), _LINES)
    tokens: list[int] = []
    for start in progress(starts, total=len(starts), unit="batches", label="count unigrams"):
        batch = tokenizer(lines[start : start + _LINES], add_special_tokens=False)
        for ids in batch["input_ids"]:
            tokens += ids
    return count_unigrams(tokens, f"corpus {source}", len(tokenizer))


def read_human(path: Path) -> dict[str, float]:
    """UID -> share of people's judgments that agree with the data."""
    reader = csv.DictReader(read_utf8(path).splitlines())
    try:
        rows, names = list(reader), reader.fieldnames or ()
    except csv.Error as error:
        raise UserError(
            f"{path.name}: row {reader.line_num + 1}: {error}; "
            "write a CSV with the columns UID and acc"
        ) from None
    if not {"UID", "acc"} <= set(names):
        raise UserError(f"{path.name}: row 1 must name the columns UID and acc")
    human: dict[str, float] = {}
    for number, row in enumerate(rows, start=2):
        try:
            value = float(row["acc"] or "")
        except ValueError:
            value = math.nan
        if not 0 <= value <= 1:
            raise UserError(
                f"{path.name}: row {number}: acc '{row['acc']}' is not a number from 0 to 1"
            )
        if row["UID"] in human:
            raise UserError(f"{path.name}: row {number}: UID '{row['UID']}' is there twice")
        human[row["UID"]] = value
    return human


def overview(table: pd.DataFrame, functions: Sequence[Linking]) -> str:
    """The overall table, one function of each kind."""
    from tabulate import tabulate

    names = [name for name in table.columns if name != "human paradigms"]
    shown = table[table["function"].isin([one.name for one in functions])][names]
    return tabulate(shown.to_numpy().tolist(), names, floatfmt="z.4f")
