"""What the locator is measured on: published rows, a reader's spans, recorded wrong cuts, and which published cuts are irregular."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rapidfuzz.distance import Levenshtein

from fluent_mlama.locating import Outcome, Row
from fluent_mlama.locating.text import fold
from fluent_mlama.records.benchmark import ERROR, WITHOUT_NAME, Benchmark, split_aliases

SWAPPED = ("ru", "uk", "cs", "hr", "es", "id")
"""Languages whose files the swapped objects are measured on."""
_DRAWS = 50
_MARKS = "⟦⟧"


@dataclass(frozen=True, slots=True)
class Case:
    """A row with its right answer. expected: the object form, "" if the sentence has none; start: where, or -1 if any place will do."""

    group: str
    lang: str
    relation: str
    row: Row
    expected: str
    start: int = -1

    def accepts(self, outcome: Outcome) -> bool:
        """Whether the outcome is this answer; the place counts where it is known."""
        if not outcome.found or not self.expected:
            return not outcome.found and not self.expected
        return outcome.object_form == self.expected and self.start in (-1, outcome.start)


def row_of(cells: dict[str, str], sentence: str | None = None) -> Row:
    """A published row as the locator wants it; the published object form is not shown to it."""
    return Row(
        sentence=cells["gt_translation"] if sentence is None else sentence,
        label=cells["obj_label"],
        subject=cells["sub_label"],
        aliases=tuple(split_aliases(cells["aliases"])),
        english=cells["en_obj_label"],
        english_subject=cells["en_sub_label"],
        key=cells["obj_uri"],
    )


def published_span(cells: dict[str, str]) -> tuple[int, int] | None:
    """The published cut of the Google sentence, without blanks around; None where there is none or it is empty."""
    prompt, form = cells["gt_prompt"], cells["gt_infl_object"]
    if ERROR in (prompt, form) or not form.strip():
        return None
    start = len(prompt) + len(form) - len(form.lstrip())
    return start, start + len(form.strip())


def in_failure_class(cells: dict[str, str], span: tuple[int, int]) -> bool:
    """Whether the published cut shows one of the known failures, told without looking at any other cut.

    Words lost after the object, a span that begins or ends inside a word, a span much longer than the label or unlike it, an
    empty prompt, an opening mark left before, an object form that stands in the sentence twice.
    """
    sentence, label = cells["gt_translation"], cells["obj_label"]
    before, form, tail = sentence[: span[0]], sentence[slice(*span)], sentence[span[1] :]
    unspaced = any("\u3040" <= letter <= "\u9fff" for letter in form)
    words, label_words = form.casefold().split(), label.casefold().split()
    return (
        sentence[: len(cells["gt_prompt"])] != cells["gt_prompt"]
        or any(letter.isalnum() for letter in tail)
        or (not unspaced and before[-1:].isalnum())
        or not before.strip()
        or before.rstrip()[-1:] in '«„“"(《（'
        or len(words) >= len(label_words) + 2
        or Levenshtein.normalized_similarity(form.casefold(), label.casefold()) < 0.5
        or Levenshtein.normalized_similarity(words[0], label_words[0]) < 0.5
        or sentence.casefold().count(form.casefold()) > 1
    )


def gold_cases(data: Path, benchmarks: dict[tuple[str, str], Benchmark]) -> list[Case]:
    """The reader's spans: groups "random {lang}", "hard" and "absent"."""
    cases = []
    for told in _lines(data / "gold_spans.jsonl"):
        table = benchmarks[told["lang"], told["rel"]].table
        cells = (
            table[(table["sub_uri"] == told["sub_uri"]) & (table["obj_uri"] == told["obj_uri"])]
            .iloc[0]
            .to_dict()
        )
        group = (
            "absent"
            if not told["present"]
            else "hard"
            if told["hard"]
            else f"random {told['lang']}"
        )
        expected, start = (told["gold_object"], told["start"]) if told["present"] else ("", -1)
        cases.append(
            Case(group, told["lang"], told["rel"], row_of(cells, told["sentence"]), expected, start)
        )
    return cases


def record_cases(data: Path, benchmarks: dict[tuple[str, str], Benchmark]) -> list[Case]:
    """The recorded wrong cuts. Where the answer says that the published span is right (only not final), that span is wanted;
    where it allows "not found" as well, the marked span is wanted all the same."""
    cases = []
    for told in _lines(data / "locator_records.jsonl"):
        place, _, number = told["id"].removesuffix(" (CG)").partition("#")
        lang, relation = place.split("_")
        cells = benchmarks[lang, relation].table.iloc[int(number)].to_dict()
        sentence = cells["gt_translation"]
        if told["id"].endswith("(CG)"):
            sentence = cells["chatgpt_translation"].rpartition("Translation:")[2]
        marked = (
            told["right"].partition(_MARKS[0])[2].partition(_MARKS[1])[0]
            if _MARKS[0] in told["right"]
            else ""
        )
        if told["right"].startswith("label is the subject's"):
            marked = ""
        elif told["right"].startswith("span right"):
            marked = cells["gt_infl_object"].strip()
        cases.append(Case("records", lang, relation, row_of(cells, sentence), marked))
    return cases


def swapped_rows(rows: Sequence[Row], number: int, seed: str) -> list[Row]:
    """Rows of one file, each with the names of another row's object in place of its own: none of them should be found.

    number: rows drawn (all if there are fewer). The other object is drawn again until it is another entity by its identifier and
    by its names: of two names, one of each (label, English label, aliases of four letters or more; case aside), none may be
    within the other, since "Rio de Janeiro" is a piece of evidence for the state of that name.
    """
    draw = random.Random(seed)
    swapped = []
    for row in draw.sample(list(rows), min(number, len(rows))):
        for other in draw.choices(rows, k=_DRAWS):
            if other.object_key != row.object_key and not _share_a_name(row, other):
                swapped.append(
                    replace(
                        row,
                        label=other.label,
                        aliases=other.aliases,
                        english=other.english,
                        key=other.key,
                    )
                )
                break
    return swapped


def is_flagged(outcome: Outcome) -> bool:
    """Whether a found object is marked as found without evidence from its name."""
    return outcome.found and not set(outcome.flags).isdisjoint(WITHOUT_NAME)


def _share_a_name(one: Row, other: Row) -> bool:
    names = [
        {fold(name) for name in (row.label, row.english, *row.aliases) if len(name) > 3}
        for row in (one, other)
    ]
    return any(name in another or another in name for name in names[0] for another in names[1])


def _lines(path: Path) -> Iterator[dict]:
    for line in path.read_text(encoding="utf-8").splitlines():
        yield json.loads(line)
