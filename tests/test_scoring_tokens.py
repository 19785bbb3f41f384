"""Tokenisation on the paper's own tokenizer: ids of Llama-2 made by an independent implementation (fixtures/)."""

from __future__ import annotations

import copy
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, processors
from transformers import PreTrainedTokenizerFast

from fluent_mlama.scoring.causal import CausalScorer
from fluent_mlama.scoring.contract import Candidate, Request
from fluent_mlama.scoring.tokens import PromptTokeniser, TextTokeniser
from tests.tiny import sentencepiece_like_tokenizer

FIXTURE = json.loads(
    (Path(__file__).parent / "fixtures" / "llama2_ids.json").read_text(encoding="utf-8")
)
BLANK = FIXTURE["pieces"]["▁"]
PROMPTS = {entry["text"]: tuple(entry["ids"]) for entry in FIXTURE["prompts"]}
TEXT = st.lists(
    st.sampled_from(
        [
            *"  aZдß1٣.,'’-–\n\t\u00a0\u200b加\U0001f600e\u0301<|im_start|>",
            "<|im_start|>",
            " d'Ivoire",
        ]
    ),
    max_size=8,
).map("".join)
FORMS = {entry["text"]: tuple(entry["ids"]) for entry in FIXTURE["forms"]}


@cache
def llama2() -> PreTrainedTokenizerFast:
    """A fast tokenizer over the fixture's pieces and merges: dummy prefix always, byte fallback, BOS in front by default."""
    pieces: dict[str, int] = FIXTURE["pieces"]
    tokenizer = Tokenizer(
        models.BPE(
            pieces,
            [tuple(pair) for pair in FIXTURE["merges"]],
            byte_fallback=True,
            fuse_unk=True,
            unk_token="<unk>",
        )
    )
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 1)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )


def tokenise(prompt: str, *candidates: Any, tokenisation: Any = "separate") -> Any:
    texts = tuple(text if isinstance(text, Candidate) else Candidate(text) for text in candidates)
    return PromptTokeniser(llama2()).tokenise([Request(prompt, texts)], tokenisation)[0]


@pytest.mark.parametrize("prompt", PROMPTS)
def test_separate_is_prompt_with_bos_then_forms_alone(prompt: str) -> None:
    tokens = tokenise(prompt, *FORMS)
    assert tokens.prompt == PROMPTS[prompt]
    for form, candidate in zip(FORMS, tokens.candidates, strict=True):
        assert candidate.scored == FORMS[form]
        assert candidate.sequence == PROMPTS[prompt] + FORMS[form]
        assert (candidate.start, candidate.straddles) == (len(PROMPTS[prompt]), False)


def test_trailing_blank_makes_a_doubled_blank_in_separate_mode() -> None:
    tokens = tokenise("Париж находится в ", "Германии")
    start = tokens.candidates[0].start
    pieces = llama2().convert_ids_to_tokens(tokens.candidates[0].sequence[start - 1 : start + 1])
    assert pieces == ["▁", "▁Герма"]
    without = tokenise("Париж находится в", "Германии").candidates[0]
    assert BLANK not in without.sequence
    assert without.scored == tokens.candidates[0].scored


def test_chinese_form_gets_a_blank_of_its_own_in_separate_mode_only() -> None:
    assert tokenise("加拿大的官方语言是", "法语").candidates[0].scored[0] == BLANK
    joint = tokenise("加拿大的官方语言是", "法语", tokenisation="joint")
    assert BLANK not in joint.candidates[0].scored
    assert llama2().convert_ids_to_tokens(joint.candidates[0].scored) == ["法", "语"]


@pytest.mark.parametrize(
    "entry", FIXTURE["joined"], ids=lambda entry: entry["prompt"] + "|" + entry["form"]
)
def test_joint_is_the_whole_text_with_bos_once(entry: dict[str, Any]) -> None:
    candidate = tokenise(entry["prompt"], entry["form"], tokenisation="joint").candidates[0]
    assert candidate.sequence == tuple(entry["ids"])
    assert candidate.sequence.count(1) == 1
    crosses = entry["prompt"].endswith(" ") or entry["form"] == "ld"
    assert candidate.straddles == crosses
    if not crosses:
        assert candidate.sequence[: candidate.start] == PROMPTS[entry["prompt"]]


def test_prompt_with_and_without_trailing_blank_are_one_in_joint_mode() -> None:
    with_blank = tokenise("Париж находится в ", "Германии", tokenisation="joint").candidates[0]
    without = tokenise("Париж находится в", " Германии", tokenisation="joint").candidates[0]
    assert (with_blank.sequence, with_blank.start) == (without.sequence, without.start)
    assert (with_blank.straddles, without.straddles) == (True, False)


def test_tail_in_joint_mode_is_what_begins_behind_the_form() -> None:
    candidate = tokenise(
        "加拿大的官方语言是", Candidate("法语", "是"), tokenisation="joint"
    ).candidates[0]
    assert llama2().convert_ids_to_tokens(candidate.scored) == ["法", "语", "是"]
    assert candidate.tail_tokens == 1


def test_character_of_several_byte_tokens_is_scored_whole() -> None:
    candidate = tokenise("加", "拿大", tokenisation="joint").candidates[0]
    assert llama2().convert_ids_to_tokens(candidate.scored) == ["<0xE6>", "<0x8B>", "<0xBF>", "大"]
    assert not candidate.straddles


def test_own_tokenizer_of_the_same_kind_behaves_alike() -> None:
    tokeniser = PromptTokeniser(sentencepiece_like_tokenizer(words=(" ab", "cd")))
    separate, joint = (
        tokeniser.tokenise([Request("ab ", (Candidate("cd"),))], how)[0]
        for how in ("separate", "joint")
    )
    spell = tokeniser.tokenizer.convert_ids_to_tokens
    assert spell(list(separate.candidates[0].sequence)) == ["<s>", "▁ab", "▁", "▁", "cd"]
    assert spell(list(joint.candidates[0].sequence)) == ["<s>", "▁ab", "▁", "cd"]
    assert spell(list(joint.candidates[0].scored)) == ["cd"]


@pytest.mark.model
@given(
    prompt=TEXT,
    texts=st.lists(
        st.tuples(TEXT.filter(bool), st.sampled_from(["", ".", "\n  x"])), min_size=1, max_size=3
    ),
)
@settings(max_examples=150, deadline=None)
def test_joint_ids_taken_apart_before_a_blank_are_those_of_the_whole(
    smollm2: CausalScorer, prompt: str, texts: list[tuple[str, str]]
) -> None:
    quick = smollm2.tokeniser
    assert quick.text.cuts_before_blanks
    slow = copy.copy(quick)
    slow.text = copy.copy(quick.text)
    slow.text.cuts_before_blanks = False
    request = Request(prompt, tuple(Candidate(text, tail) for text, tail in texts))
    assert quick.tokenise([request], "joint") == slow.tokenise([request], "joint")


def test_only_a_pattern_that_cuts_before_every_blank_lets_joint_ids_be_taken_apart() -> None:
    assert not PromptTokeniser(llama2()).text.cuts_before_blanks
    assert not PromptTokeniser(
        sentencepiece_like_tokenizer(words=(" ab", "cd"))
    ).text.cuts_before_blanks


@pytest.mark.model
def test_joint_tokenises_a_form_once_for_all_prompts(
    smollm2: CausalScorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    alone = TextTokeniser.alone
    monkeypatch.setattr(
        TextTokeniser, "alone", lambda self, texts: asked.extend(texts) or alone(self, texts)
    )
    requests = [
        Request(f"Town {number} is", (Candidate(" Paris"), Candidate(" Rome")))
        for number in range(9)
    ]
    smollm2.tokeniser.tokenise(requests, "joint")
    assert sorted(asked) == sorted([" Paris", " Rome", *(request.prompt for request in requests)])
