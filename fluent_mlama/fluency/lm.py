"""Judge ``lm``: how probable a language model finds the whole sentence, for its length.

Offline with the embedded model. ``mean`` is the log-probability a token, in natural logs; ``slor`` (Pauls and Klein
2012) takes out how rare the words are, which ``mean`` cannot tell from how well they are put together. The judge should
be another model than the probed one: a model that judges itself finds fluent what it knows, and the correlation with what
it knows says little. Such runs are labelled circular.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fluent_mlama.console import UserError, note, progress_bar
from fluent_mlama.fluency.judging import Pair, digest
from fluent_mlama.linking import Unigrams, evidence, parse_linking
from fluent_mlama.runner.run import Packs
from fluent_mlama.scoring.contract import Candidate, Request, RequestScore

if TYPE_CHECKING:
    from fluent_mlama.scoring.contract import Scorer

DEFAULT_MODEL = "smollm2"
CIRCULAR = "circular: the probed model judges itself"
LOW_COVERAGE = 0.9
_NAMELESS = {"", "local", "unknown"}
_SCALES = {
    "mean": "log-probability a token, natural log",
    "slor": "SLOR, natural log a token",
    "lp": "log-probability, natural log",
}


class LanguageModelJudge:
    """model: as in ``script.py --model``. linking: of ``fluent_mlama/linking.py``; by default slor with unigrams, else mean.

    probed: model -> revision that made the dumps. scorer: one that is loaded already, or a stand-in.
    """

    def __init__(
        self,
        model: str = DEFAULT_MODEL,
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
                f"--linking {self._linking.name} needs unigram probabilities: give them with --unigram, or choose mean"
            )
        if self._linking.needs == "prior":
            raise UserError(
                "pmi compares a string with and without its prompt, and a whole sentence has none; choose mean or slor"
            )
        if scorer is None:
            from fluent_mlama.scoring.causal import (
                load_scorer,  # torch: not before the arguments are known to be good
            )

            scorer = load_scorer(model, device=device, dtype=dtype)
        self._scorer, self._unigrams = scorer, unigrams
        self._made = scorer.describe("joint")
        if unigrams is not None and self._linking.needs == "unigram":
            unigrams.check_made_for(self._made.tokenizer, self._made.model)
        self._before = (
            "" if self._made.bos != "0" else "\n"
        )  # the first token needs something before it; without BOS that is a new line
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

    def score(self, pairs: Sequence[Pair], work: Path, name: str) -> list[float]:
        """The linking function of each sentence; the source is not looked at. A sentence that the model cannot take has no score."""
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
                f"{name}: {len(plan.unscorable)} sentences without a score; the first: '{pairs[first].sentence}': {reason}"
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
                    f"{name}: {self._unigrams.source} has {share:.0%} of the tokens; probably made for another tokenizer"
                )


def is_same_model(model: str, revision: str, probed: Mapping[str, str]) -> bool:
    """Whether the judge is one of the probed models: the same name (of a hub id or a path the last part), or the same revision."""
    name = Path(model).name.lower()
    return any(
        Path(other).name.lower() == name or (its == revision and its not in _NAMELESS)
        for other, its in probed.items()
    )
