"""Which models and checkpoints are to be scored, and how each is loaded: a token in front exactly once, whatever its tokenizer does."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from fluent_mlama.console import UserError
from fluent_mlama.options import LoadOptions
from fluent_mlama.scoring.identity import model_identity

if TYPE_CHECKING:
    from fluent_mlama.scoring.causal import CausalScorer

ALL = "ALL"


@dataclass(frozen=True)
class Target:
    """One model at one revision. location: what is loaded; a checkpoint of a local folder is a folder of its own."""

    name: str
    location: str
    revision: str | None

    @property
    def label(self) -> str:
        """For tables and plots."""
        return f"{Path(self.name).name}@{self.revision}" if self.revision else Path(self.name).name

    def identity(self) -> str:
        """Which model it is now: what was trained on is another model."""
        return model_identity(self.location, self.revision if self.location == self.name else None)


def find_targets(models: Sequence[str], revisions: Sequence[str]) -> list[Target]:
    """Every model at every revision. For a local folder a revision is a sub-folder with a checkpoint; ALL means all of them."""
    targets = []
    for model in models:
        folder = Path(model).expanduser()
        if not folder.is_dir():
            if ALL in revisions:
                raise UserError(
                    f"--revisions ALL needs a local folder of checkpoints; name the revisions of {model}, e.g. main,step1000"
                )
            targets += [Target(model, model, revision) for revision in revisions] or [
                Target(model, model, None)
            ]
        elif not revisions:
            targets.append(Target(model, str(folder), None))
        else:
            names = _checkpoints(folder) if ALL in revisions else list(revisions)
            for name in names:
                if not (folder / name / "config.json").is_file():
                    raise UserError(
                        f"{folder} has no checkpoint '{name}'; there are: {', '.join(_checkpoints(folder)) or 'none'}"
                    )
            if not names:
                raise UserError(
                    f"{folder} has no checkpoints: no sub-folder holds a config.json; leave --revisions out to take the folder itself"
                )
            targets += [Target(model, str(folder / name), name) for name in names]
    labels = [target.label for target in targets]
    doubled = next((label for label in labels if labels.count(label) > 1), None)
    if doubled:
        raise UserError(
            f"two models would both be called {doubled}; give each once, and folders different names"
        )
    return targets


def _checkpoints(folder: Path) -> list[str]:
    names = [path.parent.name for path in folder.glob("*/config.json")]
    return sorted(
        names,
        key=lambda name: [
            int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)
        ],
    )


def load(target: Target, loading: LoadOptions = LoadOptions()) -> CausalScorer:
    """The scorer for a target. A tokenizer that puts nothing in front gets BOS, or else EOS, there (as in the published evaluation)."""
    from fluent_mlama.scoring.causal import load_scorer

    own = target.revision if target.location == target.name else None
    loading = replace(loading, revision=own or loading.revision)
    scorer = load_scorer(target.location, **loading.causal())
    tokeniser = scorer.tokeniser
    if not tokeniser.prefix("joint"):
        tokeniser.bos = tokeniser.tokenizer.eos_token_id
        if tokeniser.bos is None:
            raise UserError(
                f"tokenizer of {target.name} has neither BOS nor EOS to put in front of a sentence; add one to its config"
            )
    return scorer
