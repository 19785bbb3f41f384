"""``query``: ask a model for every fact and keep its answers; finished relations are not asked
again.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from cyclopts import Parameter

from fluent_mlama.console import UserError, note
from fluent_mlama.files import check_writable, open_source
from fluent_mlama.mlama.asking import CausalAsker, ChunkStore, MaskedAsker, with_gold
from fluent_mlama.mlama.items import CandidateLists, QuestionSet, make_questions
from fluent_mlama.mlama.results import (
    USUAL_TEMPLATES,
    Place,
    file_name,
    outcomes_of,
    read_results,
    state_of,
    write_result,
)
from fluent_mlama.options import (
    ClusterOptions,
    Count,
    File,
    Files,
    Langs,
    LoadOptions,
    Name,
    Relations,
)
from fluent_mlama.outcomes import write_outcomes
from fluent_mlama.ranking.settings import without_home
from fluent_mlama.reader import TEMPLATES, MLama
from fluent_mlama.records.facts import read_templates
from fluent_mlama.runner.models import each_model, model_names, require_all
from fluent_mlama.runner.run import OnItems, run_jobs, tidy
from fluent_mlama.scoring.executors import Cluster, load_in
from fluent_mlama.scoring.identity import model_identity

DEFAULT_OUT = Path("mlama_results")
MASKS = ("[MASK]", "<mask>")
"""The mask tokens of BERT's and RoBERTa's kin; known before a model is loaded, and alike for all
models.
"""


@dataclass(frozen=True)
class Options:
    """What to ask and how, as on the command line."""

    model: str
    method: str
    out: Path
    candidates: tuple[Path, ...] = ()
    templates: Path | None = None
    name: str = USUAL_TEMPLATES
    top: int = 5
    max_masks: int | None = None
    compat: bool = False
    limit: int | None = None
    loading: LoadOptions = LoadOptions()
    cluster: Cluster | None = None

    @property
    def place(self) -> Place:
        """Where the results go: displaced masks are results of their own."""
        return Place(
            self.out, self.model, self.method + ("-compat" if self.compat else ""), self.name
        )


@Parameter(name="*", group="what to ask")
@dataclass(frozen=True, kw_only=True)
class AskingOptions:
    """What ``query`` and ``report`` ask, and how."""

    model: Name
    """Hugging Face id, folder, .gguf file or smollm2; query: several, comma-separated, one after
    the other
    """
    data: File
    """folder or zip in the mLAMA 1.1 layout; starter names what ships"""
    langs: Langs | None = None
    """languages, comma-separated (default: all that are there)"""
    relations: Relations | None = None
    """relations, comma-separated (default: all of each language)"""
    out: File = DEFAULT_OUT
    """folder of the results"""
    candidates: Files = ()
    """published object lists, folder or zip; may be repeated"""
    templates: File | None = None
    """another template set: a folder or zip with <lang>/templates.jsonl"""
    name: Name | None = None
    """what this template set is called in the results (default: mlama, or the --templates folder's
    name)
    """
    top: Count = 5
    """best answers kept per fact"""
    max_masks: Count | None = None
    """candidates of more pieces do not compete; their number is printed (tyq, untyq)"""
    compat: bool = False
    """put the masks where the published evaluator did (WordPiece models)"""
    limit: Count | None = None
    """the first N facts per relation only"""

    def of(
        self, model: str, method: str, loading: LoadOptions, cluster: Cluster | None = None
    ) -> Options:
        """What one model is asked, checked before anything is loaded."""
        if self.compat and method not in {"tyq", "untyq"}:
            raise UserError(f"--compat is about masks, and method {method} has none; leave it out")
        usual = self.templates.stem if self.templates else USUAL_TEMPLATES
        return Options(
            model=model,
            method=method,
            out=self.out,
            candidates=self.candidates,
            templates=self.templates,
            name=self.name or usual,
            top=self.top,
            max_masks=self.max_masks,
            compat=self.compat,
            limit=self.limit,
            loading=loading,
            cluster=cluster,
        )


def query_models(
    *,
    asking: AskingOptions,
    method: Literal["tyq", "untyq", "causal", "causal-sentence"],
    loading: LoadOptions = LoadOptions(),
    where: ClusterOptions = ClusterOptions(),
) -> None:
    """Ask a model for every fact and keep its answers; finished relations are not asked again.

        fluent-mlama mlama query --model xlm-roberta-base --method tyq --data mlama1.1.zip -l en,de

    Args:
        method: tyq and untyq: masked models; causal, causal-sentence: causal ones
    """
    cluster = where.cluster()
    turns = [asking.of(model, method, loading, cluster) for model in model_names(asking.model)]
    data = MLama(asking.data)

    def ask(options: Options) -> None:
        written = query(data, options, asking.langs, asking.relations)
        write_outcomes(options.place.folder, outcomes_of(read_results(options.place)))
        print(f"{len(written)} relations answered; results are in {options.place.folder}")

    _, failed = each_model(
        turns, ask, model=lambda turn: turn.model, place=lambda turn: turn.place.folder
    )
    require_all(failed, len(turns))


def query(
    data: MLama,
    options: Options,
    languages: Sequence[str] | None = None,
    relations: Sequence[str] | None = None,
    scorer: Any = None,
) -> list[Path]:
    """Ask for everything that has not been answered yet; returns the files that hold the answers,
    old and new.

    scorer: one that is loaded already. Templates, candidates and labels are checked for all
    relations before a model is loaded.
    """
    tasks = _tasks(data, options, languages, relations)
    check_writable(options.out, "--out")
    identity = _identity(options, scorer)
    jobs = [
        Relation(
            options, questions, candidates, _settings(options, questions, candidates, identity)
        )
        for questions, candidates in tasks
    ]
    waiting = [job for job in jobs if not job.is_answered()]
    if waiting:
        run_jobs(waiting, load(options) if scorer is None else scorer)
    return [job.target for job in jobs]


def load(options: Options) -> Any:
    """The model as a scorer of the kind that the method needs."""
    if options.method in {"tyq", "untyq"}:
        from fluent_mlama.scoring.masked import load_masked_scorer

        return load_in(
            options.cluster, load_masked_scorer, options.model, **options.loading.masked()
        )
    from fluent_mlama.scoring.causal import load_scorer

    return load_in(options.cluster, load_scorer, options.model, **options.loading.causal())


def _identity(options: Options, scorer: Any) -> str:
    """Which model answers: another one is asked again, whatever its name."""
    if scorer is None:
        try:
            return model_identity(options.model, options.loading.revision)
        except UserError:  # loading it, where something is to be asked, stops at the same line
            return ""
    revision: str = (
        scorer.loaded.revision
        if options.method in {"tyq", "untyq"}
        else scorer.describe("joint").revision
    )
    return revision


def _tasks(
    data: MLama, options: Options, languages: Sequence[str] | None, relations: Sequence[str] | None
) -> list[tuple[QuestionSet, tuple[str, ...]]]:
    lists = CandidateLists(options.candidates)
    sets = read_template_sets(options.templates)
    tasks = []
    for lang, names in data.select(languages, relations).items():
        if sets is not None and lang not in sets:
            raise UserError(
                f"{options.templates} has no templates for {lang}; add {lang}/{TEMPLATES} or "
                "choose other languages"
            )
        for relation in names:
            questions = make_questions(
                data, lang, relation, None if sets is None else sets[lang], MASKS
            )
            if questions.left_out:
                note(
                    f"{lang} {relation}: {sum(questions.left_out.values())} left out, subject "
                    f"holds {' or '.join(MASKS)}"
                )
            candidates = lists.of(lang, relation, data.triples(lang, relation).values())
            if not questions.questions or not candidates:
                note(
                    f"{lang} {relation}: no {'candidates' if questions.questions else 'facts'}, "
                    "left out"
                )
            elif options.method == "causal" and not questions.ends_with_object:
                note(
                    f"{lang} {relation}: the template goes on behind the object, left out "
                    f"({questions.template}); causal-sentence asks it"
                )
            else:
                tasks.append((questions, candidates))
    if not tasks:
        raise UserError(
            "there is nothing to ask: every relation chosen was left out (see the remarks above)"
        )
    return tasks


def read_template_sets(path: Path | None) -> dict[str, Mapping[str, str]] | None:
    """lang -> relation -> template of another set; None where none was named."""
    if path is None:
        return None
    source = open_source(path, enter_top_folder=False)
    folders = [source.folder(name) for name in source.folders()]
    sets: dict[str, Mapping[str, str]] = {
        name: read_templates(folder.read(TEMPLATES), folder.where(TEMPLATES))
        for name, folder in zip(source.folders(), folders, strict=True)
        if TEMPLATES in folder.names()
    }
    if not sets:
        raise UserError(f"{path} holds no <lang>/{TEMPLATES}")
    return sets


def _settings(
    options: Options, questions: QuestionSet, candidates: tuple[str, ...], identity: str
) -> dict[str, Any]:
    facts = [
        (one.triple.lineid, one.left, one.right, one.triple.obj_label)
        for one in questions.questions
    ]
    how = {"tokenisation": _tokenisation(options)} if options.method in {"tyq", "untyq"} else {}
    return {
        "model": without_home(options.model),
        "revision": options.loading.revision,
        "identity": identity,
        "method": options.method,
        **how,
        "compat": options.compat,
        "template": questions.template,
        "facts_sha256": _digest(facts),
        "candidates": len(candidates),
        "candidates_sha256": _digest(candidates),
        "max_masks": options.max_masks,
        "top": options.top,
        "limit": options.limit,
        "device": options.loading.device,
        "dtype": options.loading.dtype,
    }


def _tokenisation(options: Options) -> str:
    """A candidate is tokenised in its sentence, or apart, as the published evaluator of masked
    models did.
    """
    return "separate" if options.compat else "joint"


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, ensure_ascii=False).encode()).hexdigest()


@dataclass(frozen=True)
class Relation:
    """One relation's facts to be asked, as a job of the runner."""

    options: Options
    questions: QuestionSet
    candidates: tuple[str, ...]
    settings: Mapping[str, Any]

    @property
    def label(self) -> str:
        """`ru P19`."""
        return f"{self.questions.lang} {self.questions.relation}"

    @property
    def unit(self) -> str:
        """What is counted."""
        return "facts"

    @property
    def target(self) -> Path:
        """The table of answers."""
        return self.options.place.file(self.questions.lang, self.questions.relation)

    @property
    def packs(self) -> Path:
        """Finished packs of an unfinished table."""
        return self.target.with_suffix(".packs")

    def is_answered(self) -> bool:
        """Whether nothing is to be done; prints a reason to ask again."""
        finished, reason = state_of(self.target, self.settings)
        if finished:
            tidy(self)
        elif reason:
            note(f"{self.label} is asked again: {self.target} {reason}")
        return finished

    def is_finished(self, scorer: Any) -> bool:
        """The same, without a word, under the lock: another run may have answered."""
        return state_of(self.target, self.settings)[0]

    def make(self, scorer: Any, on_items: OnItems) -> None:
        """Ask, and write the table and its record."""
        options, questions = self.options, self.questions
        asked = questions.questions[: options.limit]
        competing, added = with_gold(self.candidates, asked)
        asker = self._asker(scorer, competing)
        started = datetime.now(UTC)
        done = 0

        def advance(count: int) -> None:
            nonlocal done
            done += count
            on_items(done, len(asked))

        advance(0)
        rows = asker.ask(asked, advance)
        dropped = dict(Counter(status for status in asker.status.values() if status != "ok"))
        if dropped:
            counts = ", ".join(f"{count} {status}" for status, count in dropped.items())
            note(f"{self.label}: of {len(competing)} candidates do not compete: {counts}")
        for row in rows:
            if row["gold"] in added and row["gold_status"] == "ok":
                row["gold_status"] = "added"
        settings = self.settings
        write_result(self.target, pd.DataFrame(rows), {
            **_made_by(scorer, options), "lang": questions.lang, "relation": questions.relation,
            "verbalisations": ("template",), "protocol": f"mlama-{options.place.method}",
            "pool_size": len(competing) - sum(dropped.values()),
            "sampling": f"listed:{settings['candidates_sha256'][:8]}", "ties": "label",
            "limit": options.limit, "data_name": f"{questions.lang}/{questions.relation}.jsonl",
            "data_sha256": settings["facts_sha256"],
            "rows_in": len(questions.questions) + sum(questions.left_out.values()),
            "rows_scored": len(asked), "rows_left_out": dict(questions.left_out),
            "rows_beyond_limit": len(questions.questions) - len(asked),
            "times": {
                "started": started.isoformat(timespec="seconds"),
                "seconds": (datetime.now(UTC) - started).total_seconds(),
            },
            "extras": {
                "settings": settings, "longest": asker.longest,
                "candidates_not_competing": dropped, "gold_added": sorted(added),
            },
        })  # fmt: skip

    def _asker(self, scorer: Any, competing: Sequence[str]) -> MaskedAsker | CausalAsker:
        options = self.options
        if options.method in {"tyq", "untyq"}:
            return MaskedAsker(
                scorer,
                competing,
                untyped=options.method == "untyq",
                max_masks=options.max_masks,
                top=options.top,
                compat=options.compat,
                kept=ChunkStore(self.packs, self._mark(scorer, competing)),
            )
        return CausalAsker(
            scorer,
            competing,
            whole=options.method == "causal-sentence",
            top=options.top,
            packs=self.packs,
        )

    def _mark(self, scorer: Any, competing: Sequence[str]) -> str:
        """What chunks of answers must have in common to be put together."""
        made = scorer.describe(_tokenisation(self.options))
        how = [made.model, made.revision, made.dtype, made.device, made.path, made.bos]
        return _digest([how, dict(self.settings), list(competing)])


def _made_by(scorer: Any, options: Options) -> dict[str, Any]:
    shown = file_name(options.model) if Path(options.model).expanduser().exists() else options.model
    tokenisation = _tokenisation(options)
    made = scorer.describe(tokenisation)
    return {
        "model": shown,
        "revision": made.revision,
        "dtype": made.dtype,
        "device": made.device,
        "arithmetic": "float32",
        "path": made.path,
        "path_reason": made.path_reason,
        "tokenisation": tokenisation,
        "bos": made.bos,
        "self_check": made.self_check,
        "packages": made.versions,
        "tokenizer": made.tokenizer,
    }
