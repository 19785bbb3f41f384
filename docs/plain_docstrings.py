"""A Sphinx extension: this project's docstrings are plain text, and the reference shows them as what they are.

Their conventions, turned into reStructuredText: a paragraph whose lines begin with ``name: …`` is a list of parameters or
fields; an indented paragraph is code or a table, kept as it stands; text between backticks is code; nothing else is markup.
"""

from __future__ import annotations

import re
from itertools import groupby
from typing import Any

from sphinx.application import Sphinx

_FIELD = re.compile(r"(\w+(?:, \w+)*): \S")
_CODE = re.compile(r"(``[^`]+``|`[^`\n]+`)(\w?)")
_MARKUP = re.compile(r"([\\*|]|_\b)")


def to_restructured(lines: list[str]) -> list[str]:
    """One docstring, unindented, as reStructuredText."""
    result: list[str] = []
    for blank, paragraph in groupby(lines, key=lambda line: not line.strip()):
        if not blank:
            result += [*_paragraph(list(paragraph)), ""]
    return result


def _paragraph(lines: list[str]) -> list[str]:
    if lines[0].startswith("    "):
        return ["::", "", *(f"    {line}" for line in lines)]
    if not _FIELD.match(lines[0]):
        return _table_or_text(lines)
    fields: list[list[str]] = []
    for line in lines:
        if (field := _FIELD.match(line)) is not None:
            fields.append([f"``{field[1]}``", line[field.end(1) + 2 :]])
        else:
            fields[-1].append(line.strip())
    return [
        part
        for name, *text in fields
        for part in (name, *(f"    {line}" for line in _inline("\n".join(text)).split("\n")))
    ]


def _table_or_text(lines: list[str]) -> list[str]:
    if any(line.startswith(" ") for line in lines):  # set in columns by hand
        return ["::", "", *(f"    {line}" for line in lines)]
    return _inline("\n".join(lines)).split("\n")


def _inline(text: str) -> str:
    """Code stays code; every other sign means itself. A letter right behind code (``UserError``s) is set off."""
    parts, position = [], 0
    for code in _CODE.finditer(text):
        parts += [
            _MARKUP.sub(r"\\\1", text[position : code.start()]),
            f"``{code[1].strip('`')}``",
            f"\\ {code[2]}" if code[2] else "",
        ]
        position = code.end()
    return "".join([*parts, _MARKUP.sub(r"\\\1", text[position:])])


def process(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Called by autodoc for each docstring; changes ``lines`` in place."""
    lines[:] = to_restructured(lines)


def setup(app: Sphinx) -> dict[str, Any]:
    """Sphinx calls this once."""
    app.connect("autodoc-process-docstring", process)
    return {"version": "1", "parallel_read_safe": True}
