"""Linking functions against the worked values of the literature's formulas, and their identities."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fluent_mlama.console import UserError
from fluent_mlama.linking import UNSEEN, count_unigrams, evidence, parse_linking, read_unigrams

WORKED = {
    "lp": (-6.5, -6.0),
    "mean": (-1.625, -2.0),
    "slln:0.1": (-5.658579, -5.375751),
    "slln:0.3": (-4.288401, -4.315339),
    "slln": (-3.25, -3.464102),
    "slln:0.9": (-1.866635, -2.232246),
    "log": (-4.038677, -4.328085),
    "log:10": (-2.463001, -2.339227),
    "log:100": (-1.399538, -1.294574),
    "penlp": (-4.699378, -4.766507),
    "normlp": (-0.295455, -0.333333),
    "slor": (3.875, 4.0),
    "morcela": (3.875, 4.0),
    "morcela:0.5:0": (1.125, 1.0),
    "morcela:0.5:4": (2.125, 2.333333),
    "morcela:1:20": (8.875, 10.666667),
}
LOGPROBS = ([-2, -1, -3, -0.5], [-1.5, -2.5, -2])
UNIGRAMS = ([-6, -5, -7, -4], [-5.5, -6.5, -6])


@pytest.mark.parametrize("name", WORKED)
def test_worked_values(name: str) -> None:
    known = evidence(
        [sum(side) for side in LOGPROBS],
        [len(side) for side in LOGPROBS],
        unigram=[sum(side) for side in UNIGRAMS],
    )
    assert parse_linking(name).score(known) == pytest.approx(WORKED[name], abs=5e-7)


def test_the_exponent_at_which_slln_turns() -> None:
    known = evidence([-6, -4.8], [6, 4])
    turning = math.log(6 / 4.8) / math.log(6 / 4)
    assert turning == pytest.approx(0.550340, abs=1e-6)
    for exponent, good_wins in (
        (0, False),
        (0.5, False),
        (turning - 1e-6, False),
        (turning + 1e-6, True),
        (0.8, True),
        (1, True),
    ):
        good, bad = parse_linking(f"slln:{exponent!r}").score(known)
        assert (good > bad) == good_wins


@settings(deadline=None, max_examples=30)
@given(
    st.lists(
        st.tuples(st.floats(-200, -0.01), st.integers(1, 60), st.floats(-500, -0.1)),
        min_size=1,
        max_size=6,
    ),
    st.floats(-5, 5),
)
def test_identities(strings: list[tuple[float, int, float]], shift: float) -> None:
    total, tokens, unigram = (
        np.array(column, dtype=float) for column in zip(*strings, strict=True)
    )
    known = evidence(total, tokens, unigram=unigram)
    score = {
        name: parse_linking(name).score(known)
        for name in ("lp", "mean", "slln:0", "slln:1", "slor", "morcela:1:0")
    }
    assert np.array_equal(score["lp"], score["slln:0"]) and np.array_equal(
        score["mean"], score["slln:1"]
    )
    assert np.array_equal(score["slor"], score["morcela:1:0"])
    shifted = parse_linking("slor").score(evidence(total, tokens, unigram=unigram + shift * tokens))
    assert shifted == pytest.approx(score["slor"] - shift)


def test_per_character_and_pmi() -> None:
    known = evidence([-6.0], [3], characters=[12], prior=[-9.0])
    assert parse_linking("per-char").score(known) == [-0.5] and parse_linking("pmi").score(
        known
    ) == [3.0]
    with pytest.raises(ValueError, match="needs 'unigram'"):
        parse_linking("slor").score(known)
    with pytest.raises(ValueError, match="zero tokens"):
        evidence([0.0], [0])


@pytest.mark.parametrize(
    "text", ["median", "slln:1.5", "slln:a", "mean:1", "log:0", "morcela:1:2:3", "slln:nan"]
)
def test_bad_names_are_one_line(text: str) -> None:
    with pytest.raises(UserError, match="linking function"):
        parse_linking(text)


def test_names_are_written_as_they_are_read() -> None:
    for name in ("lp", "slln:0.5", "log:1", "morcela:0.5:4", "per-char"):
        assert parse_linking(name).name == name
    assert parse_linking("SLLN").name == "slln:0.5"


def test_unigram_tables(tmp_path: Path) -> None:
    path = tmp_path / "u.json"
    path.write_text('{"5": 0.25, "7": 0.75}', encoding="utf-8")
    table = read_unigrams(path)
    assert table.look_up([5, 7, 9]) == pytest.approx(
        [math.log(0.25), math.log(0.75), math.log(UNSEEN)]
    )
    assert table.coverage([5, 9]) == 0.5
    counted = count_unigrams([1, 1, 2], "text", vocabulary_size=4)
    assert np.exp(counted.look_up([0, 1, 2, 3])) == pytest.approx([1 / 7, 3 / 7, 2 / 7, 1 / 7])
    for broken in ('{"a": 0.1}', '{"1": 0}', '{"1": 2}', "[]", "{", '{"1": "x"}', json.dumps({})):
        path.write_text(broken, encoding="utf-8")
        with pytest.raises(UserError, match=r"u\.json"):
            read_unigrams(path)


def test_a_table_of_another_tokenizer_is_refused_even_where_all_ids_overlap(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "u.json"
    path.write_text('{"tokenizer": "3-aa", "0": 0.5, "1": 0.3, "2": 0.2}', encoding="utf-8")
    table = read_unigrams(path)
    assert sorted(table.logprobs) == [0, 1, 2] and table.coverage([0, 1, 2]) == 1
    table.check_made_for("3-aa", "m")
    assert capsys.readouterr().err == ""
    with pytest.raises(
        UserError, match=r"u.json was made for another tokenizer \(3-aa\) than m has \(3-bb\)"
    ):
        table.check_made_for("3-bb", "m")
    table.check_made_for("", "m")
    assert "the record of m does not say which tokenizer" in capsys.readouterr().err


def test_a_table_without_identity_is_known_by_its_size_or_reported(
    capsys: pytest.CaptureFixture[str],
) -> None:
    table = count_unigrams([1, 1, 2], "u.json", vocabulary_size=4)
    with pytest.raises(UserError, match=r"another tokenizer \(4 tokens\) than m has \(5-aa\)"):
        table.check_made_for("5-aa", "m")
    table.check_made_for("4-aa", "m")
    count_unigrams([1, 5], "part.json").check_made_for(
        "4-aa", "m"
    )  # not every id: its size says nothing
    assert capsys.readouterr().err.count('add "tokenizer": "4-aa" to it') == 2
