"""``evaluate``: models on minimal pairs, every linking function from one scoring pass.

Finished models are taken from --out when the same command is given again; an interrupted one goes on where it stopped.
"""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from tabulate import tabulate

from fluent_mlama.console import UserError, note, progress, split_list, whole_number
from fluent_mlama.linking import Linking, Unigrams, count_unigrams, read_unigrams
from fluent_mlama.outcomes import write_outcomes
from fluent_mlama.ranking.settings import without_home
from fluent_mlama.records.atomic import check_writable
from fluent_mlama.records.names import as_file_name
from fluent_mlama.reporting.three_formats import write_tables
from fluent_mlama.runner.run import run_jobs, tidy
from fluent_mlama.scoring.executors import Cluster, add_executor_arguments, cluster_of, load_in
from fluent_mlama.zhoblimp.data import PairRow, read_pairs
from fluent_mlama.zhoblimp.measures import DEFAULTS, Result, linking_functions, make_result
from fluent_mlama.zhoblimp.models import Target, find_targets, load
from fluent_mlama.zhoblimp.outcomes import outcomes_of
from fluent_mlama.zhoblimp.scores import Pairs, Place, digest, kept, made_with, signature
from fluent_mlama.zhoblimp.tables import main_functions, make_tables, write_pairs_with_scores
from fluent_mlama.zhoblimp.vocabulary import read_utf8

_LOW_COVERAGE = 0.9
_LINES = 2000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``evaluate``."""
    parser.add_argument(
        "--model",
        action="append",
        required=True,
        help="hub name, folder, .gguf or smollm2; may be repeated",
    )
    parser.add_argument(
        "--revisions",
        default="",
        help="comma list; for a local folder its checkpoint sub-folders, or ALL",
    )
    parser.add_argument(
        "--data",
        type=Path,
        required=True,
        help="pairs: a folder, one .jsonl or a tar archive, as BLiMP and ZhoBLiMP",
    )
    parser.add_argument(
        "--per-paradigm",
        type=whole_number(1),
        metavar="N",
        help="the first N pairs of each paradigm only",
    )
    parser.add_argument(
        "--linking",
        default=DEFAULTS,
        help=f"all (with the published grids) or a comma list (default {DEFAULTS})",
    )
    parser.add_argument(
        "--unigram",
        type=Path,
        help="token id: probability as JSON, or a text corpus to count (default: the pairs themselves, a toy)",
    )
    parser.add_argument(
        "--human", type=Path, help="CSV with UID and acc: people's accuracy a paradigm"
    )
    parser.add_argument(
        "--out", type=Path, required=True, help="folder for scores, tables and plots"
    )
    parser.add_argument("--device", default="auto")
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--no-plots", action="store_true", help="tables only")
    add_executor_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Score, link, count, write, and print the overall table."""
    cluster = cluster_of(arguments)
    functions = linking_functions(arguments.linking)
    rows = chosen_rows(read_pairs(arguments.data), arguments.per_paradigm)
    human = read_human(arguments.human) if arguments.human else {}
    check_writable(arguments.out, "--out")
    targets = find_targets(arguments.model, split_list(arguments.revisions))
    table = (
        read_unigrams(arguments.unigram)
        if arguments.unigram and arguments.unigram.suffix == ".json"
        else None
    )
    corpus = read_utf8(arguments.unigram) if arguments.unigram and table is None else None
    results, signatures = [], []
    for target in targets:
        place = place_of(arguments.out, target)
        result = evaluate(target, rows, place, arguments, table, corpus, cluster)
        write_pairs_with_scores(place.pairs, rows, result, functions)
        results.append(result)
        signatures.append(signature(place))
    write_outcomes(arguments.out, outcomes_of(results, functions, " / ".join(signatures)))
    tables = make_tables(results, functions, human)
    write_tables(arguments.out / "tables", tables)
    if not arguments.no_plots:
        from fluent_mlama.zhoblimp.plots import write_plots

        write_plots(
            arguments.out / "plots", results, main_functions(functions), tables["alpha"], human
        )
    print(overview(tables["overall"], main_functions(functions)))
    print(
        f"unigrams: {results[0].unigram_source}. Tables, plots and scores of each pair are in {arguments.out}"
    )
    return 0


def chosen_rows(
    paradigms: Mapping[str, Sequence[PairRow]], per_paradigm: int | None
) -> list[PairRow]:
    """The pairs to be scored, paradigm by paradigm."""
    return [row for rows in paradigms.values() for row in rows[:per_paradigm]]


def evaluate(
    target: Target,
    rows: Sequence[PairRow],
    place: Place,
    arguments: argparse.Namespace,
    table: Unigrams | None,
    corpus: str | None,
    cluster: Cluster | None,
) -> Result:
    """One model: its kept scores if they were made in the same way, else a scoring pass; then the evidence for linking."""
    settings = {
        "model": without_home(target.name), "revision": target.revision, "identity": target.identity(), "device": arguments.device,
        "dtype": arguments.dtype,
        "pairs": len(rows), "pairs_sha256": digest(rows),
    }  # fmt: skip
    job = Pairs(rows, place, target.label, settings)
    scorer = None
    if job.is_finished():
        tidy(job)
    else:
        scorer = load_in(cluster, load, target, device=arguments.device, dtype=arguments.dtype)
        run_jobs([job], scorer)
    frame = kept(settings, place)
    if frame is None:
        raise UserError(f"{place.scores} has been changed since it was written; score it again")
    if corpus is not None:
        scorer = scorer or load_in(
            cluster, load, target, device=arguments.device, dtype=arguments.dtype
        )
        table = corpus_unigrams(scorer.loaded.tokenizer, corpus, str(arguments.unigram.name))
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
