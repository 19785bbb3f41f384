"""Our own minimal pairs: complete, made by the committed templates, and nobody else's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fluent_mlama.zhoblimp.__main__ import main
from fluent_mlama.zhoblimp.data import read_pairs
from fluent_mlama.zhoblimp.generate import CONTENT
from fluent_mlama.zhoblimp.paradigm import read_paradigms
from fluent_mlama.zhoblimp.vocabulary import read_vocabulary


@pytest.mark.parametrize(
    ("language", "paradigms", "phenomena", "words"), [("zh", 24, 10, 250), ("ru", 6, 3, 100)]
)
def test_the_sets_are_as_large_as_promised(
    language: str, paradigms: int, phenomena: int, words: int
) -> None:
    pairs = read_pairs(CONTENT / language / "pairs")
    assert (
        len(pairs) >= paradigms
        and len({rows[0].phenomenon for rows in pairs.values()}) >= phenomena
    )
    assert all(len({row.good for row in rows}) == 100 for rows in pairs.values())
    assert (
        len(
            {
                entry.expression
                for entry in read_vocabulary(CONTENT / language / "vocabulary.tsv").entries
            }
        )
        >= words
    )


@pytest.mark.parametrize("language", ["zh", "ru"])
def test_the_pairs_are_what_the_templates_make(language: str, tmp_path: Path) -> None:
    templates = CONTENT / language / "paradigms"
    assert (
        main(["generate", "--templates", str(templates), "--out", str(tmp_path), "-n", "100"]) == 0
    )
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert made == {
        path.name: path.read_bytes() for path in (CONTENT / language / "pairs").iterdir()
    }
    assert main(["check", "--templates", str(templates), "--data", str(tmp_path)]) == 0


def test_every_correction_is_of_a_paradigm_and_changed_it() -> None:
    table = (CONTENT / "review.tsv").read_text(encoding="utf-8").splitlines()
    assert table[0].split("\t") == ["paradigm", "before", "after", "why"]
    sentences = {
        row.good
        for language in ("zh", "ru")
        for rows in read_pairs(CONTENT / language / "pairs").values()
        for row in rows
    }
    for line in table[1:]:
        paradigm, before, _, why = line.split("\t")
        known = any(
            (CONTENT / language / "paradigms" / f"{paradigm}.json").is_file()
            for language in ("zh", "ru")
        )
        assert why and (known or "(paradigm removed)" in line), line
        assert not known or " / " in before or before not in sentences, line


def test_no_paradigm_template_or_pair_is_a_published_one(published: Path) -> None:
    folder = published / "zhoblimp"
    theirs = read_pairs(folder / "ZhoBLiMP.tar.gz") | read_pairs(
        folder / "ZhoBLiMP-excluded.tar.gz"
    )
    ours = read_pairs(CONTENT / "zh" / "pairs")
    assert not set(theirs) & set(ours)
    published_sentences = {
        text for rows in theirs.values() for row in rows for text in (row.good, row.bad)
    }
    assert (
        not {text for rows in ours.values() for row in rows for text in (row.good, row.bad)}
        & published_sentences
    )
    rules = {(one.good_rules, one.bad_rules) for one in read_paradigms(folder / "projects.zip")}
    assert (
        not {
            (one.good_rules, one.bad_rules) for one in read_paradigms(CONTENT / "zh" / "paradigms")
        }
        & rules
    )
    phrases = json.loads((folder / "assets" / "zh_phrase.json").read_text(encoding="utf-8"))
    assert not set(phrases) & set(
        json.loads((CONTENT / "zh" / "phrases.json").read_text(encoding="utf-8"))
    )
