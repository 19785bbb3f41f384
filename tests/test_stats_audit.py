"""The audit finds by itself what is known of the published dumps, and each fault that is put into
small ones."""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from pathlib import Path

import pytest
from small_dumps import small_dump, write_small_dumps

from fluent_mlama import stats
from fluent_mlama.files import open_source
from fluent_mlama.records.benchmark import make_benchmark
from fluent_mlama.records.results import Dump, write_dump
from fluent_mlama.reporting.audit import advice_page, as_frame, audit
from fluent_mlama.reporting.audit_checks import CHECKS, Finding, against_benchmark, few_shot
from fluent_mlama.reporting.loading import DumpFolder, rank_table


@pytest.fixture(scope="module")
def findings(published: Path) -> list[Finding]:
    folder = published / "fluent_mlama"
    return audit(
        DumpFolder(folder / "stats.zip").tables(),
        DumpFolder(folder / "stats_wide.zip"),
        open_source(folder / "fixed_data.zip"),
        open_source(folder / "chatgpt_prompts"),
    )


def files(
    findings: list[Finding], check: str, detail: str = "", wide: bool = False
) -> dict[str, set[str]]:
    """{language: relations} with a finding of this check."""
    found: dict[str, set[str]] = defaultdict(set)
    for f in findings:
        if (
            f.check == check
            and f.outcome == "found"
            and f.detail.startswith(detail)
            and f.is_wide == wide
        ):
            found[f.lang].add(f.relation)
    return dict(found)


def one(findings: list[Finding], check: str, lang: str, relation: str) -> Finding:
    (found,) = [
        f
        for f in findings
        if (f.check, f.lang, f.relation, f.is_wide) == (check, lang, relation, False)
    ]
    return found


def test_unequal_ranks_in_22_files_and_the_untestable_ones(findings: list[Finding]) -> None:
    assert files(findings, "unequal-ranks") == {
        "cs": {"P103", "P159", "P19", "P36"},
        "hr": {"P103", "P19", "P36"},
        "ru": {"P103", "P159", "P19", "P264", "P36", "P39", "P407", "P449", "P463", "P495"},
        "uk": {"P103", "P159", "P19", "P36", "P495"},
    }
    assert files(findings, "unequal-ranks", wide=True) == {}
    untestable = {
        (f.lang, f.relation)
        for f in findings
        if f.check == "unequal-ranks" and f.outcome == "untestable" and not f.is_wide
    }
    assert len(untestable) == 18
    assert {
        ("es", "P103"),
        ("zh", "P36"),
        ("id", "P407"),
        ("ru", "P364"),
        ("uk", "P449"),
    } <= untestable


def test_classes_against_the_wide_dumps(findings: list[Finding]) -> None:
    assert files(findings, "wide-differs", "other-distractors") == {
        "cs": {"P103", "P159", "P19", "P36"},
        "ru": {"P103", "P159", "P19", "P36", "P407", "P449", "P463", "P495"},
    }
    assert files(findings, "wide-differs", "tie-order") == {
        "cs": {"P20", "P407", "P495", "P740"},
        "ru": {"P740"},
    }
    assert files(findings, "wide-differs", "other-hardware") == {"ru": {"P1376"}}
    identical = {
        (f.lang, f.relation) for f in findings if f.check == "wide-differs" and f.outcome == "clean"
    }
    assert {r for lang, r in identical if lang == "cs"} == {
        "P101",
        "P108",
        "P127",
        "P1376",
        "P364",
        "P449",
        "P463",
    }
    assert {r for lang, r in identical if lang == "ru"} == {"P101", "P108", "P127", "P20", "P364"}
    assert round(one(findings, "ties", "cs", "P20").share, 2) == 0.22
    assert round(one(findings, "ties", "ru", "P740").share, 2) == 0.31


def test_rows_that_slipped_and_rows_that_should_not_be_there(findings: list[Finding]) -> None:
    shifted = one(findings, "shifted-rows", "cs", "P19")
    assert (shifted.count, shifted.of, shifted.detail) == (
        19,
        248,
        "template cells hold those of the row above",
    )
    assert files(findings, "shifted-rows") == {"cs": {"P19"}}
    assert (
        files(findings, "shifted-rows", wide=True)
        == files(findings, "foreign-forms")
        == files(findings, "flags-differ")
        == {}
    )
    assert files(findings, "impossible-ranks") == {}
    assert one(findings, "error-cells", "cs", "P740").rows == (102,)
    assert files(findings, "rows-differ") == {"cs": {"P159", "P740"}, "hr": {"P36"}, "ru": {"P463"}}
    assert files(findings, "rows-differ", wide=True) == {"cs": {"P740"}}
    row = one(findings, "rows-differ", "cs", "P740")
    assert row.detail == "holds excluded rows 102; left out rows with an empty object 181"
    assert [
        one(findings, "rows-differ", *key).count
        for key in (("cs", "P159"), ("hr", "P36"), ("ru", "P463"))
    ] == [1, 8, 1]
    assert files(findings, "no-row-numbers") == {"ru": {"P19"}}


def test_precision(findings: list[Finding]) -> None:
    half = [f for f in findings if f.check == "half-precision"]
    assert {f.outcome for f in half} == {"found"}
    infinite = one(findings, "minus-infinity", "cs", "P101")
    assert infinite.count == 3 * round(0.5354 * 396)
    assert all(part in infinite.detail for part in ("template 212", "gt 212", "chatgpt 212"))


def test_who_is_among_the_distractors(findings: list[Finding]) -> None:
    english = [f for f in findings if f.check == "english-distractors" and f.relation != "P264"]
    shares = sorted(f.share for f in english)
    assert (shares[0], shares[-1]) == (0.1, 0.78)
    rows = {f.dump: f.of for f in findings if f.check == "own-forms"}
    by_language = {}
    for lang in ("ru", "uk", "zh", "es", "cs", "hr", "id"):
        weighted = [(f.share, rows[f.dump]) for f in english if f.lang == lang]
        by_language[lang] = round(
            100 * sum(share * n for share, n in weighted) / sum(n for _, n in weighted)
        )
    assert by_language == {"ru": 29, "uk": 33, "zh": 31, "es": 29, "cs": 41, "hr": 41, "id": 53}
    own = {
        key: round(100 * one(findings, "own-forms", *key).share)
        for key in (("id", "P103"), ("cs", "P740"))
    }
    assert own == {("id", "P103"): 45, ("cs", "P740"): 3}
    assert [round(100 * one(findings, "also-true", "ru", r).share) for r in ("P37", "P39")] == [
        20,
        16,
    ]
    assert files(findings, "few-distractors") == {"cs": {"P264"}, "hr": {"P264"}, "uk": {"P264"}}
    small = files(findings, "small-pool")
    assert small["ru"] == {"P264", "P449", "P463"}
    assert small["id"] == {"P108"}


def test_sentences(findings: list[Finding]) -> None:
    share = {}
    for lang in ("cs", "es", "hr", "id", "ru", "uk", "zh"):
        blanks = [f for f in findings if f.check == "stray-blanks" and f.lang == lang]
        gt_prompts = sum(f.of for f in blanks) / (2 if lang in ("es", "id", "zh") else 3)
        share[lang] = round(100 * sum(f.count for f in blanks) / gt_prompts)
    assert share == {"cs": 62, "es": 95, "hr": 65, "id": 95, "ru": 34, "uk": 54, "zh": 33}
    assert "template" not in "".join(f.detail for f in findings if f.check == "stray-blanks")
    assert one(findings, "not-final", "zh", "P407").share == 1.0
    assert "chatgpt" in one(findings, "leaked-prefix", "hr", "P36").detail
    shown = [f for f in findings if f.check == "few-shot"]
    assert {f.lang for f in shown} == {"ru", "cs", "uk", "hr"}
    assert one(findings, "few-shot", "cs", "P19").count == 20
    page = advice_page(findings, [], "s")
    assert "in 22 of 73 dumps (wide: 0 of 26)" in page
    assert page.count("\n") < 90


def faulty(fault: str) -> Dump:
    dump = small_dump(verbalisations=("template", "gt"))
    frame = dump.table
    if fault == "unequal-ranks":
        frame["gt_prompt"] = frame["template_prompt"]
    elif fault == "shifted-rows":
        frame.loc[6:, "gt_true_ranks"] = frame["gt_true_ranks"].shift(1)[6:]
    elif fault == "foreign-forms":
        frame.at[4, "gt_true_ranks"] = {"Elsewhere": 3}
    elif fault == "flags-differ":
        frame.loc[2, "gt_top1_correct"] = 1 - frame.loc[2, "gt_top1_correct"]
    elif fault == "impossible-ranks":
        label = frame.at[5, "obj_label"]
        frame.at[5, "gt_true_ranks"] = {label: 90, f"{label}e": 91}
    elif fault == "error-cells":
        frame.loc[3, "gt_prompt"] = "ERROR"
    elif fault == "leaked-prefix":
        frame.loc[3, "gt_translation"] = "Translation: " + frame.loc[3, "gt_translation"]
    elif fault == "not-final":
        frame.loc[3, "gt_translation"] = frame.loc[3, "gt_translation"][:-1] + " in May."
    elif fault == "stray-blanks":
        frame.loc[3, "gt_prompt"] = " " + frame.loc[3, "gt_prompt"]
    elif fault == "minus-infinity":
        frame.loc[3, "gt_prompt_prob"] = -math.inf
    elif fault == "no-row-numbers":
        return dataclasses.replace(dump, numbered=False)
    return dump


FAULTS = (
    *(
        "unequal-ranks",
        "shifted-rows",
        "foreign-forms",
        "flags-differ",
        "impossible-ranks",
        "error-cells",
    ),
    *("leaked-prefix", "not-final", "stray-blanks", "minus-infinity", "no-row-numbers"),
)
ALWAYS = {"half-precision", "english-distractors", "small-pool", "own-forms"}
"""What the made-up dumps always show: eighths as log-probabilities, English names, fewer than 50
distractors."""


def found_in(findings: list[Finding]) -> set[str]:
    return {f.check for f in findings if f.outcome == "found"}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_found_alone(fault: str) -> None:
    sound = found_in(audit([rank_table(small_dump())]))
    assert sound <= ALWAYS
    found = found_in(audit([rank_table(faulty(fault))]))
    allowed = {
        "impossible-ranks": {"flags-differ"},
        "foreign-forms": {"flags-differ"},
        "shifted-rows": {"flags-differ"},
    }
    assert fault in found
    assert found - sound - {fault} <= allowed.get(fault, set())


def test_shifted_rows_are_named() -> None:
    (shifted,) = [
        f for f in audit([rank_table(faulty("shifted-rows"))]) if f.check == "shifted-rows"
    ]
    assert shifted.count == 6
    assert shifted.detail == "gt cells hold those of the row above"


def test_sound_corrected_dumps_have_no_finding(tmp_path: Path) -> None:
    folder = DumpFolder(write_small_dumps(tmp_path, protocol="corrected"))
    findings = audit(folder.tables())
    assert found_in(findings) == set()
    page = advice_page(findings, [], "s")
    assert "Nothing was found." in page
    assert len(as_frame([f for f in findings if f.outcome == "found"])) == 0


def test_corrected_dumps_tell_ties_and_few_distractors() -> None:
    dump = small_dump(protocol="corrected")
    dump.table.loc[2, ["gt_rank", "gt_rank_min", "gt_rank_max"]] = [4.5, 4, 5]
    dump.table.loc[3, "n_distractors"] = 9
    dump.table.loc[:, ["gt_top1_correct", "gt_top3_correct"]] = [
        [int(rank <= 1), int(rank <= 3)] for rank in dump.table["gt_rank"]
    ]
    findings = audit([rank_table(dump)])
    by_check = {f.check: f for f in findings if f.outcome == "found"}
    assert by_check["ties"].rows == (2,)
    assert by_check["few-distractors"].rows == (3,)


def test_rows_against_the_benchmark_and_examples(tmp_path: Path) -> None:
    dump = small_dump("ru", "P19", ("template", "gt", "chatgpt"), facts=6)
    results = [c for c in dump.table if c.endswith(("_true_ranks", "_correct", "_prompt_prob"))]
    rows = dump.table.drop(columns=results).assign(aliases="x")
    rows.loc[1, "gt_infl_object"] = "ERROR"
    benchmark = make_benchmark("ru", "P19", "20prompt", rows)
    table = rank_table(dataclasses.replace(dump, table=dump.table.drop(index=4)))
    limited, differ = against_benchmark(table, benchmark)
    assert (limited.outcome, differ.detail) == ("clean", "holds excluded rows 1; lacks rows 4")
    first_rows = rank_table(dataclasses.replace(dump, table=dump.table.loc[[0, 2]]))
    limited, differ = against_benchmark(first_rows, benchmark)
    assert (limited.outcome, limited.count, limited.of, limited.detail, differ.outcome) == (
        "found",
        3,
        5,
        "2 rows",
        "clean",
    )
    first = dump.table.iloc[0]
    shot = (
        f"Source sentence: {first['en_template']}\nSubject translation: {first['sub_label']}\n"
        f"Object translation: {first['obj_label']}\nTranslation: {first['chatgpt_translation']}\n"
    )
    (tmp_path / "ru_P19.txt").write_text(shot, encoding="utf-8")
    (leak,) = few_shot(table, benchmark, open_source(tmp_path))
    assert (leak.count, leak.of, leak.rows, leak.detail) == (
        1,
        5,
        (0,),
        "chatgpt: 1 come back word for word",
    )


def test_command_writes_three_files(tmp_path: Path) -> None:
    folder = write_small_dumps(tmp_path / "dumps")
    assert stats.main(["audit", "--stats", str(folder), "--tables", str(tmp_path / "out")]) == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "audit.tsv",
        "audit.md",
        "audit_table.tex",
    }
    page = (tmp_path / "out" / "audit.md").read_text(encoding="utf-8")
    assert "Not looked at, because not given: wide dumps; benchmark files (--data)" in page
    assert all(
        check.advice.endswith(".") and check.meaning.endswith(".") for check in CHECKS.values()
    )


def test_wide_twin_with_other_rows_is_compared_by_fact(tmp_path: Path) -> None:
    narrow = small_dump(facts=8)
    wide_table = narrow.table.copy()
    for v in narrow.verbalisations:
        wide_table[f"{v}_true_ranks"] = [
            dict(sorted({**ranks, aliases[0]: 20}.items(), key=lambda item: item[1]))
            for ranks, aliases in zip(
                wide_table[f"{v}_true_ranks"], wide_table["aliases"], strict=True
            )
        ]
    write_dump(dataclasses.replace(narrow, table=wide_table.iloc[::-1]), tmp_path)
    findings = audit([rank_table(narrow)], DumpFolder(tmp_path))
    (same,) = [f for f in findings if f.check == "wide-differs"]
    assert (same.outcome, same.of) == ("clean", 16)
