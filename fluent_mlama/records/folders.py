"""Folders of many files that belong together: the whole of the old one or the whole of the new one."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from fluent_mlama.console import UserError


@contextlib.contextmanager
def replacing_folder(
    path: Path | str, *, find_foreign: Callable[[Path], str | None]
) -> Iterator[Path]:
    """Yield a temporary folder beside ``path``; on success it takes its place, on any error it is removed.

    find_foreign: names a file in the folder that is there now which an earlier run did not make, None where there is none.
    Such a file is a ``UserError`` before anything is written: nobody's files are lost with the old folder.
    """
    path = Path(path)
    if path.exists() and not path.is_dir():
        raise UserError(f"cannot write {path}: a file stands there; choose another folder")
    foreign = find_foreign(path) if path.is_dir() else None
    if foreign is not None:
        raise UserError(
            f"{path} holds other files ({foreign}), so it is left as it is; choose a new folder"
        )
    target = path.resolve()
    token = f"{os.getpid()}-{secrets.token_hex(4)}"
    temporary = target.with_name(f".{target.name}.{token}.partial")
    earlier = target.with_name(f".{target.name}.{token}.earlier.partial")
    try:
        temporary.mkdir(parents=True)
    except (FileExistsError, NotADirectoryError):
        raise UserError(
            f"cannot write {path}: {path.parent} is a file, or lies in one; choose another folder"
        ) from None
    try:
        yield temporary
        if target.exists():
            os.replace(target, earlier)
        os.replace(temporary, target)
    except BaseException:
        if earlier.exists() and not target.exists():
            os.replace(earlier, target)
        raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(earlier, ignore_errors=True)
