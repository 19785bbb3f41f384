"""Downloads against a real local server: cut connections, servers without Range, changed files, wrong bytes."""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from fluent_mlama.console import UserError
from fluent_mlama.reader import main
from fluent_mlama.records.download import CHUNK, download


def _zip(filler: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("mlama1.1/en/templates.jsonl", filler * 300_000)
    return buffer.getvalue()


DATA = _zip("\n")
CHECKSUM = hashlib.sha256(DATA).hexdigest()


class Server:
    """Serves ``data``. The first ``cuts`` answers stop half-way through what they promised."""

    def __init__(self, cuts: int = 0, ranges: bool = True, etag: str = '"one"') -> None:
        self.cuts, self.ranges, self.etag, self.data = cuts, ranges, etag, DATA
        self.asked: list[str | None] = []

    def __call__(self, request: Request) -> Response:
        asked = request.headers.get("Range")
        self.asked.append(asked)
        start = 0
        if asked and self.ranges and request.headers.get("If-Range") in {None, self.etag}:
            start = int(re.fullmatch(r"bytes=(\d+)-", asked)[1])
            if start >= len(self.data):
                return Response(status=416, headers={"Content-Range": f"bytes */{len(self.data)}"})
        body = self.data[start:]
        headers = {"Content-Length": str(len(body))} | ({"ETag": self.etag} if self.etag else {})
        if start:
            headers["Content-Range"] = f"bytes {start}-{len(self.data) - 1}/{len(self.data)}"
        if self.cuts:
            self.cuts -= 1
            body = body[: len(body) // 2]
        return Response(iter([body]), status=206 if start else 200, headers=headers)


@pytest.fixture
def serve(httpserver: HTTPServer) -> Callable[[Server], str]:
    def serving(server: Server) -> str:
        httpserver.expect_request("/mlama1.1.zip").respond_with_handler(server)
        return httpserver.url_for("/mlama1.1.zip")

    return serving


def test_a_whole_file_comes_and_its_checksum_is_printed(
    serve: Callable[[Server], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(
        [
            "download",
            str(tmp_path / "new" / "mlama1.1.zip"),
            "--url",
            serve(Server()),
            "--sha256",
            CHECKSUM.upper(),
        ]
    )
    assert f"sha256 {CHECKSUM}" in capsys.readouterr().out
    assert (tmp_path / "new" / "mlama1.1.zip").read_bytes() == DATA
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["mlama1.1.zip"]


def test_a_cut_connection_goes_on_where_it_was(
    serve: Callable[[Server], str], tmp_path: Path
) -> None:
    server = Server(cuts=2)
    assert download(serve(server), tmp_path / "m.zip", wait_s=0) == CHECKSUM
    assert server.asked[0] is None
    first, second = (int(re.sub(r"\D", "", asked or "")) for asked in server.asked[1:])
    assert (
        len(DATA) // 2 - CHUNK < first <= len(DATA) // 2
    )  # what was cut in the middle of a chunk comes again
    assert first < second < len(DATA)


def test_a_later_run_goes_on_and_nothing_stands_at_the_final_name_before(
    serve: Callable[[Server], str], tmp_path: Path
) -> None:
    server = Server(cuts=1)
    url = serve(server)
    with pytest.raises(UserError, match="bytes are kept, the same command goes on"):
        download(url, tmp_path / "m.zip", tries=1)
    kept = (tmp_path / "m.zip.partial").read_bytes()
    assert kept and kept == DATA[: len(kept)]
    assert not (tmp_path / "m.zip").exists()
    assert download(url, tmp_path / "m.zip") == CHECKSUM
    assert server.asked == [None, f"bytes={len(kept)}-"]


def test_a_server_without_range_starts_anew(serve: Callable[[Server], str], tmp_path: Path) -> None:
    server = Server(cuts=1, ranges=False)
    assert download(serve(server), tmp_path / "m.zip", wait_s=0) == CHECKSUM
    assert len(server.asked) == 2


def test_a_server_without_validator_starts_anew(
    serve: Callable[[Server], str], tmp_path: Path
) -> None:
    server = Server(cuts=1, etag="")
    assert download(serve(server), tmp_path / "m.zip", wait_s=0) == CHECKSUM
    assert server.asked == [None, None]


def test_a_file_that_changed_meanwhile_is_not_mixed(
    serve: Callable[[Server], str], tmp_path: Path
) -> None:
    server = Server(cuts=1)
    url = serve(server)
    with pytest.raises(UserError):
        download(url, tmp_path / "m.zip", tries=1)
    server.etag, server.data = '"two"', _zip(" ")
    assert download(url, tmp_path / "m.zip") == hashlib.sha256(server.data).hexdigest() != CHECKSUM
    assert server.asked[-1] is not None  # the rest was asked for, and the whole came


def test_all_bytes_there_but_not_moved(serve: Callable[[Server], str], tmp_path: Path) -> None:
    server = Server(cuts=1)
    url = serve(server)
    with pytest.raises(UserError):
        download(url, tmp_path / "m.zip", tries=1)
    (tmp_path / "m.zip.partial").write_bytes(DATA)
    assert download(url, tmp_path / "m.zip") == CHECKSUM
    assert server.asked[-1] == f"bytes={len(DATA)}-"


def test_a_finished_file_is_not_asked_for_again(
    serve: Callable[[Server], str], tmp_path: Path
) -> None:
    server = Server()
    (tmp_path / "m.zip").write_bytes(DATA)
    assert download(serve(server), tmp_path / "m.zip") == CHECKSUM
    assert server.asked == []


def test_wrong_bytes_are_refused_and_not_kept(
    serve: Callable[[Server], str], tmp_path: Path
) -> None:
    server = Server()
    url = serve(server)
    with pytest.raises(UserError, match="expected abc"):
        download(url, tmp_path / "m.zip", sha256="abc")
    server.data = b"<html>moved</html>"
    with pytest.raises(UserError, match="is not a zip file"):
        download(url, tmp_path / "m.zip")
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_names_a_time_is_asked_then(
    httpserver: HTTPServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    waits: list[float] = []
    monkeypatch.setattr(
        "tenacity.nap.time.sleep", lambda seconds: waits.append(seconds) if seconds else None
    )
    answers = [
        Response(status=429, headers={"Retry-After": "7"}),
        Response(status=503, headers={"Retry-After": "3600"}),
    ]
    httpserver.expect_request("/m.zip").respond_with_handler(lambda request: answers.pop(0))
    with pytest.raises(
        UserError, match=r"/m.zip asks to come back in 3600 s; what was finished is kept"
    ):
        download(httpserver.url_for("/m.zip"), tmp_path / "m.zip", wait_s=0)
    assert [wait for wait in waits if wait >= 1] == [7.0]
    assert "/m.zip: HTTP 429 TOO MANY REQUESTS; trying again in 7 s" in capsys.readouterr().err


def test_no_such_page_and_no_server_are_one_line(httpserver: HTTPServer, tmp_path: Path) -> None:
    httpserver.expect_request("/gone.zip").respond_with_data("", status=404)
    httpserver.expect_request("/busy.zip").respond_with_data("", status=503)
    with pytest.raises(UserError, match="HTTP 404"):
        download(httpserver.url_for("/gone.zip"), tmp_path / "m.zip")
    with pytest.raises(UserError, match="HTTP 503"):
        download(httpserver.url_for("/busy.zip"), tmp_path / "m.zip", tries=2, wait_s=0)
    with pytest.raises(UserError, match="no connection to"):
        download("http://127.0.0.1:9/m.zip", tmp_path / "m.zip", tries=2, wait_s=0)
    with pytest.raises(UserError, match="cannot get"):
        download("no-scheme/m.zip", tmp_path / "m.zip")
