"""``script.py`` when it is killed, stopped, out of disk, shut out of its folder, or finds damaged files: the same bytes, or one line."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fluent_mlama import script
from fluent_mlama.console import run_main
from tests.fault_world import (
    finish,
    flip_bit,
    leave_packs,
    leftovers,
    outputs,
    read_only,
    small_disk,
    start_script,
    write_data,
)
from tests.stand_in import StandInScorer

PAUSE = 0.01


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_data(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def whole(data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What an undisturbed run leaves."""
    folder = tmp_path_factory.mktemp("whole")
    assert in_process(data, folder / "stats") == 0
    assert leftovers(folder) == []
    return outputs(folder)


def in_process(data: Path, out: Path, scorer: StandInScorer | None = None) -> int:
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as left:
        patch.setattr(script, "load", lambda asked: scorer or StandInScorer(asked.settings.model))
        patch.setattr(sys, "argv", ["script.py"])
        run_main(
            script.main, ["-l", "cs", "--model", "stand-in", "--data", str(data), "--out", str(out)]
        )
    assert isinstance(left.value.code, int)
    return left.value.code


def only_whole_files(folder: Path, whole: dict[str, bytes]) -> bool:
    """Whatever stands under a final name is what an undisturbed run writes there."""
    return all(whole.get(name) == data for name, data in outputs(folder).items())


@pytest.mark.slow
def test_killed_at_fifty_random_moments_the_outputs_are_an_undisturbed_runs(
    data: Path, whole: dict[str, bytes], tmp_path: Path
) -> None:
    started = time.monotonic()
    status, _ = finish(start_script(data, tmp_path / "timed" / "stats", pause=PAUSE))
    usual, moments = time.monotonic() - started, random.Random(13)
    assert status == 0
    killed, finished, folder = 0, 0, tmp_path / "0"
    while killed < 50:
        process = start_script(data, folder / "stats", pause=PAUSE)
        time.sleep(moments.uniform(0.0, usual))
        process.kill()
        status, _ = finish(process)
        assert only_whole_files(folder, whole)
        if status == -signal.SIGKILL:
            killed += 1
            continue
        assert status == 0 and outputs(folder) == whole
        finished, folder = finished + 1, tmp_path / str(finished + 1)
    assert finish(start_script(data, folder / "stats"))[0] == 0
    assert outputs(folder) == whole
    assert [name for name in leftovers(tmp_path) if not name.endswith(".partial")] == []


def test_packs_of_a_run_that_was_killed_just_before_it_forgot_them(
    data: Path, whole: dict[str, bytes], tmp_path: Path
) -> None:
    assert in_process(data, tmp_path / "stats") == 0
    for record in (tmp_path / "stats").glob("*.run.json"):
        leave_packs(record.with_name(record.name.replace(".run.json", ".packs")))
    assert len(leftovers(tmp_path)) == 3
    assert in_process(data, tmp_path / "stats") == 0
    assert (leftovers(tmp_path), outputs(tmp_path)) == ([], whole)


@pytest.mark.parametrize(("sent", "left"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_stopped_by_a_signal_it_says_so_and_goes_on_later(
    sent: signal.Signals, left: int, data: Path, whole: dict[str, bytes], tmp_path: Path
) -> None:
    process = start_script(data, tmp_path / "stats", pause=0.3)
    deadline = time.monotonic() + 200
    while not list(tmp_path.rglob("pack-*.parquet")) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(sent)
    status, err = finish(process)
    assert status == left
    assert re.fullmatch(
        r"script.py: error: (interrupted|stopped); what was finished is kept, the same command goes on from there\n",
        err,
    )
    assert only_whole_files(tmp_path, whole)
    assert not [name for name in leftovers(tmp_path) if name.endswith(".partial")]
    again = StandInScorer("stand-in")
    assert in_process(data, tmp_path / "stats", again) == 0
    assert outputs(tmp_path) == whole and leftovers(tmp_path) == []
    assert 0 < len(again.packs_scored) < 24


def test_a_disk_that_is_full_at_any_write(
    data: Path, whole: dict[str, bytes], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The n-th file that is brought to the disk finds it full, for every fourth n; the next run ends as an undisturbed one."""
    fsync, n, filled = os.fsync, 1, 0
    while True:
        folder, count = tmp_path / str(n), 0

        def full(handle: int, at: int = n) -> None:
            nonlocal count
            count += 1
            if count == at:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            fsync(handle)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "fsync", full)
            status = in_process(data, folder / "stats")
        _, err = capsys.readouterr()
        if count < n:
            assert status == 0
            break
        filled += 1
        lines = [line for line in err.splitlines() if "error:" in line]
        assert status == 2 and len(lines) == 1
        assert re.fullmatch(
            r"script.py: error: No space left on device at .*/stats.*; free space or choose another folder, then .*",
            lines[0],
        )
        assert only_whole_files(folder, whole)
        assert not [name for name in leftovers(folder) if name.endswith(".partial")]
        assert (
            in_process(data, folder / "stats") == 0
            and outputs(folder) == whole
            and leftovers(folder) == []
        )
        shutil.rmtree(folder)
        n += 4
    assert filled >= 9


def test_a_real_disk_that_is_full(data: Path, whole: dict[str, bytes], tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    with small_disk(disk, "48k") as resize:
        status, err = finish(start_script(data, disk / "stats"))
        assert (
            status == 2
            and err.count("error:") == 1
            and "No space left on device" in err.splitlines()[-1]
        )
        assert "Traceback" not in err and only_whole_files(disk, whole)
        resize("8m")
        assert finish(start_script(data, disk / "stats"))[0] == 0
        assert outputs(disk) == whole and leftovers(disk) == []


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_nobody_reads_the_output(unbuffered: str, data: Path, tmp_path: Path) -> None:
    """Standard output on a full device (``> /dev/full``): one line; the dumps are there all the same."""
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full here")
    words = [
        "-l",
        "cs",
        "-r",
        "P19",
        "--model",
        "stand-in",
        "--data",
        str(data),
        "--out",
        str(tmp_path / "stats"),
    ]
    code = (
        "import sys\n"
        "from fluent_mlama import script\n"
        "from fluent_mlama.console import run_main\n"
        "from tests.stand_in import StandInScorer\n"
        "script.load = lambda asked: StandInScorer(asked.settings.model)\n"
        "run_main(script.main, sys.argv[1:])\n"
    )
    command, surroundings = (
        [sys.executable, "-c", code, *words],
        os.environ | {"PYTHONUNBUFFERED": unbuffered},
    )
    with full.open("w", encoding="utf-8") as out:
        done = subprocess.run(
            command, env=surroundings, stdout=out, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (
        done.returncode == 2
        and "No space left on device" in done.stderr
        and "Traceback" not in done.stderr
    )
    assert (tmp_path / "stats" / "cs_P19_template_gt.tsv").is_file()


def test_a_folder_that_may_not_be_written(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "shut").mkdir()
    with read_only(tmp_path / "shut"):
        for out in (tmp_path / "shut", tmp_path / "shut" / "stats"):
            scorer = StandInScorer()
            assert in_process(data, out, scorer) == 2
            _, err = capsys.readouterr()
            assert (
                "cannot write into" in err
                and "Permission denied" in err
                and err.count("\n") == 1
                and not scorer.packs_scored
            )
    assert list((tmp_path / "shut").iterdir()) == []


def test_a_folder_that_is_shut_while_the_run_is_at_work(
    data: Path, whole: dict[str, bytes], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "stats"

    class Shutting(StandInScorer):
        def score_pack(self, *arguments: object, **options: object) -> object:  # type: ignore[override]
            if len(self.packs_scored) == 2:
                shut.enter_context(read_only(tmp_path))
            return super().score_pack(*arguments, **options)  # type: ignore[arg-type]

    with contextlib.ExitStack() as shut:
        assert in_process(data, out, Shutting()) == 2
        _, err = capsys.readouterr()
        last = err.splitlines()[-1]
        assert (
            "error: Permission denied at" in last
            and "choose another folder" in last
            and "Traceback" not in err
        )
    assert only_whole_files(tmp_path, whole)
    gc.collect()  # the process goes on here, and its claim with it, until the run is forgotten
    assert finish(start_script(data, out))[0] == 0 and outputs(tmp_path) == whole


def test_damaged_packs_are_scored_again(
    data: Path, whole: dict[str, bytes], tmp_path: Path
) -> None:
    out = tmp_path / "stats"
    with pytest.raises(RuntimeError, match="the machine stops"):
        in_process(data, out, StandInScorer("stand-in", stop_after=5))
    packs = sorted(tmp_path.rglob("pack-*.parquet"))
    assert len(packs) >= 5
    packs[0].write_bytes(packs[0].read_bytes()[:-20])
    flip_bit(packs[1], 0.15)  # a page of numbers: still well-formed Parquet
    packs[2].write_bytes(b"")
    packs[3].write_bytes(packs[4].read_bytes())  # another pack's numbers
    again = StandInScorer("stand-in")
    assert in_process(data, out, again) == 0
    assert outputs(tmp_path) == whole
    assert {0, 1, 2, 3} <= set(again.packs_scored[:4])


@pytest.mark.parametrize("damage", ["empty", "cut", "no object", "other version"])
def test_a_damaged_run_record_is_named_and_nothing_replaced(
    damage: str, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "stats"
    assert in_process(data, out) == 0
    record = out / "cs_P36_template_gt.run.json"
    text = record.read_text(encoding="utf-8")
    texts = {
        "empty": "",
        "cut": text[: len(text) // 2],
        "no object": "[]",
        "other version": '{"x": 1,' + text[1:],
    }
    record.write_text(texts[damage], encoding="utf-8")
    before = outputs(tmp_path)
    capsys.readouterr()
    assert in_process(data, out) == 2
    _, err = capsys.readouterr()
    assert str(record) in err and err.count("\n") == 1
    assert outputs(tmp_path) == before
