"""``--executor ray``, which script.py and the probes share: what is refused before Ray is started."""

from __future__ import annotations

from tests.bad_inputs.case import Case

RANK = "script.py -l ru -r P36 --model stand-in --out stats/new"
RAY = f"{RANK} --executor ray"
QUERY = "-m probes.mlama query --data mlama --model stand-in --method causal --langs ru --out new"
EVALUATE = "-m probes.zhoblimp evaluate --data pairs --model stand-in --out new"
SORT = "-m probes.cpopqa rank --data instruments --model stand-in"


def _workers(command: str, option: str, value: str, shown: str = "") -> Case:
    said = f"{option}: '{value}' is not a whole number from 1 (see {shown or command.split(' -')[0]} --help)"
    return Case(f"{option} {value}", f"{command} {option} {value}", said)


CASES = [
    Case(
        "an executor that there is not",
        f"{RANK} --executor spark",
        'Invalid value "spark" for --executor. Choose from: "local", "ray" (see script.py --help)',
    ),
    *(
        _workers(RAY, "--workers", value)
        for value in ("0", "-2", "+2", "2.5", "many", "٢", "9" * 40)
    ),
    *(_workers(RAY, "--gpus-per-worker", value) for value in ("0", "half")),
    *(
        Case(
            f"--address {what}",
            f"{RAY} --address {value}",
            f"--address: {shown} is not an address; give HOST:PORT, …",
        )
        for what, value, shown in (
            ("that is empty", "''", "''"),
            ("without a port", "head", "'head'"),
            ("with a port that is a word", "head:ray", "'head:ray'"),
            ("with a port beyond all ports", "head:99999", "'head:99999'"),
            ("that is a page", "http://head:6379", "'http://head:6379'"),
            ("of two lines", "'head\n:6379'", "'head\\n:6379'"),
        )
    ),
    Case(
        "--address where nothing is",
        f"{RAY} --address 127.0.0.1:1",
        "no Ray cluster at --address 127.0.0.1:1 (…refused); start one as docs/scaling.md says",
        notes=("loading stand-in …",),
        loads=True,
    ),
    Case(
        "--workers without Ray",
        f"{RANK} --workers 2",
        "--workers is about Ray workers; add --executor ray",
    ),
    Case(
        "--address without Ray",
        f"{RANK} --address auto",
        "--address is about Ray workers; add --executor ray",
    ),
    Case(
        "--gpus-per-worker without Ray",
        f"{RANK} --gpus-per-worker 2",
        "--gpus-per-worker is about Ray workers; add --executor ray",
    ),
    Case(
        "explain with Ray",
        "script.py explain -l ru -r P36 --model stand-in --subject Q142 --executor ray",
        "Unknown option: --executor (see script.py explain --help)",
    ),
    Case(
        "an export with Ray",
        "script.py export hf --out new --executor ray",
        "Unknown option: --executor (see script.py export hf --help)",
    ),
    *(
        Case(
            "--workers without Ray",
            f"{command} --workers 2",
            "--workers is about Ray workers; add --executor ray",
        )
        for command in (QUERY, EVALUATE, SORT)
    ),
    *(
        _workers(
            f"{command} --executor ray",
            "--workers",
            "none",
            f"fluent-mlama {command.split('probes.')[1].partition(' --')[0]}",
        )
        for command in (QUERY, EVALUATE, SORT)
    ),
]
