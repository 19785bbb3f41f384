"""Google and the other engines, and the chat model, against stand-ins that answer in the services'
shapes.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import responses
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from fluent_mlama.console import UserError
from fluent_mlama.records.few_shot import FewShot, Shot
from fluent_mlama.translating.backend import Answer, Translator
from fluent_mlama.translating.google import ENGINE_KEYS, ENGINES, DeepTranslator
from fluent_mlama.translating.openai_chat import OpenAITranslator, instruction
from tests.translating_world import (
    QUICK,
    Service,
    google_page,
    make_item,
    openai_error,
    openai_json,
    translate,
)

KEY = "sk-never-to-be-seen-0123456789"


def asked(translator: Translator, number: int = 3) -> dict[int, Answer]:
    items = [make_item(row) for row in range(number)]
    return {item.row: answer for item, answer in translator.translate(items)}


def google(server: HTTPServer, answer) -> tuple[DeepTranslator, Service]:
    service = Service(server, "/m", answer)
    return DeepTranslator("google", base_url=service.url, patience=QUICK), service


def good_page(request: Request, _: int = 0) -> Response:
    return google_page(translate(request.args["q"]))


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.fixture
def slow_server() -> Iterator[HTTPServer]:
    """A server that answers others while one request hangs."""
    with HTTPServer(threaded=True) as server:
        yield server


def chat(server: HTTPServer, answer, **options: object) -> tuple[OpenAITranslator, Service]:
    service = Service(server, "/v1/chat/completions", answer)
    url = server.url_for("/v1")
    return OpenAITranslator(base_url=url, patience=QUICK, **options), service  # type: ignore[arg-type]


def good_chat(service_request: Request, _: int = 0) -> Response:
    query = json.loads(service_request.get_data())["messages"][-1]["content"]
    return openai_json(translate(query.split("\n")[0].removeprefix("Source sentence: ")))


# Google


def test_google_sends_one_sentence_a_request_with_its_codes(httpserver: HTTPServer) -> None:
    translator, service = google(httpserver, good_page)
    assert asked(translator)[1] == Answer("Бен Бёрч появился на свет в Берлине.")
    assert [(request.args["sl"], request.args["tl"]) for request in service.requests] == [
        ("en", "ru")
    ] * 3
    assert service.requests[0].args["q"] == "Ada Ash was born in Paris ."


@pytest.mark.parametrize(
    ("code", "sent"), [("zh", "zh-CN"), ("he", "iw"), ("nb", "no"), ("jv", "jw"), ("fil", "tl")]
)
def test_google_codes_are_mapped_before_the_request(
    httpserver: HTTPServer, code: str, sent: str
) -> None:
    translator, service = google(httpserver, lambda request, number: google_page("x y z."))
    translator.check("en", code, "P19")
    list(translator.translate([make_item(target=code)]))
    assert service.requests[0].args["tl"] == sent


def test_google_tries_again_after_429_and_5xx_and_obeys_retry_after(
    httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr(
        "tenacity.nap.time.sleep", lambda seconds: waits.append(seconds) if seconds else None
    )
    statuses = {1: (429, {"Retry-After": "1.5"}), 2: (503, {})}

    def answer(request: Request, number: int) -> Response:
        status, headers = statuses.get(number, (200, {}))
        return (
            good_page(request)
            if status == 200
            else Response("busy", status=status, headers=headers)
        )

    translator, service = google(httpserver, answer)
    assert asked(translator, 2)[0].text == "Ада Эш появился на свет в Париже."
    assert len(service.requests) == 4
    assert waits[0] == 1.5
    assert waits[1] < 1


def test_one_failing_row_never_loses_the_others(slow_server: HTTPServer) -> None:
    """A row that always gets 500, one that hangs, one that is garbage: the others are there, these
    say why.
    """

    def answer(request: Request, _: int) -> Response:
        who = request.args["q"].split(" was")[0]
        if who == "Ben Birch":
            return Response("no", status=500)
        if who == "Cy Cedar":
            time.sleep(0.5)
        if who == "Dee Dogwood":
            return Response("<html>something else</html>")
        return good_page(request)

    translator, service = google(slow_server, answer)
    found = asked(translator, 5)
    assert {row: answer.status for row, answer in found.items()} == {
        0: "ok",
        1: "failed",
        2: "failed",
        3: "failed",
        4: "ok",
    }
    assert found[1].detail == "HTTP 500, 4 times"
    assert found[2].detail == "no answer (ReadTimeout), 4 times"
    assert found[3].detail == "unreadable answer (TranslationNotFound), 4 times"
    assert len(service.requests) == 2 + 3 * QUICK.attempts


def test_google_answers_that_are_no_translation_are_passed_on_as_they_are(
    httpserver: HTTPServer,
) -> None:
    pages = ["", "Ben Birch was born in Berlin ."]
    translator, _ = google(httpserver, lambda request, number: google_page(pages[number - 1]))
    assert [answer.text for answer in asked(translator, 2).values()] == [
        "",
        "Ben Birch was born in Berlin .",
    ]


def test_a_pause_longer_than_we_wait_ends_the_run(httpserver: HTTPServer) -> None:
    translator, _ = google(
        httpserver,
        lambda request, number: Response("busy", status=429, headers={"Retry-After": "3600"}),
    )
    with pytest.raises(
        UserError, match="google asks to come back in 3600 s; what was finished is kept"
    ):
        asked(translator)


def test_no_service_at_all(httpserver: HTTPServer) -> None:
    translator = DeepTranslator("google", base_url="http://127.0.0.1:9/m", patience=QUICK)
    assert asked(translator, 1)[0].status == "failed"


def test_a_row_that_the_engine_refuses_is_not_tried_again(httpserver: HTTPServer) -> None:
    translator, service = google(httpserver, good_page)
    ((_, answer),) = translator.translate([make_item(sentence="x" * 5000)])
    assert (answer.status, len(service.requests)) == ("missing", 0)


def test_unknown_engine_and_unknown_language_tell_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        UserError,
        match="unknown deep-translator engine 'bong': choose from baidu, deepl, google, .*yandex",
    ):
        DeepTranslator("bong")
    monkeypatch.setenv("DEEPL_API_KEY", KEY)
    with pytest.raises(
        UserError, match="deepl does not translate language 'hr': choose from bg, cs, da, .*zh"
    ):
        DeepTranslator("deepl").check("en", "hr", "P19")


# the other engines, at their own addresses, which `responses` answers for

SAID = "Ада Эш родилась в Париже."
ENGINE_ANSWERS: dict[str, tuple[str, object]] = {
    "baidu": ("ru", {"from": "en", "to": "ru", "trans_result": [{"src": "x", "dst": SAID}]}),
    "deepl": ("ru", {"translations": [{"detected_source_language": "EN", "text": SAID}]}),
    "google": ("ru", f'<div class="result-container">{SAID}</div>'),
    "libre": ("ru", {"translatedText": SAID}),
    "linguee": ("ru", f'<a class="dictLink featured">{SAID}</a>'),
    "microsoft": ("ru", [{"translations": [{"text": SAID, "to": "ru"}]}]),
    "mymemory": ("ru", {"responseData": {"translatedText": SAID}, "matches": []}),
    "papago": ("es", {"message": {"result": {"translatedText": SAID}}}),
    "pons": ("ru", f'<div class="result_list"><div class="target"><a>{SAID}</a></div></div>'),
    "qcri": ("es", {"success": True, "translatedText": SAID}),
    "yandex": ("ru", {"code": 200, "lang": "en-ru", "text": SAID}),
}
MICROSOFT_LANGUAGES = {
    "translation": {
        "en": {"name": "English"},
        "ru": {"name": "Russian"},
        "zh-Hans": {"name": "Chinese Simplified"},
    }
}


def engine_at_home(engine: str, monkeypatch: pytest.MonkeyPatch) -> DeepTranslator:
    for variable in ENGINE_KEYS.get(engine, {}).values():
        monkeypatch.setenv(variable, KEY)
    return DeepTranslator(engine, patience=QUICK)


def test_every_engine_has_a_trial() -> None:
    assert set(ENGINE_ANSWERS) == set(ENGINES)


@pytest.mark.parametrize("engine", ENGINES)
@responses.activate
def test_every_engine_translates_by_name(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    target, body = ENGINE_ANSWERS[engine]
    answer = (
        {"body": body, "content_type": "text/html; charset=utf-8"}
        if isinstance(body, str)
        else {"json": body}
    )
    responses.get(
        re.compile(r"https?://.*"),
        **({"json": MICROSOFT_LANGUAGES} if engine == "microsoft" else answer),
    )
    responses.post(re.compile(r"https?://.*"), **answer)
    translator = engine_at_home(engine, monkeypatch)
    translator.check("en", target, "P19")
    ((_, found),) = translator.translate([make_item(target=target, sentence="Ada Ash was born .")])
    assert found.text is not None
    assert SAID.rstrip(".") in found.text


@pytest.mark.parametrize("engine", sorted(ENGINE_KEYS))
def test_engines_with_a_key_say_which_variable_they_miss(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    variables = list(ENGINE_KEYS[engine].values())
    for variable in variables:
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(
        UserError, match=f"{engine} needs a key: set the environment variable {variables[0]}"
    ):
        DeepTranslator(engine).check("en", "es", "P19")


@pytest.mark.parametrize(
    ("engine", "status", "body", "message"),
    [
        ("deepl", 456, "Quota exceeded", r"deepl: the quota is used up \(HTTP 456\)"),
        ("deepl", 403, "Forbidden", r"deepl refuses the key \(HTTP 403\): check DEEPL_API_KEY"),
        (
            "mymemory",
            200,
            (
                '{"responseData": {"translatedText": "MYMEMORY WARNING: YOU USED ALL AVAILABLE FREE'
                ' TRANSLATIONS"}}'
            ),
            "quota",
        ),
        (
            "microsoft",
            401,
            '{"error": {"code": 401000, "message": "not authorised"}}',
            r"microsoft refuses the key \(HTTP 401\)",
        ),
    ],
)
@responses.activate
def test_quota_and_refused_keys_end_the_run_at_once(
    engine: str, status: int, body: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    anywhere = re.compile(r"https?://.*")
    asked_by_get = responses.get(
        anywhere,
        **(
            {"json": MICROSOFT_LANGUAGES}
            if engine == "microsoft"
            else {"body": body, "status": status}
        ),
    )
    asked_by_post = responses.post(anywhere, body=body, status=status)
    with pytest.raises(UserError, match=message) as caught:
        asked(engine_at_home(engine, monkeypatch))
    assert asked_by_post.call_count + asked_by_get.call_count == 1 + (engine == "microsoft")
    assert KEY not in str(caught.value)


@responses.activate
def test_a_key_never_shows_in_what_is_kept_of_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """DeepL's key goes in the URL, and requests puts the URL into its exceptions."""
    answer = asked(engine_at_home("deepl", monkeypatch), 1)[0]
    assert answer.status == "failed"
    assert KEY not in repr(answer)


# the chat model


def test_openai_gives_the_labels_and_asks_as_user(httpserver: HTTPServer, key: None) -> None:
    translator, service = chat(httpserver, good_chat, model="gpt-4o-mini", seed=7)
    assert asked(translator)[2].text == "Сай Сидар появился на свет в Риме."
    sent = json.loads(service.bodies[0])
    assert [message["role"] for message in sent["messages"]] == ["system", "user"]
    assert sent["messages"][0]["content"] == instruction("ru")
    assert (sent["model"], sent["temperature"], sent["seed"]) == ("gpt-4o-mini", 0, 7)
    queries = {json.loads(body)["messages"][1]["content"] for body in service.bodies}
    assert (
        "Source sentence: Ada Ash was born in Paris .\nSubject translation: Ада Эш\nObject"
        " translation: Париж\nTranslation:" in queries
    )
    assert service.requests[0].headers["Authorization"] == f"Bearer {KEY}"


def test_the_published_turn_is_kept_as_an_option(httpserver: HTTPServer, key: None) -> None:
    translator, service = chat(httpserver, good_chat, published_role=True)
    asked(translator, 1)
    turn = json.loads(service.bodies[0])["messages"][1]
    assert turn["role"] == "assistant"
    assert [line.split(":")[0] for line in turn["content"].split("\n")] == [
        "Source sentence",
        "Subject",
        "Object",
        "Sentence",
    ]


def test_few_shot_text_goes_into_the_system_message_and_the_prompt_hash(
    httpserver: HTTPServer, key: None
) -> None:
    shots = FewShot(
        instruction("ru"), (Shot("Zed was born in Rome .", "Зед", "Рим", "Зед родился в Риме."),)
    )
    with_shots, service = chat(httpserver, good_chat, examples=lambda lang, relation: shots)
    asked(with_shots, 1)
    assert (
        "        Translation: Зед родился в Риме."
        in json.loads(service.bodies[0])["messages"][0]["content"]
    )
    bare = OpenAITranslator()
    hashes = {
        bare.prompt_hash("en", "ru", "P19"),
        with_shots.prompt_hash("en", "ru", "P19"),
        OpenAITranslator(seed=1).prompt_hash("en", "ru", "P19"),
        OpenAITranslator(published_role=True).prompt_hash("en", "ru", "P19"),
        bare.prompt_hash("en", "cs", "P19"),
    }
    assert len(hashes) == 5


def test_openai_refusal_cut_filter_and_none_are_told_apart(
    httpserver: HTTPServer, key: None
) -> None:
    replies = {
        "Ada": openai_json(None, refusal="I cannot help with that."),
        "Ben": openai_json("Бен Бёрч появился на", finish="length"),
        "Cy ": openai_json(None, finish="content_filter"),
        "Dee": openai_json(None),
    }

    def answer(request: Request, _: int) -> Response:
        return replies[json.loads(request.get_data())["messages"][-1]["content"][17:20]]

    found = asked(chat(httpserver, answer)[0], 4)
    assert [found[row].status for row in range(4)] == ["refusal", "cut", "filtered", "ok"]
    assert found[3].text is None
    assert found[0].detail == "gpt-4o-mini-2024-07-18 fp_0123456789"


@pytest.mark.parametrize(
    "fault",
    [
        openai_error(429, "rate_limit_exceeded", **{"Retry-After": "0"}),
        openai_error(503, "server_error"),
        Response("<html>gateway</html>", content_type="text/html"),
        Response('{"choices": []}', content_type="application/json"),
        Response("not json", content_type="application/json"),
        Response(
            '{"choices": [{"message": {"content": {"a": 1}}, "finish_reason": "stop"}]}',
            content_type="application/json",
        ),
    ],
    ids=["429", "503", "html", "no choices", "not json", "no text"],
)
def test_openai_faults_that_pass_are_tried_again(
    httpserver: HTTPServer, key: None, fault: Response
) -> None:
    translator, service = chat(
        httpserver, lambda request, number: fault if number <= 2 else good_chat(request)
    )
    assert asked(translator, 1)[0].text == "Ада Эш появился на свет в Париже."
    assert len(service.requests) == 3


def test_openai_that_hangs_fails_the_row_only(slow_server: HTTPServer, key: None) -> None:
    def answer(request: Request, _: int) -> Response:
        if b"Ben Birch" in request.get_data():
            time.sleep(0.5)
        return good_chat(request)

    found = asked(chat(slow_server, answer)[0])
    assert [found[row].status for row in range(3)] == ["ok", "failed", "ok"]
    assert found[1].detail == "no answer (APITimeoutError), 4 times"


@pytest.mark.parametrize(
    ("status", "code", "message"),
    [
        (
            429,
            "insufficient_quota",
            r"openai: the quota is used up \(insufficient_quota\); what was finished is kept",
        ),
        (
            401,
            "invalid_api_key",
            r"openai refuses the key \(HTTP 401\): check OPENAI_API_KEY or openai-api-key.txt",
        ),
        (404, "model_not_found", "openai knows no model 'gpt-4o-mini'"),
    ],
)
def test_what_no_row_survives_ends_the_run_without_more_requests(
    httpserver: HTTPServer, key: None, status: int, code: str, message: str
) -> None:
    translator, service = chat(
        httpserver,
        lambda request, number: openai_error(status, code) if number > 2 else good_chat(request),
        workers=1,
    )
    answers = []
    with pytest.raises(UserError, match=message) as caught:
        for pair in translator.translate([make_item(row) for row in range(12)]):
            answers.append(pair)
    assert len(answers) == 2
    assert len(service.requests) == 3
    assert KEY not in str(caught.value)


def test_a_bad_request_fails_its_row_at_once(httpserver: HTTPServer, key: None) -> None:
    translator, service = chat(
        httpserver, lambda request, number: openai_error(400, "content_policy_violation"), workers=1
    )
    assert asked(translator, 1)[0] == Answer(
        None, "failed", detail="HTTP 400 content_policy_violation"
    )
    assert len(service.requests) == 1


def test_the_key_comes_from_the_environment_or_the_file(
    httpserver: HTTPServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.chdir(tmp_path)
    for variable in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(
        UserError,
        match="openai needs a key: set OPENAI_API_KEY, or write it into openai-api-key.txt",
    ):
        OpenAITranslator().check("en", "ru", "P19")
    (tmp_path / "openai-api-key.txt").write_text("put your key here", encoding="utf-8")
    with pytest.raises(UserError, match="openai-api-key.txt holds no key"):
        OpenAITranslator().check("en", "ru", "P19")
    (tmp_path / "openai-api-key.txt").write_text(f"{KEY}\n", encoding="utf-8")
    service = Service(httpserver, "/v1/chat/completions", good_chat)
    monkeypatch.setenv("OPENAI_BASE_URL", httpserver.url_for("/v1"))
    with caplog.at_level(logging.DEBUG):
        translator = OpenAITranslator(patience=QUICK)
        translator.check("en", "ru", "P19")
        asked(translator, 1)
    assert service.requests[0].headers["Authorization"] == f"Bearer {KEY}"
    assert KEY not in caplog.text
