"""``stats.py rerank``: a run's own settings give its dumps byte for byte; everything else is as computed by hand."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from fluent_mlama import stats
from fluent_mlama.console import UserError, run_main
from fluent_mlama.files import open_source
from fluent_mlama.processor import Processor
from fluent_mlama.ranking.outputs import check_folder
from fluent_mlama.ranking.settings import Settings
from fluent_mlama.records.results import read_dump, read_run, read_scores, write_run
from tests.stand_in import StandInScorer, city_benchmark

NAME = "cs_P19_template_gt.tsv"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two protocols × two relations, ranked by the stand-in."""
    folder = tmp_path_factory.mktemp("runs")
    for protocol in ("paper", "corrected"):
        settings = replace(
            Settings(),
            model="stand-in",
            protocol=protocol,
            out=folder / "stats" / protocol,
            neutral_prompt="Něco: ",
        )
        for relation in ("P19", "P36"):
            Processor(city_benchmark(25, relation=relation), settings).rank(StandInScorer())
    return folder


def rerank(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as exit_:
        run_main(stats.main, ["rerank", *map(str, words)])
    captured = capsys.readouterr()
    assert isinstance(exit_.value.code, int)
    return exit_.value.code, captured.out, captured.err


@pytest.mark.parametrize("protocol", ["paper", "corrected"])
def test_a_runs_own_settings_give_its_dumps_byte_for_byte(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], protocol: str
) -> None:
    status, out, _ = rerank(
        capsys, "--scores", runs / "stats" / protocol, "--out", tmp_path / "stats/again"
    )
    assert status == 0 and re.search(
        r"cs +template +2 +\d+ +[01]\.\d{3} +[01]\.\d{3} +\d+\.\d\d\n", out
    )
    pairs = (
        [("stats", protocol), ("stats_wide", protocol)]
        if protocol == "paper"
        else [("stats", protocol)]
    )
    for folder, name in pairs:
        old, new = runs / folder / name, tmp_path / folder / "again"
        tables = sorted(path.name for path in old.glob("*.tsv"))
        assert len(tables) == 2 and tables == sorted(path.name for path in new.glob("*.tsv"))
        for kind in ("tsv", "run.json"):
            for path in old.glob(f"*.{kind}"):
                assert (new / path.name).read_bytes() == path.read_bytes()


def test_another_linking_function_is_what_its_formula_says(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scores = read_scores(runs / "stats/corrected" / NAME.replace(".tsv", ".scores.parquet"))
    facts = scores[(scores["row"] == 0) & (scores["verbalisation"] == "gt")]
    lengths = facts["token_ids"].str.len()
    by_hand = {
        "mean": facts["logprob"] / lengths,
        "slln:0.5": facts["logprob"] / lengths**0.5,
        "penlp:0.8": facts["logprob"] / ((5 + lengths) / 6) ** 0.8,
        "pmi": facts["logprob"] - facts["neutral_logprob"],
        "per-char": facts["logprob"]
        / (facts["candidate"].str.len() + 2),  # a blank before, a stop behind
    }
    for linking, values in by_hand.items():
        out = tmp_path / linking.replace(":", "-")
        assert (
            rerank(
                capsys, "--scores", runs / "stats/corrected", "--linking", linking, "--out", out
            )[0]
            == 0
        )
        row = read_dump(open_source(out), NAME).table.loc[0]
        best = values.groupby(facts["entity"]).max().sort_values(ascending=False)
        gold = facts["obj_uri"].iloc[0]
        assert row["gt_logprob"] == pytest.approx(best[gold])
        assert row["gt_rank"] == 1 + best.index.get_loc(gold)
        record = read_run(out / NAME.replace(".tsv", ".run.json"))
        assert (
            f"|corrected+{linking}|" in record.signature
            and record.extras["reranked"]["linking"] == linking
        )


def test_unigrams_are_looked_up_by_token_id(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--scores", runs / "stats/paper", "--linking", "slor", "--out", tmp_path / "slor"]
    status, _, err = rerank(capsys, *words)
    assert (
        status == 2
        and "--linking slor needs token frequencies: give --unigrams FILE, or --unigrams counts"
        in err
    )
    table = "{" + ", ".join(f'"{code}": 0.001' for code in range(1, 600)) + "}"
    (tmp_path / "unigrams.json").write_text(table, encoding="utf-8")
    assert rerank(capsys, *words, "--unigrams", tmp_path / "unigrams.json")[0] == 0
    flat = read_dump(open_source(tmp_path / "slor"), NAME).table
    assert (
        rerank(
            capsys,
            "--scores",
            runs / "stats/paper",
            "--linking",
            "mean",
            "--out",
            tmp_path / "mean",
        )[0]
        == 0
    )
    mean = read_dump(
        open_source(tmp_path / "mean"), NAME
    ).table  # one probability for all: the same order as the mean
    assert flat["gt_true_ranks"].equals(mean["gt_true_ranks"])
    assert (
        rerank(
            capsys,
            "--scores",
            runs / "stats/paper",
            "--linking",
            "slor",
            "--unigrams",
            "counts",
            "--out",
            tmp_path / "c",
        )[0]
        == 0
    )
    assert (
        "|paper+slor(counts_of_the_candidates)|"
        in read_run(tmp_path / "c" / NAME.replace(".tsv", ".run.json")).signature
    )


def test_ties_and_further_k(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = rerank(
        capsys,
        "--scores",
        runs / "stats/paper",
        "--ties",
        "worst",
        "--k",
        "5,1,3",
        "--out",
        tmp_path / "worst",
    )
    assert status == 0 and "R@1" in out and "R@5" in out
    table = read_dump(open_source(tmp_path / "worst"), NAME).table
    recall = [int(min(ranks.values()) <= 5) for ranks in table["gt_true_ranks"]]
    assert table["gt_top5_correct"].astype(int).tolist() == recall
    assert (
        "|ties:correct-last|"
        in read_run(tmp_path / "worst" / NAME.replace(".tsv", ".run.json")).signature
    )


def test_each_protocols_scores_by_the_others_rule(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        rerank(
            capsys,
            "--scores",
            runs / "stats/paper",
            "--protocol",
            "corrected",
            "--out",
            tmp_path / "a",
        )[0]
        == 0
    )
    dump = read_dump(open_source(tmp_path / "a"), NAME)
    assert dump.protocol == "corrected"
    wide = read_dump(open_source(runs / "stats_wide/paper"), NAME).table
    expected = []  # the form of the sentence among the distractors alone
    for form, ranks in zip(wide["gt_infl_object"], wide["gt_true_ranks"], strict=True):
        expected.append(float(ranks[form] - sum(rank < ranks[form] for rank in ranks.values())))
    assert dump.table["gt_rank"].tolist() == expected
    assert (
        rerank(
            capsys,
            "--scores",
            runs / "stats/corrected",
            "--protocol",
            "paper",
            "--out",
            tmp_path / "stats/b",
        )[0]
        == 0
    )
    assert read_dump(open_source(tmp_path / "stats/b"), NAME).protocol == "paper"
    assert (
        "|corrected-scores/paper-ranks|"
        in read_run(tmp_path / "stats/b" / NAME.replace(".tsv", ".run.json")).signature
    )


BAD = {
    "unknown ties": (["--ties", "best"], 'Invalid value "best" for --ties'),
    "no such language": (["--langs", "ru"], "no rank dump in"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_words_get_one_line(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    words, message = BAD[case]
    status, out, err = rerank(
        capsys, "--scores", runs / "stats/paper", "--out", tmp_path / "out", *words
    )
    assert (status, out) == (2, "") and message in err and err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_folders_that_must_not_be_written_or_read(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paper = runs / "stats/paper"
    assert (
        "is the folder that the scores come from"
        in rerank(capsys, "--scores", paper, "--out", paper)[2]
    )
    assert (
        "holds dumps of another making"
        in rerank(capsys, "--scores", paper, "--out", runs / "stats/corrected")[2]
    )
    rerank(capsys, "--scores", paper, "--linking", "mean", "--out", tmp_path / "mean")
    assert (
        rerank(capsys, "--scores", paper, "--linking", "mean", "--out", tmp_path / "mean")[0] == 0
    )
    assert (
        "holds dumps of another making"
        in rerank(capsys, "--scores", paper, "--out", tmp_path / "mean")[2]
    )
    other = Path(shutil.copytree(paper, tmp_path / "other weights"))
    for run in other.glob("*.run.json"):
        write_run(run, replace(read_run(run), revision="local-0123456789abcdef"))
    assert (
        "holds dumps of another making"
        in rerank(capsys, "--scores", other, "--linking", "mean", "--out", tmp_path / "mean")[2]
    )
    with pytest.raises(UserError, match="another ranking rule .stats.py rerank made them"):
        check_folder(Settings(model="stand-in", out=tmp_path / "mean"), open_source(paper), [])
    assert (
        "was itself ranked again"
        in rerank(capsys, "--scores", tmp_path / "mean", "--out", tmp_path / "x")[2]
    )
    for name in ("a.tsv", "cs_P19_template_gt.tsv"):
        (tmp_path / "bare").mkdir(exist_ok=True)
        (tmp_path / "bare" / name).write_bytes((paper / NAME).read_bytes())
    assert (
        "no run record" in rerank(capsys, "--scores", tmp_path / "bare", "--out", tmp_path / "x")[2]
    )
    assert "no rank dump in" in rerank(capsys, "--scores", tmp_path, "--out", tmp_path / "x")[2]


def test_pmi_asks_for_scores_behind_a_neutral_prompt(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Processor(city_benchmark(9), Settings(model="stand-in", out=tmp_path / "stats/x")).rank(
        StandInScorer()
    )
    status, _, err = rerank(
        capsys, "--scores", tmp_path / "stats/x", "--linking", "pmi", "--out", tmp_path / "y"
    )
    assert status == 2 and "rank with script.py --neutral-prompt TEXT for pmi" in err
