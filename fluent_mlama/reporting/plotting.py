"""One look for every graph: colours that colour-blind readers can tell apart, panels for any number
of languages, files without dates.

Colours are Okabe and Ito's (2008), with a marker and a line style to each verbalisation, so that
grey print works too.
"""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")  # files only: no window, no display needed

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, StrMethodFormatter

from fluent_mlama.console import note
from fluent_mlama.files import replacing

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000", "#B8A800")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (8, 2)))
SHOWN = {"gt": "Google Translate", "chatgpt": "ChatGPT"}
SEQUENTIAL = "cividis"
DIVERGING = "PuOr"
MUTED = "#666666"
LEGEND_INCHES = 0.35
LABEL_INCHES = 0.12

LOOK = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "legend.frameon": False,
    "figure.dpi": 150,
    "savefig.dpi": 150,
    "pdf.fonttype": 42,
    "svg.hashsalt": "fluent",
    "path.simplify": False,
    "text.parse_math": False,  # names come from data: a "$" in one is a dollar sign
}


@contextmanager
def look() -> Iterator[None]:
    """Draw with the house's look, and leave matplotlib's settings as they were."""
    with plt.rc_context(LOOK):
        yield


def style_of(verbalisation: str, all_names: Sequence[str]) -> dict[str, Any]:
    """Colour, marker and line style of a verbalisation: by its place, the template always first."""
    place = list(all_names).index(verbalisation) % len(COLOURS)
    return {"color": COLOURS[place], "marker": MARKERS[place], "linestyle": DASHES[place]}


def shown(verbalisation: str) -> str:
    """The name that a legend prints."""
    return SHOWN.get(verbalisation, verbalisation)


def panels(
    names: Sequence[str],
    width: float = 3.3,
    height: float = 2.6,
    sharex: bool = True,
    sharey: bool = True,
) -> tuple[Figure, list[Axes]]:
    """A figure with one titled panel a name, at most four abreast, and room for a legend above."""
    across = {1: 1, 2: 2, 3: 3, 4: 2, 5: 3, 6: 3, 9: 3}.get(len(names), 4)
    down = math.ceil(len(names) / across)
    size = (max(5.0, width * across), height * down + LEGEND_INCHES)
    figure, grid = plt.subplots(
        down, across, figsize=size, sharex=sharex, sharey=sharey, squeeze=False
    )
    axes = list(grid.flat)
    for axis, name in zip(axes, names, strict=False):
        axis.set_title(name)
    for spare in axes[len(names) :]:
        spare.set_visible(False)
    for column in range(across):  # the lowest visible panel of a column shows the shared x axis
        lowest = axes[column + across * ((len(names) - 1 - column) // across)]
        lowest.tick_params(labelbottom=True)
    return figure, axes[: len(names)]


def legend_above(figure: Figure, axis: Axes, columns: int = 4) -> None:
    """One legend for the whole figure, centred above the panels."""
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="upper center",
        ncols=min(columns, max(1, len(labels))),
        bbox_to_anchor=(0.5, 1.0),
    )


def logarithmic_x(axes: Axes) -> None:
    """A logarithmic x axis labelled with plain numbers: matplotlib's own labels are formulas, which
    ``look`` prints as text."""
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def as_image(figure: Figure) -> str:
    """The figure as SVG in a ``data:`` address, for an ``img`` of a page; equal figures give equal
    text."""
    _lay_out(figure)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    plt.close(figure)
    return "data:image/svg+xml;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def _lay_out(figure: Figure) -> None:
    """Tight, with room for the legend above and the label at the left."""
    top = 1 - LEGEND_INCHES / figure.get_figheight() if figure.legends else 1
    left = LABEL_INCHES / figure.get_figwidth() if figure.get_supylabel() else 0
    figure.tight_layout(rect=(left, 0, 1, top))


def save(
    figure: Figure, folder: Path, name: str, remark: str, creator: str = "stats.py"
) -> list[Path]:
    """Write ``{name}.pdf`` (vector) and ``{name}.png``; the remark (caption, signature) goes into
    their metadata, no date does."""
    _lay_out(figure)
    written = []
    for kind, metadata in (
        (
            "pdf",
            {
                "CreationDate": None,
                "ModDate": None,
                "Creator": creator,
                "Producer": "matplotlib",
                "Subject": remark,
            },
        ),
        ("png", {"Software": creator, "Description": remark}),
    ):
        path = folder / f"{name}.{kind}"
        with replacing(path) as partial:
            figure.savefig(partial, format=kind, metadata=metadata)
        written.append(path)
    plt.close(figure)
    note(f"wrote {' and '.join(map(str, written))}")
    return written


def save_stem(stem: Path, figure: Figure) -> None:
    """PDF and PNG beside each other, cut to what is drawn; neither holds the time of making, so the
    same results give the same bytes."""
    for ending, metadata in (
        (".pdf", {"CreationDate": None, "ModDate": None}),
        (".png", {"Software": None}),
    ):
        with replacing(stem.with_name(stem.name + ending)) as partial:
            figure.savefig(
                partial, format=ending[1:], dpi=150, metadata=metadata, bbox_inches="tight"
            )
