"""``stats.py compare``: what it writes, that it agrees with the tables, and what it says about bad input."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from small_dumps import write_small_dumps
from statsmodels.stats.multitest import multipletests

from fluent_mlama import stats
from fluent_mlama.console import UserError
from fluent_mlama.files import format_table, read_table
from fluent_mlama.records.results import Dump, write_dump
from fluent_mlama.reporting import comparison as comparison_module
from fluent_mlama.reporting.comparison import labels
from fluent_mlama.reporting.loading import DumpFolder


def dump(
    lang: str, relation: str, verbalisations: tuple[str, ...], ranks: np.ndarray, shift: int = 0
) -> Dump:
    """A paper dump of len(ranks) facts; ranks: facts × verbalisations."""
    rows = []
    for number, row in enumerate(ranks):
        cells = {
            "sub_uri": f"Q{number + shift}",
            "obj_uri": f"Q{900 + number % 20}",
            "obj_label": f"o{number % 20}",
            "aliases": [f"o{number % 20}"],
        }
        cells |= {
            "sub_label": f"s{number}",
            "en_sub_label": f"s{number}",
            "en_obj_label": f"o{number % 20}",
            "en_template": f"s{number} is .",
        }
        cells |= {"template": f"s{number} is o{number % 20}.", "template_prompt": f"s{number} is "}
        for v, rank in zip(verbalisations, row, strict=True):
            if v != "template":
                cells |= {
                    f"{v}_translation": f"s{number} is o{number % 20}.",
                    f"{v}_prompt": f"s{number} is ",
                    f"{v}_infl_object": f"o{number % 20}",
                }
            cells |= {
                f"{v}_true_ranks": {f"o{number % 20}": int(rank)},
                f"{v}_top1_correct": int(rank <= 1),
            }
            cells |= {f"{v}_prompt_prob": -12.5, f"{v}_top3_correct": int(rank <= 3)}
        rows.append(cells)
    return Dump(lang, relation, verbalisations, "paper", pd.DataFrame(rows))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two languages × two relations, gt clearly better than template, chatgpt the same as template."""
    generator = np.random.default_rng(5)
    for lang in ("ru", "cs"):
        for relation in ("P19", "P20"):
            template = generator.integers(2, 7, size=40)
            gt = np.maximum(1, template - generator.integers(0, 4, size=40))
            write_dump(
                dump(
                    lang,
                    relation,
                    ("template", "gt", "chatgpt"),
                    np.column_stack([template, gt, template]),
                ),
                tmp_path / "stats",
            )
    return tmp_path / "stats"


def compare(folder: Path, *more: str) -> pd.DataFrame:
    tables = folder.parent / "tables"
    places = [
        "--stats",
        str(folder),
        "--tables",
        str(tables),
        "--graphs",
        str(folder.parent / "graphs"),
    ]
    assert stats.main(["compare", *places, "--resamples", "400", *more]) == 0
    name = "compare_against_differences" if "--against" in more else "compare_differences"
    return pd.read_csv(tables / f"{name}.tsv", sep="\t")


class TestFiles:
    def test_all_four_kinds_and_what_they_say(
        self, folder: Path, capsys: pytest.CaptureFixture[str]
    ):
        differences = compare(folder)
        tables = folder.parent / "tables"
        assert {path.name for path in tables.iterdir()} == {
            "compare.tex",
            "compare_differences.md",
            "compare_differences.tsv",
            "compare_values.md",
            "compare_values.tsv",
        }
        assert (tables.parent / "graphs" / "compare.pdf").read_bytes().startswith(b"%PDF")
        assert (tables.parent / "graphs" / "compare.png").read_bytes().startswith(b"\x89PNG")
        gt = differences.query(
            "comparison == 'template → gt' and language == 'all' and weights == 'relation' and metric == 'mean rank'"
        ).iloc[0]
        assert gt["high"] < 0 and gt["p"] < 0.05
        same = differences.query("comparison == 'template → chatgpt' and metric == 'R@1'")
        assert (
            (same["difference"] == 0).all() and (same["p"] == 1).all() and same["low"].isna().all()
        )
        printed = capsys.readouterr().out
        assert "signature: dumps without a run record:" in printed
        assert "better" in printed
        tex = (tables / "compare.tex").read_text(encoding="utf-8")
        assert r"template $\rightarrow$ gt" in tex and "% signature:" in tex and r"\textbf{" in tex

    def test_values_are_those_of_the_general_table(self, folder: Path):
        differences = compare(folder)
        stats.main(
            [
                "general",
                "--stats",
                str(folder),
                "--tables",
                str(folder.parent / "tables"),
                "--style",
                "clean",
            ]
        )
        tex = (folder.parent / "tables" / "general_table.tex").read_text(encoding="utf-8")
        row = differences.query(
            "comparison == 'template → gt' and language == 'cs' and weights == 'relation'"
        ).set_index("metric")["second_value"]
        assert f"{row['mean rank']:.2f}" in tex
        assert f"{row['R@1']:.3f}" in tex

    def test_tables_and_compare_take_the_relations_that_all_languages_have(
        self, folder: Path, capsys: pytest.CaptureFixture[str]
    ):
        """Russian has a relation more: its values are over the common two, in either output, unless it is asked for alone."""
        write_dump(
            dump("ru", "P36", ("template", "gt", "chatgpt"), np.ones((40, 3), dtype=int)), folder
        )
        differences = compare(folder)
        assert "P36 (only ru)" in capsys.readouterr().err
        assert set(differences["relations"]) == {2}
        stats.main(["general", "--stats", str(folder), "--tables", str(folder.parent / "tables")])
        tex = (folder.parent / "tables" / "general_table.tex").read_text(encoding="utf-8")
        assert "2 relations (P19 P20); facts: ru 80, cs 80" in tex
        assert "2 relations (P19 P20); facts: cs 80, ru 80" in (
            folder.parent / "tables" / "compare.tex"
        ).read_text(encoding="utf-8")
        row = differences.query(
            "language == 'ru' and weights == 'relation' and metric == 'R@1'"
        ).iloc[0]
        assert f"{row['second_value']:.3f}" in tex
        assert set(compare(folder, "--langs", "ru")["relations"]) == {3}

    def test_protocols_stand_side_by_side_and_are_not_tested(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ):
        for protocol in ("paper", "corrected"):
            write_small_dumps(tmp_path / protocol, protocol=protocol)
        places = ["--tables", str(tmp_path / "tables"), "--graphs", str(tmp_path / "graphs")]
        assert (
            stats.main(
                [
                    "compare",
                    "--stats",
                    f"{tmp_path / 'paper'},{tmp_path / 'corrected'}",
                    *places,
                    "--resamples",
                    "200",
                ]
            )
            == 0
        )
        printed = capsys.readouterr().out
        assert (
            "their values stand side by side and are not tested against each other" in printed
            and "second is" not in printed
        )
        assert {path.name for path in (tmp_path / "tables").iterdir()} == {
            "compare_against_values.tsv",
            "compare_against_values.md",
        }
        values = pd.read_csv(tmp_path / "tables" / "compare_against_values.tsv", sep="\t")
        assert {way.split(":")[0] for way in values["way"]} == {"paper", "corrected"}

    def test_the_same_seed_writes_the_same_bytes(self, folder: Path):
        compare(folder)
        first = (folder.parent / "tables" / "compare_differences.tsv").read_bytes()
        compare(folder)
        assert (folder.parent / "tables" / "compare_differences.tsv").read_bytes() == first

    def test_against_pairs_facts_and_says_what_only_one_has(
        self, folder: Path, capsys: pytest.CaptureFixture[str]
    ):
        other = folder.parent / "other"
        write_dump(
            dump("ru", "P19", ("template", "gt"), np.ones((30, 2), dtype=int), shift=0), other
        )
        differences = compare(folder, "--against", str(other))
        assert set(differences["comparison"]) == {
            "stats:template → other:template",
            "stats:gt → other:gt",
        }
        assert set(differences["rows"]) == {30}
        assert "30 rows in both; only in stats: 90, only in other: 0" in capsys.readouterr().out

    def test_a_relation_without_distractors_is_left_out_unless_named(
        self, folder: Path, capsys: pytest.CaptureFixture[str]
    ):
        lonely = dump("ru", "P264", ("template", "gt", "chatgpt"), np.ones((7, 3), dtype=int))
        lonely.table["obj_uri"] = "Q900"
        write_dump(lonely, folder)
        assert set(compare(folder, "--langs", "ru")["relations"]) == {2}
        assert "P264 (one object: ru)" in capsys.readouterr().err
        assert set(compare(folder, "--langs", "ru", "--relations", "P264")["relations"]) == {1}


class TestSeveralFolders:
    @pytest.fixture(autouse=True)
    def no_plots(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr("fluent_mlama.reporting.comparison.draw_differences", lambda *_: [])

    @pytest.fixture
    def models(self, folder: Path) -> Path:
        """Three models: stats (the fixture's), better by one rank, and one that has cs alone and knows its facts."""
        for lang in ("ru", "cs"):
            for relation in ("P19", "P20"):
                ranks = (
                    DumpFolder(folder)
                    .table(lang, relation)
                    .rank[["template", "gt"]]
                    .to_numpy(dtype=int)
                )
                write_dump(
                    dump(lang, relation, ("template", "gt"), np.maximum(1, ranks - 1)),
                    folder.parent / "better",
                )
                if lang == "cs":
                    write_dump(
                        dump(lang, relation, ("template", "gt"), np.ones_like(ranks)),
                        folder.parent / "perfect",
                    )
        return folder.parent

    def test_each_is_compared_with_the_first_as_if_alone_but_for_holm(
        self, models: Path, capsys: pytest.CaptureFixture[str]
    ):
        both = compare(models / "stats", "--against", f"{models / 'better'},{models / 'perfect'}")
        capsys.readouterr()
        alone = [
            compare(models / "stats", "--against", str(models / name))
            for name in ("better", "perfect")
        ]
        for one, comparison in zip(
            alone, ("stats:gt → better:gt", "stats:gt → perfect:gt"), strict=True
        ):
            there = [
                part[part["comparison"] == comparison].query("language == 'cs'")
                for part in (both, one)
            ]
            pd.testing.assert_frame_equal(
                *(part.drop(columns="p_holm").reset_index(drop=True) for part in there)
            )
        family = both.query("weights == 'relation' and metric == 'R@1'")
        of_gt = family[
            family["comparison"].str.endswith(":gt")
        ]  # perfect has Czech alone, so nothing is pooled
        assert of_gt[["language", "second"]].values.tolist() == [
            ["cs", "better:gt"],
            ["ru", "better:gt"],
            ["cs", "perfect:gt"],
        ]
        assert family["p_holm"].tolist() == pytest.approx(
            multipletests(family["p"], method="holm")[1].tolist()
        )

    def test_what_is_printed_lays_them_side_by_side(
        self, models: Path, capsys: pytest.CaptureFixture[str]
    ):
        first = [
            "--stats",
            f"{models / 'stats'},{models / 'better'}",
            "--stats",
            str(models / "perfect"),
        ]
        places = [
            "--tables",
            str(models / "tables"),
            "--graphs",
            str(models / "tables"),
            "--resamples",
            "200",
        ]
        assert stats.main(["compare", *first, *places]) == 0
        printed = capsys.readouterr().out
        head, _, *rows = printed.splitlines()
        assert head.split() == ["metric", "language", "verbalisation", "stats", "better", "perfect"]
        assert re.fullmatch(
            r"R@1 +cs +gt +0\.\d{3} \[[\d., ]+\] +0\.\d{3} \[[\d., ]+\] +1\.000 \[[\d., ]+\]",
            rows[1],
        )
        assert "Holm over all tests of the table" in printed
        assert "160 rows in both; only in stats: 0, only in better: 0" in printed
        assert "80 rows in both; only in stats: 80, only in perfect: 0" in printed

    def test_all_forms_ranks_are_compared_where_the_dumps_have_them(self, tmp_path: Path):
        for seed, name in enumerate(("one", "two")):
            write_small_dumps(tmp_path / name, protocol="corrected", seed=seed)
            for path in (tmp_path / name).glob("*.tsv"):
                path.write_text(
                    all_forms_rank_two(path.read_text(encoding="utf-8")), encoding="utf-8"
                )
        places = [
            "--tables",
            str(tmp_path / "tables"),
            "--graphs",
            str(tmp_path / "graphs"),
            "--resamples",
            "200",
            "--all-forms",
        ]
        assert stats.main(["compare", "--stats", str(tmp_path / "one"), *places]) == 0
        assert (
            stats.main(
                [
                    "compare",
                    "--stats",
                    str(tmp_path / "one"),
                    "--against",
                    str(tmp_path / "two"),
                    *places,
                ]
            )
            == 0
        )
        for name in ("compare_all_forms", "compare_all_forms_against"):
            values = pd.read_csv(tmp_path / "tables" / f"{name}_values.tsv", sep="\t")
            assert values.query("metric == 'mean rank'")["value"].to_numpy() == pytest.approx(2.0)
        assert "ranks by the best of all forms" in (
            tmp_path / "tables/compare_all_forms.tex"
        ).read_text(encoding="utf-8")

    @pytest.mark.parametrize(
        ("paths", "names"),
        [
            (["a/x", "a/y"], ["x", "y"]), (["a/x", "b/x", "a/y"], ["a/x", "b/x", "y"]), (["x", "b/x.zip"], ["models/x", "b/x"]),
        ],
    )  # fmt: skip
    def test_folders_have_short_names_that_tell_them_apart(
        self, paths: list[str], names: list[str]
    ):
        assert labels([Path("/models") / path for path in paths]) == names

    def test_a_folder_named_twice_and_commands_that_take_one(self, folder: Path):
        with pytest.raises(UserError, match="is named twice"):
            compare(folder, "--against", str(folder))
        with pytest.raises(UserError, match="takes one folder of dumps; compare and report take"):
            stats.main(["general", "--stats", f"{folder},{folder.parent / 'other'}"])

    def test_paper_dumps_have_no_own_form(self, folder: Path):
        with pytest.raises(
            UserError,
            match="follows the paper protocol, which has no all-forms ranks; leave --all-forms out",
        ):
            compare(folder, "--all-forms")


def all_forms_rank_two(text: str) -> str:
    """The dump with every all-forms rank 2."""
    table = read_table(text.encode("utf-8"), "dump")
    for column in table:
        if column.endswith("_all_forms_rank"):
            table[column] = "2.0"
    return format_table(table)


class TestBadInput:
    def test_a_verbalisation_that_no_dump_has(self, folder: Path):
        with pytest.raises(UserError, match="none of nllb"):
            compare(folder, "--verbalisations", "nllb")
        assert not (folder.parent / "tables").exists()

    @pytest.mark.parametrize(
        "more",
        [
            ["--k", "0"],
            ["--k", "x"],
            ["--resamples", "10"],
            ["--level", "95"],
            ["--weights", "mean"],
        ],
    )
    def test_values_out_of_range(
        self, folder: Path, more: list[str], capsys: pytest.CaptureFixture[str]
    ):
        assert stats.main(["compare", "--stats", str(folder), *more]) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1

    def test_folders_without_a_common_fact(self, folder: Path):
        other = folder.parent / "other"
        write_dump(
            dump("ru", "P19", ("template", "gt"), np.ones((9, 2), dtype=int), shift=500), other
        )
        with pytest.raises(UserError, match="share no fact"):
            compare(folder, "--against", str(other))


def test_published_macro_values_and_their_order(published: Path, tmp_path: Path):
    """Czech, the paper's fifteen relations: the values of Table 1, and gt tells itself from template."""
    relations = "P101,P103,P108,P127,P1376,P159,P19,P20,P36,P364,P407,P449,P463,P495,P740"
    places = [
        "--stats",
        str(published / "fluent_mlama" / "stats.zip"),
        "--tables",
        str(tmp_path),
        "--graphs",
        str(tmp_path),
    ]
    arguments = [*places, "--exclude-short", "gt"]
    assert (
        stats.main(
            [
                "compare",
                *arguments,
                "--langs",
                "cs",
                "--relations",
                relations,
                "--resamples",
                "1000",
            ]
        )
        == 0
    )
    differences = pd.read_csv(tmp_path / "compare_differences.tsv", sep="\t")
    macro = differences[differences["weights"] == "relation"].set_index(["comparison", "metric"])
    assert macro.loc[
        ("template → gt", "R@1"), ["first_value", "second_value"]
    ].tolist() == pytest.approx([0.578605, 0.669505], abs=1e-6)
    assert macro.loc[
        ("template → chatgpt", "mean rank"), ["first_value", "second_value"]
    ].tolist() == pytest.approx([4.166374, 3.532051], abs=1e-6)
    assert macro.loc[("template → gt", "R@1"), "low"] > 0


def test_the_forest_plot_holds_every_difference_and_its_interval(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    rows = [
        ("template → gt", language, "relation", metric, value, value - 0.1, value + 0.2)
        for metric in ("R@1", "mean rank")
        for language, value in (("ru", 0.5), ("cs", 0.25), ("all", 0.375))
    ]
    differences = pd.DataFrame(
        rows, columns=["comparison", "language", "weights", "metric", "difference", "low", "high"]
    )
    drawn: list[Figure] = []
    monkeypatch.setattr(comparison_module, "save", lambda figure, *_: drawn.append(figure) or [])
    comparison_module.draw_differences(differences, "relation", tmp_path, "compare", "")
    first, second = drawn[0].axes
    assert [label.get_text() for label in first.get_yticklabels()] == ["ru", "cs", "all"]
    points, _, (bars,) = first.containers[0].lines
    assert points.get_xydata().tolist() == [[0.5, 0], [0.25, 1], [0.375, 2]]
    assert np.allclose(
        [segment[:, 0] for segment in bars.get_segments()],
        [[0.4, 0.7], [0.15, 0.45], [0.275, 0.575]],
    )
    assert first.get_xlabel().endswith("(right: better)") and second.get_xlabel().endswith(
        "(left: better)"
    )
