"""What every judge of fluency offers, and which sentences it is asked about.

A judge gives one number a sentence, higher is better. Numbers of different judges are on different scales and are
never compared; ``Judge.label`` (model and scale) therefore stands in every column head and caption.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pandas as pd

from fluent_mlama.records.benchmark import ERROR, name_columns
from fluent_mlama.reporting.loading import DumpFolder, RankTable

SOURCE = "en_template"
"""The column of English sentences that quality estimation takes for the source (paper, section 5.2)."""


class Pair(NamedTuple):
    """An English source and a sentence in the language, each on one line."""

    source: str
    sentence: str


class Judge(Protocol):
    """A back end: ``lm``, ``comet``; ``file`` reads what another judge said (``score_files``)."""

    @property
    def label(self) -> str:
        """Model and scale, as they stand in heads and captions."""

    def settings(self) -> Mapping[str, Any]:
        """Everything that the scores depend on besides the sentences."""

    def score(self, pairs: Sequence[Pair], work: Path, name: str) -> list[float]:
        """One number a pair (NaN: no score), going on from what an earlier, broken run left in the folder ``work``."""


def one_line(text: str) -> str:
    """The text with every run of white space as one blank; "" for what the published files write in place of a sentence."""
    return "" if text == ERROR else " ".join(text.split())


def sentences(table: RankTable) -> pd.DataFrame:
    """facts × verbalisations: the whole sentences, "" where there is none."""
    return pd.DataFrame(
        {v: table.facts[name_columns(v).sentence].map(one_line) for v in table.verbalisations},
        index=table.facts.index,
    )


def sources(table: RankTable) -> pd.Series:
    """The English sentence of each fact, "" where the dump has none."""
    if SOURCE not in table.facts:
        return pd.Series("", index=table.facts.index)
    return table.facts[SOURCE].map(one_line)


def share_of_copies(table: RankTable) -> pd.Series:
    """verbalisation -> share of sentences that are the English source itself: a copy can be rated as a good translation."""
    texts, english = sentences(table), sources(table)
    return pd.Series(
        {v: float(((texts[v] == english) & (english != "")).mean()) for v in table.verbalisations}
    )


def probed_models(folder: DumpFolder, tables: Sequence[RankTable]) -> dict[str, str]:
    """model -> revision, as the run records beside the dumps tell; empty for dumps without records."""
    found = {}
    for table in tables:
        first, _, more = folder.signature([table]).partition("|")
        if more and "@" in first:
            model, _, revision = first.rpartition("@")
            found[model] = revision
    return found


def digest(value: object) -> str:
    """SHA-256 of a plain value (numbers, strings, lists, dictionaries of strings)."""
    return hashlib.sha256(
        json.dumps(value, ensure_ascii=False, sort_keys=True).encode("utf-8")
    ).hexdigest()
