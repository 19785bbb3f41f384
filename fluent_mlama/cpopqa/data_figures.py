"""Figures 4 and 5 of the paper: concepts per group, and their share by region."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fluent_mlama.cpopqa.concepts import Concept
from fluent_mlama.cpopqa.countries import countries
from fluent_mlama.reporting.plotting import COLOURS, look, save_stem


@look()
def write_data_figures(folder: Path, concepts: Sequence[Concept]) -> None:
    """Both figures; the second only where concepts have regions."""
    save_stem(folder / "figure4", per_group(concepts))
    if any(one.region for one in concepts):
        save_stem(folder / "figure5", by_region(concepts))


def per_group(concepts: Sequence[Concept]) -> Figure:
    """A bar a group, the largest first, coloured by region."""
    counts = Counter(one.group for one in concepts).most_common()
    region_of = {one.group: one.region for one in concepts}
    regions = sorted(set(region_of.values()))
    figure = Figure(figsize=(max(5.0, 0.13 * len(counts) + 1), 3.2))
    axes = figure.add_subplot()
    for region, colour in zip(regions, COLOURS * len(regions), strict=False):
        places = [place for place, (group, _) in enumerate(counts) if region_of[group] == region]
        axes.bar(places, [counts[place][1] for place in places], color=colour, label=region or None)
    axes.set_xticks(
        range(len(counts)), [_name(group) for group, _ in counts], rotation=90, fontsize=6
    )
    axes.set_xlim(-0.7, len(counts) - 0.3)
    axes.set_ylabel("concepts")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    if any(regions):
        axes.legend(ncols=2)
    return figure


def by_region(concepts: Sequence[Concept]) -> Figure:
    """A bar a region with its share of all concepts, in per cent."""
    counts = Counter(one.region or "(none)" for one in concepts).most_common()
    figure = Figure(figsize=(5, 2.6))
    axes = figure.add_subplot()
    shares = [100 * count / len(concepts) for _, count in counts]
    bars = axes.barh([region for region, _ in counts], shares, color=COLOURS[0])
    axes.bar_label(bars, labels=[f"{share:z.1f} %" for share in shares], padding=3)
    axes.invert_yaxis()
    axes.set_xlim(0, max(shares) * 1.18)
    axes.set_xlabel("share of the concepts (%)")
    return figure


def _name(group: str) -> str:
    known = countries().get(group)
    return known.name if known else group or "(one group)"
