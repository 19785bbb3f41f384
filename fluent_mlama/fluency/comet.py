"""Judge ``comet``: quality estimation by COMET (Rei et al. 2020), run in an environment of its own.

COMET's pins (numpy 1, transformers 4) clash with ours, so that its command line ``comet-score`` is called by file: source
sentences and translations go out as text files, scores come back as JSON. One call takes at most ``pairs_a_call`` sentences;
its scores are kept before the next one starts. The command of COMET 2.2.7 runs its models in half precision.
"""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fluent_mlama.console import UserError, progress_bar
from fluent_mlama.fluency.judging import Pair, digest
from fluent_mlama.json_text import parse_json
from fluent_mlama.records.atomic import write_text
from fluent_mlama.scoring.file_hashes import file_hashes

DEFAULT_COMMAND = Path(".venv-comet/bin/comet-score")
DEFAULT_MODEL = "wmt20-comet-qe-da"
INSTALL = "make comet"
KEPT = "what was finished is kept: run the same command again to go on"
SCALES = {
    "wmt20-comet-qe-da": "z-scores, unbounded",
    "wmt22-cometkiwi-da": "about 0 to 1",
    "wmt23-cometkiwi-da-xl": "about 0 to 1",
    "wmt23-cometkiwi-da-xxl": "about 0 to 1",
}
"""Scales of the reference-free models by the last part of their names (a hub id has its owner in front)."""


class CometJudge:
    """command: the ``comet-score`` of COMET's environment. batch_size, gpus: its own options (gpus 0 = CPU)."""

    def __init__(
        self,
        model: str = DEFAULT_MODEL,
        *,
        command: Path = DEFAULT_COMMAND,
        batch_size: int = 40,
        pairs_a_call: int = 1000,
        gpus: int = 0,
    ) -> None:
        if not command.is_file():
            raise UserError(
                f"COMET is not installed: no {command}; install it with `{INSTALL}` or name its comet-score with --comet"
            )
        checkpoint = Path(model)
        if checkpoint.suffix == ".ckpt" and not checkpoint.is_file():
            raise UserError(
                f"no COMET checkpoint {model}: give the path of a model.ckpt (hparams.yaml two folders up), or a model's name"
            )
        self._model = str(checkpoint.absolute()) if checkpoint.suffix == ".ckpt" else model
        self._name = "/".join(checkpoint.parts[-3:])
        self._identity = _identity_of(checkpoint) if checkpoint.suffix == ".ckpt" else ""
        self._command, self._batch_size, self._pairs_a_call, self._gpus = (
            command,
            batch_size,
            pairs_a_call,
            gpus,
        )

    @property
    def label(self) -> str:
        """Model and scale."""
        return f"{self._name}, {SCALES.get(Path(self._model).name, 'scale unknown')}"

    def settings(self) -> dict[str, Any]:
        """The model; the sizes of batches change nothing beyond rounding."""
        return {
            "back_end": "comet",
            "model": self._name,
            "identity": self._identity,
            "gpus": self._gpus,
        }

    def score(self, pairs: Sequence[Pair], work: Path, name: str) -> list[float]:
        """One score a pair; finished calls are kept in ``work`` under the digest of their sentences."""
        bare = sum(not pair.source for pair in pairs)
        if bare:
            what = f"{bare} sentences have no English one beside them (column en_template)"
            raise UserError(f"{name}: {what}, and COMET compares the two; choose --back-end lm")
        scores: list[float] = []
        with progress_bar(total=len(pairs), unit="sentences", label=name) as bar:
            for start in range(0, len(pairs), self._pairs_a_call):
                part = pairs[start : start + self._pairs_a_call]
                kept = work / f"{digest([self.settings(), part])[:24]}.json"
                found = _read_kept(kept, len(part))
                if found is None:
                    found = self._call(
                        part,
                        f"{name}, sentences {start + 1} to {start + len(part)} of {len(pairs)}",
                    )
                    write_text(kept, json.dumps(found) + "\n")
                scores += found
                bar.update(len(part))
        return scores

    def _call(self, pairs: Sequence[Pair], what: str) -> list[float]:
        with TemporaryDirectory(prefix="fluent-comet-") as name:
            folder = Path(name)
            write_text(folder / "src.txt", "".join(f"{pair.source}\n" for pair in pairs))
            write_text(folder / "mt.txt", "".join(f"{pair.sentence}\n" for pair in pairs))
            options = {
                "-s": "src.txt", "-t": "mt.txt", "--model": self._model, "--batch_size": self._batch_size, "--gpus": self._gpus,
                "--to_json": "scores.json",
            }  # fmt: skip
            words = [
                str(self._command.absolute()),
                *(str(word) for option in options.items() for word in option),
                "--quiet",
            ]
            try:
                done = subprocess.run(
                    words,
                    cwd=folder,
                    env=os.environ
                    | {
                        "PYTHONUTF8": "1"
                    },  # COMET opens text files in whatever the system's encoding is
                    capture_output=True,
                    encoding="utf-8",
                    errors="replace",
                    check=False,
                )
            except OSError as error:
                raise UserError(
                    f"{self._command} does not start ({error.strerror}): install COMET anew with `{INSTALL}`"
                ) from None
            if done.returncode != 0:
                raise UserError(f"{what}: {self._explain(done.returncode, done.stderr)}; {KEPT}")
            return _read_answer(folder / "scores.json", len(pairs), f"{what}: {self._command.name}")

    def _explain(self, status: int, said: str) -> str:
        """Why the call failed, from what COMET printed last: its own words for a model it cannot get mislead."""
        low = said.lower()
        last = next(
            (line.strip() for line in reversed(said.splitlines()) if line.strip()), "without a word"
        )[:200]
        if any(
            sign in low
            for sign in (
                "gatedrepo",
                "gated repo",
                "access to model",
                "401 client error",
                "403 client error",
            )
        ):
            page = f"https://huggingface.co/{self._model}"
            return f"{self._model} is a gated model: accept its licence at {page} and log in (HF_TOKEN in the environment)"
        if "no space left" in low:
            return f"{self._model} cannot be fetched: the disk is full; free some space"
        if "not supported by comet" in low or "not a valid checkpoint path" in low:
            gate = (
                " its licence must be accepted on huggingface.co first,"
                if "kiwi" in low or "xcomet" in low
                else ""
            )
            return f"COMET cannot get model {self._model}: the name may be wrong,{gate} or network or disk failed (it says the same to all)"
        if "out of memory" in low:
            return "COMET ran out of memory; choose a smaller --batch-size, or close other programs"
        if status in (-signal.SIGKILL, 128 + signal.SIGKILL):
            return f"{self._command.name} was killed: by the system for want of memory (choose a smaller --batch-size), or by hand"
        if status < 0:
            return f"{self._command.name} was ended by signal {-status}"
        return f"{self._command.name} stopped with status {status} ({last})"


def _read_kept(path: Path, count: int) -> list[float] | None:
    try:
        kept = parse_json(path.read_bytes(), path.name)
    except (OSError, ValueError):
        return None
    return (
        kept
        if isinstance(kept, list)
        and len(kept) == count
        and all(isinstance(value, float) for value in kept)
        else None
    )


def _read_answer(path: Path, count: int, who: str) -> list[float]:
    """The scores in COMET's JSON: ``{file name: [{"src", "mt", "COMET"}, …]}``. Half an answer is a ``UserError``."""
    try:
        answer = parse_json(path.read_bytes(), path.name)
        (rows,) = answer.values()
        scores = [float(row["COMET"]) for row in rows]
    except FileNotFoundError:
        raise UserError(f"{who} wrote no scores though it ended well; {KEPT}") from None
    except (ValueError, AttributeError, KeyError, TypeError):
        raise UserError(f"{who} wrote scores that are cut off or unreadable; {KEPT}") from None
    if len(scores) != count or not all(map(math.isfinite, scores)):
        good = sum(map(math.isfinite, scores))
        raise UserError(f"{who} wrote {good} scores for {count} sentences; {KEPT}")
    return scores


def _identity_of(checkpoint: Path) -> str:
    """sha256 over a checkpoint and the file of its settings; a model that COMET fetches itself goes by its name."""
    files = [
        file for file in (checkpoint, checkpoint.parent.parent / "hparams.yaml") if file.is_file()
    ]
    return digest(file_hashes(files))
