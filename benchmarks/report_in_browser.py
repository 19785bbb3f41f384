"""How fast is the report with many facts? First paint and filtering, in headless Chromium.

python benchmarks/report_in_browser.py [--facts 35000] [--out benchmarks/RESULTS-report.md]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.headless import CHROMIUM, browser, visit
from benchmarks.synthetic_dumps import VERBALISATIONS, write_folder
from fluent_mlama import stats
from fluent_mlama.console import UserError, run_main
from fluent_mlama.files import write_text

QUERIES = ("s", "subject 12", "novy bor", "北京", "no such thing anywhere")
LANGUAGES = ("ru", "cs", "uk", "hr", "es")
RELATIONS = ("P19", "P20", "P36", "P101", "P103", "P159", "P364")
WIDTHS = (1280, 400)
VISITS = 5


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the dumps and the report, open it several times, write what was measured."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--facts", type=int, default=35_000)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("RESULTS-report.md"))
    parsed = parser.parse_args(arguments)
    if not CHROMIUM.exists():
        raise UserError(f"no {CHROMIUM}: apt-get install chromium")
    with tempfile.TemporaryDirectory() as name:
        folder, report = Path(name) / "stats", Path(name) / "report.html"
        write_folder(folder, parsed.facts, LANGUAGES, RELATIONS)
        stats.main(["report", "--stats", str(folder), "--out", str(report), "--resamples", "200"])
        lines = [
            f"# The report with {parsed.facts:,} facts × {len(VERBALISATIONS)} verbalisations",
            "",
            f"`python benchmarks/report_in_browser.py`: headless Chromium, {VISITS} visits a width, milliseconds, median (largest). "
            f"The file has {report.stat().st_size / 1e6:.1f} MB.",
            "",
            "| width | first contentful paint | facts listed | first search | searches after that | other filters | "
            "console messages | requests |",
            "|---|---|---|---|---|---|---|---|",
        ]
        with browser() as running:
            lines += [
                f"| {width} | {' | '.join(measure(running, report, width))} |" for width in WIDTHS
            ]
    write_text(parsed.out, "\n".join(lines) + "\n")
    print("\n".join(lines))
    return 0


def measure(running: object, report: Path, width: int) -> list[str]:
    """The cells of one row."""
    paint, listed, first, search, other, messages, fetched = [], [], [], [], [], 0, 0
    for _ in range(VISITS):
        with visit(running, report, width) as seen:  # type: ignore[arg-type]
            page = seen.page
            paint.append(
                page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
            )
            listed.append(page.evaluate("Number(document.body.dataset.readyAt)"))
            first.append(filtered(page, "search", QUERIES[0]))
            search += [filtered(page, "search", query) for query in QUERIES[1:]]
            page.evaluate("document.getElementById('search').value = ''")
            other += [
                filtered(page, "language", "cs"),
                filtered(page, "outcome", "0>1"),
                filtered(page, "order", "gain:1"),
            ]
            messages += len(seen.messages)
            fetched += len(seen.fetched)
    timings = [
        f"{statistics.median(values):.0f} ({max(values):.0f})"
        for values in (paint, listed, first, search, other)
    ]
    return [*timings, str(messages), str(fetched)]


def filtered(page: object, control: str, value: str) -> float:
    """Set a control as a person does and time from its event to the frame after the list has changed."""
    return page.evaluate(  # type: ignore[attr-defined]
        """([id, value]) => new Promise((done) => {
            const control = document.getElementById(id);
            control.value = value;
            const begin = performance.now();
            control.dispatchEvent(new Event(id === "search" ? "input" : "change"));
            requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - begin)));
        })""",
        [control, value],
    )


if __name__ == "__main__":
    run_main(main)
