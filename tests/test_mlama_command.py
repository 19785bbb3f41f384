"""The mLAMA probe's commands on toy data: query, resume, every analysis, report, and input that cannot be used."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image

from fluent_mlama.console import UserError
from fluent_mlama.mlama import query as query_module
from fluent_mlama.mlama.__main__ import main
from fluent_mlama.mlama.measures import bias_table, p1_by_relation
from fluent_mlama.mlama.query import Options, query
from fluent_mlama.mlama.report import TITLES, left_out, page
from fluent_mlama.mlama.results import Place, Results, read_result, read_results
from fluent_mlama.reader import MLama
from fluent_mlama.records.results import read_run
from tests.fault_world import flip_bit
from tests.mlama_world import FACTS, TEMPLATES, tiny_masked, write_lines, write_toy

ALL = "en,it,ja"


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    return write_toy(tmp_path / "toy")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The tiny model as a folder."""
    folder = tmp_path_factory.mktemp("models") / "tiny-bert"
    loaded = tiny_masked().loaded
    loaded.model.save_pretrained(folder)
    loaded.tokenizer.save_pretrained(folder)
    return str(folder)


def asked(toy: Path, model: str, out: Path, *more: str, method: str = "tyq") -> int:
    return main(
        [
            "query",
            "--model",
            model,
            "--method",
            method,
            "--data",
            str(toy),
            "--out",
            str(out),
            "--dtype",
            "float32",
            *more,
        ]
    )


def tsv(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]


def test_query_writes_one_table_a_relation_with_its_signature(
    toy: Path, model: str, tmp_path: Path
) -> None:
    assert asked(toy, model, tmp_path / "out") == 0
    files = sorted(
        str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("P*.parquet")
    )
    assert files == sorted(
        f"tiny-bert/tyq/mlama/{lang}/{relation}.parquet" for lang, relation in FACTS
    )
    frame, record = read_result(tmp_path / "out" / files[0])
    assert len(frame) == len(FACTS["en", "P1412"])
    assert record.protocol == "mlama-tyq"
    assert "mlama-tyq" in record.signature and "ties:label" in record.signature
    assert record.rows_in == record.rows_scored == len(frame)


def test_what_is_finished_is_not_asked_again_and_what_changed_is(
    toy: Path,
    model: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    loads = []
    monkeypatch.setattr(
        query_module, "load", lambda options: loads.append(options) or tiny_masked()
    )
    data = MLama(toy)
    options = Options(model, "tyq", tmp_path / "out")
    files = query(data, options)
    before = {path: path.stat().st_mtime_ns for path in files}
    assert query(data, options) == files and len(loads) == 1
    files[0].unlink()
    query(data, options)
    assert len(loads) == 2 and "is asked again" not in capsys.readouterr().err
    assert {path for path in files if path.stat().st_mtime_ns != before[path]} == {files[0]}
    query(data, Options(model, "tyq", tmp_path / "out", top=2))
    assert (
        len(loads) == 3
        and f"is asked again: {files[0]} was made with another top (5, now 2)"
        in capsys.readouterr().err
    )
    assert query(data, options) and len(loads) == 4
    flip_bit(Path(model) / "model.safetensors")
    assert query(data, options) and len(loads) == 5
    assert "was made with another identity ('local-" in capsys.readouterr().err
    files[0].write_bytes(files[0].read_bytes() + b" ")
    query(data, options)
    assert f"is asked again: {files[0]} was cut off, damaged or changed" in capsys.readouterr().err
    flip_bit(Path(model) / "model.safetensors")  # as the other tests know it


@pytest.mark.parametrize(("method", "compat"), [("tyq", False), ("tyq", True), ("untyq", False)])
def test_an_interrupted_query_goes_on_inside_a_relation(
    toy: Path,
    model: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    compat: bool,
) -> None:
    monkeypatch.setattr("fluent_mlama.mlama.asking.CHUNK", 1)
    facts = sum(map(len, FACTS.values()))
    options = Options(model, method, tmp_path / "out", compat=compat)
    whole = replace(options, out=tmp_path / "whole")
    query(MLama(toy), whole, scorer=tiny_masked())

    scorer = tiny_masked()
    typed, calls = scorer.typed, []

    def failing(queries: Sequence[object], **_: object) -> object:
        if len(calls) == 6:
            raise KeyboardInterrupt
        calls.append(queries)
        return typed(queries)  # type: ignore[arg-type]

    scorer.typed = failing  # type: ignore[method-assign,assignment]
    with pytest.raises(KeyboardInterrupt):
        query(MLama(toy), options, scorer=scorer)
    kept = sorted((tmp_path / "out").rglob("chunk-*.json"))
    assert len(kept) == 2  # of the second relation; the first has 4 facts and is finished
    kept[1].write_bytes(kept[1].read_bytes()[:-9])  # a damaged one is asked again

    calls.clear()
    scorer.typed = lambda queries: calls.append(queries) or typed(queries)  # type: ignore[method-assign,assignment]
    files = query(MLama(toy), options, scorer=scorer)
    assert len(calls) == facts - 5
    assert not list((tmp_path / "out").rglob("*.packs"))
    for path in files:
        same = whole.place.folder / path.relative_to(options.place.folder)
        assert path.read_bytes() == same.read_bytes()
        assert read_run(path.with_suffix(".run.json")).extras == (
            read_run(same.with_suffix(".run.json")).extras
        )


def test_chunks_of_other_settings_are_not_used(
    toy: Path, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fluent_mlama.mlama.asking.CHUNK", 1)
    scorer = tiny_masked()
    typed, calls = scorer.typed, []

    def failing(queries: Sequence[object], **_: object) -> object:
        if len(calls) == 2:
            raise KeyboardInterrupt
        calls.append(queries)
        return typed(queries)  # type: ignore[arg-type]

    scorer.typed = failing  # type: ignore[method-assign,assignment]
    options = Options(model, "tyq", tmp_path / "out")
    with pytest.raises(KeyboardInterrupt):
        query(MLama(toy), options, ["en"], ["P36"], scorer)
    calls.clear()
    scorer.typed = lambda queries: calls.append(queries) or typed(queries)  # type: ignore[method-assign,assignment]
    (file,) = query(MLama(toy), replace(options, top=2), ["en"], ["P36"], scorer)
    assert (
        len(calls) == 4 and read_run(file.with_suffix(".run.json")).extras["settings"]["top"] == 2
    )


def test_several_models_in_one_call_each_with_its_folder(
    toy: Path, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A model that cannot be loaded stops only itself; what the others answered is kept."""
    second = shutil.copytree(model, tmp_path / "second")
    broken = tmp_path / "broken"
    broken.mkdir()
    with pytest.raises(UserError, match="1 of 3"):
        asked(toy, f"{model},{broken},{second}", tmp_path / "out", "--langs", "en")
    one, other = (Options(name, "tyq", tmp_path / "out").place for name in (model, str(second)))
    for place in (one, other):
        assert (place.folder / "outcomes.parquet").is_file()
    assert one.file("en", "P36").read_bytes() == other.file("en", "P36").read_bytes()
    assert str(broken) in capsys.readouterr().err


def test_methods_and_displaced_masks_never_share_a_folder(
    toy: Path, model: str, tmp_path: Path
) -> None:
    for method, more in (("tyq", ()), ("untyq", ()), ("tyq", ("--compat",))):
        asked(toy, model, tmp_path / "out", *more, method=method)
    assert sorted(path.name for path in (tmp_path / "out" / "tiny-bert").iterdir()) == [
        "tyq",
        "tyq-compat",
        "untyq",
    ]
    with pytest.raises(UserError, match="choose one with --method"):
        main(["p1", "--model", model, "--results", str(tmp_path / "out")])
    assert (
        main(
            [
                "p1",
                "--model",
                model,
                "--method",
                "tyq",
                "--compat",
                "--results",
                str(tmp_path / "out"),
                "--tables",
                str(tmp_path),
            ]
        )
        == 0
    )


def test_every_analysis_writes_its_tables(
    toy: Path, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, tables = tmp_path / "out", tmp_path / "tables"
    asked(toy, model, out)
    asked(toy, model, out, method="untyq")
    articles = tmp_path / "articles.csv"
    articles.write_text("lang,articles\nen,6000000\nit,1800000\nja,1400000\n", encoding="utf-8")
    common = ["--model", model, "--method", "tyq", "--results", str(out), "--tables", str(tables)]
    commands = {
        "p1": ["--articles", str(articles)], "rel-p1": [], "split": ["--untyped"], "bias": [], "pool": ["--seed", "1"],
        "uhn": ["--data", str(toy)],
    }  # fmt: skip
    for name, more in commands.items():
        assert main([name, *common, *more]) == 0
    assert main(["coverage", "--data", str(toy), "--tables", str(tables)]) == 0
    names = {path.stem for path in tables.glob("*.tsv")}
    assert names == {
        "p1", "p1_relations", "articles", "relative_p1", "split", "split_untyq", "bias", "bias_languages", "pooling", "pooling_relations",
        "uhn", "uhn_list", "uhn_pooling", "coverage", "samples",
    }  # fmt: skip
    for name in names:
        assert {
            ending for ending in (".tsv", ".md", ".tex") if (tables / f"{name}{ending}").is_file()
        } == {".tsv", ".md", ".tex"}
    figures = {"figure1_coverage", "figure2_pieces", "figure3_relative", "figure6_wikipedia"}
    assert (
        {path.stem for path in tables.glob("*.pdf")}
        == figures
        == {path.stem for path in tables.glob("*.png")}
    )
    for figure in figures:
        assert (
            Image.open(tables / f"{figure}.png").convert("L").entropy() > 0.1
        )  # something is drawn
    dropped = [row[:2] for row in tsv(tables / "uhn_list.tsv")[1:]]
    assert dropped == [["P37", "1"], ["P1412", "7"]]  # Bel in Belmia, Ardish in Jean Ardish
    coverage = {row[0]: row for row in tsv(tables / "coverage.tsv")}
    assert coverage["en"][4] == "9" and coverage["it"][6] == "1"


def test_report_asks_and_writes_everything_in_one_go(
    toy: Path, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [
        "report",
        "--model",
        model,
        "--data",
        str(toy),
        "--langs",
        ALL,
        "--out",
        str(tmp_path / "out"),
        "--tables",
        str(tmp_path / "t"),
    ]
    assert main([*words, "--dtype", "float32"]) == 0
    assert {path.stem for path in (tmp_path / "t").glob("*.tsv")} == set(TITLES) - {"articles"}
    page = (tmp_path / "t" / "report.md").read_text(encoding="utf-8")
    assert all(f"## {TITLES[name]}" in page for name in TITLES if name != "articles")
    assert page.count("![figure") == 3
    assert "mlama-tyq" in page


def test_report_tells_what_was_not_asked(toy: Path, model: str, tmp_path: Path) -> None:
    results = Results(Place(tmp_path, model, "causal"), {"en": {"P36": pd.DataFrame()}})
    assert left_out({"en": ["P36"], "it": ["P36", "P37"]}, results) == {"it": ["P36", "P37"]}
    assert "over fewer of them there: it: P36, P37; ja: P37." in page(
        tmp_path, [], [], results, {"it": ["P36", "P37"], "ja": ["P37"]}
    )
    assert "fewer" not in page(tmp_path, [], [], results, {})


def test_answers_of_different_settings_are_told(
    toy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, everything = MLama(toy), Options("tiny", "tyq", tmp_path / "out")
    query(data, everything, ["en"], scorer=tiny_masked())
    read_results(everything.place)
    assert "different settings" not in capsys.readouterr().err
    query(
        data,
        Options("tiny", "tyq", tmp_path / "out", limit=2),
        ["en"],
        ["P36"],
        scorer=tiny_masked(),
    )
    read_results(everything.place)
    assert "holds answers of 2 different settings" in capsys.readouterr().err


def test_untyped_answers_have_neither_chance_nor_ranks(toy: Path, tmp_path: Path) -> None:
    for method in ("tyq", "untyq"):
        options = Options("tiny", method, tmp_path / "out")
        query(MLama(toy), options, ["en"], scorer=tiny_masked())
        results = read_results(options.place)
        table = p1_by_relation(results)
        found = [
            table["chance"].notna(),
            table["mean reciprocal rank"].notna(),
            bias_table(results)["entropy"].notna(),
        ]
        assert all(column.tolist() == [method == "tyq"] * 3 for column in found)


def test_the_record_says_how_the_masked_model_was_scored(
    toy: Path, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked(toy, model, tmp_path / "out", "--langs", "en", "--relations", "P36")
    record = read_run(next((tmp_path / "out").rglob("*P36*.run.json")))
    assert (record.path, record.path_reason) == (
        "padded",
        "the fastest; agrees with plain forwards",
    )
    assert record.self_check["float32"]["largest_gap"] < 1e-4 and record.self_check[
        "packed_linear"
    ].endswith(" layers")
    assert (
        "masked batches: padded (the fastest; agrees with plain forwards); float32: largest gap"
        in capsys.readouterr().err
    )


def test_template_sets_are_asked_and_compared(toy: Path, model: str, tmp_path: Path) -> None:
    asked(toy, model, tmp_path / "out", "--langs", "en", "--relations", "P36,P37")
    other = tmp_path / "corrected"
    write_lines(other / "en" / "templates.jsonl", [
        {"relation": "P36", "template": "[X] has the capital [Y] ."}, {"relation": "P37", "template": TEMPLATES["en"]["P37"]},
    ])  # fmt: skip
    asked(
        toy,
        model,
        tmp_path / "out",
        "--langs",
        "en",
        "--relations",
        "P36,P37",
        "--templates",
        str(other),
    )
    words = [
        "templates",
        "--model",
        model,
        "--with",
        "corrected",
        "--results",
        str(tmp_path / "out"),
        "--tables",
        str(tmp_path / "t"),
    ]
    assert main([*words, "--method", "tyq"]) == 0
    assert [row[:4] for row in tsv(tmp_path / "t" / "templates.tsv")[1:]] == [
        ["en", "mlama", "2", "0"],
        ["en", "corrected", "2", "1"],
    ]
    with pytest.raises(UserError, match="no templates for it"):
        asked(toy, model, tmp_path / "out", "--langs", "it", "--templates", str(other))


def test_published_candidates_are_used_and_objects_that_they_lack_added(
    toy: Path, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lists = tmp_path / "lists"
    lists.mkdir()
    (lists / "en.json").write_text(
        json.dumps({"P36": {"subjects": [], "objects": ["Bel", "Jean", "Ostby"]}}), encoding="utf-8"
    )
    more = tmp_path / "more"
    more.mkdir()
    (more / "en.json").write_text(
        json.dumps({"place_of_birth": {"objects": ["x"]}, "P37": {"objects": []}}), encoding="utf-8"
    )
    asked(
        toy,
        model,
        tmp_path / "out",
        "--langs",
        "en",
        "--relations",
        "P36,P37",
        "--candidates",
        str(lists),
        "--candidates",
        str(more),
    )
    told = capsys.readouterr().err
    assert "en P37: no candidates, left out" in told
    assert "2 objects are in no candidate list and were added (the first: 'Lumen')" in told
    path = tmp_path / "out" / "tiny-bert" / "tyq" / "mlama" / "en" / "P36.parquet"
    frame, record = read_result(path)
    assert record.pool_size == 5
    assert frame["gold_status"].tolist() == ["ok", "added", "added", "ok"]


def test_a_relation_that_one_language_lacks_is_left_out_there_with_a_note(
    toy: Path, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked(toy, model, tmp_path / "out", "--langs", "en,ja", "--relations", "P37")
    assert "no relation P37 in ja: left out there" in capsys.readouterr().err
    assert [path.parent.name for path in (tmp_path / "out").rglob("P*.parquet")] == ["en"]


def test_a_relation_without_facts_divides_nothing(
    tmp_path: Path, model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    toy = write_toy(tmp_path / "toy", {**FACTS, ("ja", "P37"): {}})
    asked(toy, model, tmp_path / "out", "--langs", "ja")
    assert "ja P37: no facts, left out" in capsys.readouterr().err


def test_causal_leaves_out_templates_that_go_on_behind_the_object(
    toy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.stand_in import StandInScorer

    options = Options("stand-in", "causal", tmp_path / "out")
    files = query(MLama(toy), options, ["en", "ja"], ["P36"], StandInScorer())
    assert [path.parent.name for path in files] == ["en"]
    assert "ja P36: the template goes on behind the object, left out" in capsys.readouterr().err
    whole = query(
        MLama(toy),
        Options("stand-in", "causal-sentence", tmp_path / "out"),
        ["en", "ja"],
        ["P36"],
        StandInScorer(),
    )
    assert [path.parent.name for path in whole] == ["en", "ja"]
    assert not list((tmp_path / "out").rglob("*.packs"))


@pytest.mark.parametrize(
    "template", ["[X] is it .", "[X] is [Y] and [Y] .", "[X] and [X] are [Y] ."]
)
def test_templates_need_one_of_each_slot_before_any_model_is_loaded(
    tmp_path: Path, template: str
) -> None:
    toy = write_toy(
        tmp_path / "toy", {("en", "P36"): FACTS["en", "P36"]}, {"en": {"P36": template}}
    )
    with pytest.raises(UserError, match=r"the template of P36 needs one \[X\] and one \[Y\]"):
        asked(toy, "no/such-model", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--langs", "xx"], "unknown language 'xx'"),
        (["--langs", "de"], "no language de"),
        (["--relations", "P9999"], "no language of en, it, ja has P9999"),
    ],
)
def test_choices_that_no_run_could_use(
    toy: Path, model: str, tmp_path: Path, words: list[str], said: str
) -> None:
    with pytest.raises(UserError, match=said):
        asked(toy, model, tmp_path / "out", *words)


def test_candidate_lists_of_another_kind_are_refused(toy: Path, model: str, tmp_path: Path) -> None:
    lists = tmp_path / "lists"
    lists.mkdir()
    for content, said in (
        ("{", "is not JSON"),
        ('{"P36": ["a"]}', "is no candidate list"),
        ('{"P37": {"objects": ["a"]}}', "no relation P36"),
    ):
        (lists / "en.json").write_text(content, encoding="utf-8")
        with pytest.raises(UserError, match=said):
            asked(toy, model, tmp_path / "out", "--langs", "en", "--candidates", str(lists))
    with pytest.raises(UserError, match="no candidate list it.json"):
        asked(toy, model, tmp_path / "out", "--langs", "it", "--candidates", str(lists))


@pytest.mark.model
def test_a_causal_model_has_no_masks_to_fill(toy: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not a masked language model"):
        asked(toy, "smollm2", tmp_path / "out", "--langs", "en")


def test_compat_needs_masks(toy: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--compat is about masks"):
        asked(toy, "smollm2", tmp_path / "out", "--compat", method="causal")


def test_results_that_were_changed_by_hand_are_not_believed(
    toy: Path, model: str, tmp_path: Path
) -> None:
    asked(toy, model, tmp_path / "out", "--langs", "en")
    path = next((tmp_path / "out").rglob("P36.parquet"))
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(UserError, match="is not the table that its run.json tells of"):
        main(
            [
                "p1",
                "--model",
                model,
                "--results",
                str(tmp_path / "out"),
                "--tables",
                str(tmp_path / "t"),
            ]
        )
    with pytest.raises(UserError, match="no results for language it"):
        read_results(Options(model, "tyq", tmp_path / "out").place, ["it"])
    assert read_run(path.with_suffix(".run.json")).lang == "en"
