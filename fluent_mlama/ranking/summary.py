"""What a person wants to read after a run: rows in, scored, left out, R@1, R@3 and mean rank of each verbalisation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tabulate import tabulate

from fluent_mlama.ranking.outputs import Outputs
from fluent_mlama.records.benchmark import WITHOUT_NAME
from fluent_mlama.records.dump import Dump
from fluent_mlama.records.run import RunRecord


@dataclass(frozen=True)
class Summary:
    """One dump in numbers. scores: verbalisation -> (R@1, R@3, mean rank of the best correct form or of the entity)."""

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
    )


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
