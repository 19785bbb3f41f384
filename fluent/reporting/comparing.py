"""From per-fact ranks of two ways to everything that is said about their difference.

A way is a verbalisation of one folder, or the same verbalisation of two folders (two models, two protocols).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from fluent.console import UserError
from fluent.reporting.closed_form import Kind, closed_form, kind_of
from fluent.reporting.clusters import AVERAGES, KEYS, Design, Floats, find_design, metric_columns, require_single_facts
from fluent.reporting.intervals import bootstrap
from fluent.reporting.paired import effect_size, holm, mcnemar, permutation_test, superiority

POOLED = "all"
"""What stands in the language column where the languages are pooled."""

ENDS = ("low", "high", "bootstrap_low", "bootstrap_high")
"""The interval to read (closed form), and the bootstrap's beside it."""

VALUE_COLUMNS = ("language", "way", "average", "metric", "facts", "rows", "relations", "value", *ENDS)
DIFFERENCE_COLUMNS = (
    *("comparison", "first", "second", "language", "average", "metric", "facts", "rows", "clusters", "relations"),
    *("first_value", "second_value", "difference", *ENDS, "effect_size", "superiority"),
    *("p_permutation", "p_permutation_holm", "gained", "lost", "odds_ratio", "p_mcnemar", "p_mcnemar_holm"),
)


@dataclass(frozen=True)
class Settings:
    """cutoffs: the k of R@k. level: of both intervals. resamples: bootstrap samples and sign flips. seed: of both."""

    cutoffs: tuple[int, ...] = (1, 3, 5)
    level: float = 0.95
    resamples: int = 10_000
    seed: int = 0


@dataclass(frozen=True)
class Pair:
    """Two columns of ranks to compare; differences are second minus first. family: pairs whose p-values are adjusted together."""

    first: str
    second: str
    family: str = ""

    @property
    def name(self) -> str:
        return f"{self.first} → {self.second}"


def compare_pairs(table: pd.DataFrame, pairs: Sequence[Pair], settings: Settings) -> tuple[pd.DataFrame, pd.DataFrame]:
    """(values, differences) of these pairs, per language and, where there are several, pooled.

    table: rows as ``clusters.fact_ranks`` makes them; NaN where a way has no rank for that row, and such rows are
    left out of the pairs with that way. Columns as in VALUE_COLUMNS and DIFFERENCE_COLUMNS. Holm's family is the
    languages of one comparison (of all pairs of one ``family``), average and metric; the pooled rows are outside it.
    """
    values: dict[tuple[str, str], pd.DataFrame] = {}
    differences = []
    for language, rows in parts(table):
        for together, facts in _same_rows(rows, pairs):
            new_values, new_differences = _compare_together(facts, together, settings)
            differences.append(new_differences.assign(language=language))
            for way, frame in new_values.items():
                # one way stands in several pairs: the widest set of rows speaks for it
                if (language, way) not in values or values[language, way]["rows"].iloc[0] < len(facts):
                    values[language, way] = frame.assign(language=language)
    if not differences:
        raise UserError(f"no fact has ranks for {' or '.join(pair.name for pair in pairs)}; choose with --verbalisations or --langs")
    joined = _in_order(differences, DIFFERENCE_COLUMNS)
    by_pair = joined["comparison"].map({pair.name: place for place, pair in enumerate(pairs)})
    return _in_order(values.values(), VALUE_COLUMNS), with_holm(
        joined.iloc[np.argsort(by_pair, kind="stable")].reset_index(drop=True), {pair.name: pair.family or pair.name for pair in pairs}
    )


def _same_rows(table: pd.DataFrame, pairs: Sequence[Pair]) -> Iterator[tuple[list[Pair], pd.DataFrame]]:
    """The pairs that can be compared on the same rows, with those rows: they share one set of resamples."""
    groups: dict[bytes, list[Pair]] = {}
    for pair in pairs:
        ranked = table[[pair.first, pair.second]].notna().all(axis=1).to_numpy()
        if ranked.any():
            groups.setdefault(ranked.tobytes(), []).append(pair)
    for mask, together in groups.items():
        yield together, table[np.frombuffer(mask, dtype=bool)]


def _compare_together(table: pd.DataFrame, pairs: Sequence[Pair], settings: Settings) -> tuple[dict[str, pd.DataFrame], pd.DataFrame]:
    design = find_design(table)
    ways = list(dict.fromkeys(way for pair in pairs for way in (pair.first, pair.second)))
    names = metric_columns(np.ones(1), settings.cutoffs)[0]
    width = len(names)
    of = {way: metric_columns(table[way].to_numpy(dtype=float), settings.cutoffs)[1] for way in ways}
    gaps = [of[pair.second] - of[pair.first] for pair in pairs]
    found = _both_intervals(design, np.hstack([*of.values(), *gaps]), names, len(ways), settings)
    p_values = permutation_test(design, np.hstack(gaps), flips=settings.resamples, seed=settings.seed)
    slices = [slice(start, start + width) for start in range(0, width * (len(ways) + len(pairs)), width)]
    place = dict(zip(ways, slices, strict=False))
    head: dict[str, int] = {
        "facts": len(table.drop_duplicates(["relation", "sub_uri", "obj_uri"])),
        "rows": len(table),
        "relations": table["relation"].nunique(),
    }
    values = {way: _value_rows(names, found, place[way]).assign(way=way, **head) for way in ways}
    differences = []
    for number, pair in enumerate(pairs):
        labels = {"comparison": pair.name, "first": pair.first, "second": pair.second}
        where = (place[pair.first], place[pair.second], slices[len(ways) + number])
        frame = _difference_rows(design, names, (of[pair.first], of[pair.second]), found, where)
        tested = [p_values[average][number * width : (number + 1) * width] for average in AVERAGES]
        differences.append(frame.assign(p_permutation=np.concatenate(tested), clusters=len(design.stratum), **labels, **head))
    return values, pd.concat(differences, ignore_index=True)


def parts(table: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Each language's rows in order of appearance, then all rows as ``POOLED`` where there are several languages."""
    languages = list(dict.fromkeys(table["language"]))
    for language in languages:
        yield language, table[table["language"] == language]
    if len(languages) > 1:
        yield POOLED, table


def align(tables: Mapping[str, pd.DataFrame]) -> tuple[pd.DataFrame, dict[str, int]]:
    """The rows that the first table shares with any other, side by side by fact (NaN where one lacks it), and how many each shares.

    Raises UserError where the first shares no fact with another, or a fact stands twice in one.
    """
    for table in tables.values():
        require_single_facts(table)
    (name, merged), *others = tables.items()
    shared = {}
    for other, table in others:
        shared[other] = len(merged[list(KEYS)].merge(table[list(KEYS)]))
        if not shared[other]:
            raise UserError(f"{name} and {other} share no fact (same language, relation, sub_uri and obj_uri); nothing can be paired")
        merged = merged.merge(table, on=list(KEYS), how="left", validate="one_to_one")
    ranks = [column for column in merged if column not in tables[name]]
    return merged[merged[ranks].notna().any(axis=1)].reset_index(drop=True), shared


def with_holm(differences: pd.DataFrame, family_of: Mapping[str, str]) -> pd.DataFrame:
    """The differences with ``…_holm`` columns: adjusted over the languages of each family of comparisons, average and metric.

    family_of: comparison -> family. Where a family has several comparisons, its pooled rows are adjusted among themselves.
    """
    adjusted = differences.copy()
    for column in ("p_permutation", "p_mcnemar"):
        adjusted[f"{column}_holm"] = np.nan
    keys = [adjusted["comparison"].map(family_of), adjusted["language"] == POOLED, adjusted["average"], adjusted["metric"]]
    for _, family in adjusted.groupby(keys, sort=False):
        if len(family) == 1 and family["language"].iloc[0] == POOLED:
            continue
        for column in ("p_permutation", "p_mcnemar"):
            adjusted.loc[family.index, f"{column}_holm"] = holm(family[column].to_numpy(dtype=float))
    return adjusted


def _both_intervals(design: Design, columns: Floats, names: Sequence[str], ways: int, settings: Settings) -> dict[str, pd.DataFrame]:
    """Per average a row a column: ``estimate`` and ENDS, values of ways kept within their metric's range.

    columns: the metrics of each of so many ways, then of each difference.
    """
    blocks = columns.shape[1] // len(names)
    kinds = [kind_of(name, difference=block >= ways) for block in range(blocks) for name in names]
    least = np.array([{Kind.SHARE: 0.0, Kind.BOUNDED: 0.0, Kind.RANK: 1.0}.get(kind, -np.inf) for kind in kinds])
    most = np.where(least == 0.0, 1.0, np.inf)
    read = closed_form(design, columns, kinds, level=settings.level)
    resampled = bootstrap(design, columns, level=settings.level, resamples=settings.resamples, seed=settings.seed)
    found = {}
    for average in AVERAGES:
        ends = (read[average].low, read[average].high, resampled[average].low, resampled[average].high)
        clipped = {name: np.clip(end, least, most) for name, end in zip(ENDS, ends, strict=True)}
        found[average] = pd.DataFrame({"estimate": read[average].estimate} | clipped)
    return found


def _value_rows(names: Sequence[str], found: dict[str, pd.DataFrame], place: slice) -> pd.DataFrame:
    frames = [
        found[average].iloc[place].rename(columns={"estimate": "value"}).assign(average=average, metric=names) for average in AVERAGES
    ]
    return pd.concat(frames, ignore_index=True)


def _difference_rows(
    design: Design, names: Sequence[str], values: tuple[Floats, Floats], found: dict[str, pd.DataFrame], places: tuple[slice, slice, slice]
) -> pd.DataFrame:
    first, second = values
    frames = []
    for average in AVERAGES:
        interval = found[average]
        frame = pd.DataFrame({"average": average, "metric": names})
        for column, place in zip(("first_value", "second_value", "difference"), places, strict=True):
            frame[column] = interval["estimate"].to_numpy()[place]
        frame[list(ENDS)] = interval[list(ENDS)].to_numpy()[places[2]]
        frame[["effect_size", "superiority", "gained", "lost", "odds_ratio", "p_mcnemar"]] = np.nan
        if average == "micro":  # these count rows, so there is no macro version of them
            frame["effect_size"], frame["superiority"] = effect_size(design, second - first), superiority(second - first)
            for row, name in enumerate(names):
                if name.startswith("R@"):
                    test = mcnemar(design, first[:, row], second[:, row])
                    frame.loc[row, ["gained", "lost", "odds_ratio", "p_mcnemar"]] = (test.gained, test.lost, test.odds_ratio, test.p_value)
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)


def _in_order(frames: Iterable[pd.DataFrame], columns: Sequence[str]) -> pd.DataFrame:
    return pd.concat(list(frames), ignore_index=True).reindex(columns=list(columns))
