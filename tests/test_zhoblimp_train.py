"""Training from scratch: sizes, tokenizers, checkpoints, resume; a tiny model learns."""

from __future__ import annotations

import json
import math
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fluent_mlama.console import UserError
from fluent_mlama.zhoblimp.__main__ import main
from fluent_mlama.zhoblimp.data import read_pairs
from fluent_mlama.zhoblimp.evaluate import corpus_unigrams
from fluent_mlama.zhoblimp.generate import CONTENT
from fluent_mlama.zhoblimp.train import (
    SIZES,
    checkpoint_steps,
    configuration,
    parse_tokens,
    tokens_of,
)
from fluent_mlama.zhoblimp.training import make_tokenizer

LINES = ["我把书看完了。", "他看书。", "我们看书了。"]


def test_amounts_of_tokens_and_checkpoints() -> None:
    assert [parse_tokens(text) for text in ("3B", "1.5m", "50k", "7")] == [
        3 * 10**9,
        1_500_000,
        50_000,
        7,
    ]
    assert checkpoint_steps(("100", "1k"), 2000, 64) == {2: 128, 16: 1024, 32: 2048}
    assert tokens_of("tokens-000000001024") == 1024 and tokens_of("step5") is None
    for wrong in ("", "3X", "-1", "0"):
        with pytest.raises(UserError, match="is not an amount of tokens"):
            parse_tokens(wrong)
    with pytest.raises(UserError, match="--checkpoints asks for 3000"):
        checkpoint_steps(["3k"], 2000, 64)


@pytest.mark.parametrize("size", ["14M", "70M", "160M", "410M", "1B", "1.4B"])
def test_sizes_are_what_they_are_called(size: str) -> None:
    import torch
    from transformers import GPTNeoXForCausalLM

    with torch.device("meta"):
        model = GPTNeoXForCausalLM(configuration(size, 50304, 2048, 0, 0))
    count = sum(weights.numel() for weights in model.parameters())
    assert count == pytest.approx(parse_tokens(size), rel=0.05)
    assert SIZES["tiny"].width * SIZES["tiny"].layers < SIZES["14M"].width * SIZES["14M"].layers


def test_a_character_tokenizer() -> None:
    tokenizer = make_tokenizer("char", LINES, 100)
    ids = tokenizer("我看书 x")["input_ids"]
    assert (
        len(ids) == 5
        and ids[-1] == tokenizer.unk_token_id
        and len(tokenizer) == 4 + len(set("".join(LINES)))
    )
    assert len(make_tokenizer("char", LINES, 7)) == 7 and tokenizer.bos_token_id == 1


def test_words_by_longest_match_or_by_spaces() -> None:
    listed = make_tokenizer("word", LINES, 100, ["看完", "我们", "看"])
    assert listed.convert_ids_to_tokens(listed("我们看完书")["input_ids"]) == ["我们", "看完", "书"]
    assert listed.convert_ids_to_tokens(listed("我们龙看")["input_ids"]) == ["我们", "<unk>", "看"]
    spaced = make_tokenizer("word", ["Она спала, тут."], 100)
    assert spaced.convert_ids_to_tokens(spaced("тут, она")["input_ids"]) == ["тут", ",", "<unk>"]
    with pytest.raises(UserError, match="give a word list with --words"):
        make_tokenizer("word", ["字" * 80], 100)


def test_byte_pairs_lose_nothing() -> None:
    tokenizer = make_tokenizer("bpe", LINES * 50, 300)
    assert tokenizer.decode(tokenizer("我把龙看完了。")["input_ids"]) == "我把龙看完了。"
    with pytest.raises(UserError, match="byte-level BPE needs at least 260"):
        make_tokenizer("bpe", LINES, 100)


def test_unigrams_of_a_corpus_are_counted_with_the_models_tokenizer() -> None:
    tokenizer = make_tokenizer("char", LINES, 100)
    table = corpus_unigrams(tokenizer, "看书\n\n书\n", "c.txt")
    total = 3 + len(tokenizer)
    ids = tokenizer.convert_tokens_to_ids(["书", "看", "我"])
    assert [round(math.exp(value) * total) for value in table.look_up(ids)] == [
        3,
        2,
        1,
    ] and table.source == "corpus c.txt"


def words(tmp_path: Path, *more: str) -> list[str]:
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("\n".join(LINES * 40), encoding="utf-8")
    common = [
        "--size",
        "tiny",
        "--tokens",
        "1024",
        "--context",
        "16",
        "--batch",
        "4",
        "--save-every",
        "4",
    ]
    return ["train", "--corpus", str(corpus), "--out", str(tmp_path / "out"), *common, *more]


def test_an_interrupted_run_goes_on_to_the_same_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch
    from safetensors.torch import load_file

    from fluent_mlama.zhoblimp.training import Checkpoints

    undisturbed, disturbed = tmp_path / "a", tmp_path / "b"
    for folder in (undisturbed, disturbed):
        folder.mkdir()
    assert main(words(undisturbed, "--checkpoints", "512")) == 0
    whole: Callable[..., None] = Checkpoints.on_step_end

    def stop(self: Any, args: Any, state: Any, control: Any, **more: Any) -> None:
        whole(self, args, state, control, **more)
        if state.global_step == 10:
            raise KeyboardInterrupt

    monkeypatch.setattr(Checkpoints, "on_step_end", stop)
    with pytest.raises(KeyboardInterrupt):
        main(words(disturbed, "--checkpoints", "512"))
    monkeypatch.setattr(Checkpoints, "on_step_end", whole)
    assert main(words(disturbed, "--checkpoints", "512")) == 0
    names = ["tokens-000000000512", "tokens-000000001024"]
    assert [path.name for path in sorted((disturbed / "out").glob("tokens-*"))] == names
    for name in names:
        first, second = (
            load_file(folder / "out" / name / "model.safetensors")
            for folder in (undisturbed, disturbed)
        )
        assert first.keys() == second.keys() and all(
            torch.allclose(first[key], second[key], atol=1e-6) for key in first
        )
    unigrams = json.loads((disturbed / "out" / "unigram.json").read_text(encoding="utf-8"))
    assert unigrams.pop("tokenizer").startswith("13-")
    assert math.isclose(sum(unigrams.values()), 1.0) and min(unigrams.values()) > 0
    with pytest.raises(UserError, match="was begun with seed 0, not 1"):
        main(words(disturbed, "--checkpoints", "512", "--seed", "1"))


def test_a_corpus_shorter_than_one_context_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="shorten --context"):
        main(words(tmp_path, "--context", "100000"))


@pytest.mark.slow
def test_accuracy_rises_with_tokens_on_paradigms_that_were_seen(tmp_path: Path) -> None:
    templates = str(CONTENT / "zh" / "paradigms")
    assert main(
        [
            "generate",
            "--templates",
            templates,
            "--out",
            str(tmp_path / "seen"),
            "-n",
            "200",
            "--seed",
            "1",
        ]
    ) in (
        0,
        1,
    )  # small ones fall short
    tested = read_pairs(CONTENT / "zh" / "pairs")
    held_out = {row.good for rows in tested.values() for row in rows}
    lines = [
        row.good
        for rows in read_pairs(tmp_path / "seen").values()
        for row in rows
        if row.good not in held_out
    ]
    (tmp_path / "corpus.txt").write_text("\n".join(lines), encoding="utf-8")
    out = tmp_path / "model"
    common = ["--size", "tiny", "--tokenizer", "char", "--context", "64", "--batch", "32"]
    budget = ["--tokens", "200k", "--checkpoints", "20k,60k"]
    assert (
        main(
            ["train", "--corpus", str(tmp_path / "corpus.txt"), "--out", str(out), *common, *budget]
        )
        == 0
    )
    results = tmp_path / "results"
    data = [
        "--data",
        str(CONTENT / "zh" / "pairs"),
        "--per-paradigm",
        "10",
        "--unigram",
        str(out / "unigram.json"),
    ]
    assert (
        main(
            [
                "evaluate",
                "--model",
                str(out),
                "--revisions",
                "ALL",
                *data,
                "--out",
                str(results),
                "--linking",
                "lp,mean,slln",
            ]
        )
        == 0
    )
    table = [
        line.split("\t")
        for line in (results / "tables" / "overall.tsv").read_text(encoding="utf-8").splitlines()
    ]
    column = table[0].index("micro")
    accuracy = [float(row[column]) for row in table[1:] if row[1] == "slln:0.5"]
    assert (
        len(accuracy) == 3
        and accuracy == sorted(accuracy)
        and accuracy[-1] > 0.85
        and accuracy[-1] > accuracy[0] + 0.15
    )
    assert (results / "plots" / "training.png").stat().st_size > 5000


@pytest.mark.slow
def test_two_processes_share_the_budget(tmp_path: Path, root: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    launcher = [
        "-m",
        "torch.distributed.run",
        "--nproc_per_node",
        "2",
        "--master_addr",
        "127.0.0.1",
        "--master_port",
        str(port),
    ]
    surroundings = {**os.environ, "ACCELERATE_USE_CPU": "1", "OMP_NUM_THREADS": "1"}
    command = [
        sys.executable,
        *launcher,
        "-m",
        "fluent_mlama.zhoblimp",
        *words(tmp_path, "--checkpoints", "512"),
    ]
    finished = subprocess.run(
        command, cwd=root, env=surroundings, capture_output=True, text=True, check=True
    )
    assert (
        json.loads((tmp_path / "out" / "train.json").read_text(encoding="utf-8"))["tokens_per_step"]
        == 2 * 4 * 16
    )
    assert sorted(path.name for path in (tmp_path / "out").glob("tokens-*")) == [
        "tokens-000000000512",
        "tokens-000000001024",
    ]
    assert finished.stdout.count("2 checkpoints in") == 1
