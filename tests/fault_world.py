"""What the tests of faults share: ``script.py`` with a scorer that needs no model, folders shut even to root, flipped bits."""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from fluent_mlama.records.benchmark import write_benchmark
from tests.stand_in import city_benchmark

ROOT = Path(__file__).resolve().parent.parent
RELATIONS = ("P19", "P36", "P101")

SCRIPT = """
import os, signal, sys, time
from fluent_mlama import script
from fluent_mlama.console import run_main
from tests.stand_in import StandInScorer

class Slow(StandInScorer):
    def score_pack(self, *arguments):
        time.sleep(float(os.environ.get("PAUSE", "0")))
        return super().score_pack(*arguments)

script.load = lambda asked: Slow(asked.settings.model)
sys.argv[0] = "script.py"
signal.signal(signal.SIGINT, signal.default_int_handler)  # a test suite in the background ignores it, and its children with it
print("begins", flush=True)
run_main(script.main)
"""


def write_data(folder: Path, rows: int = 30) -> Path:
    """Benchmark files of three relations."""
    for relation in RELATIONS:
        write_benchmark(city_benchmark(rows, relation=relation), folder)
    return folder


def start_script(
    data: Path, out: Path, pause: float = 0.0, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    """``script.py`` over all relations in a process of its own, once its imports are done."""
    command = [
        sys.executable,
        "-c",
        SCRIPT,
        "-l",
        "cs",
        "--model",
        "stand-in",
        "--data",
        str(data),
        "--out",
        str(out),
    ]
    surroundings = os.environ | {"PAUSE": str(pause)} | dict(environment or {})
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=surroundings,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    assert process.stdout is not None and process.stdout.readline() == "begins\n"
    return process


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Exit status and standard error."""
    _, err = process.communicate(timeout=300)
    return process.returncode, err


def outputs(folder: Path) -> dict[str, bytes]:
    """Every file under a final name, with its bytes (hidden ones are half-written files and claims, which nothing reads)."""
    files = (
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".packs" not in str(path) and path.name[0] != "."
    )
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def leave_packs(folder: Path) -> None:
    """What a run leaves that was killed after it had written its outputs and before it had removed their packs."""
    folder.mkdir()
    (folder / "plan.json").write_text('{"plan": "0"}', encoding="utf-8")
    (folder / "pack-000000.parquet").write_bytes(b"PAR1")


def leftovers(folder: Path) -> list[str]:
    """Half-written files and packs."""
    return sorted(
        path.name
        for path in folder.rglob("*")
        if path.name.endswith(".partial") or ".packs" in path.name
    )


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Capabilities(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


@contextlib.contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Nobody may write into the folder and those below it, not even root, who gives up the right to override for this while."""
    folders = [folder, *(path for path in folder.rglob("*") if path.is_dir())]
    modes = {path: path.stat().st_mode for path in folders}
    for path in folders:
        path.chmod(0o555)
    try:
        with _without_override():
            yield
    finally:
        for path, mode in modes.items():
            path.chmod(mode)


@contextlib.contextmanager
def _without_override() -> Iterator[None]:
    """Linux: drop CAP_DAC_OVERRIDE of this thread (what makes root ignore permissions), and take it back afterwards."""
    if os.name != "posix" or os.geteuid() != 0 or not sys.platform.startswith("linux"):
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header, parts = _Header(0x20080522, 0), (_Capabilities * 2)()
    if libc.capget(ctypes.byref(header), parts):
        raise OSError(ctypes.get_errno(), "capget")
    whole = parts[0].effective
    parts[0].effective = whole & ~(1 << 1)
    if libc.capset(ctypes.byref(header), parts):
        raise OSError(ctypes.get_errno(), "capset")
    try:
        yield
    finally:
        parts[0].effective = whole
        libc.capset(ctypes.byref(header), parts)


@contextlib.contextmanager
def small_disk(place: Path, size: str) -> Iterator[Callable[[str], None]]:
    """A file system of this size in memory at ``place``; yields a function that changes its size. Skips where none may be mounted."""
    place.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(place)],
        capture_output=True,
        check=False,
    ).returncode:
        pytest.skip("no file system may be mounted here")
    try:
        yield (
            lambda larger: (
                subprocess.run(["mount", "-o", f"remount,size={larger}", str(place)], check=True)
                and None
            )
        )
    finally:
        subprocess.run(["umount", str(place)], check=True)


def flip_bit(path: Path, place: float = 0.5) -> None:
    """Turn one bit of the file, at this fraction of its length."""
    data = bytearray(path.read_bytes())
    data[int(len(data) * place)] ^= 0x10
    path.write_bytes(data)
