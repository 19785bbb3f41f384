"""Token log-probabilities of every pair under every model, from one scoring pass, kept on disk.

A pair is one request with an empty prompt and two candidates, so the engine computes their common
beginning once. Linking functions, lengths and unigrams need no model after that.

    <out>/<model>/<revision>.scores.parquet   the table      .run.json   what made it
                            .packs/           finished packs of an unfinished run
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from fluent_mlama.console import UserError
from fluent_mlama.files import as_file_name, parse_json, write_bytes
from fluent_mlama.options import LoadOptions
from fluent_mlama.records.results import write_run
from fluent_mlama.runner.run import OnItems, Packs, record_of
from fluent_mlama.scoring.contract import Candidate, Request, RequestScore, Scorer
from fluent_mlama.scoring.identity import model_identity
from fluent_mlama.zhoblimp.data import PairRow

if TYPE_CHECKING:
    from fluent_mlama.scoring.causal import CausalScorer

ALL = "ALL"
LOADING = LoadOptions()
_TEXTS = ("uid", "phenomenon", "number", "good", "bad")
_SCHEMA = pa.schema(
    [
        ("uid", pa.string()),
        ("phenomenon", pa.string()),
        ("number", pa.int32()),
        ("good", pa.string()),
        ("bad", pa.string()),
        ("good_ids", pa.list_(pa.int32())),
        ("bad_ids", pa.list_(pa.int32())),
        ("good_logprobs", pa.list_(pa.float64())),
        ("bad_logprobs", pa.list_(pa.float64())),
    ]
)


@dataclass(frozen=True)
class Target:
    """One model at one revision; ``location`` is what is loaded.

    A checkpoint of a local folder is a folder of its own, and its revision the folder's name.
    """

    name: str
    location: str
    revision: str | None = None

    @property
    def label(self) -> str:
        """For tables and plots."""
        name = Path(self.name).name
        return f"{name}@{self.revision}" if self.revision else name

    @property
    def hub_revision(self) -> str | None:
        """The revision, where it is one on the hub."""
        return self.revision if self.location == self.name else None

    def identity(self) -> str:
        """Which model it is now: a model that was trained further is another one."""
        return model_identity(self.location, self.hub_revision)


def find_targets(models: Sequence[str], revisions: Sequence[str]) -> list[Target]:
    """Every model at every revision, or at its default one.

    For a local folder a revision is a sub-folder with a checkpoint; ``ALL`` means all of them.
    """
    targets = []
    for model in models:
        folder = Path(model).expanduser()
        if folder.is_dir():
            targets += _targets_in(model, folder, revisions)
        elif ALL in revisions:
            raise UserError(
                f"--revisions ALL needs a local folder of checkpoints; "
                f"name the revisions of {model}, e.g. main,step1000"
            )
        else:
            targets += [Target(model, model, revision) for revision in revisions or (None,)]
    labels = [target.label for target in targets]
    doubled = next((label for label in labels if labels.count(label) > 1), None)
    if doubled:
        raise UserError(
            f"two models would both be called {doubled}; "
            "give each once, and folders different names"
        )
    return targets


def _targets_in(model: str, folder: Path, revisions: Sequence[str]) -> list[Target]:
    """The checkpoints of a local folder, or the folder itself."""
    if not revisions:
        return [Target(model, str(folder))]
    there = sorted((path.parent.name for path in folder.glob("*/config.json")), key=_by_number)
    if ALL in revisions and not there:
        raise UserError(
            f"{folder} has no checkpoints: no sub-folder holds a config.json; "
            "leave --revisions out to take the folder itself"
        )
    names = there if ALL in revisions else revisions
    for name in names:
        if not (folder / name / "config.json").is_file():
            raise UserError(
                f"{folder} has no checkpoint '{name}'; there are: {', '.join(there) or 'none'}"
            )
    return [Target(model, str(folder / name), name) for name in names]


def _by_number(name: str) -> list[int | str]:
    """step9 before step10."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)]


def load(target: Target, loading: LoadOptions = LOADING) -> CausalScorer:
    """The scorer for a target.

    A tokenizer that puts nothing in front of a sentence gets BOS there, or else EOS, as in the
    published evaluation.
    """
    from fluent_mlama.scoring.causal import load_scorer

    scorer = load_scorer(target.location, **replace(loading, revision=target.hub_revision).causal())
    tokeniser = scorer.tokeniser
    if not tokeniser.prefix("joint"):
        tokeniser.bos = tokeniser.tokenizer.eos_token_id
        if tokeniser.bos is None:
            raise UserError(
                f"tokenizer of {target.name} has neither BOS nor EOS to put in front of "
                "a sentence; add one to its config"
            )
    return scorer


@dataclass(frozen=True)
class Place:
    """Where the files of one model at one revision are."""

    folder: Path
    stem: str

    @classmethod
    def of(cls, out: Path, target: Target) -> Place:
        """``<out>/<model>/<revision>``, with safe file names."""
        name = target.name if target.location == target.name else Path(target.name).name
        revision = target.revision or "main"
        return cls(out / as_file_name(name), as_file_name(revision, instead="main"))

    @property
    def scores(self) -> Path:
        """Token log-probabilities."""
        return self.folder / f"{self.stem}.scores.parquet"

    @property
    def run(self) -> Path:
        """What made them."""
        return self.folder / f"{self.stem}.run.json"

    @property
    def pairs(self) -> Path:
        """One JSON line per pair, as published, with the scores added."""
        return self.folder / f"{self.stem}.jsonl"

    @property
    def packs(self) -> Path:
        """Finished packs of an unfinished run."""
        return self.folder / f"{self.stem}.packs"


def requests_of(rows: Sequence[PairRow]) -> list[Request]:
    """One request per pair."""
    return [Request("", (Candidate(row.good), Candidate(row.bad))) for row in rows]


def digest(rows: Sequence[PairRow]) -> str:
    """SHA-256 of the pairs that are scored, in order."""
    found = hashlib.sha256()
    for row in rows:
        found.update(f"{row.uid}\t{row.phenomenon}\t{row.number}\t{row.good}\t{row.bad}\n".encode())
    return found.hexdigest()


@dataclass(frozen=True)
class Pairs:
    """All pairs for one model, as a job of the runner. settings: whatever decides the numbers."""

    rows: Sequence[PairRow]
    place: Place
    label: str
    settings: Mapping[str, Any]

    @property
    def unit(self) -> str:
        """What is counted."""
        return "pairs"

    @property
    def target(self) -> Path:
        """The table of scores."""
        return self.place.scores

    @property
    def packs(self) -> Path:
        """Finished packs of an unfinished table."""
        return self.place.packs

    def is_finished(self, scorer: Scorer | None = None) -> bool:
        """Whether an earlier run with exactly these settings has scored them."""
        return kept(self.settings, self.place) is not None

    def make(self, scorer: Scorer, on_items: OnItems) -> None:
        """Score the pairs, and write the table and its record."""
        frame = score_pairs(scorer, self.rows, self.place, self.label, on_items)
        buffer = io.BytesIO()
        columns = [pa.array(frame[field.name].tolist(), field.type) for field in _SCHEMA]
        pq.write_table(pa.table(columns, schema=_SCHEMA), buffer)
        write_bytes(self.place.scores, buffer.getvalue())
        record = record_of(
            scorer.describe("joint"),
            "zhoblimp",
            rows=len(frame),
            data=self.settings["pairs_sha256"],
            pool=2,
            ties="wrong",
            scores_sha256=hashlib.sha256(buffer.getvalue()).hexdigest(),
            settings=dict(self.settings),
        )
        write_run(self.place.run, record)


def score_pairs(
    scorer: Scorer,
    rows: Sequence[PairRow],
    place: Place,
    label: str,
    on_items: OnItems = lambda done, total: None,
) -> pd.DataFrame:
    """Score all pairs, going on from finished packs; one row per pair in the order of ``rows``.

    A pair that the model has too few positions for is a ``UserError``: nothing is cut off.
    """
    plan = scorer.plan(requests_of(rows), "joint")
    for number, reason in plan.unscorable.items():
        raise UserError(
            f"{rows[number].uid}: pair {rows[number].number} cannot be scored by {label}: {reason}"
        )
    packs = Packs(place.packs, label, scorer, plan)
    scores: dict[int, RequestScore] = {}
    for stored in packs.stored():
        scores |= stored
    on_items(len(scores), len(rows))
    for fresh in packs.fresh():
        scores |= fresh
        on_items(len(scores), len(rows))
    return frame_of(rows, scores)


def frame_of(rows: Sequence[PairRow], scores: Mapping[int, RequestScore]) -> pd.DataFrame:
    """The scores of all pairs as they are kept; ``scores`` by the pairs' numbers in ``rows``."""
    records = []
    for number, row in enumerate(rows):
        good, bad = scores[number].candidates
        texts = [getattr(row, name) for name in _TEXTS]
        records.append(
            (*texts, good.token_ids, bad.token_ids, good.token_logprobs, bad.token_logprobs)
        )
    return pd.DataFrame(records, columns=_SCHEMA.names)


@dataclass(frozen=True)
class Kept:
    """Scores on disk, the identity of the tokenizer they were made with, and their signature."""

    frame: pd.DataFrame
    tokenizer: str
    signature: str


def kept(settings: Mapping[str, Any], place: Place) -> Kept | None:
    """The scores of an earlier run with exactly these settings; None where they are damaged."""
    try:
        record = dict(parse_json(place.run.read_bytes(), place.run.name))
        data = place.scores.read_bytes()
        same = record["extras"]["settings"] == dict(settings)
        whole = record["scores_sha256"] == hashlib.sha256(data).hexdigest()
    except (OSError, KeyError, ValueError, TypeError):
        return None
    if not same or not whole:
        return None
    rows = pq.read_table(io.BytesIO(data), schema=_SCHEMA).to_pylist()
    frame = pd.DataFrame(rows, columns=_SCHEMA.names)
    return Kept(frame, record["tokenizer"], record["signature"])
