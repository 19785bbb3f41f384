"""Whole numbers that people write: on command lines, in tables, in names."""

from __future__ import annotations

import pytest
from cyclopts import Token

from fluent_mlama.console import plain_number
from fluent_mlama.files import by_number
from fluent_mlama.options import cutoff_list, whole_number


@pytest.mark.parametrize(
    "text",
    [
        "",
        " 1",
        "1 ",
        "+1",
        "-1",
        "1.0",
        "1e3",
        "1_0",
        "²",
        "٢",
        "３",
        "0x1",
        "9" * 19,
        "9" * 9000,
        "1\n",
    ],
)
def test_what_is_no_plain_number(text: str) -> None:
    assert plain_number(text) is None
    with pytest.raises(ValueError, match="is not a whole number from 0"):
        whole_number(0)(int, [Token(value=text)])
    with pytest.raises(ValueError, match="is not a list of whole numbers from 1, such as 1,3,5"):
        value = f"1,{text},3" if text.strip() == text else f"1,{text}x"
        cutoff_list(tuple, [Token(value=value)])


def test_what_is_one() -> None:
    assert (plain_number("0"), plain_number("007"), plain_number("9" * 18)) == (0, 7, 10**18 - 1)
    assert whole_number(1)(int, [Token(value="1")]) == 1
    for number in ("1", "6"):
        with pytest.raises(ValueError, match=f"'{number}' is not a whole number from 2 to 5"):
            whole_number(2, 5)(int, [Token(value=number)])


def test_cutoffs_keep_their_order_and_are_there_once() -> None:
    assert cutoff_list(tuple, [Token(value="3, 1,3")]) == (3, 1)
    for none in ("0", "1,0", ",", ""):
        with pytest.raises(ValueError, match="is not a list of whole numbers from 1"):
            cutoff_list(tuple, [Token(value=none)])


def test_relations_sort_by_number_and_what_has_none_comes_last() -> None:
    assert sorted(["P101", "P²", "P19", "place", "P3"], key=by_number) == [
        "P3",
        "P19",
        "P101",
        "P²",
        "place",
    ]
