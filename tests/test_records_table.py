"""Tables: whatever a label is, it comes back; whatever is wrong with a file is told in one line."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fluent_mlama.console import UserError
from fluent_mlama.files import format_table, read_table
from fluent_mlama.records.benchmark import join_aliases, split_aliases

LABELS = ["NA", "null", "None", "nan", "N/A", "007", "1e5", "True", '"', '""', '"Heroes"', '"Live', 'a"b', "a\tb", "a\nb", "a\r\nb", "a\rb",
          "", " ", "\u2028", "\x85", "\ufeff", "'", "#", "\\", "\\N", "-inf", "Z\u0301", "ко\u0301т"]  # fmt: skip
cells = st.one_of(
    st.sampled_from(LABELS), st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
)


@settings(deadline=None, max_examples=150)
@given(st.lists(st.tuples(cells, cells, cells), min_size=1, max_size=6))
def test_any_cell_survives_a_round_trip(rows: list[tuple[str, str, str]]) -> None:
    table = pd.DataFrame(rows, columns=["sub_label", "obj_label", "aliases"], dtype="str")
    text = format_table(table)
    again = read_table(text.encode("utf-8"), "t.tsv")
    assert [tuple(row) for row in again.itertuples(index=False)] == rows
    assert format_table(again) == text


@settings(deadline=None, max_examples=60)
@given(st.lists(cells, min_size=1, max_size=4))
def test_one_column_survives_a_round_trip(column: list[str]) -> None:
    again = read_table(
        format_table(pd.DataFrame({"only": column}, dtype="str")).encode("utf-8"), "t.tsv"
    )
    assert again["only"].tolist() == column


@settings(deadline=None, max_examples=60)
@given(st.lists(cells.filter(lambda alias: "|" not in alias), max_size=5))
def test_aliases_survive_a_round_trip_or_are_refused(aliases: list[str]) -> None:
    if aliases == [""]:  # one empty alias looks like none
        with pytest.raises(ValueError, match="without loss"):
            join_aliases(aliases)
    else:
        assert split_aliases(join_aliases(aliases)) == aliases


def test_an_alias_with_the_separator_is_refused() -> None:
    with pytest.raises(ValueError, match="without loss"):
        join_aliases(["a|||b"])
    with pytest.raises(ValueError, match="without loss"):
        join_aliases(["a|", "b"])


def test_stray_quotes_in_a_hand_made_file_swallow_no_rows() -> None:
    table = read_table(b'id\tlabel\n1\t"Heroes"\n2\t"Live\n3\tplain\n', "t.tsv")
    assert table["label"].tolist() == ['"Heroes"', '"Live', "plain"]


def test_byte_order_mark_and_windows_line_ends_are_no_part_of_the_text() -> None:
    table = read_table("\ufeffid\tlabel\r\n1\tŘím\r\n".encode(), "t.tsv")
    assert (list(table.columns), table["label"].tolist()) == (["id", "label"], ["Řím"])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "t.tsv: the file is empty"),
        (b" \n\n", "t.tsv: the file is empty"),
        (b"id\tlabel\n", "t.tsv: a header and no rows"),
        (
            b"id\tlabel\n1\ta\n2",
            "line 3 ends a row of 1 fields, the header has 2; the file is cut off",
        ),
        (b"id\tlabel\n1\ta\tb\n", "line 2 ends a row of 3 fields, the header has 2"),
        (
            b'id\tlabel\n1\t"a ""b"" c"\n2\t"cut ""o',
            "line 3: unexpected end of data; the file is cut off",
        ),
        (b'id\tlabel\n1\t"two\nlines"\n2\t"cut\noff', "line 5: unexpected end of data"),
        (b"id\tlabel\n1\tR\xedm\n", r"not UTF-8 \(byte 0xed in line 2\)"),
        ("id\tlabel\n1\tŘím\n".encode("utf-16"), "not UTF-8"),
        (b"id\tid\n1\t2\n", "column 'id' stands twice"),
    ],
)
def test_bad_files_are_told_in_one_line(data: bytes, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        read_table(data, "t.tsv")
    assert "\n" not in str(caught.value)


def test_a_table_without_rows_can_be_asked_for() -> None:
    table = read_table(b"id\tlabel\n", "t.tsv", allow_no_rows=True)
    assert (len(table), list(table.columns)) == (0, ["id", "label"])
