"""Are results that were made again those that ship? Same printed digits, log-probabilities within 5e-4.

    make results-check
    python benchmarks/results.py build/results [--shipped .]

Another machine sums in another order, so log-probabilities differ in their last digits and graphs of them by some pixels;
ranks, tables and everything that the report prints must not. Prints what differs; status 2 if anything does.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fluent_mlama.console import UserError, run_main
from fluent_mlama.files import read_table
from fluent_mlama.records.results import SCORES_SUFFIX, read_run, read_scores

SHIPPED = ("stats/starter", "stats_wide/starter", "tables/starter", "graphs/starter", "docs/report")
GAP = 5e-4
"""How far two machines' log-probabilities may lie apart (natural logarithm)."""
PRINTED_GAP = 2e-3
"""The same where both are printed with three decimals."""
PIXELS = 0.01
"""Share of a graph's pixels that may differ: graphs of log-probabilities move a little."""
LOGPROB_COLUMNS = re.compile(r".*_(prompt_prob|logprob)|logprob|prompt_logprob|neutral_logprob")
SIGNATURE = re.compile(r"(smollm2@[^|\s]+\|[^|]+\|[^|]+\|)[^|]+\|")
FACTS = re.compile(r'(<script type="application/octet-stream" id="facts-data">)([^<]*)')
MOST_TOLD = 30


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare every shipped file with its twin."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "made",
        type=Path,
        metavar="FOLDER",
        help="holds stats/starter, tables/starter … made anew (make results RESULTS=FOLDER)",
    )
    parser.add_argument(
        "--shipped",
        type=Path,
        default=Path("."),
        metavar="FOLDER",
        help="holds those that ship (default: here)",
    )
    parsed = parser.parse_args(arguments)
    if parsed.made.resolve() == parsed.shipped.resolve():
        raise UserError(
            f"{parsed.made} is where the shipped results lie: nothing to compare them with; name the folder of the new ones"
        )
    for folder in (parsed.made, parsed.shipped):
        if not any((folder / part).is_dir() for part in SHIPPED):
            raise UserError(
                f"{folder} holds none of {', '.join(SHIPPED)}; make them with make results RESULTS={folder}"
            )
    names = {root: files(root) for root in (parsed.shipped, parsed.made)}
    told = [
        f"{name}: only in {root}"
        for root, other in ((parsed.shipped, parsed.made), (parsed.made, parsed.shipped))
        for name in sorted(names[root] - names[other])
    ]
    both = sorted(names[parsed.shipped] & names[parsed.made])
    gaps: list[float] = []
    for name in both:
        told += [
            f"{name}: {what}"
            for what in differences(parsed.shipped / name, parsed.made / name, gaps)
        ]
    print(
        "\n".join(
            [
                *told[:MOST_TOLD],
                *([f"… and {len(told) - MOST_TOLD} more"] if len(told) > MOST_TOLD else []),
            ]
        )
    )
    widest = max(gaps, default=0.0)
    print(
        f"{len(both)} files compared, {len(told)} differences; log-probabilities at most {widest:.1e} apart ({GAP:.0e} is allowed)"
    )
    return 2 if told else 0


def files(root: Path) -> set[str]:
    """Names below the root of everything that ships, without hidden files."""
    found = (
        path
        for part in SHIPPED
        for path in (root / part).rglob("*")
        if path.is_file() and not path.name.startswith(".")
    )
    return {path.relative_to(root).as_posix() for path in found}


def differences(shipped: Path, made: Path, gaps: list[float]) -> Iterator[str]:
    """What differs in one file beyond what another machine may change; gaps of log-probabilities are added to the list."""
    if shipped.name.endswith(SCORES_SUFFIX):
        yield from _cells(read_scores(shipped), read_scores(made), gaps)
    elif shipped.name.endswith(".run.json"):
        before, now = (without_paths(read_run(path).signature) for path in (shipped, made))
        if before != now:
            yield f"signature {now}, not {before}"
    elif shipped.suffix == ".tsv":
        yield from _cells(
            *(read_table(path.read_bytes(), str(path)) for path in (shipped, made)), gaps
        )
    elif shipped.suffix == ".png":
        yield from _pixels(shipped, made)
    elif shipped.suffix == ".html":
        yield from _pages(*(path.read_text(encoding="utf-8") for path in (shipped, made)))
    elif (
        shipped.suffix != ".pdf"
        and len({without_paths(path.read_text(encoding="utf-8")) for path in (shipped, made)}) > 1
    ):
        yield "another text"


def _cells(before: pd.DataFrame, now: pd.DataFrame, gaps: list[float]) -> Iterator[str]:
    if list(before.columns) != list(now.columns) or len(before) != len(now):
        yield f"{now.shape[0]} rows × {now.shape[1]} columns, not {before.shape[0]} × {before.shape[1]}, or other columns"
        return
    for column in before.columns:
        if column == "token_logprobs":
            continue  # their sum is compared
        if LOGPROB_COLUMNS.fullmatch(str(column)):
            with np.errstate(invalid="ignore"):
                apart = np.abs(before[column].astype(float) - now[column].astype(float)).fillna(0.0)
            gaps.append(float(apart.max()) if len(apart) else 0.0)
            wrong = apart > GAP
        else:
            wrong = pd.Series(
                [not _same(a, b) for a, b in zip(before[column], now[column], strict=True)],
                dtype=bool,
            )
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            yield f"column {column}, row {row}: {now[column].iloc[row]}, not {before[column].iloc[row]} ({int(wrong.sum())} such cells)"


def _same(before: Any, now: Any) -> bool:
    """Equal, or numbers that differ in the order of their sum alone."""
    if np.array_equal(before, now):
        return True
    try:
        return bool(np.isclose(float(before), float(now), rtol=1e-9, atol=1e-12))
    except (TypeError, ValueError):
        return False


def _pixels(shipped: Path, made: Path) -> Iterator[str]:
    before, now = (np.asarray(Image.open(path).convert("L"), dtype=int) for path in (shipped, made))
    if before.shape != now.shape:
        yield f"{now.shape[1]} × {now.shape[0]} pixels, not {before.shape[1]} × {before.shape[0]}"
    elif (share := float((np.abs(before - now) > 32).mean())) > PIXELS:
        yield f"{share:.1%} of the pixels differ"


def _pages(before: str, now: str) -> Iterator[str]:
    if FACTS.sub(r"\1", without_paths(before)) != FACTS.sub(r"\1", without_paths(now)):
        yield "other text, tables or graphs"
    if not _near(facts_of(before), facts_of(now)):
        yield "other facts or ranks"


def facts_of(page: str) -> Any:
    """The facts that a report carries, unpacked; None where there are none."""
    found = FACTS.search(page)
    return None if found is None else json.loads(gzip.decompress(base64.b64decode(found[2])))


def _near(before: Any, now: Any) -> bool:
    """The same nested lists and texts; numbers with a fraction (log-probabilities) nearly so."""
    if isinstance(before, dict) and isinstance(now, dict):
        return before.keys() == now.keys() and all(_near(before[key], now[key]) for key in before)
    if isinstance(before, list) and isinstance(now, list):
        return len(before) == len(now) and all(map(_near, before, now))
    if isinstance(before, float) or isinstance(now, float):
        return (
            isinstance(before, float | int)
            and isinstance(now, float | int)
            and abs(before - now) <= PRINTED_GAP
        )
    return bool(before == now)


def without_paths(text: str) -> str:
    """The text with the scoring path, which each machine chooses for itself, taken out of every signature."""
    return SIGNATURE.sub(r"\1", text)


if __name__ == "__main__":
    run_main(main)
