"""Protocol `corrected`: what a careful experiment does (docs/protocols.md). Pure functions, no model, no files.

Three parts. The text around an object: a sentence is prompt + object + tail; the prompt is trimmed, the blank that stood
before the object becomes the separator of the continuation, and the tail ends with the sentence's stop. Entities: one
string per verbalisation each, distractors drawn for each subject. Questions and ranks: prompt and continuation are
tokenised as one string, the rest of the sentence is scored as well, ties share their ranks.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from fluent_mlama.languages import Language, fold_case, is_known, language
from fluent_mlama.ranking.task import (
    Choice,
    Question,
    Task,
    TiedRank,
    Ties,
    cells_by_row,
    cut,
    tied_rank,
)
from fluent_mlama.records.benchmark import ERROR, Benchmark, Columns, objection, split_aliases
from fluent_mlama.records.results import DISTRACTOR_COUNT, Role, dump_columns
from fluent_mlama.scoring.contract import Candidate, Request

STOPS = frozenset(".。．!！?？…।۔؟։።")
_STRAIGHT_QUOTES = "\"'"
_BLANK = re.compile(r"\s+")
_JOINERS = "\u200c\u200d"
"""ZERO WIDTH (NON-)JOINER: spelling, not litter, between two letters of a script that joins its letters."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One row in one verbalisation: what stands around the object.

    prompt: trimmed. separator: one space or nothing. tail: up to and including the final stop. form: the object as it
    stands there.
    """

    prompt: str
    separator: str
    form: str
    tail: str

    @property
    def sentence(self) -> str:
        """The sentence as it is scored."""
        return f"{self.prompt}{self.separator}{self.form}{self.tail}"


def remove_invisible(text: str) -> str:
    """The text without characters that nobody sees: soft hyphens, zero-width blanks, direction marks, byte order marks.

    A joiner between two letters stays, since Persian or Hindi words are spelt with it. Blanks of any width stay blanks.
    """
    if text.isascii():
        return text
    kept = []
    for position, character in enumerate(text):
        if unicodedata.category(character) != "Cf" or (
            character in _JOINERS and _between_letters(text, position)
        ):
            kept.append(character)
    return "".join(kept)


def _between_letters(text: str, position: int) -> bool:
    neighbours = (
        text[position - 1 : position] if position else "",
        text[position + 1 : position + 2],
    )
    return all(neighbour and unicodedata.category(neighbour)[0] in "LM" for neighbour in neighbours)


def end_with_stop(tail: str, language: Language) -> str:
    """The tail up to and including its final stop; where it has none, with the language's stop behind it.

    A stop is final if nothing but closing quotes, brackets and blanks follow; the full stop of an abbreviation inside
    the tail is not.
    """
    end = len(tail)
    while end and (
        tail[end - 1].isspace()
        or tail[end - 1] in _STRAIGHT_QUOTES
        or unicodedata.category(tail[end - 1]) in {"Pe", "Pf", "Pi"}
    ):
        end -= 1
    if end and tail[end - 1] in STOPS:
        return tail[:end]
    return tail.rstrip() + language.full_stop


def read_frame(
    cells: Mapping[str, str], names: Columns, language: Language, *, accept_unsure: bool = False
) -> Frame | str:
    """The frame of one row in one verbalisation (``names``: its columns), or the reason why its object cannot be used.

    Files with a status column say so themselves; ``accept_unsure``: see ``objection``. In published files the object was not
    found if a cell is ERROR or the object is empty; it is inside the subject if its span lies within an occurrence of the
    subject's label.
    """
    sentence, prompt, form = cells[names.sentence], cells[names.prompt], cells[names.object]
    if names.status is not None and (
        reason := objection(cells[names.status], accept_unsure=accept_unsure)
    ):
        return reason
    if ERROR in (prompt, form) or not form.strip():
        return "not-found"
    if names.status is None and _inside_subject(
        sentence, prompt, form, cells["sub_label"], language.code
    ):
        return "inside-subject"
    seen = remove_invisible(prompt)
    if not seen.strip():
        return "blank-prompt"
    if names.tail is not None:
        tail = cells[names.tail]
    elif sentence.startswith(prompt + form):
        tail = sentence[len(prompt) + len(form) :]
    else:
        return "sentence-differs"
    form, tail = whole_name(
        remove_invisible(form).strip(), remove_invisible(tail), _known_names(cells), language
    )
    return Frame(
        prompt=seen.strip(),
        separator=" " if seen[-1].isspace() else "",
        form=form,
        tail=end_with_stop(tail, language),
    )


def _known_names(cells: Mapping[str, str]) -> list[str]:
    """Label, aliases and English label of a row's object."""
    listed = [cells["obj_label"], *split_aliases(cells.get("aliases", ""))]
    return [comparable(name) for name in (*listed, cells.get("en_obj_label", "")) if name.strip()]


def whole_name(form: str, tail: str, names: Sequence[str], language: Language) -> tuple[str, str]:
    """Form and tail, with the words of the tail that continue a known name moved to the form.

    A cut behind ``Motown`` leaves `` Records.`` in the tail, which is evidence of the name and no context.
    """
    best = 0
    for name in names:
        name = name.rstrip("".join(STOPS))  # the stop of `Inc.` may end the sentence
        rest = len(name) - len(form)
        if rest <= best or not tail[:rest].strip() or tail[rest : rest + 1].isalnum():
            continue
        if fold_case(form + tail[:rest], language.code) == fold_case(name, language.code):
            best = rest
    return form + tail[:best], tail[best:]


def names_object(cells: Mapping[str, str], forms: Sequence[str], lang: str) -> bool:
    """Whether the subject's label holds the object's label or one of its forms as whole words, case aside."""
    subject = _seen(cells["sub_label"], lang)
    return any(
        re.search(rf"(?<!\w){re.escape(name)}(?!\w)", subject)
        for name in {_seen(form, lang).strip() for form in (cells["obj_label"], *forms)}
        if name
    )


def _inside_subject(sentence: str, prompt: str, form: str, subject: str, lang: str) -> bool:
    """Whether the span ``[len(prompt), +len(form))`` lies within an occurrence of the subject's label, case aside."""
    # Folding can change the length, so the sentence is folded in three parts: the span is then the second.
    cuts = (0, len(prompt), len(prompt) + len(form), len(sentence))
    before, found_form, after = (_seen(sentence[start:end], lang) for start, end in pairwise(cuts))
    start, end = len(before), len(before) + len(found_form)
    text, label = before + found_form + after, _seen(subject, lang).strip()
    if not label:
        return False
    found = text.find(label)
    while found != -1:
        if found <= start and end <= found + len(label):
            return True
        found = text.find(label, found + 1)
    return False


def _seen(text: str, lang: str) -> str:
    """Folded case, nothing invisible, every blank a plain one."""
    return fold_case(_BLANK.sub(" ", remove_invisible(text)), lang)


def comparable(text: str) -> str:
    """A string as it is compared and scored: NFC, nothing invisible, no blanks around (stored text is untouched)."""
    return unicodedata.normalize("NFC", remove_invisible(text)).strip()


def script_of(character: str) -> str:
    """Unicode script of a letter, by its name; enough to tell the scripts of ``fluent_mlama.languages`` apart."""
    word = (
        unicodedata.name(unicodedata.normalize("NFKC", character)[:1], "")
        .split(" ", 1)[0]
        .removesuffix("-")
    )
    return "Han" if word == "CJK" else word.capitalize()


MAX_DISTRACTORS = 50
FEW_DISTRACTORS = 10
"""Below this many distractors a rank says little: scored and flagged."""
SEED = 0
CODE_LETTERS = 3
_UNCASED = frozenset({"Han", "Hiragana", "Katakana", "Hangul"})
"""Scripts in which a name of one to three letters is an ordinary name."""


@dataclass(frozen=True, slots=True)
class Entity:
    """One object of the file. All strings are NFC.

    strings: verbalisation -> the form it has there most often (first met where several are); ``template``: its label.
    names: every label, found form and alias that is not a code, in the order they were met (``--forms all``).
    """

    uri: str
    strings: Mapping[str, str]
    names: tuple[str, ...]


def gather_entities(
    benchmark: Benchmark, frames: Mapping[str, Mapping[int, Frame]], language: Language
) -> dict[str, Entity]:
    """Entities of a file by obj_uri, in file order.

    frames: verbalisation -> row -> the frame of a usable object. An entity that no usable row names in a
    verbalisation has no string there.
    """
    found: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    names: dict[str, dict[str, None]] = defaultdict(dict)
    aliases: dict[str, dict[str, None]] = defaultdict(dict)
    table = benchmark.table[["obj_uri", "obj_label", "aliases"]]
    for row, uri, label, cell in table.itertuples(index=True, name=None):
        names[uri][comparable(label)] = None
        for v, of_row in frames.items():
            if row in of_row:
                form = comparable(of_row[row].form)
                found[uri][v][form] += 1
                names[uri][form] = None
        for alias in map(comparable, split_aliases(cell)):
            if not is_code(alias, language):
                aliases[uri][alias] = None
    return {
        uri: Entity(
            uri,
            # most_common keeps the order of insertion among equals: the first met
            strings={v: forms.most_common(1)[0][0] for v, forms in found[uri].items()},
            names=tuple(name for name in {**own, **aliases[uri]} if name),
        )
        for uri, own in names.items()
    }


def is_code(alias: str, language: Language) -> bool:
    """Whether an alias is a code and no name: ``de``, ``est``, ``zh-Hant``.

    Three letters or fewer, or a language code; Han, Kana and Hangul are exempt, where short names are names.
    """
    letters = [character for character in alias if character.isalpha()]
    if any(script_of(letter) in _UNCASED for letter in letters):
        return False
    code = fold_case(alias, language.code).partition("-")[0]
    return len(letters) <= CODE_LETTERS or is_known(code) or code == language.code


def subject_order(
    entities: Iterable[str], relation: str, subject: str, seed: int = SEED
) -> list[str]:
    """obj_uris in ascending sha256 of ``seed|relation|sub_uri|obj_uri``: each subject has a draw of its own."""
    head = hashlib.sha256(f"{seed}|{relation}|{subject}|".encode())

    def digest(uri: str) -> bytes:
        own = head.copy()
        own.update(uri.encode())
        return own.digest()

    return sorted(entities, key=digest)


def draw_distractors(
    gold: Mapping[str, str],
    order: Sequence[str],
    entities: Mapping[str, Entity],
    also_valid: frozenset[str],
    language: Language,
) -> tuple[Entity, ...]:
    """The first 50 entities of ``order`` that are wrong for a fact, the same for every verbalisation.

    gold: verbalisation -> gold's string. also_valid: obj_uris that are right for this subject, gold's among them.
    An entity whose string in any verbalisation is gold's or an earlier distractor's (case-folded) is passed over.
    """
    drawn: list[Entity] = []
    taken = {v: {fold_case(form, language.code)} for v, form in gold.items()}
    for uri in order:
        if len(drawn) == MAX_DISTRACTORS:
            break
        if uri in also_valid:
            continue
        strings = {v: fold_case(form, language.code) for v, form in entities[uri].strings.items()}
        if any(strings[v] in taken[v] for v in gold):
            continue
        drawn.append(entities[uri])
        for v in gold:
            taken[v].add(strings[v])
    return tuple(drawn)


EDITION = 2
"""Goes up with every change of the rules that changes a number."""
Frames = dict[str, dict[int, Frame]]
"""verbalisation -> row -> frame, for every usable object."""
Valid = Mapping[str, frozenset[str]]
"""sub_uri -> the obj_uris that the data source gives for it by one relation, in any language."""


@dataclass(frozen=True)
class CandidateSet:
    """One row's candidates, the same entities for every verbalisation.

    gold: verbalisation -> its form in this row. names: of gold (``--forms all``).
    """

    uri: str
    gold: Mapping[str, str]
    names: tuple[str, ...]
    distractors: tuple[Entity, ...]


def select_frames(
    benchmark: Benchmark, verbalisations: Sequence[str], *, accept_unsure: bool = False
) -> tuple[Frames, list[int], dict[int, str]]:
    """The frames of a file, the rows that are usable in every verbalisation, and why the others are not (row -> reason)."""
    its_language = language(benchmark.lang)
    frames: Frames = {v: {} for v in verbalisations}
    columns = {v: benchmark.columns(v) for v in verbalisations}
    kept, left_out = [], {}
    for row, cells in cells_by_row(benchmark).items():
        reason = ""
        for v in verbalisations:
            frame = read_frame(cells, columns[v], its_language, accept_unsure=accept_unsure)
            if isinstance(frame, Frame):
                frames[v][row] = frame
            else:
                reason = reason or f"{v}: {frame}"
        if reason:
            left_out[row] = reason
        else:
            kept.append(row)
    return frames, kept, left_out


def valid_objects(tables: Iterable[pd.DataFrame]) -> Valid:
    """sub_uri -> obj_uris of every row of these benchmark tables, rows that are left out among them."""
    valid: dict[str, set[str]] = defaultdict(set)
    for table in tables:
        facts = table[["sub_uri", "obj_uri"]]
        for subject, answer in facts.itertuples(index=False, name=None):
            valid[subject].add(answer)
    return {subject: frozenset(answers) for subject, answers in valid.items()}


def sampling_of(valid: Valid) -> str:
    """How distractors are drawn, with the hash of what counts as right: a part of the signature."""
    lines = [f"{subject} {' '.join(sorted(answers))}" for subject, answers in sorted(valid.items())]
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()[:8]
    return f"sha256-by-subject,seed:{SEED},valid:{digest}"


def gather_candidates(
    benchmark: Benchmark, frames: Frames, kept: Sequence[int], valid: Valid, seed: int = SEED
) -> dict[int, CandidateSet]:
    """Gold and distractors of each kept row. Distractors come from all kept rows, limited or not."""
    its_language = language(benchmark.lang)
    entities = gather_entities(benchmark, frames, its_language)
    cells = cells_by_row(benchmark)
    uris = list(dict.fromkeys(cells[row]["obj_uri"] for row in kept))
    orders: dict[str, list[str]] = {}
    found = {}
    for row in kept:
        subject, uri = cells[row]["sub_uri"], cells[row]["obj_uri"]
        if subject not in orders:
            orders[subject] = subject_order(uris, benchmark.relation, subject, seed)
        gold = {v: comparable(of_row[row].form) for v, of_row in frames.items()}
        right = valid[subject] | {uri}
        drawn = draw_distractors(gold, orders[subject], entities, right, its_language)
        found[row] = CandidateSet(uri, gold, entities[uri].names, drawn)
    return found


def choices_of(
    candidates: CandidateSet, verbalisation: str, *, all_forms: bool = False
) -> tuple[Choice, ...]:
    """One string per entity, gold first; with ``all_forms`` every other name of each behind its string (``own`` False)."""
    rows: list[tuple[str, Role, str, tuple[str, ...]]] = [
        (candidates.uri, "correct", candidates.gold[verbalisation], candidates.names)
    ]
    for entity in candidates.distractors:
        rows.append((entity.uri, "distractor", entity.strings[verbalisation], entity.names))
    choices = []
    for uri, role, string, names in rows:
        choices.append(Choice(string, role, uri, own=True))
        if all_forms:
            choices += [Choice(name, role, uri) for name in names if name != string]
    return tuple(choices)


def corrected_task(
    benchmark: Benchmark,
    verbalisations: Sequence[str],
    *,
    limit: int | None = None,
    all_forms: bool = False,
    accept_unsure: bool = False,
    neutral_prompt: str | None = None,
    valid: Valid | None = None,
) -> Task:
    """All questions of protocol `corrected` about one file; ``limit`` cuts the rows to be scored, never the entities.

    valid: right objects of each subject in the whole data source; None = those of this file.
    """
    frames, usable, left_out = select_frames(benchmark, verbalisations, accept_unsure=accept_unsure)
    valid = valid_objects([benchmark.table]) if valid is None else valid
    candidates = gather_candidates(benchmark, frames, usable, valid)
    rows, beyond = cut(usable, limit)
    cells = cells_by_row(benchmark)
    questions = []
    named = 0
    for row in rows:
        named += names_object(cells[row], tuple(candidates[row].gold.values()), benchmark.lang)
        for v in verbalisations:
            frame = frames[v][row]
            choices = choices_of(candidates[row], v, all_forms=all_forms)
            request = Request(
                frame.prompt,
                tuple(Candidate(frame.separator + choice.form, frame.tail) for choice in choices),
            )
            questions.append(
                Question(row, v, cells[row]["sub_uri"], cells[row]["obj_uri"], request, choices)
            )
    counts = [len(candidates[row].distractors) for row in rows]
    return Task(
        benchmark,
        tuple(verbalisations),
        protocol="corrected",
        tokenisation="joint",
        questions=tuple(questions),
        left_out=left_out,
        pool_limit=MAX_DISTRACTORS,
        sampling=sampling_of(valid),
        beyond_limit=beyond,
        neutral_prompt=neutral_prompt,
        notes={
            "distractors": [min(counts), max(counts)] if counts else [],
            "rows_with_few_distractors": sum(count < FEW_DISTRACTORS for count in counts),
            "rows_that_name_the_object": named,
        },
    )


def corrected_ranks(
    scores: pd.DataFrame,
    verbalisations: Sequence[str],
    *,
    logprob: str = "logprob",
    ties: Ties = "mid",
    top: Sequence[int] = (),
) -> pd.DataFrame:
    """The dump's columns behind the benchmark's, from a table of scores: index = row number.

    ``v_all_forms_rank`` gives each entity the score of its best form; NaN where only one form was scored.
    logprob: the column to rank by. top: further k for ``v_top{k}_correct`` columns.
    """
    columns = dump_columns("corrected", verbalisations)
    further = [f"{v}_top{k}_correct" for v in verbalisations for k in top if k not in {1, 3}]
    cells: dict[str, dict[Any, Any]] = {
        column: {} for column in (*columns[:-1], *further, columns[-1])
    }
    for (row, v), group in scores.groupby(["row", "verbalisation"], sort=False):
        gold, own = group["obj_uri"].iloc[0], group["own"].to_numpy()
        entities, values = group["entity"].to_numpy(), group[logprob].to_numpy()
        score, others = _best_by_entity(gold, entities[own], values[own])
        rank = tied_rank(score, others)
        place = _pick(rank, ties)
        cells[f"{v}_rank"][row] = place
        cells[f"{v}_rank_min"][row] = rank.lowest
        cells[f"{v}_rank_max"][row] = rank.highest
        cells[f"{v}_all_forms_rank"][row] = (
            float("nan")
            if own.all()
            else _pick(tied_rank(*_best_by_entity(gold, entities, values)), ties)
        )
        cells[f"{v}_logprob"][row] = score
        for k in (1, 3, *(k for k in top if k not in {1, 3})):
            cells[f"{v}_top{k}_correct"][row] = int(place <= k)
        cells[f"{v}_prompt_prob"][row] = float(group["prompt_logprob"].iloc[0])
        cells[DISTRACTOR_COUNT][row] = len(others)
    return pd.DataFrame({column: pd.Series(values) for column, values in cells.items()})


def _best_by_entity(
    gold: str, entities: Iterable[str], values: Iterable[float]
) -> tuple[Any, list[float]]:
    """Gold's best score (None where it has none) and that of each other entity."""
    best: dict[str, float] = {}
    for entity, value in zip(entities, values, strict=True):
        number = float(value)
        if np.isnan(number):
            raise ValueError("a score is NaN")
        best[entity] = max(number, best.get(entity, float("-inf")))
    return best.pop(gold, None), list(best.values())


def _pick(rank: TiedRank, ties: Ties) -> float:
    return float({"gold": rank.lowest, "mid": rank.mid, "worst": rank.highest}[ties])
