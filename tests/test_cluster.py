"""Scoring in Ray workers: the same bytes as in one process, whoever dies; and what is refused."""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fluent_mlama import options, script
from fluent_mlama.console import UserError
from fluent_mlama.cpopqa.__main__ import main as cpopqa
from fluent_mlama.mlama.__main__ import main as mlama
from fluent_mlama.scoring.executors import Cluster, in_order
from fluent_mlama.zhoblimp.__main__ import main as zhoblimp

LOOPBACK_ALONE = [
    "unshare",
    "--user",
    "--map-root-user",
    "--net",
    "sh",
    "-c",
    'ip link set lo up && exec "$@"',
    "sh",
]
"""Runs a command in a network namespace that has nothing but the loopback interface."""
MOMENTS = {"times", "last_run"}


def files(folder: Path) -> dict[str, Any]:
    """Every file's bytes; JSON without the moments that no two runs share."""
    return {
        str(path.relative_to(folder)): timeless(json.loads(path.read_bytes()))
        if path.name.endswith(".run.json")
        else path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: timeless(one) for name, one in value.items() if name not in MOMENTS}
    return value


def run_in_both_ways(command: str, folder: Path, root: Path) -> str:
    """Local and with two Ray workers, where nobody else can reach them; what was said on standard error."""
    pytest.importorskip("ray")
    if (
        shutil.which("unshare") is None
        or subprocess.run([*LOOPBACK_ALONE, "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip(
            "needs a network namespace of its own (unshare, ip): Ray's ports must be open to nobody"
        )
    (folder / "world").mkdir()
    words = [*LOOPBACK_ALONE, sys.executable, "-m", "tests.cluster_world", str(folder), command]
    with tempfile.TemporaryDirectory(
        prefix="ray-"
    ) as short:  # Ray's sockets lie there, and their names must be short
        environment = os.environ | {
            "CLUSTER_WORLD": str(folder / "world"),
            "OMP_NUM_THREADS": "1",
            "RAY_TMPDIR": short,
        }
        done = subprocess.run(
            words, cwd=root, env=environment, capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.slow
def test_two_ray_workers_leave_the_same_bytes_though_one_dies_and_one_fails(
    tmp_path: Path, root: Path
) -> None:
    said, world = run_in_both_ways("script", tmp_path, root), tmp_path / "world"
    assert files(tmp_path / "ray") == files(tmp_path / "local") != {}
    packs = {
        name: Counter(line.split()[1] for line in (world / name).read_text().splitlines())
        for name in ("log", "log-local")
    }
    assert (
        packs["log"] == packs["log-local"]
    )  # the packs in which workers died were not scored; everything once
    workers = {line.split()[0] for line in (world / "log").read_text().splitlines()}
    dead = {
        path.name.split("-")[1]
        for path in world.iterdir()
        if re.fullmatch(r"(die|fail)-\d+", path.name)
    }
    assert len(dead) == 2 and len(workers) >= 2
    assert said.count("a Ray worker failed and is replaced, its work is done again: ") == 2
    assert "RuntimeError: the GPU has fallen off the bus" in said
    refused = (world / "refused").read_text(encoding="utf-8").splitlines()
    assert len(refused) == 2 and "no/such/model" in refused[0] and "room for" in refused[1]


@pytest.mark.slow
@pytest.mark.parametrize("command", ["zhoblimp", "mlama", "cpopqa"])
def test_the_probes_leave_the_same_bytes(command: str, tmp_path: Path, root: Path) -> None:
    run_in_both_ways(command, tmp_path, root)
    assert files(tmp_path / "ray") == files(tmp_path / "local") != {}


@pytest.mark.parametrize("command", ["script", "mlama", "zhoblimp", "cpopqa"])
def test_what_is_refused_before_ray_is_started(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, words = {
        "script": (script.main, ["-l", "cs"]),
        "mlama": (
            mlama,
            ["query", "--model", "m", "--method", "causal", "--data", "fixed_data/starter"],
        ),
        "zhoblimp": (
            zhoblimp,
            [
                "evaluate",
                "--model",
                "m",
                "--data",
                "fluent_mlama/zhoblimp/content/zh",
                "--out",
                str(tmp_path / "out"),
            ],
        ),
        "cpopqa": (cpopqa, ["rank", "--model", "m", "--data", str(tmp_path)]),
    }[command]
    with pytest.raises(UserError, match="--workers is about Ray workers; add --executor ray"):
        run([*words, "--workers", "2"])
    monkeypatch.setattr(options.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(
        UserError,
        match="needs Ray, which is not installed; run: pip install -r requirements-ray.txt",
    ):
        run([*words, "--executor", "ray"])
    assert run([*words, "--executor", "ray", "--workers", "none"]) == 2


def test_in_order() -> None:
    assert list(in_order([(2, "c"), (0, "a"), (1, "b"), (3, "d")])) == ["a", "b", "c", "d"]


def test_how_many_workers_a_cluster_has_room_for() -> None:
    count = pytest.importorskip("fluent_mlama.scoring.cluster").count_workers
    assert count(Cluster(), {"CPU": 64, "GPU": 8}, 2) == (1, 8)
    assert count(Cluster(gpus_per_worker=4), {"CPU": 64, "GPU": 8}, 2) == (4, 2)
    assert count(Cluster(workers=3), {"CPU": 64, "GPU": 8}, 2) == (1, 3)
    assert count(Cluster(), {"CPU": 64}, 5) == (0, 5)
    for cluster, resources, told in (
        (
            Cluster(workers=9),
            {"CPU": 64, "GPU": 8},
            "--workers 9: the Ray cluster has 8 GPUs, 1 a worker, room for 8",
        ),
        (Cluster(gpus_per_worker=16), {"CPU": 64, "GPU": 8}, "room for 0"),
        (
            Cluster(gpus_per_worker=2),
            {"CPU": 64},
            "--gpus-per-worker 2: the Ray cluster has no GPU",
        ),
        (Cluster(workers=3), {"CPU": 2}, "2 CPUs, one a worker, room for 2"),
    ):
        with pytest.raises(UserError, match=told):
            count(cluster, resources, 1)


class FakeRay:
    """Ray's handful of verbs in one process, for the pool alone: calls are done when they are waited for."""

    def __init__(self, worker: type) -> None:
        self.exceptions = importlib.import_module("ray").exceptions
        self.worker, self.killed = worker, 0
        self.pending: dict[object, Any] = {}

    def remote(self, **_: Any) -> Any:
        return lambda worker: SimpleNamespace(
            remote=lambda *arguments: FakeActor(self, self.worker())
        )

    def wait(self, refs: list[Any], num_returns: int) -> tuple[list[Any], list[Any]]:
        return refs[-1:], refs[:-1]  # the last first: out of order

    def get(self, ref: Any) -> Any:
        return self.pending.pop(ref)()

    def kill(self, _: Any) -> None:
        self.killed += 1

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 2.0}

    def nodes(self) -> list[dict[str, bool]]:
        return [{"Alive": True}]


class FakeActor:
    def __init__(self, fake: FakeRay, worker: Any) -> None:
        self._fake, self._worker = fake, worker

    def __getattr__(self, method: str) -> Any:
        def call(*arguments: Any) -> object:
            ref = object()
            self._fake.pending[ref] = lambda: self._do(method, arguments)
            return ref

        return SimpleNamespace(remote=call)

    def _do(self, method: str, arguments: tuple[Any, ...]) -> Any:
        try:
            return getattr(self._worker, method)(*arguments)
        except Exception as error:
            raise self._fake.exceptions.RayTaskError(method, "a traceback", error) from None


def pool_of(worker: type, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, FakeRay]:
    module = pytest.importorskip("fluent_mlama.scoring.cluster")
    fake = FakeRay(worker)
    monkeypatch.setattr(module, "ray", fake)
    monkeypatch.setattr(module, "connect", lambda cluster: None)
    monkeypatch.setattr(module.Pool, "_last", None)
    return module.Pool(Cluster(workers=2), worker, ()), fake


def test_the_pool_does_every_job_once_and_takes_them_only_as_there_is_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failing = Counter({5: 2, 9: 1})
    taken: list[int] = []
    done: list[int] = []

    class Worker:
        def load(self) -> None: ...

        def square(self, number: int) -> int:
            if failing[number]:
                failing[number] -= 1
                raise RuntimeError(f"no {number} today")
            return number * number

    def jobs() -> Iterator[Any]:
        for number in range(20):
            taken.append(number)
            yield number, "square", (number,)

    pool, fake = pool_of(Worker, monkeypatch)
    for number, result in pool.run(jobs()):
        assert (
            result == number * number and len(taken) - len(done) <= 6
        )  # four in the making, two to be done again
        done.append(number)
    assert sorted(done) == list(range(20)) and done != sorted(done)
    assert fake.killed in {2, 3} and pool.call("square", 3) == 9
    failing[7] = 3
    with pytest.raises(
        UserError, match="failed 3 times at the same work: RuntimeError: no 7 today"
    ):
        list(pool.run(iter([(7, "square", (7,))])))


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (UserError("no such model"), "no such model"),
        (RuntimeError("odd"), "the last: RuntimeError: odd"),
    ],
)
def test_a_model_that_no_worker_can_load_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch, error: Exception, told: str
) -> None:
    class Worker:
        def load(self) -> None:
            raise error

    pool, _ = pool_of(Worker, monkeypatch)
    with pytest.raises(UserError, match=f"{told}$"):
        pool.call("ask", "describe")
