"""What a language's phrasebook lacks or has wrong, and sentences to read.

    python -m fluent_mlama.translating.phrasebook_check --langs cs

A *mistake* is something no sentence may ship with (exit status 1); a *remark* is something a writer
should have meant.
"""

from __future__ import annotations

import random
import re
import sys
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Annotated

from cyclopts import Parameter

from fluent_mlama.command_line import run_command
from fluent_mlama.console import UserError, mark_span, run_main
from fluent_mlama.data import PHRASEBOOK
from fluent_mlama.languages import fold_case, language
from fluent_mlama.options import Langs, Seed, whole_number
from fluent_mlama.translating.phrasebook import (
    NOT_NEEDED,
    PLAIN_COLUMNS,
    SOURCE,
    Entry,
    Phrasebook,
    Sentence,
    StarterFact,
    read_cells,
    read_facts,
)

MIN_FACTS = 30
_PLACEHOLDER = re.compile(r"\[[^\]]*\]?|\{[^}]*\}?")
_KNOWN_PLACE = re.compile(r"\[[XY](:[a-z0-9]+)?\]")
_ROMAN = re.compile(r"[IVXLC]+")
_SCRIPT = {"Latin": "LATIN", "Cyrillic": "CYRILLIC", "Han": "CJK"}


def languages() -> list[str]:
    """Codes of the languages that have a pattern file, the source language first."""
    names = (path.name for path in PHRASEBOOK.glob("*_patterns.tsv"))
    codes = (name.removesuffix("_patterns.tsv") for name in names)
    return sorted(codes, key=lambda code: (code != SOURCE, code))


def needed(book: Phrasebook, facts: Iterable[StarterFact]) -> dict[str, dict[str, set[str]]]:
    """For each entity, objects first: the columns it needs, each with the relations that do."""
    facts = list(facts)
    order = dict.fromkeys([*(fact.obj_uri for fact in facts), *(fact.sub_uri for fact in facts)])
    cells: dict[str, dict[str, set[str]]] = {uri: defaultdict(set) for uri in order}
    for fact in facts:
        pattern = book.pattern(fact.relation)
        for uri, place in ((fact.sub_uri, "X"), (fact.obj_uri, "Y")):
            for form in pattern.asked(place) - {""}:
                cells[uri][form].add(fact.relation)
        if pattern.classes():
            cells[fact.sub_uri]["class"].add(fact.relation)
    return cells


def uses(facts: Iterable[StarterFact], english: Phrasebook) -> dict[str, str]:
    """What each entity is in the facts, for writers: ``object of P19 P20``, ``P127 BMW``."""
    as_object: dict[str, dict[str, None]] = defaultdict(dict)
    as_subject: dict[str, dict[str, None]] = defaultdict(dict)
    for fact in facts:
        as_object[fact.obj_uri][fact.relation] = None
        as_subject[fact.sub_uri][f"{fact.relation} {english.entry(fact.obj_uri).label}"] = None
    told = {uri: [f"object of {' '.join(relations)}"] for uri, relations in as_object.items()}
    for uri, facts_of in as_subject.items():
        told.setdefault(uri, []).extend(facts_of)
    return {uri: "; ".join(parts) for uri, parts in told.items()}


def mistakes(book: Phrasebook, facts: Sequence[StarterFact]) -> Iterator[str]:
    """Everything that no shipped sentence may have, one line each."""
    yield from _pattern_mistakes(book, facts)
    cells = needed(book, facts)
    names = {
        word
        for entry in book.entries.values()
        for word in re.findall(r"\w+", fold_case(entry.english, SOURCE))
    }
    for uri, columns in cells.items():
        if uri not in book.entries:
            yield f"{uri}: no row"
            continue
        yield from _row_mistakes(book, book.entries[uri], columns, names)
    for uri in book.entries.keys() - cells.keys():
        yield f"{uri}: is in no fact; remove the row"
    yield from _doubles(book)
    if book.language.code != SOURCE:
        yield from _fact_mistakes(book, facts)


def remarks(book: Phrasebook, facts: Iterable[StarterFact]) -> Iterator[str]:
    """What may be right but should be meant: objects whose labels equal the English ones."""
    if book.language.code != SOURCE:
        objects = [
            book.entries[uri]
            for uri in dict.fromkeys(fact.obj_uri for fact in facts)
            if uri in book.entries
        ]
        same = [entry.english for entry in objects if entry.label == entry.english]
        yield f"{len(same)} of {len(objects)} objects are written as in English: {'; '.join(same)}"


def _pattern_mistakes(book: Phrasebook, facts: Sequence[StarterFact]) -> Iterator[str]:
    for relation in dict.fromkeys(fact.relation for fact in facts):
        pattern = book.pattern(relation)
        shapes = {"template": pattern.template} | (
            {"fluent": pattern.fluent} if book.language.code != SOURCE else {}
        )
        for name, text in shapes.items():
            places = [found for found in _PLACEHOLDER.findall(text) if found.startswith("[")]
            unknown = [found for found in places if not _KNOWN_PLACE.fullmatch(found)]
            if unknown:
                yield f"{relation} {name}: unknown placeholder {unknown[0]}"
            if sorted(found[1] for found in places if found not in unknown) != ["X", "Y"]:
                yield f"{relation} {name}: needs [X] and [Y] once each: '{text}'"
            if not text.endswith(book.language.full_stop):
                yield f"{relation} {name}: does not end in '{book.language.full_stop}'"
            if "[" in re.sub(r"\[[^\[\]]*\]", "", text) or text.count("{") != text.count("}"):
                yield f"{relation} {name}: a bracket is left open"
            if unicodedata.normalize("NFC", text) != text:
                yield f"{relation} {name}: not NFC"


def _row_mistakes(
    book: Phrasebook, entry: Entry, columns: dict[str, set[str]], names: set[str]
) -> Iterator[str]:
    who = f"{entry.uri} {entry.english}"
    if not entry.label:
        yield f"{who}: no label"
    for column, relations in columns.items():
        if column == "class":
            allowed = set.intersection(
                *(book.pattern(relation).classes() for relation in relations)
            )
            if entry.noun_class not in allowed:
                yield (
                    f"{who}: class is '{entry.noun_class}'; {', '.join(sorted(relations))} know"
                    f" {', '.join(sorted(allowed))}"
                )
        elif column not in entry.forms:
            yield f"{who}: '{column}' is empty; {', '.join(sorted(relations))} needs it"
    for column, form in entry.forms.items():
        if not form.text:
            yield f"{who}: '{column}' has no form between its bars"
    texts = {"label": entry.label, "subject": entry.subject}
    texts |= {
        column: " ".join((form.before, form.text, form.after)).strip()
        for column, form in entry.forms.items()
    }
    for column, text in [*texts.items(), *(("aliases", alias) for alias in entry.aliases)]:
        if unicodedata.normalize("NFC", text) != text:
            yield f"{who}: '{column}' is not NFC"
        if text != " ".join(text.split()):
            yield f"{who}: '{column}' has a blank too many"
        if column != "aliases" and (strange := foreign_words(text, book.language.scripts, names)):
            yield f"{who}: '{column}' has words in another script: {', '.join(strange)}"
    if entry.label in entry.aliases or len(set(entry.aliases)) < len(entry.aliases):
        yield f"{who}: an alias is written twice or equals the label"


def foreign_words(text: str, scripts: Sequence[str], known: Collection[str]) -> list[str]:
    """Words in another script, except ``known`` ones (of English labels) and Roman numerals."""
    native = tuple(_SCRIPT.get(script, script.upper()) for script in scripts)
    strange = []
    for word in re.findall(r"\w+", text):
        # One run of letters at a time: Chinese sets a foreign name and the native noun without
        # a blank (U2乐队).
        for own, letters in groupby(
            word, lambda letter: letter.isalpha() and unicodedata.name(letter).startswith(native)
        ):
            run = "".join(letters)
            if (
                not own
                and any(map(str.isalpha, run))
                and fold_case(run, SOURCE) not in known
                and not _ROMAN.fullmatch(run)
            ):
                strange.append(run)
    return strange


def _doubles(book: Phrasebook) -> Iterator[str]:
    """Entities written alike would be one candidate: labels and forms are unique per column."""
    seen: dict[tuple[str, str], str] = {}
    for entry in book.entries.values():
        for column, text in [
            ("label", entry.label),
            *((column, form.text) for column, form in entry.forms.items()),
        ]:
            other = seen.setdefault((column, text), entry.uri)
            if text and other != entry.uri:
                yield f"{entry.uri} {entry.english}: '{column}' is '{text}', as for {other}"


def _sayable(
    book: Phrasebook, facts: Iterable[StarterFact]
) -> Iterator[tuple[StarterFact, Sentence]]:
    """The facts that the phrasebook has a sentence for; those that lack a cell are passed over."""
    for fact in facts:
        try:
            yield fact, book.fluent(fact.relation, fact.sub_uri, fact.obj_uri)
        except UserError:
            continue


def _fact_mistakes(book: Phrasebook, facts: Sequence[StarterFact]) -> Iterator[str]:
    """Sentences that do not add up or hold leftover marks; relations with too few facts."""
    counts: Counter[str] = Counter()
    for fact, said in _sayable(book, facts):
        counts[fact.relation] += not fact.held_out
        who = f"{fact.relation} {fact.sub_uri}"
        if said.prompt + said.object + said.tail != said.sentence:
            yield f"{who}: prompt, object and tail do not make up '{said.sentence}'"
        if re.search(r"[\[\]{}|]|\s\s", said.sentence):
            yield f"{who}: a bracket, bar or double blank is left in '{said.sentence}'"
    for relation in dict.fromkeys(fact.relation for fact in facts):
        if counts[relation] < MIN_FACTS:
            yield f"{relation}: {counts[relation]} facts can be said; {MIN_FACTS} are needed"


def samples(
    book: Phrasebook, facts: Sequence[StarterFact], number: int, seed: int
) -> Iterator[str]:
    """Random sentences of each relation with the object marked."""
    draw = random.Random(seed)
    for relation in dict.fromkeys(fact.relation for fact in facts):
        of_relation = [fact for fact in facts if fact.relation == relation]
        possible = [said for _, said in _sayable(book, of_relation)]
        for said in draw.sample(possible, min(number, len(possible))):
            start = len(said.prompt)
            yield f"{relation}\t{mark_span(said.sentence, start, start + len(said.object))}"


def blank_table(book: Phrasebook, facts: Sequence[StarterFact], english: Phrasebook) -> str:
    """The phrasebook with a row per entity; ``-`` marks cells that no pattern asks for."""
    cells = needed(book, facts)
    asked = [
        form
        for pattern in book.patterns.values()
        for place in "XY"
        for form in sorted(pattern.asked(place) - {""})
    ]
    written_forms = [form for entry in book.entries.values() for form in entry.forms]
    forms = dict.fromkeys([*written_forms, *asked])
    header = [*PLAIN_COLUMNS[:-1], *forms, PLAIN_COLUMNS[-1]]
    used = uses(facts, english)
    written = {row["uri"]: row for row in read_cells(book.path)}
    lines = ["\t".join(header)]
    for uri, columns in cells.items():
        own = {"uri": uri, "english": english.entry(uri).label, "used": used[uri]}
        row = written.get(uri, {}) | own
        cells_of_row = []
        for column in header:
            cell = row.get(column, "")
            if cell in ("", NOT_NEEDED):
                wanted = column in PLAIN_COLUMNS and column != "class" or column in columns
                cell = "" if wanted else NOT_NEEDED
            cells_of_row.append(cell)
        lines.append("\t".join(cells_of_row))
    return "\n".join(lines) + "\n"


def main(words: Sequence[str] | None = None) -> int:
    """The command line of the check."""
    return run_command(
        check_phrasebooks, words, program="python -m fluent_mlama.translating.phrasebook_check"
    )


def check_phrasebooks(
    *,
    langs: Langs = (),
    sample: Annotated[int, Parameter(converter=whole_number(0), n_tokens=1)] = 0,
    seed: Seed = 1,
    blank: bool = False,
) -> int:
    """List what the phrasebook of each language (default: all) lacks or has wrong.

    Args:
        sample: print so many random sentences per relation
        blank: print the table with a row for every entity, '-' where nothing is needed
    """
    facts, found = read_facts(), 0
    for code in langs or languages():
        book = Phrasebook(language(code).code)
        if blank:
            sys.stdout.write(blank_table(book, facts, Phrasebook(SOURCE)))
            continue
        if sample and code != SOURCE:
            print("\n".join(samples(book, facts, sample, seed)))
        wrong = list(mistakes(book, facts))
        found += len(wrong)
        for line in wrong:
            print(f"{code}: {line}")
        for line in remarks(book, facts):
            print(f"{code}: remark: {line}")
        print(f"{code}: {len(book.entries)} entities, {len(facts)} facts, {len(wrong)} mistakes")
    return 1 if found else 0


if __name__ == "__main__":
    run_main(main)
