"""Several models in one call: one in memory at a time, and one that fails does not stop the others."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from fluent_mlama.console import UserError, note, split_list

Turn = TypeVar("Turn")
Result = TypeVar("Result")


def model_names(asked: str) -> tuple[str, ...]:
    """The models of ``--model A,B``; a name with a comma is one model where a path of that name exists."""
    if "," not in asked or Path(asked).expanduser().exists():
        return (asked,)
    names = tuple(split_list(asked))
    if not names:
        raise UserError(f"--model {asked!r} names no model; give one, or several as A,B,C")
    return names


def each_model(
    turns: Sequence[Turn],
    run: Callable[[Turn], Result],
    *,
    model: Callable[[Turn], str],
    place: Callable[[Turn], Path],
) -> tuple[list[Result], list[str]]:
    """(what ``run`` returns for each turn that succeeds, why the others failed); see ``require_all``.

    model, place: of a turn, for messages: its model and the folder of its results. A full disk, which is no model's
    fault, stops at once. One model alone fails as it is.
    """
    if len(turns) == 1:
        return [run(turns[0])], []
    from fluent_mlama.scoring.devices import release_memory

    done, failed = [], []
    for number, turn in enumerate(turns, start=1):
        note(f"model {number} of {len(turns)}: {model(turn)}, results in {place(turn)}")
        try:
            done.append(run(turn))
        except OSError:
            raise
        except Exception as error:
            failed.append(why_failed(model(turn), error))
        release_memory()
    return done, failed


def require_all(failed: Sequence[str], total: int) -> None:
    """One ``UserError`` that says which models failed, if any."""
    if failed:
        raise UserError(
            f"{len(failed)} of {total} models failed, the same command tries them again; "
            + "; ".join(failed)
        )


def why_failed(model: str, error: Exception) -> str:
    """In one line, why a model's turn ended; an unexpected error keeps its traceback."""
    from fluent_mlama.scoring.failures import is_out_of_memory, memory_error

    if isinstance(error, UserError):
        return str(error) if model in str(error) else f"{model}: {error}"
    if is_out_of_memory(error):
        return str(memory_error(model))
    traceback.print_exception(error)
    return f"{model}: {type(error).__name__}: {error}"
