"""Who judges the fluency of a sentence: a language model, or COMET; ``score_files`` reads others'
scores.

A judge gives one number per sentence, higher is better. Numbers of different judges are on
different scales and are never compared; ``Judge.label`` (model and scale) is therefore in every
column head and caption.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import pandas as pd

from fluent_mlama.console import UserError, note, progress_bar
from fluent_mlama.files import parse_json, write_text
from fluent_mlama.linking import Unigrams, evidence, parse_linking
from fluent_mlama.records.benchmark import ERROR, name_columns
from fluent_mlama.reporting.loading import DumpFolder, RankTable
from fluent_mlama.runner.run import Packs
from fluent_mlama.scoring.contract import Candidate, Request, RequestScore
from fluent_mlama.scoring.file_hashes import file_hashes

if TYPE_CHECKING:
    from fluent_mlama.scoring.contract import Scorer

SOURCE = "en_template"
"""The column of English sentences that quality estimation takes for the source (paper, section
5.2).
"""


class SentencePair(NamedTuple):
    """An English source and a sentence in the language, each on one line."""

    source: str
    sentence: str


class Judge(Protocol):
    """A back end: ``lm``, ``comet``; ``file`` reads what another judge said (``score_files``)."""

    @property
    def label(self) -> str:
        """Model and scale, as in heads and captions."""

    def settings(self) -> Mapping[str, Any]:
        """Everything that the scores depend on besides the sentences."""

    def score(self, pairs: Sequence[SentencePair], work: Path, name: str) -> list[float]:
        """One number a pair (NaN: no score), going on from what an earlier, broken run left in the
        folder ``work``.
        """


def one_line(text: str) -> str:
    """The text with blanks in place of white space; "" for the ``ERROR`` of the published files."""
    return "" if text == ERROR else " ".join(text.split())


def sentences(table: RankTable) -> pd.DataFrame:
    """facts × verbalisations: the whole sentences, "" where there is none."""
    return pd.DataFrame(
        {v: table.facts[name_columns(v).sentence].map(one_line) for v in table.verbalisations},
        index=table.facts.index,
    )


def sources(table: RankTable) -> pd.Series:
    """The English sentence of each fact, "" where the dump has none."""
    if SOURCE not in table.facts:
        return pd.Series("", index=table.facts.index)
    return table.facts[SOURCE].map(one_line)


def share_of_copies(table: RankTable) -> pd.Series:
    """verbalisation -> share of sentences that copy the source, which can be rated highly."""
    texts, english = sentences(table), sources(table)
    return pd.Series(
        {v: float(((texts[v] == english) & (english != "")).mean()) for v in table.verbalisations}
    )


def probed_models(folder: DumpFolder, tables: Sequence[RankTable]) -> dict[str, str]:
    """model -> revision by the run records beside the dumps; empty for dumps without records."""
    found = {}
    for table in tables:
        first, _, more = folder.signature([table]).partition("|")
        if more and "@" in first:
            model, _, revision = first.rpartition("@")
            found[model] = revision
    return found


def digest(value: object) -> str:
    """SHA-256 of a plain value (numbers, strings, lists, dictionaries of strings)."""
    return hashlib.sha256(
        json.dumps(value, ensure_ascii=False, sort_keys=True).encode("utf-8")
    ).hexdigest()


# ---- a language model --------------------------------------------------------------------------

LM_MODEL = "smollm2"
CIRCULAR = "circular: the probed model judges itself"
LOW_COVERAGE = 0.9
_NAMELESS = {"", "local", "unknown"}
_SCALES = {
    "mean": "log-probability a token, natural log",
    "slor": "SLOR, natural log a token",
    "lp": "log-probability, natural log",
}


class LanguageModelJudge:
    """model: as in ``script.py --model``. linking: of ``fluent_mlama/linking.py``; by default slor
    with unigrams, else mean.

    probed: model -> revision that made the dumps. scorer: one that is loaded already, or a
    stand-in.
    """

    def __init__(
        self,
        model: str = LM_MODEL,
        *,
        linking: str | None = None,
        unigrams: Unigrams | None = None,
        probed: Mapping[str, str] | None = None,
        scorer: Scorer | None = None,
        device: str = "auto",
        dtype: str = "auto",
    ) -> None:
        self._linking = parse_linking(linking or ("slor" if unigrams is not None else "mean"))
        if self._linking.needs == "unigram" and unigrams is None:
            raise UserError(
                f"--linking {self._linking.name} needs unigram probabilities: give them with"
                " --unigram, or choose mean"
            )
        if self._linking.needs == "prior":
            raise UserError(
                "pmi compares a string with and without its prompt, and a whole sentence has none;"
                " choose mean or slor"
            )
        if scorer is None:
            # Imports torch: not before the arguments are known to be good.
            from fluent_mlama.scoring.causal import load_scorer

            scorer = load_scorer(model, device=device, dtype=dtype)
        self._scorer, self._unigrams = scorer, unigrams
        self._made = scorer.describe("joint")
        if unigrams is not None and self._linking.needs == "unigram":
            unigrams.check_made_for(self._made.tokenizer, self._made.model)
        # The first token needs something before it; without BOS that is a new line.
        self._before = "" if self._made.bos != "0" else "\n"
        self.circular = is_same_model(self._made.model, self._made.revision, probed or {})

    @property
    def label(self) -> str:
        """Model and scale."""
        scale = _SCALES.get(
            self._linking.kind, f"{self._linking.name} of natural-log probabilities"
        )
        unigrams = (
            f", unigrams {self._unigrams.source}"
            if self._unigrams is not None and self._linking.needs == "unigram"
            else ""
        )
        return f"{self._made.model}, {scale}{unigrams}{f'; {CIRCULAR}' if self.circular else ''}"

    def settings(self) -> dict[str, Any]:
        """Model, number type, linking function, unigram table."""
        unigrams = (
            None
            if self._unigrams is None
            else {str(token): value for token, value in sorted(self._unigrams.logprobs.items())}
        )
        return {
            "back_end": "lm",
            "model": self._made.model,
            "revision": self._made.revision,
            "dtype": self._made.dtype,
            "device": self._made.device,
            "bos": self._made.bos,
            "linking": self._linking.name,
            "unigrams": unigrams and digest(unigrams),
            "circular": self.circular,
        }

    def score(self, pairs: Sequence[SentencePair], work: Path, name: str) -> list[float]:
        """The linking function of each sentence; the source is not looked at. A sentence that the
        model cannot take has no score.
        """
        requests = [Request(self._before, (Candidate(pair.sentence),)) for pair in pairs]
        plan = self._scorer.plan(requests, "joint")
        packs = Packs(work, name, self._scorer, plan)
        scores: dict[int, RequestScore] = {}
        for stored in packs.stored():
            scores |= stored
        with progress_bar(
            total=len(pairs), unit="sentences", label=name, initial=len(scores)
        ) as bar:
            for fresh in packs.fresh():
                scores |= fresh
                bar.update(len(fresh))
        if plan.unscorable:
            first, reason = next(iter(plan.unscorable.items()))
            note(
                f"{name}: {len(plan.unscorable)} sentences without a score; the first:"
                f" '{pairs[first].sentence}': {reason}"
            )
        self._check_coverage(scores, name)
        return [
            self._link(scores[number], pair.sentence) if number in scores else math.nan
            for number, pair in enumerate(pairs)
        ]

    def _link(self, score: RequestScore, sentence: str) -> float:
        (candidate,) = score.candidates
        unigram = (
            None
            if self._unigrams is None
            else [float(self._unigrams.look_up(candidate.token_ids).sum())]
        )
        known = evidence(
            [candidate.logprob],
            [len(candidate.token_logprobs)],
            unigram=unigram,
            characters=[len(sentence)],
        )
        return float(self._linking.score(known)[0])

    def _check_coverage(self, scores: Mapping[int, RequestScore], name: str) -> None:
        if self._unigrams is not None:
            share = self._unigrams.coverage(
                token for score in scores.values() for token in score.candidates[0].token_ids
            )
            if share < LOW_COVERAGE:
                note(
                    f"{name}: {self._unigrams.source} has {share:.0%} of the tokens; probably made"
                    " for another tokenizer"
                )


def is_same_model(model: str, revision: str, probed: Mapping[str, str]) -> bool:
    """Whether the judge is a probed model: the same last part of the name, or the same revision."""
    name = Path(model).name.lower()
    return any(
        Path(other).name.lower() == name or (its == revision and its not in _NAMELESS)
        for other, its in probed.items()
    )


# ---- COMET -------------------------------------------------------------------------------------

COMET_COMMAND = Path(".venv-comet/bin/comet-score")
COMET_MODEL = "wmt20-comet-qe-da"
INSTALL = "make comet"
KEPT = "what was finished is kept: run the same command again to go on"
SCALES = {
    "wmt20-comet-qe-da": "z-scores, unbounded",
    "wmt22-cometkiwi-da": "about 0 to 1",
    "wmt23-cometkiwi-da-xl": "about 0 to 1",
    "wmt23-cometkiwi-da-xxl": "about 0 to 1",
}
"""Scales of the reference-free models by the last part of their names (a hub id has its owner in
front).
"""


class CometJudge:
    """command: the ``comet-score`` of COMET's environment. batch_size, gpus: its own options (gpus
    0 = CPU).
    """

    def __init__(
        self,
        model: str = COMET_MODEL,
        *,
        command: Path = COMET_COMMAND,
        batch_size: int = 40,
        pairs_per_call: int = 1000,
        gpus: int = 0,
    ) -> None:
        if not command.is_file():
            raise UserError(
                f"COMET is not installed: no {command}; install it with `{INSTALL}` or name its"
                " comet-score with --comet"
            )
        checkpoint = Path(model)
        if checkpoint.suffix == ".ckpt" and not checkpoint.is_file():
            raise UserError(
                f"no COMET checkpoint {model}: give the path of a model.ckpt (hparams.yaml two"
                " folders up), or a model's name"
            )
        self._model = str(checkpoint.absolute()) if checkpoint.suffix == ".ckpt" else model
        self._name = "/".join(checkpoint.parts[-3:])
        self._identity = _identity_of(checkpoint) if checkpoint.suffix == ".ckpt" else ""
        self._command, self._gpus = command, gpus
        self._batch_size, self._pairs_per_call = batch_size, pairs_per_call

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

    def score(self, pairs: Sequence[SentencePair], work: Path, name: str) -> list[float]:
        """One score a pair; finished calls are kept in ``work`` under the digest of their
        sentences.
        """
        bare = sum(not pair.source for pair in pairs)
        if bare:
            what = f"{bare} sentences have no English one beside them (column en_template)"
            raise UserError(f"{name}: {what}, and COMET compares the two; choose --back-end lm")
        scores: list[float] = []
        with progress_bar(total=len(pairs), unit="sentences", label=name) as bar:
            # The unit of resume: a call's scores are kept under the digest of what it was asked.
            for start in range(0, len(pairs), self._pairs_per_call):
                part = pairs[start : start + self._pairs_per_call]
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

    def _call(self, pairs: Sequence[SentencePair], what: str) -> list[float]:
        with TemporaryDirectory(prefix="fluent-comet-") as name:
            folder = Path(name)
            write_text(folder / "src.txt", "".join(f"{pair.source}\n" for pair in pairs))
            write_text(folder / "mt.txt", "".join(f"{pair.sentence}\n" for pair in pairs))
            options = {
                "-s": "src.txt",
                "-t": "mt.txt",
                "--model": self._model,
                "--batch_size": self._batch_size,
                "--gpus": self._gpus,
                "--to_json": "scores.json",
            }
            words = [str(self._command.absolute())]
            words += [str(word) for option in options.items() for word in option]
            words.append("--quiet")
            # COMET opens text files in whatever the system's encoding is.
            environment = os.environ | {"PYTHONUTF8": "1"}
            try:
                done = subprocess.run(
                    words,
                    cwd=folder,
                    env=environment,
                    capture_output=True,
                    encoding="utf-8",
                    errors="replace",
                    check=False,
                )
            except OSError as error:
                raise UserError(
                    f"{self._command} does not start ({error.strerror}): "
                    f"install COMET again with `{INSTALL}`"
                ) from None
            if done.returncode != 0:
                raise UserError(f"{what}: {self._explain(done.returncode, done.stderr)}; {KEPT}")
            return _read_answer(folder / "scores.json", len(pairs), f"{what}: {self._command.name}")

    def _explain(self, status: int, said: str) -> str:
        """Why the call failed, from what COMET printed last; its own words can mislead."""
        low = said.lower()
        last = next(
            (line.strip() for line in reversed(said.splitlines()) if line.strip()), "without a word"
        )[:200]
        signs = ("gatedrepo", "gated repo", "access to model", "401 client", "403 client")
        if any(sign in low for sign in signs):
            page = f"https://huggingface.co/{self._model}"
            return (
                f"{self._model} is a gated model: accept its licence at {page} and log in (HF_TOKEN"
                " in the environment)"
            )
        if "no space left" in low:
            return f"{self._model} cannot be fetched: the disk is full; free some space"
        if "not supported by comet" in low or "not a valid checkpoint path" in low:
            gate = (
                " its licence must be accepted on huggingface.co first,"
                if "kiwi" in low or "xcomet" in low
                else ""
            )
            return (
                f"COMET cannot get model {self._model}: the name may be wrong,{gate} or network or"
                " disk failed (it says the same to all)"
            )
        if "out of memory" in low:
            return "COMET ran out of memory; choose a smaller --batch-size, or close other programs"
        if status in (-signal.SIGKILL, 128 + signal.SIGKILL):
            return (
                f"{self._command.name} was killed: by the system for want of memory (choose a"
                " smaller --batch-size), or by hand"
            )
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
    """The scores in COMET's JSON: ``{file name: [{"src", "mt", "COMET"}, …]}``. Half an answer is a
    ``UserError``.
    """
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
    """sha256 of a checkpoint and its settings; a model that COMET fetches goes by its name."""
    files = [
        file for file in (checkpoint, checkpoint.parent.parent / "hparams.yaml") if file.is_file()
    ]
    return digest(file_hashes(files))
