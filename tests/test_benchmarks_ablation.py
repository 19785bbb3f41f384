"""The ablation's first and last steps are the two protocols themselves, and a stopped run goes on. No model."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from benchmarks.ablation import make_table, rank_everything
from benchmarks.ablation_steps import STEPS
from fluent_mlama.files import open_source
from fluent_mlama.processor import Processor
from fluent_mlama.ranking.settings import Settings
from fluent_mlama.records.results import read_dump
from tests.stand_in import StandInScorer, city_benchmark

NAME = "cs_P19_template_gt.tsv"


def ranks_of(ranks: pd.DataFrame, step: str, v: str) -> pd.Series:
    chosen = ranks[(ranks["step"] == step) & (ranks["verbalisation"] == v)]
    return chosen.set_index("row")["rank"]


def test_the_ends_of_the_ladder_are_the_protocols(tmp_path: Path) -> None:
    benchmark = city_benchmark(30)
    ranks = rank_everything([benchmark], StandInScorer(), tmp_path / "packs", limit=12)
    assert (
        set(ranks["step"]) == set(STEPS)
        and ranks.groupby(["step", "verbalisation"]).size().eq(12).all()
    )
    for protocol in ("paper", "corrected"):
        Processor(
            benchmark, Settings(model="stand-in", protocol=protocol, out=tmp_path / protocol)
        ).rank(StandInScorer())
    paper = read_dump(open_source(tmp_path / "paper"), NAME).table
    corrected = read_dump(open_source(tmp_path / "corrected"), NAME).table
    for v in ("template", "gt"):
        for step in ("paper", "fp32"):  # the stand-in knows one arithmetic
            first = ranks_of(ranks, step, v)
            assert first.tolist() == [
                min(cell.values()) for cell in paper.loc[first.index, f"{v}_true_ranks"]
            ]
        last = ranks_of(ranks, "mid-ranks", v)
        assert last.tolist() == corrected.loc[last.index, f"{v}_rank"].tolist()


def test_scored_packs_are_not_scored_again_and_the_table_has_every_step(tmp_path: Path) -> None:
    benchmarks = [city_benchmark(30), city_benchmark(24, lang="ru", relation="P36")]
    first, again = StandInScorer(), StandInScorer()
    ranks = rank_everything(benchmarks, first, tmp_path / "packs", limit=None)
    assert rank_everything(benchmarks, again, tmp_path / "packs", limit=None).equals(ranks)
    assert first.packs_scored and not again.packs_scored
    lines = make_table(ranks).splitlines()
    assert [line.split(" | ")[0].strip("| ") for line in lines[2:10]] == list(STEPS)
    assert lines[-1].startswith(
        "42 facts: up to 23 rows that every step can rank in each of 2 files;"
    )
    hits = ranks[(ranks["step"] == "tail") & (ranks["verbalisation"] == "gt")]
    macro = (hits["rank"] <= 1).groupby(hits["language"]).mean().mean()
    assert f"| {macro:.3f} |" in lines[6]
