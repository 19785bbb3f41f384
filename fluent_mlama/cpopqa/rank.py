"""``rank``: the same questions by log-probability. Behind "A: 1." each option is scored, the likeliest counts as the first.

An option's score is the mean of its tokens' log-probabilities (natural logs), which favours long names, whose last tokens
follow from the first; or, with ``--sum``, their sum, which favours short ones. This is another method than writing an
answer: it always gives a whole order, and has its own label. With ``--unlisted`` the prompt names no option, so that the
order in which a question lists them cannot lead the model.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cyclopts import Parameter

from fluent_mlama.console import UserError, note
from fluent_mlama.cpopqa.answers import Store, digest
from fluent_mlama.cpopqa.items import Item, read_benchmark, read_items, read_targets
from fluent_mlama.options import ClusterOptions, Count, File, LoadOptions, Name
from fluent_mlama.ranking.settings import without_home
from fluent_mlama.runner.models import each_model, model_names, require_all
from fluent_mlama.runner.run import OnItems, Packs, record_of, run_jobs, tidy
from fluent_mlama.scoring.contract import Candidate, Request, RequestScore, Scorer
from fluent_mlama.scoring.executors import load_in
from fluent_mlama.scoring.identity import model_identity

METHOD = "log-probability"


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class AskOptions:
    """What ``ask`` and ``rank`` share."""

    data: File
    """folder that build wrote"""
    model: Name
    """hub name, folder, .gguf or smollm2; several, comma-separated: one after the other"""
    label: Name | None = None
    """name in the tables (default: the model and the method)"""
    per_round: Count | None = None
    """the first N questions of each round only"""

    def items(self) -> list[Item]:
        """The questions that are asked."""
        return chosen(read_items(self.data), self.per_round)

    def stores(self, method: str) -> dict[str, Store]:
        """model -> where its answers are kept."""
        models = model_names(self.model)
        if self.label is not None and len(models) > 1:
            raise UserError("--label names one model's answers; leave it out with several models")
        return {
            model: Store(self.data, self.label or default_label(model, method)) for model in models
        }


def rank(
    *,
    options: AskOptions,
    examples: bool = False,
    unlisted: bool = False,
    sum: bool = False,
    loading: LoadOptions = LoadOptions(),
    where: ClusterOptions = ClusterOptions(),
) -> None:
    """The same questions by log-probability: behind "A: 1." each option is scored, the likeliest counts as the first.

        fluent-mlama cpopqa rank --data popularity --model smollm2

    Args:
        examples: put the worked examples before the question, as ask does: slower
        unlisted: ask which is the most popular, without listing the options: fastest
        sum: the sum of the tokens' log-probabilities instead of their mean
    """
    if examples and unlisted:
        raise UserError("--examples and --unlisted exclude each other; give one of them")
    cluster = where.cluster()
    method = METHOD + (", with examples" if examples else ", unlisted" if unlisted else "")
    method += ", sum" if sum else ""
    items = options.items()
    form = prompts(options.data, items, examples, unlisted)

    def one(turn: tuple[str, Store]) -> None:
        model, store = turn
        settings = {
            "model": without_home(model),
            "asked_revision": loading.revision or "",
            "method": method,
            "identity": model_identity(model, loading.revision),
            "device": loading.device,
            "dtype": loading.dtype,
        }
        job = Ranking(items, form, store, settings, sum)
        if job.is_finished():
            tidy(job)
        else:
            from fluent_mlama.scoring.causal import load_scorer

            run_jobs([job], load_in(cluster, load_scorer, model, **loading.causal()))
        print(f"{len(items)} questions are ranked by {store.label}: {store.lines}")

    turns = list(options.stores(method).items())
    _, failed = each_model(
        turns, one, model=lambda turn: turn[0], place=lambda turn: turn[1].lines.parent
    )
    require_all(failed, len(turns))


@dataclass(frozen=True)
class Ranking:
    """All questions for one model and method, as a job of the runner. total: sums instead of means."""

    items: Sequence[Item]
    prompts: Sequence[str]
    store: Store
    settings: Mapping[str, str]
    total: bool = False

    @property
    def label(self) -> str:
        """As in the tables."""
        return self.store.label

    @property
    def unit(self) -> str:
        """What is counted."""
        return "questions"

    @property
    def target(self) -> Path:
        """The file of answers."""
        return self.store.lines

    @property
    def packs(self) -> Path:
        """Finished packs of questions that are not among the answers yet."""
        return self.store.lines.with_suffix(".packs")

    def is_finished(self, scorer: Scorer | None = None) -> bool:
        """Whether every question has its answer."""
        return {item.id for item in self.items} <= set(self.store.begin(self.settings))

    def make(self, scorer: Scorer, on_items: OnItems) -> None:
        """Score the questions that have no answer yet, and add theirs."""
        done = self.store.begin(self.settings)
        left = [
            (item, prompt)
            for item, prompt in zip(self.items, self.prompts, strict=True)
            if item.id not in done
        ]
        started = time.perf_counter()
        on_items(0, len(left))
        self.store.extend(self._answers(scorer, left, on_items))
        made = scorer.describe("joint")
        names = ("revision", "dtype", "device", "path", "bos", "versions")
        signature = record_of(
            made,
            f"cpopqa, {self.settings['method']}",
            rows=len(self.items),
            data=digest(self.store.folder),
            pool=max(len(item.options) for item in self.items),
            ties="listed-first",
        ).signature
        last_run = [len(left), round(time.perf_counter() - started, 1)]
        self.store.note(
            {name: getattr(made, name) for name in names}
            | {"signature": signature, "last_run": last_run}
        )

    def _answers(
        self, scorer: Scorer, left: Sequence[tuple[Item, str]], on_items: OnItems
    ) -> list[dict[str, object]]:
        """The answers of these questions with their prompts, in their order."""
        plan = scorer.plan([request_of(item, prompt) for item, prompt in left], "joint")
        if plan.unscorable:
            number, reason = next(iter(plan.unscorable.items()))
            note(
                f"{len(plan.unscorable)} questions cannot be scored and stay unanswered, e.g. {left[number][0].id}: {reason}"
            )
        packs = Packs(self.packs, self.label, scorer, plan)
        scores: dict[int, RequestScore] = {}
        for pack in itertools.chain(packs.stored(), packs.fresh()):
            scores |= pack
            on_items(len(scores), len(left))
        return [
            {"id": left[number][0].id, "scores": values(left[number][0], score, self.total)}
            for number, score in sorted(scores.items())
        ]


def prompts(
    folder: Path, items: Sequence[Item], examples: bool = False, unlisted: bool = False
) -> list[str]:
    """The prompt of each question up to its answer: the question alone, behind its examples, or without its options."""
    if examples:
        return [f"{item.prompt} 1." for item in items]
    if not unlisted:
        return [f"Q: {item.question}\nA: 1." for item in items]
    phrases = {one.group: one.phrase for one in read_benchmark(folder)[1]}
    targets = read_targets(folder)
    return [
        f"Q: Which of the {phrases[item.group]} is the most popular in {targets[item.target]}?\nA:"
        for item in items
    ]


def request_of(item: Item, prompt: str) -> Request:
    """Each option behind the prompt."""
    return Request(prompt, tuple(Candidate(f" {name}") for name in item.options))


def values(item: Item, score: RequestScore, total: bool = False) -> dict[str, float]:
    """Log-probability of each option: mean a token, or ``total``."""
    pairs = zip(item.options, score.candidates, strict=True)
    return {
        name: candidate.logprob / (1 if total else len(candidate.token_logprobs))
        for name, candidate in pairs
    }


def chosen(items: Sequence[Item], per_round: int | None) -> list[Item]:
    """The first questions of each target, n and round."""
    if per_round is None:
        return list(items)
    counts: dict[tuple[str, int, int], int] = {}
    found = []
    for item in items:
        place = (item.target, item.n, item.round)
        counts[place] = counts.get(place, 0) + 1
        if counts[place] <= per_round:
            found.append(item)
    return found


def default_label(model: str, method: str) -> str:
    """The model's name without its folder, and how it was asked."""
    return f"{Path(model).name if Path(model).exists() else model} ({method})"
