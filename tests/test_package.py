"""The library as people install it: a wheel, used from a folder that is not the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from fluent_mlama.cli import COMMANDS, main


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    """The package alone, installed from its wheel into a folder of its own."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    subprocess.run(["git", "clone", "--quiet", "--depth=1", f"file://{root}", source], check=True)
    wheel = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, source]
    subprocess.run(wheel, check=True)
    target = folder / "site"
    (built,) = folder.glob("*.whl")
    subprocess.run([*pip, "install", "--no-deps", "--target", target, built], check=True)
    return target


def run(installed: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [sys.executable, "-m", "fluent_mlama", *words],
        cwd=installed.parent,
        env=environment | {"PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
    )


def test_an_installed_wheel_works_without_the_checkout(installed: Path) -> None:
    listed = run(installed, "list", "starter")
    assert (listed.returncode, listed.stderr) == (0, "")
    assert "Russian" in listed.stdout and "P1376" in listed.stdout
    read = run(installed, "read", "stats", "starter", "-l", "ru")
    assert (read.returncode, read.stderr) == (0, "")
    built = run(
        installed, "build", "-l", "ru", "-r", "P36", "--mlama", "starter",
        "--translator", "phrasebook", "--aliases", "none", "--out", "made",
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    exported = run(installed, "export", "lm-eval", "--data", "starter", "-l", "ru", "--out", "out")
    assert exported.returncode == 0, exported.stderr


def test_every_file_of_the_package_is_in_the_wheel(installed: Path, root: Path) -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "fluent_mlama"], cwd=root, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert [name for name in tracked if not (installed / name).is_file()] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    assert "Usage" in capsys.readouterr().out


def test_an_unknown_command_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rnk"]) == 2
    assert capsys.readouterr().err.startswith("fluent-mlama: error: no command 'rnk'")


def test_the_dependencies_are_those_of_requirements(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["tool"]["setuptools"]["dynamic"]["dependencies"] == {
        "file": ["requirements.txt"]
    }
