"""``evaluate``: models on minimal pairs, every linking function from one scoring pass.

Finished models are taken from --out when the same command is given again; an interrupted one goes on where it stopped.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from cyclopts import Parameter
from tabulate import tabulate

from fluent_mlama.console import UserError, note, progress
from fluent_mlama.linking import Linking, Unigrams, count_unigrams, read_unigrams
from fluent_mlama.options import ClusterOptions, Count, File, LoadOptions, Names
from fluent_mlama.outcomes import write_outcomes
from fluent_mlama.ranking.settings import without_home
from fluent_mlama.records.atomic import check_writable
from fluent_mlama.records.names import as_file_name
from fluent_mlama.reporting.three_formats import write_tables
from fluent_mlama.runner.models import each_model, require_all
from fluent_mlama.runner.run import run_jobs, tidy
from fluent_mlama.scoring.executors import Cluster, load_in
from fluent_mlama.zhoblimp.data import PairRow, read_pairs
from fluent_mlama.zhoblimp.measures import DEFAULTS, Result, linking_functions, make_result
from fluent_mlama.zhoblimp.models import Target, find_targets, load
from fluent_mlama.zhoblimp.outcomes import outcomes_of
from fluent_mlama.zhoblimp.scores import Pairs, Place, digest, kept, made_with, signature
from fluent_mlama.zhoblimp.tables import main_functions, make_tables, write_pairs_with_scores
from fluent_mlama.zhoblimp.vocabulary import read_utf8

_LOW_COVERAGE = 0.9
_LINES = 2000


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class EvaluateOptions:
    """Which models, on which pairs, by which linking functions."""

    model: Names
    """hub name, folder, .gguf or smollm2; several, comma-separated or repeated"""
    revisions: Names = ()
    """comma-separated; for a local folder its checkpoint sub-folders, or ALL"""
    data: File
    """pairs: a folder, one .jsonl or a tar archive, as BLiMP and ZhoBLiMP"""
    per_paradigm: Count | None = None
    """the first N pairs of each paradigm only"""
    linking: str = DEFAULTS
    """all (with the published grids) or a comma-separated list"""
    unigrams: File | None = None
    """token id: probability as JSON, or a text corpus to count (default: the pairs themselves, a toy)"""
    human: File | None = None
    """CSV with UID and acc: people's accuracy per paradigm"""
    out: File
    """folder for scores, tables and plots"""
    no_plots: bool = False
    """tables only"""


def evaluate_models(
    *,
    options: EvaluateOptions,
    loading: LoadOptions = LoadOptions(),
    where: ClusterOptions = ClusterOptions(),
) -> None:
    """Models on minimal pairs, every linking function from one scoring pass.

        fluent-mlama zhoblimp evaluate --model smollm2 --data pairs --out zhoblimp_results

    Finished models are taken from --out when the same command is given again; an interrupted one goes on where it stopped.
    """
    cluster = where.cluster()
    functions = linking_functions(options.linking)
    rows = chosen_rows(read_pairs(options.data), options.per_paradigm)
    human = read_human(options.human) if options.human else {}
    check_writable(options.out, "--out")
    targets = find_targets(options.model, options.revisions)
    evidence = Evidence.read(options.unigrams)

    def one(target: Target) -> tuple[Result, str]:
        place = place_of(options.out, target)
        result = evaluate(target, rows, place, evidence, loading, cluster)
        write_pairs_with_scores(place.pairs, rows, result, functions)
        return result, signature(place)

    done, failed = each_model(
        targets,
        one,
        model=lambda target: target.label,
        place=lambda target: place_of(options.out, target).scores.parent,
    )
    require_all(failed if not done else (), len(targets))
    results = [result for result, _ in done]
    signatures = " / ".join(line for _, line in done)
    write_outcomes(options.out, outcomes_of(results, functions, signatures))
    tables = make_tables(results, functions, human)
    write_tables(options.out / "tables", tables)
    if not options.no_plots:
        from fluent_mlama.zhoblimp.plots import write_plots

        write_plots(
            options.out / "plots", results, main_functions(functions), tables["alpha"], human
        )
    print(overview(tables["overall"], main_functions(functions)))
    print(
        f"unigrams: {results[0].unigram_source}. Tables, plots and scores of each pair are in {options.out}"
    )
    require_all(failed, len(targets))


@dataclass(frozen=True)
class Evidence:
    """Token frequencies from outside: a table for one tokenizer, or a text to count with each model's own."""

    name: str = ""
    table: Unigrams | None = None
    corpus: str | None = None

    @staticmethod
    def read(path: Path | None) -> Evidence:
        """What a file of ``--unigrams`` holds; nothing for None."""
        if path is None:
            return Evidence()
        if path.suffix == ".json":
            return Evidence(path.name, table=read_unigrams(path))
        return Evidence(path.name, corpus=read_utf8(path))


def chosen_rows(
    paradigms: Mapping[str, Sequence[PairRow]], per_paradigm: int | None
) -> list[PairRow]:
    """The pairs to be scored, paradigm by paradigm."""
    return [row for rows in paradigms.values() for row in rows[:per_paradigm]]


def evaluate(
    target: Target,
    rows: Sequence[PairRow],
    place: Place,
    evidence: Evidence,
    loading: LoadOptions,
    cluster: Cluster | None,
) -> Result:
    """One model: its kept scores if they were made in the same way, else a scoring pass; then the evidence for linking."""
    settings = {
        "model": without_home(target.name), "revision": target.revision, "identity": target.identity(), "device": loading.device,
        "dtype": loading.dtype,
        "pairs": len(rows), "pairs_sha256": digest(rows),
    }  # fmt: skip
    job = Pairs(rows, place, target.label, settings)
    scorer = None
    if job.is_finished():
        tidy(job)
    else:
        scorer = load_in(cluster, load, target, loading)
        run_jobs([job], scorer)
    frame = kept(settings, place)
    if frame is None:
        raise UserError(f"{place.scores} has been changed since it was written; score it again")
    table = evidence.table
    if evidence.corpus is not None:
        scorer = scorer or load_in(cluster, load, target, loading)
        table = corpus_unigrams(scorer.loaded.tokenizer, evidence.corpus, evidence.name)
    elif table is not None:
        table.check_made_for(made_with(place), target.label)
        share = table.coverage(
            token for side in ("good_ids", "bad_ids") for ids in frame[side] for token in ids
        )
        if share < _LOW_COVERAGE:
            note(
                f"{table.source} has {share:.0%} of the tokens of {target.label}: probably made for another tokenizer"
            )
    return make_result(target.label, frame, table)


def corpus_unigrams(tokenizer: Any, corpus: str, source: str) -> Unigrams:
    """Token counts of a text, line by line, with one occurrence added for every token of the vocabulary."""
    lines = [line for line in corpus.splitlines() if line.strip()]
    if not lines:
        raise UserError(
            f"{source}: no text to count unigrams in; give a text file with one sentence or paragraph a line"
        )
    starts = progress(
        range(0, len(lines), _LINES),
        total=-(-len(lines) // _LINES),
        unit="batches",
        label="count unigrams",
    )
    encoded = (
        ids
        for start in starts
        for ids in tokenizer(lines[start : start + _LINES], add_special_tokens=False)["input_ids"]
    )
    return count_unigrams(
        (token for ids in encoded for token in ids), f"corpus {source}", len(tokenizer)
    )


def read_human(path: Path) -> dict[str, float]:
    """UID -> share of people's judgements that agree with the data."""
    reader = csv.DictReader(read_utf8(path).splitlines())
    try:
        rows, names = list(reader), reader.fieldnames or ()
    except csv.Error as error:
        raise UserError(
            f"{path.name}: row {reader.line_num + 1}: {error}; write a CSV with the columns UID and acc"
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
                f"{path.name}: row {number}: acc '{row['acc']}' is no number from 0 to 1"
            )
        if row["UID"] in human:
            raise UserError(f"{path.name}: row {number}: UID '{row['UID']}' stands twice")
        human[row["UID"]] = value
    return human


def place_of(out: Path, target: Target) -> Place:
    """Files of one target: ``<out>/<model>/<revision>``, with characters that no file name should have replaced."""
    name = target.name if target.location == target.name else Path(target.name).name
    return Place(out / as_file_name(name), as_file_name(target.revision or "main", instead="main"))


def overview(table: pd.DataFrame, functions: Sequence[Linking]) -> str:
    """The overall table, one function of each kind."""
    names = [
        "model",
        "function",
        "pairs",
        "micro",
        "macro paradigms",
        "macro phenomena",
        "ties",
        "human rho",
    ]
    shown = table[table["function"].isin([one.name for one in functions])][names]
    return tabulate(shown.to_numpy().tolist(), names, floatfmt="z.4f")
