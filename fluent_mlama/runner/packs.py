"""Finished packs on disk: the unit of resume.

While a dump is made, a folder beside it (``….packs``) holds one small Parquet file a finished pack. A killed run leaves
whole packs only; the next run with the same plan scores what is missing. Log-probabilities are kept as 64-bit floats, so
that a resumed run assembles the same bytes as an undisturbed one. Each file names the plan and the pack that it is.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from fluent_mlama.json_text import parse_json
from fluent_mlama.records.atomic import write_bytes, write_text
from fluent_mlama.scoring.contract import CandidateScore, Plan, RequestScore, ScorerDescription

_PLAN = "plan.json"
_KEY = b"plan"
_PACK_NAME = re.compile(r"pack-(\d+)\.parquet")
_PROMPT = -1
_SCHEMA = pa.schema(
    [
        ("request", pa.int32()),
        ("candidate", pa.int32()),  # _PROMPT: the prompt's own tokens
        ("token_ids", pa.list_(pa.int32())),
        ("token_logprobs", pa.list_(pa.float64())),
        ("logprob", pa.float64()),
        ("tail_tokens", pa.int32()),
        ("straddles", pa.bool_()),
    ]
)


def fingerprint(plan: Plan, description: ScorerDescription, arithmetic: str) -> str:
    """What packs must agree on to be put together: the scorer, the arithmetic, every request and how they were cut."""
    digest = hashlib.sha256()
    d = description
    for part in (
        d.model,
        d.revision,
        d.dtype,
        d.device,
        d.path,
        d.bos,
        arithmetic,
        plan.tokenisation,
        plan.packs,
        plan.requests,
    ):
        digest.update(repr(part).encode("utf-8"))
    return digest.hexdigest()


class PackStore:
    """Packs of one dump in the making. Packs of another plan are thrown away when the store is opened.

    The folder is made for the first pack, so that a run that fails before it leaves none.
    """

    def __init__(self, folder: Path, mark: str) -> None:
        self.folder = folder
        self.mark = mark
        self.discarded = 0
        if not self._is_current():
            for _, path in list(self._files()):
                path.unlink()
                self.discarded += 1

    def _is_current(self) -> bool:
        try:
            return str(parse_json((self.folder / _PLAN).read_bytes(), _PLAN)["plan"]) == self.mark
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def each(self) -> Iterator[tuple[int, dict[int, RequestScore]]]:
        """Number and scores of every readable pack; a torn or foreign file counts as not finished."""
        for number, _ in list(self._files()):
            scores = self.load(number)
            if scores is not None:
                yield number, scores

    def finished(self) -> dict[int, dict[int, RequestScore]]:
        """All of them at once."""
        return dict(self.each())

    def load(self, number: int) -> dict[int, RequestScore] | None:
        """The scores of pack ``number``; None where it is not finished (a torn or foreign file is removed)."""
        path = self._path(number)
        try:
            return _decode(path.read_bytes(), self._mark_of(number))
        except FileNotFoundError:
            return None
        except (pa.ArrowException, OSError, KeyError, ValueError, TypeError):
            path.unlink(missing_ok=True)
            return None

    def save(self, number: int, scores: Mapping[int, RequestScore]) -> None:
        """Keep the scores of pack ``number``; whole or not at all."""
        if not self._is_current():
            write_text(self.folder / _PLAN, json.dumps({"plan": self.mark}) + "\n")
        write_bytes(self._path(number), _encode(scores, self._mark_of(number)))

    def remove(self) -> None:
        """Forget everything (once the dump itself is written)."""
        forget_packs(self.folder)

    def _mark_of(self, number: int) -> str:
        """What a pack's file must carry: a pack under another's name would be waited for without end."""
        return f"{self.mark}/{number}"

    def _path(self, number: int) -> Path:
        return self.folder / f"pack-{number:06d}.parquet"

    def _files(self) -> Iterable[tuple[int, Path]]:
        if not self.folder.is_dir():
            return
        for path in sorted(self.folder.iterdir()):
            match = _PACK_NAME.fullmatch(path.name)
            if match:
                yield int(match[1]), path


def forget_packs(folder: Path) -> None:
    """Remove a folder of packs, if it is there, whatever plan they are of."""
    if not folder.is_dir():
        return
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(folder)


def _encode(scores: Mapping[int, RequestScore], mark: str) -> bytes:
    rows = []
    for request, score in sorted(scores.items()):
        prompt = CandidateScore(
            score.prompt_token_ids, score.prompt_token_logprobs, score.prompt_logprob
        )
        for candidate, part in enumerate((prompt, *score.candidates), start=_PROMPT):
            rows.append(
                (
                    request,
                    candidate,
                    part.token_ids,
                    part.token_logprobs,
                    part.logprob,
                    part.tail_tokens,
                    part.straddles,
                )
            )
    columns = zip(*rows, strict=True) if rows else [[] for _ in _SCHEMA]
    table = pa.table(
        [pa.array(list(column), kind.type) for column, kind in zip(columns, _SCHEMA, strict=True)],
        schema=_SCHEMA,
    )
    table = table.replace_schema_metadata({_KEY: mark.encode("ascii")})
    buffer = io.BytesIO()
    pq.write_table(table, buffer, write_page_checksum=True)  # a flipped bit must not become a score
    return buffer.getvalue()


def _decode(data: bytes, mark: str) -> dict[int, RequestScore]:
    prompts: dict[int, CandidateScore] = {}
    candidates: dict[int, list[CandidateScore]] = {}
    table = pq.read_table(io.BytesIO(data), page_checksum_verification=True)
    if (table.schema.metadata or {}).get(_KEY) != mark.encode("ascii"):
        raise ValueError("a pack of another plan")
    for row in table.cast(_SCHEMA).to_pylist():
        part = CandidateScore(
            tuple(row["token_ids"]),
            tuple(row["token_logprobs"]),
            row["logprob"],
            row["tail_tokens"],
            row["straddles"],
        )
        if row["candidate"] == _PROMPT:
            prompts[row["request"]] = part
        else:
            candidates.setdefault(row["request"], []).append(part)
    return {
        request: RequestScore(
            prompt.token_ids,
            prompt.token_logprobs,
            prompt.logprob,
            tuple(candidates.get(request, ())),
        )
        for request, prompt in prompts.items()
    }
