"""The house obeys its plan (docs/architecture.md): who imports whom, what output folders hold, how files are sized."""

from __future__ import annotations

import ast
import graphlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = "fluent_mlama"
FLOOR = {
    "",
    "data",
    "console",
    "command_line",
    "commands",
    "files",
    "languages",
    "options",
    "patience",
    "outcomes",
}
CONTRACT, EXECUTORS, IDENTITY = "scoring.contract", "scoring.executors", "scoring.identity"
LIGHT = {CONTRACT, EXECUTORS, IDENTITY}
ROOMS = {
    "records", "translating", "locating", "scoring", "linking", "ranking", "reporting", "fluency",
    "exporting", "runner",
}  # fmt: skip
EXPERIMENTS = {"mlama", "zhoblimp", "cpopqa"}

# Which room may import which others, besides the floor and the standard library. Names of rooms in
# the package are short. Root files are doors: they re-export, and nothing in the package imports them.
DOORS = {"reader", "datamodifier", "processor", "script", "stats", "grammeval"}
ALLOWED: dict[str, set[str]] = {
    "reader": {"records"},
    "datamodifier": {"reader", "translating", "locating", "records"},
    "processor": {"runner", "ranking", "scoring", "records"},
    "script": {"processor", "runner", "ranking", "scoring", "exporting", "records"},
    "stats": {"reporting", "ranking", "linking", "records"},
    "grammeval": {"fluency", "reporting"},
    "cli": set(),
    "listing": {"records"},
    "data": {"translating", "records"},
    "records": set(),
    "translating": {"records", "locating", "scoring"},
    "locating": set(),
    "scoring": {"linking"},
    "linking": set(),
    "runner": {"records", "scoring"},
    "ranking": {"runner", "records", "linking", *LIGHT},
    "reporting": {"records", "ranking", "linking"},
    "exporting": {"records", "ranking"},
    "fluency": {"reporting", "translating", "scoring", "runner", "ranking", "linking", "records"},
    **{name: {*ROOMS, "reader"} for name in EXPERIMENTS},
}
MAY_USE_TORCH = {"scoring", *EXPERIMENTS}
TORCH = {"torch", "transformers", "accelerate", "gguf"}
TEXT_KINDS = {".py", ".md", ".toml", ".ipynb", ".cff", ".json", ".txt", ".html"}
OUTPUT_FOLDERS = ("chatgpt_prompts", "fixed_data", "stats", "stats_wide", "graphs", "tables")


def source_files(root: Path) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    return [
        root / name
        for name in listed
        if not name.startswith(("tests/", "benchmarks/", "docs/")) and (root / name).exists()
    ]


def room_of(module: str) -> str:
    """``fluent_mlama.scoring.causal`` -> ``scoring``; "" outside the package."""
    first, _, rest = module.partition(".")
    if first == PACKAGE:
        return rest.partition(".")[0]
    return ""


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
    found = []
    for path in source_files(root):
        module = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
        if module in DOORS:
            continue
        room = room_of(module)
        if room not in ALLOWED:
            continue
        for name in imported(path):
            if name.partition(".")[0] in TORCH and room not in MAY_USE_TORCH:
                found.append(f"{module} imports {name}: only scoring and training know torch")
            if name.partition(".")[0] in DOORS:
                found.append(f"{module} imports the door {name}")
            target = room_of(name)
            if target == room or target in FLOOR or target in ALLOWED[room]:
                continue
            short = name.removeprefix(f"{PACKAGE}.")
            if any(short.startswith(light) for light in LIGHT & ALLOWED[room]):
                continue
            if target in ALLOWED:
                found.append(f"{module} imports {name}")
    return sorted(set(found))


def test_rooms_import_only_what_the_plan_allows(root: Path) -> None:
    assert violations(root) == []


def test_no_circles_between_files(root: Path) -> None:
    """Modules that are imported when another one is (imports inside functions are no circle)."""
    sorter = graphlib.TopologicalSorter[str]()
    modules = {
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path
        for path in source_files(root)
        if path.is_relative_to(root / PACKAGE)
    }
    for module, path in modules.items():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ImportFrom) and node.module:
                names = {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
                sorter.add(module, *(names & modules.keys()) - {module})
    sorter.prepare()  # a CycleError names the files


def test_every_room_of_the_plan_stands_in_the_architecture_page(root: Path) -> None:
    page = (root / "docs" / "architecture.md").read_text(encoding="utf-8")
    for room in ALLOWED:
        assert room in page, f"docs/architecture.md does not mention {room}"


@pytest.mark.parametrize("folder", OUTPUT_FOLDERS)
def test_output_folders_are_no_packages(root: Path, folder: str) -> None:
    assert not list((root / folder).rglob("__init__.py"))


def test_stats_is_the_module_and_not_the_folder(root: Path) -> None:
    where = subprocess.run(
        [sys.executable, "-c", "import stats; print(stats.__file__)"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    assert where == str(root / "stats.py")


def test_no_path_of_one_machine_in_tracked_text(root: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files"], cwd=root, capture_output=True, text=True, check=True
    ).stdout.split("\n")
    machine = re.compile(r"(?<![\w.])/(work|root|home/\w+)/")
    hits = []
    for name in listed:
        path = root / name
        if path.suffix in TEXT_KINDS and path.is_file() and name != "tests/test_architecture.py":
            text = path.read_text(encoding="utf-8")
            hits += [f"{name}: {match.group()}" for match in machine.finditer(text)]
    assert hits == []


CASE_OF_ITS_OWN = {
    "fluent_mlama/languages.py": "the folding itself",
    "fluent_mlama/locating/text.py": "looser: all four letters i are one, so that no language is needed",
    "fluent_mlama/translating/checks.py": "refusals, and keys of a translator's request",
    "fluent_mlama/translating/phrasebook.py": "one Ukrainian letter",
    "fluent_mlama/translating/phrasebook_check.py": "Unicode names",
    "fluent_mlama/translating/file.py": "names of columns",
    "fluent_mlama/translating/codes.py": "language codes",
    "fluent_mlama/translating/google.py": "an error message of a service",
    "fluent_mlama/reporting/audit_checks.py": "English keys of a translator's request",
    "fluent_mlama/files.py": "device names of Windows",
    "fluent_mlama/records/download.py": "hexadecimal digits",
    "fluent_mlama/ranking/models.py": "file suffixes; file systems know no language",
    "fluent_mlama/ranking/settings.py": "file names",
    "fluent_mlama/scoring/tokens.py": "how tokenizers written in Python fold case",
    "fluent_mlama/fluency/judges.py": "file names and error messages",
    "fluent_mlama/scoring/failures.py": "error messages",
    "fluent_mlama/scoring/identity.py": "file suffixes",
    "fluent_mlama/linking.py": "names of options",
    "fluent_mlama/cpopqa/cleaning.py": "English names of holidays",
    "fluent_mlama/cpopqa/ngrams.py": "names of columns",
    "fluent_mlama/cpopqa/calendars.py": "yes and no",
    "fluent_mlama/zhoblimp/generator.py": "the first letter of an English or German sentence",
    "fluent_mlama/zhoblimp/matcher.py": "the same letter, read back",
    "fluent_mlama/zhoblimp/train.py": "units of numbers",
}
"""Where case is none of a language's text, and why. Everything else compares by ``fluent_mlama.languages.fold_case``."""
CASE = re.compile(
    r"\.(lower|upper|casefold|swapcase|title)\(\)|\bIGNORECASE\b|\bre(gex)?\.I\b|\(\?i\)"
)


def test_case_is_folded_by_language(root: Path) -> None:
    cased = {
        str(path.relative_to(root))
        for path in source_files(root)
        if CASE.search(path.read_text(encoding="utf-8"))
    }
    assert sorted(cased - set(CASE_OF_ITS_OWN)) == []


def test_published_data_is_reached_through_its_fixture_alone(root: Path) -> None:
    """Any other way would pass by the mark ``data``: the test would fail on a fresh machine."""
    texts = {path.name: path.read_text(encoding="utf-8") for path in (root / "tests").rglob("*.py")}
    naming = {
        name for name, text in texts.items() if re.search("FLUENT_DATA|shared.{1,6}data", text)
    }
    assert naming == {"conftest.py", "test_architecture.py", "test_stats_notebook.py"}


SIGNED = re.compile(r"""(?<!%\{\w)(:\+?|floatfmt=")\.(\d|\{\w+\})f(?!\} ?(MB|GB|s\b))""")


def test_numbers_are_printed_without_negative_zero(root: Path) -> None:
    """Fixed decimals of results have the format's flag z; the published layouts print zeros as the paper does."""
    rooms = ("reporting", "ranking", "fluency", *sorted(EXPERIMENTS))
    found = []
    for path in source_files(root):
        name = path.relative_to(root).as_posix()
        if (
            name.startswith(tuple(f"{PACKAGE}/{room}/" for room in rooms))
            and name != "fluent_mlama/reporting/infl_table.py"
        ):
            found += [
                f"{name}: {line.strip()}"
                for line in path.read_text(encoding="utf-8").splitlines()
                if SIGNED.search(line)
            ]
    assert found == []
