"""Every command that scores, once in its own process and once in two Ray workers, one of which dies in the middle of a pack.

    python -m tests.cluster_world FOLDER

Run by tests/test_cluster.py in a network namespace of its own. Leaves ``FOLDER/local`` and ``FOLDER/ray``, which hold the
same bytes, and in ``FOLDER/world`` who scored which pack and how workers died.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

import fluent.scoring.causal
import script
from fluent.console import UserError
from fluent.records.benchmark import write_benchmark
from probes.cpopqa.__main__ import main as cpopqa
from probes.mlama.__main__ import main as mlama
from probes.zhoblimp.__main__ import main as zhoblimp
from tests.mlama_world import tiny_masked, write_lines, write_toy
from tests.stand_in import city_benchmark
from tests.tiny import byte_level_tokenizer, tiny_model

load_scorer = fluent.scoring.causal.load_scorer
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


def run_all(folder: Path) -> None:
    tokenizer = byte_level_tokenizer()
    causal = save(folder / "tiny-llama", tiny_model("llama", len(tokenizer)), tokenizer)
    masked = tiny_masked().loaded
    bert = save(folder / "tiny-bert", masked.model, masked.tokenizer)
    write_benchmark(city_benchmark(40), folder / "benchmark")
    write_toy(folder / "toy")
    pairs = [
        {"UID": "u", "phenomenon": "p", "pairID": n, "sentence_good": f"It is {n}.", "sentence_bad": f"It are {n}."} for n in range(90)
    ]
    write_lines(folder / "pairs.jsonl", pairs)
    concepts = [
        "item,group,US",
        *(f"{group}{name},{group},{place}" for group in "xyz" for place, name in enumerate(("one", "two", "three", "four"))),
    ]
    (folder / "things.csv").write_text("\n".join(concepts) + "\n", encoding="utf-8")
    words = ["--n", "2,3", "--rounds", "1", "--questions", "3", "--shots", "1", "--wording"]
    cpopqa(["build", "--concepts", str(folder / "things.csv"), *words, "{concepts}: {options}?", "--out", str(folder / "questions")])
    world = Path(os.environ["CLUSTER_WORLD"])
    fluent.scoring.causal.load_scorer = load_mortal
    for name, executor in (("local", []), ("ray", RAY)):
        out = folder / name
        if executor:
            (world / "log").rename(world / "log-local")
            (world / "die").touch()
            (world / "fail").touch()
        words = ["-l", "cs", "--data", str(folder / "benchmark"), "--model", causal, "--token-budget", "128"]
        script.main([*words, "--out", str(out / "stats"), *executor])
        zhoblimp(["evaluate", "--model", causal, "--data", str(folder / "pairs.jsonl"), "--out", str(out / "zh"), "--no-plots", *executor])
        words = ["query", "--method", "tyq", "--model", bert, "--data", str(folder / "toy")]
        mlama([*words, "--out", str(out / "mlama"), "--langs", "en", *executor])
        shutil.copytree(folder / "questions", out / "questions")
        cpopqa(["rank", "--data", str(out / "questions"), "--model", causal, "--label", "tiny", *executor])
    for words in (["--model", str(folder / "nowhere")], ["--model", causal, "--workers", "500"]):
        try:
            script.main(
                [
                    "-l",
                    "cs",
                    "--data",
                    str(folder / "benchmark"),
                    *words,
                    "--out",
                    str(folder / "refused"),
                    *RAY[: 2 + 2 * (len(words) < 4)],
                ]
            )
        except UserError as error:
            with (world / "refused").open("a", encoding="utf-8") as told:
                told.write(f"{error}\n")


if __name__ == "__main__":
    run_all(Path(sys.argv[1]))
