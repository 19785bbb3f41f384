"""Which models are asked, and in which folder each keeps its dumps.

One model writes into ``--out`` itself. Several, named with commas or a line each in a file, take turns, and each has a
folder of its own below ``--out``, so that their dumps can never be mixed:

    # models.txt
    meta-llama/Llama-2-7b-hf --dtype float16
    EleutherAI/pythia-410m   --revision step3000 --folder pythia-early
    smollm2
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from fluent_mlama.command_line import OLD_FLAGS, parse_words, renamed
from fluent_mlama.console import UserError
from fluent_mlama.files import is_file_name
from fluent_mlama.options import LoadOptions, Name
from fluent_mlama.ranking.settings import Settings
from fluent_mlama.runner.models import model_names


@dataclass(frozen=True)
class ModelLine:
    """A line of ``--models FILE``."""

    model: Annotated[Name, Parameter(name="MODEL")]
    _: KW_ONLY
    loading: LoadOptions = LoadOptions()
    folder: Name | None = None


def choose_models(settings: Settings) -> tuple[Settings, ...]:
    """The settings of each model where ``--model`` names several, else (): commas part them, unless a path of that name is there."""
    names = model_names(settings.model)
    if len(names) == 1 and names[0] == settings.model:
        return ()
    return _in_folders([(replace(settings, model=name), folder_name(name)) for name in names])


def read_models(path: Path, settings: Settings) -> tuple[Settings, ...]:
    """The settings of each model in a file. A line: the name, then options that override ``settings``, ``--folder`` among them."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except FileNotFoundError:
        raise UserError(
            f"--models {path}: no such file; make one with a model a line, or name models with --model A,B,C"
        ) from None
    except IsADirectoryError:
        raise UserError(
            f"--models {path} is a folder; make a file with a model a line, or name models with --model A,B,C"
        ) from None
    except UnicodeDecodeError:
        raise UserError(
            f"--models {path} is no UTF-8 text; write a model a line, # begins a comment"
        ) from None
    chosen = []
    for number, line in enumerate(lines, start=1):
        text = re.sub(r"(^|\s)#.*", "", line).strip()
        if text:
            chosen.append(_read_line(text, f"{path}, line {number}", settings))
    if not chosen:
        raise UserError(f"--models {path} names no model; write one a line, # begins a comment")
    return _in_folders(chosen)


def folder_name(model: str) -> str:
    """A folder name for a model: the last part of its name, with nothing in it that a file system refuses."""
    last = re.split(r"[/\\]", model.rstrip("/\\"))[-1]
    if last in {"", ".", ".."}:
        last = Path(model).resolve().name
    name = (
        re.sub(r"[^\w.+-]+", "-", re.sub(r"\.gguf$", "", last, flags=re.IGNORECASE)).strip("-. ")
        or "model"
    )
    return name if is_file_name(name) else f"_{name}"


def _read_line(text: str, where: str, settings: Settings) -> tuple[Settings, str]:
    # a backslash parts folders on Windows, so it escapes nothing
    lexer = shlex.shlex(text, posix=True, punctuation_chars=False)
    lexer.whitespace_split, lexer.commenters, lexer.escape = True, "", ""
    try:
        words = list(lexer)
    except ValueError as error:
        raise UserError(f"{where}: {error}; close the quotation mark") from None
    try:
        line = parse_words(ModelLine, words)
    except UserError as error:
        raise UserError(
            f"{where}: {error}; a line is a model and its options, such as NAME --dtype float16 --folder X"
        ) from None
    flags = {word.partition("=")[0] for word in renamed(words, set(OLD_FLAGS.values()))}
    # options of the line override those of the command line, which stay for the others
    options = {
        name: value
        for name, value in vars(line.loading).items()
        if f"--{name.replace('_', '-')}" in flags
    }
    folder = folder_name(line.model) if line.folder is None else line.folder
    if folder != folder_name(folder):
        raise UserError(
            f"{where}: --folder {folder!r} cannot be a folder's name below --out; choose letters, digits, '-', '_', '+', '.'"
        )
    return replace(settings, model=line.model, **options), folder


def _in_folders(chosen: Sequence[tuple[Settings, str]]) -> tuple[Settings, ...]:
    """Each model's settings with its folder below ``--out``; two models in one folder are a ``UserError``."""
    taken: dict[str, int] = {}
    for place, (settings, folder) in enumerate(chosen):
        first = taken.setdefault(folder.casefold(), place)  # some file systems do not tell A from a
        if first != place:
            raise UserError(
                f"models {chosen[first][0].model} and {settings.model} would both keep their dumps in {settings.out / folder}: "
                "list them in a file (--models) and give one of them another folder: NAME --folder OTHER"
            )
    return tuple(replace(settings, out=settings.out / folder) for settings, folder in chosen)
