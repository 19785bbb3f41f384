"""Precision, bias, pools, UHN, order of candidates: worked by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd
import pytest

from fluent_mlama.console import UserError
from fluent_mlama.mlama.asking import order
from fluent_mlama.mlama.figures import articles_table, read_articles
from fluent_mlama.mlama.measures import (
    bias_table,
    compare_templates,
    entropy,
    listed,
    most_frequent,
    p1_by_language,
    p1_by_relation,
    relative_p1,
    split_by_pieces,
    without,
)
from fluent_mlama.mlama.pooling import entities_of, pool, pooling_table
from fluent_mlama.mlama.results import Place, Results
from fluent_mlama.mlama.uhn import name_question, read_uhn_list, uhn_rows
from fluent_mlama.records.facts import Triple

PLACE = Place(Path("none"), "m", "tyq")


def answers(
    gold: Mapping[int, tuple[str, str]],
    predictions: Sequence[str],
    scores: Sequence[float] = (),
    pieces: Sequence[int] = (),
) -> pd.DataFrame:
    """Results of one relation. gold: lineid -> (label, uri)."""
    frame = pd.DataFrame({
        "lineid": list(gold), "sub_uri": "", "obj_uri": [uri for _, uri in gold.values()], "sub_label": "s",
        "gold": [label for label, _ in gold.values()], "prediction": list(predictions),
        "score": list(scores) or [-1.0] * len(gold), "gold_pieces": list(pieces) or [1] * len(gold), "tied": 0, "gold_status": "ok",
    })  # fmt: skip
    frame["correct"] = frame["gold"] == frame["prediction"]
    frame["rank"] = [1 if right else 2 for right in frame["correct"]]
    return frame.set_index("lineid", drop=False).rename_axis(None)


def right_and_wrong(lineids: Sequence[int], right: Sequence[int]) -> pd.DataFrame:
    return answers(
        {lineid: ("a", "Q1") for lineid in lineids},
        ["a" if lineid in right else "b" for lineid in lineids],
    )


def results(**frames: Mapping[str, pd.DataFrame]) -> Results:
    return Results(
        PLACE, frames, (), {(lang, relation): 4 for lang in frames for relation in frames[lang]}
    )


def test_relative_precision_is_the_ratio_of_macro_means_on_the_same_triples() -> None:
    both = results(
        x={"R1": right_and_wrong([0, 1, 2, 3], [0, 1]), "R2": right_and_wrong([0, 1], [1])},
        en={
            "R1": right_and_wrong([0, 1, 2, 3, 9], [0, 1, 2]),
            "R2": right_and_wrong([0, 1, 8], [0, 1]),
        },
    )
    row = relative_p1(both, both).iloc[0]
    assert (row["p1"], row["English p1 on the same"]) == (0.5, 0.875)
    assert row["rel-p1"] == pytest.approx(0.571429, abs=1e-6)


def test_languages_are_joined_by_lineid_and_never_by_position() -> None:
    english = answers(
        {0: ("a", "Q1"), 1: ("b", "Q2"), 2: ("c", "Q3"), 3: ("d", "Q4")}, ["a", "no", "c", "no"]
    )
    other = answers({0: ("A", "Q1"), 2: ("C", "Q3"), 5: ("E", "Q5")}, ["A", "no", "E"])
    row = relative_p1(
        results(x={"R1": other}, en={"R1": english}), results(en={"R1": english})
    ).iloc[0]
    assert (row["shared triples"], row["without English partner"]) == (2, 1)
    assert (row["p1"], row["English p1 on the same"]) == (
        0.5,
        1.0,
    )  # by position 2 would meet the wrong English answer to 1


def test_a_monolingual_model_beside_is_measured_on_the_same_triples() -> None:
    both = results(
        x={"R1": right_and_wrong([0, 1], [0])}, en={"R1": right_and_wrong([0, 1, 2], [0, 1])}
    )
    beside = Results(
        Place(Path("none"), "mono", "tyq"), {"en": {"R1": right_and_wrong([0, 1, 2], [0, 2])}}
    )
    row = relative_p1(both, both, beside).iloc[0]
    assert row["rel-p1 mono[en]"] == 0.5


def test_relative_precision_needs_english() -> None:
    with pytest.raises(UserError, match="no English results"):
        relative_p1(
            results(x={"R1": right_and_wrong([0], [0])}),
            results(x={"R1": right_and_wrong([0], [0])}),
        )


def test_english_without_a_right_answer_gives_no_ratio() -> None:
    both = results(x={"R1": right_and_wrong([0], [0])}, en={"R1": right_and_wrong([0], [])})
    assert math.isnan(relative_p1(both, both)["rel-p1"].iloc[0])


def test_precision_by_language_is_a_mean_over_relations_and_shows_the_majority() -> None:
    one = results(x={"R1": right_and_wrong([0, 1, 2, 3], [0]), "R2": right_and_wrong([0], [0])})
    row = p1_by_language(one).iloc[0]
    assert (row["p1"], row["majority"], row["chance"], row["triples"]) == (0.625, 1.0, 0.25, 5)
    assert p1_by_relation(one)["mean reciprocal rank"].tolist() == [(1 + 3 / 2) / 4, 1.0]


def test_split_leaves_out_relations_without_such_objects() -> None:
    single = answers({0: ("a", "Q1"), 1: ("b", "Q2")}, ["a", "a"], pieces=[1, 1])
    mixed = answers({0: ("a", "Q1"), 1: ("b", "Q2")}, ["x", "b"], pieces=[1, 3])
    row = split_by_pieces(results(x={"R1": single, "R2": mixed})).iloc[0]
    assert (row["single relations"], row["multi relations"]) == (2, 1)
    assert (row["single p1"], row["multi p1"]) == (0.25, 1.0)


def test_most_frequent_predictions_break_ties_by_label() -> None:
    predictions = ["Italia"] * 3 + ["Giappone", "Francia"]
    assert listed(most_frequent(predictions)) == "Italia (3), Francia (1)"
    table = bias_table(
        results(it={"P495": answers({n: ("Italia", "Q38") for n in range(5)}, predictions)})
    )
    row = table.iloc[0]
    assert (row["predictions"], row["right answers"], row["top share"]) == (
        "Italia (3), Francia (1)",
        "Italia (5)",
        0.6,
    )
    share = [0.6, 0.2, 0.2]
    assert row["entropy"] == pytest.approx(-sum(p * math.log(p) for p in share) / math.log(4))
    assert row["entropy, right"] == 0.0


def test_entropy_of_all_alike_is_one() -> None:
    assert entropy(["a", "b", "c"], 3) == pytest.approx(1.0)
    assert math.isnan(entropy(["a"], 1))


def votes(gold: Sequence[str], cast: Mapping[str, Mapping[int, str]]) -> Results:
    """Each language names entity Q<n> by the label <lang>-Q<n>; gold: entity of lineid 0, 1, …"""
    frames = {}
    for lang, by_fact in cast.items():
        names = {
            100 + n: (f"{lang}-Q{n}", f"Q{n}") for n in (1, 2, 3)
        }  # so that every label has its entity
        told_facts = {lineid: (f"{lang}-{gold[lineid]}", gold[lineid]) for lineid in by_fact}
        extra = {} if lang == "en" else names
        english = {**told_facts, **extra}
        predictions = [f"{lang}-{entity}" for entity in by_fact.values()] + [
            label for label, _ in extra.values()
        ]
        frames[lang] = {"R": answers(english, predictions)}
    return results(**frames)


CAST = {
    "en": {0: "Q1", 1: "Q1", 2: "Q2"}, "de": {0: "Q2", 1: "Q2", 2: "Q1"}, "it": {0: "Q2", 1: "Q2", 2: "Q1"}, "nl": {0: "Q1", 2: "Q3"},
}  # fmt: skip


def test_pooled_votes_with_each_tie_rule() -> None:
    ballot = votes(["Q1", "Q2", "Q1"], CAST)
    table = pooling_table(ballot).set_index("answers")
    assert table.loc["English alone", "p1"] == pytest.approx(1 / 3)
    assert table.loc["pooled, ties: english", "p1"] == 1.0
    assert table.loc["pooled, ties: expected", "p1"] == pytest.approx(2.5 / 3, abs=1e-6)
    assert set(table["tied facts"]) == {0, 1}
    assert [one.tied for one in pool(ballot)["R"].values()] == [True, False, False]
    drawn = {pool(ballot, "random", seed)["R"][0].credit for seed in range(20)}
    assert drawn == {0.0, 1.0}


def test_ties_by_score_go_to_the_more_certain() -> None:
    ballot = results(
        en={"R": answers({0: ("a", "Q1"), 1: ("b", "Q2")}, ["a", "b"], [-3.0, -1.0])},
        de={"R": answers({0: ("A", "Q1"), 1: ("B", "Q2")}, ["B", "B"], [-1.0, -1.0])},
    )
    assert pool(ballot, "english")["R"][0].credit == 1.0
    assert pool(ballot, "score")["R"][0].credit == 0.0


def test_a_label_of_two_entities_is_the_more_frequent_then_the_smaller() -> None:
    frame = answers(
        {
            0: ("X", "Q10"),
            1: ("X", "Q9"),
            2: ("Y", "Q3"),
            3: ("Y", "Q20"),
            4: ("Y", "Q20"),
            5: ("Z", ""),
        },
        list("XXYYYZ"),
    )
    english = answers({5: ("Zed", "")}, ["Zed"])
    assert entities_of(frame, english) == {"X": "Q9", "Y": "Q20", "Z": "label:zed"}


def test_pool_refuses_an_unknown_rule_and_a_single_language() -> None:
    with pytest.raises(UserError, match="choose from english, score"):
        pool(votes(["Q1"], {"en": {0: "Q1"}}), "coin")
    with pytest.raises(UserError, match="at least two languages"):
        pool(votes(["Q1"], {"en": {0: "Q1"}}))


def triple(relation: str, lineid: int, subject: str, label: str) -> Triple:
    return Triple("en", relation, lineid, subject, label)


def test_string_filter() -> None:
    facts = {
        "P178": {0: triple("P178", 0, "Apple Watch", "Apple")},
        "P103": {1: triple("P103", 1, "Jean Marais", "French")},
    }
    assert uhn_rows(facts, ["string"])[["relation", "lineid"]].to_numpy().tolist() == [["P178", 0]]


def test_name_filter_asks_for_languages_and_not_for_trades() -> None:
    asked: list[tuple[str, str]] = []

    def likeliest(questions: Sequence[tuple[str, str]], number: int) -> list[list[str]]:
        assert number == 3
        asked.extend(questions)
        return [
            ["English", "french", "German"] if left.startswith("Jean ") else ["x", "y", "z"]
            for left, _ in questions
        ]

    facts = {
        "P103": {1: triple("P103", 1, "Jean Marais", "French")},
        "P106": {2: triple("P106", 2, "Jean Marais", "French")},
    }
    assert uhn_rows(facts, ["string", "name"], likeliest)[
        ["relation", "filter"]
    ].to_numpy().tolist() == [["P103", "name"]]
    assert asked == [name_question("Jean", "language"), name_question("Marais", "language")]
    assert "".join(asked[0]) == "Jean is a common name in the following language :  ."


def test_name_filter_without_a_model_and_unknown_filters_are_refused() -> None:
    facts = {"P103": {1: triple("P103", 1, "Jean Marais", "French")}}
    with pytest.raises(UserError, match="--names-model"):
        uhn_rows(facts, ["name"])
    with pytest.raises(UserError, match="choose from string, name"):
        uhn_rows(facts, ["hard"])


def test_a_list_of_triples_to_leave_out(tmp_path: Path) -> None:
    path = tmp_path / "uhn.tsv"
    path.write_text("relation\tlineid\nR1\t0\n", encoding="utf-8")
    left = without(results(x={"R1": right_and_wrong([0, 1], [0])}), read_uhn_list(path))
    assert left.frames["x"]["R1"].index.tolist() == [1]
    path.write_text("relation\tlineid\nR1\tzero\n", encoding="utf-8")
    with pytest.raises(UserError, match="row 2: lineid 'zero'"):
        read_uhn_list(path)


def test_template_sets_are_compared_on_relations_that_both_have() -> None:
    first = results(de={"R1": right_and_wrong([0, 1], [0]), "R2": right_and_wrong([0], [0])})
    second = results(de={"R1": right_and_wrong([0, 1], [0, 1])})
    table = compare_templates(
        {"a": first, "b": second},
        {"a": {"de": {"R1": "old", "R2": "t"}}, "b": {"de": {"R1": "new"}}},
    )
    assert table[["templates", "relations", "changed", "p1"]].to_numpy().tolist() == [
        ["a", 1, 0, 0.5],
        ["b", 1, 1, 1.0],
    ]


def test_order_is_by_score_then_label_and_nan_does_not_compete() -> None:
    ordered = order(["b", "a", "c", "d"], [-1.0, -1.0 - 1e-9, -0.5, float("nan")])
    assert (ordered.labels, ordered.tied_with_best) == (("c", "a", "b"), 0)
    assert (ordered.rank("b"), ordered.rank("d")) == (3, None)
    assert order(["b", "a"], [-2.0, -2.0]).tied_with_best == 1


def test_articles_need_whole_numbers_and_two_languages(tmp_path: Path) -> None:
    path = tmp_path / "articles.csv"
    path.write_text("lang,articles\nen,6000000\nru,1900000\n", encoding="utf-8")
    p1 = pd.DataFrame({"language": ["en", "ru", "mean"], "p1": [0.4, 0.2, 0.3]})
    assert articles_table(p1, read_articles(path))["p1"].tolist() == [0.4, 0.2]
    path.write_text("lang,articles\nen,many\n", encoding="utf-8")
    with pytest.raises(UserError, match="row 2: articles 'many'"):
        read_articles(path)
