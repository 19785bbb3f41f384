"""Fluent against template of a masked model: the same command, scores as plain forwards give them, resume, no mixing."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from transformers import BertConfig, BertForMaskedLM, XLMRobertaConfig, XLMRobertaForMaskedLM

from fluent_mlama import script, stats
from fluent_mlama.console import UserError
from fluent_mlama.files import open_source
from fluent_mlama.ranking.corrected import corrected_task
from fluent_mlama.records.benchmark import read_benchmark
from fluent_mlama.records.results import read_dump, read_run, read_scores
from fluent_mlama.scoring.typed import TypedScorer, load_typed_scorer
from tests.tiny import byte_level_tokenizer, tiny_model
from tests.tokenizer_families import family

STARTER = Path(__file__).parent.parent / "fixed_data" / "starter"
NAME = "es_P36_template_phrasebook"
SMALL: dict[str, Any] = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24,
}  # fmt: skip
KINDS = {
    "bert-cased": lambda size: BertForMaskedLM(BertConfig(vocab_size=size, **SMALL)),
    "xlm-roberta": lambda size: XLMRobertaForMaskedLM(
        XLMRobertaConfig(vocab_size=size, max_position_embeddings=140, pad_token_id=1, **SMALL)
    ),
}


@pytest.fixture(scope="module", params=list(KINDS))
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a random model of this kind and a tokenizer trained for it."""
    folder = tmp_path_factory.mktemp("masked") / request.param
    tokenizer = family(request.param)
    torch.manual_seed(3)
    made = KINDS[request.param](len(tokenizer))
    made.apply(
        lambda part: (
            torch.nn.init.normal_(part.weight, std=0.4)
            if hasattr(part, "weight") and part.weight.dim() > 1
            else None
        )
    )
    made.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def rank(model: Path, out: Path, *more: str) -> int:
    words = ["-l", "es", "-r", "P36", "--model", str(model), "--data", str(STARTER), *more]
    return script.main([*words, "--protocol", "corrected", "--out", str(out), "--limit", "5"])


def plain_mean(scorer: TypedScorer, left: str, candidate: str, right: str) -> float:
    """One forward: the whole sentence tokenised, the candidate's pieces masked, mean of their log-probabilities."""
    tokenizer, network = scorer.loaded.tokenizer, scorer.loaded.model
    whole = tokenizer(left + candidate + right, return_offsets_mapping=True)
    first, last = len(left), len(left) + len(candidate)
    places = [
        place
        for place, (start, end) in enumerate(whole["offset_mapping"])
        if start < last and end > first and end > start
    ]
    ids = torch.tensor([whole["input_ids"]])
    wanted = ids[0, places].clone()
    ids[0, places] = tokenizer.mask_token_id
    with torch.no_grad():
        rows = network(input_ids=ids).logits[0, places].double().log_softmax(-1)
    return float(rows[torch.arange(len(places)), wanted].mean())


def test_scores_are_means_over_masks_in_the_whole_sentence(model: Path, tmp_path: Path) -> None:
    assert rank(model, tmp_path / "stats") == 0
    scores = read_scores(tmp_path / "stats" / f"{NAME}.scores.parquet")
    task = corrected_task(
        read_benchmark(open_source(STARTER), "es", "P36", "phrasebook"),
        ("template", "phrasebook"),
        limit=5,
    )
    scorer = load_typed_scorer(str(model))
    worst, compared = 0.0, 0
    for question in task.questions[::3]:
        own = scores[
            (scores["row"] == question.row) & (scores["verbalisation"] == question.verbalisation)
        ]
        for found, candidate in zip(own["logprob"], question.request.candidates, strict=True):
            text = candidate.text.strip()
            separator = candidate.text[: -len(text)]
            expected = plain_mean(scorer, question.request.prompt + separator, text, candidate.tail)
            if math.isfinite(found):
                worst, compared = max(worst, abs(found - expected)), compared + 1
    assert compared > 30 and worst < 1e-4
    dump = read_dump(open_source(tmp_path / "stats"), f"{NAME}.tsv")
    assert dump.table["template_rank"].between(1, 32).all()
    assert dump.table["template_prompt_prob"].isna().all()
    assert "|tok:masked|" in read_run(tmp_path / "stats" / f"{NAME}.run.json").signature


def test_a_stopped_run_goes_on_with_the_same_bytes(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fluent_mlama.scoring.typed.REQUESTS_PER_PACK", 3)
    assert rank(model, tmp_path / "stats" / "whole") == 0
    original, scored = TypedScorer.score_pack, []

    def stop(self: TypedScorer, plan: Any, number: int, *rest: Any) -> Any:
        if len(scored) == 2:
            raise KeyboardInterrupt
        scored.append(number)
        return original(self, plan, number, *rest)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(TypedScorer, "score_pack", stop)
        rank(model, tmp_path / "stats" / "stopped")
    resumed: list[int] = []

    def watch(self: TypedScorer, plan: Any, number: int, *rest: Any) -> Any:
        resumed.append(number)
        return original(self, plan, number, *rest)

    monkeypatch.setattr(TypedScorer, "score_pack", watch)
    assert rank(model, tmp_path / "stats" / "stopped") == 0
    assert scored == [0, 1] and resumed == [2, 3]
    for end in ("tsv", "scores.parquet"):
        whole, stopped = (
            (tmp_path / "stats" / name / f"{NAME}.{end}").read_bytes()
            for name in ("whole", "stopped")
        )
        assert whole == stopped


def test_masked_and_causal_are_never_set_beside_each_other(model: Path, tmp_path: Path) -> None:
    rank(model, tmp_path / "stats" / "masked")
    causal, tokenizer = tmp_path / "llama", byte_level_tokenizer()
    tiny_model("llama", len(tokenizer)).save_pretrained(causal)
    tokenizer.save_pretrained(causal)
    rank(causal, tmp_path / "stats" / "causal")
    places = ",".join(str(tmp_path / "stats" / name) for name in ("masked", "causal"))
    where = ["--tables", str(tmp_path / "t"), "--graphs", str(tmp_path / "g")]
    with pytest.raises(UserError, match="masked: scores of a masked model, which cannot be set"):
        stats.main(["compare", "--stats", places, "--resamples", "200", *where])
    one = str(tmp_path / "stats" / "masked")
    assert stats.main(["compare", "--stats", one, "--resamples", "200", *where]) == 0
    values = pd.read_csv(tmp_path / "t" / "compare_values.tsv", sep="\t")
    assert set(values["way"]) == {"template", "phrasebook"}


def test_what_a_masked_model_cannot_do_is_one_line(model: Path, tmp_path: Path) -> None:
    words = ["-l", "es", "-r", "P36", "--model", str(model), "--data", str(STARTER)]
    with pytest.raises(UserError, match="is a masked model, and protocol paper sums"):
        script.main([*words, "--out", str(tmp_path / "stats")])
    with pytest.raises(UserError, match="--device-map is for causal models; leave it out"):
        rank(model, tmp_path / "stats", "--device-map", "auto")
    with pytest.raises(UserError, match="published-fp16 is about sums of causal models"):
        rank(model, tmp_path / "stats", "--logprob-precision", "published-fp16")
