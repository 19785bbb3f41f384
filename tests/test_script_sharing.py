"""Several runs on one output folder: real processes, a scorer without a model, every scored pack counted."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import time
from collections import Counter
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

import script
from fluent_mlama.console import UserError, run_main
from fluent_mlama.ranking import claims
from fluent_mlama.ranking.claims import Claimed, claims_in
from fluent_mlama.ranking.packs import PackStore
from fluent_mlama.ranking.settings import Settings
from fluent_mlama.records.benchmark import read_benchmark, write_benchmark
from fluent_mlama.records.source import open_source
from fluent_mlama.scoring.contract import Arithmetic, Plan, RequestScore
from processor import Processor
from tests.stand_in import PACK_SIZE, StandInScorer, city_benchmark

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
                        (folder / f"{kind}-{os.getpid()}").open("w", encoding="utf-8")
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
    runs = [room.start(hold=1) for _ in range(4)]  # one more than there are files: the fourth helps
    room.wait_for(*runs)
    room.go()
    told = room.finish(*runs)
    assert [(status, err) for status, _, err in told if status] == []
    files, packs = room.alone()
    assert room.counts() == packs and set(packs.values()) == {1}
    assert len({pid for pid, _ in room.log()}) == 4
    assert room.tree() == files
    assert (
        len({out for _, out, _ in told}) == 1 and "cs P36" in told[0][1] and "cs P19" in told[0][1]
    )


def test_runs_help_with_the_file_that_another_has_claimed(tmp_path: Path) -> None:
    room = Room(tmp_path, ("P19",), 200)
    first = room.start(hold=5)
    room.wait_for(first)
    second = room.start(hold=5)
    room.wait_for(second)
    room.go()
    told = room.finish(first, second)
    files, packs = room.alone()
    assert (room.counts(), room.tree()) == (packs, files)
    assert len(packs) == -(-2 * 180 // PACK_SIZE)
    numbers = {
        run: [int(pack.split("/")[1]) for pid, pack in room.log() if pid == run.pid]
        for run in (first, second)
    }
    assert numbers[first] == sorted(numbers[first]) and numbers[second] == sorted(
        numbers[second], reverse=True
    )
    assert min(map(len, numbers.values())) >= 5
    assert "others are at work on cs P19: helping, then waiting" in told[1][2]
    assert "cs P19: another run has just ranked it" in told[1][2]


@pytest.mark.parametrize("victim", ["holds the file", "helps"])
def test_a_killed_run_is_replaced_at_once(tmp_path: Path, victim: str) -> None:
    room = Room(tmp_path, ("P19",), 200)
    first = room.start(hold=3)
    room.wait_for(first)
    second = room.start(hold=3)
    room.wait_for(second)
    dead, survivor = (first, second) if victim == "holds the file" else (second, first)
    assert dead.pid is not None
    os.kill(dead.pid, signal.SIGKILL)  # in the middle of its fourth pack
    dead.join(PATIENCE)
    assert dead.exitcode == -signal.SIGKILL
    room.go()
    assert room.finish(survivor)[0][0] == 0
    files, packs = room.alone()
    assert room.counts() == packs  # its three are kept, its fourth is scored by the survivor
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


def test_a_helper_of_another_plan_keeps_away_and_a_late_pack_counts_for_nothing(
    tmp_path: Path,
) -> None:
    processor = Processor(city_benchmark(), Settings(model="stand-in", out=tmp_path / "stats"))
    assert processor.help(StandInScorer()) is None
    with pytest.raises(RuntimeError):
        processor.rank(StandInScorer(stop_after=2))
    scorer = StandInScorer()
    assert (
        Processor(
            city_benchmark(), Settings(model="stand-in", out=tmp_path / "stats", limit=9)
        ).help(scorer)
        == 0
    )
    assert scorer.packs_scored == []
    ours = PackStore(processor.outputs.packs, "another plan")
    assert ours.discarded == 2
    ours.save(1, {})
    late = PackStore(processor.outputs.packs, "the old plan", joining=True)
    late.save(2, {})
    old = PackStore(tmp_path / "old.packs", "the old plan")
    old.save(3, {})
    (old.folder / "pack-000003.parquet").rename(ours.folder / "pack-000003.parquet")
    assert ours.finished() == {1: {}}


def test_claims_in_one_process(tmp_path: Path) -> None:
    here = claims_in(tmp_path)
    with here.at_work({"model": "a"}, lambda others: "") as first:
        assert first
        with here.claimed("dump"):
            with (
                pytest.raises(Claimed, match="another run is at work on .*dump; wait for it"),
                here.claimed("dump"),
            ):
                raise AssertionError
            with here.at_work({"model": "a"}, lambda others: "") as first:
                assert not first
        assert here.take("dump") and not here.take("dump")
        here.drop("dump")
        assert here.take("dump")
    assert list(tmp_path.iterdir()) == []


def test_where_the_file_system_has_no_locks_it_is_said_and_one_run_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(claims.fcntl, "lockf", refuse)
    Processor(city_benchmark(), Settings(model="stand-in", out=tmp_path / "stats")).rank(
        StandInScorer()
    )
    assert (tmp_path / "stats/cs_P19_template_gt.tsv").exists()
    said = capsys.readouterr().err
    assert (
        said.count(
            "has no locks (Function not implemented): keep to one run at a time in this folder"
        )
        == 1
    )


def test_without_record_locks_one_run_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "fcntl", None)
    one, other = claims.Claims(tmp_path), claims.Claims(tmp_path)
    with one.at_work({}, lambda others: ""), one.claimed("dump"):
        pytest.raises(Claimed, other.at_work({}, lambda others: "").__enter__).match(
            "another run is at work in"
        )
    with other.at_work({}, lambda others: ""):
        assert other.take("dump")
