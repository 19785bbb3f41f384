"""Planted knowledge for every family of tokenizers: a model that remembers the very token sequences of its training text.

It gives the remembered token where all else agrees, and nothing away where one token differs, so that one token too
many, too few or cut otherwise loses the fact.
"""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fluent_mlama.scoring.causal import make_plan
from fluent_mlama.scoring.contract import Candidate, Request
from fluent_mlama.scoring.masked import MaskedScorer
from fluent_mlama.scoring.masked_contract import TypedQuery
from fluent_mlama.scoring.models import LoadedModel
from fluent_mlama.scoring.tokens import PromptTokeniser, SlotTokeniser, readable, spellings
from tests.tokenizer_families import FAMILIES, facts, family, natural, sentences, unknown_is_bos

END_MARKS = {"roberta", "roberta-prefix-space", "llama2-end-mark", "t5", "xlm-roberta"}
FRONTS = {"gpt2": ("0", "1"), "t5": ("0", "0"), "xglm": ("</s>", "</s>"), "bert-cased": ("[CLS]", "[CLS]"),
          "metaspace-unsplit": ("</s><s>", "</s><s>")}  # fmt: skip


class Memory(torch.nn.Module):
    """A masked model that has seen some sequences and nothing else."""

    dtype = torch.float32

    def __init__(self, seen: list[list[int]], mask: int, vocabulary: int) -> None:
        super().__init__()
        self.seen, self.mask = seen, mask
        self.config = SimpleNamespace(vocab_size=vocabulary, get_text_config=lambda: self.config)
        self.base_model = self.embeddings = torch.nn.Embedding(vocabulary, 1)

    def get_input_embeddings(self) -> torch.nn.Embedding:
        return self.embeddings

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> Any:
        logits = torch.zeros((*input_ids.shape, self.config.vocab_size))
        for row, (ids, length) in enumerate(
            zip(input_ids.tolist(), attention_mask.sum(1).tolist(), strict=True)
        ):
            for known in self.seen:
                if len(known) == length and all(
                    a in (b, self.mask) for a, b in zip(ids, known, strict=False)
                ):
                    logits[row, range(length), known] += 20
        return SimpleNamespace(logits=logits)


def remembering(name: str) -> MaskedScorer:
    tokenizer = family(name)
    model = Memory(natural(tokenizer, sentences()), tokenizer.mask_token_id, len(tokenizer))
    return MaskedScorer(
        LoadedModel(name, "memory", model, tokenizer, torch.device("cpu"), "float32")
    )


@pytest.mark.parametrize("name", FAMILIES)
def test_a_masked_model_knows_what_it_saw(name: str) -> None:
    scorer = remembering(name)
    for lang, known in facts().items():
        candidates = tuple(dict.fromkeys(city for _, city, _ in known))
        results = scorer.typed(
            [TypedQuery(left, right, candidates, untyped=True) for left, _, right in known]
        )
        for (_, city, _), result in zip(known, results, strict=True):
            means = [score.mean for score in result.candidates]
            best = candidates[means.index(max(means))]
            assert (best, means.count(max(means))) == (city, 1), lang


@pytest.mark.parametrize("name", FAMILIES)
def test_a_causal_model_gets_what_it_saw_and_the_object_is_what_is_scored(name: str) -> None:
    tokenizer = family(name)
    tokeniser = PromptTokeniser(tokenizer)
    seen = natural(tokenizer, sentences())
    fronts = tuple(tokeniser.prefix_name(how) for how in ("separate", "joint"))  # type: ignore[arg-type]
    assert fronts == FRONTS.get(name, fronts)
    for known in facts().values():
        for left, city, right in known:
            prompt = left.rstrip()
            request = Request(prompt, (Candidate(left[len(prompt) :] + city, right),))
            (tokens,) = tokeniser.tokenise([request], "joint")[0].candidates
            own = list(tokens.sequence[len(tokeniser.prefix("joint")) :])
            assert any(
                own == ids[len(ids) - len(own) - len(tokeniser.text.back) :][: len(own)]
                for ids in seen
            )
            scored = tokenizer.decode(
                list(tokens.scored[: len(tokens.scored) - tokens.tail_tokens])
            )
            if name != "bert-uncased":
                assert city.replace(" ", "") in scored.replace(" ", "")


@pytest.mark.parametrize("name", FAMILIES)
def test_nothing_stands_between_prompt_and_form(name: str) -> None:
    tokenizer = family(name)
    tokeniser = PromptTokeniser(tokenizer)
    (tokens,) = tokeniser.tokenise(
        [Request("The capital of Peru is", (Candidate("Lima"),))], "separate"
    )
    bare = tokenizer("The capital of Peru is", add_special_tokens=False)["input_ids"]
    form = tokenizer("Lima", add_special_tokens=False)["input_ids"]
    assert tokens.candidates[0].sequence == (*tokeniser.prefix("separate"), *bare, *form)
    if name in END_MARKS:
        assert tokenizer.eos_token_id not in tokens.candidates[0].sequence


@pytest.mark.parametrize(
    "name", ["llama3", "llama2-legacy", "llama2", "gemma", "metaspace-always", "xglm"]
)
def test_a_prompt_that_begins_with_the_prefix_gets_no_second_one(name: str) -> None:
    tokeniser = PromptTokeniser(family(name))
    (first,) = tokeniser.prefix("joint")
    text = tokeniser.tokenizer.convert_ids_to_tokens(first) + "The capital"
    for how in ("separate", "joint"):
        tokens = tokeniser.tokenise([Request(text, (Candidate(" is"),))], how)[0]  # type: ignore[arg-type]
        assert (tokens.prompt.count(first), tokens.candidates[0].sequence.count(first)) == (1, 1)


def test_a_prefix_further_on_in_a_prompt_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    tokeniser = PromptTokeniser(family("llama3"))
    requests = [Request(f"One <s> {word}", (Candidate(" is"),)) for word in ("two", "three")]
    tokeniser.tokenise(requests, "separate")
    tokeniser.tokenise(requests, "joint")
    assert capsys.readouterr().err.count("holds '<s>' as text") == 1


def test_an_unknown_word_is_no_prefix_although_the_same_token_stands_for_both(
    capsys: pytest.CaptureFixture[str],
) -> None:
    tokeniser = PromptTokeniser(unknown_is_bos())
    assert (tokeniser.text.front, tokeniser.text.back) == ((0,), ())
    for prompt, prefixes in {"Qq": 2, "Qq The": 2, "The Qq": 2, "<e> The": 1}.items():
        for how in ("separate", "joint"):
            (tokens,) = tokeniser.tokenise([Request(prompt, (Candidate(" capital"),))], how)  # type: ignore[arg-type]
            assert tokens.candidates[0].sequence.count(0) == prefixes
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("name", "prompt", "form", "tail"), [
    ("unigram-bytes", "是", "法语", "。"),  # one run of unknown characters, whose bytes share a span
    ("unigram-bytes", "Lima 是", "л法", "语です。"),
    ("gemma", "是", "拿大", "л"),
])  # fmt: skip
def test_bytes_belong_to_the_character_that_they_are_of(
    name: str, prompt: str, form: str, tail: str
) -> None:
    tokenizer = family(name)
    for end in ("", tail):
        (tokens,) = (
            PromptTokeniser(tokenizer)
            .tokenise([Request(prompt, (Candidate(form, end),))], "joint")[0]
            .candidates
        )
        own = tokens.scored[: len(tokens.scored) - tokens.tail_tokens]
        assert (tokenizer.decode(list(own)), tokens.straddles) == (form, False)
    (slot,) = SlotTokeniser(tokenizer).tokenise([(prompt, tail, (form,))])
    assert tokenizer.decode(list(slot.filling.pieces[0])) == form


def test_unknown_pieces_that_cannot_be_told_apart_are_the_forms() -> None:
    tokenizer = family("slow-bert")  # 语, < and / are unknown, and one span
    tokeniser = PromptTokeniser(tokenizer)
    (tokens,) = tokeniser.tokenise([Request("l'", (Candidate("法语", "</s>"),))], "joint")[
        0
    ].candidates
    assert tokenizer.convert_ids_to_tokens(list(tokens.scored)) == [
        "法",
        *["[UNK]"] * 3,
        "s",
        "[UNK]",
    ]
    assert tokens.tail_tokens == 2


@pytest.mark.parametrize("how", ["separate", "joint"])
def test_a_form_of_no_tokens_is_not_scored_by_its_tail(how: Any) -> None:
    tokeniser = PromptTokeniser(family("bert-cased"))
    requests = [
        Request("The capital is", (Candidate(form, "."), Candidate(" Lima", ".")))
        for form in (" \u200b", " Rome")
    ]
    plan = make_plan(requests, how, tokeniser, token_budget=100, max_length=None)
    assert list(plan.unscorable) == [0] and "has no tokens after prompt" in plan.unscorable[0]


def test_a_tokenizer_that_takes_special_tokens_for_text_does_so_in_every_mode() -> None:
    tokenizer = copy.deepcopy(family("gpt2"))
    tokenizer.split_special_tokens = True
    tokeniser = PromptTokeniser(tokenizer)
    (tokens,) = tokeniser.tokenise([Request("The</s>", (Candidate("Lima"),))], "joint")[
        0
    ].candidates
    assert (
        list(tokens.sequence[1:]) == tokenizer("The</s>Lima")["input_ids"]
        and 2 not in tokens.sequence
    )


def test_candidates_of_equal_length_share_a_forward_wherever_their_context_is_the_same() -> None:
    scorer = remembering("roberta")
    fed: list[int] = []
    run = scorer.network.run
    scorer.network.run = lambda copies, on_batch=None: (
        fed.append(len(copies)),
        run(copies, on_batch),
    )[1]  # type: ignore[method-assign]
    known = facts()["en"]
    candidates = tuple(dict.fromkeys(city for _, city, _ in known))
    results = scorer.typed([TypedQuery(left, right, candidates) for left, _, right in known])
    lengths = {len(score.token_ids) for score in results[0].candidates}
    assert fed == [len(known) * len(lengths)] and len(lengths) < len(candidates)


TEXT = st.lists(
    st.sampled_from(
        [
            *"  aZdß1٣.,'’-–;\n\t\u00a0\u200b\u3000加は\U0001f600e\u0301´¨",
            "<mask>",
            " Lima",
            "San José",
            "Москва",
        ]
    ),
    max_size=8,
).map("".join)


@pytest.mark.parametrize(
    "name", [name for name in FAMILIES if SlotTokeniser(family(name)).text.cuts_before_blanks]
)
@given(left=TEXT, right=TEXT, texts=st.lists(TEXT, min_size=1, max_size=3, unique=True))
@settings(max_examples=60, deadline=None)
def test_ids_put_together_from_parts_are_those_of_the_whole_sentence(
    name: str, left: str, right: str, texts: list[str]
) -> None:
    quick, slow = SlotTokeniser(family(name)), SlotTokeniser(family(name))
    slow.text.cuts_before_blanks = False
    slots = [
        ("The capital of " + left, right + " is big.", tuple(texts)),
        (left, right, tuple(texts)),
    ]
    for one, other in zip(quick.tokenise(slots), slow.tokenise(slots), strict=True):
        assert one.filling.pieces == other.filling.pieces
        together = {
            (one.left + a, k, b + one.right): numbers
            for (a, k, b), numbers in one.filling.contexts.items()
        }
        assert together == dict(other.filling.contexts)


def test_a_blank_that_is_a_piece_of_its_own_is_masked_with_the_candidate() -> None:
    tokenizer = family("xlm-roberta")
    city = facts()["zh"][0][1]
    (slot,) = SlotTokeniser(tokenizer).tokenise([("La capital de Peru es ", " 。", (city, "Lima"))])
    first, second = (
        tokenizer.convert_ids_to_tokens(list(pieces)) for pieces in slot.filling.pieces
    )
    assert first[0] == "▁" and second[0].startswith("▁") and "".join(first[1:]) == city
    assert len({(left, right) for left, _, right in slot.filling.contexts}) == 1


def test_tokens_are_shown_as_text_and_parts_of_a_character_by_their_bytes() -> None:
    text = "Питер 拿 é"
    for name in ("roberta", "llama2-legacy"):
        tokenizer = family(name)
        shown = spellings(tokenizer, tokenizer(text, add_special_tokens=False)["input_ids"])
        assert not any(character in "".join(shown) for character in "ĠÐÑ▁\ufffd")
        assert "<0xE6>" in "".join(shown) and "<0xBF>(拿)" in shown
    tokenizer = family("roberta")
    assert spellings(tokenizer, [0, *tokenizer.convert_tokens_to_ids(["Ð", "Ġ"])]) == [
        "<s>",
        "<0xD0>",
        " ",
    ]
    assert readable(tokenizer, tokenizer.convert_tokens_to_ids(["Ð"])) == "<0xD0>"
