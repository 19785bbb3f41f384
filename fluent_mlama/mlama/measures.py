"""Precision at 1: by relation, language (mean over relations), relative to English on the same
triples, by number of pieces.

Kassner et al. 2021, sections 3.3 and 4. A mean over no triples is not there rather than 0.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import pandas as pd

from fluent_mlama.console import UserError
from fluent_mlama.mlama.results import Results
from fluent_mlama.reader import MLama, is_valid_template

ENGLISH = "en"
GOOD_RATIO = 0.6
"""The paper counts languages at or above and below this relative precision (section 4.1)."""

Frames = Mapping[str, pd.DataFrame]


def mean(values: list[float]) -> float:
    """Plain mean; NaN of nothing."""
    return sum(values) / len(values) if values else float("nan")


def macro(frames: Frames) -> float:
    """p1 of a language: the mean over its relations of the share of right predictions."""
    return mean([float(frame["correct"].mean()) for frame in frames.values() if len(frame)])


def p1_by_relation(results: Results) -> pd.DataFrame:
    """A row a (language, relation). majority: the share that always naming the most frequent object
    would get right.

    Untyped answers are chosen from no candidates and have no ranks: chance and mean reciprocal rank
    are NaN.
    """
    ranked = not results.place.method.startswith("untyq")
    rows = []
    for lang, frames in results.frames.items():
        for relation, frame in frames.items():
            size = len(frame)
            candidates = (results.candidates or {}).get((lang, relation), 0)
            rows.append(
                {
                    "language": lang,
                    "relation": relation,
                    "triples": size,
                    "candidates": candidates,
                    "p1": float(frame["correct"].mean()) if size else float("nan"),
                    "majority": float(frame["gold"].value_counts().iloc[0] / size)
                    if size
                    else float("nan"),
                    "chance": 1 / candidates if candidates else float("nan"),
                    "mean reciprocal rank": float((1 / frame["rank"]).fillna(0).mean())
                    if size and ranked
                    else float("nan"),
                    "ties": int((frame["tied"] > 0).sum()),
                    "gold not competing": int(
                        frame["gold_status"].isin(["unknown", "too-long", "no-pieces"]).sum()
                    ),
                }
            )
    return pd.DataFrame(rows)


def p1_by_language(results: Results) -> pd.DataFrame:
    """A row a language, all figures but counts being means over relations; the last row is the mean
    over languages.
    """
    table = p1_by_relation(results)
    rows = []
    for lang, part in table.groupby("language", sort=False):
        means = {
            name: float(part[name].mean())
            for name in ("p1", "majority", "chance", "mean reciprocal rank")
        }
        counts = {name: int(part[name].sum()) for name in ("triples", "ties", "gold not competing")}
        rows.append(
            {
                "language": lang,
                "relations": len(part),
                "triples": counts.pop("triples"),
                **means,
                **counts,
            }
        )
    found = pd.DataFrame(rows)
    if len(found) > 1:
        means = {
            name: float(found[name].mean())
            for name in ("p1", "majority", "chance", "mean reciprocal rank")
        }
        sums = {
            name: int(found[name].sum())
            for name in ("relations", "triples", "ties", "gold not competing")
        }
        found.loc[len(found)] = {"language": "mean", **sums, **means}
    return found


def relative_p1(
    results: Results, reference: Results, beside: Results | None = None
) -> pd.DataFrame:
    """rel-p1: macro p1 of each language divided by English macro p1 of the reference, both on the
    triples that both have.

    Joined by (relation, lineid). beside: another model's English results, whose ratio on the same
    triples gets a column.
    """
    english = english_of(reference)
    other = None if beside is None else english_of(beside)
    rows = []
    for lang, frames in results.frames.items():
        if lang == ENGLISH and results.place == reference.place:
            continue
        here, there, next_to = {}, {}, {}
        partnerless = 0
        for relation, frame in frames.items():
            shared = (
                frame.index.intersection(english[relation].index)
                if relation in english
                else frame.index[:0]
            )
            partnerless += len(frame) - len(shared)
            if len(shared):
                here[relation], there[relation] = frame.loc[shared], english[relation].loc[shared]
                if other is not None and relation in other:
                    next_to[relation] = other[relation].reindex(shared).fillna({"correct": False})
        mine, theirs = macro(here), macro(there)
        row = {
            "language": lang,
            "relations": len(here),
            "shared triples": sum(map(len, here.values())),
            "without English partner": partnerless,
            "p1": mine,
            "English p1 on the same": theirs,
            "rel-p1": mine / theirs if theirs else float("nan"),
        }
        if beside is not None:
            row[f"rel-p1 {beside.place.model}[en]"] = (
                macro(next_to) / theirs if theirs else float("nan")
            )
        rows.append(row)
    if not rows:
        raise UserError("relative precision needs a language besides English")
    return pd.DataFrame(rows).sort_values(
        ["rel-p1", "language"], ascending=[False, True], ignore_index=True
    )


def english_of(results: Results) -> Frames:
    """The English tables; ``UserError`` where English was not asked."""
    if ENGLISH not in results.frames:
        raise UserError(
            f"{results.place.folder} has no English results, which this is measured against; query "
            f"with --langs {ENGLISH} too"
        )
    return results.frames[ENGLISH]


def split_by_pieces(results: Results) -> pd.DataFrame:
    """p1 of each language over facts whose gold object is one piece, and more; relations without
    any such fact do not count.
    """
    rows = []
    for lang, frames in results.frames.items():
        row: dict[str, object] = {"language": lang}
        for name, single in (("single", True), ("multi", False)):
            parts = {
                relation: frame[(frame["gold_pieces"] == 1) == single]
                for relation, frame in frames.items()
            }
            kept = {relation: part for relation, part in parts.items() if len(part)}
            row |= {
                f"{name} relations": len(kept),
                f"{name} triples": sum(map(len, kept.values())),
                f"{name} p1": macro(kept),
            }
        rows.append(row)
    return pd.DataFrame(rows)


def without(results: Results, dropped: set[tuple[str, int]]) -> Results:
    """The results without the triples of these (relation, lineid), in every language; relations
    left empty are gone.
    """
    frames = {}
    for lang, by_relation in results.frames.items():
        kept = {
            relation: frame[[(relation, lineid) not in dropped for lineid in frame.index]]
            for relation, frame in by_relation.items()
        }
        frames[lang] = {relation: frame for relation, frame in kept.items() if len(frame)}
    if not any(frames.values()):
        raise UserError(
            f"no fact of {results.place.folder} is left: the list names every one; give another "
            "--uhn, or leave it out"
        )
    return Results(results.place, frames, results.signatures, results.candidates)


def compare_templates(
    sets: Mapping[str, Results], templates: Mapping[str, Mapping[str, Mapping[str, str]]]
) -> pd.DataFrame:
    """p1 of each language under each template set (Table 2), and how many templates differ from the
    first set's.

    Only relations that all sets have in that language count. templates: set -> lang -> relation ->
    template.
    """
    first = next(iter(sets))
    rows = []
    for lang in [
        lang for lang in sets[first].languages if all(lang in one.frames for one in sets.values())
    ]:
        shared = [
            relation
            for relation in sets[first].frames[lang]
            if all(relation in one.frames[lang] for one in sets.values())
        ]
        for name, one in sets.items():
            changed = sum(
                templates[name][lang][relation] != templates[first][lang][relation]
                for relation in shared
            )
            p1 = macro({relation: one.frames[lang][relation] for relation in shared})
            rows.append(
                {
                    "language": lang,
                    "templates": name,
                    "relations": len(shared),
                    "changed": changed,
                    "p1": p1,
                }
            )
    if not rows:
        raise UserError(f"the template sets {', '.join(sets)} have no language in common")
    return pd.DataFrame(rows)


def most_frequent(labels: Iterable[str], number: int = 2) -> list[tuple[str, int]]:
    """The most frequent labels with their counts; equal counts by label."""
    return sorted(Counter(labels).items(), key=lambda entry: (-entry[1], entry[0]))[:number]


def listed(entries: list[tuple[str, int]]) -> str:
    """``Italia (3), Francia (1)``."""
    return ", ".join(f"{label} ({count})" for label, count in entries)


def entropy(labels: Iterable[str], options: int) -> float:
    """Entropy of the labels' frequencies divided by ln(options): 1 = all alike, 0 = one answer to
    everything. NaN for one option.
    """
    counts = Counter(labels)
    total = sum(counts.values())
    if options < 2 or not total:
        return float("nan")
    return (
        -math.fsum(count / total * math.log(count / total) for count in counts.values())
        / math.log(options)
        + 0.0
    )


def bias_table(results: Results, number: int = 2) -> pd.DataFrame:
    """A row a (relation, language): most frequent predictions, their concentration, and the same of
    the right answers.
    """
    rows = []
    for lang, frames in results.frames.items():
        for relation, frame in frames.items():
            options = (results.candidates or {}).get((lang, relation), 0)
            first, right = (
                most_frequent(frame["prediction"], number),
                most_frequent(frame["gold"], number),
            )
            rows.append(
                {
                    "relation": relation,
                    "language": lang,
                    "triples": len(frame),
                    "predictions": listed(first),
                    "right answers": listed(right),
                    "top share": first[0][1] / len(frame),
                    "top share, right": right[0][1] / len(frame),
                    "distinct": frame["prediction"].nunique(),
                    "distinct, right": frame["gold"].nunique(),
                    "entropy": entropy(frame["prediction"], options),
                    "entropy, right": entropy(frame["gold"], options),
                }
            )
    table = pd.DataFrame(rows)
    numbers = table["relation"].str.extract(r"(\d+)", expand=False).astype(float)
    return (
        table.assign(_number=numbers)
        .sort_values(["_number", "relation"], kind="stable", ignore_index=True)
        .drop(columns="_number")
    )


def bias_by_language(table: pd.DataFrame) -> pd.DataFrame:
    """Means over relations of how concentrated answers and right answers are."""
    names = [
        "top share",
        "top share, right",
        "distinct",
        "distinct, right",
        "entropy",
        "entropy, right",
    ]
    means = table.groupby("language", sort=False)[names].mean().reset_index()
    means.insert(1, "relations", table.groupby("language", sort=False).size().to_numpy())
    return means


def coverage_table(
    data: MLama, languages: Sequence[str] | None = None, relations: Sequence[str] | None = None
) -> pd.DataFrame:
    """A row a language, most triples first. of English: triples whose (relation, lineid) English
    has, as a share of English's.

    English is what the data has of it, whether it was chosen or not; without English the share is
    NaN.
    """
    english = {ENGLISH: data.relations(ENGLISH)} if ENGLISH in data.languages() else {}
    original = {
        (relation, lineid)
        for relation in english.get(ENGLISH, ())
        if not relations or relation in relations
        for lineid in data.triples(ENGLISH, relation)
    }
    rows = []
    for lang, names in data.select(languages, relations).items():
        keys = {(relation, lineid) for relation in names for lineid in data.triples(lang, relation)}
        templates = data.templates(lang)
        rows.append(
            {
                "language": lang,
                "relations": len(names),
                "empty relations": sum(not data.triples(lang, relation) for relation in names),
                "invalid templates": sum(
                    not is_valid_template(templates.get(relation, "")) for relation in names
                ),
                "triples": len(keys),
                "of English": len(keys & original) / len(original) if original else float("nan"),
                "not in English": len(keys - original),
            }
        )
    return pd.DataFrame(rows).sort_values(
        ["triples", "language"], ascending=[False, True], ignore_index=True
    )


def sample_table(
    data: MLama, languages: Sequence[str] | None, relations: Sequence[str] | None, number: int = 3
) -> pd.DataFrame:
    """``number`` filled templates a language (Figures 4 and 5)."""
    drawn = data.sample(languages, relations, number)
    return pd.DataFrame(
        [(lang, relation, " ".join(text.split())) for lang, relation, text in drawn],
        columns=["language", "relation", "sentence"],
    )
