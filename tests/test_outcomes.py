"""Outcomes: four experiments, one table, one comparison; each number checked by hand or against the
experiment's own."""

from __future__ import annotations

import dataclasses
import html
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fluent_mlama import stats
from fluent_mlama.console import UserError
from fluent_mlama.cpopqa import outcomes as cpopqa
from fluent_mlama.linking import parse_linking
from fluent_mlama.mlama import results as mlama
from fluent_mlama.mlama.results import Place, Results
from fluent_mlama.outcomes import FILE, Outcomes, read_outcomes, write_outcomes
from fluent_mlama.records.results import write_dump
from fluent_mlama.reporting.experiment import audit_outcomes
from fluent_mlama.reporting.loading import open_dumps
from fluent_mlama.reporting.outcomes import compare_outcomes, outcomes_of_dumps
from fluent_mlama.reporting.paired import Settings
from fluent_mlama.zhoblimp.measures import by_paradigm, make_result, outcomes_of
from tests.small_dumps import small_dump

SETTINGS = Settings(resamples=200)


def fluent(folder: Path) -> Outcomes:
    for relation in ("P19", "P36"):
        write_dump(small_dump(relation=relation, facts=30), folder)
    return outcomes_of_dumps(open_dumps(folder))


def pairs() -> Outcomes:
    generator = np.random.default_rng(0)
    rows = []
    for uid in ("ba", "bei"):
        for number in range(20):
            good, bad = (
                [float(x) for x in -generator.random(length)]
                for length in generator.integers(2, 6, size=2)
            )
            ids = (list(range(len(good))), list(range(len(bad))))
            rows.append((uid, "p", number, "好" * len(good), "坏" * len(bad), *ids, good, bad))
    columns = ["uid", "phenomenon", "number", "good", "bad"]
    columns += ["good_ids", "bad_ids", "good_logprobs", "bad_logprobs"]
    result = make_result("m", pd.DataFrame(rows, columns=columns))
    functions = [parse_linking("lp"), parse_linking("mean")]
    made = outcomes_of([result], functions, "sig")
    own = by_paradigm(result, functions)["lp"].mean()
    values, _ = compare_outcomes(made, "lp", SETTINGS)
    assert values.set_index("condition").loc["lp", "value"] == pytest.approx(own)
    return made


def queries() -> Outcomes:
    frame = pd.DataFrame(
        {
            "lineid": range(24),
            "sub_uri": [f"Q{n}" for n in range(24)],
            "obj_uri": [f"Q{100 + n % 12}" for n in range(24)],
            "sub_label": "s",
            "gold": "g",
            "rank": [1, 2, None] * 8,
            "correct": [True, False, False] * 8,
        }
    )
    results = Results(
        Place(Path("o"), "m", "tyq"), {"en": {"P36": frame}}, ("sig",), {("en", "P36"): 9}
    )
    return mlama.outcomes_of(results)


def questions() -> Outcomes:
    rows = []
    for model, right in (("random", 4), ("m", 8)):
        for number in range(12):
            first = float(number < right)
            rows.append(
                {
                    "model": model, "target": "US", "n": 2, "group": f"C{number}", "id": f"q{number}",
                    "answer": f"H{number}", "first": first, "exact": first, "diff": 1 - first,
                }
            )  # fmt: skip
    return cpopqa.outcomes_of(pd.DataFrame(rows), "sig")


@pytest.mark.parametrize("name", ["fluent", "pairs", "queries", "questions"])
def test_every_experiment_is_kept_compared_and_printed_alike(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make = {"pairs": pairs, "queries": queries, "questions": questions}
    made = fluent(tmp_path / "dumps") if name == "fluent" else make[name]()
    path = write_outcomes(tmp_path / "run", made)
    again = path.read_bytes()
    assert write_outcomes(tmp_path / "run", made).read_bytes() == again
    read = read_outcomes(tmp_path / "run")
    assert (read.measures, read.clusters, read.signature) == (
        made.measures,
        made.clusters,
        made.signature,
    )
    pd.testing.assert_frame_equal(read.rows, made.rows, check_dtype=False)
    words = ["compare", "--stats", str(tmp_path / "run"), "--tables", str(tmp_path / "tables")]
    assert stats.main([*words, "--resamples", "200"]) == 0
    printed = capsys.readouterr().out
    assert "Estimand: new" in printed and f"signature: {made.signature}" in printed
    values = pd.read_csv(tmp_path / "tables" / "compare_values.tsv", sep="\t")
    assert set(values["condition"]) == set(made.conditions)
    assert set(values["measure"]) == {measure.name for measure in made.measures}


@pytest.mark.parametrize("name", ["fluent", "pairs", "queries", "questions"])
def test_every_experiment_is_reported_audited_and_exported_alike(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make = {"pairs": pairs, "queries": queries, "questions": questions}
    made = fluent(tmp_path / "dumps") if name == "fluent" else make[name]()
    write_outcomes(tmp_path / "run", made)
    where = ["--stats", str(tmp_path / "run"), "--tables", str(tmp_path / "tables")]

    page = tmp_path / "page.html"
    assert stats.main(["report", *where, "--out", str(page), "--resamples", "200"]) == 0
    text = page.read_text(encoding="utf-8")
    assert f"signature: {html.escape(made.signature)}" in text and "Estimand: new" in text
    assert all(html.escape(condition) in text for condition in made.conditions)
    assert ('<img class="plot"' in text) == (len(made.conditions) > 1)
    assert "<script" not in text and "://" not in text

    assert stats.main(["audit", *where]) == 0
    found = pd.read_csv(tmp_path / "tables" / "audit.tsv", sep="\t")
    expected = {"queries": {"unranked items", "few candidates"}}
    assert set(found["check"]) >= expected.get(name, set())

    assert stats.main(["export", *where, "--out", str(tmp_path / "out")]) == 0
    csv = pd.read_csv(tmp_path / "out" / "outcomes.csv", keep_default_na=False, dtype=str)
    assert csv["condition"].tolist() == made.rows["condition"].tolist()
    lines = (tmp_path / "out" / "outcomes.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["item"] for line in lines] == made.rows["item"].tolist()
    dataset = pytest.importorskip("datasets").load_dataset(
        str(tmp_path / "out"), cache_dir=str(tmp_path / "cache")
    )["train"]
    assert dataset.num_rows == len(made.rows)
    with pytest.raises(UserError, match="is there and not empty; name a new folder"):
        stats.main(["export", *where, "--out", str(tmp_path / "out")])
    capsys.readouterr()


def test_each_check_of_outcomes_finds_its_fault() -> None:
    good = questions()
    assert audit_outcomes(good)["check"].tolist() == []
    rows = good.rows
    one = rows["condition"] == "m"
    for name, spoiled in {
        "missing items": rows[~(one & (rows["item"] == rows["item"].iloc[-1]))],
        "heavy clusters": rows.assign(cluster_1=rows["cluster_1"].where(~one, "same")),
        "constant outcomes": rows.assign(**{
            measure.column: rows[measure.column].where(~one, 1.0) for measure in good.measures
        }),
        "few candidates": rows.assign(n_candidates=5.0),
        "few clusters": rows.groupby("condition").head(6),
        "conditions alike": pd.concat([rows, rows[one].assign(condition="again")]),
    }.items():  # fmt: skip
        found = set(audit_outcomes(dataclasses.replace(good, rows=spoiled))["check"])
        assert name in found, (name, found)


def test_a_fact_that_did_not_compete_is_wrong() -> None:
    values, differences = compare_outcomes(queries(), "tyq, mlama", SETTINGS)
    assert values["value"].tolist() == [pytest.approx(8 / 24)]
    assert differences.empty


def test_differences_of_questions_by_hand() -> None:
    _, differences = compare_outcomes(questions(), "random", SETTINGS)
    found = differences.set_index("measure")["difference"]
    assert found.to_dict() == pytest.approx({"P@1": 4 / 12, "Acc": 4 / 12, "Diff": -4 / 12})


def test_dumps_give_the_same_values_as_the_comparison_of_dumps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = fluent(tmp_path / "dumps")
    values, differences = compare_outcomes(made, "template", Settings(resamples=200))
    words = ["compare", "--stats", str(tmp_path / "dumps"), "--tables", str(tmp_path / "tables")]
    words += ["--graphs", str(tmp_path / "graphs"), "--resamples", "200"]
    assert stats.main(words) == 0
    own = pd.read_csv(tmp_path / "tables" / "compare_differences.tsv", sep="\t")
    own = own[(own["weights"] == "relation") & own["metric"].isin(["R@1", "mean rank"])]
    ours = differences[differences["measure"].isin(["R@1", "mean rank"])]
    for column in ("difference", "low", "high", "p"):
        assert ours[column].tolist() == pytest.approx(own[column].tolist(), nan_ok=True)


def test_two_experiments_are_not_compared(tmp_path: Path) -> None:
    write_outcomes(tmp_path / "a", questions())
    write_outcomes(tmp_path / "b", queries())
    with pytest.raises(UserError, match="measure different things"):
        stats.main(["compare", "--stats", str(tmp_path / "a"), "--against", str(tmp_path / "b")])


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"not parquet at all"])
def test_a_damaged_table_is_one_line(tmp_path: Path, damage: bytes) -> None:
    path = write_outcomes(tmp_path, queries())
    path.write_bytes(damage or path.read_bytes()[:-40])
    with pytest.raises(UserError, match=f"{FILE} cannot be read as outcomes"):
        read_outcomes(tmp_path)


def test_an_item_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    made = queries()
    double = pd.concat([made.rows, made.rows[:1]], ignore_index=True)
    with pytest.raises(UserError, match="twice"):
        write_outcomes(tmp_path, Outcomes("x", double, made.measures, made.clusters, "r", "s"))
