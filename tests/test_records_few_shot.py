"""Few-shot text and the audit of what leaked from it."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from fluent_mlama.console import UserError
from fluent_mlama.files import open_source
from fluent_mlama.records.benchmark import make_benchmark, read_benchmark
from fluent_mlama.records.few_shot import (
    FewShot,
    Shot,
    audit_leakage,
    find_leakage,
    format_few_shot,
    parse_few_shot,
    read_few_shot,
    write_few_shot,
)

IRREGULAR = {
    "cs_P19.txt",
    "hr_P19.txt",
    "ru_P19.txt",
    "cs_P36.txt",
}  # blank lines without their indent; a tab before the first line
SHOT = Shot("Ada was born in London .", "Ada", "Londýn", "Ada se narodila v Londýně.")


def test_the_layout_is_the_published_one(tmp_path: Path) -> None:
    few_shot = FewShot("Translate.\nMind the cases. ", (SHOT, SHOT))
    text = format_few_shot(few_shot)
    assert text.split("\n")[:8] == [
        "        Translate.",
        "        Mind the cases. ",
        "        ",
        "        Source sentence: Ada was born in London .",
        "        Subject translation: Ada",
        "        Object translation: Londýn",
        "        Translation: Ada se narodila v Londýně.",
        "        ",
    ]
    assert parse_few_shot(text) == few_shot
    path = write_few_shot(tmp_path, "cs", "P19", few_shot)
    assert path.name == "cs_P19.txt"
    assert read_few_shot(open_source(tmp_path), "cs", "P19") == few_shot


def test_text_without_shots_and_empty_text() -> None:
    assert parse_few_shot("") == FewShot("", ())
    assert parse_few_shot("        Translate.\n") == FewShot("Translate.", ())
    assert parse_few_shot(format_few_shot(FewShot("", (SHOT,)))) == FewShot("", (SHOT,))


def test_broken_shots_are_told_with_their_line(tmp_path: Path) -> None:
    text = format_few_shot(FewShot("Translate.", (SHOT, SHOT)))
    for broken in (
        text.replace("Object translation", "Object", 1),
        text.replace("v Londýně.", "v\nLondýně.", 1),
        text[:150],
    ):
        with pytest.raises(UserError, match="cs_P19.txt: the shot at line 3 is not the four lines"):
            parse_few_shot(broken, "cs_P19.txt")
    with pytest.raises(ValueError, match="one line each"):
        format_few_shot(FewShot("", (Shot("a\nb", "", "", ""),)))
    (tmp_path / "cs_P19.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="not UTF-8"):
        read_few_shot(open_source(tmp_path), "cs", "P19")


def test_leaked_rows_are_found_by_sentence_and_labels() -> None:
    rows = [
        ("Q1", "Ada", "Q2", "Londýn", "Ada was born in London .", " Ada se narodila v Londýně."),
        ("Q1", "Ada", "Q3", "Paříž", "Ada was born in Paris .", "Ada se narodila v Paříži."),
        ("Q4", "Ada", "Q2", "Londýn", "Ada was born in London .", "Ada je z Londýna."),
    ]
    columns = ["sub_uri", "sub_label", "obj_uri", "obj_label", "en_template", "chatgpt_translation"]
    more = {
        "template": "",
        "template_prompt": "",
        "aliases": "",
        "chatgpt_prompt": "",
        "chatgpt_infl_object": "",
    }
    benchmark = make_benchmark(
        "cs", "P19", "own", pd.DataFrame(rows, columns=columns).assign(**more)
    )
    found = find_leakage(
        benchmark, FewShot("", (SHOT, Shot("Bo died .", "Bo", "x", "y"))), kept=[1, 2]
    )
    assert (found.rows, found.kept, found.verbatim, found.shots, found.strangers) == (
        (0, 2),
        (2,),
        (0,),
        2,
        1,
    )
    assert find_leakage(benchmark, FewShot("", (SHOT,))).kept == (0, 2)


def test_published_few_shot_files_parse_and_the_regular_ones_come_back(published: Path) -> None:
    source = open_source(published / "fluent_mlama" / "chatgpt_prompts")
    assert len(source.names()) == 16
    for name in source.names():
        text = source.read(name).decode("utf-8")
        few_shot = parse_few_shot(text, name)
        assert len(few_shot.shots) in {20, 21}
        assert few_shot.instruction.count("\n") == 4
        assert (format_few_shot(few_shot) == text) is (name not in IRREGULAR), name
        assert parse_few_shot(format_few_shot(few_shot)) == few_shot


def test_published_leakage(published: Path) -> None:
    """326 rows are shots; 311 of them are ranked, by the narrow dumps and by their row filter alike."""
    folder = published / "fluent_mlama"
    benchmarks, prompts = (
        open_source(folder / "fixed_data.zip"),
        open_source(folder / "chatgpt_prompts"),
    )
    audits = audit_leakage(benchmarks, prompts, open_source(folder / "stats.zip"))
    assert len(audits) == 16
    assert sum(audit.shots for audit in audits) == sum(len(audit.rows) for audit in audits) == 326
    assert sum(len(audit.kept) for audit in audits) == 311
    assert sum(audit.strangers for audit in audits) == 0
    assert sum(len(audit.verbatim) for audit in audits) == 311
    by_filter = 0
    for audit in audits:
        benchmark = read_benchmark(benchmarks, audit.lang, audit.relation)
        table = benchmark.table
        usable = (table[["gt_infl_object", "chatgpt_infl_object"]] != "ERROR").all(axis=1) & (
            table[["gt_prompt", "chatgpt_prompt"]] != ""
        ).all(axis=1)
        by_filter += len(
            find_leakage(
                benchmark, read_few_shot(prompts, audit.lang, audit.relation), table.index[usable]
            ).kept
        )
    assert by_filter == 311
