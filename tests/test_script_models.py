"""Several models in one command: each in its own folder, one in memory at a time, what fails with one is no loss to the others."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import pytest

from fluent_mlama import script
from fluent_mlama.console import UserError, run_main
from fluent_mlama.files import open_source
from fluent_mlama.ranking.arguments import Run
from fluent_mlama.ranking.models import choose_models, folder_name, read_models
from fluent_mlama.ranking.settings import Settings
from fluent_mlama.records.benchmark import write_benchmark
from fluent_mlama.records.results import find_dumps
from fluent_mlama.scoring.contract import Plan, RequestScore, Tokenisation
from tests.stand_in import StandInScorer, city_benchmark
from tests.tiny import byte_level_tokenizer, tiny_model


class Loader:
    """Loads stand-ins; knows which of them are alive when the next is asked for."""

    def __init__(self) -> None:
        self.loaded: list[str] = []
        self.alive_before: list[int] = []
        self.scorers: list[weakref.ref[StandInScorer]] = []

    def __call__(self, asked: Run) -> StandInScorer:
        self.alive_before.append(sum(scorer() is not None for scorer in self.scorers))
        model = asked.settings.model
        self.loaded.append(model)
        if model == "gated":
            raise UserError("model gated is gated: ask for access")
        scorer = {"bug": Broken, "large": Large}.get(model, StandInScorer)(
            model, dtype=asked.settings.dtype
        )
        scorer.itself = scorer  # a cycle, as real models have
        self.scorers.append(weakref.ref(scorer))
        return scorer


class Broken(StandInScorer):
    def plan(self, requests: object, tokenisation: Tokenisation) -> Plan:
        raise KeyError("no such layer")


class Large(StandInScorer):
    def score_pack(
        self, plan: Plan, number: int, arithmetic: str = "float32"
    ) -> dict[int, RequestScore]:
        raise MemoryError


class Desk:
    """A working folder with benchmark files, and a way to type commands in it."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str], loader: Loader) -> None:
        self.folder = folder
        self.loader = loader
        self._capsys = capsys

    def type(self, *words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as exit_:
            run_main(script.main, ("-l", "all", "--out", "stats/run", *words))
        captured = self._capsys.readouterr()
        assert isinstance(exit_.value.code, int)
        return exit_.value.code, captured.out, captured.err

    def dumps(self, folder: str) -> list[str]:
        path = self.folder / folder
        return [name for _, _, name in find_dumps(open_source(path))] if path.exists() else []


@pytest.fixture
def desk(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Desk:
    for lang, relation in (("cs", "P19"), ("cs", "P36"), ("ru", "P19")):
        write_benchmark(city_benchmark(20, lang=lang, relation=relation), tmp_path / "fixed_data")
    monkeypatch.chdir(tmp_path)
    loader = Loader()
    monkeypatch.setattr(script, "load", loader)
    monkeypatch.setattr(script, "check_models", lambda waiting: [])
    return Desk(tmp_path, capsys, loader)


NAMES = ["cs_P19_template_gt.tsv", "cs_P36_template_gt.tsv", "ru_P19_template_gt.tsv"]


def test_each_has_its_own_folder_and_is_gone_before_the_next_is_loaded(desk: Desk) -> None:
    gc.disable()
    try:
        status, out, err = desk.type("--model", "org/A, B ,org/c.gguf")
    finally:
        gc.enable()
    assert status == 0
    assert all(
        desk.dumps(f"{kind}/run/{name}") == NAMES
        for kind in ("stats", "stats_wide")
        for name in ("A", "B", "c")
    )
    assert (desk.loader.loaded, desk.loader.alive_before) == (
        ["org/A", "B", "org/c.gguf"],
        [0, 0, 0],
    )
    assert "model 2 of 3: B, results in stats/run/B\n" in err
    assert err.endswith("compare --stats stats/run/A,stats/run/B,stats/run/c\n")
    table = out.rpartition("signature")[2]
    head, _, *rows = table.partition("lang")[2].splitlines()
    assert head.split() == ["relations", "R@1", "of", "A", "B", "c"]
    assert [row.split()[:-3] for row in rows[:6]] == [
        ["cs", "2", "template"], ["cs", "2", "gt"], ["ru", "1", "template"], ["ru", "1", "gt"], ["all", "template"], ["all", "gt"],
    ]  # fmt: skip
    assert "mean rank of" in table


def test_side_by_side_are_the_means_of_what_each_alone_prints(desk: Desk) -> None:
    alone = [
        desk.type("--model", "B", "-r", relation, "-l", "cs")[1].splitlines()[2:4]
        for relation in ("P19", "P36")
    ]
    expected = [sum(float(lines[v].split()[-3]) for lines in alone) / 2 for v in (0, 1)]
    table = (
        desk.type("--model", "B,A", "-l", "cs", "--out", "stats/two")[1]
        .rpartition("R@1 of")[2]
        .splitlines()
    )
    assert [float(row.split()[3]) for row in table[2:4]] == pytest.approx(expected, abs=0.0011)


def test_it_goes_on_with_the_models_that_are_not_finished(desk: Desk) -> None:
    first = desk.type("--model", "A,B")[1]
    status, again, err = desk.type("--model", "A,B")
    assert (status, again, desk.loader.loaded) == (0, first, ["A", "B"])
    assert err.count("nothing to do, already ranked") == 2
    (desk.folder / "stats/run/B/cs_P36_template_gt.scores.parquet").unlink()
    assert desk.type("--model", "A,B")[0] == 0
    assert desk.loader.loaded == ["A", "B", "B"]


def test_what_fails_with_one_model_is_told_at_the_end(desk: Desk) -> None:
    status, out, err = desk.type("--model", "gated,A,bug,large,B")
    assert status == 2
    assert desk.dumps("stats/run/A") == desk.dumps("stats/run/B") == NAMES
    assert desk.dumps("stats/run/bug") == desk.dumps("stats/run/gated") == []
    last = err.splitlines()[-1]
    assert (
        "error: 3 of 5 models failed, the same command tries them again; model gated is gated: ask for access; "
        in last
    )
    assert "bug: KeyError: 'no such layer'; too little memory for model large" in last
    assert err.count("Traceback") == 1 and "in plan" in err  # a bug keeps its traceback
    assert out.rpartition("R@1 of")[2].split()[:2] == ["A", "B"]
    assert desk.loader.alive_before == [0] * 5


def test_a_full_disk_ends_the_whole_run(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", "stats/run/A/x")

    monkeypatch.setattr(script, "rank", full)
    status, _, err = desk.type("--model", "A,B")
    assert status == 2 and err.splitlines()[-1].endswith("No space left on device at stats/run/A/x; free space or choose another folder, "
                                                         "then run the same command again")  # fmt: skip


def test_a_file_lists_models_with_options_of_their_own(tmp_path: Path) -> None:
    listed = tmp_path / "models.txt"
    listed.write_text(
        "# models\n\norg/A --dtype float16 --revision step1 # early\n"
        'org/A --folder A-late --quantization 8bit\n"my models\\B#1.gguf" --token-budget 64 --trust-remote-code\n',
        encoding="utf-8",
    )
    base = Settings(dtype="bfloat16", out=Path("stats/run"))
    found = [
        (
            one.model,
            one.dtype,
            one.revision,
            one.quantization,
            one.token_budget,
            one.trust_remote_code,
            str(one.out),
        )
        for one in read_models(listed, base)
    ]
    assert found == [
        ("org/A", "float16", "step1", None, None, False, "stats/run/A"),
        ("org/A", "bfloat16", None, "8bit", None, False, "stats/run/A-late"),
        ("my models\\B#1.gguf", "bfloat16", None, None, 64, True, "stats/run/B-1"),
    ]


def test_one_model_in_a_file_has_its_folder_too_and_one_on_the_command_line_has_not(
    desk: Desk,
) -> None:
    (desk.folder / "models.txt").write_text("A", encoding="utf-8")
    assert desk.type("--models", "models.txt")[0] == 0
    assert desk.dumps("stats/run/A") == NAMES
    assert desk.type("--model", "A", "--out", "stats/alone")[0] == 0
    assert desk.dumps("stats/alone") == NAMES


def test_a_path_with_a_comma_is_one_model(desk: Desk) -> None:
    (desk.folder / "a,b").mkdir()
    assert choose_models(Settings(model="a,b")) == ()


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("meta-llama/Llama-2-7b-chat-hf", "Llama-2-7b-chat-hf"), ("models/A.Q8_0.GGUF", "A.Q8_0"), ("C:\\models\\мой gpt\\", "мой-gpt"),
        ("a:b*c", "a-b-c"), ("..x", "x"), ("???", "model"),
    ],
)  # fmt: skip
def test_folder_names_are_safe(name: str, folder: str) -> None:
    assert folder_name(name) == folder


def test_the_folder_of_this_folder_is_its_own_name(desk: Desk) -> None:
    assert folder_name(".") == folder_name("./") == desk.folder.name


@pytest.mark.parametrize(
    ("words", "lines", "told"),
    [
        (
            ["--models", "m.txt"],
            "A --folder B\nB",
            "models A and B would both keep their dumps in stats/run/B",
        ),
        (["--models", "m.txt", "--model", "A"], "A", "exclude each other"),
    ],
)
def test_one_line_and_nothing_loaded(desk: Desk, words: list[str], lines: str, told: str) -> None:
    if lines:
        (desk.folder / "m.txt").write_text(lines, encoding="utf-8")
    status, out, err = desk.type(*words)
    assert (status, out, err.count("\n")) == (2, "", 1) and told in err
    assert desk.loader.loaded == [] and not (desk.folder / "stats").exists()


def test_a_folder_of_another_model_is_refused_before_any_is_loaded(desk: Desk) -> None:
    assert desk.type("--model", "other", "--out", "stats/run/B")[0] == 0
    status, _, err = desk.type("--model", "A,B")
    assert status == 2 and "stats/run/B holds dumps of another model: other, not B" in err
    assert desk.loader.loaded == ["other"] and desk.dumps("stats/run/A") == []


def test_explain_asks_one_model(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        run_main(script.main, ("explain", "-l", "cs", "--subject", "Q1", "--model", "A,B"))
    assert exit_.value.code == 2 and "explain asks one model" in capsys.readouterr().err


@pytest.mark.model
def test_real_models_are_checked_by_name_and_config_before_the_first_is_loaded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_benchmark(city_benchmark(4, lang="cs", relation="P19"), tmp_path / "fixed_data")
    monkeypatch.chdir(tmp_path)
    tokenizer = byte_level_tokenizer()
    for name, architecture in (("one", "llama"), ("two", "gpt2")):
        tiny_model(architecture, len(tokenizer)).save_pretrained(tmp_path / name)
        tokenizer.save_pretrained(tmp_path / name)
    capsys.readouterr()
    (tmp_path / "masked").mkdir()
    (tmp_path / "masked/config.json").write_text(
        '{"model_type": "bert", "architectures": ["BertForMaskedLM"]}', encoding="utf-8"
    )
    with pytest.raises(SystemExit) as exit_:
        run_main(
            script.main,
            (
                "-l",
                "cs",
                "--model",
                "./one,./nowhere,./masked,./two",
                "--device",
                "cpu",
                "--out",
                "stats/run",
            ),
        )
    captured = capsys.readouterr()
    assert exit_.value.code == 2
    first, second, third = captured.err.splitlines()[:3]
    assert (
        "./nowhere not found" in first
        and "masked language model (bert)" in second
        and third.startswith("model 1 of 4: ./one")
    )
    assert "2 of 4 models failed" in captured.err.splitlines()[-1]
    assert captured.out.rpartition("R@1 of")[2].split()[:2] == ["one", "two"]
    with pytest.raises(SystemExit):
        run_main(script.main, ("-l", "cs", "--model", "./nowhere,./masked", "--out", "stats/none"))
    assert (
        "none of the models can be loaded: model folder ./nowhere not found"
        in capsys.readouterr().err.splitlines()[-1]
    )
