"""Intervals in closed form.

The rules:
1. In the plain case (one relation, a row a subject) each is the textbook's, computed by scipy or statsmodels.
2. With relations and clusters they are what the named papers say, computed plainly beside them.
3. They cover at 40 facts what the bootstrap does not (a small simulation; the large one is benchmarks/simulations.py).
4. Nothing that varies: no interval for a difference or a mean rank, one for R@k and MRR.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from fluent.reporting.closed_form import Kind, closed_form, hall, kind_of, stretch, welch
from fluent.reporting.clusters import Design, Floats, find_design
from fluent.reporting.intervals import Interval
from fluent.reporting.strata import fourth_cumulant, shares, split, steadied, third_moment, third_moment_noise, variances


def design_of(relations: Sequence[str], subjects: Sequence[int]) -> Design:
    names = ["ru"] * len(relations)
    return find_design(pd.DataFrame({"language": names, "relation": relations, "sub_uri": subjects, "obj_uri": np.arange(len(relations))}))


def one_relation(size: int) -> Design:
    return design_of(["P19"] * size, list(range(size)))


def micro(design: Design, values: Floats, kind: Kind, level: float = 0.95) -> Interval:
    return closed_form(design, values[:, None], [kind], level=level)["micro"]


class TestPlainCase:
    def test_a_share_has_jeffreys_interval_of_one_fact_less(self):
        """The standard error with m − 1 stands for m − 1 independent facts."""
        found = micro(one_relation(40), np.repeat([1.0, 0.0], [13, 27]), Kind.SHARE)
        low, high = proportion_confint(13 / 40 * 39, 39, method="jeffreys")
        assert (found.low[0], found.high[0]) == pytest.approx((low, high), rel=1e-12)

    @pytest.mark.parametrize("value", [0.0, 1.0])
    def test_a_share_of_none_or_all_has_an_interval_that_ends_there(self, value: float):
        found = micro(one_relation(25), np.full(25, value), Kind.SHARE)
        inner = stats.beta.ppf(0.975, 0.5, 25.5)
        assert found.low[0] == pytest.approx(0.0 if value == 0 else 1 - inner)
        assert found.high[0] == pytest.approx(inner if value == 0 else 1.0)

    def test_a_bounded_mean_has_the_beta_interval_of_its_variance_with_student_for_normal(self):
        values = 1 / np.random.default_rng(3).integers(1, 9, size=30)
        found = micro(one_relation(30), values, Kind.BOUNDED)
        size = values.mean() * (1 - values.mean()) / stats.sem(values) ** 2 * (stats.norm.ppf(0.975) / stats.t.ppf(0.975, 29)) ** 2
        expected = stats.beta.ppf([0.025, 0.975], values.mean() * size + 0.5, (1 - values.mean()) * size + 0.5)
        assert [found.low[0], found.high[0]] == pytest.approx(expected.tolist(), rel=1e-10)

    def test_halls_transformation_takes_the_ends_to_students_quantiles(self):
        """T + γT²/3 + γ²T³/27 + γ/6 of the studentised distance is ±t, γ scipy's unbiased skewness over √m."""
        values = np.exp(np.random.default_rng(8).normal(1, 1, size=40))
        found = micro(one_relation(40), values, Kind.RANK)
        skewness = stats.skew(values, bias=False) / 40**0.5
        for end, quantile in ((found.low[0], 0.975), (found.high[0], 0.025)):
            distance = (values.mean() - end) / stats.sem(values)
            transformed = distance + skewness * distance**2 / 3 + skewness**2 * distance**3 / 27 + skewness / 6
            assert transformed == pytest.approx(stats.t.ppf(quantile, 39), rel=1e-9)
        assert found.high[0] - values.mean() > values.mean() - found.low[0]

    def test_hall_without_skewness_is_student(self):
        assert hall(np.zeros(1), np.array([2.0]), np.array([1.5])) == (pytest.approx([3.0]), pytest.approx([3.0]))

    @pytest.mark.parametrize("level", [0.95, 0.8])
    def test_a_difference_has_the_paired_t_interval(self, level: float):
        first, second = (np.random.default_rng(4).random((2, 60)) < [[0.4], [0.6]]).astype(float)
        found = micro(one_relation(60), second - first, Kind.DIFFERENCE, level)
        reference = stats.ttest_rel(second, first).confidence_interval(level)
        assert (found.low[0], found.high[0]) == pytest.approx((reference.low, reference.high), rel=1e-12)

    def test_moments_are_scipys(self):
        values = np.random.default_rng(5).gamma(1.0, size=(35, 1))
        strata = split(one_relation(35), values)
        variance = variances(strata, "micro")[0, 0]
        assert variance == pytest.approx(stats.sem(values)[0] ** 2)
        assert third_moment(strata, "micro")[0] / variance**1.5 == pytest.approx(stats.skew(values, bias=False)[0] / 35**0.5)
        biased = variance * 34 / 35
        assert fourth_cumulant(strata, "micro")[0] / biased**2 == pytest.approx(stats.kurtosis(values)[0] / 35)

    def test_noise_of_the_third_moment_is_its_variance_over_many_samples(self):
        values = np.random.default_rng(6).normal(size=(200, 4000))
        strata = split(one_relation(200), values)
        assert np.mean(third_moment_noise(strata, "micro")) == pytest.approx(np.var(third_moment(strata, "micro")), rel=0.12)

    def test_stretch_is_what_skewness_does_to_the_quantile_of_a_studentised_mean(self):
        """60,000 means of 60 exponential values (skewness 2, excess kurtosis 6)."""
        values = np.random.default_rng(0).exponential(size=(60_000, 60))
        distance = np.abs(values.mean(axis=1) - 1) / stats.sem(values, axis=1)
        simulated = np.quantile(distance, 0.95) / stats.t.ppf(0.975, 59)
        assert stretch(np.array([4 / 60]), np.array([6 / 60]), 0.95)[0] == pytest.approx(simulated, abs=0.01)

    def test_a_difference_of_ranks_is_wider_than_students_where_it_is_skewed_and_not_where_it_is_not(self):
        skewed = np.array([0.0] * 30 + [1, 1, 1, 2, 2, 3, 5, 8, 13, 30])
        even = np.concatenate([skewed, -skewed])
        for values, more in ((skewed, True), (even, False)):
            found = micro(one_relation(len(values)), values, Kind.RANK_DIFFERENCE)
            student = stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)
            assert bool(found.high[0] - values.mean() > student) is more
            assert found.high[0] - values.mean() == pytest.approx(values.mean() - found.low[0])


class TestRelationsAndClusters:
    RELATIONS = ["P19"] * 12 + ["P37"] * 8
    SUBJECTS = [0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, *range(20, 28)]
    VALUES = np.array([1, 1, 1, 0, 0, 1, 0, 1, 1, 1, 0, 1, 1, 0, 0, 1, 0, 0, 0, 1.0])

    def cluster_variance(self, rows: slice) -> float:
        """m / (m − 1) Σ (Σ of a subject's distances from the mean / rows)², plainly."""
        values, subjects = self.VALUES[rows], np.array(self.SUBJECTS[rows])
        sums = [(values[subjects == subject] - values.mean()).sum() / len(values) for subject in set(subjects.tolist())]
        return len(sums) / (len(sums) - 1) * sum(s**2 for s in sums)

    def test_a_share_over_relations_has_jeffreys_interval_of_as_many_facts_as_have_its_variance(self):
        """Each relation's variance a cluster, shrunk to the pooled one by four clusters, then Jeffreys of the whole."""
        found = closed_form(design_of(self.RELATIONS, self.SUBJECTS), self.VALUES[:, None], [Kind.SHARE])["macro"]
        spread = [self.cluster_variance(slice(0, 12)) * 10, self.cluster_variance(slice(12, 20)) * 8]
        pooled = (9 * spread[0] + 7 * spread[1]) / 16
        variance = ((9 * spread[0] + 4 * pooled) / 13 / 10 + (7 * spread[1] + 4 * pooled) / 11 / 8) / 4
        mean = (self.VALUES[:12].mean() + self.VALUES[12:].mean()) / 2
        size = mean * (1 - mean) / variance
        expected = stats.beta.ppf([0.025, 0.975], mean * size + 0.5, (1 - mean) * size + 0.5)
        assert [found.low[0], found.high[0]] == pytest.approx(expected.tolist(), rel=1e-10)

    def test_more_relations_take_no_more_passes_over_the_rows(self, monkeypatch: pytest.MonkeyPatch):
        passes: list[int] = []
        plain = Design.cluster_sums
        monkeypatch.setattr(Design, "cluster_sums", lambda self, columns: passes.append(len(columns)) or plain(self, columns))
        for relations in (2, 200):
            strata = split(design_of([f"P{row % relations}" for row in range(400)], list(range(400))), np.ones((400, 1)))
            assert [stratum.clusters for stratum in strata] == [400 // relations] * relations
        assert passes == [400] * 4  # one for each average, twice

    def test_a_relation_that_all_hit_still_has_some_spread(self):
        design, values = design_of(["P19"] * 4 + ["P37"] * 16, list(range(20))), np.append(np.ones(4), np.tile([0.0, 1.0], 8))
        strata = split(design, values[:, None])
        assert variances(strata, "macro")[:, 0].tolist() == pytest.approx([0, 4 / 15 / 16 / 4])
        assert steadied(strata, "macro")[0, 0] == pytest.approx(4 / 7 * (15 * 4 / 15 / 18) / 4 / 4)
        alone = split(one_relation(20), values[:, None])
        assert steadied(alone, "macro") == pytest.approx(variances(alone, "macro"))

    def test_many_small_relations_with_few_hits_are_covered(self):
        """2,000 data sets (seed 13): twelve relations of 32 facts, R@1 of 0 to .10."""
        generator, truth = np.random.default_rng(13), np.array([0, 0.01, 0.02, 0.02, 0.03, 0.03, 0.04, 0.05, 0.05, 0.06, 0.08, 0.10])
        values = (generator.random((12, 32, 2000)) < truth[:, None, None]).reshape(384, 2000) * 1.0
        found = closed_form(design_of([f"P{i // 32}" for i in range(384)], list(range(384))), values, [Kind.SHARE] * 2000)["macro"]
        low, high = (found.low > truth.mean()).mean(), (found.high < truth.mean()).mean()
        assert max(low, high) < 0.04 and 0.93 <= 1 - low - high <= 0.97

    def test_degrees_of_freedom(self):
        design = design_of(self.RELATIONS, self.SUBJECTS)
        strata = split(design, self.VALUES[:, None])
        a, b = (self.cluster_variance(rows) / 4 for rows in (slice(0, 12), slice(12, 20)))
        assert shares(strata, "macro").tolist() == [0.5, 0.5] and shares(strata, "micro").tolist() == [0.6, 0.4]
        assert [stratum.clusters for stratum in strata] == [10, 8]
        assert welch(strata, variances(strata, "macro"))[0] == pytest.approx((a + b) ** 2 / (a**2 / 11 + b**2 / 9) - 2)
        one = split(one_relation(20), self.VALUES[:, None])
        assert welch(one, variances(one, "micro"))[0] == pytest.approx(19)
        reach = closed_form(design, self.VALUES[:, None], [Kind.DIFFERENCE])["macro"]
        assert reach.high[0] - reach.estimate[0] == pytest.approx(stats.t.ppf(0.975, 16) * (a + b) ** 0.5)

    @pytest.mark.parametrize("kind", [Kind.SHARE, Kind.RANK, Kind.DIFFERENCE, Kind.RANK_DIFFERENCE])
    def test_facts_of_a_subject_that_agree_count_once(self, kind: Kind):
        values = np.array([1, 0, 0, 1, 1, 0, 1, 0, 1, 1, 0, 0.0])
        once = micro(one_relation(12), values, kind)
        twice = micro(design_of(["P19"] * 24, [i // 2 for i in range(24)]), np.repeat(values, 2), kind)
        assert (twice.low[0], twice.high[0]) == pytest.approx((once.low[0], once.high[0]))

    def test_a_relation_of_one_subject_adds_no_spread_to_a_difference(self):
        design = design_of(["P19"] * 10 + ["P37"], list(range(11)))
        values = np.append(np.arange(10.0), 3.0)
        found = closed_form(design, values[:, None], [Kind.RANK_DIFFERENCE])["macro"]
        assert found.error[0] == pytest.approx(stats.sem(values[:10]) / 2)
        assert np.isfinite([found.low, found.high]).all()


class TestEdges:
    def test_kinds(self):
        assert [kind_of(name) for name in ("R@1", "R@3", "MRR", "mean rank")] == [Kind.SHARE, Kind.SHARE, Kind.BOUNDED, Kind.RANK]
        assert [kind_of(name, difference=True) for name in ("R@1", "MRR", "mean rank")] == [
            *(Kind.DIFFERENCE, Kind.DIFFERENCE, Kind.RANK_DIFFERENCE)
        ]

    @pytest.mark.parametrize("kind", [Kind.RANK, Kind.DIFFERENCE, Kind.RANK_DIFFERENCE])
    def test_where_nothing_varies_there_is_no_interval(self, kind: Kind):
        found = micro(one_relation(9), np.full(9, 1 / 3), kind)
        assert np.isnan([found.low, found.high]).all()

    def test_columns_of_several_kinds_do_not_touch_each_other(self):
        design, values = one_relation(20), np.random.default_rng(2).integers(1, 9, size=(20, 4)).astype(float)
        kinds = [Kind.RANK, Kind.DIFFERENCE, Kind.RANK_DIFFERENCE, Kind.RANK]
        together = closed_form(design, values, kinds)["macro"]
        for place, kind in enumerate(kinds):
            alone = closed_form(design, values[:, [place]], [kind])["macro"]
            assert (together.low[place], together.high[place]) == pytest.approx((alone.low[0], alone.high[0]), rel=1e-12)

    @pytest.mark.parametrize("size", [40, 400])
    def test_it_covers_a_skewed_mean_rank_about_19_times_in_20(self, size: int):
        """2,000 data sets (seed 12) of ranks exp(normal), rounded within 1 … 51; the truth from a million such ranks."""
        generator = np.random.default_rng(12)

        def ranks(*shape: int) -> Floats:
            return np.clip(np.round(np.exp(generator.normal(0.3, 1.8, size=shape))), 1, 51)

        truth = ranks(1_000_000).mean()
        found = closed_form(one_relation(size), ranks(size, 2000), [Kind.RANK] * 2000)["micro"]
        assert 0.93 <= ((found.low <= truth) & (truth <= found.high)).mean() <= 0.97
