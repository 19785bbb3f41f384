"""``grammeval.py qe``: fluency scores for every verbalisation, joined to the ranks (Table 5, Figure 2, correlations)."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import pandas as pd
from tabulate import tabulate

from fluent_mlama.console import UserError, note, whole_number
from fluent_mlama.fluency import comet
from fluent_mlama.fluency.comet import CometJudge
from fluent_mlama.fluency.joining import fact_gains, relation_gains
from fluent_mlama.fluency.judging import Judge, probed_models, share_of_copies
from fluent_mlama.fluency.lm import CIRCULAR, DEFAULT_MODEL, LanguageModelJudge
from fluent_mlama.fluency.score_files import ScoreFiles, judge_table
from fluent_mlama.linking import read_unigrams
from fluent_mlama.records.atomic import check_writable, write_text
from fluent_mlama.records.table import format_table, read_table
from fluent_mlama.reporting.correlations import (
    LENGTH,
    QUALITY,
    over_relations,
    readable,
    within_relations,
)
from fluent_mlama.reporting.experiments import both
from fluent_mlama.reporting.graphs import write_graphs
from fluent_mlama.reporting.latex import Column, Raw, booktabs, escape, number, write_table
from fluent_mlama.reporting.loading import DumpFolder, RankTable, open_dumps
from fluent_mlama.reporting.options import add_short_rule
from fluent_mlama.reporting.qe_table import scale_of, write_qe_table
from fluent_mlama.reporting.quality import (
    KEY,
    SIGNIFICANT,
    gains,
    read_quality_gains,
    retrieval_gains,
)
from fluent_mlama.reporting.remarks import SHORT_RULE_TEXTS
from fluent_mlama.reporting.selection import Selection

BACK_ENDS = ("lm", "comet", "file")
HIGH_COPIES = 0.05


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of qe."""
    add_short_rule(parser)
    parser.add_argument(
        "--back-end", choices=BACK_ENDS, default="lm", help="who judges (default: lm, offline)"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("grammeval"),
        metavar="DIR",
        help="where score files go (default: grammeval)",
    )
    parser.add_argument(
        "--qe-scale",
        default="",
        metavar="TEXT",
        help="model and scale for heads and captions, where a file does not say",
    )
    parser.add_argument(
        "--model",
        metavar="NAME",
        help=f"lm: as in script.py (default: {DEFAULT_MODEL}); comet: default {comet.DEFAULT_MODEL}",
    )
    language_model = parser.add_argument_group("back end lm")
    language_model.add_argument(
        "--linking",
        metavar="NAME",
        help="score of a sentence (default: slor with --unigram, else mean)",
    )
    language_model.add_argument(
        "--unigram", type=Path, metavar="JSON", help="token id: probability, for slor"
    )
    language_model.add_argument(
        "--probed", metavar="MODEL", help="the model that made the dumps, where no run record says"
    )
    language_model.add_argument("--device", default="auto")
    language_model.add_argument("--dtype", default="auto")
    own = parser.add_argument_group("back end comet")
    own.add_argument(
        "--comet",
        type=Path,
        default=comet.DEFAULT_COMMAND,
        help=f"comet-score (default: {comet.DEFAULT_COMMAND})",
    )
    own.add_argument(
        "--batch-size",
        type=whole_number(1),
        default=40,
        help="sentences a forward (default: 40, the paper's)",
    )
    own.add_argument(
        "--pairs-a-call",
        type=whole_number(1),
        default=1000,
        help="sentences a call, the unit of resume (default: 1000)",
    )
    own.add_argument(
        "--gpus",
        type=int,
        choices=(0, 1),
        default=0,
        help="0 = CPU (default); with more than 1 COMET's scores differ",
    )
    files = parser.add_argument_group("back end file")
    files.add_argument(
        "--scores",
        type=Path,
        metavar="PATH",
        help="folder or zip of *_qe.tsv, a TSV of scores, or one of gains",
    )


def run(arguments: argparse.Namespace) -> int:
    """Score, join, write, and print the correlations."""
    write_quality(open_dumps(arguments.stats), arguments)
    return 0


def write_quality(folder: DumpFolder, arguments: argparse.Namespace) -> list[Path]:
    """Everything that ``qe`` writes; returns the paths of tables and graphs."""
    for option in ("out", "tables", "graphs"):
        check_writable(getattr(arguments, option), f"--{option}")
    if arguments.scores is not None and arguments.back_end != "file":
        raise UserError("--scores is for --back-end file: give that as well, or leave --scores out")
    facts = None
    selections = both(folder, arguments)
    retrieval = pd.concat(
        [retrieval_gains(selection) for selection in selections], ignore_index=True
    )
    if arguments.back_end == "file" and holds_gains(arguments.scores):
        arguments.qe = arguments.scores
        if gains(
            retrieval, read_quality_gains(arguments.qe)
        ).empty:  # before the first table is written
            raise UserError(
                f"{arguments.qe} has no gain of any language and verbalisation of these dumps; choose others with --langs"
            )
    else:
        scores_of, label = scorer_of(folder, selections, arguments)
        facts = fact_gains(selections, scores_of)
        arguments.qe, arguments.qe_scale = arguments.tables / "qe_gains.tsv", label()
        per_relation = relation_gains(facts)
        write_text(
            arguments.qe,
            format_table(per_relation.astype({QUALITY: object, LENGTH: object}).map(str)),
        )
        note(f"wrote {arguments.qe}")
        tell_copies(selections)
    written = [write_qe_table(folder, arguments)]
    written += write_graphs(folder, argparse.Namespace(**vars(arguments) | {"only": ("qe",)}))
    return written + write_correlations(folder, selections, retrieval, facts, arguments)


def holds_gains(path: Path | None) -> bool:
    """Whether the file is a TSV of gains by relation rather than of scores."""
    if path is None:
        raise UserError(
            "--back-end file needs --scores: a folder of *_qe.tsv, a TSV of scores, or a TSV of gains (qe_delta)"
        )
    return (
        path.is_file()
        and path.suffix != ".zip"
        and QUALITY in read_table(path.read_bytes(), str(path))
    )


def scorer_of(
    folder: DumpFolder, selections: list[Selection], arguments: argparse.Namespace
) -> tuple[Callable[[RankTable], pd.DataFrame], Callable[[], str]]:
    """How to get the scores of a table, and what to call them (known for files once they are read)."""
    if arguments.back_end == "file":
        files = ScoreFiles(arguments.scores, arguments.qe_scale)
        return files.scores, lambda: files.label
    judge = make_judge(folder, selections, arguments)

    def scores_of(table: RankTable) -> pd.DataFrame:
        """Of the whole dump, so that the file on disk does not hang on which rows and verbalisations a table takes."""
        whole = judge_table(folder.table(table.lang, table.relation), judge, arguments.out)
        return whole.loc[table.facts.index, list(table.verbalisations)]

    return scores_of, lambda: judge.label


def make_judge(
    folder: DumpFolder, selections: list[Selection], arguments: argparse.Namespace
) -> Judge:
    """The back end that was asked for."""
    if arguments.back_end == "comet":
        return CometJudge(
            arguments.model or comet.DEFAULT_MODEL,
            command=arguments.comet,
            batch_size=arguments.batch_size,
            pairs_a_call=arguments.pairs_a_call,
            gpus=arguments.gpus,
        )
    tables = [table for selection in selections for table in selection.tables.values()]
    probed = {arguments.probed: ""} if arguments.probed else probed_models(folder, tables)
    unigrams = None if arguments.unigram is None else read_unigrams(arguments.unigram)
    judge = LanguageModelJudge(
        arguments.model or DEFAULT_MODEL,
        linking=arguments.linking,
        unigrams=unigrams,
        probed=probed,
        device=arguments.device,
        dtype=arguments.dtype,
    )
    if not probed:
        note(
            "the dumps do not say which model was probed (--probed does): a judge that is the same model would not be seen"
        )
    if judge.circular:
        note(f"{CIRCULAR}; choose another --model to learn something of fluency")
    return judge


def tell_copies(selections: list[Selection]) -> None:
    """One line where many sentences are their English source."""
    for selection in selections:
        for table in selection.tables.values():
            for v, share in share_of_copies(table).items():
                if share > HIGH_COPIES:
                    note(
                        f"{table.name}: {share:.0%} of the {v} sentences are the English source itself; their scores mean nothing"
                    )


def write_correlations(
    folder: DumpFolder,
    selections: list[Selection],
    retrieval: pd.DataFrame,
    facts: pd.DataFrame | None,
    arguments: argparse.Namespace,
) -> list[Path]:
    """``qe_correlations.tsv`` and ``.tex``; printed as well."""
    quality = read_quality_gains(arguments.qe)
    relations = gains(retrieval, quality)
    lengths = (
        facts if facts is not None else fact_gains(selections, lambda table: table.rank * 0.0)
    )  # lengths are in the dumps
    relations = relations.merge(relation_gains(lengths)[[*KEY, LENGTH]], how="left", on=KEY)
    found = [("relations", over_relations(relations))]
    if facts is not None:
        found.append(("facts within relations", within_relations(facts)))
    scale = scale_of(arguments)
    print(f"Gain in R@1 with gain in QE ({scale}): value [95 % interval] p after Holm")
    for points, table in found:
        print(
            tabulate(
                readable(table),
                [
                    "lang",
                    "verbalisation",
                    f"n {points}",
                    "Pearson r",
                    "Spearman rho",
                    "partial r (length)",
                ],
            )
        )
    long = pd.concat(
        [table.assign(points=points, scale=scale) for points, table in found], ignore_index=True
    )
    path = arguments.tables / "qe_correlations.tsv"
    write_text(
        path, format_table(long.astype(object).map(lambda cell: "" if cell != cell else str(cell)))
    )
    note(f"wrote {path}")
    return [path, _write_tex(folder, selections, found, scale, arguments.tables)]


def _write_tex(
    folder: DumpFolder,
    selections: list[Selection],
    found: list[tuple[str, pd.DataFrame]],
    scale: str,
    tables: Path,
) -> Path:
    names = {
        "r": Raw("Pearson $r$"),
        "rho": Raw(r"Spearman $\rho$"),
        "partial_r": Raw("partial $r$"),
    }
    head = Raw(rf"\makecell[l]{{QE: {escape(scale)} \\ points}}")
    columns = [Column(head, "l"), Column("", "l"), Column("", "l"), Column(Raw("$n$"))]
    columns += [
        Column(part, group=name) for name in names.values() for part in ("value", "95 % interval")
    ]
    rows: list[list[object] | None] = []
    for points, table in found:
        rows.append(None)
        for record in table.to_dict("records"):
            row: list[object] = [points, record["lang"], record["verbalisation"], record["n"]]
            for name in names:
                star = r"\rlap{*}" if record[f"{name}_p_holm"] < SIGNIFICANT else ""
                low, high = (number(record[f"{name}_{end}"], 3) for end in ("low", "high"))
                row += [Raw(f"{number(record[name], 3)}{star}"), Raw(f"[{low}, {high}]")]
            rows.append(row)
    lines = [
        f"Correlation of the gain in R@1 with the gain in QE ({scale}), over relations and of facts within relations.",
        *(
            f"{', '.join(s.langs)}: {' '.join(s.relations)}; {SHORT_RULE_TEXTS[s.short_rule]}; protocol: {s.protocol}."
            for s in selections
        ),
        f"* p < {SIGNIFICANT} after Holm; intervals: over relations, or over objects and subjects within relations.",
        "partial r: with the gain in sentence length (characters) held fixed.",
        f"signature: {folder.signature(table for selection in selections for table in selection.tables.values())}",
    ]
    return write_table(tables, "qe_correlations", booktabs(columns, rows[1:]), lines)
