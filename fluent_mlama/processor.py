"""``Processor``: one (language, relation) becomes one rank dump.

    source = open_source("fixed_data")
    processor = Processor(read_benchmark(source, "ru", "P19"), Settings(model="smollm2", out=Path("stats/smollm2")))
    summary = processor.rank(load_scorer("smollm2"))

Left behind: ``stats/smollm2/ru_P19_template_gt_chatgpt.tsv`` (ranks), its wide twin in ``stats_wide/smollm2``, the scores
of every candidate and the run record with the signature. A killed run keeps its finished packs; the same call goes on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fluent_mlama.console import UserError, note
from fluent_mlama.files import open_source, write_text
from fluent_mlama.ranking.corrected import corrected_task, sampling_of
from fluent_mlama.ranking.outputs import (
    TIE_NAMES,
    TIES,
    Folder,
    Found,
    Model,
    Outputs,
    State,
    Summary,
    changed_dumps,
    dump_of_scores,
    find_outputs,
    outputs_of,
    rules_of,
    summarise,
)
from fluent_mlama.ranking.paper import paper_task
from fluent_mlama.ranking.settings import Settings
from fluent_mlama.ranking.task import (
    Task,
    choose_verbalisations,
    count_reasons,
    count_straddling,
    score_table,
)
from fluent_mlama.records.benchmark import Benchmark
from fluent_mlama.records.results import (
    RunRecord,
    file_sha256,
    format_dump,
    read_dump,
    read_run,
    run_path,
    write_run,
    write_scores,
)
from fluent_mlama.runner.run import OnItems, Packs, run_job
from fluent_mlama.scoring.contract import Plan, RequestScore, Scorer, ScorerDescription


class Processor:
    """Ranks one benchmark file by one protocol. Making it reads no model and writes nothing.

    folder: of all files that one command ranks; None = this file alone.
    """

    unit = "facts"

    def __init__(
        self, benchmark: Benchmark, settings: Settings, folder: Folder | None = None
    ) -> None:
        self.benchmark = benchmark
        self.settings = settings
        self.verbalisations = choose_verbalisations(benchmark, settings.verbalisations)
        self.outputs: Outputs = outputs_of(
            settings, benchmark.lang, benchmark.relation, self.verbalisations
        )
        self.folder = folder or Folder(
            settings, replaced=[self.outputs] if settings.overwrite else []
        )
        self._seen = self._record_stamp()

    @property
    def label(self) -> str:
        """`ru P19`."""
        return f"{self.benchmark.lang} {self.benchmark.relation}"

    @property
    def target(self) -> Path:
        """The dump."""
        return self.outputs.dump

    @property
    def packs(self) -> Path:
        """Where finished packs lie until the dump is written."""
        return self.outputs.packs

    def task(self) -> Task:
        """Every question of the protocol about this file."""
        settings = self.settings
        if settings.protocol == "corrected":
            return corrected_task(
                self.benchmark,
                self.verbalisations,
                limit=settings.limit,
                all_forms=settings.all_forms,
                accept_unsure=settings.accept_unsure,
                neutral_prompt=settings.neutral_prompt,
                valid=self.folder.valid_objects(self.benchmark),
            )
        return paper_task(
            self.benchmark,
            self.verbalisations,
            limit=settings.limit,
            drop_empty_objects=settings.drop_empty_objects,
            accept_unsure=settings.accept_unsure,
            neutral_prompt=settings.neutral_prompt,
        )

    def state(self, model: Model | None = None) -> State:
        """Whether the dump is there already; a dump that would be replaced although a hand changed it is a ``UserError``.

        model: loaded or not; None = as the settings ask for it.
        """
        return self._find(model).state

    def _sampling(self) -> str:
        """How distractors would be drawn now; "" where the protocol's edition says it all."""
        if self.settings.protocol == "paper":
            return ""
        return sampling_of(self.folder.valid_objects(self.benchmark))

    def _find(self, model: Model | None) -> Found:
        if self.settings.overwrite:
            return Found("missing")
        found = find_outputs(self.outputs, self.settings, self.benchmark, model, self._sampling())
        changed = changed_dumps(self.outputs) if found.state == "replace" else []
        if changed:
            raise UserError(
                f"{changed[0]} would be made again ({found.reason}), but it was changed or damaged since it was written; "
                "move it away or give --overwrite"
            )
        return found

    def rank(self, scorer: Scorer, on_facts: OnItems | None = None) -> Summary:
        """Score what is not scored yet and write the dump. Nothing is written under a final name before all is scored.

        on_facts: told after each pack, facts finished so far and facts in all.
        """
        run_job(self, scorer, on_facts)
        return self.summary()

    def is_finished(self, scorer: Scorer) -> bool:
        """Whether the dump is finished, by another run perhaps since this one first looked.

        ``UserError`` where that run made it from other data: neither may replace the other unawares.
        """
        description = scorer.describe()
        if self._record_stamp() == self._seen:
            found = self._find(description)
        else:
            found = find_outputs(
                self.outputs, self.settings, self.benchmark, description, self._sampling()
            )
            if (
                found.state == "replace"
                and read_run(self.outputs.run).data_sha256 != self.benchmark.sha256
            ):
                raise UserError(
                    f"another run has just made {self.outputs.dump} from other data than this {self.benchmark.name}; "
                    f"choose another folder, for example --out {self.settings.suggest_folder(self.benchmark.spec)}"
                )
        if found.state == "replace":
            note(f"{self.label}: {self.outputs.dump} is made again: {found.reason}")
        return found.state == "finished"

    def _record_stamp(self) -> tuple[int, int, int] | None:
        try:
            found = self.outputs.run.stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size

    def make(self, scorer: Scorer, on_items: OnItems) -> None:
        """Score and write the dump; its lock is held."""
        with self.folder.at_work(self.outputs, scorer.describe()):
            self._make(scorer, on_items)
        self._seen = self._record_stamp()

    def _make(self, scorer: Scorer, on_items: OnItems) -> None:
        task = self.task()
        self._require_rows(task, task.left_out)
        self._tell_doubles()
        plan = scorer.plan(task.requests(), task.tokenisation)
        left_out = task.left_out_by(plan)
        self._require_rows(task, left_out)
        neutral = len(task.questions)
        if task.neutral_prompt is not None and neutral in plan.unscorable:
            raise UserError(
                f"--neutral-prompt {task.neutral_prompt!r}: {plan.unscorable[neutral]}; give a prompt with at least one token"
            )
        packs = Packs(self.packs, self.label, scorer, plan, self.settings.arithmetic)
        scores = _score(task, plan, packs, on_items)
        self._write(task, scores, left_out, scorer.describe(task.tokenisation))

    def _tell_doubles(self) -> None:
        facts = self.benchmark.table[["sub_uri", "obj_uri"]]
        doubles = facts.index[facts.duplicated()]
        if len(doubles):
            note(
                f"{self.benchmark.name}: {len(doubles)} rows state a fact once more (the first: row {doubles[0]}, "
                f"{' '.join(facts.loc[doubles[0]])}); all are ranked, but stats.py takes no fact twice: remove them and rank it again"
            )

    def _require_rows(self, task: Task, left_out: Mapping[int, str]) -> None:
        if set(task.rows) <= set(left_out):
            raise UserError(
                f"{self.benchmark.name}: no row can be ranked ({_tell(count_reasons(left_out))}); nothing is written"
            )

    def _write(
        self,
        task: Task,
        scores: Mapping[int, RequestScore],
        left_out: Mapping[int, str],
        description: ScorerDescription,
    ) -> None:
        table = score_table(task, scores, left_out)
        notes = dict(task.notes) | (
            {"straddling_candidates": count_straddling(scores)}
            if task.tokenisation == "joint"
            else {}
        )
        self.outputs.run.unlink(
            missing_ok=True
        )  # from here to the end the dump counts as unfinished
        write_scores(self.outputs.scores, table)
        for path in reversed(self.outputs.dumps()):
            wide = path == self.outputs.wide
            dump = dump_of_scores(
                self.benchmark.table,
                table,
                self.benchmark.lang,
                self.benchmark.relation,
                self.verbalisations,
                task.protocol,
                wide=wide,
            )
            write_text(path, format_dump(dump))
            write_run(
                run_path(path),
                self._record(
                    task,
                    left_out,
                    description,
                    path,
                    notes | {"ranks": "wide" if wide else "narrow"},
                ),
            )

    def _record(
        self,
        task: Task,
        left_out: Mapping[int, str],
        description: ScorerDescription,
        path: Path,
        notes: Mapping[str, Any],
    ) -> RunRecord:
        rows_scored = len(set(task.rows) - set(left_out))
        return RunRecord(
            lang=self.benchmark.lang,
            relation=self.benchmark.relation,
            verbalisations=self.verbalisations,
            model=description.model,
            revision=description.revision,
            dtype=description.dtype,
            device=description.device,
            arithmetic=self.settings.arithmetic,
            path=description.path,
            path_reason=description.path_reason,
            tokenisation="masked" if description.kind == "masked" else task.tokenisation,
            bos=description.bos,
            tokenizer=description.tokenizer,
            protocol=task.protocol,
            rules=rules_of(self.settings),
            pool_size=task.pool_limit,
            sampling=task.sampling,
            ties=TIE_NAMES[TIES[task.protocol]],
            limit=self.settings.limit,
            data_name=self.benchmark.name,
            data_sha256=self.benchmark.sha256,
            rows_in=len(self.benchmark.table),
            rows_scored=rows_scored,
            rows_left_out=count_reasons(left_out),
            rows_beyond_limit=task.beyond_limit,
            dump_sha256=file_sha256(path),
            scores_sha256=file_sha256(self.outputs.scores),
            self_check=dict(description.self_check),
            packages=dict(description.versions),
            extras={"asked": self.settings.asked(), **notes},
        )

    def summary(self) -> Summary:
        """What the finished dump says, read back from its files."""
        source = open_source(self.outputs.dump.parent)
        return summarise(
            read_dump(source, self.outputs.dump.name), read_run(self.outputs.run), self.outputs
        )


def _score(task: Task, plan: Plan, packs: Packs, on_facts: OnItems) -> dict[int, RequestScore]:
    """Every request's scores, those of an earlier run first; a fact is finished with the last of its verbalisations."""
    rows = [question.row for question in task.questions]
    waiting = Counter(rows)
    total = len(waiting)
    scores: dict[int, RequestScore] = {}

    def tick(numbers: Iterable[int]) -> None:
        for number in numbers:
            if number < len(rows):  # the neutral prompt belongs to no fact
                waiting[rows[number]] -= 1
        on_facts(sum(1 for left in waiting.values() if left == 0), total)

    for stored in packs.stored():
        scores |= stored
    tick((*scores, *plan.unscorable))
    for fresh in packs.fresh():
        scores |= fresh
        tick(fresh)
    return scores


def _tell(reasons: Mapping[str, int]) -> str:
    return (
        ", ".join(f"{count} × {reason}" for reason, count in reasons.items())
        or "the file has no rows"
    )
