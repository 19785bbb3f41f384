"""What the numbers are worth.

The rules:
1. Standard errors are the changes on deleting clusters one by one, and agree with statsmodels where it has the same terms.
2. Intervals, tests and adjustments equal a second implementation in plain loops, scipy's or statsmodels'.
3. Intervals stay in their range, cover and tests reject as often as they say (the large simulation: benchmarks/simulations.py).
4. What says nothing is said to say nothing: too few objects, nothing that varies, languages that differ in what they hold.
"""

from __future__ import annotations

import itertools
from collections import defaultdict

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from fluent_mlama.console import UserError
from fluent_mlama.reporting.comparison import main_figures
from fluent_mlama.reporting.inference import (
    WEIGHTS,
    Scale,
    design_of,
    effect_size,
    holm,
    intervals,
    nested_weights,
    sign_flips,
    superiority,
)
from fluent_mlama.reporting.paired import (
    POOLED,
    Pair,
    Settings,
    align,
    compare_pairs,
    find_design,
    metric_columns,
    significantly_best,
)


def facts(rows: list[tuple[str, str, str, str]], **ranks: list[float]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["language", "relation", "sub_uri", "obj_uri"]).assign(
        **ranks
    )


def one_relation(size: int, objects: int | None = None) -> pd.DataFrame:
    return facts([("ru", "P19", f"Q{i}", f"O{i % (objects or size)}") for i in range(size)])


def shared_clusters(seed: int = 1, rows: int = 120) -> pd.DataFrame:
    """Three relations of unequal size whose objects (one of them frequent) and subjects occur in several relations and facts."""
    draw = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "language": "ru",
            "relation": draw.choice(["P19", "P20", "P36"], rows, p=[0.5, 0.3, 0.2]),
            "sub_uri": [f"Q{number}" for number in draw.integers(0, 50, rows)],
            "obj_uri": [f"O{number}" for number in np.minimum(draw.integers(0, 36, rows), 30)],
        }
    )
    table = table.drop_duplicates().reset_index(drop=True)
    effect = {uri: draw.normal() for uri in sorted({*table["sub_uri"], *table["obj_uri"]})}
    return table.assign(
        x=table["obj_uri"].map(effect) + table["sub_uri"].map(effect) + draw.normal(size=len(table))
    )


def macro(table: pd.DataFrame) -> float:
    return float(table.groupby("relation")["x"].mean().mean())


def deleted(table: pd.DataFrame, clusters: list[str]) -> float:
    """The sum of squared changes of the macro mean on deleting each cluster."""
    groups = table.groupby(clusters if len(clusters) > 1 else clusters[0]).groups.values()
    return sum((macro(table.drop(index=rows)) - macro(table)) ** 2 for rows in groups)


class TestStandardErrors:
    def test_they_are_brute_force_deletion(self):
        table = shared_clusters()
        expected = [
            deleted(table, kind) for kind in (["obj_uri"], ["sub_uri"], ["obj_uri", "sub_uri"])
        ]
        design = find_design(table)
        left = design.residuals(table[["x"]].to_numpy())
        found = [float(np.square(change @ left).sum()) for change in design.deletions]
        assert found == pytest.approx(expected, rel=1e-10)
        assert design.mean(table[["x"]].to_numpy())[0] == pytest.approx(macro(table))
        assert design.variance(table[["x"]].to_numpy())[0] == pytest.approx(
            max(expected[0], expected[1], expected[0] + expected[1] - expected[2])
        )

    def test_several_languages_weigh_the_same_and_objects_are_clusters_across_them(self):
        table = pd.concat(
            [shared_clusters(3), shared_clusters(4, 50).assign(language="cs")], ignore_index=True
        )

        def estimate(rows: pd.DataFrame) -> float:
            return float(
                rows.groupby(["language", "relation"])["x"].mean().groupby("language").mean().mean()
            )

        design, values = find_design(table), table[["x"]].to_numpy()
        assert design.mean(values)[0] == pytest.approx(estimate(table))
        changes = [
            estimate(table.drop(index=rows)) - estimate(table)
            for rows in table.groupby("obj_uri").groups.values()
        ]
        assert np.square(design.deletions[0] @ design.residuals(values)).sum() == pytest.approx(
            np.square(changes).sum()
        )

    def test_terms_are_those_of_statsmodels_regression_on_relations(self):
        """Without the deletion factor (CR0), by one kind of cluster and by two; the coefficients are the relations' means."""
        table = shared_clusters()
        dummies = pd.get_dummies(table["relation"]).astype(float)
        contrast = np.full(dummies.shape[1], 1 / dummies.shape[1])
        groups = [pd.factorize(table[name])[0] for name in ("obj_uri", "sub_uri")]
        both = pd.factorize(pd.Series(list(zip(*groups, strict=True))))[0]
        design = find_design(table)
        pull = design.weight * design.residuals(table[["x"]].to_numpy())[:, 0]

        def of_statsmodels(clusters: np.ndarray) -> float:
            fit = sm.OLS(table["x"], dummies).fit(
                cov_type="cluster", cov_kwds={"groups": clusters, "use_correction": False}
            )
            return float(contrast @ fit.cov_params().to_numpy() @ contrast)

        found = [
            float(np.square(np.bincount(numbers, weights=pull)).sum())
            for numbers in (*design.clusters, both)
        ]
        assert found == pytest.approx(
            [of_statsmodels(numbers) for numbers in (*groups, both)], rel=1e-10
        )
        two_way = of_statsmodels(np.column_stack(groups))
        assert found[0] + found[1] - found[2] == pytest.approx(two_way, rel=1e-10)

    def test_of_rows_that_are_all_different_they_are_statsmodels_hc3(self):
        table = shared_clusters().assign(
            sub_uri=lambda t: [f"Q{i}" for i in range(len(t))],
            obj_uri=lambda t: [f"O{i}" for i in range(len(t))],
        )
        dummies = pd.get_dummies(table["relation"]).astype(float)
        covariance = sm.OLS(table["x"], dummies).fit(cov_type="HC3").cov_params().to_numpy()
        assert find_design(table).variance(table[["x"]].to_numpy())[0] == pytest.approx(
            covariance.sum() / 9, rel=1e-10
        )

    def test_a_cluster_that_is_the_whole_relation_adds_nothing(self):
        table = pd.concat(
            [
                shared_clusters(),
                facts([("ru", "P264", f"Q{i}", "O0") for i in range(30)]).assign(x=np.arange(30.0)),
            ]
        )
        design = find_design(table.reset_index(drop=True))
        change = design.deletions[0] @ design.residuals(table[["x"]].to_numpy())
        rest = find_design(shared_clusters())
        assert np.isfinite(change).all()
        expected = rest.deletions[0] @ rest.residuals(shared_clusters()[["x"]].to_numpy())
        assert np.square(change).sum() == pytest.approx(np.square(expected).sum() * (3 / 4) ** 2)

    def test_effective_objects(self):
        assert find_design(one_relation(40, 10)).effective == pytest.approx(10)
        uneven = facts([("ru", "P19", f"Q{i}", "O0" if i < 30 else f"O{i}") for i in range(40)])
        assert find_design(uneven).effective == pytest.approx(1 / (0.75**2 + 10 / 40**2))
        assert find_design(uneven, "object").effective == pytest.approx(11)
        few_subjects = facts([("ru", "P19", f"Q{i % 4}", f"O{i}") for i in range(40)])
        assert find_design(few_subjects).effective == pytest.approx(4)

    def test_weights(self):
        table = facts(
            [
                ("ru", "P19", "Q1", "O1"),
                ("ru", "P37", "Q1", "O2"),
                ("ru", "P37", "Q2", "O3"),
                ("ru", "P37", "Q3", "O3"),
            ]
        )
        weights = [find_design(table, name).weight.tolist() for name in WEIGHTS]
        assert weights == [[1 / 2, 1 / 6, 1 / 6, 1 / 6], [1 / 2, 1 / 4, 1 / 8, 1 / 8], [1 / 4] * 4]
        assert nested_weights(table, ["language", "relation"]).tolist() == weights[0]

    def test_design_takes_other_names(self):
        """Minimal pairs and popularity questions name their own strata and clusters; one kind of cluster is enough."""
        pairs = pd.DataFrame({"paradigm": ["a"] * 20 + ["b"] * 10, "pair": range(30)})
        values = np.random.default_rng(2).normal(size=(30, 1))
        a, b = (
            np.var(part, ddof=0) / (len(part) - 1) ** 2 * len(part)
            for part in (values[:20], values[20:])
        )
        assert design_of(pairs, ["paradigm"], ["pair"]).variance(values)[0] == pytest.approx(
            (a + b) / 4
        )

    def test_a_fact_that_stands_twice_and_no_fact_are_told(self):
        with pytest.raises(UserError, match=r"ru_P19: the fact Q0 – O0 stands twice \(1 such rows"):
            find_design(pd.concat([one_relation(3), one_relation(1)]))
        with pytest.raises(UserError, match="no fact is left"):
            find_design(one_relation(0))


class TestIntervals:
    def test_a_second_implementation_in_plain_loops(self):
        """Means, two-way CR3, G* and t of hand-kept dictionaries; Wilson's interval by statsmodels."""
        table = shared_clusters(7).assign(hit=lambda t: (t["x"] > 0).astype(float))
        rows = table.to_dict("records")
        relations = sorted({row["relation"] for row in rows})
        size = {r: sum(row["relation"] == r for row in rows) for r in relations}
        weight = [1 / len(relations) / size[row["relation"]] for row in rows]
        totals: dict[str, float] = defaultdict(float)
        for row, share in zip(rows, weight, strict=True):
            totals[row["obj_uri"]] += share
        effective = 1 / sum(total**2 for total in totals.values())
        for column, scale in (("x", Scale.DIFFERENCE), ("hit", Scale.SHARE)):
            mean = {
                r: sum(row[column] for row in rows if row["relation"] == r) / size[r]
                for r in relations
            }
            variances = []
            for key in (["obj_uri"], ["sub_uri"], ["obj_uri", "sub_uri"]):
                of_kind = 0.0
                for cluster in {tuple(row[name] for name in key) for row in rows}:
                    change = 0.0
                    for r in relations:
                        own = [
                            row
                            for row in rows
                            if row["relation"] == r and tuple(row[name] for name in key) == cluster
                        ]
                        lost = sum(row[column] - mean[r] for row in own) / size[r] / len(relations)
                        change += lost / (1 - len(own) / size[r]) if own else 0.0
                    of_kind += change**2
                variances.append(of_kind)
            variance = max(variances[0], variances[1], variances[0] + variances[1] - variances[2])
            quantile, estimate = (
                stats.t.ppf(0.975, effective - 1),
                sum(mean.values()) / len(relations),
            )
            found = intervals(find_design(table), table[[column]].to_numpy(), [scale])
            assert (found.estimate[0], found.error[0]) == pytest.approx((estimate, variance**0.5))
            assert found.detectable[0] == pytest.approx(
                (quantile + stats.t.ppf(0.8, effective - 1)) * variance**0.5
            )
            ends = (estimate - quantile * variance**0.5, estimate + quantile * variance**0.5)
            if scale is Scale.SHARE:
                worth = min(len(rows), estimate * (1 - estimate) / variance)
                alpha = 2 * stats.norm.sf(quantile)
                ends = proportion_confint(estimate * worth, worth, alpha=alpha, method="wilson")
            assert (found.low[0], found.high[0]) == pytest.approx(ends)

    @pytest.mark.parametrize("share", [0.0, 1.0])
    def test_where_all_rows_agree_a_share_has_the_interval_of_as_many_objects(self, share: float):
        found = intervals(
            find_design(one_relation(300, 25)), np.full((300, 1), share), [Scale.SHARE]
        )
        ends = proportion_confint(
            share * 25, 25, alpha=2 * stats.norm.sf(stats.t.ppf(0.975, 24)), method="wilson"
        )
        assert (found.low[0], found.high[0]) == pytest.approx(ends)

    def test_where_nothing_varies_a_difference_has_no_interval(self):
        values = np.column_stack([np.zeros(20), np.full(20, 1 / 3), np.ones(20)])
        found = intervals(
            find_design(one_relation(20)), values, [Scale.DIFFERENCE, Scale.DIFFERENCE, Scale.RANK]
        )
        assert found.estimate == pytest.approx([0, 1 / 3, 1])
        assert np.isnan([found.low, found.high]).all() and (found.error == 0).all()

    @pytest.mark.parametrize("objects", [10, 40])
    def test_ends_stay_in_range(self, objects: int):
        """One hit, one miss, one bad rank among many: where an estimate ± t √V would leave the range."""
        design, one = find_design(one_relation(40, objects)), np.zeros((40, 1))
        one[0] = 1
        for column, scale in (
            (one, Scale.SHARE),
            (1 - one, Scale.SHARE),
            (1 + one, Scale.RANK),
            (1 + 49 * one, Scale.RANK),
        ):
            found = intervals(design, column, [scale])
            least, most = (0.0, 1.0) if scale is Scale.SHARE else (1.0, np.inf)
            assert least <= found.low[0] < found.estimate[0] < found.high[0] <= most

    def test_too_few_objects_have_an_estimate_alone(self):
        for design in (
            find_design(one_relation(90, 9)),
            find_design(facts([("ru", "P19", f"Q{i % 9}", f"O{i}") for i in range(90)])),
        ):
            values = np.random.default_rng(0).normal(size=(90, 1))
            found = intervals(design, values, [Scale.DIFFERENCE])
            assert found.estimate[0] == pytest.approx(values.mean())
            assert np.isnan(
                [
                    found.low,
                    found.high,
                    found.detectable,
                    sign_flips([design], values, flips=200)[0],
                ]
            ).all()
        assert np.isfinite(
            intervals(find_design(one_relation(90, 10)), values, [Scale.DIFFERENCE]).low
        ).all()

    def test_it_covers_the_truth_where_objects_have_effects_of_their_own(self):
        """2,000 data sets at once: 30 objects, 200 rows. Intervals over rows alone would cover half of the time."""
        draw = np.random.default_rng(11)
        table = facts(
            [("ru", f"P{i % 4}", f"Q{i}", f"O{int(30 * draw.random() ** 2)}") for i in range(200)]
        )
        design = find_design(table)
        effect = draw.normal(size=(design.sizes[0], 2000))[design.clusters[0]]
        values = effect + draw.normal(size=(200, 2000))
        found = intervals(design, values, [Scale.DIFFERENCE] * 2000)
        assert 0.93 <= ((found.low <= 0) & (found.high >= 0)).mean() <= 0.975


class TestSignFlips:
    def test_few_clusters_are_exact_and_the_larger_p_counts(self):
        draw = np.random.default_rng(3)
        table = facts([("ru", f"P{i % 2}", f"Q{i % 11}", f"O{i % 12}") for i in range(40)])
        design, differences = find_design(table), draw.normal(0.3, 1, size=(40, 1))
        expected = []
        for clusters in design.clusters:
            sums = [
                float(design.weight[clusters == c] @ differences[clusters == c, 0])
                for c in range(clusters.max() + 1)
            ]
            flips = [
                abs(sum(s * d for s, d in zip(signs, sums, strict=True)))
                for signs in itertools.product((1, -1), repeat=len(sums))
            ]
            expected.append(np.mean(np.array(flips) >= abs(sum(sums)) - 1e-12))
        assert expected[0] != expected[1]
        assert sign_flips([design], differences)[0, 0] == pytest.approx(max(expected))

    def test_many_clusters_agree_with_scipy(self):
        differences = np.random.default_rng(6).normal(0.25, 1, size=60)
        reference = stats.permutation_test(
            (differences,),
            np.mean,
            permutation_type="samples",
            n_resamples=20_000,
            rng=np.random.default_rng(0),
        ).pvalue
        found = sign_flips([find_design(one_relation(60))], differences[:, None], flips=20_000)[
            0, 0
        ]
        assert found == pytest.approx(reference, abs=0.008)

    def test_equal_seeds_give_equal_p_values_never_zero(self):
        design, differences = (
            find_design(one_relation(60)),
            np.random.default_rng(6).normal(0.2, 1, size=(60, 1)),
        )
        first, again, other = (
            sign_flips([design], differences, flips=500, seed=seed)[0, 0] for seed in (1, 1, 2)
        )
        assert first == again != other
        assert sign_flips([design], np.ones((60, 1)), flips=499)[0, 0] == 1 / 500

    def test_under_the_null_with_signs_of_objects_it_rejects_one_time_in_twenty(self):
        """1,000 data sets (seed 12): 25 objects of unequal size, one sign an object. Signs of rows would reject most of them."""
        draw = np.random.default_rng(12)
        table = facts(
            [("ru", "P37", f"Q{i}", f"O{int(25 * draw.random() ** 2)}") for i in range(150)]
        )
        design = find_design(table)
        signs = draw.choice([-1.0, 1.0], (design.sizes[0], 1000))[design.clusters[0]]
        p_values = sign_flips(
            [design], signs * (1 + 0.3 * draw.normal(size=(150, 1000))), flips=999, seed=12
        )[0]
        assert 0.03 <= (p_values <= 0.05).mean() <= 0.065

    def test_holm_equals_statsmodels_and_leaves_missing_tests_out(self):
        values = [0.01, float("nan"), 0.04, 0.03]
        adjusted = holm(values)
        assert np.isnan(adjusted[1])
        assert adjusted[[0, 2, 3]] == pytest.approx(
            multipletests([0.01, 0.04, 0.03], method="holm")[1]
        )

    def test_effect_sizes(self):
        differences = np.array([[1.0, 0, 2], [3, 0, 2], [-1, 0, 2]])
        found = effect_size(differences)
        assert found[0] == pytest.approx(1 / 2)
        assert found[1] == 0
        assert np.isnan(found[2])
        assert superiority(differences).tolist() == pytest.approx([2 / 3, 0.5, 1.0])


class TestSignificantlyBest:
    @staticmethod
    def table(better_by: float) -> pd.DataFrame:
        generator = np.random.default_rng(8)
        base = generator.integers(2, 20, size=60).astype(float)
        noise = generator.integers(-1, 2, size=(2, 60))
        ranks = {
            "template": np.maximum(1, base + noise[0]),
            "gt": np.maximum(1, base + noise[1] - better_by),
            "other": base + 1,
        }
        return one_relation(60).assign(**ranks)

    def best(self, table: pd.DataFrame, ways: list[str], metric: str = "mean rank") -> str | None:
        return significantly_best({"ru": (table, ways)}, [metric])["ru", metric]

    def test_a_clear_lead_is_named_and_one_within_chance_is_not(self):
        assert self.best(self.table(4), ["template", "gt", "other"]) == "gt"
        assert self.best(self.table(0), ["template", "gt"]) is None

    def test_nothing_to_compare_with(self):
        assert self.best(self.table(4), ["gt"], "R@1") is None

    def test_a_lead_on_one_frequent_object_is_none(self):
        """All of the lead is one object's: by rows p < .001."""
        table = facts([("ru", "P103", f"Q{i}", "O0" if i < 80 else f"O{i}") for i in range(110)])
        assert (
            self.best(
                table.assign(template=2.0, gt=np.where(np.arange(110) < 80, 1.0, 2.0)),
                ["template", "gt"],
            )
            is None
        )

    def test_holm_goes_over_the_languages_of_the_table(self):
        """Each language alone p = .031 (6 of 6 objects that differ): of eight such languages none stays."""
        gt = np.where(np.arange(60) < 6, 1.0, 2.0)
        table = one_relation(60).assign(template=2.0, gt=gt)
        assert self.best(table, ["template", "gt"]) == "gt"
        eight = {f"l{i}": (table.assign(language=f"l{i}"), ["template", "gt"]) for i in range(8)}
        assert set(significantly_best(eight, ["mean rank"]).values()) == {None}


class TestComparePairs:
    SETTINGS = Settings(cutoffs=(1, 3), resamples=400)
    PAIRS = (Pair("template", "gt"), Pair("template", "chatgpt"))

    @staticmethod
    def table(languages: tuple[str, ...] = ("ru", "cs", "es")) -> pd.DataFrame:
        generator = np.random.default_rng(21)
        keys = [(lang, f"P{i % 2}", f"Q{i}", f"O{i % 15}") for lang in languages for i in range(30)]
        ranks = {
            way: generator.integers(1, 9, size=len(keys)).astype(float)
            for way in ("template", "gt", "chatgpt")
        }
        table = facts(keys).assign(**ranks)
        table.loc[table["language"] == "es", "chatgpt"] = np.nan
        return table

    def test_only_pairs_that_exist_and_no_pool_where_languages_differ(self):
        values, differences = compare_pairs(self.table(), self.PAIRS, self.SETTINGS)
        seen = differences.groupby("comparison")["language"].unique().map(list).to_dict()
        assert seen == {"template → gt": ["ru", "cs", "es"], "template → chatgpt": ["ru", "cs"]}
        assert len(differences) == 5 * 3 * 4
        assert len(values) == (3 + 3 + 2) * 3 * 4
        _, differences = compare_pairs(self.table(("ru", "cs")), self.PAIRS, self.SETTINGS)
        assert set(differences["language"]) == {"ru", "cs", POOLED}
        lacks_one = self.table(("ru", "cs")).query("language == 'ru' or relation == 'P0'")
        assert set(compare_pairs(lacks_one, self.PAIRS, self.SETTINGS)[1]["language"]) == {
            "ru",
            "cs",
        }

    def test_values_and_differences_equal_plain_pandas(self):
        table = self.table()
        _, differences = compare_pairs(table, self.PAIRS, self.SETTINGS)
        row = differences.query(
            "comparison == 'template → gt' and language == 'cs' and weights == 'relation' and metric == 'MRR'"
        ).iloc[0]
        czech = table[table["language"] == "cs"]
        by_hand = (1 / czech[["template", "gt"]]).groupby(czech["relation"]).mean().mean()
        assert [row["first_value"], row["second_value"]] == pytest.approx(by_hand.tolist())
        assert row["difference"] == pytest.approx(by_hand["gt"] - by_hand["template"])
        assert row["low"] < row["difference"] < row["high"]
        assert (row["facts"], row["objects"], row["subjects"], row["relations"]) == (30, 15, 30, 2)
        assert row["effective_objects"] == pytest.approx(15)

    def test_holm_is_over_all_tests_of_the_table(self):
        _, differences = compare_pairs(self.table(), self.PAIRS, self.SETTINGS)
        family = differences.query("weights == 'relation' and metric == 'R@1'")
        assert len(family) == 5
        assert family["p_holm"].tolist() == pytest.approx(
            multipletests(family["p"], method="holm")[1].tolist()
        )

    def test_each_object_once_and_too_few_objects_are_printed(self):
        table = self.table(("ru",))
        _, differences = compare_pairs(table, self.PAIRS, self.SETTINGS)
        shown = main_figures(differences, "relation")
        once = differences.query("weights == 'object' and metric == 'R@1'")["difference"]
        assert [cell.split()[0] for cell in shown.query("metric == 'R@1'")["each object once"]] == [
            f"{value:+z.3f}" for value in once
        ]
        few = table.assign(obj_uri=[f"O{i % 5}" for i in range(len(table))])
        shown = main_figures(compare_pairs(few, self.PAIRS, self.SETTINGS)[1], "relation")
        assert (
            set(shown["interval"]) == {"too few objects"}
            and set(shown["p"]) == {""}
            and set(shown["second is"]) == {"–"}
        )

    def test_metrics_of_ranks_with_a_mid_rank(self):
        names, columns = metric_columns(np.array([1.0, 1.5, 4.0]), (1, 3))
        assert names == ("R@1", "R@3", "MRR", "mean rank")
        assert columns.tolist() == [[1, 1, 1, 1], [0, 1, 1 / 1.5, 1.5], [0, 0, 0.25, 4]]

    def test_alignment_of_folders_counts_what_each_shares_with_the_first(self):
        first, second, third = (
            one_relation(5).assign(a=1.0),
            one_relation(7).iloc[2:].assign(b=2.0),
            one_relation(1).assign(c=3.0),
        )
        merged, shared = align({"A": first, "B": second})
        assert (len(merged), shared, merged["b"].isna().sum()) == (3, {"B": 3}, 0)
        merged, shared = align({"A": first, "B": second, "C": third})
        assert (len(merged), shared, merged[["b", "c"]].isna().sum().tolist()) == (
            4,
            {"B": 3, "C": 1},
            [1, 3],
        )
        with pytest.raises(UserError, match="A and B share no fact"):
            align({"A": first, "B": second.assign(language="cs")})
