"""``grammeval.py qe``: fluency scores for every verbalisation, joined to the ranks (Table 5, Figure
2, correlations).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import pandas as pd
from cyclopts import Parameter
from tabulate import tabulate

from fluent_mlama.console import UserError, note
from fluent_mlama.files import check_writable, format_table, read_table, write_text
from fluent_mlama.fluency.judges import (
    CIRCULAR,
    COMET_COMMAND,
    COMET_MODEL,
    LM_MODEL,
    CometJudge,
    Judge,
    LanguageModelJudge,
    probed_models,
    sentences,
    share_of_copies,
)
from fluent_mlama.fluency.score_files import ScoreFiles, judge_table
from fluent_mlama.linking import read_unigrams
from fluent_mlama.options import Count, File, Name
from fluent_mlama.reporting.correlations import (
    LENGTH,
    QUALITY,
    RETRIEVAL,
    over_relations,
    readable,
    within_relations,
)
from fluent_mlama.reporting.graphs import write_graphs
from fluent_mlama.reporting.latex import Column, Raw, booktabs, escape, number, write_table
from fluent_mlama.reporting.loading import DumpFolder, RankTable, open_dumps
from fluent_mlama.reporting.options import StatsOptions
from fluent_mlama.reporting.qe_table import (
    KEY,
    SCALE_UNKNOWN,
    SIGNIFICANT,
    gains,
    read_quality_gains,
    retrieval_gains,
    write_qe_table,
)
from fluent_mlama.reporting.selection import Selection, both, rules_text

HIGH_COPIES = 0.05


@Parameter(name="*", group="who judges")
@dataclass(frozen=True, kw_only=True)
class JudgeOptions:
    """Where scores of fluency come from."""

    back_end: Literal["lm", "comet", "file"] = "lm"
    """lm: a language model, offline"""
    out: File = Path("grammeval")
    """where score files go"""
    qe_scale: str = ""
    """model and scale for heads and captions, where a file does not say"""
    model: Annotated[
        Name | None,
        Parameter(help=f"lm: as in script.py (default: {LM_MODEL}); comet: default {COMET_MODEL}"),
    ] = None
    linking: str | None = None
    """lm: score of a sentence (default: slor with --unigrams, else mean)"""
    unigrams: File | None = None
    """lm: JSON of token id: probability, for slor"""
    probed: str | None = None
    """lm: the model that made the dumps, where no run record says"""
    device: Name = "auto"
    dtype: Name = "auto"
    comet: File = COMET_COMMAND
    """comet: the program comet-score"""
    batch_size: Count = 40
    """comet: sentences per forward pass (40 is the paper's)"""
    pairs_per_call: Count = 1000
    """comet: sentences per call, the unit of resume"""
    gpus: Literal[0, 1] = 0
    """comet: 0 = CPU; with more than 1 COMET's scores differ"""
    scores: File | None = None
    """file: folder or zip of *_qe.tsv, a TSV of scores, or one of gains"""


def quality(
    *, options: StatsOptions = StatsOptions(), judge: JudgeOptions = JudgeOptions()
) -> None:
    """Fluency of every sentence, and its correlation with retrieval (Table 5, Figure 2).

    grammeval.py qe --stats stats/starter/paper
    """
    write_quality(open_dumps(options.dumps), options, judge)


def write_quality(
    folder: DumpFolder, options: StatsOptions, judge: JudgeOptions = JudgeOptions()
) -> list[Path]:
    """Everything that ``qe`` writes; returns the paths of tables and graphs."""
    for name, place in (("out", judge.out), ("tables", options.tables), ("graphs", options.graphs)):
        check_writable(place, f"--{name}")
    if judge.scores is not None and judge.back_end != "file":
        raise UserError("--scores is for --back-end file: give that as well, or leave --scores out")
    facts = None
    selections = both(folder, options)
    retrieval = pd.concat(
        [retrieval_gains(selection) for selection in selections], ignore_index=True
    )
    if judge.back_end == "file" and holds_gains(judge.scores):
        assert judge.scores is not None
        qe, scale = judge.scores, judge.qe_scale
        # before the first table is written
        if gains(retrieval, read_quality_gains(qe)).empty:
            raise UserError(
                f"{qe} has no gain of any language and verbalisation of these dumps; choose others"
                " with --langs"
            )
    else:
        scores_of, label = scorer_of(folder, selections, judge)
        facts = fact_gains(selections, scores_of)
        qe, scale = options.tables / "qe_gains.tsv", label()
        per_relation = relation_gains(facts)
        write_text(qe, format_table(per_relation.map(str)))
        note(f"wrote {qe}")
        tell_copies(selections)
    written = [write_qe_table(folder, options, qe, scale)]
    written += write_graphs(folder, options, ("qe",), qe, scale)
    scale = scale or SCALE_UNKNOWN
    return written + write_correlations(
        folder, selections, retrieval, facts, options.tables, read_quality_gains(qe), scale
    )


def holds_gains(path: Path | None) -> bool:
    """Whether the file is a TSV of gains by relation rather than of scores."""
    if path is None:
        raise UserError(
            "--back-end file needs --scores: a folder of *_qe.tsv, a TSV of scores, or a TSV of"
            " gains (qe_delta)"
        )
    return (
        path.is_file()
        and path.suffix != ".zip"
        and QUALITY in read_table(path.read_bytes(), str(path))
    )


def scorer_of(
    folder: DumpFolder, selections: list[Selection], options: JudgeOptions
) -> tuple[Callable[[RankTable], pd.DataFrame], Callable[[], str]]:
    """How to get a table's scores, and what to call them (for files known once they are read)."""
    if options.back_end == "file":
        assert options.scores is not None  # `holds_gains` has looked
        files = ScoreFiles(options.scores, options.qe_scale)
        return files.scores, lambda: files.label
    judge = make_judge(folder, selections, options)

    def scores_of(table: RankTable) -> pd.DataFrame:
        """Of the whole dump: the file must not depend on which rows a table takes."""
        whole = judge_table(folder.table(table.lang, table.relation), judge, options.out)
        return whole.loc[table.facts.index, list(table.verbalisations)]

    return scores_of, lambda: judge.label


def make_judge(folder: DumpFolder, selections: list[Selection], options: JudgeOptions) -> Judge:
    """The back end that was asked for."""
    if options.back_end == "comet":
        return CometJudge(
            options.model or COMET_MODEL,
            command=options.comet,
            batch_size=options.batch_size,
            pairs_per_call=options.pairs_per_call,
            gpus=options.gpus,
        )
    probed = {options.probed: ""} if options.probed else probed_models(folder, _tables(selections))
    unigrams = None if options.unigrams is None else read_unigrams(options.unigrams)
    judge = LanguageModelJudge(
        options.model or LM_MODEL,
        linking=options.linking,
        unigrams=unigrams,
        probed=probed,
        device=options.device,
        dtype=options.dtype,
    )
    if not probed:
        note(
            "the dumps do not say which model was probed (--probed does): a judge that is the same"
            " model would not be seen"
        )
    if judge.circular:
        note(f"{CIRCULAR}; choose another --model to learn something of fluency")
    return judge


def fact_gains(
    selections: Sequence[Selection], scores_of: Callable[[RankTable], pd.DataFrame]
) -> pd.DataFrame:
    """``lang``, ``verbalisation``, ``relation``, ``sub_uri``, ``obj_uri``, and each fact's gains on
    the template: ``qe_delta``, ``r1_delta`` (−1, 0, 1), ``length_delta`` (characters). Facts
    without both scores are left out and reported.
    """
    parts, lacking, whole = [], 0, 0
    for table in _tables(selections):
        scores, length = scores_of(table), sentences(table).map(len)
        hit = (table.rank <= 1).astype(int)
        for v in (v for v in table.verbalisations if v != "template"):
            both = scores[v].notna() & scores["template"].notna()
            lacking, whole = lacking + int((~both).sum()), whole + len(both)
            cells = {
                "lang": table.lang,
                "verbalisation": v,
                "relation": table.relation,
                "sub_uri": table.facts["sub_uri"],
                "obj_uri": table.facts["obj_uri"],
                QUALITY: scores[v] - scores["template"],
                RETRIEVAL: hit[v] - hit["template"],
                LENGTH: length[v] - length["template"],
            }
            parts.append(pd.DataFrame(cells)[both])
    facts = pd.concat(parts, ignore_index=True)
    if facts.empty:
        raise UserError("no sentence has a score: are the scores of these dumps?")
    if lacking:
        note(
            f"{lacking} of {whole} sentences have no score, or their template has none; "
            "they are left out of means and correlations"
        )
    return facts


def relation_gains(facts: pd.DataFrame) -> pd.DataFrame:
    """``KEY``, ``qe_delta`` and ``length_delta``: means over facts."""
    return facts.groupby(KEY, sort=False, as_index=False)[[QUALITY, LENGTH]].mean()


def tell_copies(selections: Sequence[Selection]) -> None:
    """One line where many sentences are their English source."""
    for table in _tables(selections):
        for v, share in share_of_copies(table).items():
            if share > HIGH_COPIES:
                note(
                    f"{table.name}: {share:.0%} of the {v} sentences are the English source itself;"
                    " their scores mean nothing"
                )


def _tables(selections: Sequence[Selection]) -> list[RankTable]:
    return [table for selection in selections for table in selection.tables.values()]


def write_correlations(
    folder: DumpFolder,
    selections: list[Selection],
    retrieval: pd.DataFrame,
    facts: pd.DataFrame | None,
    tables: Path,
    quality: pd.DataFrame,
    scale: str,
) -> list[Path]:
    """``qe_correlations.tsv`` and ``.tex``; printed as well."""
    relations = gains(retrieval, quality)
    # Without scores of facts: lengths are in the dumps all the same.
    lengths = fact_gains(selections, lambda table: table.rank * 0.0) if facts is None else facts
    relations = relations.merge(relation_gains(lengths)[[*KEY, LENGTH]], how="left", on=KEY)
    found = [("relations", over_relations(relations))]
    if facts is not None:
        found.append(("facts within relations", within_relations(facts)))
    print(f"Gain in R@1 with gain in QE ({scale}): value [95 % interval] p after Holm")
    for points, table in found:
        correlations = ("Pearson r", "Spearman rho", "partial r (length)")
        print(tabulate(readable(table), ["lang", "verbalisation", f"n {points}", *correlations]))
    long = pd.concat(
        [table.assign(points=points, scale=scale) for points, table in found], ignore_index=True
    )
    path = tables / "qe_correlations.tsv"
    write_text(
        path, format_table(long.astype(object).map(lambda cell: "" if cell != cell else str(cell)))
    )
    note(f"wrote {path}")
    return [path, _write_tex(folder, selections, found, scale, tables)]


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
        (
            f"Correlation of the gain in R@1 with the gain in QE ({scale}), over relations and of"
            " facts within relations."
        ),
        *(
            f"{', '.join(s.langs)}: {' '.join(s.relations)};"
            f" {rules_text(s.rules, s.tables.values())}; protocol: {s.protocol}."
            for s in selections
        ),
        (
            f"* p < {SIGNIFICANT} after Holm; intervals: over relations, or over objects and"
            " subjects within relations."
        ),
        "partial r: with the gain in sentence length (characters) held fixed.",
        f"signature: {folder.signature(_tables(selections))}",
    ]
    return write_table(tables, "qe_correlations", booktabs(columns, rows[1:]), lines)
