"""A command that scores, once in its own process and once in two Ray workers, of which one dies in the middle of a pack.

    python -m tests.cluster_world FOLDER script|zhoblimp|mlama|cpopqa

Run by tests/test_cluster.py in a network namespace of its own. Leaves ``FOLDER/local`` and ``FOLDER/ray``, which hold the
same bytes, and in the folder CLUSTER_WORLD who scored which pack and which workers died (of ``script``).
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

import fluent_mlama.scoring.causal
from fluent_mlama import script
from fluent_mlama.console import UserError
from fluent_mlama.cpopqa.__main__ import main as cpopqa
from fluent_mlama.mlama.__main__ import main as mlama
from fluent_mlama.records.benchmark import write_benchmark
from fluent_mlama.zhoblimp.__main__ import main as zhoblimp
from tests.mlama_world import tiny_masked, write_lines, write_toy
from tests.stand_in import city_benchmark
from tests.tiny import byte_level_tokenizer, tiny_model

load_scorer = fluent_mlama.scoring.causal.load_scorer
RAY = ["--executor", "ray", "--workers", "2"]


def load_mortal(model: str, **options: Any) -> Any:
    """The real scorer, which logs its packs; whoever finds the file ``die`` or ``fail`` takes it and does so."""
    scorer = load_scorer(model, **options)
    score, world = scorer.score_pack, Path(os.environ["CLUSTER_WORLD"])

    def score_pack(plan: Any, number: int, arithmetic: Any = "float32") -> Any:
        for word in ("die", "fail"):
            if number >= 2 and (world / word).exists():
                try:
                    (world / word).rename(world / f"{word}-{os.getpid()}")
                except FileNotFoundError:  # another worker was quicker
                    continue
                if word == "fail":
                    raise RuntimeError("the GPU has fallen off the bus")
                os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.05)
        scores = score(plan, number, arithmetic)
        with (world / "log").open("a", encoding="utf-8") as log:
            log.write(f"{os.getpid()} {number}\n")
        return scores

    scorer.score_pack = score_pack  # type: ignore[method-assign]
    return scorer


def save(folder: Path, model: Any, tokenizer: Any) -> str:
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def causal_model(folder: Path) -> str:
    tokenizer = byte_level_tokenizer()
    return save(folder / "tiny-llama", tiny_model("llama", len(tokenizer)), tokenizer)


def rank_facts(folder: Path, out: Path, executor: list[str]) -> None:
    if not executor:
        write_benchmark(city_benchmark(40), folder / "benchmark")
        causal_model(folder)
    words = ["-l", "cs", "--data", str(folder / "benchmark"), "--token-budget", "128"]
    script.main(
        [*words, "--model", str(folder / "tiny-llama"), "--out", str(out / "stats"), *executor]
    )
    if executor:
        for more in (
            ["--model", "no/such/model"],
            ["--model", str(folder / "tiny-llama"), "--workers", "500"],
        ):
            try:
                script.main([*words, "--out", str(folder / "refused"), *executor, *more])
            except UserError as error:
                with (Path(os.environ["CLUSTER_WORLD"]) / "refused").open(
                    "a", encoding="utf-8"
                ) as told:
                    told.write(f"{error}\n")


def evaluate_pairs(folder: Path, out: Path, executor: list[str]) -> None:
    if not executor:
        same = {"UID": "u", "phenomenon": "p"}
        pairs = [
            same | {"pairID": n, "sentence_good": f"{n} is odd.", "sentence_bad": f"{n} are odd."}
            for n in range(400)
        ]
        write_lines(folder / "pairs.jsonl", pairs)
        causal_model(folder)
    words = ["evaluate", "--data", str(folder / "pairs.jsonl"), "--no-plots"]
    zhoblimp([*words, "--model", str(folder / "tiny-llama"), "--out", str(out), *executor])


def query_masked(folder: Path, out: Path, executor: list[str]) -> None:
    if not executor:
        write_toy(folder / "toy")
        loaded = tiny_masked().loaded
        save(folder / "tiny-bert", loaded.model, loaded.tokenizer)
    words = ["query", "--method", "tyq", "--data", str(folder / "toy"), "--langs", "en"]
    mlama([*words, "--model", str(folder / "tiny-bert"), "--out", str(out), *executor])


def rank_options(folder: Path, out: Path, executor: list[str]) -> None:
    if not executor:
        rows = [
            f"{group}{name},{group},{place}"
            for group in "xyz"
            for place, name in enumerate(("one", "two", "three", "four"))
        ]
        (folder / "things.csv").write_text(
            "\n".join(["item,group,US", *rows]) + "\n", encoding="utf-8"
        )
        words = ["--n", "2,3", "--rounds", "1", "--questions", "2", "--shots", "1", "--wording"]
        cpopqa(
            [
                "build",
                "--concepts",
                str(folder / "things.csv"),
                *words,
                "{concepts}: {options}?",
                "--out",
                str(folder / "questions"),
            ]
        )
        causal_model(folder)
    shutil.copytree(folder / "questions", out)
    cpopqa(
        [
            "rank",
            "--data",
            str(out),
            "--model",
            str(folder / "tiny-llama"),
            "--label",
            "tiny",
            *executor,
        ]
    )


COMMANDS = {
    "script": rank_facts,
    "zhoblimp": evaluate_pairs,
    "mlama": query_masked,
    "cpopqa": rank_options,
}


def main(folder: Path, command: str) -> None:
    world = Path(os.environ["CLUSTER_WORLD"])
    fluent_mlama.scoring.causal.load_scorer = load_mortal
    COMMANDS[command](folder, folder / "local", [])
    if command == "script":
        (world / "log").rename(world / "log-local")
        (world / "die").touch()
        (world / "fail").touch()
    COMMANDS[command](folder, folder / "ray", RAY)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
