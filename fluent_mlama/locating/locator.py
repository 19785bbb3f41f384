"""Finds the object's surface form: every name in every place, then the surest place."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from fluent_mlama.locating.forms import Categories, forms_of
from fluent_mlama.locating.frame import SentenceFrame
from fluent_mlama.locating.matching import (
    Match,
    core_steps,
    exact_matches,
    inflected_matches,
    overlaps_all,
    partial_matches,
    similar_matches,
    subject_windows,
)
from fluent_mlama.locating.result import UNSURE, Location, NotFound, Outcome, Row
from fluent_mlama.locating.similarity import Similarity, spelling
from fluent_mlama.locating.span import (
    capitalized_neighbours,
    in_compound,
    in_longer_han,
    widen,
)
from fluent_mlama.locating.text import Word, fold, split_words

# How far each way of finding a name is believed; measured on the published sentences
# (docs/locating.md), as are the other numbers below. The product of trust and likeness is the
# confidence, which the frame then raises or lowers.
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
_SURE = 0.85
"""From here on weaker ways are not tried, and the frame is learnt from the place."""
_JUST_UNSURE = UNSURE - 0.01
_LEAST = 0.5
_IN_SLOT = 0.5
_SHORTENED = ("reduced", "part")
_CLOSE = 0.95
_LIKE_ENOUGH = {"similar": 0.8} | dict.fromkeys(
    ("inflected", "reduced", "alias", "english", "known"), 0.7
)
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
    """An object as the bearer of one name: its English label and the folded name."""

    english: str
    name: str


class Locator:
    """Locates objects in the sentences of one language, best of one relation.

    A fresh locator works on single rows. ``fit`` on all rows of the relation teaches it the
    category words of the labels, the frame of the sentences and the forms that each object takes;
    rows it is asked for later need not be among them.
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
        self._frame = SentenceFrame()
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
        frame = SentenceFrame()
        known: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
        unsure = []
        for row in rows:
            sentence = self._take_apart(row)
            best = self._best(sentence) if sentence.words else None
            if best is not None and self._is_sure(best[0], sentence) and not best[1]:
                match = best[0].match
                frame.add(sentence.words, match.first, match.last, row.object_key)
                known[row.object_key][self._surface(match, sentence), match.method] += 1
            elif sentence.words:
                unsure.append(sentence)
        # Only now: while learning, no row may profit from the rows before it.
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
        """Remember every name of every object, and the forms it was found in."""
        names = {key: list(forms) for key, forms in self._known.items()}
        # Less sure than what the frame is learnt from, but named all the same.
        for sentence in unsure:
            best = self._best(sentence)
            if best is None or best[0].inside or best[0].confidence < UNSURE:
                continue
            if best[0].match.method != "frame":
                surface = self._surface(best[0].match, sentence)
                names.setdefault(sentence.row.object_key, []).append((surface, "known"))
        for row in {row.object_key: row for row in rows}.values():
            for form in forms_of(row, self._categories, names.get(row.object_key, ())):
                for key in self._lemma_keys(form.words):
                    self._owners[key].setdefault(
                        row.object_key, _Owner(row.english, " ".join(form.key))
                    )

    @staticmethod
    def _is_sure(place: _Place, sentence: _Sentence) -> bool:
        """Whether the frame may learn from it; unspaced short names may be cut wrongly."""
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
        start, end = self._span(place.match, sentence)
        confidence = round(place.confidence, 3)
        return Location(row.sentence, start, end, place.match.method, confidence, ambiguous)

    def locate_all(self, rows: Sequence[Row]) -> list[Outcome]:
        """Fit on the rows, then locate each."""
        self.fit(rows)
        return [self.locate(row) for row in rows]

    def _take_apart(self, row: Row) -> _Sentence:
        words, subject = split_words(row.sentence), (row.subject, row.english_subject)
        return _Sentence(row, words, subject_windows(subject, words, self._similarity))

    def _span(self, match: Match, sentence: _Sentence) -> tuple[int, int]:
        """Start and end, in characters, of the object that the match stands for."""
        return widen(sentence.row, sentence.words, match, self._similarity, self._categories)

    def _surface(self, match: Match, sentence: _Sentence) -> str:
        start, end = self._span(match, sentence)
        return sentence.row.sentence[start:end]

    def _best(self, sentence: _Sentence) -> tuple[_Place, bool] | None:
        """The surest place and whether another is nearly as sure; surer ways are tried first."""
        places: list[_Place] = []
        for number, matches in enumerate(self._ways(sentence)):
            places += [
                self._judge(match, sentence)
                for match in matches
                if not self._is_another(match, sentence)
            ]
            sure = (place for place in places if not place.inside and place.confidence >= _SURE)
            if any(number or place.match.method not in _SHORTENED for place in sure):
                break
        outside = [place for place in places if not place.inside]
        if not outside:
            return (places[0], False) if places else None
        best = max(outside, key=lambda place: (place.confidence, self._order(place, sentence)))
        best = self._longer(best, outside)
        best = self._whole_filler(best, sentence)
        enough = 0.9 * best.match.score * _TRUST[best.match.method]
        rivals = [
            place
            for place in places
            if place.match.score * _TRUST[place.match.method] >= enough
            and not place.match.overlaps(best.match)
        ]
        return best, bool(rivals)

    def _ways(self, sentence: _Sentence) -> Iterator[Iterable[Match]]:
        """Matches by ever weaker ways."""
        row, words, similarity = sentence.row, sentence.words, self._similarity
        seen = self._known.get(row.object_key, Counter())
        known = [form for form, _ in seen.most_common(_KNOWN_FORMS)]
        forms = forms_of(row, self._categories, known)
        texts, common = {word.text for word in words}, self._categories.common
        present = [form for form in forms if form.words[0].text in texts]
        yield [match for form in present for match in exact_matches(form, words)]
        yield [match for form in forms for match in inflected_matches(form, words, similarity)]
        parts: list[Match] = []
        for form in forms:
            if len(form.words) > 1:
                core = core_steps(form, forms, similarity)
                parts += partial_matches(form, words, similarity, common, core)
        yield parts
        yield [match for form in forms for match in similar_matches(form, words, similarity, 0.5)]
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
        """By what a name is known in any case: its words, and the lemmas if it is one word."""
        if len(words) == 1:
            return [(lemma,) for lemma in self._similarity.lemmas(words[0].text)]
        return [tuple(word.text for word in words)]

    def _is_another(self, match: Match, sentence: _Sentence) -> bool:
        """Whether a loosely matched place is the name of another object of the relation."""
        if match.score >= _CLOSE and match.method != "frame":
            return False
        row, found = sentence.row, sentence.words[match.first : match.last]
        owners: dict[str, _Owner] = {}
        for name in self._lemma_keys(found):
            owners |= self._owners.get(name, {})
        same_name = row.english in {owner.english for owner in owners.values()}
        if not owners or row.object_key in owners or same_name:
            return False
        place = " ".join(word.text for word in found)
        others = max(spelling(owner.name, place) for owner in owners.values())
        return spelling(fold(row.label), place) < others

    def _judge(self, match: Match, sentence: _Sentence) -> _Place:
        words, windows = sentence.words, sentence.windows
        first, last = match.first, match.last
        confidence = match.score * _TRUST[match.method]
        if self._in_brackets(match, sentence):
            confidence *= _GLOSS
        inside = overlaps_all(first, last, windows)
        # Of several windows the template tells which is likely the subject.
        likely = overlaps_all(
            first, last, windows[-1:] if _object_first(sentence.row) else windows[:1]
        )
        agreement = 0.0
        if self._frame.known and match.method != "frame":
            agreement = self._frame.agreement(words, first, last)
            if agreement >= _IN_SLOT:
                confidence += (1 - confidence) * agreement / 2
                inside = False
            else:
                confidence *= 0.75 + 0.25 * agreement / _IN_SLOT
        if likely and agreement < _IN_SLOT:
            confidence *= _IN_SUBJECT
        doubtful = (
            in_compound(words, first, last, self._similarity)
            or (agreement < _IN_SLOT and self._goes_on(match, sentence))
            or match.score < _LIKE_ENOUGH.get(match.method, 0.0)
        )
        if doubtful:
            confidence = min(confidence, _JUST_UNSURE)
        return _Place(match, confidence, inside)

    def _goes_on(self, match: Match, sentence: _Sentence) -> bool:
        """Whether the match is a piece of a longer name: 大阪 in 東大阪市, "Mexico" in "New Mexico"."""
        words = sentence.words
        if in_longer_han(words, match.first, match.last):
            return True
        neighbours = list(capitalized_neighbours(words, match.first, match.last, self.lang))
        if not neighbours or match.method == "frame":
            return False
        start, end = self._span(match, sentence)  # with its title and legal form
        own = split_words(
            " ".join((sentence.row.label, sentence.row.english, *sentence.row.aliases))
        )
        for place in neighbours:
            word = words[place]
            explained = (
                any(first <= place < last for first, last in sentence.windows)
                or start <= word.start < end
                or word.text in self._categories.first | self._categories.last
                or any(self._similarity.compare(name, word).score > 0.6 for name in own)
            )
            if not explained:
                return True
        return False

    def _whole_filler(self, best: _Place, sentence: _Sentence) -> _Place:
        """Without blanks, the whole slot where the best place is a piece of it."""
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
        """A longer name around the best place: verbatim, or the whole inflected label."""
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
        """Of equal places the later one wins, unless the template has the object first."""
        return -place.match.first if _object_first(sentence.row) else place.match.first


def _object_first(row: Row) -> bool:
    """Whether the template has ``[Y]`` before ``[X]``."""
    object_at, subject_at = row.template.find("[Y]"), row.template.find("[X]")
    return 0 <= object_at < subject_at
