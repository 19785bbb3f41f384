"""The house obeys its plan (docs/architecture.md): who imports whom, what output folders hold, how files are sized."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

FLOOR = {"fluent.console", "fluent.commands", "fluent.json_text", "fluent.languages", "fluent.patience", "fluent.pickles", "fluent"}
ROOMS = ("records", "translating", "locating", "scoring", "linking", "ranking", "reporting", "fluency", "exporting")
FLUENT = {f"fluent.{room}" for room in ROOMS}
CONTRACT = "fluent.scoring.contract"
EXECUTORS = "fluent.scoring.executors"
IDENTITY = "fluent.scoring.identity"
LIGHT = {CONTRACT, EXECUTORS, IDENTITY}

ALLOWED: dict[str, set[str]] = {
    "reader": {"fluent.records"},
    "datamodifier": {"reader", "fluent.translating", "fluent.locating", "fluent.records"},
    "processor": {"fluent.ranking", "fluent.scoring", "fluent.records"},
    "script": {"processor", "fluent.ranking", "fluent.scoring", "fluent.exporting", "fluent.records"},
    "stats": {"fluent.reporting", "fluent.ranking", "fluent.linking", "fluent.records"},
    "grammeval": {"fluent.fluency", "fluent.reporting"},
    "fluent.console": set(),
    "fluent.commands": {"fluent.console"},
    "fluent.json_text": {"fluent.console"},
    "fluent.patience": {"fluent.console"},
    "fluent.pickles": {"fluent.console"},
    "fluent.languages": set(),
    "fluent.records": set(),
    "fluent.translating": {"fluent.records", "fluent.locating", "fluent.scoring"},
    "fluent.locating": set(),
    "fluent.scoring": {"fluent.linking"},
    "fluent.linking": set(),
    "fluent.ranking": {"fluent.records", "fluent.linking", CONTRACT, EXECUTORS, IDENTITY},
    "fluent.reporting": {"fluent.records", "fluent.ranking", "fluent.linking"},
    "fluent.exporting": {"fluent.records", "fluent.ranking"},
    "fluent.fluency": {"fluent.reporting", "fluent.translating", "fluent.scoring", "fluent.ranking", "fluent.linking", "fluent.records"},
    "probes": FLUENT | {"reader"},
    "data": {"fluent.translating", "fluent.records"},
}
TORCH = {"torch", "transformers", "accelerate", "gguf"}
TEXT_KINDS = {".py", ".md", ".toml", ".ipynb", ".cff", ".json", ".txt", ".html"}
OUTPUT_FOLDERS = ("chatgpt_prompts", "fixed_data", "stats", "stats_wide", "graphs", "tables")


def source_files(root: Path) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py"], cwd=root, capture_output=True, text=True, check=True
    ).stdout.split()
    return [root / name for name in listed if not name.startswith(("tests/", "benchmarks/", "docs/")) and (root / name).exists()]


def room_of(module: str) -> str:
    """The room a module belongs to: ``fluent.scoring.causal`` -> ``fluent.scoring``."""
    parts = module.split(".")
    return parts[0] if parts[0] != "fluent" else ".".join(parts[:2])


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module is not None
            names |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
    return names


def violations(root: Path) -> list[str]:
    ours = set(ALLOWED) | {"fluent", "probes"}
    found = []
    for path in source_files(root):
        module = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
        room = room_of(module)
        if room not in ALLOWED:
            continue
        for name in imported(path):
            target = room_of(name)
            if target.split(".")[0] not in {"fluent", "probes"} and target not in ours:
                if target in TORCH and room != "fluent.scoring" and not room.startswith("probes"):
                    found.append(f"{module} imports {name}: only fluent.scoring knows torch")
                continue
            if target == room or target in FLOOR or target in ALLOWED[room]:
                continue
            if any(name.startswith(light) for light in LIGHT & ALLOWED[room]):
                continue
            if target not in ALLOWED:  # a name imported from the package itself, such as fluent.__version__
                continue
            found.append(f"{module} imports {name}")
    return sorted(set(found))


def test_rooms_import_only_what_the_plan_allows(root: Path) -> None:
    assert violations(root) == []


def test_every_room_of_the_plan_stands_in_the_architecture_page(root: Path) -> None:
    page = (root / "docs" / "architecture.md").read_text(encoding="utf-8")
    for room in ALLOWED:
        name = room.replace(".", "/")
        assert name in page, f"docs/architecture.md does not mention {name}"


@pytest.mark.parametrize("folder", OUTPUT_FOLDERS)
def test_output_folders_are_no_packages(root: Path, folder: str) -> None:
    assert not list((root / folder).rglob("__init__.py"))


def test_stats_is_the_module_and_not_the_folder(root: Path) -> None:
    where = subprocess.run(
        [sys.executable, "-c", "import stats; print(stats.__file__)"], cwd=root, capture_output=True, text=True, check=True
    ).stdout.strip()
    assert where == str(root / "stats.py")


def test_no_path_of_one_machine_in_tracked_text(root: Path) -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True, check=True).stdout.split("\n")
    machine = re.compile(r"(?<![\w.])/(work|root|home/\w+)/")
    hits = []
    for name in listed:
        path = root / name
        if path.suffix in TEXT_KINDS and path.is_file() and name != "tests/test_architecture.py":
            text = path.read_text(encoding="utf-8")
            hits += [f"{name}: {match.group()}" for match in machine.finditer(text)]
    assert hits == []


CASE_OF_ITS_OWN = {
    "fluent/languages.py": "the folding itself",
    "fluent/locating/text.py": "looser: all four letters i are one, so that no language is needed",
    "fluent/translating/checks.py": "opening words of refusals",
    "fluent/translating/cleaning.py": "keys of a translator's request",
    "fluent/translating/phrasebook.py": "one Ukrainian letter",
    "fluent/translating/phrasebook_check.py": "Unicode names",
    "fluent/translating/file.py": "names of columns",
    "fluent/translating/codes.py": "language codes",
    "fluent/translating/google.py": "an error message of a service",
    "fluent/reporting/audit_text.py": "English keys of a translator's request",
    "fluent/records/names.py": "device names of Windows",
    "fluent/records/download.py": "hexadecimal digits",
    "fluent/ranking/models.py": "file suffixes; file systems know no language",
    "fluent/ranking/settings.py": "file names",
    "fluent/fluency/lm.py": "file names",
    "fluent/scoring/text_tokens.py": "how tokenizers written in Python fold case",
    "fluent/fluency/comet.py": "error messages",
    "fluent/scoring/failures.py": "error messages",
    "fluent/scoring/identity.py": "file suffixes",
    "fluent/linking.py": "names of options",
    "probes/cpopqa/cleaning.py": "English names of holidays",
    "probes/cpopqa/ngrams.py": "names of columns",
    "probes/cpopqa/calendars.py": "yes and no",
    "probes/zhoblimp/generator.py": "the first letter of an English or German sentence",
    "probes/zhoblimp/matcher.py": "the same letter, read back",
    "probes/zhoblimp/training/sizes.py": "units of numbers",
}
"""Where case is none of a language's text, and why. Everything else compares by ``fluent.languages.fold_case``."""
CASE = re.compile(r"\.(lower|upper|casefold|swapcase|title)\(\)|\bIGNORECASE\b|\bre(gex)?\.I\b|\(\?i\)")


def test_case_is_folded_by_language(root: Path) -> None:
    cased = {str(path.relative_to(root)) for path in source_files(root) if CASE.search(path.read_text(encoding="utf-8"))}
    assert sorted(cased - set(CASE_OF_ITS_OWN)) == []


def test_published_data_is_reached_through_its_fixture_alone(root: Path) -> None:
    """Any other way would pass by the mark ``data``: the test would fail on a fresh machine."""
    texts = {path.name: path.read_text(encoding="utf-8") for path in (root / "tests").rglob("*.py")}
    naming = {name for name, text in texts.items() if re.search("FLUENT_DATA|shared.{1,6}data", text)}
    assert naming == {"conftest.py", "test_architecture.py", "test_stats_notebook.py"}


SIGNED = re.compile(r"""(?<!%\{\w)(:\+?|floatfmt=")\.(\d|\{\w+\})f(?!\} ?(MB|GB|s\b))""")


def test_numbers_are_printed_without_negative_zero(root: Path) -> None:
    """Fixed decimals of results have the format's flag z; the published layouts print zeros as the paper does."""
    rooms = ("fluent/reporting", "fluent/ranking", "fluent/fluency", "probes")
    found = []
    for path in source_files(root):
        name = str(path.relative_to(root))
        if name.startswith(rooms) and name != "fluent/reporting/infl_table.py":
            found += [f"{name}: {line.strip()}" for line in path.read_text(encoding="utf-8").splitlines() if SIGNED.search(line)]
    assert found == []
