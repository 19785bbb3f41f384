"""The vocabulary of the audit: what it looks for, what it may find, and what a reader should do about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Outcome = Literal["found", "clean", "untestable"]
Weight = Literal["wrong", "biased", "note"]


@dataclass(frozen=True)
class Check:
    """One question to the dumps. weight: ``wrong`` numbers, ``biased`` numbers, or a ``note`` on how to read them."""

    name: str
    weight: Weight
    title: str
    meaning: str
    advice: str


@dataclass(frozen=True)
class Finding:
    """What one check says of one dump. ``count`` of ``of`` cases show it; ``rows``: row numbers of the first few."""

    check: str
    dump: str
    lang: str
    relation: str
    outcome: Outcome
    count: int = 0
    of: int = 0
    detail: str = ""
    rows: tuple[int, ...] = ()

    @property
    def is_wide(self) -> bool:
        """Whether this speaks of a wide dump."""
        return self.dump.startswith(WIDE)

    @property
    def share(self) -> float:
        """count / of (0 where nothing was looked at)."""
        return self.count / self.of if self.of else 0.0


WIDE = "wide/"
"""What stands before a wide dump's name, which is the same as its narrow twin's."""
ROWS_NAMED = 5
"""How many row numbers a finding names."""


def some_rows(rows: Iterable[object]) -> tuple[int, ...]:
    """The first few row numbers."""
    return tuple(int(str(row)) for row in list(rows)[:ROWS_NAMED])


_CHECKS = (
    Check(
        "unequal-ranks",
        "wrong",
        "Equal prompts, unequal ranks",
        "Two verbalisations of a fact have the very same prompt and forms, so the same model must rank the same; it did not: "
        "the distractors were drawn anew without a seed.",
        "Do not quote these files to more than two decimals; score them again with seeded distractors.",
    ),
    Check(
        "wide-differs",
        "wrong",
        "Narrow ranks do not follow from the wide ones",
        "Narrow ranks can be computed from wide ranks. The detail says how they differ: tie-order (only tied correct forms swapped), "
        "other-hardware (log-probabilities differ by rounding), other-distractors (the two runs ranked against different distractors).",
        "Tie-order is harmless for R@k; other-hardware costs about 0.1 %; with other-distractors compare the wide dumps only.",
    ),
    Check(
        "shifted-rows",
        "wrong",
        "Rank cells of a neighbouring row",
        "The ranked forms are not this row's forms but those of the row above or below: columns slipped against each other.",
        "Score the file again, or leave the rows out; statistics by form drop them silently.",
    ),
    Check(
        "foreign-forms",
        "wrong",
        "Ranked forms that are not the row's",
        "The ranked forms differ from the row's object cells, and no neighbouring row explains them.",
        "Score the file again.",
    ),
    Check(
        "error-cells",
        "wrong",
        "ERROR scored as text",
        "A prompt or object cell holds the marker ERROR, and the row was scored all the same.",
        "Leave the row out; the benchmark file should not have let it pass.",
    ),
    Check(
        "rows-differ",
        "wrong",
        "Rows do not match the benchmark",
        "The dump holds rows that its rule excludes, or lacks rows that it keeps.",
        "Score the file again from the benchmark as it is now.",
    ),
    Check(
        "flags-differ",
        "wrong",
        "Flags contradict ranks",
        "A top-1 or top-3 flag does not follow from the ranks.",
        "Score the file again.",
    ),
    Check(
        "impossible-ranks",
        "wrong",
        "Ranks beyond the candidates",
        "A rank is larger than the number of correct forms and distractors that the rows allow.",
        "Rows were removed after scoring, or the pool came from elsewhere: find out before comparing.",
    ),
    Check(
        "leaked-prefix",
        "wrong",
        "Sentences with a leaked key",
        'A sentence begins with a key of the request, such as "Translation:", or spans several lines.',
        "Strip the key and locate the object again.",
    ),
    Check(
        "few-shot",
        "biased",
        "Facts shown as examples",
        "The translator saw these facts, with their right translation, among its examples.",
        "Leave them out when that verbalisation is compared.",
    ),
    Check(
        "not-final",
        "biased",
        "Objects that are not final",
        "Words follow the object and are not scored: the prompt is cut too early, or the wrong words were taken for the object.",
        "Score the rest of the sentence too (protocol corrected), or leave the rows out.",
    ),
    Check(
        "stray-blanks",
        "biased",
        "Stray blanks in prompts",
        "A prompt begins with white space, or is nothing else; the model sees another first token than in the other verbalisations.",
        "Trim prompts (protocol corrected does).",
    ),
    Check(
        "minus-infinity",
        "biased",
        "Prompts of probability zero",
        "The prompt's log-probability underflowed to -inf: sums in half precision.",
        "Score in float32; means of log-probabilities must say what they leave out.",
    ),
    Check(
        "half-precision",
        "biased",
        "Sums in half precision",
        "All log-probabilities are numbers of half precision: many forms tie, and ties were broken in favour of the correct ones.",
        "Score in float32.",
    ),
    Check(
        "ties",
        "biased",
        "Tied ranks",
        "Candidates have the same score, so their order says nothing. In paper dumps only swapped correct forms show it: a lower bound.",
        "Report mid-ranks (protocol corrected does).",
    ),
    Check(
        "english-distractors",
        "biased",
        "English labels among the distractors",
        "Distractors equal an English label of the relation; in a language of another script they are no competition.",
        "Take the English label out of the aliases (protocol corrected does).",
    ),
    Check(
        "own-forms",
        "biased",
        "The right entity among its distractors",
        "A distractor is another form of the correct object, and beating it counts as a miss.",
        "Rank entities, not strings (protocol corrected does).",
    ),
    Check(
        "also-true",
        "biased",
        "Right answers among the distractors",
        "A distractor is another object that the benchmark gives for the same subject.",
        "Take all true objects of a subject out of its distractors (protocol corrected does).",
    ),
    Check(
        "few-distractors",
        "biased",
        "Too few distractors",
        "A fact has fewer than ten distractors: a rank among ten is easier than one among fifty; without any, R@1 is 1.",
        "Mark the relation in tables, or leave it out of means.",
    ),
    Check(
        "small-pool",
        "note",
        "Fewer distractors than the pool's limit",
        "Facts of this relation have fewer than 50 distractors; a table of true counts is `stats.py relations`.",
        "Say so where relations are compared.",
    ),
    Check(
        "limited",
        "note",
        "The first rows alone",
        "The dump holds the first rows that its rule keeps and no others, as a run with --limit leaves it.",
        "Score the rest before relations or languages are compared.",
    ),
    Check(
        "no-row-numbers",
        "note",
        "No row numbers",
        "The file has no index column, so its rows can only be matched with the benchmark by their facts.",
        "Match by subject and object, not by position.",
    ),
)
CHECKS: dict[str, Check] = {check.name: check for check in _CHECKS}
