"""Correlations of gains against independent computations, and the published Table 5 and Figure 2."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from scipy import stats
from statsmodels.stats.multitest import multipletests

from fluent_mlama.grammeval import main
from fluent_mlama.reporting.correlations import over_relations, within_relations
from fluent_mlama.reporting.graphs import quality_scatter
from fluent_mlama.reporting.loading import DumpFolder
from fluent_mlama.reporting.qe_table import gains, read_quality_gains, retrieval_gains
from fluent_mlama.reporting.selection import R8, R15, SLAVIC, select

HERE = Path(__file__).parent
DIGITISED = HERE / "data" / "qe_gains.tsv"


def made_up(rows: int, relations: int, seed: int = 3) -> pd.DataFrame:
    draw = np.random.default_rng(seed)
    relation = draw.integers(0, relations, rows)
    length = draw.normal(size=rows) + relation
    quality = 0.5 * length + draw.normal(size=rows)
    found = 0.4 * quality - 0.3 * length + 5 * relation + draw.normal(size=rows)
    return pd.DataFrame(
        {
            "lang": "ru",
            "verbalisation": "gt",
            "relation": relation.astype(str),
            "sub_uri": np.arange(rows).astype(str),
            "obj_uri": (np.arange(rows) % 20).astype(str),
            "qe_delta": quality,
            "r1_delta": found,
            "length_delta": length,
        }
    )


def test_rho_of_few_points_has_the_p_of_all_orders() -> None:
    frame = made_up(3, 1).assign(qe_delta=[1.0, 2.0, 3.0], r1_delta=[0.1, 0.2, 0.9])
    row = over_relations(frame).iloc[0]
    assert (row["rho"], row["rho_p"]) == pytest.approx((1.0, 2 / 6))
    six = made_up(6, 1)
    exact = stats.permutation_test(
        (six["qe_delta"],),
        lambda x: stats.spearmanr(x, six["r1_delta"]).statistic,
        permutation_type="pairings",
        n_resamples=np.inf,
    )
    assert over_relations(six).iloc[0]["rho_p"] == pytest.approx(exact.pvalue, abs=2 / 720)


def residuals(frame: pd.DataFrame, column: str, on: np.ndarray) -> np.ndarray:
    values = frame[column].to_numpy()
    return values - on @ np.linalg.lstsq(on, values, rcond=None)[0]


def partial_by_regression(frame: pd.DataFrame, on: np.ndarray) -> tuple[float, float]:
    """r of the residuals and its p with the degrees of freedom that the regression leaves."""
    r = stats.pearsonr(residuals(frame, "qe_delta", on), residuals(frame, "r1_delta", on)).statistic
    freedom = len(frame) - on.shape[1] - 1
    return float(r), float(2 * stats.t.sf(abs(r) * np.sqrt(freedom / (1 - r * r)), freedom))


def test_over_relations_equals_scipy() -> None:
    frame = made_up(15, 1)
    (row,) = over_relations(frame).to_dict("records")
    pearson, spearman = (
        stats.pearsonr(frame["qe_delta"], frame["r1_delta"]),
        stats.spearmanr(frame["qe_delta"], frame["r1_delta"]),
    )
    assert row["n"] == 15
    assert (row["r"], row["r_p"]) == pytest.approx((pearson.statistic, pearson.pvalue))
    assert (row["rho"], row["rho_p"]) == pytest.approx((spearman.statistic, spearman.pvalue))
    with_length = np.column_stack([np.ones(15), frame["length_delta"]])
    assert (row["partial_r"], row["partial_r_p"]) == pytest.approx(
        partial_by_regression(frame, with_length)
    )


def test_within_relations_equals_a_regression_on_relations() -> None:
    frame = made_up(200, 4)
    (row,) = within_relations(frame).to_dict("records")
    dummies = pd.get_dummies(frame["relation"]).to_numpy(dtype=float)
    assert row["r"] == pytest.approx(partial_by_regression(frame, dummies)[0])
    with_length = np.column_stack([dummies, frame["length_delta"]])
    assert row["partial_r"] == pytest.approx(partial_by_regression(frame, with_length)[0])
    ranked = frame.assign(
        **{c: frame.groupby("relation")[c].rank() for c in ("qe_delta", "r1_delta")}
    )
    assert row["rho"] == pytest.approx(partial_by_regression(ranked, dummies)[0])


def test_interval_over_relations_is_a_plain_jackknife_of_influences() -> None:
    frame = made_up(25, 1).assign(relation=range(25))
    frame.loc[0, ["qe_delta", "r1_delta"]] = [
        4.0,
        -6.0,
    ]  # one point that decides: more spread than Fisher's
    (row,) = over_relations(frame).to_dict("records")
    x, y = (stats.zscore(frame[column].to_numpy()) for column in ("qe_delta", "r1_delta"))
    r = float(np.mean(x * y))
    influence = (x * y - r * (x * x + y * y) / 2) / 25
    error = np.sqrt(np.sum((influence / (1 - 1 / 25)) ** 2)) / (1 - r * r)
    reach = stats.t.ppf(0.975, 23) * error
    assert reach > 1.96 / 22**0.5
    assert (row["r_low"], row["r_high"]) == pytest.approx(
        (np.tanh(np.arctanh(r) - reach), np.tanh(np.arctanh(r) + reach))
    )


def test_an_interval_is_no_shorter_than_fishers() -> None:
    points = np.arange(12.0)
    frame = made_up(12, 1).assign(
        relation=range(12), qe_delta=points, r1_delta=points + np.where(points % 2, 0.01, -0.01)
    )
    (row,) = over_relations(frame).to_dict("records")
    reach = stats.norm.ppf(0.975) / 9**0.5
    assert np.arctanh([row["r_low"], row["r_high"]]) - np.arctanh(row["r"]) == pytest.approx(
        [-reach, reach], rel=1e-6
    )


def test_partial_interval_is_that_of_residuals_without_a_control() -> None:
    """Where the control is already taken out of both sides, it changes the estimate not at all and
    the interval little.
    """
    frame = made_up(60, 1).assign(relation=range(60))
    on = np.column_stack([np.ones(60), frame["length_delta"]])
    left = frame.assign(**{c: residuals(frame, c, on) for c in ("qe_delta", "r1_delta")})
    whole, rest = (over_relations(one).iloc[0] for one in (frame, left))
    assert whole["partial_r"] == pytest.approx(rest["r"])
    assert (whole["partial_r_low"], whole["partial_r_high"]) == pytest.approx(
        (rest["r_low"], rest["r_high"]), abs=0.03
    )


def test_facts_of_an_object_count_together() -> None:
    """Each fact twice with its object and subject: nothing is learnt, so interval and p stay as
    they were (n does not).
    """
    frame = made_up(60, 2)
    single = within_relations(frame).iloc[0]
    double = within_relations(pd.concat([frame, frame])).iloc[0]
    assert double["n"] == 120
    assert (double["r_low"], double["r_high"], double["r_p"]) == pytest.approx(
        (single["r_low"], single["r_high"], single["r_p"])
    )
    alone = within_relations(
        pd.concat(
            [frame, frame.assign(sub_uri=frame["sub_uri"] + "b", obj_uri=frame["obj_uri"] + "b")]
        )
    ).iloc[0]
    assert alone["r_high"] - alone["r_low"] < 0.8 * (double["r_high"] - double["r_low"])


def test_holm_goes_over_all_languages_and_undefined_ones_have_nothing() -> None:
    parts = [made_up(15, 1, seed).assign(lang=lang) for seed, lang in enumerate(("ru", "cs", "uk"))]
    flat = made_up(15, 1).assign(lang="hr", qe_delta=0.25)
    few = made_up(2, 1).assign(lang="es")
    table = over_relations(pd.concat([*parts, flat, few])).set_index("lang")
    assert table.loc[["hr", "es"], ["r", "r_low", "r_p", "r_p_holm"]].isna().all(axis=None)
    tested = table.loc[["ru", "cs", "uk"]]
    assert tested["r_p_holm"].to_numpy() == pytest.approx(
        multipletests(tested["r_p"], method="holm")[1]
    )


def test_published_correlations_and_lines_from_the_digitised_gains(published: Path) -> None:
    """Reference values: the r rows of Table 5, and the least-squares lines through the points of
    Figure 2.
    """
    folder = DumpFolder(published / "fluent_mlama" / "stats.zip")
    quality = read_quality_gains(DIGITISED)
    found = {}
    for langs, relations in ((SLAVIC, R15), (("es", "zh", "id"), R8)):
        joined = gains(retrieval_gains(select(folder, langs, relations)), quality).assign(
            length_delta=0.0
        )
        table = over_relations(joined)
        found |= {(row["lang"], row["verbalisation"]): row for row in table.to_dict("records")}
        figure = quality_scatter([("x", joined)], "a scale")
        lines = [line for line in figure.axes[0].lines if line.get_linestyle() == ":"]
        for line, (_, points) in zip(
            lines, joined.groupby("verbalisation", sort=False), strict=True
        ):
            fit = stats.linregress(points["qe_delta"], points["r1_delta"])
            assert line.get_ydata() == pytest.approx(
                fit.intercept + fit.slope * np.asarray(line.get_xdata())
            )
        assert "a scale" in figure.get_supxlabel()
        plt.close(figure)
    printed = {
        ("ru", "gt"): (0.608, 0.016),
        ("ru", "chatgpt"): (0.780, 0.0006),
        ("cs", "gt"): (0.498, 0.059),
        ("cs", "chatgpt"): (0.613, 0.015),
        ("uk", "gt"): (0.788, 0.0005),
        ("uk", "chatgpt"): (0.741, 0.0016),
        ("hr", "gt"): (0.260, 0.35),
        ("hr", "chatgpt"): (0.206, 0.46),
        ("es", "gt"): (0.436, 0.28),
        ("zh", "gt"): (0.408, 0.32),
        ("id", "gt"): (0.592, 0.12),
    }
    assert set(found) == set(printed)
    for key, (r, p) in printed.items():
        assert found[key]["r"] == pytest.approx(r, abs=0.0006), key
        assert found[key]["r_p"] == pytest.approx(p, rel=0.05), key


def test_qe_command_with_the_digitised_gains_in_both_styles(
    published: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [
        "qe",
        "--stats",
        str(published / "fluent_mlama" / "stats.zip"),
        "--back-end",
        "file",
        "--scores",
        str(DIGITISED),
    ]
    words += [
        "--qe-scale",
        "wmt20-comet-qe-da, z-scores",
        "--langs",
        "ru,cs,uk,hr",
        "--relations",
        ",".join(R15),
    ]
    words += ["--graphs", str(tmp_path)]
    assert main([*words, "--tables", str(tmp_path / "paper"), "--style", "paper"]) == 0
    paper = (tmp_path / "paper" / "qe.tex").read_text(encoding="utf-8")
    theirs = (published / "fluent_mlama" / "tables" / "qe.tex").read_text(encoding="utf-8")

    def cells(text: str) -> list[list[str]]:
        return [
            [cell.strip(" \\") for cell in line.split("&")[2:6]]
            for line in text.splitlines()
            if line.count("&") > 4
        ]

    assert cells(paper) == cells(theirs)
    assert len(cells(paper)) == 5
    assert main([*words, "--tables", str(tmp_path / "clean")]) == 0
    for name in ("qe.tex", "qe_correlations.tex", "qe_correlations.tsv"):
        assert "wmt20-comet-qe-da, z-scores" in (tmp_path / "clean" / name).read_text(
            encoding="utf-8"
        ), name
    assert "wmt20-comet-qe-da, z-scores" in capsys.readouterr().out
    assert b"wmt20-comet-qe-da" in (tmp_path / "qe.png").read_bytes()
