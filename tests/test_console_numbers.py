"""Whole numbers that people write: on command lines, in tables, in names."""

from __future__ import annotations

import argparse

import pytest

from fluent_mlama.console import plain_number, whole_number
from fluent_mlama.records.names import by_number
from fluent_mlama.reporting.options import cutoffs


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
    with pytest.raises(argparse.ArgumentTypeError, match="is not a whole number from 0"):
        whole_number(0)(text)
    with pytest.raises(
        argparse.ArgumentTypeError, match="is no list of whole numbers from 1, such as 1,3,5"
    ):
        cutoffs(f"1,{text},3" if text.strip() == text else f"1,{text}x")


def test_what_is_one() -> None:
    assert (plain_number("0"), plain_number("007"), plain_number("9" * 18)) == (0, 7, 10**18 - 1)
    assert whole_number(1)("1") == 1 and whole_number(2, 5)("5") == 5
    for number in ("1", "6"):
        with pytest.raises(
            argparse.ArgumentTypeError, match=f"'{number}' is not a whole number from 2 to 5"
        ):
            whole_number(2, 5)(number)


def test_cutoffs_keep_their_order_and_stand_once() -> None:
    assert cutoffs("3, 1,3") == (3, 1)
    for none in ("0", "1,0", ",", ""):
        with pytest.raises(argparse.ArgumentTypeError, match="is no list of whole numbers from 1"):
            cutoffs(none)


def test_relations_sort_by_number_and_what_has_none_comes_last() -> None:
    assert sorted(["P101", "P²", "P19", "place", "P3"], key=by_number) == [
        "P3",
        "P19",
        "P101",
        "P²",
        "place",
    ]
