"""How far a word of a sentence can be an inflected form of a word of a name.

The lemmatiser is asked where there is one, but its dictionaries hold few names; the rest is told by
the common beginning of the two words: an inflected form keeps the stem and changes a short ending,
in every language of mLAMA.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import simplemma
from rapidfuzz.distance import Levenshtein
from rapidfuzz.distance.Prefix import similarity as common_prefix

from fluent_mlama.console import UserError
from fluent_mlama.languages import is_known, language
from fluent_mlama.locating.grammar import (
    is_korean,
    particle_length,
    proclitic_length,
    proclitic_rests,
    regional_names,
    unmutated,
    without_article,
)
from fluent_mlama.locating.text import Word, bare, fold, romanise

_UNINFLECTED = frozenset({"zh", "vi", "ja", "th", "lo", "my", "km", "yue", "wuu"})
_SPARING = "af ca ceb da de en es fil fr gl id it jv ms nb nl nn no pt sv sw tl"
"""Languages whose names take few endings: what else follows makes another name (Níger, Nigeria)."""
_SPARING_ENDINGS = "a as e en ens er es et ets i n ne nya o os r s t"
_AGGLUTINATING = frozenset(("az", "et", "fi", "hu", "tr"))
"""Languages whose stems keep their last vowel (Turku, Turussa; not Turkissa)."""
_WEAKENED = frozenset(
    vowel + other for vowel, others in {"i": "e", "a": "oi", "e": "i"}.items() for other in others
)
_GRADED = {"k": "gjv", "p": "bmv", "t": "dlnr", "c": "c", "n": "s", "": ""}
_COUNTRY = re.compile("i[yj]?a")
_LONGEST_ENDING = 6
_VOWELS = "aeiouy"
_SOFTENED = "kg pb td ck kc gz hz kh nm"
"""The last consonant of a stem and what it becomes before an ending."""
_STANZA_CODES = {"zh": "zh-hans", "no": "nb"}
_RESPELT = 0.8
_LOOKALIKE = 0.65
"""Highest likeness of a word that the dictionary knows to be another one."""


@dataclass(frozen=True, slots=True)
class Likeness:
    """How alike two words are: ``score`` 0 to 1 (1 = the same), ``lead`` and ``trail`` the letters
    of the sentence's word that are proclitics before and particles after the name.
    """

    score: float
    lead: int = 0
    trail: int = 0


SAME = Likeness(1.0)
UNLIKE = Likeness(0.0)


class Similarity:
    """Compares words in one language, remembering every pair it has seen."""

    def __init__(self, lang: str, lemmatise: Callable[[str], Iterable[str]] | None = None) -> None:
        self.lang = lang
        self._lemmatise = lemmatise
        self._lemmatiser = language(lang).lemmatiser if is_known(lang) else None
        self._inflects = lang not in _UNINFLECTED
        self._seen: dict[tuple[str, str], Likeness] = {}
        self._lemmas: dict[str, frozenset[str]] = {}

    def compare(self, name: Word, word: Word) -> Likeness:
        """How far ``word`` is a form of ``name``: the same, by lemma, by stem, or unlike."""
        if name.text == word.text:
            return SAME
        if name.unspaced or word.unspaced:
            return UNLIKE
        pair = (name.text, word.text)
        likeness = self._seen.get(pair)
        if likeness is None:
            likeness = self._seen[pair] = self._compare(name, word)
        return likeness

    def _compare(self, name: Word, word: Word) -> Likeness:
        if name.bare == word.bare:
            return Likeness(0.97)
        if len(name.text) > 1:
            if self.lang in ("ar", "he") and (lead := proclitic_length(word.text, name.text)):
                return Likeness(0.96, lead=lead)
            if trail := particle_length(word.text, name.text):
                return Likeness(0.96, trail=trail)
            if found := _regional(name.text, word.text):
                return found
        if not self._inflects or len(name.text) < 2:
            return UNLIKE
        # From here on the ways get weaker, and so do their scores.
        if self.lemmas(name.text) & self.lemmas(word.text):
            return Likeness(0.95, lead=self._glued(name.text, word.text))
        if self.lang == "ar" and without_article(name.text) == without_article(word.text):
            return Likeness(0.93)
        radicals = unmutated(word.bare, self.lang)
        if name.bare in radicals or word.bare in unmutated(
            name.bare, self.lang
        ):  # a label may be mutated by its own article
            return Likeness(0.95)
        score = max(
            [
                self._stem_score(name.bare, word.bare),
                *(0.95 * self._stem_score(name.bare, radical) for radical in radicals),
            ]
        )
        return Likeness(
            min(score, _LOOKALIKE) if self._is_other_word(name.text, word.text) else score
        )

    def _stem_score(self, name: str, word: str) -> float:
        """``stem_score`` by the habits of this language."""
        shared = common_prefix(name, word)
        lost, new = name[shared:], word[shared:]
        if not self._may_end(new):
            return 0.0
        if self.lang in _AGGLUTINATING and lost and not keeps_stem(lost, new):
            return 0.0
        return stem_score(name, word)

    def _may_end(self, ending: str) -> bool:
        """Whether words here can take the ending; not ``ia``, which makes a country of a river."""
        if self.lang in _SPARING.split():
            return ending in _SPARING_ENDINGS.split()
        return self.lang == "fi" or not _COUNTRY.match(romanise(ending[:3]))

    def _is_other_word(self, name: str, word: str) -> bool:
        """Whether the dictionary knows the word as a form of another: "Нигерии" is not Нигер."""
        if not self.is_known(word):
            return False
        own, others = self.lemmas(name), self.lemmas(word) - {word} or frozenset((word,))
        if own & others:
            return False
        return not any(
            _same_stem(lemma, other, self.lang in _AGGLUTINATING)
            for lemma in own
            for other in others
        )

    def is_known(self, word: str) -> bool:
        """Whether the dictionary of the language has the folded word."""
        if not self._lemmatiser:
            return False
        return any(
            simplemma.is_known(written, lang=self._lemmatiser)
            for written in (word, word.capitalize())
        )

    def _glued(self, name: str, word: str) -> int:
        """How many letters before the inflected name are proclitics: the fewest possible."""
        if self.lang not in ("ar", "he"):
            return 0
        rests = (
            rest
            for rest in proclitic_rests(word)
            if self.lemmas(rest) & self.lemmas(name) or common_prefix(name, rest) >= 3
        )
        return len(word) - len(next(rests, word))

    def lemmas(self, folded: str) -> frozenset[str]:
        """The lemmas of a folded word and the word itself (a lemma may be two joined by ``|``)."""
        lemmas = self._lemmas.get(folded)
        if lemmas is None:
            found = {folded}
            if self._lemmatiser and len(folded) > 2:
                for written in (folded, folded.capitalize()):
                    found.update(
                        fold(lemma)
                        for lemma in simplemma.lemmatize(written, lang=self._lemmatiser).split("|")
                    )
            if self._lemmatise:
                found.update(
                    fold(lemma)
                    for written in (folded, folded.capitalize())
                    for lemma in self._lemmatise(written)
                )
            lemmas = self._lemmas[folded] = frozenset(found)
        return lemmas

    def resemblance(self, name: Word, word: Word) -> float:
        """A weaker likeness, 0 to 1, for names spelt otherwise or in another script; endings cost
        little.
        """
        if name.unspaced or word.unspaced:
            return 1.0 if name.text == word.text else 0.0
        likeness = resemblance(name.bare, word.bare, self._may_end(word.bare[len(name.bare) :]))
        return min(likeness, _LOOKALIKE) if self._is_other_word(name.text, word.text) else likeness


def _regional(name: str, word: str) -> Likeness | None:
    """Likeness of a Korean place with or without its word for city ("부산", "부산광역시에서")."""
    for other in regional_names(name) if is_korean(name) else ():
        if word == other or particle_length(word, other):
            return Likeness(0.9, trail=len(word) - len(other))
    return None


def stem_score(name: str, word: str) -> float:
    """Up to 0.9 if ``word`` shares the stem of ``name`` (a dictionary form), else 0."""
    shared = common_prefix(name, word)
    ending, new_ending = len(name) - shared, len(word) - shared
    if shared < 2 or new_ending > _LONGEST_ENDING:
        return 0.0
    if ending == 0:
        likely = len(name) > 2 and new_ending <= max(2, len(name))
    else:
        likely = (
            shared >= 3
            and ending <= min(3, new_ending + 2)
            and shared >= 0.6 * len(name)
            and shared >= 0.45 * len(word)
        )
        likely = likely and _can_change(name[shared:], word[shared:])
    return max(0.0, 0.9 - 0.04 * ending - 0.03 * new_ending) if likely else 0.0


@lru_cache(maxsize=50_000)
def _can_change(ending: str, new_ending: str) -> bool:
    """Whether a name can lose this ending: a vowel, a final s, a softening consonant (not Iran)."""
    lost, new = romanise(ending), romanise(new_ending)
    return (
        any(letter in _VOWELS for letter in lost)
        or lost == "s"
        or ending == "ь"
        or lost[:1] + new[:1] in _SOFTENED.split()
    )


def keeps_stem(lost: str, new: str) -> bool:
    """Whether ``new`` can replace ``lost``: the vowel stays, a stop before it weakens."""
    if lost == "nen":  # Finnish -nen, -sen
        return new.startswith("s")
    stop, vowel = (lost[:-1], lost[-1]) if lost[-1] in _VOWELS else (lost, "")
    following = new.lstrip("bcdfghjklmnpqrstvwxyz")
    if len(stop) > 1 or stop not in _GRADED:
        return False
    weakened = new[: len(new) - len(following)]
    if stop and weakened and weakened[0] not in _GRADED[stop]:
        return False
    return not vowel or following[:1] == vowel or vowel + following[:1] in _WEAKENED


def _same_stem(name: str, lemma: str, exact: bool) -> bool:
    """Whether two lemmas are one word, spelt otherwise or of another gender, not a longer word."""
    name, lemma = bare(name), bare(lemma)
    if name.isascii() != lemma.isascii():  # as Serbian in its two scripts
        name, lemma = romanise(name), romanise(lemma)
    shared = common_prefix(name, lemma)
    lost, new = len(name) - shared, len(lemma) - shared
    respelt = spelling(name, lemma) > _RESPELT
    return respelt or (
        not exact and shared >= 3 and max(lost, new) <= 2 and not (lost == 0 and new == 2)
    )


def spelling(name: str, word: str) -> float:
    """Normalised Levenshtein similarity of the two as they are, 0 to 1."""
    return float(Levenshtein.normalized_similarity(name, word))


@lru_cache(maxsize=100_000)
def resemblance(name: str, word: str, may_end: bool = True) -> float:
    """Normalised Levenshtein similarity of the two, romanised where the scripts differ.

    may_end: whether an ending of the word is left out.
    """
    if not (name.isascii() and word.isascii()):
        name, word = bare(romanise(name)), bare(romanise(word))
    if not name or not word:
        return 0.0
    # An ending of up to four letters is nearly free: cut the word to the name's length.
    whole = Levenshtein.normalized_similarity(name, word)
    if may_end and 3 < len(name) < len(word) <= len(name) + 4:
        whole = max(whole, 0.95 * Levenshtein.normalized_similarity(name, word[: len(name)]))
    return whole


def stanza_lemmatiser(lang: str, folder: Path | None = None) -> Callable[[str], frozenset[str]]:
    """A function from a word to its lemmas, by a Stanza pipeline that is loaded once and never
    downloads anything.

    folder: where the models lie (Stanza's own place if None). A word's lemma may be missing (None
    or "_"): the set is empty then; a double lemma ("a|b") counts as two. Raises UserError where
    Stanza or the language's model is not installed.
    """
    try:
        import stanza
    except ImportError:
        raise UserError(
            "stanza is not installed: run 'pip install stanza' or go without it"
        ) from None
    code = _STANZA_CODES.get(lang, lang)
    place = {} if folder is None else {"dir": str(folder)}
    try:
        pipeline = stanza.Pipeline(
            code, processors="tokenize,pos,lemma", download_method=None, verbose=False, **place
        )
    except Exception as error:  # Stanza raises many kinds where a model or its index is missing
        raise UserError(
            f"stanza has no model for '{code}' here ({error}): run stanza.download('{code}') first"
        ) from None

    @lru_cache(maxsize=100_000)
    def lemmas(word: str) -> frozenset[str]:
        told = [one.lemma for sentence in pipeline(word).sentences for one in sentence.words]
        if len(told) != 1 or told[0] in (None, "_"):
            return frozenset()
        return frozenset(told[0].split("|"))

    return lemmas
