"""Which words of a sentence name the subject: the object is never looked for there."""

from __future__ import annotations

from collections.abc import Sequence

from fluent_mlama.locating.similarity import Similarity
from fluent_mlama.locating.text import Word, split_words

_LEAST_LIKENESS = 0.6
_LONGEST_STRANGE = 3
_NEARLY_BEST = 0.6
_LEAST_WEIGHT = 0.3


def subject_windows(
    labels: Sequence[str], words: Sequence[Word], similarity: Similarity
) -> list[tuple[int, int]]:
    """The runs of words that tell the subject best, as (first, last exclusive): equally good ones if there are several.

    A run holds each word of a label once and little words in between; the best run holds most of the label's letters in
    fewest words, and runs nearly as good are kept: one of them is the subject, the other may be the object. Labels in two
    languages are tried and the better one counts, the longer of two equals.
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
    """Whether words ``first`` to ``last`` touch every window that may be the subject's (and there is one)."""
    return bool(windows) and all(first < end and start < last for start, end in windows)


def _alike(name: Word, word: Word, similarity: Similarity) -> bool:
    return similarity.compare(name, word).score >= _LEAST_LIKENESS or (
        len(name.text) > 3 and len(word.text) > 3 and similarity.resemblance(name, word) >= 0.75
    )
