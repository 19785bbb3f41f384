"""What the tests of Ray workers load in them: scorers without a model, one of whose workers dies in the middle of a pack."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from fluent.console import UserError
from fluent.scoring.contract import Arithmetic, Plan, RequestScore
from tests.stand_in import StandInScorer


class Mortal(StandInScorer):
    """Logs its packs in the folder CLUSTER_WORLD; there, whoever finds the file ``die`` takes it and dies, ``fail`` likewise."""

    def score_pack(self, plan: Plan, number: int, arithmetic: Arithmetic = "float32") -> dict[int, RequestScore]:
        folder = Path(os.environ["CLUSTER_WORLD"])
        time.sleep(0.02)
        for name in ("die", "fail"):
            if number >= 3 and (folder / name).exists():
                try:
                    (folder / name).rename(folder / f"{name}-{os.getpid()}")
                except FileNotFoundError:  # another worker was quicker
                    continue
                if name == "fail":
                    raise RuntimeError("the GPU has fallen off the bus")
                os.kill(os.getpid(), signal.SIGKILL)
        scores = super().score_pack(plan, number, arithmetic)
        with (folder / "log").open("a", encoding="utf-8") as log:
            log.write(f"{os.getpid()} {number}\n")
        return scores


def load_stand_in(model: str, **_: object) -> StandInScorer:
    """In place of ``load_scorer``."""
    if model == "missing":
        raise UserError(f"model {model} not found; it never is")
    return Mortal(model)
