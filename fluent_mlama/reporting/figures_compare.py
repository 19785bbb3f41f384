"""The forest plot of ``stats.py compare``: each difference with its interval, by language and pooled, a line of no difference between."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.ticker import MaxNLocator

from fluent_mlama.reporting.paired import better
from fluent_mlama.reporting.plotting import COLOURS, MARKERS, MUTED, legend_above, look, save

METRICS = ("R@1", "MRR", "mean rank")
ROW_INCHES = 0.3


def draw_differences(
    differences: pd.DataFrame, weights: str, folder: Path, name: str, remark: str
) -> list[Path]:
    """Write ``{name}.pdf`` and ``.png``: one panel a metric, one line a language (``all`` last), one mark a comparison.

    differences: the rows of ``compare_differences.tsv``; weights: which of them. A bar is the interval of the
    difference second − first; where it crosses the grey line, the sign of the difference is not settled.
    """
    shown = differences[differences["weights"] == weights]
    metrics = [metric for metric in METRICS if metric in set(shown["metric"])]
    comparisons = list(dict.fromkeys(shown["comparison"]))
    languages = list(dict.fromkeys(shown["language"]))
    with look():
        height = 1.0 + ROW_INCHES * len(languages) * max(1.0, 0.6 * len(comparisons))
        figure, axes = plt.subplots(
            1, len(metrics), figsize=(3.1 * len(metrics), height), sharey=True, squeeze=False
        )
        offsets = (
            (np.arange(len(comparisons)) - (len(comparisons) - 1) / 2) * 0.6 / len(comparisons)
        )
        for axis, metric in zip(axes[0], metrics, strict=True):
            for place, comparison in enumerate(comparisons):
                rows = shown[(shown["metric"] == metric) & (shown["comparison"] == comparison)]
                at = (
                    np.array([languages.index(language) for language in rows["language"]])
                    + offsets[place]
                )
                values = rows[["difference", "low", "high"]].to_numpy(dtype=np.float64)
                reach = np.abs(values[:, 1:] - values[:, :1]).T
                style = {
                    "color": COLOURS[place % len(COLOURS)],
                    "fmt": MARKERS[place % len(MARKERS)],
                }
                axis.errorbar(
                    values[:, 0],
                    at,
                    xerr=reach,
                    markersize=4,
                    elinewidth=1.2,
                    label=comparison,
                    **style,
                )
            axis.axvline(0, color=MUTED, linewidth=1)
            axis.xaxis.set_major_locator(MaxNLocator(5))
            axis.set_title(metric)
            axis.set_xlabel(f"difference ({'right' if better(metric) > 0 else 'left'}: better)")
        axes[0][0].set_yticks(range(len(languages)), languages)
        axes[0][0].invert_yaxis()
        legend_above(figure, axes[0][0], columns=2)
        return save(figure, folder, name, remark)
