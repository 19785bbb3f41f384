"""What comes back from translators is judged rightly, on made cases and on the published sentences."""

from __future__ import annotations

import unicodedata
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fluent_mlama.files import open_source
from fluent_mlama.records.benchmark import find_benchmarks, read_benchmark
from fluent_mlama.translating.backend import Answer, SourceSentence
from fluent_mlama.translating.checks import (
    FLAGS,
    REASONS,
    check,
    clean_characters,
    last_translation,
    simplify,
    unwrap,
)
from tests.translating_world import make_item

GOOD = "Ада Эш родилась в Париже."

CASES: list[tuple[Answer, str, str]] = [
    (Answer(GOOD), "ok", GOOD),
    (Answer(None, "failed"), "failed", ""),
    (Answer(None, "missing"), "missing", ""),
    (Answer(None, "filtered"), "filtered", ""),
    (Answer("Ада Эш родилась в", "cut"), "cut", "Ада Эш родилась в"),
    (Answer(None), "none", ""),
    (Answer(""), "empty", ""),
    (Answer(" \u200b \n"), "empty;cleaned;leading-blank", ""),
    (Answer("..."), "empty", "..."),
    (
        Answer("I'm sorry, but I can't help with that."),
        "refusal",
        "I'm sorry, but I can't help with that.",
    ),
    (
        Answer("К сожалению, я не могу перевести это."),
        "refusal",
        "К сожалению, я не могу перевести это.",
    ),
    (Answer("Subject: Ада Эш"), "echo", "Subject: Ада Эш"),
    (
        Answer("<html><body>Error 500</body></html>"),
        "markup",
        "<html><body>Error 500</body></html>",
    ),
    (Answer('{"error": 1}'), "markup", '{"error": 1}'),
    (Answer("Ada Ash was born in Paris."), "unchanged", "Ada Ash was born in Paris."),
    (
        Answer("Ada Ash is born inside of Paris."),
        "wrong-script",
        "Ada Ash is born inside of Paris.",
    ),
    (Answer("Ада Эш род"), "truncated", "Ада Эш род"),
    (Answer("Ада."), "length", "Ада."),
    (Answer(GOOD * 10), "length", GOOD * 10),
    (Answer(f"  {GOOD}\n"), "ok;leading-blank", GOOD),
    (Answer("Ада\u00a0Эш родилась\u200b в Париже."), "ok;cleaned", GOOD),
    (Answer("Ада Эш родилась в &quot;Париже&quot;."), "ok;cleaned", 'Ада Эш родилась в "Париже".'),
    (
        Answer(unicodedata.normalize("NFD", "Кий родился в Париже, йод.")),
        "ok;cleaned",
        "Кий родился в Париже, йод.",
    ),
    (Answer(f"Translation: {GOOD}"), "ok;prefix-removed", GOOD),
    (Answer(f"Перевод: {GOOD}"), "ok;prefix-removed", GOOD),
    (Answer(f"**Russian:** {GOOD}"), "ok;prefix-removed", GOOD),
    (
        Answer(f"Source sentence: x\nSubject translation: Ада\nTranslation: {GOOD}"),
        "ok;echo-removed",
        GOOD,
    ),
    (Answer(f"{GOOD}\n(a note)"), "ok;first-line", GOOD),
    (Answer(f"Here you are:\n\n{GOOD}"), "ok;first-line", GOOD),
    (Answer(f'"{GOOD}"\n'), "ok;leading-blank;unquoted", GOOD),
    (Answer(f"«{GOOD}»"), "ok;unquoted", GOOD),
    (Answer("Ада Эш родилась в Париже"), "ok;no-stop", "Ада Эш родилась в Париже"),
    (Answer("BBC Four принадлежит BBC."), "ok", "BBC Four принадлежит BBC."),
]


@pytest.mark.parametrize(("answer", "status", "text"), CASES, ids=lambda value: repr(value)[:40])
def test_each_answer_gets_its_status(answer: Answer, status: str, text: str) -> None:
    checked = check(answer, make_item())
    assert (checked.status, checked.text) == (status, text)
    assert checked.usable == status.startswith("ok")


def test_every_reason_and_flag_has_a_case() -> None:
    seen = {word for _, status, _ in CASES for word in status.split(";")} - {"ok"}
    assert seen == set(REASONS) | set(FLAGS)


def test_without_mending_the_text_stays_and_the_status_is_the_same() -> None:
    for answer, status, _ in CASES:
        checked = check(answer, make_item(), mend=False)
        assert checked.status == status
        assert checked.text == clean_characters(answer.text or "", "ru")


def test_a_known_span_stays_true_when_the_text_is_cleaned() -> None:
    text = " Ада\u00a0Эш родилась в \u200bПариже\u200b."
    start = text.index("Париже")
    checked = check(Answer(text, object_span=(start, start + 6)), make_item())
    assert checked.object_span is not None
    assert checked.text[slice(*checked.object_span)] == "Париже"
    assert checked.status == "ok;cleaned"


def test_a_title_that_says_sorry_is_no_refusal() -> None:
    item = make_item(
        en_sub_label="Sorry I'm Late",
        sub_label="Извините, я опоздал",
        sentence="Sorry I'm Late was written in English .",
    )
    assert check(Answer("Извините, я опоздал написано на английском."), item).status == "ok"


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ('"Foo."', "Foo."),
        ("«Эхо» и «Ток.»", "«Эхо» и «Ток.»"),
        ("“Foo.”", "Foo."),
        ("「富。」", "富。"),
        ("'Foo'", "'Foo'"),
        ('"', '"'),
        ('"Live" is "Live."', '"Live" is "Live."'),
        ("`Foo.`", "Foo."),
        ("**Foo.**", "Foo."),
        ("„Foo.“", "Foo."),
    ],
)
def test_only_quotes_around_the_whole_sentence_go(text: str, inside: str) -> None:
    assert unwrap(text) == inside


def test_joiners_stay_where_a_script_spells_with_them() -> None:
    assert clean_characters("می\u200cخواهم", "fa") == "می\u200cخواهم"
    assert clean_characters("Аме\u200cри", "ru") == "Амери"


def test_a_colon_inside_a_sentence_is_no_leak() -> None:
    assert last_translation("Столица: Париж.", "ru") == "Столица: Париж."


def test_chinese_is_simplified_by_opencc() -> None:
    assert [simplify(text, "zh") for text in ("呼和浩特", "猛烈", "乾隆", "臺灣")] == [
        "呼和浩特",
        "猛烈",
        "乾隆",
        "台湾",
    ]
    assert simplify("乾", "ja") == "乾"


@settings(deadline=None, max_examples=60)
@given(st.text(max_size=60), st.sampled_from(["ru", "zh", "fa", "es", "th"]))
def test_any_text_is_judged_and_cleaning_twice_changes_nothing(text: str, target: str) -> None:
    item = make_item(target=target)
    first = check(Answer(text), item)
    assert first.reason in {"ok", *REASONS}
    cleaned = clean_characters(text, target)
    assert clean_characters(cleaned, target) == cleaned
    assert unicodedata.is_normalized("NFC", cleaned)


def test_published_sentences_are_judged_as_counted_by_hand(published: Path) -> None:
    """84 leaked prefixes, 4 echoes (three of them in hr and one in uk), 3 cells with invisible
    characters, one broken GT row.
    """
    source = open_source(published / "fluent_mlama" / "fixed_data.zip")
    counts: Counter[str] = Counter()
    objections = []
    for lang, relation, spec, name in find_benchmarks(source):
        benchmark = read_benchmark(source, lang, relation, spec)
        columns = [
            "sub_uri",
            "obj_uri",
            "en_sub_label",
            "en_obj_label",
            "sub_label",
            "obj_label",
            "en_template",
        ]
        for verbalisation in benchmark.verbalisations[1:]:
            sentences = benchmark.table[benchmark.columns(verbalisation).sentence]
            for row, (cells, text) in enumerate(
                zip(benchmark.table[columns].itertuples(index=False), sentences, strict=True)
            ):
                status = check(
                    Answer(text), SourceSentence(row, relation, *cells, target=lang)
                ).status
                counts.update(f"{verbalisation} {word}" for word in status.split(";"))
                if not status.startswith("ok"):
                    objections.append((name, row, text, status.split(";")[0]))
    assert counts["chatgpt prefix-removed"] == 84
    assert counts["chatgpt echo-removed"] == 4
    assert counts["chatgpt cleaned"] + counts["gt cleaned"] == 3
    assert objections == [("hr_P19_20prompt.tsv", 0, "s", "length")]
