"""What one dump leaves behind, whether it is finished, whether a folder may take it, and what it says in a line.

stats/ru_P19_template_gt.tsv            narrow ranks (or the only ones)     stats_wide/…tsv     wide ranks
stats/ru_P19_template_gt.scores.parquet every candidate's score             stats_wide/…run.json
stats/ru_P19_template_gt.run.json       what made them; written last, so that it marks the dump as finished
stats/ru_P19_template_gt.packs/         only while the dump is made
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pandas as pd
from tabulate import tabulate

from fluent_mlama.console import UserError
from fluent_mlama.files import Source, open_source, parse_json, write_text
from fluent_mlama.ranking import corrected, paper
from fluent_mlama.ranking.corrected import Valid, corrected_ranks, valid_objects
from fluent_mlama.ranking.paper import paper_ranks
from fluent_mlama.ranking.settings import Settings
from fluent_mlama.ranking.task import Ties
from fluent_mlama.records.benchmark import (
    WITHOUT_NAME,
    Benchmark,
    find_benchmarks,
    name_columns,
    read_benchmark,
)
from fluent_mlama.records.results import (
    NOT_AS_WRITTEN,
    Dump,
    ProtocolName,
    RunRecord,
    aliases_of,
    dump_name,
    file_sha256,
    find_dumps,
    is_as_written,
    read_run,
    run_path,
    scores_path,
)
from fluent_mlama.runner.run import forget_packs, is_locked, locked
from fluent_mlama.scoring.contract import ScorerDescription
from fluent_mlama.scoring.identity import model_identity, shown_name

MANY = 0.5
"""Share of rows with equal prompts from which a run warns."""
_MADE = "made.json"
"""In a folder of packs: what kind of dump they become."""
State = Literal["missing", "finished", "changed", "replace"]


class Found(NamedTuple):
    """What there is of a file's outputs; why, in words, where they are to be replaced."""

    state: State
    reason: str = ""


@dataclass(frozen=True)
class AskedModel:
    """A model before it is loaded, with the names that its ``ScorerDescription`` will have; what ``auto`` becomes is not known yet.

    revision: None where the model cannot be looked at (the hub cannot be reached, its folder is gone): trouble says why.
    """

    model: str
    revision: str | None
    dtype: None = None
    trouble: str = ""


Model = AskedModel | ScorerDescription


def asked_model(settings: Settings) -> AskedModel:
    """The model that these settings ask for, with its identity as it lies there now."""
    name = shown_name(settings.model)
    try:
        return AskedModel(name, model_identity(settings.model, settings.revision))
    except UserError as error:  # where something is to be scored, loading stops at the same line
        return AskedModel(name, None, trouble=str(error))


@dataclass(frozen=True)
class Outputs:
    """Paths of everything that one (language, relation, verbalisations) leaves in the output folders."""

    dump: Path
    wide: Path | None

    @property
    def scores(self) -> Path:
        return scores_path(self.dump)

    @property
    def run(self) -> Path:
        return run_path(self.dump)

    @property
    def packs(self) -> Path:
        return self.dump.with_suffix(".packs")

    def dumps(self) -> tuple[Path, ...]:
        """The narrow dump and, where there is one, its wide twin."""
        return (self.dump,) if self.wide is None else (self.dump, self.wide)

    def files(self) -> tuple[Path, ...]:
        """All that a finished dump consists of."""
        return (*self.dumps(), *(run_path(path) for path in self.dumps()), self.scores)

    def check_free(self) -> None:
        """``UserError`` where a folder stands in place of a file, or a file in place of the packs' folder."""
        for path in self.files():
            if path.is_dir():
                raise UserError(f"cannot write {path}: it is a folder; move it away")
        if self.packs.is_file():
            raise UserError(
                f"{self.packs} is a file, where the folder of an unfinished run's packs should be; move it away"
            )


def outputs_of(
    settings: Settings, lang: str, relation: str, verbalisations: Iterable[str]
) -> Outputs:
    """Where these settings put this file's results."""
    name = dump_name(lang, relation, tuple(verbalisations))
    return Outputs(settings.out / name, settings.wide / name if settings.wide is not None else None)


def rules_of(settings: Settings) -> str:
    """The protocol's edition, and the options that change its rows or candidates."""
    options = ["drop-empty-objects"] if settings.drop_empty_objects else []
    options += ["accept-unsure"] if settings.accept_unsure else []
    options += ["all-forms"] if settings.all_forms else []
    return "+".join([str(EDITIONS[settings.protocol]), *options])


def find_outputs(
    outputs: Outputs,
    settings: Settings,
    benchmark: Benchmark,
    model: Model | None = None,
    sampling: str = "",
) -> Found:
    """Whether there is something to do.

    finished: these settings and this model made it, and every byte is as it was written. changed: the same, but a dump is not
    as it was written. replace: made otherwise, or a file of it is gone or damaged. missing: nothing is there.
    model: None = as the settings ask for it. sampling: how the distractors would be drawn now.
    """
    if not outputs.run.exists():
        return Found("missing")
    record = read_run(outputs.run)
    model = model or asked_model(settings)
    difference = _difference(settings, record, model)
    reason = f"it was made with another {difference}" if difference else ""
    if not reason and sampling and record.sampling != sampling:
        reason = f"other objects are right or the draw differs ({record.sampling}, not {sampling})"
    reason = reason or _other_rows(settings, benchmark, record, model) or _damage(outputs, record)
    if reason:
        return Found("replace", reason)
    return Found("changed" if changed_dumps(outputs) else "finished")


def _other_rows(settings: Settings, benchmark: Benchmark, record: RunRecord, model: Model) -> str:
    """In words, how the record's dump differs from this one, although both may lie in one folder."""
    was, asked = record.extras.get("asked", {}), settings.asked()
    if record.data_sha256 != benchmark.sha256:
        return f"it was made from another {record.data_name}"
    if record.limit is not None and (
        settings.limit is None or (settings.limit > record.limit and record.rows_beyond_limit)
    ):
        return f"it was made with --limit {record.limit}"
    if was.get("neutral_prompt") != asked["neutral_prompt"]:
        return f"it was made with another neutral prompt ({was.get('neutral_prompt')!r}, not {asked['neutral_prompt']!r})"
    if (
        model.dtype is None and was.get("dtype") != asked["dtype"]
    ):  # which may be the same one, once the model is loaded
        return f"it was made with --dtype {was.get('dtype')}"
    return ""


def _damage(outputs: Outputs, record: RunRecord) -> str:
    gone = [path for path in outputs.files() if not path.exists()]
    if gone:
        return f"{gone[0]} is gone"
    if record.scores_sha256 and file_sha256(outputs.scores) != record.scores_sha256:
        return f"{outputs.scores} {NOT_AS_WRITTEN}"
    return ""


def changed_dumps(outputs: Outputs) -> list[Path]:
    """Dumps whose bytes are not those that their run record describes."""
    recorded = [path for path in outputs.dumps() if path.exists() and run_path(path).exists()]
    return [path for path in recorded if not is_as_written(path, read_run(run_path(path)))]


class Folder:
    """The output folder of a run: others may work in it at the same time, if they make dumps of the same kind.

    source: of the data, None where it is not at hand. replaced: outputs that ``--overwrite`` makes again anyway.
    """

    def __init__(
        self, settings: Settings, source: Source | None = None, replaced: Iterable[Outputs] = ()
    ) -> None:
        self.settings, self.source, self.replaced = settings, source, tuple(replaced)
        self._joined = False
        self._valid: dict[str, Valid] = {}

    def valid_objects(self, benchmark: Benchmark) -> Valid:
        """sub_uri -> right obj_uris for the subjects of a file, by any file of the relation in the data source."""
        relation = benchmark.relation
        if self.source is None:
            return valid_objects([benchmark.table])
        if relation not in self._valid:
            tables = (
                read_benchmark(self.source, *entry[:3]).table
                for entry in find_benchmarks(self.source)
                if entry[1] == relation
            )
            self._valid[relation] = valid_objects(tables)
        subjects = benchmark.table["sub_uri"].unique()
        everywhere = self._valid[relation]
        own = valid_objects([benchmark.table])
        return {
            subject: own[subject] | everywhere.get(subject, own[subject]) for subject in subjects
        }

    def check(self, model: Model) -> None:
        """Refuse dumps of another kind that lie here (``check_folder``)."""
        check_folder(self.settings, self.source, self.replaced, model)

    def refuse_others(self, description: ScorerDescription, own: Outputs | None = None) -> None:
        """``UserError`` where a run that makes other dumps is at work in this folder. own: those that this run has locked."""
        making = self._making(description)
        for path in sorted(self.settings.out.glob(f"*.packs/{_MADE}")):
            outputs = Outputs(path.parent.with_suffix(".tsv"), None)
            if own is not None and outputs.dump == own.dump:
                continue
            if not is_locked(outputs.dump):  # a dead run left these packs
                continue
            try:
                others = dict(parse_json(path.read_bytes(), path.name))
            except (OSError, ValueError, TypeError):  # that run has just finished
                continue
            difference = _told_difference(
                {name: (others.get(name), mine) for name, mine in making.items()}
            )
            if difference:
                raise UserError(
                    f"another run is at work in {self.settings.out} with another {difference}; "
                    "choose another folder with --out"
                )

    @contextlib.contextmanager
    def at_work(self, outputs: Outputs, description: ScorerDescription) -> Iterator[None]:
        """Make these outputs, whose lock is held, where others can see what kind they are.

        ``UserError`` where a run of another kind is at work in the folder, or has left dumps (see ``check_folder``): it may
        have come and gone since the folder was last looked at. From here to the end nobody else can.
        """
        with locked(self.settings.out / "folder", wait=True):  # one run at a time looks and enters
            if not self._joined:
                self.refuse_others(description, outputs)
                self.check(description)
            making = json.dumps(self._making(description), ensure_ascii=False)
            write_text(outputs.packs / _MADE, making + "\n")
            self._joined = True
        try:
            yield
        except BaseException:
            if not any(outputs.packs.glob("pack-*")):
                with contextlib.suppress(OSError):
                    forget_packs(outputs.packs)
            raise

    def _making(self, description: ScorerDescription) -> dict[str, Any]:
        """What must be equal for all that work in one folder."""
        loaded = {name: getattr(description, name) for name in ("model", "revision", "dtype")}
        asked = self.settings.asked()
        return loaded | {name: asked[name] for name in _DECIDING if name not in loaded}


def check_folder(
    settings: Settings,
    source: Source | None,
    replaced: Iterable[Outputs],
    model: Model | None = None,
) -> None:
    """Refuse an output folder that holds dumps of another model, protocol or data: their ranks must not be mixed.

    source: of the data, None where it is not at hand. replaced: outputs that ``--overwrite`` makes again anyway; they do not
    count. model: None = as the settings ask for it.
    """
    if not settings.out.exists():
        return
    if not settings.out.is_dir():
        raise UserError(
            f"--out {settings.out} is a file, not a folder; name a folder, for example --out {settings.suggest_folder()}"
        )
    exempt = {outputs.dump.name for outputs in replaced}
    known = set() if source is None else set(source.names())
    model = model or asked_model(settings)
    for _, _, name in find_dumps(open_source(settings.out)):
        outputs = Outputs(settings.out / name, None)
        if name in exempt or outputs.packs.exists():
            continue
        if not outputs.run.exists():
            raise UserError(
                f"{settings.out} holds rank dumps that this program did not make ({name} has no run record), such as the published ones; "
                f"choose another folder, for example --out {settings.suggest_folder()}"
            )
        record = read_run(outputs.run)
        stranger = _difference(settings, record, model)
        if stranger:
            raise UserError(
                f"{settings.out} holds dumps of another {stranger} ({name}); "
                f"choose another folder, for example --out {settings.suggest_folder()}, or --overwrite what is there"
            )
        if (
            source is not None
            and record.data_name in known
            and _sha256(source, record.data_name) != record.data_sha256
        ):
            raise UserError(
                f"{settings.out} holds dumps of other data: {name} was made from another {record.data_name} than that in {source.path}; "
                f"choose another folder, for example --out {settings.suggest_folder(source.path.stem)}, or --overwrite what is there"
            )


def _sha256(source: Source, name: str) -> str:
    return hashlib.sha256(source.read(name)).hexdigest()


def _difference(settings: Settings, record: RunRecord, model: Model) -> str:
    """In words, what sets a record's dumps apart from what these settings and this model make; "" where they may lie together."""
    if "reranked" in record.extras:
        return "ranking rule (stats.py rerank made them)"
    was, asked = record.extras.get("asked", {}), settings.asked()
    made: dict[str, tuple[object, object]] = {
        name: (was.get(name), asked[name]) for name in _DECIDING
    }
    if model.revision is not None:
        made["model"] = (record.model, model.model)
        if record.revision == model.revision and model.revision.startswith("local-"):
            del made["model"]  # one content under two names is one model
        made["revision"] = (record.revision, model.revision)
    if model.dtype is not None:
        made["dtype"] = (record.dtype, model.dtype)
    made["edition of the protocol"] = (record.rules, rules_of(settings))
    return _told_difference(made)


def _told_difference(made: Mapping[str, tuple[object, object]]) -> str:
    """The first of these settings whose two values differ, in words."""
    told = (
        f"{_DECIDING.get(name, name)}: {old}, not {new}"
        for name, (old, new) in made.items()
        if old != new
    )
    return next(told, "")


_DECIDING = {
    "protocol": "protocol",
    "model": "model",
    "revision": "content or revision of the model",
    "quantise": "quantization",
    "arithmetic": "arithmetic",
    "drop_empty_objects": "row filter (--drop-empty-objects)",
    "all_forms": "set of forms (--forms)",
}


EDITIONS: Mapping[ProtocolName, int] = {"paper": paper.EDITION, "corrected": corrected.EDITION}
TIES: Mapping[ProtocolName, Ties] = {"paper": "gold", "corrected": "mid"}
"""How each protocol itself ranks equal scores."""
TIE_NAMES: Mapping[Ties, str] = {
    "gold": "correct-first",
    "mid": "mid-rank",
    "worst": "correct-last",
}
"""What the signature calls them."""


def dump_of_scores(
    facts: pd.DataFrame,
    scores: pd.DataFrame,
    lang: str,
    relation: str,
    verbalisations: Sequence[str],
    protocol: ProtocolName,
    *,
    wide: bool = False,
    logprob: str = "logprob",
    ties: Ties | None = None,
    top: Sequence[int] = (),
) -> Dump:
    """The dump of the rows that ``scores`` holds.

    facts: benchmark columns by row number (aliases as a cell or as a list). logprob: the column of ``scores`` to rank by.
    ties: None = the protocol's own rule. top: further k for ``v_top{k}_correct`` columns besides 1 and 3.
    """
    rule = TIES[protocol] if ties is None else ties
    if protocol == "corrected":
        ranks = corrected_ranks(scores, verbalisations, logprob=logprob, ties=rule, top=top)
    else:
        ranks = paper_ranks(scores, verbalisations, wide=wide, logprob=logprob, ties=rule, top=top)
    columns = facts.loc[ranks.index].astype("object")
    if "aliases" in columns:
        columns["aliases"] = pd.Series(
            [aliases_of(cell) for cell in columns["aliases"]], index=columns.index, dtype="object"
        )
    return Dump(
        lang, relation, tuple(verbalisations), protocol, pd.concat([columns, ranks], axis="columns")
    )


@dataclass(frozen=True)
class Summary:
    """One dump in numbers. scores: verbalisation -> (R@1, R@3, mean rank of the best correct form or of the entity).

    same_prompts (protocol `paper`): (verbalisation, verbalisation) -> rows in which both ask the very same question.
    """

    lang: str
    relation: str
    rows_in: int
    rows_scored: int
    rows_left_out: dict[str, int]
    rows_beyond_limit: int
    scores: dict[str, tuple[float, float, float]]
    signature: str
    outputs: Outputs
    few_distractors: int
    same_prompts: dict[tuple[str, str], int] = field(default_factory=dict)


def summarise(dump: Dump, record: RunRecord, outputs: Outputs) -> Summary:
    """The numbers of one finished dump."""
    table = dump.table
    scores = {}
    for v in dump.verbalisations:
        if dump.protocol == "paper":
            mean = sum(min(ranks.values()) for ranks in table[f"{v}_true_ranks"]) / len(table)
        else:
            mean = float(table[f"{v}_rank"].mean())
        scores[v] = (
            float(table[f"{v}_top1_correct"].mean()),
            float(table[f"{v}_top3_correct"].mean()),
            float(mean),
        )
    return Summary(
        dump.lang,
        dump.relation,
        record.rows_in,
        record.rows_scored,
        dict(record.rows_left_out),
        record.rows_beyond_limit,
        scores,
        record.signature,
        outputs,
        int(record.extras.get("rows_with_few_distractors", 0)),
        _same_prompts(dump) if dump.protocol == "paper" else {},
    )


def _same_prompts(dump: Dump) -> dict[tuple[str, str], int]:
    """In verb-final languages the object comes before what differs, and `paper` scores nothing behind it."""
    prompts = {v: dump.table[name_columns(v).prompt].str.strip() for v in dump.verbalisations}
    same = {}
    for first, second in combinations(prompts, 2):
        count = int((prompts[first] == prompts[second]).sum())
        if count >= MANY * len(dump.table):
            same[first, second] = count
    return same


def format_side_by_side(models: Mapping[str, Sequence[Summary]]) -> str:
    """R@1 and mean rank of several models (name -> its summaries), a row per language and verbalisation, a column a model.

    Each value is the mean over the relations that all the models have ranked for that language; row `all`: over languages.
    """
    tables = []
    for place, metric, digits in ((0, "R@1", 3), (2, "mean rank", 2)):
        cells: dict[tuple[str, str], dict[str, float]] = {}
        relations = {}
        for lang in dict.fromkeys(one.lang for summaries in models.values() for one in summaries):
            of_lang = {
                name: {one.relation: one.scores for one in summaries if one.lang == lang}
                for name, summaries in models.items()
            }
            shared = set.intersection(*map(set, of_lang.values()))
            relations[lang] = len(shared)
            for v in dict.fromkeys(
                v for scores in of_lang.values() for relation in shared for v in scores[relation]
            ):
                for name, scores in of_lang.items():
                    values = [
                        scores[relation][v][place]
                        for relation in sorted(shared)
                        if v in scores[relation]
                    ]
                    if values:
                        cells.setdefault((lang, v), {})[name] = sum(values) / len(values)
        if len(relations) > 1:
            for v in dict.fromkeys(v for _, v in cells):
                rows = [row for (_, other), row in cells.items() if other == v]
                cells["all", v] = {
                    name: sum(row[name] for row in rows) / len(rows)
                    for name in models
                    if all(name in row for row in rows)
                }
        lines = [
            [
                lang,
                relations.get(lang, ""),
                v,
                *(f"{row[name]:z.{digits}f}" if name in row else "" for name in models),
            ]
            for (lang, v), row in cells.items()
        ]
        right = ("left", "right", "left", *("right" for _ in models))
        head = ["lang", "relations", f"{metric} of", *models]
        tables.append(
            tabulate(lines, headers=head, colalign=right if lines else None, disable_numparse=True)
        )
    return "\n\n".join(tables)


def format_summaries(summaries: Sequence[Summary]) -> str:
    """A table with a line per (language, relation, verbalisation), then why rows were left out, signatures and files."""
    rows = []
    for one in summaries:
        for number, (v, (first, third, mean)) in enumerate(one.scores.items()):
            counts = (
                [
                    one.lang,
                    one.relation,
                    one.rows_in,
                    one.rows_scored,
                    sum(one.rows_left_out.values()),
                ]
                if number == 0
                else [""] * 5
            )
            rows.append([*counts, v, f"{first:z.3f}", f"{third:z.3f}", f"{mean:z.2f}"])
    head = [
        "lang",
        "relation",
        "rows in",
        "scored",
        "left out",
        "verbalisation",
        "R@1",
        "R@3",
        "mean rank",
    ]
    right = ("left", "left", "right", "right", "right", "left", "right", "right", "right")
    lines = [tabulate(rows, headers=head, colalign=right, disable_numparse=True), ""]
    lines += [
        f"left out, {one.lang} {one.relation}: {_reasons(one)}"
        for one in summaries
        if one.rows_left_out or one.rows_beyond_limit
    ]
    lines += [
        f"{one.lang} {one.relation}: {one.few_distractors} facts have fewer than 10 distractors, so their ranks say little"
        for one in summaries
        if one.few_distractors
    ]
    for one in summaries:
        for (a, b), count in one.same_prompts.items():
            lines.append(
                f"{one.lang} {one.relation}: {a} and {b} have the same prompt in {count} of {one.rows_scored} "
                "rows, so protocol paper asks the same question twice; take --protocol corrected, which scores the "
                "whole sentence"
            )
    lines += [
        f"{one.lang} {one.relation}: {_files(one)}\n         signature {one.signature}"
        for one in summaries
    ]
    return "\n".join(lines)


def _reasons(summary: Summary) -> str:
    parts = [f"{count} × {reason}" for reason, count in summary.rows_left_out.items()]
    if summary.rows_beyond_limit:
        parts.append(f"{summary.rows_beyond_limit} × beyond --limit")
    unsure = sum(
        count
        for reason, count in summary.rows_left_out.items()
        if reason.endswith(tuple(f": {flag}" for flag in WITHOUT_NAME))
    )
    hint = (
        f" ({unsure} found without evidence from the object's name: --accept-unsure ranks them too)"
        if unsure
        else ""
    )
    return ", ".join(parts) + hint


def _files(summary: Summary) -> str:
    outputs = summary.outputs
    wide = f"; aliases count as right in {outputs.wide}" if outputs.wide is not None else ""
    return f"{outputs.dump} with {outputs.scores.name} and {outputs.run.name}{wide}"
