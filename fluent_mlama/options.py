"""Options that mean the same in every command: one type, one spelling, one help text each.

A command takes them as annotated parameters (``langs: Langs = ()``) or as a group (``model: ModelOptions``).
Python users pass plain values: ``langs=("ru", "cs")``, ``model=ModelOptions(model="smollm2")``.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter, Token

from fluent_mlama.console import UserError, plain_number, split_list
from fluent_mlama.data import BENCHMARK, shipped
from fluent_mlama.scoring.executors import Cluster

Converter = Callable[[Any, Sequence[Token]], Any]


def comma_list(_: Any, tokens: Sequence[Token]) -> tuple[str, ...]:
    """``ru,cs`` as names, each once, order kept; the option may be repeated."""
    names: list[str] = []
    for token in tokens:
        names += split_list(token.value)
    if not names or not all(split_list(token.value) for token in tokens):
        raise ValueError("an empty list; name at least one, for example ru,cs")
    return tuple(dict.fromkeys(names))


def whole_number(least: int, most: int | None = None) -> Converter:
    """Converts to a whole number in these bounds, from plain digits only (``int`` takes 1_0 and ３)."""

    def convert(_: Any, tokens: Sequence[Token]) -> int:
        value = tokens[-1].value
        number = plain_number(value)
        if number is None or number < least or (most is not None and number > most):
            upper = "" if most is None else f" to {most}"
            raise ValueError(f"{value!r} is not a whole number from {least}{upper}")
        return number

    return convert


def named(_: Any, tokens: Sequence[Token]) -> str:
    """Any text but blanks."""
    if not tokens[-1].value.strip():
        raise ValueError("an empty name")
    return tokens[-1].value


def path_named(_: Any, tokens: Sequence[Token]) -> Path:
    """A file or folder, there or not."""
    return Path(named(_, tokens))


def path_list(_: Any, tokens: Sequence[Token]) -> tuple[Path, ...]:
    """Paths between commas, or one path that has commas in it; the option may be repeated."""
    paths: list[Path] = []
    for token in tokens:
        whole = Path(named(_, [token]))
        paths += [whole] if whole.exists() else [Path(part) for part in split_list(token.value)]
    if not paths:
        raise ValueError("an empty name")
    return tuple(paths)


def benchmark_place(_: Any, tokens: Sequence[Token]) -> Path:
    """A folder or zip of benchmark files; ``starter`` names those that ship."""
    return shipped(path_named(_, tokens), BENCHMARK)


def cutoff_list(_: Any, tokens: Sequence[Token]) -> tuple[int, ...]:
    """Each k of R@k once, in the order given."""
    value = ",".join(token.value for token in tokens)
    numbers = [plain_number(part.strip()) or 0 for part in value.split(",")]
    if not all(numbers):
        raise ValueError(f"{value!r} is not a list of whole numbers from 1, such as 1,3,5")
    return tuple(dict.fromkeys(numbers))


def _address(_: Any, tokens: Sequence[Token]) -> str:
    value = tokens[-1].value
    host, _, port = value.rpartition(":")
    is_host = re.fullmatch(r"[\w.-]+|\[[0-9A-Fa-f:.]+\]", host)
    if value != "auto" and not (is_host and 0 < (plain_number(port) or 0) < 65536):
        raise ValueError(
            f"{value!r} is not an address; give HOST:PORT, for example 10.0.0.1:6379, or auto"
        )
    return value


# Building blocks: give them a help text of your own with a second Parameter(help=...).
Names = Annotated[tuple[str, ...], Parameter(converter=comma_list, n_tokens=1)]
Name = Annotated[str, Parameter(converter=named, n_tokens=1)]
File = Annotated[Path, Parameter(converter=path_named, n_tokens=1)]
Files = Annotated[tuple[Path, ...], Parameter(converter=path_list, n_tokens=1)]
Count = Annotated[int, Parameter(converter=whole_number(1), n_tokens=1)]

Langs = Annotated[Names, Parameter(name=["--langs", "-l"], help="languages, comma-separated")]
Relations = Annotated[
    Names, Parameter(name=["--relations", "-r"], help="relations, comma-separated")
]
Verbalisations = Annotated[
    Names, Parameter(help="verbalisations, comma-separated (default: all that the files have)")
]
Benchmarks = Annotated[
    Path,
    Parameter(
        converter=benchmark_place,
        n_tokens=1,
        help="folder or zip of benchmark files; starter names the ones that ship",
    ),
]
Cutoffs = Annotated[
    tuple[int, ...],
    Parameter(converter=cutoff_list, n_tokens=1, help="the k of R@k, comma-separated"),
]
Seed = Annotated[
    int, Parameter(converter=whole_number(0, 2**32 - 1), n_tokens=1, help="of the random numbers")
]
Limit = Annotated[Count, Parameter(help="use the first N only")]


@Parameter(name="*", group="the model")
@dataclass(frozen=True, kw_only=True)
class LoadOptions:
    """How a model is loaded; ``None`` and ``auto`` leave the choice to the engine."""

    revision: Name | None = None
    """branch, tag or commit on the hub"""
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """auto: the checkpoint's on a GPU, float32 on a CPU"""
    device: Name = "auto"
    """auto, cpu, cuda, cuda:1, mps"""
    device_map: Name | None = None
    """spread a large model over devices: auto, balanced …"""
    quantization: Literal["4bit", "8bit"] | None = None
    """with bitsandbytes, where it is installed"""
    trust_remote_code: bool = False
    """run code that comes with the model"""
    scoring_method: Name = "auto"
    """how to score (auto: the fastest that passes the check at load)"""
    token_budget: Count | None = None
    """tokens per forward pass; bounds the memory"""

    def causal(self) -> dict[str, Any]:
        """The keyword arguments of ``load_scorer``."""
        return {
            "device": self.device,
            "dtype": self.dtype,
            "revision": self.revision,
            "device_map": self.device_map,
            "trust_remote_code": self.trust_remote_code,
            "quantization": self.quantization,
            "path": self.scoring_method,
            "token_budget": self.token_budget,
        }

    def masked(self) -> dict[str, Any]:
        """The keyword arguments of ``load_masked_scorer``; what it does not know is a ``UserError``."""
        for name in ("device_map", "quantization"):
            if getattr(self, name) is not None:
                raise UserError(f"--{name.replace('_', '-')} is for causal models; leave it out")
        given = {
            "device": self.device,
            "dtype": self.dtype,
            "revision": self.revision,
            "trust_remote_code": self.trust_remote_code,
        }
        return given if self.token_budget is None else given | {"token_budget": self.token_budget}


@Parameter(name="*", group="where to score")
@dataclass(frozen=True, kw_only=True)
class ClusterOptions:
    """In this process, or in Ray workers (docs/scaling.md)."""

    executor: Literal["local", "ray"] = "local"
    """ray: several GPUs or machines"""
    address: Annotated[str, Parameter(converter=_address, n_tokens=1)] | None = None
    """ray: HOST:PORT of a running cluster, or auto (default: this machine alone)"""
    workers: Count | None = None
    """ray: models held at once (default: one per GPU)"""
    gpus_per_worker: Count | None = None
    """ray: GPUs of each worker, for --device-map (default: 1)"""

    def cluster(self) -> Cluster | None:
        """What was asked for; None for this process. Ray that is not installed is a ``UserError``."""
        if self.executor != "ray":
            for name in ("address", "workers", "gpus_per_worker"):
                if getattr(self, name) is not None:
                    flag = name.replace("_", "-")
                    raise UserError(f"--{flag} is about Ray workers; add --executor ray")
            return None
        if importlib.util.find_spec("ray") is None:
            raise UserError(
                "--executor ray needs Ray, which is not installed; "
                "run: pip install -r requirements-ray.txt"
            )
        return Cluster(self.address, self.workers, self.gpus_per_worker or 1)
