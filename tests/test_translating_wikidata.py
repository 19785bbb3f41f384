"""Names and gender from Wikidata, against a stand-in that answers in the API's shape."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from fluent_mlama.console import UserError
from fluent_mlama.translating.wikidata import USER_AGENT, Names, Wikidata, alias_cell, write_genders
from tests.translating_world import QUICK, Service

ENGLISH = "en|en-gb|en-ca|en-us"
ENTITIES: dict[str, dict[str, Any]] = {
    "Q90": {
        "labels": {"en": "Paris", "ru": "Париж"},
        "aliases": {"ru": ["Лютеция", "город Париж"]},
    },
    "Q64": {"labels": {"en": "Berlin"}, "aliases": {}},
    "Q1": {"redirect": "Q2"},
    "Q2": {"labels": {"en": "Earth", "ru": "Земля"}, "aliases": {"ru": ["планета Земля", "Земля"]}},
    "Q956": {
        "labels": {"en": "Beijing", "zh": "北京市", "zh-hans": "北京"},
        "aliases": {"zh": ["燕京", "北平", "順天府"]},
    },
    "Q6581072": {"labels": {"en": "female"}},
    "Q6581097": {"labels": {"en": "male"}},
    "Q7": {"gender": [("Q6581097", "normal"), ("Q6581072", "preferred")]},
    "Q8": {"gender": [("Q6581072", "deprecated"), ("Q6581097", "normal")]},
    "Q9": {},
    "Q42": {
        "labels": {"mul": "Douglas Adams"},
        "aliases": {"mul": ["Douglas N. Adams", "Дуглас Адамс"]},
    },
    "Q1339": {
        "labels": {"de": "Johann Sebastian Bach", "mul": "J. S. Bach"},
        "aliases": {"de": ["Bach"], "mul": ["Bach", "JSB"]},
    },
    "Q43": {"redirect": "Q42"},
    "Q4711": {"labels": {"mul": "4711"}},
    "Q55": {"labels": {"de": "", "mul": "  Al\u200bde\u0301r "}},
}


def entity_json(uri: str, languages: list[str]) -> dict[str, Any]:
    """One entity as wbgetentities gives it; a redirect comes under the id that was asked for."""
    known = ENTITIES.get(uri)
    if known is None:
        return {"id": uri, "missing": ""}
    if "redirect" in known:
        return entity_json(known["redirect"], languages) | {
            "redirects": {"from": uri, "to": known["redirect"]}
        }
    labels = {
        lang: {"language": lang, "value": label}
        for lang, label in known.get("labels", {}).items()
        if lang in languages
    }
    aliases = {
        lang: [{"language": lang, "value": name} for name in names]
        for lang, names in known.get("aliases", {}).items()
        if lang in languages
    }
    claims = [
        {
            "rank": rank,
            "mainsnak": {
                "snaktype": "value",
                "datavalue": {"value": {"id": value, "entity-type": "item"}},
            },
        }
        for value, rank in known.get("gender", [])
    ]
    return {
        "type": "item",
        "id": uri,
        "labels": labels or [],
        "aliases": aliases or [],
        "claims": {"P21": claims} if claims else [],
    }


def good(request: Request, _: int = 0) -> Response:
    languages = request.args.get("languages", "").split("|")
    entities = {uri: entity_json(uri, languages) for uri in request.args["ids"].split("|")}
    return Response(
        json.dumps({"entities": entities, "success": 1}), content_type="application/json"
    )


def error_json(code: str, **more: str) -> Response:
    headers = {"Retry-After": "0"} if code == "maxlag" else {}
    return Response(
        json.dumps({"error": {"code": code, "info": f"about {code}", **more}}),
        content_type="application/json",
        headers=headers,
    )


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "w.sqlite"


def client(
    server: HTTPServer, store: Path, answer: Any = good, **options: Any
) -> tuple[Wikidata, Service]:
    service = Service(server, "/w/api.php", answer)
    return Wikidata(store, api=service.url, patience=QUICK, **options), service


def test_names_of_the_language_and_english_kept_apart(httpserver: HTTPServer, store: Path) -> None:
    wikidata, service = client(httpserver, store)
    names = wikidata.names(["Q90", "Q64", "Q424242"], "ru")
    assert names == {
        "Q90": Names("Париж", ("Лютеция", "город Париж")),
        "Q64": Names(),
        "Q424242": Names(),
    }
    assert {uri: one.label for uri, one in wikidata.names(["Q90", "Q64"], "en").items()} == {
        "Q90": "Paris",
        "Q64": "Berlin",
    }
    assert len(service.requests) == 1
    request = service.requests[0]
    assert request.headers["User-Agent"] == USER_AGENT
    assert (request.args["maxlag"], request.args["props"]) == ("5", "labels|aliases")
    assert request.args["languages"] == f"ru|mul|{ENGLISH}"


def test_a_redirect_is_followed_to_the_names(httpserver: HTTPServer, store: Path) -> None:
    assert client(httpserver, store)[0].names(["Q1"], "ru")["Q1"].all == ("Земля", "планета Земля")


def test_chinese_names_of_all_variants_in_simplified_script(
    httpserver: HTTPServer, store: Path
) -> None:
    names = client(httpserver, store)[0].names(["Q956"], "zh")["Q956"]
    assert alias_cell(names, "zh") == "北京市|||北京|||燕京|||北平|||顺天府"


@pytest.mark.parametrize(
    ("uri", "lang", "names"),
    [
        ("Q42", "de", Names("Douglas Adams", ("Douglas N. Adams",))),
        ("Q43", "de", Names("Douglas Adams", ("Douglas N. Adams",))),
        ("Q42", "en", Names("Douglas Adams", ("Douglas N. Adams",))),
        ("Q42", "ru", Names("", ("Дуглас Адамс",))),
        ("Q42", "sr", Names("Douglas Adams", ("Douglas N. Adams", "Дуглас Адамс"))),
        ("Q42", "ja", Names()),
        ("Q1339", "de", Names("Johann Sebastian Bach", ("Bach", "JSB"))),
        ("Q1339", "cs", Names("J. S. Bach", ("Bach", "JSB"))),
        ("Q4711", "ru", Names("4711")),
        ("Q55", "de", Names("Aldér")),
    ],
)
def test_names_for_all_languages_where_the_language_has_none_of_its_own(
    httpserver: HTTPServer, store: Path, uri: str, lang: str, names: Names
) -> None:
    wikidata, _ = client(httpserver, store)
    assert wikidata.names([uri], lang) == {uri: names}


@pytest.mark.parametrize(
    ("lang", "code"),
    [
        ("be", "be-tarask"),
        ("de", "de-ch"),
        ("en", "en-gb"),
        ("fil", "tl"),
        ("nb", "no"),
        ("no", "nb"),
        ("pt", "pt-br"),
        ("sr", "sr-cyrl"),
        ("sr", "sr-latn"),
        ("sr", "sr-ec"),
        ("tl", "fil"),
        ("zh", "zh-cn"),
        ("zh", "zh-hant"),
        ("zh", "zh-tw"),
    ],
)
def test_a_variant_of_the_language_comes_before_the_label_for_all_languages(
    httpserver: HTTPServer,
    store: Path,
    lang: str,
    code: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(ENTITIES, "Q77", {"labels": {"mul": "Mul 多", code: "Variant"}})
    assert client(httpserver, store)[0].names(["Q77"], lang) == {"Q77": Names("Variant")}
    first = lang == "fil" or lang == "no"  # their names stand under tl and nb
    assert (
        f"1 of 1 labels in '{lang}' are from other codes: 1 '{code}'" in capsys.readouterr().err
    ) != first


def test_a_related_language_is_not_the_language(httpserver: HTTPServer, store: Path) -> None:
    assert client(httpserver, store)[0].names(["Q90"], "uk") == {"Q90": Names()}


def test_it_is_told_where_the_labels_are_from(
    httpserver: HTTPServer, store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wikidata, service = client(httpserver, store)
    uris = ["Q1339", "Q42", "Q43", "Q90", "Q5050"]
    for _ in range(2):  # the second time from the store
        wikidata.names(uris, "de")
        assert capsys.readouterr().err.splitlines()[-2:] == [
            "Wikidata: 2 of 5 labels in 'de' are from other codes: 2 'mul'",
            "Wikidata: 1 of 5 entities are not there, perhaps deleted (the first: Q5050)",
        ]
    wikidata.names(["Q42", "Q90"], "ru")
    assert (
        "Wikidata: 1 of 2 entities have no label in 'ru', and their label for all languages ('mul')"
        " is in another script (the first: Douglas Adams); it is not used"
        in capsys.readouterr().err
    )
    wikidata.names(["Q90"], "ru")
    assert "labels" not in capsys.readouterr().err
    assert len(service.requests) == 2


def test_a_store_without_the_names_for_all_languages_is_not_taken_for_complete(
    httpserver: HTTPServer, store: Path
) -> None:
    with sqlite3.connect(store) as connection:
        connection.execute("CREATE TABLE names (uri TEXT, language TEXT, label TEXT, aliases TEXT)")
        connection.execute("INSERT INTO names VALUES ('Q42', 'de', '', '[]')")
    wikidata, service = client(httpserver, store)
    assert wikidata.names(["Q42"], "de")["Q42"].label == "Douglas Adams"
    wikidata.names(["Q42"], "be")  # en and mul are there, be and be-tarask are not
    assert [request.args["languages"] for request in service.requests] == [
        f"de|de-at|de-ch|mul|{ENGLISH}",
        f"be|be-tarask|mul|{ENGLISH}",
    ]


def test_fifty_a_request_and_a_second_run_asks_for_nothing(
    httpserver: HTTPServer, store: Path
) -> None:
    uris = [f"Q{number}" for number in range(1000, 1120)]
    wikidata, service = client(httpserver, store)
    wikidata.names(uris, "ru")
    assert [len(request.args["ids"].split("|")) for request in service.requests] == [50, 50, 20]
    wikidata.close()
    again = Wikidata(store, api=service.url, patience=QUICK)
    again.names(uris, "ru")
    assert len(service.requests) == 3
    Wikidata(store, api=service.url, patience=QUICK, refresh=True).names(uris, "ru")
    assert len(service.requests) == 6


@pytest.mark.parametrize(
    "fault",
    [
        error_json("maxlag", lag="7"),
        Response("busy", status=429, headers={"Retry-After": "0"}),
        Response("busy", status=503),
        Response("<html>"),
        Response("[]", content_type="application/json"),
        Response('{"error": "busy"}', content_type="application/json"),
        Response('{"success": 1}', content_type="application/json"),
    ],
    ids=["maxlag", "429", "503", "html", "list", "error without code", "no entities"],
)
def test_what_passes_is_waited_for(httpserver: HTTPServer, store: Path, fault: Response) -> None:
    wikidata, service = client(
        httpserver, store, lambda request, number: fault if number <= 2 else good(request)
    )
    assert wikidata.names(["Q90"], "ru")["Q90"].label == "Париж"
    assert len(service.requests) == 3


def test_an_id_that_the_service_refuses_does_not_lose_the_others(
    httpserver: HTTPServer, store: Path
) -> None:
    def answer(request: Request, _: int) -> Response:
        return (
            error_json("no-such-entity", id="Q5")
            if "Q5" in request.args["ids"].split("|")
            else good(request)
        )

    names = client(httpserver, store, answer)[0].names(["Q5", "Q90"], "ru")
    assert (names["Q5"], names["Q90"].label) == (Names(), "Париж")


def test_ids_that_are_none_are_noted_and_not_sent(
    httpserver: HTTPServer, store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wikidata, service = client(httpserver, store)
    assert wikidata.names(["90", "Q90", "/m/01"], "ru")["90"] == Names()
    assert service.requests[0].args["ids"] == "Q90"
    assert "2 ids are not Wikidata's (the first: '90')" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (
            Response("no agent", status=403),
            r"Wikidata refuses this client \(HTTP 403\): give a user agent that names you",
        ),
        (
            Response("gone", status=404),
            r"Wikidata refuses the question \(HTTP 404\): check the address http",
        ),
        (error_json("badvalue"), r"Wikidata refuses the question \(badvalue\)"),
        (
            Response("busy", status=503),
            r"Wikidata is out of reach \(HTTP 503, 4 times\); what was fetched is kept",
        ),
        (
            Response("busy", status=429, headers={"Retry-After": "999"}),
            "Wikidata asks to come back in 999 s",
        ),
    ],
)
def test_what_stays_is_told_in_one_line(
    httpserver: HTTPServer, store: Path, fault: Response, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        client(httpserver, store, lambda request, number: fault)[0].names(["Q90"], "ru")


def test_no_service_and_one_that_hangs(store: Path) -> None:
    with pytest.raises(UserError, match=r"out of reach \(no answer \(ConnectionError\), 4 times\)"):
        Wikidata(store, api="http://127.0.0.1:9/w", patience=QUICK).names(["Q90"], "ru")
    with HTTPServer(threaded=True) as server:
        service = Service(server, "/w", lambda request, number: time.sleep(0.6) or good(request))  # type: ignore[func-returns-value]
        with pytest.raises(UserError, match=r"out of reach \(no answer \(ReadTimeout\), 4 times\)"):
            Wikidata(store, api=service.url, patience=QUICK).names(["Q90"], "ru")
    assert len(service.requests) == QUICK.attempts


def test_what_was_fetched_before_a_fault_is_kept(httpserver: HTTPServer, store: Path) -> None:
    uris = [f"Q{number}" for number in range(1000, 1100)]
    broken = {"now": True}

    def answer(request: Request, number: int) -> Response:
        return Response("no", status=500) if broken["now"] and number > 1 else good(request)

    wikidata, service = client(httpserver, store, answer)
    with pytest.raises(UserError):
        wikidata.names(uris, "ru")
    broken["now"] = False
    before = len(service.requests)
    wikidata.names(uris, "ru")
    assert [request.args["ids"].split("|")[0] for request in service.requests[before:]] == ["Q1050"]


@pytest.fixture
def genders(httpserver: HTTPServer, store: Path) -> Iterator[dict[str, str]]:
    yield client(httpserver, store)[0].genders(["Q7", "Q8", "Q9"])


def test_gender_is_the_preferred_value_never_a_deprecated_one(genders: dict[str, str]) -> None:
    assert genders == {"Q7": "female", "Q8": "male"}


def test_gender_file_has_the_published_columns(genders: dict[str, str], tmp_path: Path) -> None:
    write_genders(genders | {"Q10": "male"}, tmp_path / "gender.tsv")
    assert (tmp_path / "gender.tsv").read_text(
        encoding="utf-8"
    ) == "p\tgenderLabel\nQ7\tfemale\nQ8\tmale\nQ10\tmale\n"
