"""Scoring popularity orders: the parser, the measures against hand-made numbers, baselines, tables, refusals."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from fluent_mlama.console import UserError
from fluent_mlama.cpopqa.__main__ import main
from fluent_mlama.cpopqa.answers import Store, digest, read_answers
from fluent_mlama.cpopqa.baselines import baselines, read_trends
from fluent_mlama.cpopqa.concepts import Concept
from fluent_mlama.cpopqa.figures import by_kind, by_place, by_region
from fluent_mlama.cpopqa.items import Item, Settings, chance, draw_items, read_items
from fluent_mlama.cpopqa.measures import diff, mark, ranks_of
from fluent_mlama.cpopqa.parsing import Answer, parse
from fluent_mlama.cpopqa.results import comparisons, design_of, mark_all, measures, paper_table
from fluent_mlama.cpopqa.target_table import target_agreement, worked_examples


def item(
    gold: tuple[str, ...],
    *,
    options: tuple[str, ...] | None = None,
    group: str = "A",
    round_number: int = 1,
    name: str = "q",
) -> Item:
    return Item(name, "US", len(gold), round_number, group, options or gold, gold, "?", "Q: ?\nA:")


@pytest.mark.parametrize(
    "text",
    [
        "1. B 2. A",
        "B, A",
        "1) b\n2) a",
        "B > A",
        " 1.B 2.A",
        "1. **B** – the feast\n2. A: another",
        "B\nA",
        "B; A",
    ],
)
def test_parser_reads_the_usual_forms(text: str) -> None:
    assert parse(text, ("A", "B")) == Answer(("B", "A"), "full")


def test_parser_counts_what_is_missing_or_beside_the_point() -> None:
    assert parse("1. B 2. B 3. A", ("A", "B", "C")) == Answer(("B", "A"), "partial")
    assert parse("", ("A", "B")) == Answer((), "none")
    assert (
        parse("I cannot say which holiday people like most.", ("Holi", "Diwali")).status == "none"
    )
    assert parse("1. Fiji Day", ("Day", "Holi")).status == "none"
    assert parse(" 1. Holi 2. Diwali\n\nQ: Which? Diwali, Holi", ("Holi", "Diwali")).order == (
        "Holi",
        "Diwali",
    )
    assert parse("Q: 1. Holi", ("Holi", "Diwali")).status == "none"
    assert parse(
        "1. New Years Day 2. Christmass Day", ("Christmas Day", "New Year's Day")
    ).order == ("New Year's Day", "Christmas Day")
    assert parse("1. July 14 Revolutio", ("July 14 Revolution", "July 17 Revolution")).order == (
        "July 14 Revolution",
    )
    assert (
        parse("1. July 1 Revolution", ("July 14 Revolution", "July 17 Revolution")).status == "none"
    )  # as near to both


def test_names_that_differ_in_marks_alone_are_told_apart() -> None:
    names = ("C", "C++", "C#")
    assert parse("1. C++ 2. **C#** 3. C", names) == Answer(("C++", "C#", "C"), "full")
    assert parse("1. (c) 2. C", names) == Answer(("C",), "partial")  # "(c)" may be any of them
    assert parse("☆, ★", ("★", "☆")) == Answer(("☆", "★"), "full")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("1. हाली 2. होली", ("होली", "हाली")),  # vowel signs are no accents
        ("१. होलिका 2. दीवाली", ("दीवाली", "होलिका")),
        ("ガパ, カバ", ("カバ", "ガパ")),  # nor are the marks of kana
        ("มะลิ, มะลุ", ("มะลุ", "มะลิ")),
        ("春节、中秋节", ("中秋节", "春节")),
        ("عيد الفطر، عيد الأضحى", ("عيد الأضحى", "عِيد الفِطْر")),
        ("Epiphanie, Tet", ("Tết", "E\u0301piphanie")),
    ],
)
def test_names_in_any_script_are_told_apart_by_their_marks(
    text: str, names: tuple[str, ...]
) -> None:
    assert parse(text, names) == Answer(names[::-1], "full")
    assert parse(names[0], names[1:]).status == "none"


def test_names_with_commas_and_digits_survive() -> None:
    names = ("July 14 Revolution", "Birthday of Martin Luther King, Jr.", "15 Khordad Uprising")
    for text in (
        "; ".join(names),
        ", ".join(names),
        "1. {} 2. {} 3. {}".format(*names),
        "1. {}\n2. {}\n3. {}".format(*names),
    ):
        assert parse(text, names[::-1]) == Answer(names, "full")


FRANCIS = "Saint Francis of Assisi, Patron Saint of Italy"
MARINUS = "Saint Marinus' Day, Anniversary of the Founding of the Republic"
DRUK = (
    "Birth Anniversary of the 3rd Druk Gyalpo",
    "Birth Anniversary of the 4th Druk Gyalpo - Constitution Day",
)


@pytest.mark.parametrize(
    "names",
    [
        ("Easter Monday", FRANCIS, "Epiphany"),
        (FRANCIS, "Epiphany", "Easter Monday"),
        ("Holi", "Independence and Republic Day", "Eid"),
        ("Saint Marinus' Day", MARINUS),
        (MARINUS, "Saint Marinus' Day"),
        DRUK,
        DRUK[::-1],
        ("Mother of God", "one, with, five, commas, in, it", "Holi"),
    ],
)
def test_a_long_name_takes_no_other_with_it_in_any_form(names: tuple[str, ...]) -> None:
    for text in (", ".join(names), f"{', and '.join(names)}.", " > ".join(names), "\n".join(names)):
        assert parse(text, names[::-1]) == Answer(names, "full")
    for ending in ("", ": a day off", " (a day off)", " - a day off"):
        assert parse(
            " ".join(f"{place}. {name}{ending}" for place, name in enumerate(names, 1)), names[::-1]
        ) == Answer(names, "full")


def test_misspelt_names_with_commas_are_their_own() -> None:
    names = ("Epiphany", FRANCIS, "Labor Day")
    assert parse(
        "Epiphany, Saint Francis of Asisi, Patron Saint of Itali, Labour Day", names
    ) == Answer(names, "full")
    assert parse(DRUK[1].replace("tion D", "tional D"), DRUK).order == (
        DRUK[1],
    )  # its first half alone is near to the other


def test_diff_over_all_permutations() -> None:
    three = {order: diff(np.array(order) + 1.0) for order in permutations(range(3))}
    assert [three[order] for order in permutations(range(3))] == pytest.approx(
        [0, 0.25, 0.25, 0.75, 0.75, 1]
    )
    assert diff(np.array([2.0, 1.0, 3.0, 4.0, 5.0])) == pytest.approx(0.05)
    assert diff(np.array([5.0, 2.0, 3.0, 4.0, 1.0])) == pytest.approx(0.8)
    assert diff(np.array([2.0, 3.0, 4.0, 5.0, 1.0])) == pytest.approx(0.5) and diff(
        np.arange(5.0, 0, -1)
    ) == pytest.approx(1)
    for n in (2, 3, 5):
        gold = tuple(str(place) for place in range(n))
        marks = [mark(Answer(order, "full"), gold) for order in permutations(gold)]
        means = np.array([(one.first, one.exact, one.diff) for one in marks]).mean(axis=0)
        assert means == pytest.approx(chance(n))
        for one, order in zip(marks, permutations(range(1, n + 1)), strict=True):
            ranks = [order.index(place) + 1 for place in range(1, n + 1)]
            assert one.diff == pytest.approx((1 - stats.spearmanr(ranks, range(n)).statistic) / 2)
            assert np.mean(one.pairs) == pytest.approx(
                (stats.kendalltau(ranks, range(n)).statistic + 1) / 2
            )


def test_question_order_of_the_papers_three_examples() -> None:
    """Table 3: sorted as asked, the three questions have ρ .7, .3 and .0, and the first concept right."""
    gold = ("a", "b", "c", "d", "e")
    marks = [mark(Answer(tuple(order), "full"), gold) for order in ("adbce", "adceb", "aedcb")]
    assert [one.diff for one in marks] == pytest.approx([0.15, 0.35, 0.5])
    assert np.mean([one.diff for one in marks]) == pytest.approx(1 / 3)
    assert [one.first for one in marks] == [1.0] * 3 and not any(one.exact for one in marks)


def test_partial_answers_share_the_ranks_that_are_left() -> None:
    gold = ("a", "b", "c")
    assert ranks_of(Answer(("b",), "partial"), gold).tolist() == [2.5, 1.0, 2.5]
    assert (
        mark(Answer(("a",), "partial"), gold).first == 1.0
        and mark(Answer(("a",), "partial"), gold).exact == 0.0
    )
    assert (
        mark(Answer(("a", "b"), "partial"), gold).exact == 1.0
    )  # the third is left by elimination
    none = mark(Answer((), "none"), gold)
    assert (none.first, none.exact, none.diff) == (0.0, 0.0, 0.5)


def results_of(values: list[list[float]]) -> pd.DataFrame:
    """Rounds of n = 2 questions that are right (1) or wrong (0), each of a group of its own."""
    items = [
        item(
            (f"a{number}/{place}", "b"),
            group=f"g{place}",
            round_number=number,
            name=f"{number}/{place}",
        )
        for number, row in enumerate(values, start=1)
        for place in range(len(row))
    ]
    flat = [value for row in values for value in row]
    orders = {
        one.id: Answer(one.gold if value else one.gold[::-1], "full")
        for one, value in zip(items, flat, strict=True)
    }
    return mark_all(items, {"m": orders}, [])


def test_mean_and_sample_deviation_over_rounds() -> None:
    rounds = [[1.0] * hits + [0.0] * (10 - hits) for hits in (5, 6, 7, 6, 6)]
    table = measures(results_of(rounds))
    assert table["Acc"].item() == pytest.approx(0.6) and table["Acc sd"].item() == pytest.approx(
        0.0707107, abs=1e-6
    )
    assert table["Diff"].item() == pytest.approx(0.4) and table["P@1"].item() == table["Acc"].item()
    assert table["Acc low"].item() < 0.6 < table["Acc high"].item() and table["full"].item() == 1.0
    assert table["first as asked"].item() == pytest.approx(
        0.6
    )  # these questions are asked in gold order
    shown = paper_table(table, "US")
    assert shown.to_numpy().tolist() == [
        [2, "(chance)", "", "50.0", "50.0", "0.500"],
        [2, "m", 50, "60.0 ± 7.1", "60.0 ± 7.1", "0.400 ± 0.071"],
    ]
    assert np.isnan(measures(results_of(rounds[:1]))["Acc sd"].item())


def test_models_are_compared_in_pairs_on_common_questions() -> None:
    items = [item((f"a{place}", "b"), group=f"g{place}", name=str(place)) for place in range(20)]
    right, wrong = (
        {one.id: Answer(order, "full") for one in items for order in [one.gold[::step]]}
        for step in (1, -1)
    )
    orders = {
        "random": {
            one.id: (right if place % 2 else wrong)[one.id] for place, one in enumerate(items)
        },
        "good": {one.id: right[one.id] for one in items[:16]},
        "bad": wrong,
    }
    table = comparisons(mark_all(items, orders, []))
    assert list(zip(table["first"], table["second"], strict=True)) == [
        ("random", "good"),
        ("random", "bad"),
        ("good", "bad"),
    ]
    assert table["questions"].tolist() == [16, 20, 16]
    assert table["Acc change"].tolist() == [0.5, -0.5, -1.0] and table["Diff change"].tolist() == [
        -0.5,
        0.5,
        1.0,
    ]
    assert table["p Acc"].tolist()[:2] == pytest.approx(
        [2 / 2**8, 2 * 2 / 2**10]
    )  # all signs of what differs; Holm over three tests
    assert 3 / 10_001 <= table["p Acc"].tolist()[2] < 0.002


def test_without_groups_every_question_stands_alone() -> None:
    rounds = [[1.0] * 6 + [0.0] * 4] * 2
    grouped, alone = results_of(rounds), results_of(rounds).assign(group="")
    assert design_of(alone).sizes == (20, 20) and design_of(grouped).sizes == (20, 10)
    assert measures(alone)["Acc low"].item() < 0.6
    for one in (
        {"group": "one"},
        {"answer": "Christmas Day"},
    ):  # one country, or one right answer, says nothing of the spread
        assert measures(grouped.assign(**one))["Acc low"].isna().all()


def test_intervals_of_shares_stay_between_0_and_1() -> None:
    table = measures(results_of([[1.0] * 11 + [0.0]] * 2))
    for name in ("P@1", "Acc", "Diff"):
        assert (
            0
            <= table[f"{name} low"].item()
            < table[name].item()
            < table[f"{name} high"].item()
            <= 1
        )


def concepts_of(values: dict[str, tuple[float, float]], group: str = "A") -> list[Concept]:
    return [
        Concept(name, group, "feasts", "Asia", "low", popularity={"US": us, "UK": uk})
        for name, (us, uk) in values.items()
    ]


def test_gold_orders_of_two_targets() -> None:
    settings = Settings({"US": "x", "UK": "y"}, (3,), rounds=1, questions=1, shots=0)
    for uk, agreement, difference in (((1.0, 2.0, 3.0), 1.0, 0.0), ((3.0, 2.0, 1.0), 0.0, 1.0)):
        concepts = concepts_of(
            {name: (us, other) for name, us, other in zip("abc", (1.0, 2.0, 3.0), uk, strict=True)}
        )
        table = target_agreement(draw_items(concepts, settings), concepts)
        assert table[["agreement", "Diff"]].to_numpy().tolist() == [[agreement, difference]]
    tied = concepts_of({"a": (1, 5), "b": (2, 5), "c": (3, 1), "d": (4, 2)})
    items = [item(("c", "b", "a")), item(("d", "c", "b"))]
    assert target_agreement([*items, Item("x", "UK", 3, 1, "A", ("a",), ("a",), "", "")], tied)[
        "not comparable"
    ].tolist() == [1]


def test_baselines_order_by_their_value(tmp_path: Path) -> None:
    wiki, trends = tmp_path / "wiki.csv", tmp_path / "trends.csv"
    wiki.write_text("holiday,words\nlong name,10\nab,90\n", encoding="utf-8")
    trends.write_text(
        "Category: All\n\nMonth,ab: (Worldwide),long name: (Worldwide)\n2004-01,<1,3\n2004-02,2,4\n",
        encoding="utf-8",
    )
    concepts = [Concept("ab", "A", "x", groups=1), Concept("long name", "A", "x", groups=12)]
    question = item(("ab", "long name"), options=("long name", "ab"))
    found = {
        name: orders["q"].order
        for name, orders in baselines([question], concepts, wiki, trends).items()
    }
    assert found["shared"] == ("long name", "ab") and found["name length"] == ("ab", "long name")
    assert found["question order"] == ("long name", "ab") and found["wiki length"] == (
        "ab",
        "long name",
    )
    assert found["trends"] == ("long name", "ab") and read_trends(trends) == {
        "ab": 2.0,
        "long name": 7.0,
    }
    items = [item(("ab", "long name"), name=str(place)) for place in range(400)]
    first = [
        orders.order[0] for orders in baselines(items, concepts, None, None)["random"].values()
    ]
    assert 150 < first.count("ab") < 250


def test_figures_count_kinds_places_and_regions() -> None:
    concepts = [
        Concept("everywhere", "A", "x", "Asia", "high", groups=10),
        Concept("here", "A", "x", "Asia", "high"),
        Concept("few", "A", "x", "Asia", "high", groups=3),
    ]
    question = item(("everywhere", "here", "few"))
    results = mark_all(
        [question], {"m": {"q": Answer(("everywhere", "few", "here"), "full")}}, concepts
    )
    kinds = by_kind(results, [question], concepts).set_index("kind")["pairwise accuracy"].to_dict()
    assert kinds == {"shared": 1.0, "unique, high population": 0.5}
    assert by_place(results)["accuracy"].tolist() == [1.0, 0.0, 0.0]
    assert by_region(results)[["region", "questions", "Diff"]].to_numpy().tolist() == [
        ["Asia", 1, 0.25]
    ]
    table = worked_examples([question], {"m": {"q": Answer((), "none")}})
    assert table["order"].tolist()[-1] == "(none)" and table["rho"].tolist()[1:] == [1.0, 0.0]


@pytest.fixture
def built(tmp_path: Path) -> Path:
    path = tmp_path / "things.csv"
    lines = [
        "item,group,region,US,UK",
        *(f"{group}{i},{group},{group},{i},{(i * 3) % 8}" for group in "AB" for i in range(8)),
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert (
        main(
            [
                "build",
                "--concepts",
                str(path),
                "--noun",
                "things",
                "--n",
                "2,3",
                "--questions",
                "8",
                "--out",
                str(tmp_path / "data"),
                "--shots",
                "1",
            ]
        )
        == 0
    )
    return tmp_path / "data"


def test_score_writes_every_table_and_figure(
    built: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    items = read_items(built)
    store = Store(built, "model x (written)")
    assert store.begin({"method": "ask"}) == {}
    store.add(
        {
            "id": one.id,
            "text": " " + " ".join(f"{k}. {name}" for k, name in enumerate(one.gold, start=1)),
        }
        for one in items[:-5]
    )
    store.add({"id": one.id, "text": "Well, that depends."} for one in items[-5:])
    other = Store(built, "model y (log-probability)")
    other.begin({"method": "rank"})
    other.add(
        {"id": one.id, "scores": {name: -place for place, name in enumerate(one.gold)}}
        for one in items
    )
    capsys.readouterr()
    assert main(["score", "--data", str(built)]) == 0
    assert "model x (written)" in capsys.readouterr().out
    names = {path.name for path in (built / "tables").iterdir()}
    for stem in (
        "table1",
        "table2-US",
        "table3",
        "table4",
        "table5-UK",
        "measures",
        "comparisons",
        "figure2-US",
        "figure3-UK",
    ):
        assert {f"{stem}.tsv", f"{stem}.md", f"{stem}.tex"} <= names
    for stem in ("figure2-US", "figure2-UK", "figure3-US", "figure3-UK"):
        assert (built / "figures" / f"{stem}.pdf").stat().st_size > 0
    table = pd.read_csv(built / "tables" / "measures.tsv", sep="\t").set_index(
        ["target", "n", "model"]
    )
    assert (
        table.loc[("US", 3, "model x (written)"), "Acc"] == 1.0
        and table.loc[("UK", 3, "model x (written)"), "none"] == 5 / 40
    )
    assert table.loc[("UK", 3, "model x (written)"), "Diff"] == pytest.approx(0.5 * 5 / 40)
    assert table.loc[("UK", 3, "model x (written)"), "Diff (full)"] == 0.0
    assert table.loc[("UK", 3, "model y (log-probability)"), "Acc"] == 1.0


def test_answers_to_other_questions_are_refused(built: Path) -> None:
    items = read_items(built)
    store = Store(built, "m")
    store.begin({"shots": 3})
    store.add([{"id": items[0].id, "text": "x"}])
    with pytest.raises(UserError, match=r"was made with another shots \(3, now 2\)"):
        Store(built, "m").begin({"shots": 2})
    with store.lines.open("a", encoding="utf-8") as handle:
        handle.write('{"id": "US/n2/r1/0')  # killed in the middle of a line
    assert set(Store(built, "m").begin({"shots": 3})) == {items[0].id}
    assert read_answers(built, items)["m"].keys() == {items[0].id}
    run = json.loads(store.run.read_text(encoding="utf-8"))
    assert run["questions_sha256"] == digest(built)
    store.run.write_text(json.dumps(run | {"questions_sha256": "other"}), encoding="utf-8")
    with pytest.raises(UserError, match="are to other questions"):
        read_answers(built, items)


def test_answers_with_odd_line_ends_and_a_line_in_writing(built: Path) -> None:
    items = read_items(built)
    store = Store(built, "m")
    store.begin({})
    store.add(
        [
            {
                "id": items[0].id,
                "text": f"1. {items[0].gold[0]}\u2028\x85 2. {items[0].gold[1]} \ud83d",
            }
        ]
    )
    with store.lines.open("ab") as handle:
        handle.write(
            '{"id": "US/n2/r1/002", "text": "1. 春'.encode()[:-1]
        )  # killed in the middle of a character
    assert read_answers(built, items)["m"] == {items[0].id: Answer(items[0].gold, "full")}
    assert set(Store(built, "m").begin({})) == {items[0].id} and store.lines.read_bytes().endswith(
        b"}\n"
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"id": "US/n2/r1/001", "text": "\xff"}\n', "line 2 is no answer; remove that line"),
        (b"Service unavailable\n", "line 2 is no answer"),
        (b'{"id": "US/n2/r9/001", "text": "A"}\n', "line 2: no question 'US/n2/r9/001'"),
        (b'{"id": "US/n2/r1/001"}\n', "neither text nor a finite score for each option"),
        (
            b'{"id": "US/n2/r1/001", "scores": {"OPTION": NaN, "OTHER": 1}}\n',
            "neither text nor a finite score",
        ),
        (
            b'{"id": "US/n2/r1/001", "scores": {"OPTION": "high", "OTHER": 1}}\n',
            "neither text nor a finite score",
        ),
    ],
)
def test_damaged_answers_are_one_line(built: Path, line: bytes, message: str) -> None:
    items = read_items(built)
    store = Store(built, "m")
    store.begin({})
    store.add([{"id": items[0].id, "text": "A"}])
    with store.lines.open("ab") as handle:
        handle.write(
            line.replace(b"OPTION", items[0].options[0].encode()).replace(
                b"OTHER", items[0].options[1].encode()
            )
        )
    with pytest.raises(UserError) as caught:
        main(["score", "--data", str(built)])
    assert str(caught.value).startswith("m.jsonl: ") and message in str(caught.value)


def test_two_answers_of_one_name_are_refused(built: Path) -> None:
    store = Store(built, "m")
    store.begin({})
    store.add([{"id": read_items(built)[0].id, "text": "A"}])
    for path in (store.lines, store.run):
        path.with_name(path.name.replace("m.", "n.", 1)).write_bytes(path.read_bytes())
    with pytest.raises(UserError, match=r"n\.jsonl: its label 'm' is that of other answers"):
        main(["score", "--data", str(built)])
    with pytest.raises(UserError, match="--label random: that is a baseline's name"):
        Store(built, "random").begin({})


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("items.jsonl", lambda text: text[:-20], "is no question; the file is cut off"),
        ("items.jsonl", lambda text: "", "line 1 is no question"),
        (
            "concepts.tsv",
            lambda text: text.replace("groups", "spread"),
            "a column or a number is missing",
        ),
        (
            "concepts.tsv",
            lambda text: text.replace("A3\t", "A33\t"),
            "items.jsonl and concepts.tsv are of two builds",
        ),
        ("concepts.tsv", lambda text: "", "concepts.tsv"),
    ],
)
def test_a_damaged_folder_is_one_line(
    built: Path, name: str, change: Callable[[str], str], message: str
) -> None:
    path = built / name
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(UserError, match=message):
        main(["score", "--data", str(built)])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--baselines", "luck"], "--baselines luck: choose from"),
        (["--baselines", "trends"], "--baselines trends needs a file"),
        (["--trends", "FILE"], "neither holiday,volume nor a Trends export"),
        (["--wiki-length", "FILE"], "row 1 lacks the column holiday"),
    ],
)
def test_bad_score_options_are_one_line(
    built: Path, tmp_path: Path, words: list[str], message: str
) -> None:
    path = tmp_path / "input.csv"
    path.write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(UserError) as caught:
        main(["score", "--data", str(built), *[word.replace("FILE", str(path)) for word in words]])
    assert message in str(caught.value) and "\n" not in str(caught.value)
    assert not (built / "tables").exists()


def test_a_folder_without_questions_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no questions"):
        main(["score", "--data", str(tmp_path)])
