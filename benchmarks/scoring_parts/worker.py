"""The two ends of a worker process: one variant, its model loaded once, timed on request. Imports nothing of the project.

A worker reads one JSON line a job, ``{"set": name}``, and answers one line with seconds, the share of the machine that
other processes took meanwhile, and the scores.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Scores = list[list[float]]


def busy_seconds() -> float:
    """CPU seconds that the machine was not idle since boot (all cores, stolen time included)."""
    fields = Path("/proc/stat").read_text(encoding="utf-8").splitlines()[0].split()[1:9]
    user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, fields)
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def measured(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """Result, wall seconds, and the share of all cores that other processes took."""
    own, busy, start = sum(os.times()[:2]), busy_seconds(), time.perf_counter()
    result = work()
    seconds = time.perf_counter() - start
    foreign = (busy_seconds() - busy) - (sum(os.times()[:2]) - own)
    return result, seconds, max(0.0, foreign / (seconds * (os.cpu_count() or 1)))


def peak_memory() -> float:
    """Largest resident size of this process so far, in MB."""
    line = next(
        line
        for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        if line.startswith("VmHWM")
    )
    return int(line.split()[1]) / 1024


def serve(
    variants: dict[str, Callable[[dict[str, Any]], Callable[[list[dict[str, Any]]], Any]]],
) -> None:
    """``python FILE VARIANT INPUTS.json``: load the variant, then time it on each set asked for."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print must not run into the answers
    inputs = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
    score = variants[sys.argv[1]](inputs)
    score(inputs["sets"]["warm"])
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        job = json.loads(line)
        result, seconds, foreign = measured(lambda name=job["set"]: score(inputs["sets"][name]))
        print(
            json.dumps(
                {"seconds": seconds, "foreign": foreign, "scores": result, "memory": peak_memory()}
            ),
            file=answers,
            flush=True,
        )


class Worker:
    """A worker process seen from outside; it keeps still between jobs."""

    def __init__(self, python: str, file: Path, variant: str, inputs: Path) -> None:
        environment = {
            **os.environ,
            "HF_HUB_OFFLINE": "1",
            "TOKENIZERS_PARALLELISM": "true",
            "PYTHONWARNINGS": "ignore",
        }
        command = [python, str(file), variant, str(inputs)]
        self.variant = variant
        self.log = (inputs.parent / f"{variant}.log").open("w", encoding="utf-8")
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            encoding="utf-8",
            env=environment,
        )
        self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"worker {self.variant} ended; see {self.log.name}")
        return json.loads(line)

    def time(self, name: str) -> dict[str, Any]:
        """Time the variant once on a set."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"set": name}) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
        self.log.close()
