"""Several runs on one output folder: real processes, a scorer without a model, every scored pack counted."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import multiprocessing
import os
import signal
import time
from collections import Counter
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from fluent_mlama import script
from fluent_mlama.console import UserError, run_main
from fluent_mlama.files import open_source
from fluent_mlama.processor import Processor
from fluent_mlama.ranking.settings import Settings
from fluent_mlama.records.benchmark import read_benchmark, write_benchmark
from fluent_mlama.runner.run import Busy, PackStore, is_locked, locked
from fluent_mlama.scoring.contract import Arithmetic, Plan, RequestScore
from tests.stand_in import StandInScorer, city_benchmark

RELATIONS = ("P19", "P20", "P36")
SECONDS_A_PACK = 0.005
PATIENCE = 100
servers = multiprocessing.get_context("forkserver")
servers.set_forkserver_preload(["script", "processor", __name__])


class Counting(StandInScorer):
    """Logs every pack it has scored; after ``hold`` packs it waits, in the middle of the next, for the file ``go``."""

    def __init__(self, folder: Path, name: str, hold: int | None) -> None:
        super().__init__(name)
        self.folder, self.hold = folder, hold

    def score_pack(
        self, plan: Plan, number: int, arithmetic: Arithmetic = "float32"
    ) -> dict[int, RequestScore]:
        if len(self.packs_scored) == self.hold:
            (self.folder / f"waiting-{os.getpid()}").touch()
            wait_until((self.folder / "go").exists)
        time.sleep(SECONDS_A_PACK)
        scores = super().score_pack(plan, number, arithmetic)
        with (self.folder / "log").open(
            "a", encoding="utf-8"
        ) as log:  # a short write at the end of a file is never torn
            log.write(f"{os.getpid()} {len(plan.packs)}/{number}\n")
        return scores


def wait_until(happened: object) -> None:
    """Until a condition holds; the test's time is not what is measured."""
    deadline = time.monotonic() + PATIENCE
    while not happened():  # type: ignore[operator]
        assert time.monotonic() < deadline, "nothing happens"
        time.sleep(0.005)


def run_script(folder: Path, words: list[str], model: str, hold: int | None) -> None:
    """What a started process does: ``script.py`` with the counting scorer; its output goes to files."""
    script.load = lambda asked: Counting(folder, model, hold)  # type: ignore[assignment, return-value]
    with contextlib.ExitStack() as stack:
        for kind, redirected in (
            ("out", contextlib.redirect_stdout),
            ("err", contextlib.redirect_stderr),
        ):
            stack.enter_context(
                redirected(
                    stack.enter_context(
                        (folder / f"{kind}-{os.getpid()}").open("w", buffering=1, encoding="utf-8")
                    )
                )
            )
        run_main(script.main, words)


class Room:
    """A folder of data and a way to start runs on one output folder."""

    def __init__(
        self, folder: Path, relations: tuple[str, ...] = RELATIONS, rows: int = 60
    ) -> None:
        self.folder = folder
        for place, relation in enumerate(
            relations
        ):  # files of different lengths are told apart in the log
            write_benchmark(city_benchmark(rows + 10 * place, relation=relation), folder / "data")

    def start(self, *words: str, hold: int | None = None, model: str = "stand-in") -> BaseProcess:
        asked = [
            "-l",
            "cs",
            "--data",
            str(self.folder / "data"),
            "--out",
            str(self.folder / "stats"),
            "--model",
            model,
            *words,
        ]
        process = servers.Process(target=run_script, args=(self.folder, asked, model, hold))
        process.start()
        return process

    def wait_for(self, *runs: BaseProcess) -> None:
        """Until each of these waits in the middle of a pack."""
        for run in runs:
            wait_until((self.folder / f"waiting-{run.pid}").exists)

    def go(self) -> None:
        (self.folder / "go").touch()

    def finish(self, *runs: BaseProcess) -> list[tuple[int | None, str, str]]:
        """Status, standard output and standard error of each run."""
        for run in runs:
            run.join(PATIENCE)
        return [
            (
                run.exitcode,
                *(
                    (self.folder / f"{kind}-{run.pid}").read_text("utf-8")
                    for kind in ("out", "err")
                ),
            )
            for run in runs
        ]

    def said(self, run: BaseProcess) -> str:
        """Standard error of a run so far."""
        path = self.folder / f"err-{run.pid}"
        return path.read_text("utf-8") if path.exists() else ""

    def log(self) -> list[tuple[int, str]]:
        """(process, pack) of every pack that was scored, in order."""
        path = self.folder / "log"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return [(int(line.split()[0]), line.split()[1]) for line in lines]

    def counts(self, since: int = 0) -> Counter[str]:
        return Counter(pack for _, pack in self.log()[since:])

    def tree(self) -> dict[str, bytes]:
        folders = (self.folder / "stats", self.folder / "stats_wide")
        files = (
            path
            for folder in folders
            for path in folder.rglob("*")
            if path.is_file() and not path.name.endswith(".partial")
        )
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in files}

    def alone(self) -> tuple[dict[str, bytes], Counter[str]]:
        """The files of an undisturbed run in this process, and the packs it scores."""
        packs: Counter[str] = Counter()
        out = self.folder / "alone"
        for path in sorted((self.folder / "data").iterdir()):
            lang, relation, spec = path.stem.split("_")
            scorer = StandInScorer()
            processor = Processor(
                read_benchmark(open_source(path.parent), lang, relation, spec),
                Settings("stand-in", out=out / "stats"),
            )
            processor.rank(scorer)
            packs.update(f"{len(scorer.packs_scored)}/{number}" for number in scorer.packs_scored)
        return {
            str(path.relative_to(out)): path.read_bytes()
            for path in out.rglob("*")
            if path.is_file()
        }, packs


def test_four_runs_score_every_pack_once_and_all_tell_the_whole_result(tmp_path: Path) -> None:
    room = Room(tmp_path)
    runs = [room.start(hold=1) for _ in range(3)]
    room.wait_for(*runs)
    runs.append(room.start())  # one more than there are files: the fourth waits
    room.go()
    told = room.finish(*runs)
    assert [(status, err) for status, _, err in told if status] == []
    files, packs = room.alone()
    assert room.counts() == packs and set(packs.values()) == {1}
    assert {run.pid for run in runs[:3]} <= {pid for pid, _ in room.log()}
    assert room.tree() == files
    assert (
        len({out for _, out, _ in told}) == 1 and "cs P36" in told[0][1] and "cs P19" in told[0][1]
    )


def test_a_run_waits_for_the_file_that_another_is_making(tmp_path: Path) -> None:
    room = Room(tmp_path, ("P19",), 200)
    first = room.start(hold=5)
    room.wait_for(first)
    second = room.start()
    wait_until(lambda: "waiting" in room.said(second))
    room.go()
    told = room.finish(first, second)
    files, packs = room.alone()
    assert (room.counts(), room.tree()) == (packs, files)
    assert {pid for pid, _ in room.log()} == {first.pid}
    assert "others are at work on cs P19: waiting" in told[1][2]
    assert "cs P19: another run has just made it" in told[1][2]


def test_a_killed_run_is_replaced_at_once(tmp_path: Path) -> None:
    room = Room(tmp_path, ("P19",), 200)
    first = room.start(hold=3)
    room.wait_for(first)
    second = room.start()
    wait_until(lambda: "waiting" in room.said(second))
    assert first.pid is not None
    os.kill(first.pid, signal.SIGKILL)  # in the middle of its fourth pack
    first.join(PATIENCE)
    assert first.exitcode == -signal.SIGKILL
    assert room.finish(second)[0][0] == 0
    files, packs = room.alone()
    assert room.counts() == packs  # its three are kept, its fourth is scored by the other
    assert room.tree() == files


def test_overwriting_runs_make_each_file_anew_once(tmp_path: Path) -> None:
    room = Room(tmp_path)
    room.finish(room.start())
    before, scored = room.tree(), len(room.log())
    runs = [room.start("--overwrite", hold=0) for _ in range(2)]
    room.wait_for(*runs)
    room.go()
    assert [status for status, _, _ in room.finish(*runs)] == [0, 0]
    assert room.counts(since=scored) == room.counts() - room.counts(since=scored)
    assert room.tree() == before


def test_a_run_with_other_settings_is_refused_while_one_is_at_work(tmp_path: Path) -> None:
    room = Room(tmp_path)
    first = room.start(hold=1)
    room.wait_for(first)
    for words, what in (
        (["--protocol", "corrected"], "protocol: paper, not corrected"),
        (["--drop-empty-objects"], "row filter (--drop-empty-objects): False, not True"),
        (["--model", "another"], "model: stand-in, not another"),
    ):
        model = words[1] if words[0] == "--model" else "stand-in"
        ((status, out, err),) = room.finish(room.start(*words, model=model))
        assert (status, out) == (2, "") and err.count("\n") == 1, err
        assert (
            f"another run is at work in {tmp_path}/stats with another {what}; choose another folder with --out"
            in err
        )
    room.go()
    assert room.finish(first)[0][0] == 0
    assert room.tree() == room.alone()[0]


def test_a_run_that_came_and_went_unseen_is_not_mixed_with(tmp_path: Path) -> None:
    settings = Settings(model="stand-in", out=tmp_path / "stats")
    late = Processor(city_benchmark(), Settings(model="another", out=tmp_path / "stats"))
    other_data = Processor(city_benchmark(20), settings)
    Processor(city_benchmark(), settings).rank(StandInScorer())
    made = {path.name: path.read_bytes() for path in (tmp_path / "stats").iterdir()}
    with pytest.raises(UserError, match="holds dumps of another model: stand-in, not another"):
        late.rank(StandInScorer("another"))
    with pytest.raises(
        UserError, match="another run has just made .* from other data than this cs_P19_test.tsv"
    ):
        other_data.rank(StandInScorer())
    assert {path.name: path.read_bytes() for path in (tmp_path / "stats").iterdir()} == made


def test_packs_of_another_plan_count_for_nothing(tmp_path: Path) -> None:
    processor = Processor(city_benchmark(), Settings(model="stand-in", out=tmp_path / "stats"))
    with pytest.raises(RuntimeError):
        processor.rank(StandInScorer(stop_after=2))
    ours = PackStore(processor.outputs.packs, "another plan")
    assert ours.discarded == 2
    ours.save(1, {})
    old = PackStore(tmp_path / "old.packs", "the old plan")
    old.save(3, {})
    (old.folder / "pack-000003.parquet").rename(ours.folder / "pack-000003.parquet")
    assert ours.finished() == {1: {}}


def test_a_lock_in_one_process(tmp_path: Path) -> None:
    dump = tmp_path / "new" / "dump.tsv"
    with locked(dump):
        assert is_locked(dump)
        with pytest.raises(Busy, match="another run is at work on .*dump.tsv; wait"), locked(dump):
            raise AssertionError
    assert not is_locked(dump)
    assert list(dump.parent.iterdir()) == []
    with pytest.raises(RuntimeError), locked(tmp_path / "other" / "dump.tsv"):
        raise RuntimeError
    assert not (tmp_path / "other").exists()


def test_where_the_file_system_has_no_locks_it_is_said_and_one_run_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", refuse)
    Processor(city_benchmark(), Settings(model="stand-in", out=tmp_path / "stats")).rank(
        StandInScorer()
    )
    assert (tmp_path / "stats/cs_P19_template_gt.tsv").exists()
    said = capsys.readouterr().err
    assert said.count("has no locks: keep to one run at a time in this folder") == 1
