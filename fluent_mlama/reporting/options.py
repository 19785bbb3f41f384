"""The options that every statistics command shares: which dumps, which of their facts, and where results go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from fluent_mlama.console import UserError
from fluent_mlama.options import File, Files, Langs, Relations, Verbalisations, whole_number

LEAST_RESAMPLES, MOST_RESAMPLES = 200, 1_000_000
"""Fewer cannot cut 5 % off; more would change nothing."""
Resamples = Annotated[
    int,
    Parameter(
        converter=whole_number(LEAST_RESAMPLES, MOST_RESAMPLES),
        n_tokens=1,
        help="sign flips of the tests",
    ),
]
Against = Annotated[Files, Parameter(help="dumps of other models or protocols, beside --stats")]
QualityGains = Annotated[
    File | None,
    Parameter(
        help="TSV of gains in translation quality (columns lang, verbalisation, relation, qe_delta)"
    ),
]
QualityScale = Annotated[
    str, Parameter(help="model and scale of those gains, for heads and captions")
]


@dataclass(frozen=True)
class RowRules:
    """Which ranked rows the tables leave out. short: gt, any or no (``exclude_short``). with_named: keep the facts whose subject names
    the object (protocol corrected; `paper` keeps them always)."""

    short: str
    with_named: bool = False


@Parameter(name="*", group="shared options")
@dataclass(frozen=True, kw_only=True)
class StatsOptions:
    """What every command of ``stats.py`` and ``grammeval.py`` understands."""

    stats: Files = (Path("stats"),)
    """rank dumps, a folder or zip; compare and report take several"""
    wide: File | None = None
    """wide dumps (default: stats_wide/X for stats/X, if any)"""
    tables: File = Path("tables")
    """where tables go"""
    graphs: File = Path("graphs")
    """where graphs go"""
    langs: Langs | None = None
    """languages, comma-separated (default: the paper's, or all there are)"""
    relations: Relations | None = None
    """relations, comma-separated (default: likewise)"""
    verbalisations: Verbalisations | None = None
    """verbalisations, comma-separated (default: all that the dumps have)"""
    style: Literal["paper", "clean"] = "clean"
    """paper: the published layout to the byte; clean: ours"""
    exclude_short: Literal["gt", "any", "no"] | None = None
    """leave out rows with a prompt under a third of the others' length: in gt (default in paper
    style), in any verbalisation but the template (default in clean style), or no"""
    with_named: bool = False
    """corrected: keep the facts whose subject names the object"""

    @property
    def dumps(self) -> Path:
        """The one folder of dumps; several are a ``UserError``."""
        if len(self.stats) > 1:
            raise UserError(
                f"--stats {','.join(map(str, self.stats))}: this command takes one folder of dumps; "
                "compare and report take several"
            )
        return self.stats[0]

    @property
    def rules(self) -> RowRules:
        """For short prompts as asked, else the paper's rule in paper style and ours in clean style (protocols, paper 7)."""
        short = self.exclude_short or ("gt" if self.style == "paper" else "any")
        return RowRules(short, self.with_named)


SHARED = {field.name for field in fields(StatsOptions)} - {"stats", "wide"}


def python_options(given: Mapping[str, Any], base: StatsOptions = StatsOptions()) -> StatsOptions:
    """Options as Python users write them, over ``base``: a path may be text, a list need not be a tuple."""
    unknown = given.keys() - SHARED
    if unknown:
        raise TypeError(f"no option {', '.join(sorted(unknown))}: there are {', '.join(SHARED)}")
    options = dict(given)
    for name in ("tables", "graphs"):
        if name in options:
            options[name] = Path(options[name])
    for name in ("langs", "relations", "verbalisations"):
        if options.get(name):
            options[name] = tuple(options[name])
    return replace(base, **options)
