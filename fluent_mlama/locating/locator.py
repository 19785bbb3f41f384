"""Finds the object's surface form in a sentence: every name in every place, then the surest place."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from fluent_mlama.locating.boundary import capitalized_neighbours, in_compound, in_longer_han
from fluent_mlama.locating.forms import Categories, forms_of
from fluent_mlama.locating.frame import Frame
from fluent_mlama.locating.matching import (
    Match,
    core_steps,
    exact_matches,
    inflected_matches,
    partial_matches,
    similar_matches,
)
from fluent_mlama.locating.result import UNSURE, Location, NotFound, Outcome, Row
from fluent_mlama.locating.similarity import Similarity, spelling
from fluent_mlama.locating.span import widen
from fluent_mlama.locating.subject import overlaps_all, subject_windows
from fluent_mlama.locating.text import Word, fold, split_words

_TRUST = {
    "exact": 0.98,
    "inflected": 0.96,
    "known": 0.93,
    "reduced": 0.92,
    "alias": 0.9,
    "english": 0.9,
    "part": 0.8,
    "similar": 0.85,
    "frame": 0.8,
}
_ENOUGH = 0.85
_JUST_UNSURE = UNSURE - 0.01
_SURE = 0.85
_LEAST = 0.5
_IN_SLOT = 0.5
_SHORTENED = ("reduced", "part")
_CLOSE = 0.95
_LIKE_ENOUGH = {
    "similar": 0.8,
    "inflected": 0.7,
    "reduced": 0.7,
    "alias": 0.7,
    "english": 0.7,
    "known": 0.7,
}
"""Likeness of the name, by method, below which no place in the sentence makes a find sure."""
_IN_SUBJECT = 0.8
_GLOSS = 0.8
_OPENING, _CLOSING = tuple("(（["), tuple(")）]")
_KNOWN_FORMS = 12


@dataclass(slots=True)
class _Sentence:
    """A row taken apart once."""

    row: Row
    words: list[Word]
    windows: list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class _Place:
    """A match with how sure it is; ``inside``: it lies in the subject."""

    match: Match
    confidence: float
    inside: bool


@dataclass(frozen=True, slots=True)
class _Owner:
    """An object of the relation as the bearer of one name: its English label and the folded name."""

    english: str
    name: str


class Locator:
    """Locates objects in the sentences of one language, best of one relation.

    A fresh locator works on single rows. ``fit`` on all rows of the relation teaches it the category words of the labels,
    the frame of the sentences and the forms that each object takes; rows it is asked for later need not be among them.
    lemmatise: further lemmas of a word beside simplemma's, say ``stanza_lemmatiser``'s.
    """

    def __init__(
        self,
        lang: str,
        relation: str | None = None,
        lemmatise: Callable[[str], Iterable[str]] | None = None,
    ) -> None:
        self.lang = lang
        self.relation = relation
        self._similarity = Similarity(lang, lemmatise)
        self._forget()

    def _forget(self) -> None:
        self._categories = Categories()
        self._frame = Frame()
        self._known: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
        self._fillers: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
        self._owners: dict[tuple[str, ...], dict[str, _Owner]] = defaultdict(dict)

    def fit(self, rows: Iterable[Row]) -> Locator:
        """Learn from all rows of the relation (labels, frame, forms); returns itself."""
        rows = list(rows)
        self._forget()
        names = (
            (row.object_key, name)
            for row in rows
            for name in (row.label, row.english, *row.aliases)
        )
        self._categories = Categories.learn((row.label for row in rows if row.label), names)
        frame = Frame()
        known: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
        unsure = []
        for row in rows:
            sentence = self._take_apart(row)
            best = self._best(sentence) if sentence.words else None
            if best is not None and self._is_sure(best[0], sentence) and not best[1]:
                match = best[0].match
                frame.add(sentence.words, match.first, match.last, row.object_key)
                start, end = widen(row, sentence.words, match, self._similarity, self._categories)
                known[row.object_key][row.sentence[start:end], match.method] += 1
            elif sentence.words:
                unsure.append(sentence)
        self._frame, self._known = frame, known
        self._learn_owners(rows, unsure)
        for sentence in unsure:
            slot = frame.slot(sentence.words, sentence.windows) if frame.known else None
            if slot is not None:
                first = frame.without_head(sentence.words, slot.first, slot.last)
                filler = tuple(word.text for word in sentence.words[first : slot.last])
                self._fillers[filler][sentence.row.object_key] += 1
        return self

    def _learn_owners(self, rows: Sequence[Row], unsure: Sequence[_Sentence]) -> None:
        """Remember every name of every object, and the forms it was found in, with the object that bears them."""
        names: dict[str, list[tuple[str, str]]] = {
            key: list(forms) for key, forms in self._known.items()
        }
        for (
            sentence
        ) in unsure:  # less sure than what the frame is learnt from, but named all the same
            place = self._best(sentence)
            if (
                place is not None
                and not place[0].inside
                and place[0].match.method != "frame"
                and place[0].confidence >= UNSURE
            ):
                start, end = widen(
                    sentence.row, sentence.words, place[0].match, self._similarity, self._categories
                )
                names.setdefault(sentence.row.object_key, []).append(
                    (sentence.row.sentence[start:end], "known")
                )
        for row in {row.object_key: row for row in rows}.values():
            for form in forms_of(row, self._categories, names.get(row.object_key, ())):
                for key in self._lemma_keys(form.words):
                    self._owners[key].setdefault(
                        row.object_key, _Owner(row.english, " ".join(form.key))
                    )

    @staticmethod
    def _is_sure(place: _Place, sentence: _Sentence) -> bool:
        """Whether the frame may be learnt from the place; a shortened name in a script without blanks may be cut wrongly."""
        cut = place.match.method == "reduced" and sentence.words[place.match.first].unspaced
        return place.confidence >= _SURE and not place.inside and not cut

    def locate(self, row: Row) -> Outcome:
        """Where the row's object stands, or why that cannot be told."""
        sentence = self._take_apart(row)
        if not sentence.words or not row.label.strip():
            return NotFound("empty")
        best = self._best(sentence)
        if best is None:
            return NotFound("not-found")
        place, ambiguous = best
        if place.inside:
            return NotFound("inside-subject")
        if place.confidence < _LEAST:
            return NotFound("not-found")
        start, end = widen(row, sentence.words, place.match, self._similarity, self._categories)
        return Location(
            row.sentence, start, end, place.match.method, round(place.confidence, 3), ambiguous
        )

    def locate_all(self, rows: Sequence[Row]) -> list[Outcome]:
        """Fit on the rows, then locate each."""
        self.fit(rows)
        return [self.locate(row) for row in rows]

    def _take_apart(self, row: Row) -> _Sentence:
        words = split_words(row.sentence)
        return _Sentence(
            row, words, subject_windows((row.subject, row.english_subject), words, self._similarity)
        )

    def _best(self, sentence: _Sentence) -> tuple[_Place, bool] | None:
        """The surest place and whether another one is nearly as sure; the surer ways are tried first."""
        places: list[_Place] = []
        for number, matches in enumerate(self._ways(sentence)):
            places += [
                self._judge(match, sentence)
                for match in matches
                if not self._is_another(match, sentence)
            ]
            sure = (place for place in places if not place.inside and place.confidence >= _ENOUGH)
            if any(number or place.match.method not in _SHORTENED for place in sure):
                break
        outside = [place for place in places if not place.inside]
        if not outside:
            return (places[0], False) if places else None
        best = max(outside, key=lambda place: (place.confidence, self._order(place, sentence)))
        best = self._longer(best, outside)
        best = self._whole_filler(best, sentence)
        rivals = [
            p
            for p in places
            if p.match.score * _TRUST[p.match.method]
            >= 0.9 * best.match.score * _TRUST[best.match.method]
            and (p.match.last <= best.match.first or p.match.first >= best.match.last)
        ]
        return best, bool(rivals)

    def _ways(self, sentence: _Sentence) -> Iterator[Iterable[Match]]:
        """Matches by ever weaker ways."""
        row, words = sentence.row, sentence.words
        known = (
            [form for form, _ in self._known[row.object_key].most_common(_KNOWN_FORMS)]
            if row.object_key in self._known
            else []
        )
        forms = forms_of(row, self._categories, known)
        texts, common = {word.text for word in words}, self._categories.common
        present = [form for form in forms if form.words[0].text in texts]
        yield [match for form in present for match in exact_matches(form, words)]
        yield [
            match for form in forms for match in inflected_matches(form, words, self._similarity)
        ]
        parts: list[Match] = []
        for form in forms:
            if len(form.words) > 1:
                core = core_steps(form, forms, self._similarity)
                parts += partial_matches(form, words, self._similarity, common, core)
        yield parts
        yield [
            match for form in forms for match in similar_matches(form, words, self._similarity, 0.5)
        ]
        yield self._by_frame(sentence)

    def _by_frame(self, sentence: _Sentence) -> list[Match]:
        """The words that fill the object's slot, if nothing speaks against them."""
        slot = self._frame.slot(sentence.words, sentence.windows) if self._frame.known else None
        if slot is None:
            return []
        row, words = sentence.row, sentence.words
        first = self._frame.without_head(words, slot.first, slot.last)
        filler = tuple(word.text for word in words[first : slot.last])
        counts = self._fillers.get(filler, Counter())
        seconded = counts[row.object_key] >= 2 and counts[row.object_key] >= 0.6 * counts.total()
        if not seconded and not self._frame.looks_like_object(words, first, slot.last):
            return []
        return [Match(first, slot.last, slot.precision**0.5 * (1.0 if seconded else 0.75), "frame")]

    def _lemma_keys(self, words: Sequence[Word]) -> list[tuple[str, ...]]:
        """By what a name is known whatever its case: its words, and the lemmas if it is one word."""
        if len(words) == 1:
            return [(lemma,) for lemma in self._similarity.lemmas(words[0].text)]
        return [tuple(word.text for word in words)]

    def _is_another(self, match: Match, sentence: _Sentence) -> bool:
        """Whether a loosely matched place is, taken closely, the name of another object of the relation."""
        if match.score >= _CLOSE and match.method != "frame":
            return False
        row, found = sentence.row, sentence.words[match.first : match.last]
        owners = {
            key: owner
            for name in self._lemma_keys(found)
            for key, owner in self._owners.get(name, {}).items()
        }
        if (
            not owners
            or row.object_key in owners
            or row.english in {owner.english for owner in owners.values()}
        ):
            return False
        place = " ".join(word.text for word in found)
        return spelling(fold(row.label), place) < max(
            spelling(owner.name, place) for owner in owners.values()
        )

    def _judge(self, match: Match, sentence: _Sentence) -> _Place:
        confidence = (
            match.score
            * _TRUST[match.method]
            * (_GLOSS if self._in_brackets(match, sentence) else 1.0)
        )
        windows = sentence.windows
        inside = overlaps_all(match.first, match.last, windows)
        likely = windows and overlaps_all(
            match.first, match.last, [windows[-1 if _object_first(sentence.row) else 0]]
        )
        agreement = 0.0
        if self._frame.known and match.method != "frame":
            agreement = self._frame.agreement(sentence.words, match.first, match.last)
            if agreement >= _IN_SLOT:
                confidence += (1 - confidence) * agreement / 2
                inside = False
            else:
                confidence *= 0.75 + 0.25 * agreement / _IN_SLOT
        if likely and agreement < _IN_SLOT:
            confidence *= _IN_SUBJECT
        standing_alone = agreement >= _IN_SLOT or not self._goes_on(match, sentence)
        if (
            in_compound(sentence.words, match.first, match.last, self._similarity)
            or not standing_alone
        ):
            confidence = min(confidence, _JUST_UNSURE)
        if match.score < _LIKE_ENOUGH.get(match.method, 0.0):
            confidence = min(confidence, _JUST_UNSURE)
        return _Place(match, confidence, inside)

    def _goes_on(self, match: Match, sentence: _Sentence) -> bool:
        """Whether the match is but a piece of a longer name: 大阪 in 東大阪市, "Mexico" in "New Mexico"."""
        words = sentence.words
        if in_longer_han(words, match.first, match.last):
            return True
        neighbours = list(capitalized_neighbours(words, match.first, match.last, self.lang))
        if not neighbours or match.method == "frame":
            return False
        start, end = widen(
            sentence.row, words, match, self._similarity, self._categories
        )  # with its title and legal form
        own = split_words(
            " ".join((sentence.row.label, sentence.row.english, *sentence.row.aliases))
        )
        for place in neighbours:
            word = words[place]
            subject = any(first <= place < last for first, last in sentence.windows)
            inside = start <= word.start < end
            category = word.text in self._categories.first or word.text in self._categories.last
            if not (
                subject
                or inside
                or category
                or any(self._similarity.compare(name, word).score > 0.6 for name in own)
            ):
                return True
        return False

    def _whole_filler(self, best: _Place, sentence: _Sentence) -> _Place:
        """In a script without blanks, the whole slot where the best place is but a piece of it, as of a name spelt otherwise."""
        match, words = best.match, sentence.words
        if (
            match.method not in ("reduced", "part", "similar")
            or not words[match.first].unspaced
            or not self._frame.known
        ):
            return best
        slot = self._frame.slot(words, sentence.windows)
        if (
            slot is None
            or not slot.first <= match.first < match.last <= slot.last
            or slot.last - slot.first > match.last - match.first + 3
        ):
            return best
        return replace(best, match=replace(match, first=slot.first, last=slot.last))

    @staticmethod
    def _in_brackets(match: Match, sentence: _Sentence) -> bool:
        """Whether the place is a gloss of its own: "(CNN)"."""
        text, words = sentence.row.sentence, sentence.words
        return (
            words[match.first].gap[-1:] in _OPENING
            and text[words[match.last - 1].end :][:1] in _CLOSING
        )

    def _longer(self, best: _Place, places: Sequence[_Place]) -> _Place:
        """A verbatim longer name around the best place, or the whole label in some inflection around a piece of it."""
        for place in sorted(places, key=lambda place: place.match.first - place.match.last):
            verbatim = place.match.score == 1.0 and place.match.method in (
                "alias",
                "english",
                "known",
            )
            if place.match.covers(best.match) and (verbatim or place.match.method == "inflected"):
                return replace(place, confidence=max(place.confidence, best.confidence))
        return best

    @staticmethod
    def _order(place: _Place, sentence: _Sentence) -> int:
        """Of equal places the later one is taken, unless the template has the object before the subject."""
        return -place.match.first if _object_first(sentence.row) else place.match.first


def _object_first(row: Row) -> bool:
    """Whether the template has ``[Y]`` before ``[X]``."""
    object_at, subject_at = row.template.find("[Y]"), row.template.find("[X]")
    return 0 <= object_at < subject_at
