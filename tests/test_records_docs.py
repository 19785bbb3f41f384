"""docs/files.md: each example is read by the reader that it illustrates, and written back as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fluent_mlama.files import open_source, write_text
from fluent_mlama.reader import MLama
from fluent_mlama.records.benchmark import read_benchmark, write_benchmark
from fluent_mlama.records.few_shot import format_few_shot, read_few_shot
from fluent_mlama.records.results import format_dump, is_as_written, read_dump, read_run, write_run


@pytest.fixture
def examples(root: Path, tmp_path: Path) -> Path:
    """The page's named code blocks as files."""
    page = (root / "docs" / "files.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```\w+ (\S+)\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)
    for name, text in blocks:
        write_text(tmp_path / name, text)
    assert [name for name, _ in blocks] == [
        "cs/P19.jsonl", "cs/templates.jsonl", "cs_P19_own.tsv", "cs_P19.txt", "cs_P19_template_phrasebook.tsv",
        "corrected/cs_P19_template_phrasebook.tsv", "cs_P19_template_phrasebook.run.json",
    ]  # fmt: skip
    return tmp_path


def test_every_example_is_what_the_page_says(
    examples: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    source, again = open_source(examples), tmp_path_factory.mktemp("again")
    assert MLama(examples).fill_templates("cs", "P19")[7] == "Marie Curie se narodil v Varšava."

    benchmark = read_benchmark(source, "cs", "P19", "own")
    assert write_benchmark(benchmark, again).read_bytes() == source.read("cs_P19_own.tsv")

    few_shot = read_few_shot(source, "cs", "P19")
    assert len(few_shot.shots) == 2
    assert format_few_shot(few_shot).strip() == source.read("cs_P19.txt").decode("utf-8").strip()

    name = "cs_P19_template_phrasebook.tsv"
    for protocol, place in (("paper", source), ("corrected", source.folder("corrected"))):
        dump = read_dump(place, name)
        assert (dump.protocol, dump.verbalisations) == (protocol, ("template", "phrasebook"))
        assert format_dump(dump).encode("utf-8") == place.read(name)

    record = read_run(examples / "cs_P19_template_phrasebook.run.json")
    assert record.data_sha256 == benchmark.sha256
    assert is_as_written(examples / name, record)
    write_run(again / "run.json", record)
    assert (again / "run.json").read_bytes() == source.read("cs_P19_template_phrasebook.run.json")
