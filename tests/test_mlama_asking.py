"""Asking a masked model: placement of masks, typed and untyped answers, against a plain loop on a tiny random BERT."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import torch

from fluent_mlama.console import UserError
from fluent_mlama.mlama.asking import (
    CHUNK,
    CausalAsker,
    ChunkStore,
    MaskedAsker,
    Row,
    displaced_layout,
    displaced_words,
    with_gold,
)
from fluent_mlama.mlama.items import Question, make_questions
from fluent_mlama.mlama.query import MASKS
from fluent_mlama.reader import MLama
from fluent_mlama.records.facts import Triple
from fluent_mlama.scoring.masked import MaskedScorer
from fluent_mlama.scoring.masked_contract import PieceScore, TypedQuery, TypedResult
from tests.mlama_world import tiny_masked, write_toy
from tests.stand_in import StandInScorer

CANDIDATES = ("Ardish", "Bel", "Lumen", "Ostby", "Ostia", "Tarnow Hill")


def question(left: str, right: str, gold: str = "Ostby", lineid: int = 0) -> Question:
    return Question(Triple("en", "P36", lineid, "s", gold, "Q1", "Q2"), left, right)


QUESTIONS = [
    question("The capital of Ardland is ", " ."),
    question("Ardland speaks ", ", is in Ost .", "Bel", 1),
]


def ask(
    scorer: MaskedScorer,
    questions: Sequence[Question] = QUESTIONS,
    candidates: Sequence[str] = CANDIDATES,
    **changes: object,
) -> list[Row]:
    options = {"untyped": False, "max_masks": None, "top": 10, "compat": False} | changes
    with tempfile.TemporaryDirectory() as folder:
        options["kept"] = ChunkStore(Path(folder), "")
        return MaskedAsker(scorer, candidates, **options).ask(questions, lambda _: None)  # type: ignore[arg-type]


def plain(scorer: MaskedScorer, asked: Question, label: str) -> float:
    """One forward for one candidate, no batch, no padding."""
    tokenizer, model = scorer.loaded.tokenizer, scorer.loaded.model
    pieces = tokenizer(label, add_special_tokens=False)["input_ids"]
    left, right = (
        tokenizer(text, add_special_tokens=False)["input_ids"] for text in (asked.left, asked.right)
    )
    ids = [2, *left, *[4] * len(pieces), *right, 3]
    logprobs = model(torch.tensor([ids])).logits[0].log_softmax(-1)
    return sum(
        logprobs[1 + len(left) + place, piece].item() for place, piece in enumerate(pieces)
    ) / len(pieces)


def test_scores_are_those_of_a_plain_loop() -> None:
    scorer = tiny_masked()
    for row, asked in zip(ask(scorer), QUESTIONS, strict=True):
        loop = {label: plain(scorer, asked, label) for label in CANDIDATES}
        assert dict(zip(row["top"], row["top_scores"], strict=True)) == pytest.approx(
            loop, abs=1e-5
        )
        assert row["prediction"] == max(loop, key=lambda label: loop[label])
        assert row["gold_score"] == pytest.approx(loop[row["gold"]], abs=1e-5)
        assert row["rank"] == 1 + sum(value > loop[row["gold"]] for value in loop.values())


def test_batches_padding_and_the_order_of_candidates_change_nothing() -> None:
    one = ask(tiny_masked())
    for other in (
        ask(tiny_masked(token_budget=1)),
        ask(tiny_masked(), candidates=CANDIDATES[::-1]),
        [ask(tiny_masked(), [q])[0] for q in QUESTIONS],
    ):
        for left, right in zip(one, other, strict=True):
            assert left["top"] == right["top"]
            assert left["top_scores"] == pytest.approx(right["top_scores"], abs=1e-5)


def test_more_questions_than_a_chunk_are_answered_alike() -> None:
    scorer = tiny_masked()
    rows = ask(scorer, QUESTIONS * CHUNK)
    assert len(rows) == 2 * CHUNK
    assert rows[0]["top"] == rows[-2]["top"] == ask(scorer)[0]["top"]


def test_packed_weights_give_the_same_scores() -> None:
    loaded = tiny_masked().loaded
    plain_rows = ask(MaskedScorer(loaded))
    for left, right in zip(plain_rows, ask(MaskedScorer(loaded, packed=True)), strict=True):
        assert left["top_scores"] == pytest.approx(right["top_scores"], abs=1e-5)


class Toy:
    """Distributions given by hand in place of a model: the oracle's t_1 and t_2."""

    VOCABULARY = {"a": (1,), "b1 b2": (2, 3), "c1 c2": (4, 5), "z": (6,), "b1 c2": (2, 5)}
    T = {
        1: [{1: 0.20, 2: 0.30, 4: 0.05, 6: 0.45}],
        2: [{1: 0.10, 2: 0.50, 4: 0.30, 6: 0.10}, {3: 0.08, 5: 0.60, 6: 0.32}],
    }
    before: tuple[int, ...] = ()

    class loaded:
        name = "toy"

        class tokenizer:
            unk_token_id = None

            @staticmethod
            def decode(ids: Sequence[int]) -> str:
                return {ids: text for text, ids in Toy.VOCABULARY.items()}[tuple(ids)]

    def pieces(self, texts: Sequence[str]) -> list[tuple[int, ...]]:
        return [self.VOCABULARY[text] for text in texts]

    def typed(self, queries: Sequence[TypedQuery]) -> list[TypedResult]:
        untyped: Mapping[int, PieceScore] = {
            k: PieceScore(
                *zip(
                    *(
                        (token, math.log(p))
                        for token, p in (max(mask.items(), key=lambda e: e[1]) for mask in masks)
                    ),
                    strict=True,
                )
            )
            for k, masks in self.T.items()
        }
        return [
            TypedResult(tuple(self._score(text) for text in query.candidates), untyped)
            for query in queries
        ]

    def _score(self, text: str) -> PieceScore:
        ids = self.VOCABULARY[text]
        return PieceScore(
            ids,
            tuple(math.log(mask[token]) for mask, token in zip(self.T[len(ids)], ids, strict=True)),
        )


def test_typed_query_on_distributions_given_by_hand() -> None:
    row = ask(Toy(), [question("", "", "c1 c2")], ("a", "b1 b2", "c1 c2"))[0]  # type: ignore[arg-type]
    assert (row["prediction"], row["rank"], row["tied"]) == ("c1 c2", 1, 0)
    assert row["top_scores"] == pytest.approx([-0.857399, -1.609438, -1.609438], abs=1e-6)
    row = ask(Toy(), [question("", "", "b1 b2")], ("b1 b2", "a"))[0]  # type: ignore[arg-type]
    assert (row["top"], row["tied"], row["rank"], row["correct"]) == (["a", "b1 b2"], 1, 2, False)


def test_untyped_query_on_distributions_given_by_hand() -> None:
    row = ask(Toy(), [question("", "", "c1 c2")], ("a", "b1 b2", "c1 c2"), untyped=True)[0]  # type: ignore[arg-type]
    assert row["top"] == ["b1 c2", "z"]
    assert row["top_scores"] == pytest.approx([-0.601986, -0.798508], abs=1e-6)
    assert not row["correct"]


def test_untyped_answers_are_the_likeliest_piece_at_each_of_one_to_k_masks() -> None:
    scorer = tiny_masked()
    row = ask(scorer, QUESTIONS[:1], ("Bel", "Tarnow Hill Lumen", "Ostby"), untyped=True)[
        0
    ]  # no candidate of two pieces: t_2 is asked all the same
    assert len(row["top"]) == 3
    ids = [
        2,
        *scorer.pieces([QUESTIONS[0].left])[0],
        4,
        4,
        *scorer.pieces([QUESTIONS[0].right])[0],
        3,
    ]
    logprobs = scorer.loaded.model(torch.tensor([ids])).logits[0].log_softmax(-1)
    where = 1 + len(scorer.pieces([QUESTIONS[0].left])[0])
    best = logprobs[where : where + 2].max(-1).values.mean().item()
    assert any(score == pytest.approx(best, abs=1e-5) for score in row["top_scores"])


def layout(scorer: MaskedScorer, left: str, right: str, candidate: str) -> list[str]:
    """Tokens that the scorer feeds for a candidate."""
    seen: list[list[int]] = []
    scorer.network.run = lambda copies, _: seen.extend(copy.ids for copy in copies)  # type: ignore[method-assign]
    scorer.typed([TypedQuery(left, right, (candidate,))])
    del scorer.network.run  # type: ignore[attr-defined]
    return scorer.loaded.tokenizer.convert_ids_to_tokens(seen[0])[1:-1]


def test_masks_stand_where_the_object_stood() -> None:
    scorer = tiny_masked()
    assert layout(scorer, "東京は", "の首都です。", "西国")[2:6] == ["は", "[MASK]", "[MASK]", "の"]
    assert layout(scorer, "né in l'", ".", "Tarnow Hill")[-5:] == [
        "l",
        "'",
        "[MASK]",
        "[MASK]",
        ".",
    ]
    assert layout(scorer, "(born ", ").", "Ostby")[-3:] == ["[MASK]", ")", "."]


def displaced(left: str, right: str, masks: int) -> list[str]:
    return [word for word, _ in displaced_words(left, right, masks)]


def test_displaced_masks_are_those_of_the_published_evaluator() -> None:
    assert displaced("東京は", "の首都です。", 1) == [
        "東",
        "京",
        "[MASK]",
        "はの",
        "首",
        "都",
        "です。",
    ]
    assert displaced("東京は", "の首都です。", 2) == [
        "東",
        "京",
        "[MASK]",
        "は",
        "[MASK]",
        "の",
        "首",
        "都",
        "です。",
    ]
    assert displaced("เกิดใน", "ครับ", 2) == ["[MASK]", "เกิดใน", "[MASK]", "ครับ"]
    assert displaced("l'", ".", 2) == ["[MASK]", "l'", "[MASK]", "."]
    assert displaced("(born ", ").", 1) == ["(born", "[MASK]", ")."]


def test_displaced_words_are_not_split_at_punctuation_and_become_unknown() -> None:
    scorer = tiny_masked()
    tokenizer = scorer.loaded.tokenizer
    ids, places = displaced_layout(
        tokenizer, lambda word: scorer.pieces([word])[0], "The capital is l'", ").", 2
    )
    assert tokenizer.convert_ids_to_tokens(list(ids)) == [
        "The",
        "capital",
        "is",
        "[MASK]",
        "[UNK]",
        "[MASK]",
        "[UNK]",
    ]
    assert places == (3, 5)


def test_compat_changes_the_scores_only_where_the_mask_touches_a_word() -> None:
    scorer = tiny_masked()
    apart, touching = question("Ardland speaks ", " ."), question("Ardland speaks l'", ".")
    for asked, same in ((apart, True), (touching, False)):
        usual, compat = (
            ask(scorer, [asked], compat=flag)[0]["top_scores"] for flag in (False, True)
        )
        assert (usual == pytest.approx(compat, abs=1e-6)) is same


def test_unknown_pieces_do_not_compete_and_too_long_candidates_are_told() -> None:
    scorer = tiny_masked()
    row = ask(scorer, [question("Ardland speaks ", " .", "中文")], (*CANDIDATES, "中文"))[0]
    assert (row["gold_status"], row["rank"], row["correct"], row["gold_score"]) == (
        "unknown",
        None,
        False,
        None,
    )
    assert "中文" not in row["top"]
    row = ask(scorer, [question("Ardland speaks ", " .", "Tarnow Hill")], max_masks=1)[0]
    assert (row["gold_status"], row["gold_pieces"], row["rank"]) == ("too-long", 2, None)
    with pytest.raises(UserError, match="none of the 1 candidates"):
        ask(scorer, candidates=("中文",))


def test_candidates_of_the_same_pieces_are_told_as_a_tie() -> None:
    row = ask(tiny_masked(), QUESTIONS[:1], ("Ostby", "Ost  by", "Ost by", "Ostby "))[0]
    assert row["tied"] == 1
    assert row["top"][:2] in (["Ost  by", "Ost by"], ["Ostby", "Ostby "])


def test_objects_missing_from_the_candidates_are_added() -> None:
    competing, added = with_gold(("b",), [question("", "", "a")])
    assert (competing, added) == (("a", "b"), {"a"})


def test_questions_leave_out_subjects_that_hold_the_mask(tmp_path: Path) -> None:
    facts = {
        ("en", "P36"): {
            0: ("The [MASK]", "Q1", "Ostby", "Q2"),
            1: ("A [Y] B", "Q3", "Ostby", "Q2"),
            2: ("<mask>", "Q4", "Ostby", "Q2"),
        }
    }
    data = MLama(write_toy(tmp_path, facts, {"en": {"P36": "The capital of [X] is [Y] ."}}))
    found = make_questions(data, "en", "P36", masks=MASKS)
    assert found.left_out == {"mask-in-subject": 2}
    assert [(one.left, one.right) for one in found.questions] == [
        ("The capital of A [Y] B is ", " .")
    ]


def test_causal_scores_are_means_over_the_object_or_over_object_and_tail(tmp_path: Path) -> None:
    asked = [question("The capital of Ardland is ", " .", "Ostby")]
    for whole in (False, True):
        scorer = StandInScorer()
        row = CausalAsker(scorer, CANDIDATES, whole=whole, top=6, packs=tmp_path / "p").ask(
            asked, lambda _: None
        )[0]
        text = " Ostby" + (" ." if whole else "")
        logprobs = [
            scorer._logprob("stand-in" + "The capital of Ardland is" + "|" + text[: end + 1])
            for end in range(len(text))
        ]
        assert row["gold_score"] == pytest.approx(sum(logprobs) / len(text))
        assert row["gold_pieces"] == len(" Ostby")
