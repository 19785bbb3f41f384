"""What the numbers are worth.

The rules:
1. One place says which rows are a cluster; relations are fixed, clusters are resampled and flipped whole.
2. Averages, standard errors, tests and adjustments equal scipy's, statsmodels' or a slow plain computation.
3. Intervals cover and tests reject as often as they say (a small simulation; the large one is benchmarks/simulations.py).
4. What cannot be compared is told in one line.
"""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar as reference_mcnemar
from statsmodels.stats.multitest import multipletests

from fluent.console import UserError
from fluent.reporting.closed_form import closed_form, kind_of
from fluent.reporting.clusters import find_design, metric_columns
from fluent.reporting.comparing import POOLED, Pair, Settings, align, compare_pairs
from fluent.reporting.intervals import bootstrap, draw_weights
from fluent.reporting.paired import effect_size, holm, mcnemar, permutation_test, significantly_best, superiority


def facts(rows: list[tuple[str, str, str, str]], **ranks: list[float]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["language", "relation", "sub_uri", "obj_uri"]).assign(**ranks)


def one_relation(size: int) -> pd.DataFrame:
    return facts([("ru", "P19", f"Q{i}", "Q1") for i in range(size)])


TWO_RELATIONS = facts([("ru", "P19", "Q1", "Q7"), ("ru", "P37", "Q1", "Q8"), ("ru", "P37", "Q1", "Q9"), ("ru", "P37", "Q2", "Q9")])
TWO_LANGUAGES = facts([("ru", "P19", "Q1", "Q7"), ("ru", "P37", "Q2", "Q8"), ("cs", "P19", "Q1", "Q7"), ("cs", "P19", "Q3", "Q7")])


class TestDesign:
    def test_in_one_language_a_subject_within_a_relation_is_the_cluster(self):
        design = find_design(TWO_RELATIONS)
        assert design.cluster.tolist() == [0, 1, 1, 2]
        assert design.stratum.tolist() == [0, 1, 1]
        assert not design.pooled

    def test_over_languages_a_fact_is_the_cluster(self):
        design = find_design(TWO_LANGUAGES)
        assert design.pooled
        assert design.cluster[0] == design.cluster[2]
        assert len(set(design.cluster.tolist())) == 3

    def test_micro_weighs_rows_and_macro_weighs_languages_then_relations(self):
        design = find_design(TWO_LANGUAGES)
        assert design.weights("micro").tolist() == [0.25] * 4
        assert design.weights("macro").tolist() == [0.25, 0.25, 0.25, 0.25]
        assert find_design(TWO_RELATIONS).weights("macro").tolist() == pytest.approx([1 / 2, 1 / 6, 1 / 6, 1 / 6])

    def test_macro_equals_a_mean_of_means(self):
        generator = np.random.default_rng(3)
        table = facts([(lang, f"P{i % 3}", f"Q{i}", "Q1") for lang in ("ru", "cs") for i in range(20 if lang == "ru" else 11)])
        values = generator.normal(size=len(table))
        by_hand = table.assign(x=values).groupby(["language", "relation"])["x"].mean().groupby("language").mean().mean()
        assert find_design(table).averages(values[:, None], "macro")[0] == pytest.approx(by_hand, abs=1e-14)

    def test_a_fact_that_stands_twice_is_told(self):
        with pytest.raises(UserError, match=r"ru_P19: the fact Q0 – Q1 stands twice \(1 such rows"):
            find_design(pd.concat([one_relation(3), one_relation(1)]))

    def test_nothing_to_compare_is_told(self):
        with pytest.raises(UserError, match="no fact is left"):
            find_design(one_relation(0))

    def test_metrics_of_ranks_with_a_mid_rank(self):
        names, columns = metric_columns(np.array([1.0, 1.5, 4.0]), (1, 3))
        assert names == ("R@1", "R@3", "MRR", "mean rank")
        assert columns.tolist() == [[1, 1, 1, 1], [0, 1, 1 / 1.5, 1.5], [0, 0, 0.25, 4]]


class TestIntervals:
    def test_weights_draw_each_cluster_equally_often_and_sum_to_their_number(self):
        weights = draw_weights(7, 4000, np.random.default_rng(0))
        assert (weights.sum(axis=1) == 7).all()
        assert weights.mean(axis=0) == pytest.approx(np.ones(7), abs=0.06)

    def test_error_of_single_row_clusters_is_the_textbook_one(self):
        values = np.random.default_rng(1).normal(size=(50, 2))
        found = bootstrap(find_design(one_relation(50)), values, resamples=200)["micro"]
        assert found.error == pytest.approx(stats.sem(values), rel=1e-12)
        assert found.estimate == pytest.approx(values.mean(axis=0))

    def test_error_of_strata_and_clusters_equals_a_plain_loop(self):
        generator = np.random.default_rng(2)
        table = facts([("ru", f"P{i % 3}", f"Q{i // 6}", f"Q{i}") for i in range(60)])
        values = generator.normal(size=60)
        expected = 0.0
        for _, rows in table.assign(x=values).groupby("relation"):
            sums = [(group - rows["x"].mean()).sum() / (3 * len(rows)) for _, group in rows.groupby("sub_uri")["x"]]
            expected += len(sums) / (len(sums) - 1) * sum(s**2 for s in sums)
        assert bootstrap(find_design(table), values[:, None], resamples=200)["macro"].error[0] == pytest.approx(expected**0.5, rel=1e-12)

    def test_on_normal_data_it_is_close_to_students_interval_and_to_scipys_bootstrap(self):
        values = np.random.default_rng(5).normal(size=200)
        found = bootstrap(find_design(one_relation(200)), values[:, None], resamples=20_000)["micro"]
        student = stats.t.interval(0.95, 199, values.mean(), stats.sem(values))
        reference = stats.bootstrap((values,), np.mean, n_resamples=20_000, method="BCa", rng=np.random.default_rng(0)).confidence_interval
        width = student[1] - student[0]
        assert abs(found.low[0] - student[0]) < 0.03 * width and abs(found.high[0] - student[1]) < 0.03 * width
        assert abs(found.low[0] - reference.low) < 0.05 * width and abs(found.high[0] - reference.high) < 0.05 * width

    def test_equal_seeds_give_equal_ends_and_other_seeds_others(self):
        values = np.random.default_rng(5).normal(size=(30, 1))
        first, again, other = (bootstrap(find_design(one_relation(30)), values, resamples=500, seed=s)["micro"].low[0] for s in (1, 1, 2))
        assert first == again != other

    def test_where_nothing_varies_there_is_no_interval(self):
        found = bootstrap(find_design(one_relation(9)), np.column_stack([np.zeros(9), np.full(9, 1 / 3)]), resamples=100)["micro"]
        assert found.estimate == pytest.approx([0, 1 / 3])
        assert np.isnan([found.low, found.high]).all()

    @pytest.mark.parametrize("size", [40, 400])
    def test_it_covers_the_truth_about_19_times_in_20(self, size):
        """1,000 data sets at once (seed 11): R@1 .35 and .50 of the same facts, known difference .15."""
        generator = np.random.default_rng(11)
        first = generator.random((size, 1000)) < 0.35
        second = np.where(first, generator.random((size, 1000)) < 0.8, generator.random((size, 1000)) < 0.22 / 0.65)
        found = bootstrap(find_design(one_relation(size)), second * 1.0 - first, resamples=1000, seed=11)["micro"]
        truth = 0.35 * 0.8 + 0.22 - 0.35
        assert 0.93 <= ((found.low <= truth) & (truth <= found.high)).mean() <= 0.97


class TestTests:
    def test_mcnemar_equals_statsmodels(self):
        generator = np.random.default_rng(4)
        first, second = (generator.random((2, 80)) < [[0.4], [0.6]]).astype(float)
        table = pd.crosstab(first, second)
        found = mcnemar(find_design(one_relation(80)), first, second)
        assert found.p_value == pytest.approx(reference_mcnemar(table, exact=True).pvalue, rel=1e-12)
        assert (found.gained, found.lost) == (table.loc[0, 1], table.loc[1, 0])
        assert found.odds_ratio == pytest.approx(table.loc[0, 1] / table.loc[1, 0])

    def test_mcnemar_without_discordant_facts(self):
        found = mcnemar(find_design(one_relation(3)), np.ones(3), np.ones(3))
        assert found.p_value == 1.0
        assert np.isnan(found.odds_ratio)

    def test_mcnemar_over_languages_counts_a_fact_once(self):
        found = mcnemar(find_design(TWO_LANGUAGES), np.zeros(4), np.array([1.0, 0, 1, 0]))
        assert (found.gained, found.lost) == (1, 0)

    def test_permutation_of_few_clusters_is_exact(self):
        differences = np.array([3.0, -1, 2, 2, 5, 0, 1])
        flips = [abs(sum(s * d for s, d in zip(signs, differences, strict=True))) for signs in itertools.product((1, -1), repeat=7)]
        expected = np.mean([flip >= abs(differences.sum()) - 1e-9 for flip in flips])
        found = permutation_test(find_design(one_relation(7)), differences[:, None])
        assert found["micro"][0] == found["macro"][0] == pytest.approx(expected)

    def test_permutation_of_many_clusters_agrees_with_scipy(self):
        differences = np.random.default_rng(6).normal(0.25, 1, size=60)
        reference = stats.permutation_test(
            (differences,), np.mean, permutation_type="samples", n_resamples=20_000, rng=np.random.default_rng(0)
        ).pvalue
        found = permutation_test(find_design(one_relation(60)), differences[:, None], flips=20_000)["micro"][0]
        assert found == pytest.approx(reference, abs=0.006)

    def test_permutation_flips_a_cluster_as_a_whole(self):
        table = facts([("ru", "P37", f"Q{i // 5}", f"Q{i}") for i in range(10)])
        p_value = permutation_test(find_design(table), np.ones((10, 1)))["micro"][0]
        assert p_value == 0.5  # two clusters: ++ +- -+ --

    def test_under_the_null_it_rejects_no_more_than_one_time_in_twenty(self):
        """1,000 data sets at once (seed 12) of 40 subjects with two facts each, the two ways exchangeable."""
        generator = np.random.default_rng(12)
        table = facts([("ru", "P37", f"Q{i // 2}", f"Q{i}") for i in range(80)])
        subject = np.repeat(generator.normal(size=(2, 40, 1000)), 2, axis=1)
        ranks = np.clip(np.exp(subject + generator.normal(size=(2, 80, 1000))), 1, 51).round()
        p_values = permutation_test(find_design(table), ranks[1] - ranks[0], flips=999, seed=12)["micro"]
        assert 0.035 <= (p_values <= 0.05).mean() <= 0.065

    def test_holm_equals_statsmodels_and_leaves_missing_tests_out(self):
        values = [0.01, float("nan"), 0.04, 0.03]
        adjusted = holm(values)
        assert np.isnan(adjusted[1])
        assert adjusted[[0, 2, 3]] == pytest.approx(multipletests([0.01, 0.04, 0.03], method="holm")[1])

    def test_effect_sizes(self):
        differences = np.array([[1.0, 0, 2], [3, 0, 2], [-1, 0, 2]])
        found = effect_size(find_design(one_relation(3)), differences)
        assert found[0] == pytest.approx(1 / 2)
        assert found[1] == 0
        assert np.isnan(found[2])
        assert superiority(differences).tolist() == pytest.approx([2 / 3, 0.5, 1.0])


class TestSignificantlyBest:
    def table(self, better_by: float) -> pd.DataFrame:
        generator = np.random.default_rng(8)
        base = generator.integers(2, 20, size=60).astype(float)
        noise = generator.integers(-1, 2, size=(2, 60))
        return one_relation(60).assign(
            template=np.maximum(1, base + noise[0]), gt=np.maximum(1, base + noise[1] - better_by), other=base + 1
        )

    def test_a_clear_lead_is_named(self):
        assert significantly_best(self.table(4), ["template", "gt", "other"], "mean rank") == "gt"

    def test_a_lead_within_chance_is_not(self):
        assert significantly_best(self.table(0), ["template", "gt"], "mean rank") is None

    def test_nothing_to_compare_with(self):
        assert significantly_best(self.table(4), ["gt"], "R@1") is None


class TestComparePairs:
    SETTINGS = Settings(cutoffs=(1, 3), resamples=400)
    PAIRS = (Pair("template", "gt"), Pair("template", "chatgpt"))

    @staticmethod
    def table() -> pd.DataFrame:
        generator = np.random.default_rng(21)
        keys = [(lang, f"P{i % 2}", f"Q{i}", "Q1") for lang in ("ru", "cs", "es") for i in range(30)]
        ranks = {way: generator.integers(1, 9, size=90).astype(float) for way in ("template", "gt", "chatgpt")}
        table = facts(keys).assign(**ranks)
        table.loc[table["language"] == "es", "chatgpt"] = np.nan
        return table

    def test_every_language_and_the_pool_and_only_pairs_that_exist(self):
        values, differences = compare_pairs(self.table(), self.PAIRS, self.SETTINGS)
        seen = differences.groupby("comparison")["language"].unique().map(list).to_dict()
        assert seen == {"template → gt": ["ru", "cs", "es", POOLED], "template → chatgpt": ["ru", "cs", POOLED]}
        assert len(differences) == 7 * 2 * 4
        assert len(values) == (3 + 3 + 2 + 3) * 2 * 4

    def test_values_and_differences_equal_plain_pandas(self):
        table = self.table()
        _, differences = compare_pairs(table, self.PAIRS, self.SETTINGS)
        row = differences.query("comparison == 'template → gt' and language == 'cs' and average == 'macro' and metric == 'MRR'").iloc[0]
        czech = table[table["language"] == "cs"]
        by_hand = (1 / czech[["template", "gt"]]).groupby(czech["relation"]).mean().mean()
        assert [row["first_value"], row["second_value"]] == pytest.approx(by_hand.tolist())
        assert row["difference"] == pytest.approx(by_hand["gt"] - by_hand["template"])
        assert row["low"] < row["difference"] < row["high"]
        assert (row["facts"], row["clusters"], row["relations"]) == (30, 30, 2)

    def test_holm_is_over_the_languages_of_a_comparison_and_leaves_the_pool_out(self):
        _, differences = compare_pairs(self.table(), self.PAIRS, self.SETTINGS)
        family = differences.query("comparison == 'template → gt' and average == 'micro' and metric == 'R@1'")
        assert np.isnan(family.loc[family["language"] == POOLED, "p_mcnemar_holm"]).all()
        single = family[family["language"] != POOLED]
        assert single["p_mcnemar_holm"].tolist() == pytest.approx(multipletests(single["p_mcnemar"], method="holm")[1].tolist())

    def test_both_intervals_stand_side_by_side(self):
        table = self.table()
        values, differences = compare_pairs(table, self.PAIRS, self.SETTINGS)
        rows = table[table["language"] == "ru"]
        design, ranks = find_design(rows), metric_columns(rows["gt"].to_numpy(dtype=float), (1,))[1]
        gaps = ranks - metric_columns(rows["template"].to_numpy(dtype=float), (1,))[1]
        drawn = bootstrap(design, gaps, resamples=self.SETTINGS.resamples, seed=self.SETTINGS.seed)["micro"]
        for frame, columns, difference in ((values.query("way == 'gt'"), ranks, False), (differences.query("second == 'gt'"), gaps, True)):
            kinds = [kind_of(name, difference=difference) for name in ("R@1", "MRR", "mean rank")]
            read = closed_form(design, columns, kinds)["micro"]
            found = frame.query("language == 'ru' and average == 'micro' and metric in ('R@1', 'MRR', 'mean rank')")
            assert found["low"].tolist() == pytest.approx(read.low.tolist())
            assert found["high"].tolist() == pytest.approx(read.high.tolist())
        assert found["bootstrap_low"].tolist() == pytest.approx(drawn.low.tolist())

    def test_intervals_of_values_stay_in_the_metrics_range(self):
        table = one_relation(12).assign(template=[1.0] * 11 + [2.0], gt=1.0)
        values, _ = compare_pairs(table, [Pair("template", "gt")], self.SETTINGS)
        template = values[values["way"] == "template"]
        assert template.loc[template["metric"] != "mean rank", "high"].max() <= 1
        assert template.loc[template["metric"] == "mean rank", "low"].min() >= 1

    def test_alignment_of_folders_counts_what_each_shares_with_the_first(self):
        first, second, third = one_relation(5).assign(a=1.0), one_relation(7).iloc[2:].assign(b=2.0), one_relation(1).assign(c=3.0)
        merged, shared = align({"A": first, "B": second})
        assert (len(merged), shared, merged["b"].isna().sum()) == (3, {"B": 3}, 0)
        merged, shared = align({"A": first, "B": second, "C": third})
        assert (len(merged), shared, merged[["b", "c"]].isna().sum().tolist()) == (4, {"B": 3, "C": 1}, [1, 3])
        with pytest.raises(UserError, match="A and B share no fact"):
            align({"A": first, "B": second.assign(language="cs")})
