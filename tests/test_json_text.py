"""JSON of somebody else's: one kind of error, one line, whatever is wrong."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from fluent_mlama.console import UserError
from fluent_mlama.files import BadJson, parse_json
from tests.test_architecture import source_files

OUR_OWN = {
    "fluent_mlama/files.py",
    "fluent_mlama/scoring/tokens.py",
    "fluent_mlama/zhoblimp/vocabulary.py",
}
"""Who may: the one, and those that read what a library, or they themselves, have just written."""


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "Expecting value: column 1"),
        ('{"a": 1,', "Expecting property name enclosed in double quotes: column 9"),
        ('{\n "a": 1\n "b": 2}\n', "Expecting ',' delimiter: line 3, column 2"),
        ("1 2\n", "Extra data: column 3"),
        (b'{"a": "\xff"}', "byte 0xff is not UTF-8"),
        ("[" * 100_000, "brackets nested too deeply"),
        ('{"a":' * 100_000 + "1" + "}" * 100_000, "brackets nested too deeply"),
        ("9" * 9000, "a number of thousands of digits"),
        ('{"a": "M\\ud800nih"}', "half of a surrogate pair, which is no character"),
    ],
)
def test_what_is_no_json_is_one_line(text: str | bytes, what: str) -> None:
    for kind in (UserError, ValueError):
        with pytest.raises(kind) as caught:
            parse_json(text, "a.json", "get it again")
        assert str(caught.value) == f"a.json is not JSON ({what}); get it again"


def test_what_is_json_comes_through() -> None:
    assert (
        parse_json('{"é": [1, null]}', "a")
        == parse_json('\ufeff{"é": [1, null]}'.encode(), "a")
        == {"é": [1, None]}
    )
    assert parse_json('["\\ud83c\\udf32", "\\\\ud800"]', "a") == ["🌲", "\\ud800"]
    assert parse_json('{"a": 1, "a": 2}', "a", make_object=list) == [("a", 1), ("a", 2)]


def test_a_makers_own_error_is_told_as_it_is() -> None:
    def refuse(_: object) -> None:
        raise UserError("twice")

    with pytest.raises(UserError, match=r"^twice$") as caught:
        parse_json("{}", "a", make_object=refuse)
    assert not isinstance(caught.value, BadJson)


def test_nobody_else_parses_json(root: Path) -> None:
    found = []
    for path in source_files(root):
        name = path.relative_to(root).as_posix()
        if name not in OUR_OWN:
            calls = (
                node
                for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
                if isinstance(node, ast.Attribute)
            )
            found += [name for call in calls if ast.unparse(call) in {"json.loads", "json.load"}]
    assert found == []
