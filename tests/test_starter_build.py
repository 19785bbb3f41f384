"""What ships is what the command makes: the mLAMA folder, the benchmark files, the few-shot
prompts, the counts.
"""

from __future__ import annotations

import csv
import io
import json
import re
import zipfile
from pathlib import Path

import pytest

from fluent_mlama.console import UserError
from fluent_mlama.data import DATA
from fluent_mlama.data.build import build, main
from fluent_mlama.files import open_source
from fluent_mlama.reader import MLama
from fluent_mlama.records.benchmark import find_benchmarks, is_usable, read_benchmark, split_aliases
from fluent_mlama.records.few_shot import audit_leakage
from fluent_mlama.translating.phrasebook import Phrasebook, read_cells, read_facts
from fluent_mlama.translating.phrasebook_check import languages

MADE = (
    "fluent_mlama/data/starter",
    "fluent_mlama/data/benchmark",
    "chatgpt_prompts/starter",
)
LANGUAGES = languages()
TARGETS = [code for code in LANGUAGES if code != "en"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    build(folder, LANGUAGES, read_facts())
    return folder


def files_below(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for part in MADE
        for path in (root / part).rglob("*")
        if path.is_file()
    }


def test_what_ships_is_what_the_command_makes(made: Path, root: Path) -> None:
    ours, again = files_below(root), files_below(made)
    assert len(again) == len(LANGUAGES) * 13 + len(TARGETS) * 24
    assert ours.keys() == again.keys()
    assert [name for name in ours if ours[name] != again[name]] == []
    assert (made / "fluent_mlama" / "data" / "README.md").read_bytes() == (
        root / "fluent_mlama" / "data" / "README.md"
    ).read_bytes()


def test_the_reader_takes_the_folder_for_mlama(root: Path) -> None:
    facts = [fact for fact in read_facts() if not fact.held_out]
    mlama = MLama(root / "fluent_mlama" / "data" / "starter")
    assert mlama.languages() == sorted(LANGUAGES)
    for code in LANGUAGES:
        assert len(mlama.relations(code)) == 12
        for relation in mlama.relations(code):
            triples = mlama.facts(code, relation).by_lineid
            assert [(t.sub_uri, t.obj_uri) for t in triples.values()] == [
                (f.sub_uri, f.obj_uri) for f in facts if f.relation == relation
            ]
            assert len(triples) >= 30
            assert "[X]" in mlama.template(code, relation)


def test_benchmark_files_add_up(root: Path) -> None:
    source = open_source(root / "fixed_data" / "starter")
    found = find_benchmarks(source)
    assert len(found) == len(TARGETS) * 12
    for lang, relation, spec, _ in found:
        benchmark = read_benchmark(source, lang, relation, spec)
        assert benchmark.verbalisations == ("template", "phrasebook")
        for verbalisation in benchmark.verbalisations:
            columns = benchmark.columns(verbalisation)
            parts = [
                benchmark.table[column] for column in (columns.prompt, columns.object, columns.tail)
            ]
            assert (parts[0] + parts[1] + parts[2] == benchmark.table[columns.sentence]).all()
            assert (parts[1] != "").all()
            assert all(map(is_usable, benchmark.table[columns.status]))
        for aliases, english, label in zip(
            *(benchmark.table[c] for c in ("aliases", "en_obj_label", "obj_label")), strict=True
        ):
            names = split_aliases(aliases)
            assert names[0] == english
            assert len(set(names)) == len(names)
            assert label not in names[1:]


def test_no_few_shot_example_stands_in_a_benchmark_file(root: Path) -> None:
    audits = audit_leakage(
        open_source(root / "fixed_data" / "starter"),
        open_source(root / "chatgpt_prompts" / "starter"),
    )
    assert len(audits) == len(TARGETS) * 12
    assert all(audit.shots >= 6 and not audit.rows for audit in audits)


def test_every_fact_stands_in_the_published_sets(published: Path) -> None:
    known: set[tuple[str, str, str]] = set()
    with zipfile.ZipFile(published / "mlama1.1_subset.zip") as archive:
        for name in archive.namelist():
            if found := re.fullmatch(r"\w+/(P\d+)\.jsonl", name):
                lines = map(json.loads, archive.read(name).decode("utf-8").splitlines())
                known |= {(found[1], line["sub_uri"], line["obj_uri"]) for line in lines}
    with zipfile.ZipFile(published / "fluent_mlama" / "fixed_data.zip") as archive:
        for name in archive.namelist():
            if found := re.fullmatch(r"fixed_data/\w+?_(P\d+)_\w+\.tsv", name):
                rows = csv.DictReader(
                    io.StringIO(archive.read(name).decode("utf-8")), delimiter="\t"
                )
                known |= {(found[1], row["sub_uri"], row["obj_uri"]) for row in rows}
    assert len(known) > 10_000
    assert [
        fact for fact in read_facts() if (fact.relation, fact.sub_uri, fact.obj_uri) not in known
    ] == []


def test_an_unfinished_language_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    book = Phrasebook("ru")
    del book.entries["Q90"]
    monkeypatch.setattr(
        "fluent_mlama.data.build.Phrasebook",
        lambda code: book if code == "ru" else Phrasebook(code),
    )
    with pytest.raises(UserError, match=r"ru\.tsv is not finished .*Q90: no row"):
        build(tmp_path, ["ru"], read_facts())
    assert not list(tmp_path.iterdir())


def test_the_command_says_what_it_wrote(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--langs", "en", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("13 files of en")


@pytest.mark.parametrize(
    "path", sorted((DATA / "review").glob("*.tsv")), ids=lambda path: path.stem
)
def test_corrections_of_fresh_readers_stand(path: Path) -> None:
    cells = {}
    for name, key in (("rows", "uri"), ("patterns", "relation")):
        file = (
            DATA
            / "phrasebook"
            / (f"{path.stem}.tsv" if name == "rows" else f"{path.stem}_patterns.tsv")
        )
        cells |= {
            (name, row[key], column): cell
            for row in read_cells(file)
            for column, cell in row.items()
        }
    rows = read_cells(path)
    assert list(rows[0]) == ["file", "key", "column", "before", "after", "why"]
    last = {(row["file"], row["key"], row["column"]): row["after"] for row in rows}
    assert {key: cells.get(key) for key in last} == last
    assert all(row["why"] for row in rows)
