"""mLAMA made anew from a small LAMA, with stand-ins for the translator and Wikidata."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from fluent_mlama.console import UserError
from fluent_mlama.mlama.__main__ import main
from fluent_mlama.mlama.build import build, mend_template, read_lama
from fluent_mlama.reader import MLama
from fluent_mlama.translating.backend import Answer, SourceSentence
from fluent_mlama.translating.store import Store
from fluent_mlama.translating.wikidata import Names, Wikidata
from tests.mlama_world import write_lines
from tests.translating_world import Service, google_page

TEMPLATES = {"P36": "The capital of [X] is [Y] .", "P37": "[X] speaks [Y] ."}
LABELS = {
    "de": {"Q1": "Ardland", "Q11": "Ostdorf", "Q2": "Belmien", "Q21": "Ardisch"}, "sw": {"Q1": "Adi"},
    "it": {"Q1": "Ardlandia", "Q11": "Ostbia"},
}  # fmt: skip


@pytest.fixture
def lama(tmp_path: Path) -> Path:
    """Two relations, four facts, one without Wikidata ids."""
    folder = tmp_path / "lama"
    write_lines(
        folder / "relations.jsonl",
        [{"relation": name, "template": text, "type": "N-1"} for name, text in TEMPLATES.items()],
    )
    write_lines(folder / "TREx" / "P36.jsonl", [
        {"uuid": "u0", "sub_uri": "Q2", "sub_label": "Belmia", "obj_uri": "Q12", "obj_label": "Tarnow", "evidences": []},
        {"uuid": "u1", "sub_uri": "Q1", "sub_label": "Ardland", "obj_uri": "Q11", "obj_label": "Ostby"},
        {"uuid": "u2", "sub_uri": "/m/01", "sub_label": "Dorn", "obj_uri": "Q11", "obj_label": "Ostby"},
    ])  # fmt: skip
    write_lines(
        folder / "TREx" / "P37.jsonl",
        [{"sub_uri": "Q1", "sub_label": "Ardland", "obj_uri": "Q21", "obj_label": "Ardish"}],
    )
    return folder


class Labels:
    def names(self, uris: Sequence[str], language: str) -> Mapping[str, Names]:
        return {uri: Names(LABELS[language].get(uri, "")) for uri in uris}


class Templates:
    name, model, costly = "stand-in", "", False

    def __init__(self, answers: Mapping[str, str]) -> None:
        self.answers = answers

    def check(self, source: str, target: str, relation: str) -> None: ...

    def prompt_hash(self, source: str, target: str, relation: str) -> str:
        return ""

    def query(self, item: SourceSentence) -> str:
        return item.sentence

    def translate(self, items: Sequence[SourceSentence]) -> Iterator[tuple[SourceSentence, Answer]]:
        for item in items:
            yield item, Answer(self.answers[item.relation])


def test_built_data_is_read_back_and_lineids_join_the_languages(
    lama: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = Templates({"P36": "Die Hauptstadt von [ x ] ist 【Y】.", "P37": "[X] spricht."})
    with Store(tmp_path / "s.sqlite") as store:
        shares = build(read_lama(lama), ["de", "sw"], answers, Labels(), store, tmp_path / "out")
    assert shares == {"de": 2 / 3, "sw": 0.0}
    data = MLama(tmp_path / "out")
    assert data.languages() == ["de", "en"]
    assert data.template("de", "P36") == "Die Hauptstadt von [X] ist [Y]."
    assert "P37" not in data.templates("de") and data.relations("de") == ["P36"], (
        "what has no template yet must not stop a query"
    )
    told = capsys.readouterr().err
    assert (
        "1 facts have no Wikidata ids" in told
        and "de P37: no template with one [X] and one [Y] ('[X] spricht.')" in told
    )
    joined = [
        (one.lineid, one.obj_label, other.obj_label, one.uuid)
        for one, other in data.join("de", "en", "P36")
    ]
    assert joined == [(1, "Ostdorf", "Ostby", "u1")]
    assert sorted(data.triples("en", "P36")) == [0, 1]


def test_templates_put_right_by_hand_are_used(lama: Path, tmp_path: Path) -> None:
    write_lines(
        tmp_path / "repairs" / "de.jsonl", [{"relation": "P37", "template": "[X] spricht [Y]."}]
    )
    with Store(tmp_path / "s.sqlite") as store:
        build(
            read_lama(lama),
            ["de"],
            Templates({"P36": "[X] [Y]"}),
            Labels(),
            store,
            tmp_path / "out",
            tmp_path / "repairs",
        )
        write_lines(
            tmp_path / "repairs" / "de.jsonl", [{"relation": "P37", "template": "[X] spricht."}]
        )
        with pytest.raises(UserError, match=r"de.jsonl: the template of P37 needs one \[X\]"):
            build(
                read_lama(lama),
                ["de"],
                Templates({"P36": "[X] [Y]"}),
                Labels(),
                store,
                tmp_path / "out",
                tmp_path / "repairs",
            )
    assert MLama(tmp_path / "out").template("de", "P37") == "[X] spricht [Y]."


def test_languages_at_or_below_the_cut_are_left_out(lama: Path, tmp_path: Path) -> None:
    with Store(tmp_path / "s.sqlite") as store:
        shares = build(
            read_lama(lama),
            ["it"],
            Templates({"P36": "", "P37": ""}),
            Labels(),
            store,
            tmp_path / "out",
            min_coverage=1 / 3,
        )
    assert shares == {"it": 1 / 3}
    assert MLama(tmp_path / "out").languages() == ["en"]


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        ("［Х］ родился в [У].", "[X] родился в [Y]."),
        ("{x}は[ Ｙ ]で生まれた。", "[X]は[Y]で生まれた。"),
        ("[X] und [X] in [Y]", None),
        ("nato a [Y]", None),
        ("X was born in Y", None),
    ],
)
def test_placeholders_are_mended_and_never_guessed(text: str, mended: str | None) -> None:
    assert mend_template(text) == mended


def test_the_command_with_stand_ins_for_both_services(
    lama: Path, tmp_path: Path, httpserver: HTTPServer, capsys: pytest.CaptureFixture[str]
) -> None:
    def entities(request: Request, _: int) -> Response:
        asked = request.args["ids"].split("|")
        labels = {
            uri: {"de": {"language": "de", "value": LABELS["de"][uri]}}
            for uri in asked
            if uri in LABELS["de"]
        }
        body = {
            "entities": {
                uri: {"id": uri, "labels": labels.get(uri, {}), "aliases": {}} for uri in asked
            }
        }
        return Response(json.dumps(body), content_type="application/json")

    wikidata = Service(httpserver, "/w/api.php", entities)
    google = Service(
        httpserver,
        "/m",
        lambda request, _: google_page(request.args["q"].replace("The capital of", "Hauptstadt:")),
    )
    words = [
        "build",
        "--lama",
        str(lama),
        "--langs",
        "de",
        "--translator",
        "google",
        "--out",
        str(tmp_path / "out"),
    ]
    words += ["--store", str(tmp_path / "t.sqlite"), "--names", str(tmp_path / "n.sqlite")]
    assert (
        main(
            [*words, "--base-url", f"wikidata={wikidata.url}", "--base-url", f"google={google.url}"]
        )
        == 0
    )
    assert MLama(tmp_path / "out").template("de", "P36") == "Hauptstadt: [X] is [Y] ."
    assert "de: 66.7% of 3 facts" in capsys.readouterr().out


def test_names_that_wikidata_keeps_for_all_languages_count(
    lama: Path, tmp_path: Path, httpserver: HTTPServer, capsys: pytest.CaptureFixture[str]
) -> None:
    def entities(request: Request, _: int) -> Response:
        codes = request.args["languages"].split("|")
        known = {"Q1": {"mul": "Ardland"}, "Q11": {"de": "Ostdorf", "ru": "Остдорф"}}
        found = {
            uri: {
                code: {"language": code, "value": label}
                for code, label in known.get(uri, {}).items()
                if code in codes
            }
            for uri in request.args["ids"].split("|")
        }
        body = {
            "entities": {
                uri: {"id": uri, "labels": labels, "aliases": {}} for uri, labels in found.items()
            }
        }
        return Response(json.dumps(body), content_type="application/json")

    service = Service(httpserver, "/w", entities)
    with (
        Store(tmp_path / "s.sqlite") as store,
        closing(Wikidata(tmp_path / "n.sqlite", api=service.url)) as names,
    ):
        shares = build(
            read_lama(lama),
            ["de", "ru"],
            Templates({"P36": "[X] [Y]", "P37": "[X] [Y]"}),
            names,
            store,
            tmp_path / "out",
        )
    assert shares == {"de": 1 / 3, "ru": 0}
    told = capsys.readouterr().err
    assert "1 of 5 labels in 'de' are from other codes: 1 'mul'" in told
    assert (
        "1 of 5 entities have no label in 'ru', and their label for all languages ('mul') is in another script"
        in told
    )
