"""Minimal pairs from templates: what the language means; the published pairs obey it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fluent_mlama.console import UserError
from fluent_mlama.zhoblimp.__main__ import main
from fluent_mlama.zhoblimp.check import find_remarks
from fluent_mlama.zhoblimp.data import read_pairs
from fluent_mlama.zhoblimp.generator import Generator
from fluent_mlama.zhoblimp.matcher import BAD_AGREEMENT, BLANK_COUNTS, Matcher
from fluent_mlama.zhoblimp.paradigm import (
    Agreement,
    Lexical,
    Literals,
    Paradigm,
    PhraseRule,
    check_paradigm,
    parse_paradigm,
    parse_phrases,
    parse_position,
    read_paradigms,
    read_phrases,
)
from fluent_mlama.zhoblimp.vocabulary import parse_vocabulary, read_vocabulary

WORDS = """expression\tpos\tsubcat\tgender\tclassifier\ttran_verb
我\tPN\tperson\tneutral\t\t
她\tPN\tperson3\tfemale\t\t
他\tPN\tperson3\tmale\t\t
妈妈\tNN\tperson\tfemale\t位\t
爸爸\tNN\tperson\tmale\t位\t

箱子\tNN\tcontainer\t\t个/只\t扔/买
猫\tNN\tanimal\t\t只\t买
扔\tVV\tput\t\t\t扔
买\tVV\t\t\t\t买
个\tM\t\t\t个\t
只\tM\t\t\t只\t
位\tM\t\t\t位\t
"""
PHRASES = '{"Person": [[{"type": "Lexical", "rule": {"pos": "NN", "subcat": "person"}}]],' \
    ' "Mine": [[{"type": "Direct", "rule": ["我的"]}, {"type": "Phrase", "rule": {"name": "Person"}}]]}'  # fmt: skip


def paradigm(good: list[str], bad: list[str], **more: object) -> Paradigm:
    return parse_paradigm(
        json.dumps({"uid": "toy", "good_rule": good, "bad_rule": bad, "strict_MP": False, **more}),
        "toy.json",
    )


def pairs(one: Paradigm, count: int, seed: int = 0) -> set[tuple[str, str]]:
    generated = Generator(one, parse_vocabulary(WORDS), parse_phrases(PHRASES), seed).generate(
        count
    )
    return {(pair.good, pair.bad) for pair in generated.pairs}


def test_a_position_is_parsed_into_its_alternatives() -> None:
    assert parse_position(" | 更", "f") == (Literals(("",)), Literals(("更",)))
    assert parse_position("来 去", "f") == (Literals(("来", "去")),)
    (matched,) = parse_position("pos:M mPos:2 mPro:classifier/gender", "f")
    assert matched == Lexical(
        (("pos", frozenset({"M"})),), (Agreement(2, ("classifier", "gender"), True),)
    )
    (phrase,) = parse_position("phrase:Person -1:<gender:male/female>", "f")
    assert phrase == PhraseRule("Person", ((-1, (("gender", frozenset({"male", "female"})),)),))


def test_rules_words_and_pairs_are_compared_in_one_form() -> None:
    words = parse_vocabulary("expression\tpos\ncafe\u0301\tNN\nßüß\tNN\n")
    one = paradigm(["caf\u00e9", "pos:NN"], ["pos:NN", "caf\u00e9"], sep=" ")
    assert (
        one.sources()
        == paradigm(["cafe\u0301", "pos:NN"], ["pos:NN", "caf\u00e9"], sep=" ").sources()
    )
    matcher = Matcher(one, words, {})
    assert matcher.check("Cafe\u0301 ßüß", "Ssüß café").accepted
    assert matcher.check("Café ßüß", "Cafe\u0301 ßüß").remark == "good and bad sentence are equal"


def test_a_moved_rule_takes_the_word_of_its_good_position() -> None:
    moved = paradigm(["我", "把", "pos:NN subcat:container", "pos:VV mPos:2 mPro:tran_verb", "了。"],
                     ["我", "pos:VV mPos:2 mPro:tran_verb", "pos:NN subcat:container", "", "了。"])  # fmt: skip
    assert pairs(moved, 2) == {
        ("我把箱子扔了。", "我扔箱子了。"),
        ("我把箱子买了。", "我买箱子了。"),
    }


def test_matches_share_a_value_and_mismatches_none() -> None:
    classifier = paradigm(
        ["一", "pos:M mPos:2 mPro:classifier", "pos:NN"],
        ["一", "pos:M mmPos:2 mmPro:classifier", "pos:NN"],
    )
    good_of = {"箱子": {"个", "只"}, "猫": {"只"}, "妈妈": {"位"}, "爸爸": {"位"}}
    found = pairs(classifier, 20)
    assert len(found) >= 5
    for good, bad in found:
        noun = good[2:]
        assert good[1] in good_of[noun] and bad[1] not in good_of[noun] and bad[2:] == noun


def test_the_bad_list_can_ask_for_another_form_of_the_good_word() -> None:
    words = parse_vocabulary(
        "expression\tpos\tlemma\tgender\nбрат\tNN\tбрат\tm\nсестра\tNN\tсестра\tf\n"
        "спал\tVV\tспать\tm\nспала\tVV\tспать\tf\nпел\tVV\tпеть\tm\nпела\tVV\tпеть\tf\n"
    )
    rules = (
        ["pos:NN", "pos:VV mPos:0 mPro:gender", "."],
        ["pos:NN", "pos:VV gPos:1 gPro:lemma mmPos:0 mmPro:gender", "."],
    )
    one = paradigm(*rules, sep=" ")
    found = {(pair.good, pair.bad) for pair in Generator(one, words, {}).generate(4).pairs}
    assert found == {
        ("Брат спал.", "Брат спала."),
        ("Брат пел.", "Брат пела."),
        ("Сестра спала.", "Сестра спал."),
        ("Сестра пела.", "Сестра пел."),
    }
    matcher = Matcher(one, words, {})
    assert all(matcher.check(*pair).accepted and not matcher.check(*pair).remark for pair in found)
    assert matcher.check("Брат спал.", "Брат пела.").remark == BAD_AGREEMENT
    with pytest.raises(
        UserError, match="good_rule row 1: goodPosition refers to the good sentence"
    ):
        check_paradigm(paradigm(rules[1], rules[0]), words, {})


def test_expression_pins_the_very_word_and_phrases_nest() -> None:
    repeated = paradigm(
        ["phrase:Mine", "pos:VV", "不", "pos:VV mPos:1 mPro:expression"],
        ["phrase:Mine", "pos:VV", "", ""],
    )
    assert pairs(repeated, 4) == {
        (f"我的{who}{verb}不{verb}", f"我的{who}{verb}")
        for who in ("妈妈", "爸爸")
        for verb in ("扔", "买")
    }


def test_phrase_filters_narrow_one_element() -> None:
    women = paradigm(
        ["phrase:Person 0:<gender:female>", "去"], ["phrase:Person 0:<gender:female>", "不去"]
    )
    assert pairs(women, 1) == {("妈妈去", "妈妈不去")}


def test_trailing_blanks_are_no_difference() -> None:
    blank = paradigm(["pos:VV ", "了"], ["pos:VV", "着"])
    assert pairs(blank, 2) == {("扔了", "扔着"), ("买了", "买着")}


def test_strict_pairs_have_equal_length_and_words_with_a_separator_count_as_words() -> None:
    unequal = paradigm(["去"], ["不去 来"], strict_MP=True)
    assert {bad for _, bad in pairs(unequal, 1)} == {"来"}
    spaced = paradigm(["большой", "дом", "."], ["большая", "дом", "."], strict_MP=True, sep=" ")
    assert pairs(spaced, 1) == {("Большой дом.", "Большая дом.")}


def test_a_paradigm_that_falls_short_says_what_starves_it() -> None:
    one = paradigm(["pos:VV", "我"], ["pos:VV", "我"])
    generated = Generator(one, parse_vocabulary(WORDS), {}).generate(1)
    assert not generated.pairs and generated.rejected == {"good and bad sentence are equal": 100}


def test_the_same_seed_gives_the_same_pairs_in_any_process(tmp_path: Path, root: Path) -> None:
    (tmp_path / "paradigms").mkdir()
    (tmp_path / "vocabulary.tsv").write_text(WORDS, encoding="utf-8")
    (tmp_path / "phrases.json").write_text(PHRASES, encoding="utf-8")
    rules = {
        "good_rule": ["pos:PN", "pos:VV", "pos:NN"],
        "bad_rule": ["pos:NN", "pos:VV", "pos:PN"],
    }
    (tmp_path / "paradigms" / "swap.json").write_text(
        json.dumps({"uid": "swap", **rules}), encoding="utf-8"
    )
    outputs = []
    for hash_seed in ("1", "2"):
        out = tmp_path / f"out{hash_seed}"
        command = [
            sys.executable,
            "-m",
            "fluent_mlama.zhoblimp",
            "generate",
            "--templates",
            str(tmp_path / "paradigms"),
            "--out",
            str(out),
            "-n",
            "8",
        ]
        subprocess.run(
            command,
            cwd=root,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
        )
        outputs.append((out / "swap.jsonl").read_bytes())
    assert outputs[0] == outputs[1] and outputs[0].count(b"\n") == 8


@pytest.mark.parametrize(
    ("rules", "complaint"),
    [
        (
            {"good_rule": ["a", "pos:NN mPos:7 mPro:gender"], "bad_rule": ["a", "b"]},
            "good_rule row 1: position 7 is out of range",
        ),
        ({"good_rule": ["a"], "bad_rule": ["pos:ZZ"]}, "bad_rule row 0: no word of"),
        ({"good_rule": ["phrase:Nobody"], "bad_rule": ["a"]}, "unknown phrase 'Nobody'"),
        (
            {"good_rule": ["phrase:Person 3:<gender:male>"], "bad_rule": ["a"]},
            "filter index 3 is out of range",
        ),
        (
            {"good_rule": ["pos:NN mPos:0"], "bad_rule": ["a"]},
            "matchedPosition and matchedProperties belong together",
        ),
        ({"good_rule": ["a", "b"], "bad_rule": ["a"]}, "good_rule has 2 rows, bad_rule 1"),
    ],
)
def test_bad_templates_are_one_line_that_names_file_and_row(
    rules: dict[str, list[str]], complaint: str
) -> None:
    with pytest.raises(UserError, match=r"^toy\.json: ") as error:
        one = parse_paradigm(json.dumps({"uid": "toy", **rules}), "toy.json")
        check_paradigm(one, parse_vocabulary(WORDS), parse_phrases(PHRASES))
    assert complaint in str(error.value)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            '{"A": [[{"type": "Phrase", "rule": {"name": "B"}}]], "B": [[{"type": "Phrase", "rule": {"name": "A"}}]]}',
            "A -> B -> A",
        ),
        (
            '{"C": [["x"]],\n "A": [[{"type": "Phrase", "rule": {"name": "A"}}]]}'.replace(
                '"x"', '{"type": "Direct", "rule": ["x"]}'
            ),
            "row 2: cycle",
        ),
        ('{"A": [[{"type": "Phrase", "rule": {"name": "B"}}]]}', "unknown phrase 'B'"),
        ('{"A": [[{"type": "Odd", "rule": {}}]]}', "is no element"),
        ('{"A": [["x"]], "A": [["y"]]}', "'A' is defined twice"),
    ],
)
def test_bad_phrases_are_one_line(text: str, complaint: str) -> None:
    with pytest.raises(UserError) as error:
        parse_phrases(text, "phrases.json")
    assert complaint in str(error.value)


def test_published_templates_yield_their_pairs_and_published_pairs_fit_but_for_two_paradigms(
    published: Path,
) -> None:
    folder = published / "zhoblimp"
    vocabulary, phrases = (
        read_vocabulary(folder / "assets" / "zh_vocab_saved.tsv"),
        read_phrases(folder / "assets" / "zh_phrase.json"),
    )
    templates = read_paradigms(folder / "projects.zip")
    data = read_pairs(folder / "ZhoBLiMP.tar.gz") | read_pairs(folder / "ZhoBLiMP-excluded.tar.gz")
    assert (len(templates), len(data), len(vocabulary.entries), len(vocabulary.columns)) == (
        131,
        129,
        701,
        18,
    )
    accepted, remarks = {}, {}
    for template in templates:
        check_paradigm(template, vocabulary, phrases)
        assert len(Generator(template, vocabulary, phrases).generate(30).pairs) == 30, (
            template.where
        )
        verdicts = [
            Matcher(template, vocabulary, phrases).check(row.good, row.bad)
            for row in data[template.uid][::10]
        ]
        if (fitting := sum(verdict.accepted for verdict in verdicts)) >= accepted.get(
            template.uid, 0
        ):
            accepted[template.uid] = fitting
            remarks[template.uid] = {verdict.remark for verdict in verdicts if verdict.accepted}
    assert {uid for uid, count in accepted.items() if count < 30} == {
        "ellipsis_adj",
        "fci_renhe_ruguo_dou",
    }
    assert (
        BLANK_COUNTS in remarks["question_nandao_negation"]
        and BAD_AGREEMENT in remarks["classifier_noun_agreement_no_gap"]
    )


def test_lint_finds_the_noise_of_the_published_pairs(published: Path) -> None:
    folder = published / "zhoblimp"
    vocabulary, phrases = (
        read_vocabulary(folder / "assets" / "zh_vocab_saved.tsv"),
        read_phrases(folder / "assets" / "zh_phrase.json"),
    )
    raising = "existential_there_subject_raising"
    fitting = {
        raising: [
            Matcher(one, vocabulary, phrases)
            for one in read_paradigms(folder / "projects.zip")
            if one.uid == raising
        ]
    }
    remarks = find_remarks(read_pairs(folder / "ZhoBLiMP.tar.gz"), fitting)
    counts = {(remark.uid, remark.kind): remark.count for remark in remarks}
    assert sum(remark.count for remark in remarks if remark.kind == "bad sentence repeated") == 372
    assert counts[raising, "classifier after a determiner that has one"] == 81
    assert counts["passive_suo", "bad sentence repeated"] == 151
    assert counts["question_A_not_A_daodi_a", "pair also in question_A_not_A_daodi_b"] == 85
    assert not any(remark.kind == "good sentence repeated" for remark in remarks)


def test_a_uid_that_stands_twice_is_named_with_both_files(tmp_path: Path) -> None:
    (tmp_path / "paradigms").mkdir()
    (tmp_path / "vocabulary.tsv").write_text(WORDS, encoding="utf-8")
    (tmp_path / "phrases.json").write_text(PHRASES, encoding="utf-8")
    for name in ("x", "y"):
        text = json.dumps({"uid": "same", "good_rule": ["pos:VV"], "bad_rule": ["pos:NN"]})
        (tmp_path / "paradigms" / f"{name}.json").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=r"y\.json: UID 'same' \(user ''\) is also in x\.json"):
        main(
            ["generate", "--templates", str(tmp_path / "paradigms"), "--out", str(tmp_path / "out")]
        )
    assert not (tmp_path / "out").exists()
