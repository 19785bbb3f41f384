"""Dumps as the statistics need them: each file is read and parsed once, into small columns.

``DumpFolder`` knows what a folder or zip holds and hands out one ``RankTable`` for each (language, relation).
Everything in ``fluent_mlama/reporting`` starts from these two and never opens a dump itself.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fluent_mlama.console import UserError, note, progress
from fluent_mlama.files import open_source, parse_json
from fluent_mlama.ranking.settings import Settings
from fluent_mlama.records.results import (
    NOT_AS_WRITTEN,
    Dump,
    find_dumps,
    read_dump,
    read_scores,
    run_path,
    scores_path,
)


@dataclass(frozen=True)
class RankTable:
    """One dump as columns; every frame has the rows of the dump, indexed by the row number in the benchmark file.

    facts: the benchmark's columns, strings ("" = empty cell).
    rank: facts × verbalisations, the best correct rank (paper) or the mid-rank of the entity (corrected); 1 is best.
    all_forms_rank: the same by the best of all forms (corrected), else None.
    top1, top3: facts × verbalisations, 0/1 flags as the dump holds them.
    prompt_prob: facts × verbalisations, natural-log probability of the prompt; may be -inf.
    form_ranks: verbalisation -> one dict {correct form: rank} for each fact (paper), else empty.
    n_distractors: distractors of each fact (corrected), else None.
    tied: facts × verbalisations, whether another entity has the very same score (corrected), else None.
    numbered: False where the file had no row numbers, so that the index only counts its rows.
    named: how many facts were left out because the subject names the object.
    """

    lang: str
    relation: str
    protocol: str
    name: str
    verbalisations: tuple[str, ...]
    facts: pd.DataFrame
    rank: pd.DataFrame
    all_forms_rank: pd.DataFrame | None
    top1: pd.DataFrame
    top3: pd.DataFrame
    prompt_prob: pd.DataFrame
    form_ranks: dict[str, list[dict[str, int]]]
    n_distractors: pd.Series | None
    tied: pd.DataFrame | None
    numbered: bool
    named: int = 0

    def __len__(self) -> int:
        return len(self.facts)

    def fact_keys(self) -> pd.Series:
        """``sub_uri|relation|obj_uri`` of each row: what a fact is called across languages and folders."""
        return self.facts["sub_uri"] + "|" + self.relation + "|" + self.facts["obj_uri"]

    def prompts(self, verbalisation: str) -> pd.Series:
        """The prompt of each fact in this verbalisation."""
        return self.facts[
            "template_prompt" if verbalisation == "template" else f"{verbalisation}_prompt"
        ]

    def objects(self, verbalisation: str) -> pd.Series:
        """The object form that this verbalisation uses, for each fact ("" where none was found)."""
        return self.facts[
            "obj_label" if verbalisation == "template" else f"{verbalisation}_infl_object"
        ]


class DumpFolder:
    """All dumps of one folder or zip. A missing path, doubles of a dump and mixed protocols are ``UserError``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._source = open_source(path)
        self._names: dict[tuple[str, str], list[str]] = {}
        for lang, relation, name in find_dumps(self._source):
            self._names.setdefault((lang, relation), []).append(name)
        if not self._names:
            raise UserError(
                f"no rank dump in {path}: it wants files such as ru_P19_template_gt.tsv; run script.py or name another folder"
            )
        self._tables: dict[tuple[str, str], RankTable] = {}
        self._made: dict[Hashable, RankTable] = {}
        self._present = frozenset(self._source.names())
        self._records: dict[str, dict[str, Any] | None] = {}
        self._hashes: dict[str, str] = {}

    def languages(self) -> tuple[str, ...]:
        """Language codes in alphabetical order."""
        return tuple(sorted({lang for lang, _ in self._names}))

    def relations(self, lang: str | None = None) -> tuple[str, ...]:
        """Relations of this language, or of any, in the order of their numbers as strings (P101, P103, ... as published)."""
        return tuple(sorted({relation for code, relation in self._names if lang in (None, code)}))

    def has(self, lang: str, relation: str) -> bool:
        """Whether there is a dump of this language and relation."""
        return (lang, relation) in self._names

    def table(self, lang: str, relation: str) -> RankTable:
        """The dump of this language and relation, parsed at the first call."""
        key = (lang, relation)
        if key not in self._tables:
            if key not in self._names:
                raise UserError(
                    f"no dump of {lang} {relation} in {self.path}: {self._instead(lang, relation)}"
                )
            names = self._names[key]
            if len(names) > 1:
                raise UserError(
                    f"{self.path} holds {len(names)} dumps of {lang} {relation}: {', '.join(names)}; keep one, move the others"
                )
            table = rank_table(read_dump(self._source, names[0]))
            if self.is_changed(table.name):
                note(f"{self._source.where(table.name)} {NOT_AS_WRITTEN}")
            for other in self._tables.values():
                if other.protocol != table.protocol:
                    raise UserError(
                        f"{self.path} mixes protocols: {other.name} is {other.protocol}, {table.name} is {table.protocol}; "
                        "their ranks mean different things, so keep each protocol in a folder of its own"
                    )
            self._tables[key] = table
        return self._tables[key]

    def tables(
        self, langs: Iterable[str] | None = None, relations: Iterable[str] | None = None
    ) -> list[RankTable]:
        """The dumps of these languages × relations that are there (None = all), languages outermost.

        ``UserError``: a language or relation that no dump is of.
        """
        for option, names, there in (
            ("--langs", langs, self.languages()),
            ("--relations", relations, self.relations()),
        ):
            if absent := [name for name in names or () if name not in there]:
                raise UserError(
                    f"no dump of {absent[0]} in {self.path}: it has {', '.join(there)}; choose with {option}"
                )
        wanted = [
            (lang, relation)
            for lang in (self.languages() if langs is None else langs)
            for relation in (self.relations(lang) if relations is None else relations)
            if self.has(lang, relation)
        ]
        return [
            self.table(*key)
            for key in progress(
                wanted, total=len(wanted), unit="dumps", label=f"reading {self.path.name}"
            )
        ]

    def is_changed(self, name: str) -> bool:
        """Whether this dump's bytes are not those that its run record tells of; False where no record tells."""
        record = self._record(name)
        return record is not None and record.get("dump_sha256", "") not in {"", self._hash(name)}

    def is_masked(self, tables: Iterable[RankTable]) -> bool:
        """Whether a masked model made any of these dumps."""
        records = (self._record(table.name) for table in tables)
        return any(
            record is not None and record.get("tokenisation") == "masked" for record in records
        )

    def scores(self, table: RankTable, columns: list[str]) -> pd.DataFrame | None:
        """These columns of the scores beside a dump; None where there are none, or the dumps are in a zip."""
        path = self.path / scores_path(table.name).name
        if self.path.suffix == ".zip" or path.name not in self._present:
            return None
        self.check_scores([table])
        return read_scores(path, columns)

    def check_scores(self, tables: Iterable[RankTable]) -> None:
        """``UserError`` where the scores file beside one of these dumps is not the one that its run record describes."""
        for table in tables:
            name, record = scores_path(table.name).name, self._record(table.name)
            recorded = "" if record is None else record.get("scores_sha256", "")
            if name in self._present and recorded not in {"", self._hash(name)}:
                raise UserError(
                    f"{self._source.where(name)} {NOT_AS_WRITTEN}; rank again with script.py, which makes it again"
                )

    def remember(self, key: Hashable, make: Callable[[], RankTable]) -> RankTable:
        """The table that ``make`` made under this key, made once: most tables and graphs narrow the dumps alike."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def signature(self, tables: Iterable[RankTable]) -> str:
        """One line on what made these dumps: their run records' signatures, joined, or the digest of dumps without a record.

        Parts that all records share are printed once, parts that differ side by side; data digests are digested together.
        Dumps that were changed since they were written are named: their record no longer says what made them.
        """
        names = sorted(table.name for table in tables)
        records = [
            str(record["signature"]).split("|") for name in names if (record := self._record(name))
        ]
        bare = [self._hash(name) for name in names if self._record(name) is None]
        parts = [
            _joined(list(dict.fromkeys(values))) for values in zip_longest(*records, fillvalue="")
        ]
        if changed := [name for name in names if self.is_changed(name)]:
            parts.append(f"changed by hand: {', '.join(changed)}")
        if bare:
            parts.append(f"dumps without a run record:{_digest(bare)} ({len(bare)} files)")
        return "|".join(parts)

    def _record(self, name: str) -> dict[str, Any] | None:
        """The run record beside a dump, None where there is none; ``UserError`` where it is no record with a signature."""
        path = str(run_path(name))
        if name not in self._records:
            data = self._source.read(path) if path in self._present else None
            self._records[name] = (
                None if data is None else _parse_record(data, self._source.where(path))
            )
        return self._records[name]

    def _hash(self, name: str) -> str:
        if name not in self._hashes:
            self._hashes[name] = hashlib.sha256(self._source.read(name)).hexdigest()
        return self._hashes[name]

    def _instead(self, lang: str, relation: str) -> str:
        if lang not in self.languages():
            return f"it has the languages {', '.join(self.languages())}; choose with --langs"
        return f"{lang} has {', '.join(self.relations(lang))}; choose with --relations"


def open_dumps(place: Path | DumpFolder) -> DumpFolder:
    """The dumps of a folder or zip; an open ``DumpFolder`` is handed through, so that one reading serves many commands."""
    return place if isinstance(place, DumpFolder) else DumpFolder(place)


def open_wide(wide: Path | DumpFolder | None, stats: Path | DumpFolder) -> DumpFolder | None:
    """The wide dumps that were named, else those of the twin folder (``stats_wide/X`` for ``stats/X``); None where there are none."""
    if wide is not None:
        return open_dumps(wide)
    twin = Settings(out=stats.path if isinstance(stats, DumpFolder) else stats).wide
    return (
        DumpFolder(twin)
        if twin is not None and twin.is_dir() and find_dumps(open_source(twin))
        else None
    )


def rank_table(dump: Dump) -> RankTable:
    """The columns of one dump. An empty dump and a fact that stands twice are ``UserError``."""
    frame = dump.table
    if frame.empty:
        raise UserError(
            f"{dump.name} has no rows: nothing was scored; score {dump.lang} {dump.relation} again or move the file away"
        )
    doubles = frame.duplicated(["sub_uri", "obj_uri"])
    if doubles.any():
        row = frame[doubles].iloc[0]
        raise UserError(
            f"{dump.name}, row {frame.index[doubles][0]}: the fact {row['sub_uri']} {dump.relation} {row['obj_uri']} stands twice "
            f"({int(doubles.sum())} doubles in all); remove the doubles from the benchmark file and score it again"
        )
    verbalisations = tuple(dump.verbalisations)
    forms: dict[str, list[dict[str, int]]] = {}
    if dump.protocol == "paper":
        forms = {v: list(frame[f"{v}_true_ranks"]) for v in verbalisations}
        rank = pd.DataFrame(
            {v: _best(forms[v], frame.index, dump.name, v) for v in verbalisations},
            index=frame.index,
        )
    else:
        rank = _columns(frame, verbalisations, "rank", float)
    own = (
        _columns(frame, verbalisations, "all_forms_rank", float)
        if f"{verbalisations[0]}_all_forms_rank" in frame
        else None
    )
    tied = None
    if dump.protocol == "corrected":
        tied = _columns(frame, verbalisations, "rank_min", int) < _columns(
            frame, verbalisations, "rank_max", int
        )
    results = [
        c
        for v in verbalisations
        for c in frame.columns
        if c.startswith(f"{v}_") and c.removeprefix(f"{v}_") in _RESULTS
    ]
    return RankTable(
        lang=dump.lang,
        relation=dump.relation,
        protocol=dump.protocol,
        name=dump.name,
        verbalisations=verbalisations,
        facts=frame.drop(columns=[*results, *(c for c in ("n_distractors",) if c in frame)]),
        rank=rank,
        all_forms_rank=own,
        top1=_columns(frame, verbalisations, "top1_correct", int),
        top3=_columns(frame, verbalisations, "top3_correct", int),
        prompt_prob=_columns(frame, verbalisations, "prompt_prob", float),
        form_ranks=forms,
        n_distractors=frame["n_distractors"].astype(int) if "n_distractors" in frame else None,
        tied=tied,
        numbered=dump.numbered,
    )


def _parse_record(data: bytes, where: str) -> dict[str, Any]:
    try:
        record = dict(parse_json(data, where))
        record["signature"]
        return record
    except (ValueError, KeyError, TypeError):
        raise UserError(
            f"{where} is not a run record with a signature; score the dump beside it again or remove the record"
        ) from None


_HASHED = re.compile(r"(data|sample:.*(?:valid|listed)):[0-9a-f]{8}")
"""Parts of a signature that differ from file to file: their hashes are hashed together."""


def _joined(values: list[str]) -> str:
    heads = {match[1] if (match := _HASHED.fullmatch(value)) else "" for value in values}
    if len(values) > 1 and len(heads) == 1 and "" not in heads:
        return f"{heads.pop()}:{_digest(values)} ({len(values)} files)"
    return "/".join(values)


def _digest(texts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(sorted(texts)).encode()).hexdigest()[:8]


_RESULTS = frozenset(
    (
        "true_ranks",
        "top1_correct",
        "top3_correct",
        "prompt_prob",
        "rank",
        "rank_min",
        "rank_max",
        "all_forms_rank",
        "logprob",
    )
)


def _columns(
    frame: pd.DataFrame, verbalisations: tuple[str, ...], column: str, kind: type
) -> pd.DataFrame:
    return pd.DataFrame(
        {v: frame[f"{v}_{column}"].astype(kind) for v in verbalisations}, index=frame.index
    )


def _best(
    forms: list[dict[str, int]], index: pd.Index, name: str, verbalisation: str
) -> np.ndarray:
    empty = [row for row, ranks in zip(index, forms, strict=True) if not ranks]
    if empty:
        raise UserError(
            f"{name}, row {empty[0]}, column {verbalisation}_true_ranks: no correct form has a rank; score this file again"
        )
    return np.fromiter((min(ranks.values()) for ranks in forms), dtype=float, count=len(forms))
