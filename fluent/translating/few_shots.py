"""Examples for the chat model: drawn with a seed from sentences that another back end translated, for a person to mend."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from fluent.console import UserError, note
from fluent.records.few_shot import FewShot, Shot, few_shot_name, read_few_shot, write_few_shot
from fluent.records.source import open_source
from fluent.translating.openai_chat import instruction

MOST_SHOTS = 20


def shots_for(rows: int, number: int = MOST_SHOTS) -> int:
    """How many of so many rows become examples: ``number``, but never more than a quarter (the published sampler's rule)."""
    return min(number, rows // 4)


def sample_few_shot(table: pd.DataFrame, column: str, lang: str, relation: str, *, number: int = MOST_SHOTS, seed: int = 0) -> FewShot:
    """Draw examples from the rows whose ``column`` holds a translation; the same seed and rows give the same examples.

    table: columns ``en_template``, ``sub_label``, ``obj_label`` and ``column``; an empty cell cannot become an example.
    """
    usable = [row for row in table.index if table.at[row, column].strip() and "\n" not in table.at[row, column]]
    drawn = random.Random(f"{seed}|{lang}|{relation}").sample(usable, shots_for(len(table), min(number, len(usable))))
    names = ("en_template", "sub_label", "obj_label", column)
    return FewShot(instruction(lang), tuple(Shot(*(table.at[row, name].strip() for name in names)) for row in sorted(drawn)))


def find_or_draw(
    folder: Path, table: pd.DataFrame, translations: Sequence[str] | None, lang: str, relation: str, *, number: int, seed: int
) -> FewShot:
    """The few-shot text in ``folder`` (a person may have mended it), else a new one drawn from ``translations`` and written there.

    table: columns ``en_template``, ``sub_label``, ``obj_label``; translations: one a row, "" where there is no usable one.
    """
    path = folder / few_shot_name(lang, relation)
    if path.is_file():
        few_shot = read_few_shot(open_source(folder), lang, relation)
        if few_shot.shots or few_shot.instruction:
            return few_shot
    if translations is None:
        raise UserError(f"no few-shot text {path}, and no translations yet to draw one from: name another translator first, or write it")
    few_shot = sample_few_shot(table.assign(translation=list(translations)), "translation", lang, relation, number=number, seed=seed)
    write_few_shot(folder, lang, relation, few_shot)
    note(f"{path}: {len(few_shot.shots)} examples drawn (seed {seed}); mend them by hand where they are not fluent")
    return few_shot
