"""The phrasebook: how forms and patterns make sentences, and that every finished language is
without mistakes.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from fluent_mlama.console import UserError
from fluent_mlama.translating.backend import SourceSentence, Translator
from fluent_mlama.translating.phrasebook import Phrasebook, PhrasebookTranslator, read_facts
from fluent_mlama.translating.phrasebook_check import languages, main, mistakes

RELATIONS = (
    "P19",
    "P20",
    "P36",
    "P1376",
    "P103",
    "P407",
    "P495",
    "P159",
    "P740",
    "P108",
    "P463",
    "P127",
)


@pytest.fixture
def book(tmp_path: Path) -> Phrasebook:
    """A Russian book of three rows, to try patterns on."""
    (tmp_path / "ru.tsv").write_text(
        "uri\tenglish\tused\tlabel\tclass\tsubject\tloc\taliases\n"
        "Q1\tAnna\t\tАнна\tf\t\t-\t\n"
        "Q2\tFrance\t\tФранция\tf\t\tво|Франции\t\n"
        "Q3\tEnglish\t\tанглийский\tm\t\tна|английском|языке\tанглийский язык\n"
        "Q4\tthe novel\t\tроман\tn\tроман «Анна»\t-\t\n",
        encoding="utf-8",
    )
    (tmp_path / "ru_patterns.tsv").write_text(
        "relation\ttemplate\tfluent\n"
        "P19\t[X] родился в [Y].\t[X] {m:родился|f:родилась} [Y:loc].\n"
        "P407\t[X] написан на [Y].\t[X] {m,f:есть|n:было} [Y:loc] всегда.\n"
        "P1376\t[Y]: [X].\tСтолица [Y] — [X].\n",
        encoding="utf-8",
    )
    return Phrasebook("ru", tmp_path)


def test_the_verb_follows_the_subject_and_the_preposition_the_object(book: Phrasebook) -> None:
    said = book.fluent("P19", "Q1", "Q2")
    assert said.sentence == "Анна родилась во Франции."
    assert (said.prompt, said.object, said.tail, said.noun_class) == (
        "Анна родилась во ",
        "Франции",
        ".",
        "f",
    )


def test_words_after_the_object_are_the_tail(book: Phrasebook) -> None:
    said = book.fluent("P407", "Q4", "Q3")
    assert (said.prompt, said.object, said.tail) == (
        "Роман «Анна» было на ",
        "английском",
        " языке всегда.",
    )


def test_the_object_may_come_first(book: Phrasebook) -> None:
    assert book.naive("P1376", "Q1", "Q2").tail == ": Анна."
    assert book.fluent("P1376", "Q1", "Q2").prompt == "Столица "


def test_the_template_takes_one_verb_form_and_both_labels(book: Phrasebook) -> None:
    said = book.naive("P19", "Q1", "Q2")
    assert (said.prompt, said.object, said.tail) == ("Анна родился в ", "Франция", ".")


@pytest.mark.parametrize(
    ("relation", "sub", "obj", "message"),
    [
        ("P19", "Q4", "Q2", "class 'n' of Q4"),
        ("P19", "Q1", "Q4", "lacks the form 'loc'"),
        ("P19", "Q9", "Q2", "no row for Q9"),
        ("P2", "Q1", "Q2", "no row for P2"),
    ],
)
def test_what_is_lacking_is_named(
    book: Phrasebook, relation: str, sub: str, obj: str, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        book.fluent(relation, sub, obj)


@pytest.mark.parametrize("lang", languages())
def test_a_language_is_without_mistakes(lang: str) -> None:
    assert list(mistakes(Phrasebook(lang), read_facts())) == []


def test_every_relation_has_thirty_facts_and_held_out_ones_besides() -> None:
    facts = read_facts()
    assert set(languages()) == {"en", "ru", "cs", "uk", "hr", "es", "zh", "vi", "id", "da"}
    for relation in RELATIONS:
        assert sum(fact.relation == relation and not fact.held_out for fact in facts) >= 30
        assert sum(fact.relation == relation and fact.held_out for fact in facts) >= 6
    shipped = {frozenset((fact.sub_uri, fact.obj_uri)) for fact in facts if not fact.held_out}
    assert not [fact for fact in facts if fact.held_out and {fact.sub_uri, fact.obj_uri} in shipped]


def test_the_command_lists_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--langs", "ru", "--sample", "1"]) == 0
    printed = capsys.readouterr().out
    assert printed.count("⟦") == len(RELATIONS)
    with pytest.raises(UserError, match="unknown language"):
        main(["--langs", "xx"])


def test_the_back_end_answers_with_the_object_span() -> None:
    translator = PhrasebookTranslator()
    assert isinstance(translator, Translator)
    translator.check("en", "ru", "P19")
    known = SourceSentence(
        0,
        "P19",
        "Q152393",
        "Q1741",
        "Alfred Adler",
        "Vienna",
        "",
        "",
        "Alfred Adler was born in Vienna .",
        "ru",
    )
    unknown = SourceSentence(
        1, "P19", "Q1", "Q1741", "Nobody", "Vienna", "", "", "Nobody was born in Vienna .", "ru"
    )
    answers = [answer for _, answer in translator.translate([known, unknown])]
    assert answers[0].text == "Альфред Адлер родился в Вене."
    assert answers[0].text[slice(*answers[0].object_span or ())] == "Вене"
    assert (answers[1].text, answers[1].status) == (None, "missing")
    assert "no row for Q1" in answers[1].detail
    for source, target, relation in (
        ("ru", "cs", "P19"),
        ("en", "en", "P19"),
        ("en", "ru", "P101"),
        ("en", "de", "P19"),
    ):
        with pytest.raises(UserError):
            translator.check(source, target, relation)


def test_ukrainian_takes_the_preposition_that_sounds_after_the_word_before() -> None:
    book = Phrasebook("uk")
    assert book.fluent("P20", "Q216063", "Q90").prompt.endswith("померла в ")
    assert book.fluent("P20", "Q156128", "Q90").prompt.endswith("помер у ")
