"""The report's graphs where several folders of dumps (models, protocols) stand side by side."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from itertools import zip_longest

import pandas as pd
import plotly.graph_objects as go

from fluent_mlama.reporting.comparison_tables import digits
from fluent_mlama.reporting.report_figures import Graph, graphs, plain, style
from fluent_mlama.reporting.report_sides import Side


def all_graphs(sides: Sequence[Side]) -> list[Graph]:
    """Every graph of one folder; of several the same graphs with the folder among the choices."""
    drawn = {side.label: graphs(side.counted) for side in sides}
    if len(sides) == 1:
        return drawn[sides[0].label]
    found = []
    for row in zip_longest(*drawn.values()):
        there = {label: graph for label, graph in zip(drawn, row, strict=True) if graph is not None}
        kinds = {
            kind: {
                f"{label}, {name}" if name else label: figure
                for label, graph in there.items()
                for name, figure in getattr(graph, kind).items()
            }
            for kind in ("figures", "small")
        }
        first = next(iter(there.values()))
        height, small_height = (
            max(getattr(graph, kind) for graph in there.values())
            for kind in ("height", "small_height")
        )
        found.append(Graph(first.caption, kinds["figures"], height, kinds["small"], small_height))
    return found


def run_marks(values: Mapping[str, pd.DataFrame]) -> Graph:
    """R@1 and mean rank by language with intervals, a mark a folder, a figure per metric and verbalisation.

    values: folder -> its values as ``comparing.compare_pairs`` gives them.
    """
    labels = list(values)
    figures = {}
    every = pd.concat([frame.assign(folder=label) for label, frame in values.items()])
    rows = every[every["weights"] == "relation"]
    for metric in ("R@1", "mean rank"):
        for way in dict.fromkeys(rows["way"]):
            part = rows[(rows["metric"] == metric) & (rows["way"] == way)]
            figure = go.Figure()
            for label in labels:
                own = part[part["folder"] == label]
                if own.empty:
                    continue
                colour, symbol = style(labels, label)
                reach = [
                    (own["high"] - own["value"]).fillna(0.0),
                    (own["value"] - own["low"]).fillna(0.0),
                ]
                figure.add_trace(
                    go.Scatter(
                        x=own["language"].tolist(),
                        y=own["value"].round(4).tolist(),
                        error_y={
                            "array": reach[0].round(4).tolist(),
                            "arrayminus": reach[1].round(4).tolist(),
                            "thickness": 1.2,
                            "width": 3,
                        },
                        mode="markers",
                        name=html.escape(label),
                        marker={"color": colour, "symbol": symbol, "size": 9},
                        hovertemplate=f"%{{x}} %{{y:.{digits(metric)}f}}",
                    )
                )
            figure.update_layout(scattermode="group")
            figure.update_xaxes(type="category")
            figure.update_yaxes(title=metric, rangemode="tozero")
            figures[f"{metric}, {way}"] = plain(figure)
    return Graph(
        "Runs side by side: mean over relations with its interval, by language.", figures, 400
    )
