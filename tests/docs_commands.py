"""The commands of README.md and docs/*.md, collected, and a scratch copy of the repository in which they run.

A command is a line of a fence tagged ``sh``, ``bash`` or ``console``; a Python block; or inline code that begins with
``python``, ``make``, ``pip`` or ``hf``. A fence whose tag is followed by a file name is that file; the commands behind it find
it. Commands run in this process (every command has a ``main``), in the page's order, in one folder a page.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from cyclopts import App

from fluent_mlama.console import UserError

_FENCE = re.compile(
    r"^(?P<mark>```+)(?P<tag>[^\n]*)\n(?P<body>.*?)^(?P=mark)$", re.MULTILINE | re.DOTALL
)
_INLINE = re.compile(r"(?<!`)`((?:python|make|pip|hf) [^`]+)`(?!`)")
_SHELL = {"sh", "bash", "console"}
_OUTPUT = re.compile(r"<!-- (?:output|file (?P<file>\S+)) -->\s*$")
COPIED = ("fixed_data", "stats", "stats_wide", "tables", "graphs", "chatgpt_prompts")
"""Folders that commands write to: real folders with links to the repository's files in them."""


@dataclass(frozen=True)
class Step:
    """One thing on a page: a command (``sh``), a Python block, a file to be saved, or lines that a command prints.

    line: in the page, from 1. name: of the file, for ``file``; for ``output`` of the file that a command wrote, if it is one.
    """

    page: str
    line: int
    kind: str
    text: str
    name: str = ""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.text.splitlines()[0]}"

    @property
    def is_command(self) -> bool:
        return self.kind in {"sh", "inline", "python"}


def pages(root: Path) -> list[Path]:
    """Every page that tells people what to run."""
    return [root / "README.md", *sorted((root / "docs").glob("*.md"))]


def steps_of(path: Path, root: Path) -> list[Step]:
    """The steps of one page, in order."""
    text = path.read_text(encoding="utf-8")
    page = str(path.relative_to(root))
    found = []
    fences = list(_FENCE.finditer(text))
    for fence in fences:
        line = text.count("\n", 0, fence.start()) + 1
        tag, _, name = fence["tag"].strip().partition(" ")
        if tag in _SHELL:
            found += [
                Step(page, line + 1 + offset, "sh", command)
                for offset, command in _commands(fence["body"])
            ]
        elif name:
            found.append(Step(page, line, "file", fence["body"], name))
        elif tag == "python":
            found.append(Step(page, line, "python", fence["body"]))
        elif (
            shown := _OUTPUT.search(text, max(0, fence.start() - 200), fence.start())
        ) is not None:
            found.append(Step(page, line, "output", fence["body"], shown["file"] or ""))
    for inline in _INLINE.finditer(_FENCE.sub(lambda fence: re.sub(r"[^\n]", " ", fence[0]), text)):
        found.append(
            Step(
                page,
                text.count("\n", 0, inline.start()) + 1,
                "inline",
                " ".join(inline[1].replace("\\|", "|").split()),
            )
        )
    return sorted(found, key=lambda step: step.line)


def untagged_commands(path: Path) -> list[str]:
    """Fences that hold commands and do not say so: nothing would run them."""
    return [
        fence["body"].splitlines()[0]
        for fence in _FENCE.finditer(path.read_text(encoding="utf-8"))
        if fence["tag"].strip() in {"", "text"}
        and re.search(
            r"^(\$ )?(python|make|pip|accelerate|sbatch|srun|ray|hf|export|source) \S",
            fence["body"],
            re.MULTILINE,
        )
    ]


def _commands(body: str) -> Iterator[tuple[int, str]]:
    """(line in the block, command): continued lines joined, prompts and comments off, blank lines left out."""
    lines = body.split("\n")
    number = 0
    while number < len(lines):
        start, text = number, lines[number]
        if (
            here := re.search(r"<<'(\w+)'", text)
        ) is not None:  # a here-document belongs to its command
            end = lines.index(here[1], number)
            yield start, "\n".join(lines[start : end + 1])
            number = end + 1
            continue
        while text.endswith("\\") and number + 1 < len(lines):
            number += 1
            text = text[:-1].rstrip() + " " + lines[number].strip()
        if text.startswith("for "):
            end = next(line for line in range(number, len(lines)) if lines[line].startswith("done"))
            text, number = "\n".join(lines[start : end + 1]), end
        number += 1
        words = split(text.removeprefix("$ "))
        if words:
            yield start, re.sub(r"[ \t]+#.*", "", text.removeprefix("$ ")).strip()


def split(command: str) -> list[str]:
    """The command's words as a shell would have them, without comments."""
    return shlex.split(command, comments=True)


def make_scratch(root: Path, folder: Path) -> Path:
    """A copy of the repository to run commands in: what they write to is real, everything is a link."""
    folder.mkdir()
    for entry in sorted(root.iterdir()):
        if entry.name.startswith(".") or entry.name in {"build", "__pycache__"}:
            continue
        if entry.name in COPIED:
            shutil.copytree(entry, folder / entry.name, copy_function=os.symlink)
        else:
            (folder / entry.name).symlink_to(entry)
    return folder


class Parsed(Exception):
    """The real parser took the words; nothing was run."""


@contextlib.contextmanager
def parsing_only() -> Iterator[None]:
    """Inside, a command stops where its arguments have been parsed (and their types checked)."""
    original, call = argparse.ArgumentParser.parse_args, App.__call__

    def parse(self: argparse.ArgumentParser, *words: object, **named: object) -> NoReturn:
        original(self, *words, **named)  # type: ignore[call-overload]
        raise Parsed

    def parse_app(self: App, words: object = None, **_: object) -> NoReturn:
        self.parse_args(words, exit_on_error=False, print_error=False)  # type: ignore[arg-type]
        raise Parsed

    argparse.ArgumentParser.parse_args = parse  # type: ignore[method-assign,assignment]
    App.__call__ = parse_app  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        argparse.ArgumentParser.parse_args = original  # type: ignore[method-assign]
        App.__call__ = call  # type: ignore[method-assign]


def run_command(command: str, root: Path, *, parse_only: bool = False) -> str:
    """Run one command in the working folder; returns what it printed on both streams. AssertionError where it fails."""
    words = split(command)
    environment = {}
    while re.fullmatch(r"[A-Z_]+=[^$]*", words[0]):
        name, _, value = words.pop(0).partition("=")
        environment[name] = value
    module, arguments = module_of(words)
    if module is None:
        return _in_a_shell(command, parse_only)
    printed = io.StringIO()
    kept = dict(os.environ)
    os.environ.update(environment)
    status: object = 0
    try:
        with (
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            with parsing_only() if parse_only else contextlib.nullcontext():
                status = importlib.import_module(module).main(arguments)
    except Parsed:
        status = 0
    except SystemExit as left:
        status = left.code
    except UserError as error:
        printed.write(f"error: {error}\n")
        status = 2
    finally:
        os.environ.clear()
        os.environ.update(kept)
    assert status in {None, 0}, f"{command}\nexit status {status}\n{printed.getvalue()[-3000:]}"
    return printed.getvalue()


def module_of(words: list[str]) -> tuple[str | None, list[str]]:
    """The module behind ``python FILE.py …`` or ``python -m PACKAGE …`` of this repository, and the words for its main."""
    words = words[words[0] == "srun" :]
    if words[0] in {"python", "python3", ".venv/bin/python"} and len(words) > 1:
        if words[1].endswith(".py"):
            return words[1].removesuffix(".py").replace("/", "."), words[2:]
        if words[1] == "-m" and words[2].split(".")[0] in {
            "probes",
            "fluent_mlama",
            "benchmarks",
        }:
            package = (Path(*words[2].split(".")) / "__main__.py").is_file()
            return f"{words[2]}.__main__" if package else words[2], words[3:]
    return None, []


def _in_a_shell(command: str, parse_only: bool) -> str:
    if parse_only and command.startswith("make "):
        command = f"make --dry-run {command.removeprefix('make ')}"
    elif parse_only:
        command = f"bash -n -c {shlex.quote(command)}"
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, env={**os.environ, "PATH": path}
    )
    assert done.returncode == 0, (
        f"{command}\nexit status {done.returncode}\n{done.stdout[-1500:]}{done.stderr[-1500:]}"
    )
    return done.stdout + done.stderr


def missing_lines(expected: str, printed: str) -> list[str]:
    """The lines of an output block that the command did not print; blanks count alike, ``…`` stands for anything."""
    lines = [" ".join(line.split()) for line in printed.replace("\r", "\n").split("\n")]
    absent = []
    for line in filter(None, (" ".join(line.split()) for line in expected.split("\n"))):
        pattern = re.compile(".*".join(re.escape(part) for part in line.split("…")))
        if not any(pattern.fullmatch(other) for other in lines):
            absent.append(line)
    return absent
