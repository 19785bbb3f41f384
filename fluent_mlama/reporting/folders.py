"""Several folders of dumps side by side: models or protocols that were asked for the same facts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fluent_mlama.console import UserError
from fluent_mlama.reporting.loading import DumpFolder, open_dumps


def open_folders(places: Sequence[Path]) -> dict[str, DumpFolder]:
    """The folders under short names, in the order in which they were named."""
    folders = [open_dumps(place) for place in places]
    return dict(zip(labels([folder.path for folder in folders]), folders, strict=True))


def labels(paths: Sequence[Path]) -> list[str]:
    """The last part of each path, or as many parts as tell it from the others; a folder named twice is a ``UserError``."""
    parts = [
        path.resolve().with_suffix("" if path.suffix == ".zip" else path.suffix).parts
        for path in paths
    ]
    for place, path in enumerate(paths):
        if parts[place] in parts[:place]:
            raise UserError(
                f"{path} is named twice, or a folder beside its zip: name each folder of dumps once"
            )
    return [
        "/".join(own[-_depth(own, [other for other in parts if other != own]) :]) for own in parts
    ]


def _depth(own: Sequence[str], others: Sequence[Sequence[str]]) -> int:
    return next(
        depth
        for depth in range(1, len(own) + 1)
        if all(other[-depth:] != own[-depth:] for other in others)
    )
