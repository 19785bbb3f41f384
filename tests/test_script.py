"""The command line of ``script.py``: what it makes, what it says, and one clear line for every mistake."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from fluent_mlama import script
from fluent_mlama.console import run_main
from fluent_mlama.files import open_source
from fluent_mlama.ranking.arguments import Run
from fluent_mlama.records.benchmark import write_benchmark
from fluent_mlama.records.results import find_dumps, read_dump
from tests.stand_in import StandInScorer, city_benchmark, small_benchmark

PAPERS_OWN = "P101,P103,P108,P127,P1376,P159,P19,P20,P36,P364,P407,P449,P463,P495,P740"


class Desk:
    """A working folder with benchmark files, and a way to type commands in it."""

    def __init__(
        self, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.folder = folder
        self._capsys = capsys
        self.scorers: list[StandInScorer] = []
        monkeypatch.chdir(folder)
        monkeypatch.setattr(script, "load", self._load)

    def _load(self, asked: Run) -> StandInScorer:
        self.scorers.append(StandInScorer(asked.settings.model))
        return self.scorers[-1]

    def type(self, *words: str) -> tuple[int, str, str]:
        """Exit status, standard output, standard error of `script.py words`."""
        with pytest.raises(SystemExit) as exit_:
            run_main(script.main, words)
        captured = self._capsys.readouterr()
        assert isinstance(exit_.value.code, int)
        return exit_.value.code, captured.out, captured.err

    def files(self) -> set[str]:
        return {
            str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file()
        }


@pytest.fixture
def desk(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Desk:
    for lang, relation in (("cs", "P19"), ("cs", "P36"), ("ru", "P19")):
        write_benchmark(city_benchmark(20, lang=lang, relation=relation), tmp_path / "fixed_data")
    return Desk(tmp_path, capsys, monkeypatch)


def test_what_was_found_without_its_name_is_ranked_only_where_asked_for(desk: Desk) -> None:
    benchmark = small_benchmark(
        *["Praha|Narodil se v |Praze|", "Brno|Narodil se v |Brně|"] * 3, relation="P20"
    )
    benchmark.table["gt_status"] = [
        "ok;inflected",
        "ok;frame;unsure",
        "length",
        "ok",
        "ok;similar;unsure",
        "ok",
    ]
    write_benchmark(benchmark, desk.folder / "fixed_data")
    asked = ("-l", "cs", "-r", "P20", "--model", "stand-in", "--out", "stats/x")
    status, out, _ = desk.type(*asked)
    assert (
        status == 0
        and (
            "left out, cs P20: 1 × gt: frame, 1 × gt: length, 1 × gt: unsure "
            "(2 found without evidence from the object's name: --accept-unsure ranks them too)"
        )
        in out
    )
    record = json.loads(
        (desk.folder / "stats/x/cs_P20_template_gt.run.json").read_text(encoding="utf-8")
    )
    assert record["rows_left_out"] == {"gt: frame": 1, "gt: length": 1, "gt: unsure": 1}
    assert (
        "|rules:1|" in record["signature"] and record["extras"]["asked"]["accept_unsure"] is False
    )
    status, _, err = desk.type(*asked, "--accept-unsure")
    assert status == 2 and "edition of the protocol: 1, not 1+accept-unsure" in err
    status, out, _ = desk.type(*asked[:-1], "stats/y", "--accept-unsure")
    assert (
        status == 0
        and "left out, cs P20: 1 × gt: length\n" in out
        and "|rules:1+accept-unsure|" in out
    )


def test_one_command_ranks_and_the_second_does_nothing(desk: Desk) -> None:
    status, out, err = desk.type(
        "-l", "cs", "-r", "P19,P36", "--model", "stand-in", "--out", "stats/x"
    )
    assert status == 0 and re.fullmatch(
        r"(cs P(19|36): 18 facts in \d+ s \([\d.]+ facts/s\)\n){2}", err
    )
    assert re.search(
        r"cs +P19 +20 +18 +2 +template +0\.\d{3} +0\.\d{3} +\d+\.\d\d\n +gt +0\.\d{3}", out
    )
    assert "left out, cs P36: 2 × gt: object not found" in out
    assert "stats/x/cs_P19_template_gt.tsv" in out and "stats_wide/x/cs_P19_template_gt.tsv" in out
    assert (
        "signature stand-in@local|float32|float32|hash|tok:separate|bos:0|paper|rules:1|pool:50|sample:sha256-of-form|"
        in out
    )
    made = desk.files()
    assert {name for name in made if name.startswith("stats")} == {
        f"{folder}/x/cs_{relation}_template_gt.{kind}"
        for relation in ("P19", "P36")
        for folder, kind in (
            ("stats", "tsv"), ("stats", "run.json"), ("stats", "scores.parquet"), ("stats_wide", "tsv"), ("stats_wide", "run.json"),
        )
    }  # fmt: skip
    status, again, err = desk.type(
        "-l", "cs", "-r", "P19,P36", "--model", "stand-in", "--out", "stats/x"
    )
    assert status == 0 and again == out and len(desk.scorers) == 1
    assert err.startswith(
        "nothing to do, already ranked: cs P19, cs P36 (--overwrite ranks them again)\nwhether the model is still"
    )
    status, _, err = desk.type("-l", "all", "--model", "stand-in", "--out", "stats/x")
    assert status == 0 and "already ranked: cs P19, cs P36 (" in err
    assert "stats/x/ru_P19_template_gt.tsv" in desk.files()


def test_the_papers_own_line_works_as_it_stands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for relation in PAPERS_OWN.split(","):
        write_benchmark(
            city_benchmark(3, lang="ru", relation=relation, spec="20prompt"),
            tmp_path / "fixed_data",
        )
    desk = Desk(tmp_path, capsys, monkeypatch)
    status, _, _ = desk.type("-l", "ru", "-r", PAPERS_OWN)
    assert status == 0
    assert (
        len(find_dumps(open_source(tmp_path / "stats")))
        == len(find_dumps(open_source(tmp_path / "stats_wide")))
        == 15
    )
    assert desk.scorers[0].name == "meta-llama/Llama-2-7b-chat-hf"


def test_what_was_typed_about_the_model_reaches_the_engine(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Run] = []
    monkeypatch.setattr(script, "rank", lambda run, _: seen.append(run))
    words = "--revision r --dtype bfloat16 --device cpu --quantization 8bit --trust-remote-code --scoring-method plain"
    desk.type("-l", "cs", "--model", "m", *words.split(), "--token-budget", "64")
    assert seen[0].settings.load_options().causal() == {
        "device": "cpu", "dtype": "bfloat16", "revision": "r", "device_map": None, "trust_remote_code": True, "quantization": "8bit",
        "path": "plain", "token_budget": 64,
    }  # fmt: skip


def test_a_zip_is_as_good_as_a_folder(desk: Desk) -> None:
    with zipfile.ZipFile(desk.folder / "data.zip", "w") as archive:
        for path in sorted((desk.folder / "fixed_data").iterdir()):
            archive.write(path, f"fixed_data/{path.name}")
    desk.type("-l", "cs", "-r", "P19", "--out", "stats/a")
    desk.type("-l", "cs", "-r", "P19", "--out", "stats/b", "--data", "data.zip")
    (desk.folder / "published").mkdir()
    (desk.folder / "data.zip").rename(desk.folder / "published/fixed_data.zip")
    desk.type("-l", "cs", "-r", "P19", "--out", "stats/c", "--data", "published")
    for kind in ("tsv", "run.json", "scores.parquet"):
        assert (
            len(
                {
                    (desk.folder / f"stats/{name}/cs_P19_template_gt.{kind}").read_bytes()
                    for name in "abc"
                }
            )
            == 1
        )


def test_two_files_for_one_relation_ask_for_a_spec(desk: Desk) -> None:
    write_benchmark(city_benchmark(9, spec="nogpt"), desk.folder / "fixed_data")
    status, _, err = desk.type("-l", "cs", "-r", "P19")
    assert (
        status == 2
        and "cs_P19_nogpt.tsv, cs_P19_test.tsv): choose one with --variant nogpt or --variant test"
        in err
    )
    status, out, _ = desk.type("-l", "cs", "-r", "P19", "--variant", "nogpt")
    assert status == 0 and re.search(r"cs +P19 +9 ", out)
    status, _, err = desk.type("-l", "cs", "--variant", "20prompt")
    assert (
        status == 2 and "no file of variant '20prompt' in fixed_data: there are nogpt, test" in err
    )


def test_modes_that_contradict_the_columns_are_refused(desk: Desk) -> None:
    assert desk.type("-l", "cs", "-r", "P19", "-m", "2")[0] == 0
    status, _, err = desk.type("-l", "cs", "-r", "P19", "-m", "3", "--out", "stats/m")
    assert (
        status == 2
        and "-m 3 contradicts cs_P19_test.tsv, whose columns hold 2 verbalisations (template, gt)"
        in err
    )


def test_a_pair_that_is_missing_among_several_languages_is_said(desk: Desk) -> None:
    status, _, err = desk.type("-l", "cs,ru", "-r", "P19,P36")
    assert status == 0 and "not in fixed_data, passed over: ru P36" in err
    assert len(find_dumps(open_source(desk.folder / "stats"))) == 3


def test_a_limited_run_is_made_anew_in_full(desk: Desk) -> None:
    desk.type("-l", "cs", "-r", "P19", "--limit", "2")
    status, out, err = desk.type("-l", "cs", "-r", "P19")
    assert status == 0 and "is made again: it was made with --limit 2\n" in err
    assert "beyond --limit" not in out and "|limit:none|" in out


def test_a_dump_changed_by_hand_is_said_and_kept(desk: Desk) -> None:
    desk.type("-l", "cs", "-r", "P19")
    path = desk.folder / "stats/cs_P19_template_gt.tsv"
    changed = path.read_text(encoding="utf-8").replace("Praha.", "Prag.")
    path.write_text(changed, encoding="utf-8")
    status, _, err = desk.type("-l", "cs", "-r", "P19")
    assert (
        status == 0
        and "cs P19: stats/cs_P19_template_gt.tsv or its wide twin was cut off, damaged or changed"
        in err
    )
    assert path.read_text(encoding="utf-8") == changed


def test_explain_prints_one_fact_best_first(desk: Desk) -> None:
    status, out, _ = desk.type("explain", "-l", "cs", "-r", "P19", "--subject", "Q3")
    assert status == 0
    assert "cs_P19_test.tsv row 3, gt: s3 (Q3), P19, Ostrava (Q103)" in out
    assert "prompt     'Osoba 3 se narodila v '" in out and "⟦Ostravě⟧" in out
    lines = re.findall(r"^ *(\d*) +(\d+) +(-\d+\.\d{4}) +(\S+)", out.split("row 3, gt")[1], re.M)
    scored = [float(logprob) for _, _, logprob, _ in lines]
    assert scored == sorted(scored, reverse=True) and [int(wide) for _, wide, *_ in lines] == list(
        range(1, 19)
    )
    narrow = [int(rank) for rank, *_ in lines if rank]
    assert narrow == list(range(1, len(narrow) + 1)) and len(narrow) < 18
    assert re.search(r"\d+ +-\d+\.\d{4} +Ostravě +correct +'O':-\d", out)
    assert re.search(r"Ostrau +alias \(correct in the wide ranks\)", out)
    assert desk.type("explain", "-l", "all", "--subject", "Q3")[1].count("row 3, gt") == 3
    status, _, err = desk.type("explain", "-l", "cs", "--subject", "Q9")
    assert (
        status == 2
        and "Q9 is left out (cs_P19_test.tsv row 9: gt: object not found; cs_P36_test.tsv row 9"
        in err
    )
    status, _, err = desk.type("explain", "-l", "cs", "-r", "P19", "--subject", "Q777")
    assert status == 2 and "--subject Q777 is in none of cs_P19_test.tsv" in err
    assert not [name for name in desk.files() if name.startswith("stats")]
    assert desk.type("-l", "cs", "-r", "P19", "--out", "stats/x")[0] == 0
    for folder, column in (("stats", 0), ("stats_wide", 1)):
        dump = read_dump(
            open_source(desk.folder / folder / "x"), "cs_P19_template_gt.tsv"
        ).table.loc[3, "gt_true_ranks"]
        assert {form: int(line[column]) for line in lines if (form := line[3]) in dump} == dump


def test_explain_shows_entities_where_the_protocol_ranks_them(desk: Desk) -> None:
    status, out, _ = desk.type(
        "explain", "-l", "cs", "-r", "P19", "--subject", "Q3", "--protocol", "corrected"
    )
    assert status == 0
    text = out.split("row 3, gt")[1]
    assert (
        "prompt     'Osoba 3 se narodila v'" in text and "Osoba 3 se narodila v ⟦Ostravě⟧." in text
    )
    assert re.search(r"\d +Q103 +-\d+\.\d{4} +Ostrav.* +correct", text) and re.search(
        r"Ostravě +correct, own form +' ':-\d", text
    )
    assert re.search(r"by own forms alone: mid-rank \d of 6", text)


def test_a_full_disk_gets_one_line_and_the_run_goes_on_afterwards(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, write = 0, Path.write_bytes

    def fill_up(path: Path, data: bytes) -> int:
        nonlocal written
        written += len(data)
        if written > 12_000:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return write(path, data)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", fill_up)
        status, out, err = desk.type("-l", "cs", "-r", "P19")
    assert (status, out) == (2, "")
    assert re.fullmatch(
        r".*: error: No space left on device at stats/.*; free space or choose another folder, then run .*\n",
        err,
    )
    assert not [
        name
        for name in desk.files()
        if name.endswith((".tsv", ".partial")) and name.startswith("stats")
    ]
    assert desk.type("-l", "cs", "-r", "P19")[0] == 0
    assert 0 < len(desk.scorers[1].packs_scored) < 6


@pytest.mark.parametrize(
    "words",
    [
        ("--out", "a" * 300), ("--data", "a" * 300), ("--out", ""), ("--model", " "), ("--limit", "²"), ("-r", ""),
        ("--logprob-precision", "exact"),
    ],
)  # fmt: skip
def test_odd_values_get_one_line(desk: Desk, words: tuple[str, str]) -> None:
    status, out, err = desk.type("-l", "cs", "-r", "P19", *words)
    assert (status, out) == (2, "") and err.count("\n") == 1


@pytest.fixture
def engine_desk(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """The desk with the real engine's loader."""
    monkeypatch.undo()
    monkeypatch.chdir(desk.folder)
    return desk


@pytest.mark.parametrize("case", ["no such model", "folder without a tokenizer", "seq2seq model"])
def test_models_that_cannot_be_used_get_one_line(engine_desk: Desk, case: str) -> None:
    config = {
        "no such model": None,
        "folder without a tokenizer": {"model_type": "llama"},
        "seq2seq model": {"model_type": "t5"},
    }[case]
    name = "nobody/no-such-model"
    if config is not None:
        name = "model"
        (engine_desk.folder / "model").mkdir()
        (engine_desk.folder / "model/config.json").write_text(json.dumps(config), encoding="utf-8")
    status, out, err = engine_desk.type("-l", "cs", "-r", "P19", "--model", name)
    lines = [line for line in err.splitlines() if "error:" in line]
    assert (status, out) == (2, "")
    assert (
        len(lines) == 1
        and err.splitlines()[-1] == lines[0]
        and name in lines[0]
        and "Traceback" not in err
    )
    assert not list(engine_desk.folder.glob("stats/*"))


def test_nothing_heavy_is_imported_before_the_arguments_are_good(root: Path, desk: Desk) -> None:
    code = (
        "import sys\nfrom fluent_mlama import script\n"
        "try:\n    script.main(sys.argv[1:])\n"
        "except BaseException as e:\n    print(type(e).__name__)\n"
        "print('torch' in sys.modules, 'pandas' in sys.modules)"
    )
    environment = os.environ | {"PYTHONPATH": str(root)}

    def run(*words: str) -> list[str]:
        command = [sys.executable, "-c", code, *words]
        return subprocess.run(
            command, cwd=desk.folder, env=environment, capture_output=True, text=True, check=True
        ).stdout.splitlines()[-2:]

    assert run("--help")[1] == "False False"
    assert run("-l", "xx") == ["UserError", "False False"]
    assert run("-l", "cs", "-r", "P9999") == ["UserError", "False True"]
    bad = subprocess.run(
        [sys.executable, str(root / "script.py"), "-l", "xx"],
        cwd=desk.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (
        bad.returncode == 2
        and bad.stdout == ""
        and bad.stderr.startswith("script.py: error: unknown language 'xx'")
    )
    assert bad.stderr.count("\n") == 1


def test_published_columns_and_order(desk: Desk) -> None:
    desk.type("-l", "cs", "-r", "P19")
    head = (
        (desk.folder / "stats/cs_P19_template_gt.tsv")
        .read_text(encoding="utf-8")
        .split("\n")[0]
        .split("\t")
    )
    benchmark = (
        (desk.folder / "fixed_data/cs_P19_test.tsv")
        .read_text(encoding="utf-8")
        .split("\n")[0]
        .split("\t")
    )
    results = [
        f"{v}_{part}"
        for v in ("template", "gt")
        for part in ("true_ranks", "top1_correct", "prompt_prob", "top3_correct")
    ]
    assert head == ["", *benchmark, *results]
    assert read_dump(open_source(desk.folder / "stats"), "cs_P19_template_gt.tsv").table[
        "aliases"
    ].iloc[0] == ["Prague", "Praha"]
