"""Names that point elsewhere: of relations, languages, models, labels, members of a zip. Nothing is read or written outside."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from fluent_mlama.console import UserError
from fluent_mlama.cpopqa.answers import Store
from fluent_mlama.files import is_file_name, open_source
from fluent_mlama.mlama.results import Place
from fluent_mlama.reader import MLama
from fluent_mlama.records.results import dump_name
from fluent_mlama.zhoblimp.generate import output_names
from fluent_mlama.zhoblimp.paradigm import Paradigm, parse_paradigm
from fluent_mlama.zhoblimp.scores import Place as ModelPlace
from fluent_mlama.zhoblimp.scores import Target

UP = (
    "../../x",
    "..",
    "/etc/x",
    "a/../../x",
    "..\\x",
    "C:x",
    "a:b",
    "x|y",
    "nul",
    "CON",
    "a\0b",
    "x.",
    " x",
    "",
)


@pytest.mark.parametrize("name", UP)
def test_no_such_name_is_a_file_name(name: str) -> None:
    assert not is_file_name(name)


@pytest.mark.parametrize(
    "name", ["ru_P19_template_gt.tsv", "北京", "nula", "console.tsv", "a b", "com10", "x.y.z"]
)
def test_names_of_many_kinds_are(name: str) -> None:
    assert is_file_name(name)


def toy_paradigm(uid: str) -> Paradigm:
    return parse_paradigm(
        json.dumps({"uid": uid, "good_rule": ["a"], "bad_rule": ["b"]}), "toy.json"
    )


CALLS: dict[str, Callable[[str, Path], object]] = {
    "a dump's language": lambda name, _: dump_name(name, "P19", ["template"]),
    "a dump's relation": lambda name, _: dump_name("ru", name, ["template"]),
    "a dump's verbalisation": lambda name, _: dump_name("ru", "P19", ["template", name]),
    "a result's language": lambda name, out: Place(out, "m", "tyq").file(name, "P19"),
    "a result's relation": lambda name, out: Place(out, "m", "tyq").file("ru", name),
    "a paradigm's uid": lambda name, _: output_names([toy_paradigm(name)]),
}  # fmt: skip


@pytest.mark.parametrize("what", CALLS)
@pytest.mark.parametrize("name", ["../../x", "/etc/x", "..\\x", "a:b", "x|y"])
def test_names_out_of_the_data_are_refused(what: str, name: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot|must"):
        CALLS[what](name, tmp_path)


@pytest.mark.parametrize("name", UP)
def test_names_that_a_person_chooses_are_made_harmless(name: str, tmp_path: Path) -> None:
    """Models, template sets, labels and revisions may be called anything; their files stay in the folder."""
    out = tmp_path / "out"
    paths = [
        Place(out, name or "m", "tyq", name or "t").file("ru", "P19"),
        Store(out, name).lines,
        Store(out, name).run,
        ModelPlace.of(out, Target(name, name, name)).scores,
    ]
    for path in paths:
        assert path.resolve().is_relative_to(out.resolve()), path
        assert all(is_file_name(part.strip(".")) for part in path.relative_to(out).parts), path


def test_languages_and_relations_are_looked_up_in_the_data_alone(tmp_path: Path) -> None:
    for folder in (tmp_path / "data" / "en", tmp_path / "secret"):
        folder.mkdir(parents=True)
        (folder / "templates.jsonl").write_text(
            '{"relation": "P19", "template": "[X] was born in [Y] ."}\n', encoding="utf-8"
        )
        (folder / "P19.jsonl").write_text(
            '{"sub_label": "a", "obj_label": "b", "lineid": 1}\n', encoding="utf-8"
        )
    mlama = MLama(tmp_path / "data")
    assert mlama.relations("en") == ["P19"]
    attempts: Sequence[Callable[[], object]] = (
        lambda: mlama.triples("../secret", "P19"),
        lambda: mlama.templates("../secret"),
        lambda: mlama.triples("en", "../../secret/P19"),
        lambda: mlama.select(["../secret"], ["P19"]),
    )
    for attempt in attempts:
        with pytest.raises(UserError):
            attempt()


@pytest.mark.parametrize(
    "member", ["../../evil.tsv", "/etc/evil.tsv", "..\\evil.tsv", "C:/evil.tsv"]
)
def test_a_zip_that_points_outside_is_refused_by_every_reader(member: str, tmp_path: Path) -> None:
    path = tmp_path / "data.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("en/templates.jsonl", "{}\n")
        archive.writestr(member, "x\n")
    for read in (open_source, MLama):
        with pytest.raises(UserError, match="points outside the zip"):
            read(path)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["data.zip"]
