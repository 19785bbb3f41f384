"""Every fact of the dumps as the report's page needs it: columns, packed.

The payload is JSON, gzipped and in base64: a tenth of the size, and nothing in it (a label such as
``</script>``) can be taken for markup.
"""

from __future__ import annotations

import base64
import gzip
import json
import math
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from fluent_mlama.console import progress
from fluent_mlama.files import Source
from fluent_mlama.records.results import SCORES_SUFFIX, read_scores
from fluent_mlama.reporting.loading import RankTable

CANDIDATES_SHOWN = 6
"""Candidates listed per fact and verbalisation: the best by score, right or wrong."""

_COLUMNS = {
    "row": None,
    "sub_uri": "sub_uri",
    "sub": "sub_label",
    "obj_uri": "obj_uri",
    "obj": "obj_label",
}
_OPTIONAL = {"en_sub": "en_sub_label", "en_obj": "en_obj_label", "en": "en_template"}


def collect_facts(tables: Sequence[RankTable], source: Source) -> dict[str, Any]:
    """The payload as plain lists.

    tables: [language, relation, first fact, fact after the last]. columns: a list per column, one
    entry per fact.
    ways: per verbalisation ``sentence``, ``start`` and ``end`` of the object in it, ``rank``,
    ``prompt_prob``, ``forms`` ([form, rank, form, rank, …] in rank order) and ``candidates``
    ([form, natural-log score, 1 if right, …], best first); null where the fact lacks the
    verbalisation or the files lack the thing.
    """
    verbalisations = list(dict.fromkeys(v for table in tables for v in table.verbalisations))
    columns: dict[str, list[Any]] = {name: [] for name in (*_COLUMNS, *_OPTIONAL)}
    ways: dict[str, dict[str, list[Any]]] = {
        v: {
            name: []
            for name in ("sentence", "start", "end", "rank", "prompt_prob", "forms", "candidates")
        }
        for v in verbalisations
    }
    spans, done = [], 0
    for table in progress(tables, total=len(tables), unit="dumps", label="collecting facts"):
        spans.append([table.lang, table.relation, done, done + len(table)])
        done += len(table)
        columns["row"] += table.facts.index.tolist()
        for name, column in (*_COLUMNS.items(), *_OPTIONAL.items()):
            if column is not None:
                columns[name] += (
                    table.facts[column].tolist() if column in table.facts else [""] * len(table)
                )
        best = best_candidates(table, source)
        for v in verbalisations:
            part = (
                _way(table, v, best)
                if v in table.verbalisations
                else {name: [None] * len(table) for name in ways[v]}
            )
            for name, values in part.items():
                ways[v][name] += values
    return {"tables": spans, "columns": columns, "verbalisations": verbalisations, "ways": ways}


def join_facts(payloads: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """The payloads of several folders as one: every fact once, a way ``folder:verbalisation`` for
    each folder's verbalisation.

    runs: the folders' labels. A way whose sentences are mostly those of an earlier folder names it
    as ``like`` and has null where sentence and object are the same.
    """
    places: dict[tuple[str, str], dict[tuple[str, str], int]] = {}
    for payload in payloads.values():
        for lang, relation, *_ in payload["tables"]:
            places.setdefault((lang, relation), {})
    for payload in payloads.values():
        columns = payload["columns"]
        for lang, relation, first, last in payload["tables"]:
            known = places[lang, relation]
            for fact in range(first, last):
                known.setdefault((columns["sub_uri"][fact], columns["obj_uri"][fact]), len(known))
    starts, total = {}, 0
    for table, known in places.items():
        starts[table], total = total, total + len(known)
    joined: dict[str, Any] = {
        "tables": [
            [*table, starts[table], starts[table] + len(known)] for table, known in places.items()
        ],
        "columns": {name: [None] * total for name in (*_COLUMNS, *_OPTIONAL)},
        "runs": list(payloads),
        "verbalisations": [],
        "ways": {},
    }
    for label, payload in payloads.items():
        columns = payload["columns"]
        targets = [
            starts[lang, relation]
            + places[lang, relation][columns["sub_uri"][fact], columns["obj_uri"][fact]]
            for lang, relation, first, last in payload["tables"]
            for fact in range(first, last)
        ]
        for name, values in columns.items():
            column = joined["columns"][name]
            for target, value in zip(targets, values, strict=True):
                if column[target] is None:
                    column[target] = value
        for v in payload["verbalisations"]:
            way = {
                name: _scattered(values, targets, total)
                for name, values in payload["ways"][v].items()
            }
            joined["ways"][f"{label}:{v}"] = _without_known_sentences(way, v, joined)
            joined["verbalisations"].append(f"{label}:{v}")
    return joined


def _scattered(values: Sequence[Any], targets: Sequence[int], total: int) -> list[Any]:
    found = [None] * total
    for target, value in zip(targets, values, strict=True):
        found[target] = value
    return found


def _without_known_sentences(
    way: dict[str, Any], verbalisation: str, joined: dict[str, Any]
) -> dict[str, Any]:
    like = next(
        (name for name in joined["verbalisations"] if name.rpartition(":")[2] == verbalisation),
        None,
    )
    if like is None:
        return way
    text = ("sentence", "start", "end")
    for fact, (own, earlier) in enumerate(
        zip(
            *(
                zip(*(one[name] for name in text), strict=True)
                for one in (way, joined["ways"][like])
            ),
            strict=True,
        )
    ):
        if own == earlier:
            for name in text:
                way[name][fact] = None
    return way | {"like": like}


def _way(
    table: RankTable, verbalisation: str, best: dict[tuple[int, str], list[Any]]
) -> dict[str, list[Any]]:
    sentences = table.facts[
        "template" if verbalisation == "template" else f"{verbalisation}_translation"
    ].tolist()
    spans = [
        object_span(*parts)
        for parts in zip(
            sentences, table.prompts(verbalisation), table.objects(verbalisation), strict=True
        )
    ]
    forms = table.form_ranks.get(verbalisation, [{}] * len(table))
    return {
        "sentence": sentences,
        "start": [start for start, _ in spans],
        "end": [end for _, end in spans],
        "rank": [_number(rank) for rank in table.rank[verbalisation].to_numpy(dtype=float)],
        "prompt_prob": [
            _number(round(float(value), 3))
            for value in table.prompt_prob[verbalisation].to_numpy(dtype=float)
        ],
        "forms": [
            [part for form in sorted(ranks.items(), key=lambda item: item[1]) for part in form]
            or None
            for ranks in forms
        ],
        "candidates": [best.get((row, verbalisation)) for row in table.facts.index],
    }


def object_span(sentence: str, prompt: str, form: str) -> tuple[int, int]:
    """Where the object stands in the sentence: right behind the prompt, else its last occurrence;
    (0, 0) where it is not.

    Counted in UTF-16 units, as the page's language counts.
    """
    if not form:
        return 0, 0
    start = len(prompt) if sentence.startswith(prompt + form) else sentence.rfind(form)
    if start < 0:
        return 0, 0
    return _utf16(sentence[:start]), _utf16(sentence[: start + len(form)])


def _utf16(text: str) -> int:
    return len(text) + sum(char > "\uffff" for char in text)


def best_candidates(table: RankTable, source: Source) -> dict[tuple[int, str], list[Any]]:
    """(row number, verbalisation) -> the best candidates, from the scores file beside the dump; {}
    where there is none."""
    name = Path(table.name).with_suffix(SCORES_SUFFIX).name
    if name not in source.names():
        return {}
    wanted = ["row", "verbalisation", "candidate", "role", "entity", "logprob"]
    if source.path.is_dir():
        scores = read_scores(source.path / name, wanted)
    else:
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / name
            copy.write_bytes(source.read(name))
            scores = read_scores(copy, wanted)
    fact = ["row", "verbalisation"]
    scores = scores[scores["verbalisation"].isin(table.verbalisations)]
    scores = scores.sort_values([*fact, "logprob"], ascending=[True, True, False], kind="stable")
    # an entity may have several forms (protocol corrected); it is ranked by its best
    scores["one"] = scores["entity"].where(scores["entity"] != "", scores["candidate"])
    scores = scores.drop_duplicates([*fact, "one"]).groupby(fact, sort=False).head(CANDIDATES_SHOWN)
    found: dict[tuple[int, str], list[Any]] = {}
    columns = (scores[name].tolist() for name in (*fact, "candidate", "logprob", "role"))
    for number, verbalisation, candidate, logprob, role in zip(*columns, strict=True):
        shown = (candidate, _number(round(logprob, 3)), int(role != "distractor"))
        found.setdefault((number, verbalisation), []).extend(shown)
    return found


def pack(payload: dict[str, Any]) -> str:
    """The payload as base64 of gzipped JSON; equal payloads give equal text."""
    text = json.dumps(payload, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(
        gzip.compress(text.encode("utf-8", errors="replace"), compresslevel=6, mtime=0)
    ).decode("ascii")


def _number(value: float) -> float | int | str | None:
    """A number as JSON has it: whole numbers short, -inf as a string, NaN as null."""
    if pd.isna(value):
        return None
    if math.isinf(value):
        return "-inf" if value < 0 else "inf"
    return int(value) if float(value).is_integer() else float(value)
