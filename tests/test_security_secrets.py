"""Keys stay where they are: not in files, stores, logs or messages, whatever a service sends back."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from urllib.parse import unquote

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from tests.translating_world import Service, google_page, openai_json, translate, write_mlama

KEYS = {
    "OPENAI_API_KEY": "sk-neverToBeSeen1", "DEEPL_API_KEY": "deepl-neverToBeSeen2:fx", "MICROSOFT_API_KEY": "ms-neverToBeSeen3",
    "HF_TOKEN": "hf_neverToBeSeen4",
}  # fmt: skip


@pytest.fixture
def mlama(tmp_path: Path) -> Path:
    return write_mlama(tmp_path / "mlama", 4)


def datamodifier(root: Path, tmp_path: Path, mlama: Path, *words: str) -> subprocess.Popen[str]:
    command = [
        sys.executable, "-c",
        "import signal, sys\nsignal.signal(signal.SIGINT, signal.default_int_handler)\nfrom datamodifier import main\n"
        "from fluent_mlama.console import run_main\nsys.argv[0] = 'datamodifier.py'\nrun_main(main)\n",
        "-l", "ru", "-r", "P19", "--mlama", str(mlama), "--out", str(tmp_path / "out"), "--store", str(tmp_path / "store.sqlite"),
        "--aliases", "none", "--per-second", "1000", *words,
    ]  # fmt: skip
    return subprocess.Popen(
        command,
        cwd=root,
        env=os.environ | KEYS,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


def seen_in(tmp_path: Path, *texts: str) -> list[str]:
    """Where a key was found: in any file that the run left, or in what it printed."""
    found = [
        f"{name} in what was printed" for name, key in KEYS.items() for text in texts if key in text
    ]
    for path in (path for path in tmp_path.rglob("*") if path.is_file()):
        found += [
            f"{name} in {path.name}"
            for name, key in KEYS.items()
            if key.encode() in path.read_bytes()
        ]
    return found


def echo(request: Request, status: int) -> Response:
    """Everything that came in, sent back in an error as this interface writes them."""
    sent = f"{request.headers.get('Authorization')} {request.url}"
    body = {
        "error": {
            "message": f"wrong: {sent}",
            "type": sent,
            "param": sent,
            "code": KEYS["OPENAI_API_KEY"],
        }
    }
    return Response(
        json.dumps(body), status=status, content_type="application/json", headers={"X-Sent": sent}
    )


@pytest.mark.parametrize("status", [200, 400, 401])
def test_a_chat_service_that_sends_the_key_back(
    httpserver: HTTPServer, mlama: Path, tmp_path: Path, root: Path, status: int
) -> None:
    def answer(request: Request, number: int) -> Response:
        if status == 200 and number > 1:
            query = request.get_json()["messages"][-1]["content"]
            return openai_json(translate(query.split("\n")[0].removeprefix("Source sentence: ")))
        return echo(request, 400 if status == 200 else status)

    service = Service(httpserver, "/v1/chat/completions", answer)
    words = [
        "--translator",
        "openai",
        "--base-url",
        f"openai={service.url.removesuffix('/chat/completions')}",
    ]
    process = datamodifier(root, tmp_path, mlama, *words)
    out, err = process.communicate(timeout=300)
    assert process.returncode == (2 if status == 401 else 0) and "Traceback" not in err
    assert service.requests[0].headers["Authorization"] == f"Bearer {KEYS['OPENAI_API_KEY']}"
    assert seen_in(tmp_path, out, err) == []


@pytest.mark.parametrize("engine", ["deepl", "google"])
def test_a_translation_service_that_sends_the_key_back(
    httpserver: HTTPServer, mlama: Path, tmp_path: Path, root: Path, engine: str
) -> None:
    seen: list[str] = []

    def answer(request: Request) -> Response:
        seen.append(f"{request.url} {request.headers}")
        return echo(request, 403)

    httpserver.expect_request(re.compile("/m.*")).respond_with_handler(answer)
    process = datamodifier(
        root,
        tmp_path,
        mlama,
        "--translator",
        engine,
        "--base-url",
        f"{engine}={httpserver.url_for('/m')}",
    )
    out, err = process.communicate(timeout=300)
    assert "Traceback" not in err
    assert engine == "google" or KEYS["DEEPL_API_KEY"] in unquote(seen[0])
    assert seen_in(tmp_path, out, err) == []


def test_ctrl_c_while_a_service_hangs_asks_for_nothing_more(
    httpserver: HTTPServer, mlama: Path, tmp_path: Path, root: Path
) -> None:
    """Rows under way end with their request; no row is tried again and no further one begun. Keys stay unseen here too."""
    reached, sent = threading.Event(), threading.Event()

    def hang(request: Request, number: int) -> Response:
        if number == 1:
            return google_page("no")
        reached.set()
        sent.wait(100)
        return echo(request, 503)

    with HTTPServer(threaded=True) as server:
        service = Service(server, "/v1/chat/completions", hang)
        words = [
            "--translator",
            "openai",
            "--workers",
            "2",
            "--base-url",
            f"openai={service.url.removesuffix('/chat/completions')}",
        ]
        process = datamodifier(root, tmp_path, mlama, *words)
        assert reached.wait(200)
        process.send_signal(signal.SIGINT)
        threading.Timer(1.0, sent.set).start()
        out, err = process.communicate(timeout=300)
        asked = len(service.requests)
    assert process.returncode == 130 and err.splitlines()[-1].startswith(
        "datamodifier.py: error: interrupted; what was finished is kept"
    )
    assert "Traceback" not in err and asked <= 4
    assert seen_in(tmp_path, out, err) == [] and not list((tmp_path / "out").glob("*.tsv"))
