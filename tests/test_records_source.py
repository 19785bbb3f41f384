"""Folders and zips, and writing that never leaves half a file."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from fluent_mlama.console import UserError
from fluent_mlama.files import open_source, replacing, write_bytes, write_text

FILES = {
    "a.tsv": b"1",
    "b.tsv": b"2",
    ".DS_Store": b"x",
    "deeper/c.tsv": b"3",
    "__MACOSX/._a.tsv": b"x",
}


@pytest.fixture(params=["folder", "zip", "zip with a top folder"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The same files as a folder, as a zip, and as a zip that holds one folder."""
    if request.param == "folder":
        for name, data in FILES.items():
            write_bytes(tmp_path / "data" / name, data)
        return tmp_path / "data"
    top = "stats/" if "top" in request.param else ""
    with zipfile.ZipFile(tmp_path / "data.zip", "w") as archive:
        for name, data in FILES.items():
            archive.writestr(name if name.startswith("__") else top + name, data)
    return tmp_path / "data.zip"


def test_one_level_is_read_and_litter_is_not_data(place: Path) -> None:
    source = open_source(place)
    assert source.names() == ["a.tsv", "b.tsv"]
    assert source.folders() == ["deeper"]
    assert source.read("b.tsv") == b"2"
    assert source.folder("deeper").names() == ["c.tsv"]
    assert source.path == place


def test_what_is_not_there_is_named(place: Path) -> None:
    source = open_source(place)
    with pytest.raises(UserError, match=r"no file x\.tsv in "):
        source.read("x.tsv")
    for name in ("deeper/c.tsv", "../data/a.tsv", "..", "", "deeper\\c.tsv"):
        with pytest.raises(UserError, match="not a bare file name"):
            source.read(name)


@pytest.mark.parametrize(
    "name", ["../out.tsv", "/etc/out.tsv", "a/../../out.tsv", "C:/out.tsv", "a\\..\\out.tsv"]
)
def test_a_zip_that_points_outside_is_refused(tmp_path: Path, name: str) -> None:
    with zipfile.ZipFile(tmp_path / "slip.zip", "w") as archive:
        archive.writestr("a.tsv", b"1")
        info = zipfile.ZipInfo("x")
        info.filename = name
        archive.writestr(info, b"2")
    with pytest.raises(UserError, match="points outside the zip"):
        open_source(tmp_path / "slip.zip")


def test_broken_places_are_told_in_one_line(tmp_path: Path) -> None:
    write_bytes(tmp_path / "no.zip", b"PK or not")
    with zipfile.ZipFile(tmp_path / "bad.zip", "w") as archive:
        archive.writestr("a.tsv", b"1234567890" * 100)
    data = (tmp_path / "bad.zip").read_bytes()
    write_bytes(tmp_path / "bad.zip", data.replace(b"1234567890", b"123456789x", 1))
    write_bytes(tmp_path / "cut.zip", data[:-30])
    for name, message in [
        ("none", "no such folder or zip"),
        ("no.zip", "neither a folder nor"),
        ("cut.zip", "neither a folder nor"),
    ]:
        with pytest.raises(UserError, match=message):
            open_source(tmp_path / name)
    with pytest.raises(UserError, match=r"bad\.zip:a\.tsv is damaged"):
        open_source(tmp_path / "bad.zip").read("a.tsv")


def test_a_failed_write_keeps_the_old_file_and_no_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "dump.tsv"
    write_text(path, "старое\r\n")
    assert path.read_bytes() == "старое\r\n".encode()

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            write_text(path, "new")
    with pytest.raises(KeyboardInterrupt), replacing(path) as temporary:
        temporary.write_text("half", encoding="utf-8")
        raise KeyboardInterrupt
    assert path.read_text(encoding="utf-8") == "старое\n"
    assert [entry.name for entry in tmp_path.iterdir()] == ["dump.tsv"]


def test_a_file_where_a_folder_should_be_is_told(tmp_path: Path) -> None:
    write_text(tmp_path / "stats", "x")
    (tmp_path / "taken.tsv").mkdir()
    for path, message in [
        ("stats/a.tsv", "is a file"),
        ("stats/deeper/a.tsv", "is a file"),
        ("taken.tsv", "it is a folder"),
    ]:
        with pytest.raises(UserError, match=message):
            write_text(tmp_path / path, "y")


def test_a_killed_writer_leaves_the_old_file(tmp_path: Path, root: Path) -> None:
    path = tmp_path / "dump.tsv"
    write_text(path, "old")
    program = (
        "import sys; from fluent_mlama.files import replacing\n"
        f"with replacing({str(path)!r}) as temporary:\n"
        "    temporary.write_text('half', encoding='utf-8'); print('ready', flush=True); sys.stdin.read()\n"
    )
    writer = subprocess.Popen(
        [sys.executable, "-c", program], cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert writer.stdout is not None and writer.stdout.readline().strip() == b"ready"
        writer.send_signal(signal.SIGKILL)
        writer.wait(timeout=20)
    finally:
        writer.kill()
        writer.communicate()
    assert path.read_text(encoding="utf-8") == "old"
    assert open_source(tmp_path).names() == ["dump.tsv"]
    write_text(path, "new")
    assert path.read_text(encoding="utf-8") == "new"
