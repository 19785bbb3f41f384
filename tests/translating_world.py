"""A tiny mLAMA folder and stand-ins for services that the tests of the translating room share."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path

from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from fluent_mlama.patience import Patience
from fluent_mlama.translating.backend import SourceSentence

QUICK = Patience(
    attempts=4,
    first_wait=0.001,
    longest_wait=0.002,
    longest_ask=2.0,
    per_second=0,
    connect=2.0,
    read=0.4,
)
"""Patient like the real one, in milliseconds."""

CITIES = {
    "Q90": ("Paris", "Париж", "Париже"),
    "Q64": ("Berlin", "Берлин", "Берлине"),
    "Q220": ("Rome", "Рим", "Риме"),
    "Q84": ("London", "Лондон", "Лондоне"),
    "Q649": ("Moscow", "Москва", "Москве"),
    "Q1085": ("Prague", "Прага", "Праге"),
}
PEOPLE = (
    "Ada Ash",
    "Ben Birch",
    "Cy Cedar",
    "Dee Dogwood",
    "Eve Elm",
    "Flo Fir",
    "Gus Gum",
    "Hal Hazel",
    "Ivy Ironwood",
    "Jo Juniper",
    "Kit Katsura",
    "Lou Larch",
)
PEOPLE_RU = (
    "Ада Эш",
    "Бен Бёрч",
    "Сай Сидар",
    "Ди Догвуд",
    "Ева Элм",
    "Фло Фёр",
    "Гас Гам",
    "Хэл Хейзел",
    "Айви Айронвуд",
    "Джо Джунипер",
    "Кит Кацура",
    "Лу Ларч",
)
ENGLISH = "[X] was born in [Y] ."
RUSSIAN = "[X] родился в [Y]."


def write_mlama(folder: Path, people: int = len(PEOPLE)) -> Path:
    """English and Russian facts of P19 for so many people, one more in each language that the other
    lacks.
    """
    cities = list(CITIES.items())
    for lang, names, template, which in (("en", PEOPLE, ENGLISH, 0), ("ru", PEOPLE_RU, RUSSIAN, 1)):
        (folder / lang).mkdir(parents=True)
        (folder / lang / "templates.jsonl").write_text(
            json.dumps({"relation": "P19", "template": template}) + "\n", encoding="utf-8"
        )
        lines = []
        for number in range(people):
            uri, city = cities[number % len(cities)]
            lines.append(fact_line(number, f"Q{number + 100001}", names[number], uri, city[which]))
        lines.append(fact_line(900 + which, "Q900000", "Only Here", "Q90", cities[0][1][which]))
        (folder / lang / "P19.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def fact_line(lineid: int, sub_uri: str, sub_label: str, obj_uri: str, obj_label: str) -> str:
    fact = {
        "sub_uri": sub_uri,
        "obj_uri": obj_uri,
        "sub_label": sub_label,
        "obj_label": obj_label,
        "from_english": False,
        "lineid": lineid,
    }
    return json.dumps(fact, ensure_ascii=False)


def translate(sentence: str) -> str:
    """What a good translator makes of "X was born in Y ."."""
    subject, city = sentence.removesuffix(" .").split(" was born in ")
    locative = {english: form for english, _, form in CITIES.values()}
    return f"{PEOPLE_RU[PEOPLE.index(subject)]} появился на свет в {locative[city]}."


def make_item(row: int = 0, target: str = "ru", **changes: object) -> SourceSentence:
    """The fact of one row of the tiny mLAMA."""
    uri, (english, russian, _) = list(CITIES.items())[row % len(CITIES)]
    cells = {
        "row": row,
        "relation": "P19",
        "sub_uri": f"Q{row + 100001}",
        "obj_uri": uri,
        "en_sub_label": PEOPLE[row],
        "en_obj_label": english,
        "sub_label": PEOPLE_RU[row],
        "obj_label": russian,
        "sentence": f"{PEOPLE[row]} was born in {english} .",
        "target": target,
    } | changes
    return SourceSentence(**cells)  # type: ignore[arg-type]


def google_page(text: str) -> Response:
    """Google's page for phones, as far as it matters."""
    return Response(
        "<!DOCTYPE html><html><head><title>Google Translate</title></head><body><div"
        f' class="root-container"><div class="result-container">{text}</div></div></body></html>',
        content_type="text/html; charset=UTF-8",
    )


def openai_json(text: str | None, *, finish: str = "stop", refusal: str | None = None) -> Response:
    """A chat completion."""
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1764470000,
        "model": "gpt-4o-mini-2024-07-18",
        "system_fingerprint": "fp_0123456789",
        "choices": [
            {
                "index": 0,
                "finish_reason": finish,
                "logprobs": None,
                "message": {
                    "role": "assistant",
                    "content": text,
                    "refusal": refusal,
                    "annotations": [],
                },
            }
        ],
        "usage": {"prompt_tokens": 1200, "completion_tokens": 15, "total_tokens": 1215},
    }
    return Response(json.dumps(body), content_type="application/json")


def openai_error(status: int, code: str, **headers: str) -> Response:
    body = {
        "error": {"message": f"something about {code}", "type": code, "param": None, "code": code}
    }
    return Response(
        json.dumps(body), status=status, content_type="application/json", headers=headers
    )


class Service:
    """A stand-in that answers by a function of (request, number of the request) and remembers what
    it was asked.
    """

    def __init__(
        self, server: HTTPServer, path: str, answer: Callable[[Request, int], Response]
    ) -> None:
        self.requests: list[Request] = []
        self.bodies: list[bytes] = []
        self._answer = answer
        self._lock = threading.Lock()
        self.url = server.url_for(path)
        server.expect_request(path).respond_with_handler(self._handle)

    def _handle(self, request: Request) -> Response:
        with self._lock:
            self.requests.append(request)
            self.bodies.append(request.get_data())
            number = len(self.requests)
        return self._answer(request, number)
