"""Getting a published file: goes on where a cut connection left it, whole at its final name or not
there at all.

Ours because pooch starts from the first byte after a cut, and the largest file is 13 GB.
"""

from __future__ import annotations

import json
import os
import re
import zipfile
from pathlib import Path

import requests

from fluent_mlama.console import UserError, note, plain_number, progress_bar
from fluent_mlama.files import check_writable, new_folders, parse_json, write_text
from fluent_mlama.patience import Patience, RequestFailed, TryLater, may_pass
from fluent_mlama.records.results import file_sha256

CHUNK = 1 << 16
_CUT = (
    requests.ConnectionError,
    requests.Timeout,
    requests.exceptions.ChunkedEncodingError,
    requests.exceptions.ContentDecodingError,
)


def download(
    url: str, path: Path | str, *, sha256: str | None = None, tries: int = 5, wait_s: float = 1.0
) -> str:
    """Bring ``url`` to ``path`` (a zip is checked to be one) and return its sha256.

    Bytes gather in ``path.partial``; every further try, in this run or a later one, asks for the
    rest only (HTTP Range with If-Range, RFC 9110 section 14), and starts anew where the server
    cannot or its file has changed. A finished file at ``path`` is left as it is. ``UserError``: no
    connection after ``tries`` tries, an HTTP error, a wrong checksum, not a zip.
    """
    path = Path(path)
    if path.is_dir():
        raise UserError(
            f"{path} is a folder; name the file to write, for example {path / 'mlama1.1.zip'}"
        )
    if path.is_file():
        note(f"{path} is there already; remove it to get it anew")
    else:
        check_writable(path.parent, "the folder")
        partial = path.with_name(f"{path.name}.partial")
        with new_folders(path.parent):
            path.parent.mkdir(parents=True, exist_ok=True)
            _fetch_patiently(url, partial, tries, wait_s)
        _check(partial, path, url, sha256)
        os.replace(partial, path)
        _notes(partial).unlink(missing_ok=True)
    checksum = file_sha256(path)
    if sha256 and checksum != sha256.lower():
        raise UserError(
            f"{path} has sha256 {checksum}, expected {sha256}; remove it and get it again, or "
            "correct --sha256"
        )
    return checksum


def _fetch_patiently(url: str, partial: Path, tries: int, wait_s: float) -> None:
    patience = Patience(
        attempts=tries, first_wait=wait_s, longest_wait=30 * wait_s, connect=10, read=60
    )

    def fetch() -> None:
        try:
            _fetch(url, partial, patience.timeout)
        except _CUT as error:
            raise TryLater(_reason(error)) from None

    try:
        patience.persist(url, fetch)
    except RequestFailed as fault:
        kept = partial.stat().st_size if partial.exists() else 0
        raise UserError(
            f"no connection to {url} ({fault}); {kept} bytes are kept, the same command goes on "
            "from there"
        ) from None
    except requests.RequestException as error:
        raise UserError(f"cannot get {url} ({_reason(error)}); check the address") from None


def _fetch(url: str, partial: Path, timeout: tuple[float, float]) -> None:
    """One try: append what is missing, or start anew."""
    done = partial.stat().st_size if partial.exists() else 0
    validator = _read_validator(partial, url)
    if done and not validator:
        done = 0  # whose bytes these are cannot be told
    headers = {"Accept-Encoding": "identity"} | (
        {"Range": f"bytes={done}-", "If-Range": validator} if done else {}
    )
    with requests.get(url, headers=headers, stream=True, timeout=timeout) as answer:
        if answer.status_code == requests.codes.requested_range_not_satisfiable:
            if answer.headers.get("Content-Range") == f"bytes */{done}":
                return  # all bytes were there, only the last step was missing
            partial.unlink()
            raise TryLater("the server's file is shorter than what is here; starting anew")
        if may_pass(answer.status_code):
            raise TryLater(f"HTTP {answer.status_code} {answer.reason}", answer.headers)
        if answer.status_code >= 400:
            raise UserError(f"{url}: HTTP {answer.status_code} {answer.reason}; check the address")
        done = done if _continues(answer, done) else 0
        total = _total(answer, done)
        _write_validator(partial, url, answer)
        with (
            partial.open("ab" if done else "wb") as file,
            progress_bar(
                total=total, unit="bytes", label=partial.name.removesuffix(".partial"), initial=done
            ) as bar,
        ):
            for chunk in answer.iter_content(CHUNK):
                file.write(chunk)
                bar.update(len(chunk))
    if total is not None and partial.stat().st_size != total:
        raise TryLater(f"{partial.stat().st_size} of {total} bytes")


def _continues(answer: requests.Response, done: int) -> bool:
    match = re.match(r"bytes (\d+)-", answer.headers.get("Content-Range", ""))
    return (
        answer.status_code == requests.codes.partial_content
        and match is not None
        and int(match[1]) == done
    )


def _total(answer: requests.Response, done: int) -> int | None:
    length = plain_number(answer.headers.get("Content-Length", ""))
    return None if length is None else done + length


def _check(partial: Path, path: Path, url: str, sha256: str | None) -> None:
    """A finished file that is not the wanted one is thrown away, lest the next run builds on it."""
    problem = ""
    if sha256 and (found := file_sha256(partial)) != sha256.lower():
        problem = f"has sha256 {found}, expected {sha256}"
    elif path.suffix == ".zip" and not zipfile.is_zipfile(partial):
        problem = "is not a zip file (an error page?)"
    if problem:
        partial.unlink()
        _notes(partial).unlink(missing_ok=True)
        raise UserError(f"what {url} sent {problem}; nothing was kept")


def _notes(partial: Path) -> Path:
    return partial.with_name(f".{partial.name}.json")


def _read_validator(partial: Path, url: str) -> str:
    """The strong ETag or date that says whose beginning the partial file is; "" where unknown."""
    try:
        kept = dict(parse_json(_notes(partial).read_bytes(), _notes(partial).name))
    except (FileNotFoundError, ValueError, TypeError):
        return ""
    return str(kept.get("validator", "")) if kept.get("url") == url else ""


def _write_validator(partial: Path, url: str, answer: requests.Response) -> None:
    etag = answer.headers.get("ETag", "")
    validator = (
        etag if etag and not etag.startswith("W/") else answer.headers.get("Last-Modified", "")
    )
    write_text(_notes(partial), json.dumps({"url": url, "validator": validator}))


def _reason(error: BaseException | None) -> str:
    """What lies at the bottom: requests wraps the system's "Connection refused" in three layers of
    its own words.
    """
    while error is not None and error.__context__ is not None:
        error = error.__context__
    text = getattr(error, "strerror", None) or str(error)
    return text if len(text) <= 160 else f"{text[:160]}…"
