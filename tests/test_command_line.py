"""A typed function as a command: what the words become, and the one line that wrong words get."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pytest
from cyclopts import Parameter

from fluent_mlama.command_line import Commands, run_command
from fluent_mlama.options import ClusterOptions, Cutoffs, Files, Langs, Limit, LoadOptions, Seed

Stats = Annotated[Files, Parameter(help="rank dumps")]

seen: dict[str, object] = {}


def command(
    *,
    langs: Langs,
    stats: Stats = (Path("stats"),),
    k: Cutoffs = (1, 3, 5),
    seed: Seed = 0,
    limit: Limit | None = None,
    dry: bool = False,
    loading: LoadOptions = LoadOptions(),
    where: ClusterOptions = ClusterOptions(),
) -> None:
    """Look at something.

        program look --langs ru

    Args:
        dry: only look
    """
    seen.clear()
    seen.update(locals())


def run(*words: str) -> int:
    return run_command(command, words, program="program look")


def test_words_become_typed_values(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("-l", "ru,cs,ru", "--langs", "de", "--k", "3,1,3", "--stats", "a,b", "--dry") == 0
    assert (seen["langs"], seen["k"], seen["dry"]) == (("ru", "cs", "de"), (3, 1), True)
    assert (seen["stats"], seen["limit"]) == ((Path("a"), Path("b")), None)
    run("-l", "x", "--device", "cuda:1", "--quantization", "8bit")
    assert seen["loading"] == LoadOptions(device="cuda:1", quantization="8bit")
    assert capsys.readouterr() == ("", "")


def test_a_flag_of_the_last_release_works_with_a_notice(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--lang", "ru", "--path=plain") == 0
    assert seen["langs"] == ("ru",) and seen["loading"] == LoadOptions(scoring_method="plain")
    notices = capsys.readouterr().err.splitlines()
    assert [line.split(";")[0] for line in notices] == [
        "--lang is now --langs",
        "--path is now --scoring-method",
    ]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ([], "--langs is required"),
        (["--langs"], "--langs needs a value"),
        (["-l", ","], "--langs: an empty list; name at least one, for example ru,cs"),
        (["-l", "x", "--k", "0"], "--k: '0' is not a list of whole numbers from 1, such as 1,3,5"),
        (["-l", "x", "--limit", "1_0"], "--limit: '1_0' is not a whole number from 1"),
        (["-l", "x", "--seed", str(2**32)], "is not a whole number from 0 to 4294967295"),
        (["-l", "x", "--stats", " "], "--stats: an empty name"),
        (["-l", "x", "--executor", "r"], 'Choose from: "local", "ray"'),
        (["-l", "x", "--address", "host"], "--address: 'host' is not an address"),
        (["-l", "x", "more"], "unexpected argument 'more'"),
        (["-l", "x", "--lagns", "y"], "Unknown option: --lagns. Did you mean --langs?"),
        (["-l", "x", "--no-dry"], "Unknown option: --no-dry"),
    ],
)
def test_wrong_words_are_one_line(
    words: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*words) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith("program look: error: ") and line in said
    assert said.endswith("(see program look --help)")


def test_help_shows_purpose_options_defaults_and_examples(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("--help") == 0
    text = capsys.readouterr().out
    for part in ("Look at something.", "only look", "[default: 1,3,5]", "    program look --langs"):
        assert part in text


def test_a_program_of_commands(capsys: pytest.CaptureFixture[str]) -> None:
    program = Commands("program", "All of it.", {"look": (f"{__name__}:command", "look at it")})
    assert program.run(["look", "-l", "ru"]) == 0
    assert program.run(["--help"]) == 0
    assert "look  look at it" in capsys.readouterr().out
    for words, wrong in (([], "name a command"), (["lok"], "no command 'lok'")):
        assert program.run(words) == 2
        assert capsys.readouterr().err == f"program: error: {wrong}; there are look\n"
