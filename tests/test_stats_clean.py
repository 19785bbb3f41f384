"""Tables of any dumps: the clean style, languages and verbalisations of all kinds, bad input in one line."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pandas as pd
import pytest
from small_dumps import small_dump, write_small_dumps

from fluent_mlama import stats
from fluent_mlama.console import UserError
from fluent_mlama.records.results import write_dump
from fluent_mlama.reporting.latex import Column, Raw, booktabs, escape, number
from fluent_mlama.reporting.loading import DumpFolder, rank_table
from fluent_mlama.reporting.measures import (
    mean_rank,
    recall_at,
)
from fluent_mlama.reporting.selection import SHORT_RULES, RowRules, kept_rows
from fluent_mlama.reporting.table_io import write_tables


def test_clean_cells_are_escaped_and_fixed() -> None:
    assert escape("50 % & {a} ~ ^ \\ # $ P36_x <é>") == (
        r"50 \% \& \{a\} \textasciitilde{} \textasciicircum{} \textbackslash{} \# \$ P36\_x \textless{}é\textgreater{}"
    )
    assert escape("a--b ''q'' ?`! ,,x\u200b\u00ady\x1b e\u0301 Москва 北京") == (
        "a-{}-b '{}'q'{}' ?{}`! ,{},xy  é Москва 北京"
    )
    assert booktabs([Column("*")], [["[X]"], ["y [Z]"]]).splitlines()[2:6] == [
        r"{}* \\",
        r"\midrule",
        r"{}[X] \\",
        r"y [Z] \\",
    ]
    assert [number(x, 2) for x in (0.6, 5.0, -0.004, -0.5, math.nan)] == [
        "0.60",
        "5.00",
        "0.00",
        "$-$0.50",
        "--",
    ]
    columns = [Column("_A", "l"), Column(Raw("$x$"), "r", "a & b"), Column("y", "r", "a & b")]
    text = booktabs(columns, [["P36_x", Raw("$1$"), 2], None, ["1e5", "007", "NA"]])
    assert text.splitlines() == [
        r"\begin{tabular}{lrr}",
        r"\toprule",
        r" & \multicolumn{2}{c}{a \& b} \\",
        r"\cmidrule(lr){2-3}",
        r"\_A & $x$ & y \\",
        r"\midrule",
        r"P36\_x & $1$ & 2 \\",
        r"\midrule",
        r"1e5 & 007 & NA \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


def test_a_small_loss_is_no_negative_zero(tmp_path: Path) -> None:
    write_tables(tmp_path, {"one": pd.DataFrame({"gain": [-0.00004, -0.0, -0.5, math.nan]})})
    written = {
        ending: (tmp_path / f"one.{ending}").read_text(encoding="utf-8")
        for ending in ("tsv", "md", "tex")
    }
    assert written["tsv"].split()[:4] == ["gain", "-4e-05", "0.0", "-0.5"]
    for ending in ("md", "tex"):
        assert re.findall(r"-?\d\.\d+|–", written[ending]) == ["0.0000", "0.0000", "-0.5000", "–"]


def run_small(command: str, stats_folder: Path, tables: Path, *options: str) -> str:
    assert (
        stats.main([command, "--stats", str(stats_folder), "--tables", str(tables), *options]) == 0
    )
    (written,) = tables.glob("*.tex")
    return written.read_text(encoding="utf-8")


@pytest.mark.parametrize("command", ["general", "infl-delta", "relations", "qe"])
@pytest.mark.parametrize("style", ["paper", "clean"])
def test_any_languages_relations_and_verbalisations(
    command: str, style: str, tmp_path: Path
) -> None:
    folder = write_small_dumps(
        tmp_path / "dumps",
        ("de", "fi"),
        ("P19", "P9999"),
        verbalisations=("template", "phrasebook", "nllb"),
        facts=20,
    )
    text = run_small(command, folder, tmp_path / "out", "--style", style, "--langs", "fi,de")
    assert text.index("fi") < text.index("de")
    assert "P9999" in text or command != "relations"
    assert all(v in text for v in ("phrasebook", "nllb")) or command == "relations"


def test_many_languages_turn_the_clean_tables(tmp_path: Path) -> None:
    langs = ("af", "ar", "az", "be", "bg", "bn", "ca", "cs", "cy", "da", "de")
    folder = write_small_dumps(tmp_path / "dumps", langs, ("P19",))
    lines = run_small("general", folder, tmp_path / "general").splitlines()
    assert [line.split(" & ")[0] for line in lines if line.split(" & ")[0] in langs] == [
        "cs",
        "da",
        *sorted({*langs} - {"cs", "da"}),
    ]
    assert run_small("relations", folder, tmp_path / "relations").count(r"\begin{tabular}") == 2


def test_corrected_dumps_give_the_general_table_and_refuse_the_inflection_table(
    tmp_path: Path,
) -> None:
    folder = write_small_dumps(tmp_path / "dumps", protocol="corrected")
    assert "protocol: corrected" in run_small("general", folder, tmp_path / "out")
    with pytest.raises(UserError, match="ranks entities"):
        stats.main(["infl-delta", "--stats", str(folder), "--tables", str(tmp_path / "none")])
    assert not (tmp_path / "none").exists()


def test_mean_rank_of_the_corrected_protocol_keeps_half_ranks(tmp_path: Path) -> None:
    dump = small_dump(protocol="corrected", facts=3)
    dump.table["gt_rank"] = [1.0, 2.5, 4.0]
    table = rank_table(dump)
    assert mean_rank(table)["gt"] == 2.5
    assert recall_at(2)(table)["gt"] == pytest.approx(1 / 3)


def test_a_dump_without_a_verbalisation_of_the_others_is_named(tmp_path: Path) -> None:
    folder = write_small_dumps(tmp_path / "dumps")
    (folder / "ru_P36_template_gt.tsv").unlink()
    write_dump(small_dump("ru", "P36", ("template",)), folder)
    with pytest.raises(
        UserError,
        match="ru_P36_template.tsv has the verbalisations template but .*--verbalisations template",
    ):
        stats.main(
            ["general", "--stats", str(folder), "--tables", str(tmp_path / "out"), "--langs", "ru"]
        )
    assert not (tmp_path / "out").exists()


def test_a_relation_without_a_quality_gain_is_named(tmp_path: Path) -> None:
    (tmp_path / "qe.tsv").write_text(
        "lang\tverbalisation\trelation\tqe_delta\nru\tgt\tP19\t1\n", encoding="utf-8"
    )
    with pytest.raises(UserError, match="no QE gain for ru gt P36"):
        run_small(
            "qe",
            write_small_dumps(tmp_path / "dumps"),
            tmp_path / "out",
            "--qe",
            str(tmp_path / "qe.tsv"),
        )


def test_signature_names_the_runs(tmp_path: Path) -> None:
    folder = write_small_dumps(tmp_path / "dumps", ("ru",))
    for relation, digest in (("P19", "11111111"), ("P36", "22222222")):
        record = f'{{"signature": "m@1|float32|data:{digest}|v1"}}'
        (folder / f"ru_{relation}_template_gt.run.json").write_text(record, encoding="utf-8")
    opened = DumpFolder(folder)
    assert opened.signature([opened.table("ru", "P19")]) == "m@1|float32|data:11111111|v1"
    both = opened.signature(opened.tables())
    assert both.startswith("m@1|float32|data:")
    assert both.endswith(" (2 files)|v1")


def test_short_prompts_fall_to_the_rule() -> None:
    table = rank_table(small_dump())
    table.facts.loc[3, "gt_prompt"] = "P "
    assert [len(kept_rows(table, RowRules(rule))) for rule in SHORT_RULES] == [11, 11, 12]
