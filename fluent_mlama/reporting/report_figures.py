"""The report's interactive graphs, as plotly figures without a theme: the page gives them its own (light or dark)."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from fluent_mlama.reporting.loading import RankTable
from fluent_mlama.reporting.plotting import COLOURS

SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "x", "star", "pentagon")
DEEPEST = 5
"""The largest k of the R@k curves."""


@dataclass(frozen=True)
class Graph:
    """One graph of the page.

    figures: plotly JSON by name; among several the page offers a choice. height: in pixels.
    small: other figures by the same names for a narrow screen, with their own height, where the first would be cramped.
    """

    caption: str
    figures: dict[str, dict[str, Any]]
    height: int
    small: dict[str, dict[str, Any]] = field(default_factory=dict)
    small_height: int = 0

    def data(self) -> dict[str, Any]:
        """What the page's script needs: figures and the heights on a wide and on a narrow screen."""
        return {
            "figures": self.figures,
            "small": self.small,
            "heights": [self.height, self.small_height or self.height],
        }


def cells(tables: Sequence[RankTable]) -> pd.DataFrame:
    """A row per (language, relation, verbalisation): facts, R@1 to R@5, mean rank."""
    rows = []
    for table in tables:
        for v in table.verbalisations:
            ranks = table.rank[v].to_numpy(dtype=float)
            recall = {f"R@{k}": float((ranks <= k).mean()) for k in range(1, DEEPEST + 1)}
            rows.append(
                {
                    "language": table.lang,
                    "relation": table.relation,
                    "verbalisation": v,
                    "facts": len(ranks),
                }
                | recall
                | {"MRR": float((1 / ranks).mean()), "mean rank": float(ranks.mean())}
            )
    return pd.DataFrame(rows)


def graphs(tables: Sequence[RankTable]) -> list[Graph]:
    """All graphs that these dumps allow."""
    values = cells(tables)
    names = list(dict.fromkeys(values["verbalisation"]))
    found = [recall_curves(values, names), rank_boxes(tables, names)]
    if len(names) > 1:
        found += [gain_map(values, names), dumbbells(values, names)]
    return found


def style(names: Sequence[str], name: str) -> tuple[str, str]:
    """Colour and symbol of one of the names."""
    place = names.index(name)
    return COLOURS[place % len(COLOURS)], SYMBOLS[place % len(SYMBOLS)]


def _panels(
    languages: Sequence[str], widest: int
) -> tuple[go.Figure, dict[str, tuple[int, int]], int]:
    """A grid of one panel a language, at most ``widest`` side by side: figure, place of each, rows."""
    columns = min(widest, len(languages))
    rows = -(-len(languages) // columns)
    figure = make_subplots(
        rows,
        columns,
        shared_yaxes="all",
        subplot_titles=list(languages),
        horizontal_spacing=0.03,
        vertical_spacing=0.35 / rows,
    )
    return (
        figure,
        {lang: (place // columns + 1, place % columns + 1) for place, lang in enumerate(languages)},
        rows,
    )


def recall_curves(values: pd.DataFrame, names: Sequence[str]) -> Graph:
    """R@1 … R@5 per language, mean over its relations."""
    (wide, rows), (small, small_rows) = (_recall_panels(values, names, widest) for widest in (4, 2))
    caption = "R@k for k = 1 to 5, mean over relations, one panel a language."
    return Graph(caption, {"": wide}, 120 + 210 * rows, {"": small}, 120 + 190 * small_rows)


def _recall_panels(
    values: pd.DataFrame, names: Sequence[str], widest: int
) -> tuple[dict[str, Any], int]:
    languages = list(dict.fromkeys(values["language"]))
    figure, place, rows = _panels(languages, widest)
    depths = list(range(1, DEEPEST + 1))
    columns = [f"R@{k}" for k in depths]
    means = values.groupby(["language", "verbalisation"])[columns].mean()
    seen: set[str] = set()
    for lang in languages:
        for v in names:
            if (lang, v) in means.index:
                colour, symbol = style(names, v)
                figure.add_trace(
                    go.Scatter(
                        x=depths,
                        y=means.loc[(lang, v)].round(4).tolist(),
                        name=html.escape(v),
                        legendgroup=v,
                        showlegend=v not in seen,
                        mode="lines+markers",
                        line={"color": colour},
                        marker={"symbol": symbol, "size": 8},
                        hovertemplate="R@%{x} %{y:.3f}",
                    ),
                    *place[lang],
                )
                seen.add(v)
    figure.update_xaxes(dtick=1)
    figure.update_yaxes(rangemode="tozero")
    return plain(figure), rows


def rank_boxes(tables: Sequence[RankTable], names: Sequence[str]) -> Graph:
    """Quartiles and mean of the ranks of all facts of a language, whiskers at the 5th and 95th percentile."""
    languages = list(dict.fromkeys(table.lang for table in tables))
    figure = go.Figure()
    for v in names:
        rows = []
        for lang in languages:
            parts = [
                table.rank[v].to_numpy(dtype=float)
                for table in tables
                if table.lang == lang and v in table.verbalisations
            ]
            if parts:
                ranks = np.concatenate(parts)
                rows.append(
                    (lang, *np.percentile(ranks, [5, 25, 50, 75, 95]).tolist(), float(ranks.mean()))
                )
        lang_names, low, q1, median, q3, high, mean = (
            list(column) for column in zip(*rows, strict=True)
        )
        figure.add_trace(
            go.Box(
                x=lang_names,
                lowerfence=low,
                q1=q1,
                median=median,
                q3=q3,
                upperfence=high,
                mean=[round(value, 3) for value in mean],
                name=html.escape(v),
                marker={"color": style(names, v)[0]},
            )
        )
    figure.update_layout(boxmode="group")
    ticks = [1, 2, 5, 10, 20, 50]
    figure.update_yaxes(
        title="rank (1 is best)", type="log", tickvals=ticks, ticktext=[str(tick) for tick in ticks]
    )
    return Graph(
        "Ranks of all facts: quartiles, mean (dashed), 5th and 95th percentile; logarithmic.",
        {"": plain(figure)},
        400,
    )


def gain_map(values: pd.DataFrame, names: Sequence[str]) -> Graph:
    """R@1 of a verbalisation minus that of the first, language × relation."""
    wide = values.pivot_table(
        index=["language", "relation"], columns="verbalisation", values="R@1", sort=False
    )
    figures = {}
    for v in names[1:]:
        gain = (wide[v] - wide[names[0]]).dropna().unstack("language")
        gain = gain.loc[
            sorted(gain.index, key=lambda relation: (len(relation), relation), reverse=True)
        ]
        limit = float(np.nanmax(np.abs(gain.to_numpy()))) or 1.0
        shown = (gain.round(3) + 0.0).to_numpy().tolist()
        figure = go.Figure(
            go.Heatmap(
                z=[[None if pd.isna(value) else value for value in row] for row in shown],
                text=[
                    ["" if pd.isna(value) else f"{value:+z.2f}" for value in row] for row in shown
                ],
                x=list(gain.columns),
                y=list(gain.index),
                zmin=-limit,
                zmax=limit,
                colorscale=[[0, "#B2182B"], [0.5, "#F7F7F7"], [1, "#2166AC"]],
                texttemplate="%{text}",
                hovertemplate="%{x} %{y}: %{z:+.3f}<extra></extra>",
                colorbar={"title": {"text": "Δ R@1"}, "thickness": 12},
            )
        )
        figure.update_xaxes(showgrid=False)
        figure.update_yaxes(showgrid=False)
        figures[v] = plain(figure)
    height = 120 + 26 * values["relation"].nunique()
    return Graph(
        f"Gain in R@1 over {names[0]}: blue where the verbalisation is better, red where it is worse.",
        figures,
        height,
    )


def dumbbells(values: pd.DataFrame, names: Sequence[str]) -> Graph:
    """R@1 of every verbalisation per relation, a line from the smallest to the largest; a figure a language."""
    figures = {}
    for lang, part in values.groupby("language", sort=False):
        wide = part.pivot(index="relation", columns="verbalisation", values="R@1")
        wide = wide.sort_values(names[0])
        figure = go.Figure()
        ends_x: list[Any] = [
            x
            for low, high in zip(wide.min(axis=1), wide.max(axis=1), strict=True)
            for x in (round(low, 4), round(high, 4), None)
        ]
        ends_y: list[Any] = [y for relation in wide.index for y in (relation, relation, None)]
        figure.add_trace(
            go.Scatter(
                x=ends_x,
                y=ends_y,
                mode="lines",
                line={"color": "#888888", "width": 2},
                showlegend=False,
                hoverinfo="skip",
            )
        )
        for v in names:
            if v in wide:
                colour, symbol = style(names, v)
                figure.add_trace(
                    go.Scatter(
                        x=wide[v].round(4).tolist(),
                        y=list(wide.index),
                        mode="markers",
                        name=html.escape(v),
                        marker={"color": colour, "symbol": symbol, "size": 10},
                        hovertemplate="%{y} %{x:.3f}",
                    )
                )
        figure.update_xaxes(title="R@1", range=[-0.03, 1.03])
        figure.update_yaxes(type="category")
        figures[str(lang)] = plain(figure)
    return Graph("R@1 by relation.", figures, 140 + 26 * values["relation"].nunique())


def plain(figure: go.Figure) -> dict[str, Any]:
    """The figure without plotly's default template, which would outweigh the data and override the page's look."""
    parts: dict[str, Any] = json.loads(figure.to_json())
    parts["layout"].pop("template", None)
    return parts
