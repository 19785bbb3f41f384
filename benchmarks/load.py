"""How time and memory of the statistics grow with the data: the published dumps once, three and ten times over.

    python benchmarks/load.py [--dumps ../shared/data/fluent_mlama/stats.zip] [--times 1,3,10] [--resamples 1000]

The copies stand under relations of their own (P19 becomes P1900, P1901, …), so that they count as other facts. Each command
runs in a process of its own; told are its CPU seconds (user and system: other work on the machine does not change them) and
its largest resident memory. Where the published dumps are not at hand, invented ones of the same number of files stand in.
Exit status 1 where time grows faster than the data by more than a quarter, or memory passes 4 GB.
"""

from __future__ import annotations

import os
import platform
import re
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.synthetic_dumps import write_folder
from fluent_mlama.console import UserError, note, run_main
from fluent_mlama.files import open_source, write_bytes, write_text
from fluent_mlama.records.results import find_dumps

ROOT = Path(__file__).resolve().parent.parent
DUMPS = ROOT.parent / "shared" / "data" / "fluent_mlama" / "stats.zip"
PAGE = ROOT / "benchmarks" / "RESULTS-load.md"
COMMANDS = ("general", "audit", "all", "compare")
MOST_BYTES = 4 * 10**9
SLACK = 1.25
INVENTED = (
    34_000,
    ("ru", "cs", "uk", "hr", "es", "zh", "vi", "id", "da"),
    ("P19", "P36", "P101", "P103", "P108", "P127", "P159", "P20", "P495", "P740"),
)


@dataclass(frozen=True)
class Measured:
    """One command on one folder: CPU seconds and the largest resident memory in bytes."""

    command: str
    times: int
    seconds: float
    memory: int


def replicate(dumps: Path, folder: Path, times: int) -> tuple[int, int]:
    """Write every dump ``times`` times, each copy under a relation of its own; returns (files, facts)."""
    folder.mkdir(parents=True, exist_ok=True)
    source, files, lines = open_source(dumps), 0, 0
    for lang, relation, name in find_dumps(source):
        data = source.read(name)
        for copy in range(times):
            write_bytes(
                folder / re.sub(rf"^{lang}_{relation}_", f"{lang}_{relation}{copy:02d}_", name),
                data,
            )
        files, lines = files + times, lines + times * (data.count(b"\n") - 1)
    return files, lines


def measure(command: str, folder: Path, times: int, resamples: int) -> Measured:
    """Run one command of stats.py on the folder, alone in its process."""
    words = [
        sys.executable,
        "stats.py",
        command,
        "--stats",
        str(folder),
        "--tables",
        str(folder / "tables"),
        "--graphs",
        str(folder / "graphs"),
    ]
    words += ["--resamples", str(resamples)] if command == "compare" else []
    log = folder / f"{command}.log"
    with log.open("wb") as said:
        process = os.posix_spawn(
            sys.executable,
            words,
            os.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, said.fileno(), number) for number in (1, 2)],
        )
        _, status, usage = os.wait4(process, 0)
    if status:
        raise UserError(
            f"stats.py {command} failed on {times} times the data: {log.read_text(encoding='utf-8')[-300:]}"
        )
    return Measured(
        command,
        times,
        usage.ru_utime + usage.ru_stime,
        usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024),
    )


def page(
    found: Sequence[Measured], sizes: dict[int, tuple[int, int]], resamples: int, what: str
) -> str:
    """The figures as Markdown."""
    most = max(sizes)
    lines = [
        "# Load: statistics over many times the published data", "",
        f"`python benchmarks/load.py`, {datetime.now(UTC):%Y-%m-%d}, Python {platform.python_version()}, one thread. Data: {what}.",
        f"`compare` with {resamples:,} resamples and as many sign flips. CPU seconds (user + system), largest resident memory.", "",
        "| times | dumps | lines | " + " | ".join(f"{command} s | MB" for command in COMMANDS) + " |",
        "|---" * (3 + 2 * len(COMMANDS)) + "|",
    ]  # fmt: skip
    for times, (files, facts) in sizes.items():
        cells = [
            f"{one.seconds:.1f} | {one.memory / 1e6:,.0f}"
            for command in COMMANDS
            for one in found
            if (one.command, one.times) == (command, times)
        ]
        lines.append(f"| {times} | {files} | {facts:,} | " + " | ".join(cells) + " |")
    lines += ["", f"Growth from {min(sizes)} to {most} times the data (linear would be {most / min(sizes):.1f}): "
              + ", ".join(f"{command} {growth(found, command):.1f}" for command in COMMANDS) + "."]  # fmt: skip
    return "\n".join(lines) + "\n"


def growth(found: Sequence[Measured], command: str) -> float:
    """CPU seconds on the most data over those on the least."""
    seconds = {one.times: one.seconds for one in found if one.command == command}
    return seconds[max(seconds)] / seconds[min(seconds)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write the page, and judge."""
    parser = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--dumps",
        type=Path,
        default=DUMPS,
        metavar="PATH",
        help="dumps to be copied (default: the published ones)",
    )
    parser.add_argument(
        "--times", default="1,3,10", metavar="N,N", help="how many times over (default: 1,3,10)"
    )
    parser.add_argument(
        "--resamples", type=int, default=1000, metavar="N", help="of compare (default: 1000)"
    )
    parser.add_argument(
        "--page", type=Path, default=PAGE, metavar="FILE", help="where the figures go"
    )
    asked = parser.parse_args(arguments)
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
    os.chdir(ROOT)
    found: list[Measured] = []
    sizes: dict[int, tuple[int, int]] = {}
    what = "the published narrow dumps, copied under relations of their own"
    with tempfile.TemporaryDirectory() as work:
        dumps = asked.dumps
        if not dumps.exists():
            dumps, what = (
                Path(work) / "invented",
                "invented dumps, copied under relations of their own",
            )
            write_folder(dumps, *INVENTED)
        for times in sorted({int(part) for part in asked.times.split(",")}):
            folder = Path(work) / str(times)
            sizes[times] = replicate(dumps, folder, times)
            for command in COMMANDS:
                found.append(measure(command, folder, times, asked.resamples))
                note(
                    f"{times} times, {command}: {found[-1].seconds:.1f} s, {found[-1].memory / 1e6:,.0f} MB"
                )
    write_text(asked.page, page(found, sizes, asked.resamples, what))
    linear = max(sizes) / min(sizes)
    return int(
        any(growth(found, command) > linear * SLACK for command in COMMANDS)
        or max(one.memory for one in found) > MOST_BYTES
    )


if __name__ == "__main__":
    run_main(main)
