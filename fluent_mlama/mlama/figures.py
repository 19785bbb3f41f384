"""The paper's figures from the tables: coverage (1), pieces (2), relative precision (3), Wikipedia
(6).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.ticker import MaxNLocator
from scipy import stats as scipy_stats

from fluent_mlama.console import UserError, plain_number
from fluent_mlama.mlama.measures import GOOD_RATIO
from fluent_mlama.reporting.plotting import (
    COLOURS,
    MUTED,
    legend_above,
    logarithmic_x,
    look,
    panels,
    save,
)

CREATOR = "fluent_mlama.mlama"


def draw_coverage(table: pd.DataFrame, folder: Path, remark: str) -> list[Path]:
    """Figure 1: how many languages have how many triples."""
    with look():
        figure, (axis,) = panels(["triples of a language"], width=5)
        axis.hist(
            table["triples"],
            bins=20,
            range=(0, max(1, int(table["triples"].max()))),
            color=COLOURS[0],
            edgecolor="white",
        )
        axis.set_xlabel("triples")
        axis.set_ylabel("languages")
        for scale in (axis.xaxis, axis.yaxis):
            scale.set_major_locator(MaxNLocator(integer=True))
        return save(figure, folder, "figure1_coverage", remark, CREATOR)


def draw_split(tables: Mapping[str, pd.DataFrame], folder: Path, remark: str) -> list[Path]:
    """Figure 2: p1 of the languages for objects of one piece and of more. tables: method ->
    ``split_by_pieces``.
    """
    bins = np.linspace(0, 1, 21).tolist()
    with look():
        figure, axes = panels(["objects of one piece", "objects of several pieces"])
        for axis, column in zip(axes, ("single p1", "multi p1"), strict=True):
            kept = {method: table[column].dropna() for method, table in tables.items()}
            axis.hist(
                list(kept.values()),
                bins=bins,
                label=[
                    f"{one}, mean {values.mean():z.2f}, languages: {len(values)}"
                    for one, values in kept.items()
                ],
                color=COLOURS[: len(kept)],
            )
            axis.set_xlabel("p1")
            axis.yaxis.set_major_locator(MaxNLocator(integer=True))
            axis.legend(fontsize=7)
        axes[0].set_ylabel("languages")
        return save(figure, folder, "figure2_pieces", remark, CREATOR)


def draw_relative(table: pd.DataFrame, folder: Path, remark: str) -> list[Path]:
    """Figure 3: relative precision per language, sorted; dashed: as good as English."""
    columns = [column for column in table.columns if column.startswith("rel-p1")]
    width = 0.8 / len(columns)
    with look():
        good = int((table["rel-p1"] >= GOOD_RATIO).sum())
        known = int(table["rel-p1"].notna().sum())
        figure, (axis,) = panels(
            [f"{good} languages at {GOOD_RATIO} or above, {known - good} below"],
            width=max(5.0, 0.28 * len(table)),
        )
        for number, column in enumerate(columns):
            places = [
                place + (number - (len(columns) - 1) / 2) * width for place in range(len(table))
            ]
            axis.bar(places, table[column], width, color=COLOURS[number], label=column)
        axis.axhline(1.0, color=MUTED, linestyle="--", linewidth=1)
        axis.set_xticks(
            range(len(table)), list(table["language"]), rotation=90 if len(table) > 20 else 0
        )
        axis.set_ylabel("p1 / English p1")
        if len(columns) > 1:
            legend_above(figure, axis)
        return save(figure, folder, "figure3_relative", remark, CREATOR)


def read_articles(path: Path) -> dict[str, int]:
    """language -> Wikipedia articles from a CSV with the columns lang and articles. ``UserError``
    names the row.
    """
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8")
    except FileNotFoundError:
        raise UserError(f"no file {path}; give a CSV with the columns lang,articles") from None
    except (UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise UserError(f"{path} is no CSV ({error}); give the columns lang,articles") from None
    if not {"lang", "articles"} <= set(table.columns):
        raise UserError(f"{path}: row 1 must name the columns lang and articles")
    articles = {}
    for number, (lang, count) in enumerate(
        zip(table["lang"], table["articles"], strict=True), start=2
    ):
        whole = plain_number(count)
        if not whole:
            raise UserError(f"{path}: row {number}: articles '{count}' is no whole number above 0")
        articles[lang] = whole
    return articles


def articles_table(p1: pd.DataFrame, articles: Mapping[str, int]) -> pd.DataFrame:
    """language, articles, p1 of the languages that both have."""
    kept = p1[p1["language"].isin(list(articles))]
    if len(kept) < 2:
        raise UserError("fewer than two of the queried languages are in the list of articles")
    return pd.DataFrame(
        {
            "language": kept["language"],
            "articles": [articles[lang] for lang in kept["language"]],
            "p1": kept["p1"],
        }
    )


def draw_articles(table: pd.DataFrame, folder: Path, remark: str) -> list[Path]:
    """Figure 6: p1 against the number of Wikipedia articles, with Spearman's rank correlation."""
    rho, probability = scipy_stats.spearmanr(table["articles"], table["p1"])
    with look():
        figure, (axis,) = panels(
            [f"Spearman {rho:z.2f} (p = {probability:.2g}, {len(table)} languages)"],
            width=5,
            height=3.4,
        )
        axis.scatter(table["articles"], table["p1"], color=COLOURS[0])
        for lang, count, value in table.itertuples(index=False):
            axis.annotate(
                lang, (count, value), textcoords="offset points", xytext=(3, 3), fontsize=7
            )
        logarithmic_x(axis)
        axis.set_xlabel("Wikipedia articles")
        axis.set_ylabel("p1")
        return save(figure, folder, "figure6_wikipedia", remark, CREATOR)
