"""The benchmark's numbers as a section of RESULTS.md, with the goals beside them, and as plots."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from statistics import median
from typing import Any

from tabulate import tabulate

from benchmarks.scoring_parts.plots import FACTS, plot_growth, plot_speed, seconds
from fluent_mlama.files import write_text

NEIGHBOURS = 1e-3
JOINT = {"lm-eval, text", "minicons", "ours, joint", "ours, joint, equal prompts apart"}
OTHER_MATHS = {"LM-Pub-Quiz"}


def compare(ours: list[list[float]], theirs: list[list[float]]) -> tuple[float, int, int, int]:
    """Largest gap of a candidate, ranked lists that are equal, lists in all, neighbours closer than 1e-3 that swapped."""
    gap, equal, close = 0.0, 0, 0
    for a, b in zip(ours, theirs, strict=True):
        a, b = a[1:], b[1:]
        gap = max(gap, *(abs(x - y) for x, y in zip(a, b, strict=True)))
        orders = [
            sorted(range(len(values)), key=lambda i, values=values: -values[i]) for values in (a, b)
        ]
        if orders[0] == orders[1]:
            equal += 1
            continue
        place = {candidate: number for number, candidate in enumerate(orders[0])}
        swapped = [
            (i, j)
            for n, i in enumerate(orders[1])
            for j in orders[1][n + 1 :]
            if place[i] > place[j]
        ]
        if all(b[i] - b[j] < NEIGHBOURS for i, j in swapped):
            equal += 1
            close += len(swapped)
    return gap, equal, len(ours), close


def write_report(results: dict[str, Any], run: int, folder: Path) -> int:
    """Write the section of ``run`` and the plots; exit status 1 where a goal is missed."""
    goals = goals_of(results)
    text = "\n".join(section(results, goals, run))
    path = folder / "RESULTS.md"
    before = path.read_text(encoding="utf-8") if path.is_file() else "# Measured\n"
    write_text(path, _replace_section(before, f"scoring {run}", text))
    if run == 1:
        plot_speed(results, folder / "scoring_speed.png")
        plot_growth(results, folder / "scoring_growth.png")
    print(text)
    return int(not all(good for *_, good in goals))


def _replace_section(text: str, name: str, section_text: str) -> str:
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    block = f"{begin}\n{section_text}\n{end}"
    if begin in text and end in text:
        return text[: text.index(begin)] + block + text[text.index(end) + len(end) :]
    return text.rstrip("\n") + f"\n\n{block}\n"


def ratio(results: dict[str, Any], slow: str, fast: str, name: str) -> float:
    """How many times faster ``fast`` is than ``slow`` on a set."""
    part = results["small" if name in ("es4", "ru2") else "large"]
    return seconds(part[slow][name]) / seconds(part[fast][name])


def _first(results: dict[str, Any], name: str) -> float:
    """Seconds of the first timing on es4."""
    return float(results["small"][name]["es4"][0]["seconds"])


def useful(results: dict[str, Any], name: str) -> float:
    """GFLOP/s the engine needs on a large set: the model's linear layers, head included, for every node fed, and attention."""
    need = results["needed"][name]
    flop = need["nodes"] * results["kernels"]["flop_per_node"] + need["attention_flop"]
    return flop / seconds(results["large"]["ours"][name]) / 1e9


def goals_of(results: dict[str, Any]) -> list[tuple[str, str, str, bool]]:
    """(what, goal, measured, reached)."""
    rows: list[tuple[str, str, str, bool]] = []

    def at_least(what: str, value: float, goal: float, unit: str = "×") -> None:
        rows.append((what, f"≥ {goal:g}{unit}", f"{value:.1f}{unit}", value >= goal))

    def at_most(what: str, value: float, goal: float, unit: str, form: str = ".1f") -> None:
        rows.append((what, f"≤ {goal:g}{unit}", f"{value:{form}}{unit}", value <= goal))

    at_least("against the reference, es", ratio(results, "reference", "ours", "es4"), 25)
    at_least("against the reference, ru", ratio(results, "reference", "ours", "ru2"), 29)
    at_least(
        "the same, equal prompts apart, ru",
        ratio(results, "reference", "ours, equal prompts apart", "ru2"),
        15,
    )
    for name in ("es4", "ru2", "es20", "ru20"):
        at_least(
            f"against lm-eval, same ids, {name}",
            ratio(results, "lm-eval, same ids", "ours", name),
            5.7,
        )
    for name in ("es4", "ru2", "es20", "ru20"):
        at_least(
            f"against lm-eval, joint text, {name}",
            ratio(results, "lm-eval, text", "ours, joint", name),
            5.3,
        )
    at_least(
        "against minicons, joint text, es", ratio(results, "minicons", "ours, joint", "es4"), 8.5
    )
    at_least(
        "against minicons, joint text, ru", ratio(results, "minicons", "ours, joint", "ru2"), 15
    )
    # es alone: half of ru's requests are equal to another one, and lm-eval scores a context and its ending once
    # side by side: lm-eval at batch size 1 is timed in the first round alone
    slower = _first(results, "reference") / _first(results, "lm-eval, same ids, batch 1")
    at_most("reference against lm-eval at batch size 1, es", 100 * (slower - 1), 10, " % slower")
    for name in ("es20", "ru20"):
        at_least(
            f"useful FLOP/s of the faster kernel, {name}",
            100 * useful(results, name) / results["kernels"]["faster"],
            80,
            " %",
        )
    gaps = [
        compare(
            results["small"]["ours"][n][0]["scores"], results["small"]["reference"][n][0]["scores"]
        )
        for n in ("es4", "ru2")
    ]
    gaps += [
        compare(
            results["large"]["ours"][n][0]["scores"],
            results["large"]["lm-eval, same ids"][n][0]["scores"],
        )
        for n in ("es20", "ru20")
    ]
    at_most("largest gap", max(gap for gap, *_ in gaps), 5e-4, "", ".1e")
    rows.append(_lists("ranked lists equal to the reference's", gaps[:2]))
    rows.append(_lists("ranked lists equal to lm-eval's, same ids", gaps[2:]))
    joint = [
        compare(
            results["large"]["ours, joint"][n][0]["scores"],
            results["large"]["lm-eval, text"][n][0]["scores"],
        )
        for n in ("es20", "ru20")
    ]
    rows.append(_lists("ranked lists equal to lm-eval's, joint text", joint))
    memory = {
        name: max(one["memory"] for one in results["small"][name]["ru2"])
        for name in ("ours", "reference")
    }
    at_most(
        "peak memory over the reference's",
        100 * (memory["ours"] / memory["reference"] - 1),
        20,
        " %",
    )
    at_least("940 candidates at once", results["many"]["per_second"], 170, " candidates/s")
    at_most("their peak memory", results["many"]["memory"] / 1000, 1.25, " GB", ".2f")
    at_most(
        "host work, largest",
        max(one["ms_per_fact"] for one in results["host"].values()),
        2,
        " ms a fact",
        ".2f",
    )
    return rows


def _lists(what: str, gaps: Sequence[tuple[float, int, int, int]]) -> tuple[str, str, str, bool]:
    equal, lists, close = (sum(part[i] for part in gaps) for i in (1, 2, 3))
    return (
        what,
        "all",
        f"{equal} of {lists}"
        + (f" ({close} swaps of neighbours closer than {NEIGHBOURS})" if close else ""),
        equal == lists,
    )


def section(
    results: dict[str, Any], goals: list[tuple[str, str, str, bool]], run: int
) -> list[str]:
    """The run's tables as Markdown."""
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("torch", "transformers"))
    peers = "lm-eval 0.4.13, minicons 0.3.39, lm-pub-quiz 0.3.3 in an environment of their own"
    disturbed = [
        one["foreign"]
        for part in ("small", "large")
        for sets in results[part].values()
        for runs in sets.values()
        for one in runs
    ]
    rounds = " --one-round` (peers and reference timed once)" if results.get("one_round") else "`"
    lines = [
        f"## Scoring engine, run {run}",
        "",
        f"`python benchmarks/scoring.py --run {run}{rounds}, {results['minutes']:.0f} minutes.",
    ]
    lines += [
        f"Machine: {_processor()}, {os.cpu_count()} cores, Python {platform.python_version()}, {versions}; {peers}."
    ]
    lines += [
        f"Other programs took {max(disturbed):.0%} of the machine at most during a timing, {median(disturbed):.0%} in the median.",
        "",
    ]
    lines += [
        "es: P36 rows 1 to 4, ru: P19 rows 1 and 2, all verbalisations, 50 distractors, SmolLM2-135M in float32; times include tokenising."
    ]
    lines += [
        "Gap and ranks: against the reference, or, for joint text (†), against ours on joint text.",
        "",
    ]
    headers = [
        "",
        "es facts/s",
        "× ref.",
        "noise",
        "ru facts/s",
        "× ref.",
        "noise",
        "peak MB",
        "largest gap",
        "ranks equal",
    ]
    lines += [
        tabulate(_small_rows(results), headers=headers, tablefmt="github", disable_numparse=True),
        "",
    ]
    lines += [
        "20 rows each:",
        "",
        tabulate(
            _large_rows(results),
            headers=["", "es facts/s", "ru facts/s"],
            tablefmt="github",
            disable_numparse=True,
        ),
        "",
    ]
    lines += [
        "Goals:",
        "",
        tabulate(
            [(*row[:3], "yes" if row[3] else "**no**") for row in goals],
            headers=["", "goal", "measured", "reached"],
            tablefmt="github",
        ),
        "",
    ]
    kernels = results["kernels"]
    lines += [
        f"Kernels at the model's shapes, FLOP-weighted: F.linear {kernels['linear']:.0f}, packed {kernels['packed']:.0f},"
    ]
    engine = ", ".join(f"{name[:2]} {useful(results, name):.0f}" for name in ("es20", "ru20"))
    attention = max(
        need["attention_flop"] / (need["nodes"] * kernels["flop_per_node"])
        for need in results["needed"].values()
    )
    lines += [
        f"faster of the two {kernels['faster']:.0f} GFLOP/s, measured before every round of the large sets; the engine: {engine}"
    ]
    lines += [
        f"(what the linear layers of all nodes fed need, and {attention:.1%} at most for attention).",
        "",
    ]
    lines += [
        "Host work, ms a fact: "
        + ", ".join(f"{name} {one['ms_per_fact']:.2f}" for name, one in results["host"].items())
        + ".",
        "",
    ]
    lines += [
        "16 bit is opt-in; candidates whose rank differs from float32's: "
        + _sixteen_bit(results)
        + ".",
        "",
    ]
    lines += _growth_table(results)
    return lines


def _small_rows(results: dict[str, Any]) -> list[list[str]]:
    rows = []
    for variant, sets in results["small"].items():
        row = [variant + (" †" if variant in JOINT else "")]
        for name in ("es4", "ru2"):
            times = [one["seconds"] for one in sets[name]]
            row += [
                f"{FACTS[name] / median(times):.3f}",
                f"{ratio(results, 'reference', variant, name):.1f}",
            ]
            row += [
                f"{100 * (min(times) / median(times) - 1):+.0f}/{100 * (max(times) / median(times) - 1):+.0f} %"
            ]
        base = "ours, joint" if variant in JOINT else "reference"
        found = [
            compare(sets[name][0]["scores"], results["small"][base][name][0]["scores"])
            for name in ("es4", "ru2")
        ]
        own_maths = variant in OTHER_MATHS
        gap = "other maths" if own_maths else f"{max(part[0] for part in found):.1e}"
        equal = (
            "-"
            if own_maths
            else f"{sum(part[1] for part in found)}/{sum(part[2] for part in found)}"
        )
        rows.append([*row, f"{max(one['memory'] for one in sets['ru2']):.0f}", gap, equal])
    return rows


def _large_rows(results: dict[str, Any]) -> list[list[str]]:
    return [
        [variant, *(f"{20 / seconds(sets[name]):.3f}" for name in ("es20", "ru20"))]
        for variant, sets in results["large"].items()
    ]


def _sixteen_bit(results: dict[str, Any]) -> str:
    parts = []
    for variant in ("ours, bfloat16", "ours, float16"):
        changed = total = 0
        for name in ("es4", "ru2"):
            for a, b in zip(
                results["small"][variant][name][0]["scores"],
                results["small"]["ours"][name][0]["scores"],
                strict=True,
            ):
                orders = [
                    sorted(range(1, len(values)), key=lambda i, values=values: -values[i])
                    for values in (a, b)
                ]
                changed += sum(x != y for x, y in zip(*orders, strict=True))
                total += len(a) - 1
        parts.append(f"{variant.removeprefix('ours, ')} {changed} of {total}")
    return ", ".join(parts)


def _growth_table(results: dict[str, Any]) -> list[str]:
    rows = [
        [one[key] for key in ("pool", "prompt", "budget", "nodes")]
        + [f"{one['seconds']:.2f}", f"{one['memory']:.0f}"]
        for one in results["growth"] + results["budgets"]
    ]
    return [
        "How cost grows (one prompt):",
        "",
        tabulate(
            rows,
            headers=[
                "candidates",
                "prompt tokens",
                "token budget",
                "nodes fed",
                "seconds",
                "peak MB",
            ],
            tablefmt="github",
        ),
    ]


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")),
        platform.processor(),
    )
