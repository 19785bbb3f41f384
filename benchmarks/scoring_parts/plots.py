"""The benchmark's numbers as plots."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from fluent_mlama.files import replacing

FACTS = {"es4": 4, "ru2": 2, "es20": 20, "ru20": 20}


def seconds(found: Sequence[dict[str, Any]]) -> float:
    """Median of the timings."""
    return median(one["seconds"] for one in found)


def plot_speed(results: dict[str, Any], path: Path) -> None:
    """Facts a second by variant, both sets."""
    names = [name for name in results["small"] if name != "ours, budget 512"]
    figure = Figure(figsize=(10, 0.35 * len(names) + 1))
    axes = figure.subplots(1, 2, sharey=True)
    for axis, name, title in zip(
        axes, ("es4", "ru2"), ("es P36, rows 1 to 4", "ru P19, rows 1 and 2"), strict=True
    ):
        values = [FACTS[name] / seconds(results["small"][variant][name]) for variant in names]
        axis.barh(
            names,
            values,
            color=["#1f77b4" if variant.startswith("ours") else "#999999" for variant in names],
        )
        axis.set_title(title)
        axis.set_xlabel("facts a second")
    axes[0].invert_yaxis()
    figure.tight_layout()
    _save(figure, path)


def plot_growth(results: dict[str, Any], path: Path) -> None:
    """Seconds and peak memory against the number of candidates."""
    figure = Figure(figsize=(9, 3.6))
    left, right = figure.subplots(1, 2)
    for prompt in sorted({one["prompt"] for one in results["growth"]}):
        part = [one for one in results["growth"] if one["prompt"] == prompt]
        left.plot(
            [one["pool"] for one in part],
            [one["seconds"] for one in part],
            marker="o",
            label=f"prompt of {prompt} tokens",
        )
    left.set(xscale="log", yscale="log", xlabel="candidates", ylabel="seconds")
    left.legend()
    for budget in sorted({one["budget"] for one in results["growth"] + results["budgets"]}):
        part = [
            one
            for one in results["growth"] + results["budgets"]
            if one["budget"] == budget and one["prompt"] == results["growth"][1]["prompt"]
        ]
        right.plot(
            [one["pool"] for one in part],
            [one["memory"] for one in part],
            marker="o",
            label=f"token budget {budget}",
        )
    right.set(xscale="log", xlabel="candidates", ylabel="peak memory, MB", ylim=(0, None))
    right.legend()
    figure.tight_layout()
    _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    with replacing(path) as unfinished:
        FigureCanvasAgg(figure).print_figure(unfinished, format="png", dpi=110)
