"""Every command of README.md and docs/*.md is executed: as written, or with the stand-in that docs_instead.py names and explains."""

from __future__ import annotations

import http.server
import threading
import venv
import zipfile
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from fluent_mlama.scoring.causal import CausalScorer
from tests.conftest import ROOT
from tests.docs_commands import (
    Step,
    make_scratch,
    missing_lines,
    module_of,
    pages,
    run_command,
    split,
    steps_of,
    untagged_commands,
)
from tests.docs_instead import (
    AS_WRITTEN,
    CLUSTER,
    CLUSTER_PROGRAMS,
    HARMLESS,
    INSTEAD,
    NOT_OURS,
    PARSE,
    PEERS,
    Instead,
)

PAGES = [str(path.relative_to(ROOT)) for path in pages(ROOT)]
INSTALLING = Instead("installs, deletes or runs for long: make prints what it would do", PARSE)
MENTION = Instead("a name in a sentence, without arguments: asked for its help", "--help")
ON_DATA = Instead("needs the published data: test_commands_on_published_data runs it", PARSE)
PUBLISHED = ("published", "path/to")
"""What the pages call the folder of the published data."""


def needs_data(step: Step) -> bool:
    return step.is_command and any(f"{folder}/" in step.text for folder in PUBLISHED)


def way_of(step: Step) -> Instead | None:
    """What is run in place of a command; None where it is run as written."""
    if not step.is_command or step.kind == "python":
        return None
    if needs_data(step):
        return ON_DATA
    text = " ".join(step.text.split())
    if text in INSTEAD:
        return INSTEAD[text]
    if text.startswith("make "):
        return INSTALLING
    if text.startswith(".venv-peers/"):
        return PEERS
    words = split(text)
    if words[0] in CLUSTER_PROGRAMS or "meta-llama/" in text:
        return CLUSTER
    if step.kind == "inline" and module_of(words)[0] is not None and len(module_of(words)[1]) < 2:
        return Instead(MENTION.why, f"{text} --help")
    ours = text in NOT_OURS or module_of(words)[0] is not None or words[0] in HARMLESS
    assert ours, (
        f"{step}: no command of ours; say in tests/docs_instead.py what is run in its place, and why"
    )
    return None


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The starter as a zip in the published layout, served on this machine alone: the download's stand-in."""
    folder = tmp_path_factory.mktemp("served")
    starter = ROOT / "fluent_mlama" / "data" / "starter"
    with zipfile.ZipFile(folder / "mlama1.1.zip", "w") as archive:
        for file in sorted(starter.rglob("*.jsonl")):
            archive.write(file, Path("mlama1.1") / file.relative_to(starter))
    quiet = type("Quiet", (http.server.SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    serving = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(quiet, directory=str(folder))
    )
    threading.Thread(target=serving.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{serving.server_port}/mlama1.1.zip"
    serving.shutdown()
    serving.server_close()


@pytest.fixture
def scratch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, smollm2: CausalScorer, server: str
) -> Path:
    """A copy of the repository to work in; the embedded model is loaded once for all commands."""
    import fluent_mlama.scoring.causal as causal

    folder = make_scratch(ROOT, tmp_path / "repository")
    venv.create(folder / ".venv")
    load = causal.load_scorer
    monkeypatch.setattr(
        causal,
        "load_scorer",
        lambda model, **options: smollm2 if model == "smollm2" else load(model, **options),
    )
    monkeypatch.setenv("FLUENT_MLAMA_URL", server)
    monkeypatch.chdir(folder)
    return folder


def fingerprint_of_repository() -> dict[str, tuple[int, int]]:
    files = [
        file
        for name in (
            "fluent_mlama/data",
            "fixed_data",
            "stats",
            "stats_wide",
            "tables",
            "graphs",
            "benchmarks",
        )
        for file in (ROOT / name).rglob("*")
    ]
    return {
        str(file): (file.stat().st_size, file.stat().st_mtime_ns)
        for file in files
        if file.is_file() and "__pycache__" not in file.parts
    }


def run_page(page: str, scratch: Path, *, slow: bool) -> Counter[str]:
    """Everything on a page, from top to bottom. Returns how many commands were run in which way."""
    ways: Counter[str] = Counter()
    namespace: dict[str, object] = {"__name__": "example"}
    printed, exact = "", True
    for step in steps_of(ROOT / page, ROOT):
        if step.kind == "file":
            target = scratch / step.name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(step.text, encoding="utf-8")
        elif step.kind == "python":
            exec(compile(step.text, str(step), "exec"), namespace)
            ways["as written"] += 1
        elif step.kind == "output":
            shown = (
                (scratch / step.name).read_text(encoding="utf-8")
                if step.name and exact
                else printed
            )
            assert not exact or missing_lines(step.text, shown) == [], (
                f"{step.page}:{step.line}: is not so\n{shown}"
            )
        elif step.text in NOT_OURS:
            ways["not ours"] += 1
        else:
            way = way_of(step)
            command = step.text if way is None else way.command(step.text, slow=slow)
            parse_only = command == PARSE
            printed, exact = (
                run_command(step.text if parse_only else command, ROOT, parse_only=parse_only),
                command == step.text,
            )
            ways[
                "parsed"
                if parse_only or command.endswith("--help")
                else "as written"
                if exact
                else "stand-in"
            ] += 1
    return ways


@pytest.mark.model
@pytest.mark.parametrize("page", PAGES)
def test_every_command_runs(
    page: str, scratch: Path, record_property: pytest.RecordProperty
) -> None:
    before = fingerprint_of_repository()
    ways = run_page(page, scratch, slow=False)
    record_property("ways", dict(ways))
    assert ways.total() == sum(step.is_command for step in steps_of(ROOT / page, ROOT))
    assert fingerprint_of_repository() == before


@pytest.mark.slow
@pytest.mark.model
@pytest.mark.parametrize(
    "page",
    [
        page
        for page in PAGES
        if any((way := INSTEAD.get(step.text)) and way.slow for step in steps_of(ROOT / page, ROOT))
    ],
)
def test_what_only_takes_long_runs_as_written(page: str, scratch: Path) -> None:
    before = fingerprint_of_repository()
    run_page(page, scratch, slow=True)
    assert fingerprint_of_repository() == before


def _on_data() -> Iterator[object]:
    for step in filter(
        needs_data, (step for page in PAGES for step in steps_of(ROOT / page, ROOT))
    ):
        way = INSTEAD.get(" ".join(step.text.split()), Instead("", AS_WRITTEN))
        for choice, marks in ((way.quick, ()), (way.slow, pytest.mark.slow)):
            if choice not in {"", PARSE}:
                command = step.text if choice == AS_WRITTEN else choice
                yield pytest.param(command, id=f"{step.page}:{step.line}", marks=marks)


@pytest.mark.model
@pytest.mark.parametrize("command", list(_on_data()))
def test_commands_on_published_data(published: Path, command: str, scratch: Path) -> None:
    for folder in PUBLISHED:
        (scratch / folder).parent.mkdir(exist_ok=True)
        (scratch / folder).symlink_to(published / "fluent_mlama")
    run_command(command, ROOT)


def _quick_way(step: Step) -> str:
    way = way_of(step)
    if way is None:
        return "not ours" if step.text in NOT_OURS else "as written"
    return "parsed" if way.quick == PARSE or way.quick.endswith("--help") else "stand-in"


def test_commands_are_counted() -> None:
    """No command is passed over, and no stand-in is kept for a command that is gone."""
    commands = [step for page in PAGES for step in steps_of(ROOT / page, ROOT) if step.is_command]
    written = {" ".join(step.text.split()) for step in commands}
    assert sorted((set(INSTEAD) | set(NOT_OURS)) - written) == []
    assert [command for page in PAGES for command in untagged_commands(ROOT / page)] == []
    ways = Counter(_quick_way(step) for step in commands)
    later = sum(
        1 for step in commands if (way := way_of(step)) is not None and way.slow == AS_WRITTEN
    )
    print(f"\n{len(commands)} commands: {dict(ways)}, {later} of them as written in the slow tests")
    assert ways.total() == len(commands) > 90
