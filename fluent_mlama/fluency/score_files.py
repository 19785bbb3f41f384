"""Score files ``{lang}_{relation}_qe.tsv``, and judge ``file``: scores that somebody else has made.

The paper's layout: the columns of the dump, then ``{v}_score`` and ``{v}_top_rank`` (the best rank
of a correct form) for each verbalisation, no index. Ours name the judge in the head, ``gt_score
[wmt20-comet-qe-da, z-scores, unbounded]``; both are read.
"""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from fluent_mlama.console import UserError, note
from fluent_mlama.files import Source, format_table, open_source, parse_json, read_table, write_text
from fluent_mlama.fluency.judges import Judge, SentencePair, digest, one_line, sentences, sources
from fluent_mlama.records.benchmark import name_columns
from fluent_mlama.records.results import file_sha256
from fluent_mlama.reporting.loading import RankTable

SCORE_HEAD = re.compile(r"(?P<v>.+)_score(?: \[(?P<label>.*)\])?")
UNSTATED = "model and scale not stated"


def file_name(table: RankTable) -> str:
    """The published name."""
    return f"{table.lang}_{table.relation}_qe.tsv"


def judge_table(table: RankTable, judge: Judge, out: Path) -> pd.DataFrame:
    """facts × verbalisations: the judge's scores (NaN: none), from ``out`` where an earlier run
    left just these.

    Writes the score file and, beside it, ``…_qe.made.json``: what made it.
    """
    name = file_name(table)
    path, stem = out / name, name.removesuffix(".tsv")
    record, work = out / f"{stem}.made.json", out / f"{stem}.work"
    texts, english = sentences(table), sources(table)
    asked = [
        (row, v, SentencePair(source, text))
        for v in table.verbalisations
        for row, source, text in zip(texts.index, english, texts[v], strict=True)
        if text
    ]
    # Verbalisations often share a sentence; the judge sees each pair once.
    pairs = list(dict.fromkeys(pair for _, _, pair in asked))
    made = {
        "judge": judge.label,
        **judge.settings(),
        "sentences": digest(pairs),
        "ranks": digest(table.rank.to_numpy().tolist()),
    }
    if not _is_kept(path, record, made):
        judged = judge.score(pairs, work, stem.removesuffix("_qe"))
        found = dict(zip(pairs, judged, strict=True))
        scores = pd.DataFrame(math.nan, index=texts.index, columns=list(table.verbalisations))
        for row, v, pair in asked:
            scores.at[row, v] = found[pair]
        write_text(path, format_table(_layout(table, scores, judge.label)))
        made |= {"sha256": file_sha256(path)}
        write_text(record, json.dumps(made, ensure_ascii=False, indent=1) + "\n")
    if work.is_dir():  # also of a run that was killed between its last two steps
        shutil.rmtree(work)
    return ScoreFiles(out).scores(table)


def _is_kept(path: Path, record: Path, made: Mapping[str, Any]) -> bool:
    try:
        before = parse_json(record.read_bytes(), record.name)
        return bool(before == {**made, "sha256": file_sha256(path)})
    except (OSError, ValueError):
        return False


def _layout(table: RankTable, scores: pd.DataFrame, label: str) -> pd.DataFrame:
    """The columns of the dump as text, then the scores and ranks."""
    columns: dict[str, pd.Series] = {str(name): table.facts[name].map(str) for name in table.facts}
    for v in table.verbalisations:
        if table.form_ranks:
            columns[f"{v}_true_ranks"] = pd.Series(
                [repr(ranks) for ranks in table.form_ranks[v]], index=table.facts.index
            )
        columns[f"{v}_top1_correct"] = table.top1[v].map(str)
        columns[f"{v}_prompt_prob"] = table.prompt_prob[v].map(lambda value: repr(float(value)))
        columns[f"{v}_top3_correct"] = table.top3[v].map(str)
    for v in table.verbalisations:
        columns[f"{v}_score [{label}]"] = scores[v].map(
            lambda value: "" if math.isnan(value) else repr(float(value))
        )
        columns[f"{v}_top_rank"] = table.rank[v].map(lambda value: f"{value:g}")
    return pd.DataFrame(columns)


class ScoreFiles:
    """Judge ``file``. place: a folder or zip of ``{lang}_{relation}_qe.tsv``, or one long TSV with
    the columns lang, relation, sub_uri, obj_uri, verbalisation and score. label: what made them,
    where their heads do not say.
    """

    LONG = ("lang", "relation", "sub_uri", "obj_uri", "verbalisation", "score")

    def __init__(self, place: Path, label: str = "") -> None:
        self.place, self._label = place, label
        self._source: Source | None = None
        self._long: pd.DataFrame | None = None
        if place.is_dir() or place.suffix == ".zip":
            self._source = open_source(place)
        elif place.is_file():
            self._long = read_table(place.read_bytes(), str(place))
            lacking = [column for column in self.LONG if column not in self._long]
            if lacking:
                raise UserError(
                    f"{place}: no column {', '.join(lacking)}; give a TSV of scores with these, or"
                    " one of gains (qe_delta)"
                )
        else:
            raise UserError(
                f"no scores at {place}: give a folder of {{lang}}_{{relation}}_qe.tsv, or one TSV"
                f" with {', '.join(self.LONG)}"
            )
        self._heads: set[str] = set()

    @property
    def label(self) -> str:
        """Model and scale as told, else as the heads have it, else that nobody said."""
        return self._label or "; ".join(sorted(self._heads)) or UNSTATED

    def scores(self, table: RankTable) -> pd.DataFrame:
        """facts × verbalisations: the scores of this dump's facts, by their ids; NaN where none."""
        found = self._of_file(table) if self._source is not None else self._of_long(table)
        keys = pd.MultiIndex.from_frame(table.facts[["sub_uri", "obj_uri"]])
        scores = found.reindex(keys)
        scores.index = table.facts.index
        return scores

    def _of_file(self, table: RankTable) -> pd.DataFrame:
        assert self._source is not None
        name = file_name(table)
        if name not in self._source.names():
            raise UserError(
                f"no {name} in {self.place}: score {table.lang} {table.relation}, or choose with"
                " --langs and --relations"
            )
        where = self._source.where(name)
        frame = read_table(self._source.read(name), where)
        heads = {
            match["v"]: match for column in frame if (match := SCORE_HEAD.fullmatch(str(column)))
        }
        lacking = [v for v in table.verbalisations if v not in heads]
        if lacking or not {"sub_uri", "obj_uri"} <= set(frame):
            columns = ", ".join(f"{v}_score" for v in lacking) or "sub_uri and obj_uri"
            raise UserError(f"{where}: no column {columns}; it has {', '.join(frame.columns)}")
        self._heads |= {match["label"] for match in heads.values() if match["label"]}
        values = pd.DataFrame(
            {v: _numbers(frame[heads[v][0]], where) for v in table.verbalisations}
        )
        values.index = _unique_keys(frame, where)
        self._remark_other_sentences(frame, table, where)
        return values

    def _of_long(self, table: RankTable) -> pd.DataFrame:
        assert self._long is not None
        rows = self._long[
            (self._long["lang"] == table.lang) & (self._long["relation"] == table.relation)
        ]
        columns = {}
        for v in table.verbalisations:
            of_v = rows[rows["verbalisation"] == v]
            if of_v.empty:
                what = f"{table.lang} {table.relation} {v}"
                raise UserError(
                    f"{self.place}: no score of {what}; choose with --langs, --relations,"
                    " --verbalisations"
                )
            values = _numbers(of_v["score"], str(self.place))
            values.index = _unique_keys(of_v, f"{self.place}: {v}")
            columns[v] = values
        return pd.DataFrame(columns)

    @staticmethod
    def _remark_other_sentences(frame: pd.DataFrame, table: RankTable, where: str) -> None:
        here = sentences(table).set_axis(
            pd.MultiIndex.from_frame(table.facts[["sub_uri", "obj_uri"]])
        )
        there = frame.set_axis(pd.MultiIndex.from_frame(frame[["sub_uri", "obj_uri"]]))
        other = 0
        for v in table.verbalisations:
            column = name_columns(v).sentence
            if column in there:
                scored = there[column].map(one_line).reindex(here.index)
                other += int((scored.notna() & (scored != here[v])).sum())
        if other:
            note(
                f"{where}: {other} sentences are not those of the dump; their scores are of other"
                " sentences"
            )


def _numbers(cells: pd.Series, where: str) -> pd.Series:
    """The cells as numbers, empty ones and ``nan`` as NaN; anything else names its row."""
    values = []
    for row, cell in cells.items():
        try:
            value = float(cell) if cell else math.nan
        except ValueError:
            value = math.inf
        if math.isinf(value):
            raise UserError(f"{where}, row {row}, column {cells.name}: '{cell}' is not a number")
        values.append(value)
    return pd.Series(values, index=cells.index, dtype=float)


def _unique_keys(frame: pd.DataFrame, where: str) -> pd.MultiIndex:
    doubles = frame.duplicated(["sub_uri", "obj_uri"])
    if doubles.any():
        fact = " – ".join(frame.loc[doubles, ["sub_uri", "obj_uri"]].iloc[0])
        raise UserError(
            f"{where}, row {frame.index[doubles][0]}: the fact {fact} stands twice; remove one"
        )
    return pd.MultiIndex.from_frame(frame[["sub_uri", "obj_uri"]])
