"""reader.py: what is opened, what comes out, and that the faults of the borrowed readers do not exist here."""

from __future__ import annotations

import json
import shutil
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from fluent_mlama.console import UserError
from fluent_mlama.reader import MLama, fill_template, is_valid_template, main

COUNTS = {
    "en": 11307,
    "ru": 9063,
    "es": 5389,
    "uk": 4463,
    "cs": 4269,
    "zh": 3453,
    "hr": 2152,
    "id": 2023,
}


def fact(lineid: int, subject: str, thing: str, **more: object) -> dict[str, object]:
    return {"lineid": lineid, "sub_label": subject, "obj_label": thing, **more}


def put(path: Path, lines: Sequence[Mapping[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8"
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two languages with different relations, and litter beside them."""
    root = tmp_path / "mlama1.1"
    templates = {
        "P19": "[X] was born in [Y] .",
        "P36": "The capital of [X] is [Y] .",
        "P30": "[X] and [X] lie in [Y] .",
    }
    put(
        root / "en" / "templates.jsonl",
        [{"relation": relation, "template": text} for relation, text in templates.items()],
    )
    put(
        root / "en" / "P19.jsonl",
        [
            fact(0, "Ada", "London", sub_uri="Q7259", uuid="u-1"),
            fact(3, "007", "1e5"),
            fact(5, "Cy", "Rome"),
        ],
    )
    put(root / "en" / "P36.jsonl", [fact(0, "Chad", "N'Djamena")])
    put(root / "en" / "P30.jsonl", [fact(0, "Chad", "Africa")])
    put(root / "cs" / "templates.jsonl", [{"relation": "P19", "template": "[X] se narodil v [Y]."}])
    put(root / "cs" / "P19.jsonl", [fact(5, "Cy", "Řím"), fact(3, "[Y]", "NA", from_english=True)])
    put(root / "cs" / "P101.jsonl", [])
    (root / ".DS_Store").write_text("x", encoding="utf-8")
    (root / "README.md").write_text("x", encoding="utf-8")
    (root / "notes").mkdir()
    (root / "en" / "P19.txt").write_text("x", encoding="utf-8")
    return root


_opened: list[str] | None = None


def _watch(event: str, arguments: tuple[object, ...]) -> None:
    if (
        event == "open"
        and _opened is not None
        and isinstance(arguments[0], str | Path)
        and str(arguments[0]).endswith(".jsonl")
    ):
        _opened.append("/".join(Path(arguments[0]).parts[-2:]))


sys.addaudithook(
    _watch
)  # the interpreter's own word on what is opened; it cannot be taken off, only silenced


@pytest.fixture
def opened() -> Iterator[list[str]]:
    """The .jsonl files that Python opens from here on, as ``lang/name``."""
    global _opened
    _opened = []
    yield _opened
    _opened = None


def zipped(folder: Path, target: Path, prefix: str) -> Path:
    with zipfile.ZipFile(target, "w") as archive:
        for path in sorted(folder.rglob("*")):
            archive.write(path, prefix + path.relative_to(folder).as_posix())
        archive.writestr("__MACOSX/._en", "x")
    return target


def test_only_the_asked_files_are_opened(folder: Path, opened: list[str]) -> None:
    data = MLama(folder)
    assert data.languages() == ["cs", "en"]
    assert data.relations("en") == ["P19", "P30", "P36"]
    assert opened == []
    assert data.triples("en", "P36")[0].obj_label == "N'Djamena"
    assert opened == ["en/P36.jsonl"]
    data.fill_templates("cs", "P19")
    data.fill_templates("cs", "P19", "x")
    assert opened == ["en/P36.jsonl", "cs/templates.jsonl", "cs/P19.jsonl"]


@pytest.mark.parametrize("prefix", ["", "mlama1.1/"])
def test_a_zip_is_as_good_as_a_folder(folder: Path, tmp_path: Path, prefix: str) -> None:
    from_zip, from_folder = MLama(zipped(folder, tmp_path / "all.zip", prefix)), MLama(folder)
    assert from_zip.load() == from_folder.load()
    assert from_zip.sample(["en"], ["P19"]) == from_folder.sample(["en"], ["P19"])


def test_one_language_alone_in_a_zip_is_found(folder: Path, tmp_path: Path) -> None:
    shutil.rmtree(folder / "cs")
    shutil.rmtree(folder / "notes")
    for litter in (".DS_Store", "README.md"):
        (folder / litter).unlink()
    for prefix in ("", "mlama1.1/"):
        assert MLama(zipped(folder, tmp_path / "one.zip", prefix)).languages() == ["en"]


def test_each_language_has_its_own_relations(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = MLama(folder)
    assert {lang: list(found) for lang, found in data.load().items()} == {
        "cs": ["P19", "P101"],
        "en": ["P19", "P30", "P36"],
    }
    assert {lang: list(found) for lang, found in data.load(relations=["P36"]).items()} == {
        "cs": [],
        "en": ["P36"],
    }
    assert "no relation P36 in cs: left out there" in capsys.readouterr().err
    with pytest.raises(UserError, match="no language of cs has P9"):
        data.load(["cs"], ["P9"])
    with pytest.raises(UserError, match="no language of cs, en has P9"):
        data.count_triples(relations=["P9"])


def test_optional_fields_are_optional_and_labels_stay_strings(folder: Path) -> None:
    facts = MLama(folder).triples("en", "P19")
    assert (facts[0].sub_uri, facts[0].obj_uri, facts[0].uuid) == ("Q7259", None, "u-1")
    assert (facts[3].sub_label, facts[3].obj_label, facts[3].key) == ("007", "1e5", ("P19", 3))
    assert MLama(folder).triples("cs", "P19")[3].extras == {"from_english": True}


def test_a_label_is_one_string_however_it_is_encoded(folder: Path) -> None:
    put(folder / "cs" / "P19.jsonl", [fact(0, "Cafe\u0301", "Pr\u030caha")])
    triple = MLama(folder).triples("cs", "P19")[0]
    assert (triple.sub_label, triple.obj_label) == ("Caf\u00e9", "P\u0159aha")


def test_languages_are_joined_by_relation_and_lineid(folder: Path) -> None:
    pairs = MLama(folder).join("cs", "en", "P19")
    assert [(here.lineid, here.obj_label, there.obj_label) for here, there in pairs] == [
        (3, "NA", "1e5"),
        (5, "Řím", "Rome"),
    ]


def test_templates_are_filled_in_one_pass(folder: Path) -> None:
    data = MLama(folder)
    assert data.fill_templates("cs", "P19") == {
        5: "Cy se narodil v Řím.",
        3: "[Y] se narodil v NA.",
    }
    triple = data.triples("cs", "P19")[3]
    assert fill_template("[Y]: [X]", triple, "x") == "[Y]: [Y]"
    assert fill_template("[Y]: [X]", triple, "y") == "NA: [X]"
    with pytest.raises(ValueError, match="slots"):
        fill_template("[X] [Y]", triple, "z")


@pytest.mark.parametrize(
    ("template", "valid"),
    [
        ("[X] in [Y].", True),
        ("[Y]，[X]", True),
        ("[X] in", False),
        ("", False),
        ("[X] and [X] in [Y].", False),
        ("[X] [Y] [Y]", False),
    ],
)
def test_template_validity(template: str, valid: bool) -> None:
    assert is_valid_template(template) is valid


def test_missing_and_invalid_templates_are_told(folder: Path) -> None:
    data = MLama(folder)
    with pytest.raises(UserError, match=r"cs.templates\.jsonl: no template for relation P101"):
        data.template("cs", "P101")
    with pytest.raises(UserError, match=r"the template of P30 needs one \[X\] and one \[Y\]"):
        data.template("en", "P30")
    assert [relation for _, relation, _ in data.sample(["en"], number=9)].count("P30") == 0


def test_a_doubled_lineid_is_told_and_its_object_is_also_true(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(
        folder / "en" / "P19.jsonl",
        [
            fact(1, "Ada", "London"),
            fact(1, "Ada", "Ealing"),
            fact(2, "Ada", "Paris"),
            fact(4, "Bo", "Rome"),
        ],
    )
    facts = MLama(folder).facts("en", "P19")
    assert [triple.obj_label for triple in facts.doubles] == ["Ealing"]
    assert facts.other_objects(facts.by_lineid[1]) == {"Ealing", "Paris"}
    assert "en P19: 1 lines use a lineid again" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"lineid": 1, "sub_label": "a", "obj_', "line 1 is not JSON"),
        (
            b'{"lineid": 1, "sub_label": "a", "obj_label": "b"}\n{"lineid": 2, "sub_label": "a"}',
            "line 2: no field 'obj_label'",
        ),
        (
            b'{"lineid": 1, "sub_label": "a", "obj_label": 7}',
            "field 'obj_label' holds 7, expected str",
        ),
        (b'{"lineid": true, "sub_label": "a", "obj_label": "7"}', "field 'lineid' holds True"),
        (b"[1]", "line 1 holds no JSON object"),
        (b'\n{"lineid": 1, "sub_label": "\xff"}', "line 2 is not UTF-8"),
    ],
)
def test_bad_lines_are_named(folder: Path, content: bytes, message: str) -> None:
    (folder / "en" / "P36.jsonl").write_bytes(content)
    with pytest.raises(UserError, match=message):
        MLama(folder).triples("en", "P36")


def test_wrong_requests_are_one_line(folder: Path, tmp_path: Path) -> None:
    data = MLama(folder)
    for call, message in [
        (lambda: data.relations("de"), "no language de; there are cs, en"),
        (lambda: data.relations("xx"), "unknown language 'xx'"),
        (lambda: data.triples("en", "P9"), r"no file P9\.jsonl"),
        (lambda: data.triples("en", "../cs/P19"), "not a bare file name"),
        (lambda: MLama(tmp_path / "nowhere"), "no such folder or zip"),
        (lambda: MLama(folder / "README.md"), "neither a folder nor a readable zip"),
        (lambda: MLama(folder / "en"), "not the mLAMA 1.1 layout"),
    ]:
        with pytest.raises(UserError, match=message):
            call()


def test_sample_prints_a_latex_table_with_specials_escaped(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(folder / "en" / "P36.jsonl", [fact(0, "50 % & {a} ~ ^ \\ # $", "P_1")])
    main(["sample", str(folder), "-l", "en", "-r", "P36", "-n", "1"])
    out = capsys.readouterr().out
    assert r"50 \% \& \{a\}" in out
    assert r"\# \$ is P\_1 ." in out
    assert out.count("\n") == 7 and out.startswith(r"\begin{tabular}")


def test_the_same_seed_samples_the_same_facts(folder: Path) -> None:
    put(folder / "en" / "P36.jsonl", [fact(number, f"s{number}", "o") for number in range(50)])
    data = MLama(folder)
    assert data.sample(["en"], seed=1) == data.sample(["cs", "en"], seed=1)[-3:]
    assert data.sample(["en"], seed=1) != data.sample(["en"], seed=2)


def test_counts_of_the_published_subset(
    published: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = MLama(published / "mlama1.1_subset.zip")
    assert list(data.count_triples().items()) == list(COUNTS.items())
    main(["stats", str(published / "mlama1.1_subset.zip")])
    assert "42119 facts; 8 of the 53 official languages are here" in capsys.readouterr().out


def test_english_counts_the_facts_of_all_nine_source_languages(published: Path) -> None:
    """English holds every fact of the other seven, and 34 that only the two left-out languages (da, vi) have."""
    data = MLama(published / "mlama1.1_subset.zip")
    keys = {
        lang: {triple.key for relation in found.values() for triple in relation.by_lineid.values()}
        for lang, found in data.load().items()
    }
    others = set().union(*(found for lang, found in keys.items() if lang != "en"))
    assert others <= keys["en"]
    assert len(keys["en"] - others) == 34
    assert all(
        is_valid_template(template)
        for lang in data.languages()
        for template in data.templates(lang).values()
    )
