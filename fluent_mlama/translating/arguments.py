"""The command line of ``datamodifier.py``: its options, and the counts it tells at the end."""

from __future__ import annotations

import math
import re
from argparse import Namespace
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from fluent_mlama.console import (
    ArgumentParser,
    UserError,
    note,
    seed_number,
    split_list,
    whole_number,
)
from fluent_mlama.records.atomic import check_writable
from fluent_mlama.translating.few_shots import MOST_SHOTS
from fluent_mlama.translating.registry import BACKENDS

SHOWN = ("failed", "unsure", "all")
"""Which rows ``--show`` can be asked for besides the first N."""
DEFAULT_STORE = Path(".cache") / "translations.sqlite"


def make_parser() -> ArgumentParser:
    """All options of the command."""
    parser = ArgumentParser(
        prog="datamodifier.py",
        description="Rebuild mLAMA facts as fluent sentences, cut into prompt and inflected object.",
        epilog="Translators: [VERBALISATION=]BACKEND[:ARGUMENT], for example google, gt=deepl, openai:gpt-4o-mini, "
        "nllb=seq2seq:facebook/nllb-200-distilled-600M, file:translations.tsv, document:gt_doc, phrasebook.",
    )
    add = parser.add_argument
    add(
        "-l",
        "--languages",
        type=split_list,
        required=True,
        help="comma-separated mLAMA codes (ru,cs,zh)",
    )
    add(
        "-r",
        "--relations",
        type=split_list,
        help="comma-separated relations (P19,P36; default: all that have a template)",
    )
    add(
        "--mlama",
        type=Path,
        required=True,
        metavar="PATH",
        help="folder or zip in the mLAMA 1.1 layout",
    )
    add(
        "--translator",
        action="append",
        required=True,
        metavar="WORD",
        help=f"a back end, once each: {', '.join(BACKENDS)} (see below)",
    )
    add(
        "--out",
        type=Path,
        default=Path("fixed_data"),
        help="folder of the benchmark files (default: fixed_data)",
    )
    add("--spec", default="", help="what the file names say behind the relation, for example nogpt")
    add(
        "--store",
        type=Path,
        default=DEFAULT_STORE,
        help=f"SQLite file of finished answers (default: {DEFAULT_STORE})",
    )
    add("--refresh", action="store_true", help="ask for every sentence again")
    add(
        "--as-returned",
        action="store_true",
        help="keep each text's blanks, quotes and lines as they came (the published files do)",
    )
    add(
        "--aliases",
        choices=("wikidata", "none"),
        default="wikidata",
        help="where names of the objects come from (default: wikidata)",
    )
    add(
        "--gender",
        type=Path,
        metavar="FILE",
        help="also write gender.tsv: the subjects' gender, from Wikidata's P21",
    )
    add(
        "--few-shot",
        type=Path,
        metavar="FOLDER",
        help="few-shot texts for openai ({lang}_{relation}.txt), drawn if missing",
    )
    add(
        "--shots",
        type=whole_number(0),
        default=MOST_SHOTS,
        help=f"most examples a drawn text gets (default: {MOST_SHOTS})",
    )
    add(
        "--seed",
        type=seed_number,
        default=0,
        help="draws the examples, and goes with each openai request (default: 0)",
    )
    add(
        "--published-role",
        action="store_true",
        help="ask openai in the published turn, for reproduction",
    )
    add(
        "--device",
        default="auto",
        metavar="NAME",
        help="where a seq2seq model runs: auto, cpu, cuda, cuda:1 (default: auto)",
    )
    add(
        "--workers",
        type=whole_number(1),
        default=4,
        help="openai requests under way at a time (default: 4)",
    )
    add("--per-second", type=float, help="requests a second at most (default: 4; openai 20)")
    add(
        "--base-url",
        action="append",
        default=[],
        metavar="NAME=URL",
        help="another address of a back end, or of wikidata",
    )
    add(
        "--show",
        type=_shown,
        default=0,
        metavar="N|failed|unsure|all",
        help="print sentences with the object marked and why others have none: of the first N facts, of those without an object, "
        "of those found without evidence from the object's name, or of all",
    )
    return parser


def _shown(value: str) -> int | str:
    """The value of ``--show``: how many facts, or which rows."""
    return value if value in SHOWN else whole_number(0)(value)


def split_url(word: str) -> tuple[str, str]:
    """``openai=http://127.0.0.1:8000/v1`` as name and address."""
    name, separator, url = word.partition("=")
    if (
        not separator
        or not url.startswith(("http://", "https://"))
        or name not in {*BACKENDS, "wikidata"}
    ):
        raise UserError(
            f"--base-url '{word}': give NAME=URL, for example openai=http://127.0.0.1:8000/v1"
        )
    return name, url


def check_choices(chosen: Namespace) -> None:
    """Refuse values that no run could use, and make sure of the output folder, before anything else happens."""
    if not chosen.languages:
        raise UserError("-l names no language: give mLAMA codes, for example -l ru,cs")
    if chosen.relations == []:
        raise UserError(
            "-r names no relation: give some, for example -r P19,P36, or leave it out for all"
        )
    if chosen.per_second is not None and not 0 < chosen.per_second < math.inf:
        raise UserError(f"--per-second {chosen.per_second}: a number above 0")
    if not re.fullmatch(r"auto|cpu|mps|cuda(:\d+)?", chosen.device):
        raise UserError(f"--device {chosen.device}: choose auto, cpu, cuda, cuda:N or mps")
    if not re.fullmatch(r"(\w[\w.-]*)?", chosen.spec):
        raise UserError(
            f"--spec '{chosen.spec}' cannot stand in a file name: take letters, digits, dots, hyphens and underscores"
        )
    check_writable(chosen.out, "--out")
    if chosen.gender is not None:
        if chosen.gender.is_dir():
            raise UserError(
                f"--gender {chosen.gender} is a folder: name a file, for example {chosen.gender / 'gender.tsv'}"
            )
        check_writable(chosen.gender.parent, "the folder of --gender")


def check_names(names: Sequence[str], words: Sequence[str]) -> None:
    """Each verbalisation once."""
    if len(set(names)) < len(names):
        raise UserError(
            f"two translators are called the same ({', '.join(names)}): name one, for example mine={words[-1]}"
        )


def report(path: Path, name: str, rows: int, count: Counter[str]) -> None:
    """One line a verbalisation: how many rows can be used, and each reason and flag with its count."""
    rest = ", ".join(
        f"{word} {number}"
        for word, number in sorted(count.items(), key=lambda pair: (-pair[1], pair[0]))
        if word != "ok"
    )
    note(
        f"{path}: {name}: {count['ok']} of {rows} sentences can be used"
        + (f" ({rest})" if rest else "")
    )
    if count["failed"]:
        note(
            f"{path}: {count['failed']} rows of {name} failed and were not kept: the same command asks for them again"
        )
