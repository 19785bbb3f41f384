"""Which models are asked, and in which folder each keeps its dumps.

One model writes into ``--out`` itself. Several, named with commas or a line each in a file, take turns, and each has a
folder of its own below ``--out``, so that their dumps can never be mixed:

    # models.txt
    meta-llama/Llama-2-7b-hf --dtype float16
    EleutherAI/pythia-410m   --revision step3000 --folder pythia-early
    smollm2
"""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from fluent_mlama.console import UserError, split_list
from fluent_mlama.ranking.settings import Settings
from fluent_mlama.ranking.values import named, positive
from fluent_mlama.records.names import is_file_name

MODEL_OPTIONS = (
    "revision",
    "dtype",
    "device",
    "device_map",
    "quantise",
    "trust_remote_code",
    "path",
    "token_budget",
)
"""Options of a model, as fields of ``Settings``: for all models on the command line, for one behind its name in a file."""


def add_model_options(parser: argparse._ActionsContainer) -> None:
    """Add ``MODEL_OPTIONS``."""
    parser.add_argument("--revision", metavar="NAME", help="branch, tag or commit on the hub")
    parser.add_argument(
        "--dtype",
        choices=("auto", "float32", "bfloat16", "float16"),
        default="auto",
        help="auto: float32 on a CPU",
    )
    parser.add_argument(
        "--device",
        default="auto",
        metavar="NAME",
        help="auto, cpu, cuda, cuda:1, mps (default: auto)",
    )
    parser.add_argument(
        "--device-map", metavar="NAME", help="spread a large model over devices: auto, balanced …"
    )
    parser.add_argument(
        "--quantise", choices=("4bit", "8bit"), help="with bitsandbytes, where it is installed"
    )
    parser.add_argument(
        "--trust-remote-code", action="store_true", help="run code that comes with the model"
    )
    parser.add_argument(
        "--path",
        default="auto",
        metavar="NAME",
        help="how to score (default: the fastest that passes the check at load)",
    )
    parser.add_argument("--token-budget", type=positive, metavar="N", help="tokens a forward")


def choose_models(settings: Settings) -> tuple[Settings, ...]:
    """The settings of each model where ``--model`` names several, else (): commas part them, unless a path of that name is there."""
    names = split_list(settings.model)
    if "," not in settings.model or Path(settings.model).expanduser().exists():
        return ()
    if not names:
        raise UserError(f"--model {settings.model!r} names no model; give one, or several as A,B,C")
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


class _LineParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UserError(
            f"{self.prog}: {message}; a line is a model and its options, such as NAME --dtype float16 --folder X"
        )


def _read_line(text: str, where: str, settings: Settings) -> tuple[Settings, str]:
    parser = _LineParser(prog=where, add_help=False, allow_abbrev=False)
    parser.add_argument("model", type=named)
    add_model_options(parser)
    parser.add_argument("--folder", type=named)
    for action in parser._actions:
        action.default = argparse.SUPPRESS
    lexer = shlex.shlex(text, posix=True, punctuation_chars=False)
    lexer.whitespace_split, lexer.commenters, lexer.escape = (
        True,
        "",
        "",
    )  # a backslash parts folders on Windows
    try:
        words = list(lexer)
    except ValueError as error:
        raise UserError(f"{where}: {error}; close the quotation mark") from None
    options = vars(parser.parse_args(words))
    folder = options.pop("folder", folder_name(options["model"]))
    if folder != folder_name(folder):
        raise UserError(
            f"{where}: --folder {folder!r} cannot be a folder's name below --out; choose letters, digits, '-', '_', '+', '.'"
        )
    return replace(settings, **options), folder


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
