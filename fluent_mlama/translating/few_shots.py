"""Examples for the chat model: drawn with a seed from sentences that another back end translated, for a person to mend."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from fluent_mlama.console import UserError, note
from fluent_mlama.records.few_shot import (
    FewShot,
    Shot,
    few_shot_name,
    read_few_shot,
    write_few_shot,
)
from fluent_mlama.records.source import open_source
from fluent_mlama.translating.openai_chat import instruction

MOST_SHOTS = 20


def shots_for(rows: int, number: int = MOST_SHOTS) -> int:
    """How many of so many rows become examples: ``number``, but never more than a quarter (the published sampler's rule)."""
    return min(number, rows // 4)


def sample_few_shot(
    facts: Sequence[tuple[str, str, str]],
    translations: Sequence[str],
    lang: str,
    relation: str,
    *,
    number: int = MOST_SHOTS,
    seed: int = 0,
) -> FewShot:
    """Draw examples from the facts that have a translation; the same seed and facts give the same examples, in the facts' order.

    facts: (English sentence, subject, object) with both labels in ``lang``; translations: one a fact, "" where there is none.
    """
    usable = [row for row, text in enumerate(translations) if text.strip() and "\n" not in text]
    drawn = random.Random(f"{seed}|{lang}|{relation}").sample(
        usable, shots_for(len(facts), min(number, len(usable)))
    )
    shots = (
        Shot(*(cell.strip() for cell in (*facts[row], translations[row]))) for row in sorted(drawn)
    )
    return FewShot(instruction(lang), tuple(shots))


def find_or_draw(
    folder: Path,
    facts: Sequence[tuple[str, str, str]],
    translations: Sequence[str] | None,
    lang: str,
    relation: str,
    *,
    number: int,
    seed: int,
) -> FewShot:
    """The few-shot text in ``folder`` (a person may have mended it), else a new one drawn from ``translations`` and written there.

    facts, translations: as ``sample_few_shot`` takes them.
    """
    path = folder / few_shot_name(lang, relation)
    if path.is_file():
        few_shot = read_few_shot(open_source(folder), lang, relation)
        if few_shot.shots or few_shot.instruction:
            return few_shot
    if translations is None:
        raise UserError(
            f"no few-shot text {path}, and no translations yet to draw one from: name another translator first, or write it"
        )
    few_shot = sample_few_shot(facts, translations, lang, relation, number=number, seed=seed)
    write_few_shot(folder, lang, relation, few_shot)
    note(
        f"{path}: {len(few_shot.shots)} examples drawn (seed {seed}); mend them by hand where they are not fluent"
    )
    return few_shot
