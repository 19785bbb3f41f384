"""Where a name's words are in a sentence: the object's, and the subject's, where it is not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

from fluent_mlama.locating.forms import Form
from fluent_mlama.locating.similarity import UNLIKE, Likeness, Similarity
from fluent_mlama.locating.text import Word, split_words

_LEAST_LIKENESS = 0.6
_LONGEST_STRANGE = 3
_NEARLY_BEST = 0.6
_LEAST_WEIGHT = 0.3


@dataclass(frozen=True, slots=True)
class Match:
    """A place for the object: words ``first`` to ``last`` (exclusive), how alike (0 to 1) and the
    form that was looked for.

    lead, trail: letters of the first word before and of the last word after the object.
    """

    first: int
    last: int
    score: float
    method: str
    form: Form | None = None
    lead: int = 0
    trail: int = 0

    def overlaps(self, other: Match) -> bool:
        """Whether the two places share a word."""
        return self.first < other.last and other.first < self.last

    def covers(self, other: Match) -> bool:
        """Whether the other place lies inside this one and is shorter."""
        return (
            self.first <= other.first
            and other.last <= self.last
            and self.last - self.first > other.last - other.first
        )


def exact_matches(form: Form, words: Sequence[Word]) -> Iterator[Match]:
    """Every place where the folded words of the form stand as they are."""
    size, head = len(form.words), form.words[0].text
    key = form.key
    for first in range(len(words) - size + 1):
        if words[first].text == head and all(
            words[first + step].text == key[step] for step in range(1, size)
        ):
            yield Match(
                first,
                first + size,
                _edge_score(form, words, first, first + size),
                form.method,
                form,
            )


def _edge_score(form: Form, words: Sequence[Word], first: int, last: int) -> float:
    """1.0, less for a piece of a longer katakana name or a lone capital in lower case."""
    if (
        len(form.key) == 1
        and len(form.key[0]) == 1
        and form.words[0].capital != words[first].capital
    ):
        return 0.5
    for inner, outer in ((first, first - 1), (last - 1, last)):
        if (
            0 <= outer < len(words)
            and _katakana(words[inner])
            and _katakana(words[outer])
            and not words[max(inner, outer)].gap
        ):
            return 0.6
    return 1.0


def _katakana(word: Word) -> bool:
    return word.unspaced and "\u30a0" <= word.text[0] <= "\u30ff"


def inflected_matches(form: Form, words: Sequence[Word], similarity: Similarity) -> Iterator[Match]:
    """Places where each word of the form is inflected; scored by the weakest word, softened."""
    size = len(form.words)
    for first in range(len(words) - size + 1):
        place = first
        likenesses: list[Likeness] = []
        for name in form.words:
            likeness = similarity.compare(name, words[place]) if place < len(words) else UNLIKE
            # An ending that is set off ("Newark-a") belongs to the word before: skip it.
            if (
                likeness.score < _LEAST_LIKENESS
                and likenesses
                and place + 1 < len(words)
                and words[place].is_ending
            ):
                place += 1
                likeness = similarity.compare(name, words[place])
            if likeness.score < _LEAST_LIKENESS:
                break
            likenesses.append(likeness)
            place += 1
        else:
            scores = [likeness.score for likeness in likenesses]
            score = min(
                (min(scores) + sum(scores) / size) / 2, _edge_score(form, words, first, place)
            )
            method = "inflected" if form.method == "exact" and score < 1 else form.method
            yield Match(first, place, score, method, form, likenesses[0].lead, likenesses[-1].trail)


def partial_matches(
    form: Form,
    words: Sequence[Word],
    similarity: Similarity,
    common: Set[str] = frozenset(),
    core: Set[int] = frozenset(),
) -> Iterator[Match]:
    """Runs of words that are each like some word of a name of several words: "Santiago" for
    "Santiago de Chile".

    The score is the share of the name's letters that is there, times how alike they are. Words that
    many names have in common ("lengua", "University") tell nothing by themselves, nor does what a
    shorter name of the object lacks (``core_steps``).
    """
    letters = sum(len(word.text) for word in form.words)
    # place in the sentence -> (word of the name that it is most like, how alike)
    used: dict[int, tuple[int, float]] = {}
    for place, word in enumerate(words):
        step, likeness = max(
            (
                (step, similarity.compare(name, word).score)
                for step, name in enumerate(form.words)
                if len(name.text) > 2 or name.unspaced
            ),
            key=lambda pair: pair[1],
            default=(0, 0.0),
        )
        if likeness >= _LEAST_LIKENESS:
            used[place] = (step, likeness)
    for first in used:
        if first - 1 in used:
            continue
        last = first
        seen: set[int] = set()
        weight = 0.0
        while last in used and used[last][0] not in seen:
            step, likeness = used[last]
            if seen and words[last].unspaced and step != used[last - 1][0] + 1:
                break  # characters, unlike words, make a name in their order only: オーストリア, オーストラリア
            seen.add(step)
            weight += len(form.words[step].text) * likeness
            last += 1
        telling = any(form.words[step].text not in common for step in seen)
        telling = telling and (not core or not core.isdisjoint(seen))
        if (
            telling
            and (last - first > 1 or not words[first].unspaced)
            and not _other_name(form, words, first, last, used)
        ):
            score = min((weight / letters) ** 0.5, _edge_score(form, words, first, last))
            yield Match(first, last, score, "part", form)


def core_steps(form: Form, forms: Sequence[Form], similarity: Similarity) -> set[int]:
    """Which words of a name are a shorter name of the same object, in some inflection.

    "inglesa" of "lengua inglesa" beside "inglés"; none where no shorter name lies in this one.
    """
    core: set[int] = set()
    for shorter in forms:
        if len(shorter.words) >= len(form.words):
            continue
        steps: set[int] = set()
        for name in shorter.words:
            likeness = [similarity.compare(name, word).score for word in form.words]
            if max(likeness) < _LEAST_LIKENESS:
                break
            steps.add(likeness.index(max(likeness)))
        else:
            core |= steps
    return core


def _other_name(
    form: Form, words: Sequence[Word], first: int, last: int, used: dict[int, tuple[int, float]]
) -> bool:
    """Whether the run continues into another name: "San Diego" is no part of "San Francisco"."""
    more_behind = used[last - 1][0] + 1 < len(form.words)
    more_before = used[first][0] > 0
    behind = last < len(words) and words[last].capital and words[last].gap.strip() in ("", "-")
    before = first > 1 and words[first - 1].capital and words[first].gap.strip() in ("", "-")
    return (more_behind and behind) or (more_before and before)


def similar_matches(
    form: Form, words: Sequence[Word], similarity: Similarity, least: float
) -> Iterator[Match]:
    """Every place where the form's words are spelt much alike, in this script or another.

    The score is that of the least alike word: a category word ("language", "City", "Records") is
    the same in two different names and would make them alike.
    """
    size = len(form.words)
    if any(word.unspaced for word in form.words):
        return
    for first in range(len(words) - size + 1):
        scores = [
            similarity.resemblance(form.words[step], words[first + step]) for step in range(size)
        ]
        if min(scores) >= least:
            yield Match(first, first + size, min(scores), "similar", form)


def subject_windows(
    labels: Sequence[str], words: Sequence[Word], similarity: Similarity
) -> list[tuple[int, int]]:
    """The runs of words that tell the subject best, as (first, last exclusive): equally good ones
    if there are several.

    A run holds each word of a label once and little words in between; the best run holds most of
    the label's letters in fewest words, and runs nearly as good are kept: one of them is the
    subject, the other may be the object. Labels in two languages are tried and the better one
    counts, the longer of two equals.
    """
    best: list[tuple[int, int]] = []
    best_weight = 0.0
    for label in dict.fromkeys(filter(None, labels)):
        names = split_words(label)
        weight, windows = _best_windows(names, words, similarity)
        if weight > best_weight:
            best, best_weight = windows, weight
    return best


def _best_windows(
    names: Sequence[Word], words: Sequence[Word], similarity: Similarity
) -> tuple[float, list[tuple[int, int]]]:
    letters = sum(len(name.text) for name in names) or 1
    alike: list[list[int]] = [
        [step for step, name in enumerate(names) if _alike(name, word, similarity)]
        for word in words
    ]
    best: dict[tuple[int, int], float] = {}
    for first, steps in enumerate(alike):
        if not steps:
            continue
        seen: set[int] = set()
        end = first
        for place in range(first, len(words)):
            free = [step for step in alike[place] if step not in seen]
            if free:
                seen.add(free[0])
                end = place + 1
            elif alike[place] or words[place].unspaced or len(words[place].text) > _LONGEST_STRANGE:
                break
        # Share of the label's letters; of equal runs the shorter one wins.
        weight = sum(len(names[step].text) for step in seen) / letters - 0.001 * (end - first)
        best[first, end] = weight
    if not best:
        return 0.0, []
    top = max(best.values())
    if top < _LEAST_WEIGHT:
        return 0.0, []
    kept: list[tuple[int, int]] = []
    for window, weight in sorted(best.items(), key=lambda item: -item[1]):
        if weight >= _NEARLY_BEST * top and not any(
            window[0] < last and first < window[1] for first, last in kept
        ):
            kept.append(window)
    return top + 0.001 * letters, sorted(kept)


def overlaps_all(first: int, last: int, windows: Sequence[tuple[int, int]]) -> bool:
    """Whether words ``first`` to ``last`` touch every window of the subject (and there is one)."""
    return bool(windows) and all(first < end and start < last for start, end in windows)


def _alike(name: Word, word: Word, similarity: Similarity) -> bool:
    return similarity.compare(name, word).score >= _LEAST_LIKENESS or (
        len(name.text) > 3 and len(word.text) > 3 and similarity.resemblance(name, word) >= 0.75
    )
