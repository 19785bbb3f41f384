"""Projects on disk: one folder each. Nothing outside the projects' folder is ever touched.

    <projects>/<project>/vocabulary.tsv   phrases.json   paradigms/<uid>_<user>.json
                         .deleted/        what was deleted, dated

Every file is read with its revision (a digest of its bytes) and written only if it still has that
revision, so a second browser tab, or an editor, never loses what the first one wrote.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from fluent_mlama.console import UserError
from fluent_mlama.files import parse_json, write_text
from fluent_mlama.zhoblimp.vocabulary import read_utf8

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
NEW = ""
"""The revision of a file that does not exist yet."""


class ChangedElsewhere(UserError):
    """The file is no longer the one that was loaded."""


@dataclass(frozen=True)
class Stored:
    """A file's text and revision."""

    text: str
    revision: str


def check_name(name: str, what: str) -> str:
    """The name, if it is letters, digits, ``_``, ``-`` and ``.``, not beginning with ``-.``."""
    if not _NAME.fullmatch(name) or name.endswith("."):
        raise UserError(
            f"{what} '{name}' is not a name; use letters A-Z, digits, '_', '-' and '.', beginning "
            "with a letter or digit"
        )
    return name


class Projects:
    """All projects below one folder, which is made when the first of them is."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def names(self) -> list[str]:
        """Projects in name order."""
        if not self.folder.is_dir():
            return []
        return sorted(
            path.name
            for path in self.folder.iterdir()
            if path.is_dir() and _NAME.fullmatch(path.name)
        )

    def create(self, name: str, source: Path | None = None) -> None:
        """A new project with the content of ``source``, or an empty one; never over another."""
        place = self._place(name)
        if place.exists():
            raise UserError(f"project '{name}' exists already; choose another name")
        (place / "paradigms").mkdir(parents=True)
        if source is None:
            write_text(place / "vocabulary.tsv", "expression\tpos\n例\tNN\n")
            write_text(place / "phrases.json", "{}\n")
            return
        for file in ("vocabulary.tsv", "phrases.json"):
            shutil.copyfile(source / file, place / file)
        for file_path in sorted((source / "paradigms").glob("*.json")):
            raw = parse_json(file_path.read_bytes(), file_path.name)
            shutil.copyfile(
                file_path, place / "paradigms" / paradigm_file(raw["uid"], raw.get("user", ""))
            )

    def copy(self, name: str, new: str) -> None:
        """A copy of a project under a new name."""
        place = self._place(new)
        if place.exists():
            raise UserError(f"project '{new}' exists already; choose another name")
        shutil.copytree(self._existing(name), place, ignore=shutil.ignore_patterns(".deleted"))

    def delete(self, name: str) -> None:
        """Move a project to ``.deleted`` beside the others."""
        place = self._existing(name)
        bin_folder = self.folder / ".deleted"
        bin_folder.mkdir(exist_ok=True)
        place.rename(bin_folder / f"{name}.{_moment()}")

    def paradigms(self, project: str) -> list[str]:
        """Paradigm file names in order."""
        return sorted(
            path.name
            for path in (self._existing(project) / "paradigms").glob("*.json")
            if _NAME.fullmatch(path.name)
        )

    def vocabularies(self, project: str) -> list[str]:
        """Vocabulary files: ``vocabulary.tsv`` and what was saved beside it."""
        return sorted(
            path.name
            for path in self._existing(project).glob("*.tsv")
            if _NAME.fullmatch(path.name)
        )

    def read(self, project: str, file: str) -> Stored:
        """A file of the project with its revision."""
        text = read_utf8(self._file(project, file))
        return Stored(text, _revision(text))

    def write(self, project: str, file: str, text: str, revision: str) -> str:
        """Write if the file still has this revision (``NEW``: if there is none).

        The new revision; else ``ChangedElsewhere``.
        """
        path = self._file(project, file)
        if path.exists():
            if revision == NEW:
                raise ChangedElsewhere(
                    f"{file} exists already in project '{project}'; "
                    "load it, or save under another name"
                )
            if _revision(read_utf8(path)) != revision:
                raise ChangedElsewhere(
                    f"{file} was changed elsewhere since you loaded it; "
                    "load that version, or save under another name"
                )
        elif revision != NEW:
            raise ChangedElsewhere(
                f"{file} was deleted or renamed elsewhere since you loaded it; "
                "save it under another name, or anew"
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, text)
        return _revision(text)

    def discard(self, project: str, file: str, revision: str) -> None:
        """Move a file to the project's ``.deleted`` if it still has this revision."""
        path = self._file(project, file)
        if not path.exists() or _revision(read_utf8(path)) != revision:
            raise ChangedElsewhere(
                f"{file} was changed elsewhere since you loaded it; load it before you delete it"
            )
        bin_folder = self._existing(project) / ".deleted"
        bin_folder.mkdir(exist_ok=True)
        path.rename(bin_folder / f"{path.name}.{_moment()}")

    def _place(self, project: str) -> Path:
        return self.folder / check_name(project, "project")

    def _existing(self, project: str) -> Path:
        place = self._place(project)
        if not place.is_dir():
            raise UserError(
                f"there is no project '{project}'; choose one of: "
                f"{', '.join(self.names()) or '(none yet)'}"
            )
        return place

    def _file(self, project: str, file: str) -> Path:
        """A file of the project: its name is checked, and it is not a link out of the folder."""
        folder = self._existing(project)
        path = (
            folder / "paradigms" if file.endswith(".json") and file != "phrases.json" else folder
        ) / check_name(file, "file")
        if not path.resolve().is_relative_to(self.folder.resolve()):
            raise UserError(f"{file} leads outside the projects' folder; remove the link")
        return path


def paradigm_file(uid: str, user: str) -> str:
    """The file name of a paradigm: ``<uid>_<user>.json``, as published."""
    check_name(uid, "UID")
    if user:
        check_name(user, "user")
    return f"{uid}_{user}.json" if user else f"{uid}.json"


def _revision(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]


def _moment() -> str:
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
