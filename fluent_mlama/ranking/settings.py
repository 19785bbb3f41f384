"""What a person asked for: one set of settings for all files of a run."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fluent_mlama.options import LoadOptions

if TYPE_CHECKING:  # pandas stays out of `script.py --help`
    from fluent_mlama.records.results import ProtocolName
    from fluent_mlama.scoring.contract import Arithmetic

DEFAULT_MODEL = "meta-llama/Llama-2-7b-chat-hf"


def without_home(path: str) -> str:
    """A model's name or path as records hold it: ``~`` for the user's home folder, so that no record tells whose it was."""
    try:
        home = Path.home()
        return path if home == Path(home.anchor) else f"~/{Path(path).relative_to(home).as_posix()}"
    except (RuntimeError, ValueError):  # no home folder, or not a path in it
        return path


@dataclass(frozen=True)
class Settings:
    """How to rank. ``None`` and ``auto`` leave the choice to the engine.

    verbalisations: which of a file's to compare, None = all. limit: rows to be scored at most; the pool is never cut.
    drop_empty_objects (paper): leave rows with an empty object cell out, as three published narrow dumps did.
    accept_unsure: rank objects that were found without evidence from their name (``frame``, ``unsure``) as well.
    all_forms (corrected): also rank entities by the best of all their names. neutral_prompt: score each continuation behind this text
    as well, for pointwise mutual information.
    """

    model: str = DEFAULT_MODEL
    revision: str | None = None
    dtype: str = "auto"
    device: str = "auto"
    device_map: str | None = None
    quantization: str | None = None
    trust_remote_code: bool = False
    scoring_method: str = "auto"
    token_budget: int | None = None
    protocol: ProtocolName = "paper"
    arithmetic: Arithmetic = "float32"
    verbalisations: tuple[str, ...] | None = None
    limit: int | None = None
    drop_empty_objects: bool = False
    accept_unsure: bool = False
    all_forms: bool = False
    neutral_prompt: str | None = None
    out: Path = Path("stats")
    overwrite: bool = False

    @property
    def wide(self) -> Path | None:
        """Where the wide twins go: ``stats_wide/X`` for ``stats/X``, else a folder beside; None where there are none."""
        if self.protocol != "paper":
            return None
        parts = list(self.out.parts)
        place = max(
            (number for number, part in enumerate(parts) if part == "stats"), default=len(parts) - 1
        )
        if place < 0:
            return Path("stats_wide")
        return Path(*parts[:place], f"{parts[place]}_wide", *parts[place + 1 :])

    def asked(self) -> dict[str, Any]:
        """What decides the numbers, as asked: kept in the run record, so that a finished run is known without a model."""
        return {
            "model": without_home(self.model),
            "revision": self.revision,
            "dtype": self.dtype,
            "quantise": self.quantization,
            "protocol": self.protocol,
            "arithmetic": self.arithmetic,
            "drop_empty_objects": self.drop_empty_objects,
            "accept_unsure": self.accept_unsure,
            "all_forms": self.all_forms,
            "neutral_prompt": self.neutral_prompt,
        }

    def load_options(self) -> LoadOptions:
        """How to load the model."""
        return LoadOptions(
            **{field.name: getattr(self, field.name) for field in fields(LoadOptions)}
        )

    def suggest_folder(self, data: str = "") -> Path:
        """A folder name for these settings: ``stats/llama-2-7b-chat-hf``, with the protocol or data where that differs."""
        name = os.path.basename(self.model.rstrip("/\\")).lower().removesuffix(".gguf") or "model"
        words = [
            name,
            *([self.protocol] if self.protocol != "paper" else []),
            *([data] if data else []),
        ]
        base = Path("stats") / "-".join(words)
        number, folder = 1, base
        while folder == self.out or (folder.is_dir() and any(folder.iterdir())):
            number += 1
            folder = base.with_name(f"{base.name}-{number}")
        return folder
