"""The audit's checks: what each looks for, what it means, what to do, and the function that finds
it.

A new check of a dump is one function with ``@check``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, TypeVar

import numpy as np
import pandas as pd

from fluent_mlama.files import Source
from fluent_mlama.ranking.corrected import FEW_DISTRACTORS, corrected_task
from fluent_mlama.ranking.paper import MAX_DISTRACTORS, sampling_order, select_rows
from fluent_mlama.ranking.task import narrow_from_wide
from fluent_mlama.records.benchmark import ERROR, Benchmark, find_benchmarks, read_benchmark
from fluent_mlama.records.few_shot import few_shot_name, find_leakage, read_few_shot
from fluent_mlama.reporting.loading import RankTable
from fluent_mlama.reporting.measures import (
    correct_and_excluded,
    distractor_counts,
    has_words,
    pool,
    tails,
)

Outcome = Literal["found", "clean", "untestable"]
Weight = Literal["wrong", "biased", "note"]
Finder = Callable[..., Iterator["Finding"]]
F = TypeVar("F", bound=Finder)


@dataclass(frozen=True)
class Check:
    """One question to the dumps. weight: ``wrong`` numbers, ``biased`` numbers, or a ``note`` on
    how to read them."""

    name: str
    weight: Weight
    title: str
    meaning: str
    advice: str


@dataclass(frozen=True)
class Finding:
    """What one check says of one dump. ``count`` of ``of`` cases show it; ``rows``: row numbers of
    the first few."""

    check: str
    dump: str
    lang: str
    relation: str
    outcome: Outcome
    count: int = 0
    of: int = 0
    detail: str = ""
    rows: tuple[int, ...] = ()

    @property
    def is_wide(self) -> bool:
        """Whether this speaks of a wide dump."""
        return self.dump.startswith(WIDE)

    @property
    def share(self) -> float:
        """count / of (0 where nothing was looked at)."""
        return self.count / self.of if self.of else 0.0


WIDE = "wide/"
"""What stands before a wide dump's name, which is the same as its narrow twin's."""
ROWS_NAMED = 5
"""How many row numbers a finding names."""


def some_rows(rows: Iterable[object]) -> tuple[int, ...]:
    """The first few row numbers."""
    return tuple(int(str(row)) for row in list(rows)[:ROWS_NAMED])


CHECKS: dict[str, Check] = {}
OF_ONE_DUMP: list[Finder] = []
"""The functions that need nothing but the dump."""


def check(
    name: str, weight: Weight, title: str, meaning: str, advice: str, *, alone: bool = True
) -> Callable[[F], F]:
    """Register a check. The function below yields its findings; it may serve several checks.

    alone: the function takes one dump and nothing else, so the audit runs it on every dump.
    """
    CHECKS[name] = Check(name, weight, title, meaning, advice)

    def register(find: F) -> F:
        if alone and find not in OF_ONE_DUMP:
            OF_ONE_DUMP.append(find)
        return find

    return register


OTHER_DISTRACTORS_FROM = 0.1
"""Mean absolute change of the best rank above which two runs cannot have had the same distractors
(rounding makes 0.01 to 0.03)."""


def finding(
    check: str,
    table: RankTable,
    rows: object = (),
    of: int = 0,
    detail: str = "",
    count: int | None = None,
    outcome: Outcome | None = None,
) -> Finding:
    """A finding on this dump: ``found`` where rows (or a count) show it, else ``clean``."""
    named = list(rows)  # type: ignore[call-overload]
    counted = len(named) if count is None else count
    return Finding(
        check,
        table.name,
        table.lang,
        table.relation,
        outcome or ("found" if counted else "clean"),
        counted,
        of,
        detail,
        some_rows(named),
    )


@check(
    "unequal-ranks",
    "wrong",
    "Equal prompts, unequal ranks",
    "Two verbalisations of a fact have the very same prompt and forms, so the same model must "
    "rank the same; it did not: the distractors were drawn anew without a seed.",
    "Do not quote these files to more than two decimals; score them again with seeded distractors.",
)
def unequal_ranks(table: RankTable) -> Iterator[Finding]:
    """Facts whose prompt is the same in two verbalisations must have the same ranks in both
    (fluent_mlama 3.6).

    In the corrected protocol the rest of the sentence must be the same as well, since it is scored.
    """
    pairs, unequal = 0, []
    for first, second in combinations(table.verbalisations, 2):
        same = [
            a == b
            for a, b in zip(
                _scored_around(table, first), _scored_around(table, second), strict=True
            )
        ]
        if table.form_ranks:
            ranks = [
                a != b
                for a, b in zip(table.form_ranks[first], table.form_ranks[second], strict=True)
            ]
        else:
            ranks = [a != b for a, b in zip(table.rank[first], table.rank[second], strict=True)]
        pairs += sum(same)
        unequal += [
            row
            for row, is_same, differs in zip(table.facts.index, same, ranks, strict=True)
            if is_same and differs
        ]
    if not pairs:
        yield finding(
            "unequal-ranks",
            table,
            outcome="untestable",
            detail="no two verbalisations have an equal prompt",
        )
    else:
        yield finding("unequal-ranks", table, unequal, pairs)


def _scored_around(table: RankTable, verbalisation: str) -> list[object]:
    """What the model saw besides the candidates: the prompt (paper); the trimmed prompt, the
    separator and the tail (corrected)."""
    prompts = table.prompts(verbalisation)
    if table.protocol == "paper":
        return list(prompts)
    return [
        (prompt.strip(), prompt[-1:].isspace(), tail)
        for prompt, tail in zip(prompts, tails(table, verbalisation), strict=True)
    ]


@check(
    "wide-differs",
    "wrong",
    "Narrow ranks do not follow from the wide ones",
    "Narrow ranks can be computed from wide ranks. The detail says how they differ: tie-order "
    "(only tied correct forms swapped), other-hardware (log-probabilities differ by rounding), "
    "other-distractors (the two runs ranked against different distractors).",
    "Tie-order is harmless for R@k; other-hardware costs about 0.1 %; with other-distractors "
    "compare the wide dumps only.",
    alone=False,
)
def against_wide(table: RankTable, wide: RankTable) -> Iterator[Finding]:
    """Compare the narrow ranks with those derived from the wide dump; says how they differ, and how
    often tied forms swapped."""
    if table.protocol != "paper":
        return
    keys, wide_keys = table.fact_keys(), wide.fact_keys()
    place = pd.Series(np.arange(len(wide)), index=wide_keys.to_numpy())
    shared = [(mine, place[key]) for mine, key in enumerate(keys) if key in place.index]
    compared, changed, swapped, best_changes, rounded, finite = 0, [], [], [], 0, 0
    for v in (name for name in table.verbalisations if name in wide.verbalisations):
        ours, theirs = table.prompt_prob[v].to_numpy(), wide.prompt_prob[v].to_numpy()
        for mine, other in shared:
            narrow = table.form_ranks[v][mine]
            if not narrow.keys() <= wide.form_ranks[v][other].keys():
                continue  # other forms: a row of its own kind, reported by ranked_forms
            derived = narrow_from_wide(wide.form_ranks[v][other], list(narrow))
            compared += 1
            rounded += bool(ours[mine] != theirs[other])
            finite += bool(np.isfinite(ours[mine]))
            best_changes.append(abs(min(narrow.values()) - min(derived.values())))
            if derived != narrow:
                changed.append(table.facts.index[mine])
                if set(derived.values()) == set(narrow.values()):
                    swapped.append(table.facts.index[mine])
    kind = _kind_of_difference(changed, best_changes, rounded)
    detail = (
        kind
        if kind in ("", "tie-order")
        else f"{kind}: mean change of the best rank {np.mean(best_changes):z.3f}"
    )
    yield finding("wide-differs", table, sorted(set(changed)), compared, detail, count=len(changed))
    if kind == "tie-order":
        yield finding(
            "ties",
            table,
            sorted(set(swapped)),
            compared,
            "correct forms swapped against the wide dump",
            count=len(swapped),
        )


def _kind_of_difference(changed: list[object], best_changes: list[int], rounded: int) -> str:
    if not changed:
        return ""
    if np.mean(best_changes) > OTHER_DISTRACTORS_FROM:
        return "other-distractors"
    if rounded:
        return "other-hardware"
    return "tie-order" if not any(best_changes) else "other-distractors"


@check(
    "shifted-rows",
    "wrong",
    "Rank cells of a neighbouring row",
    "The ranked forms are not this row's forms but those of the row above or below: columns "
    "slipped against each other.",
    "Score the file again, or leave the rows out; statistics by form drop them silently.",
)
@check(
    "foreign-forms",
    "wrong",
    "Ranked forms that are not the row's",
    "The ranked forms differ from the row's object cells, and no neighbouring row explains them.",
    "Score the file again.",
)
def ranked_forms(table: RankTable, wide: bool = False) -> Iterator[Finding]:
    """The ranked forms must be the row's object cells, and its aliases in a wide dump."""
    if table.protocol != "paper":
        return
    objects = [
        {form for form in forms if form}
        for forms in zip(*(table.objects(v) for v in table.verbalisations), strict=True)
    ]
    expected = [forms - {""} for forms in correct_and_excluded(table)] if wide else objects
    shifted: dict[object, str] = {}
    foreign: dict[object, str] = {}
    for v in table.verbalisations:
        for position, row in enumerate(table.facts.index):
            forms = set(table.form_ranks[v][position])
            if forms == expected[position]:
                continue
            neighbours = [
                step
                for step in (-1, 1)
                if 0 <= position + step < len(table) and forms == expected[position + step]
            ]
            if neighbours:
                shifted[row] = (
                    f"{v} cells hold those of the row {'above' if neighbours[0] < 0 else 'below'}"
                )
            else:
                foreign[row] = v
    run = _grown_to_runs(table, shifted, foreign)
    for row in run:
        foreign.pop(row, None)
    yield finding("shifted-rows", table, run, len(table), "; ".join(sorted(set(shifted.values()))))
    yield finding(
        "foreign-forms", table, foreign, len(table), ", ".join(sorted(set(foreign.values())))
    )


def _grown_to_runs(
    table: RankTable, shifted: dict[object, str], foreign: dict[object, str]
) -> list[object]:
    """Foreign rows next to shifted ones belong to the same slip: the row whose cells came first has
    lost its own neighbour."""
    index = list(table.facts.index)
    run = set(shifted)
    for order in (range(len(index)), range(len(index) - 1, -1, -1)):
        for position in order:
            beside = {index[p] for p in (position - 1, position + 1) if 0 <= p < len(index)}
            if index[position] in foreign and beside & run:
                run.add(index[position])
    return [row for row in index if row in run]


@check(
    "flags-differ",
    "wrong",
    "Flags contradict ranks",
    "A top-1 or top-3 flag does not follow from the ranks.",
    "Score the file again.",
)
def flags(table: RankTable) -> Iterator[Finding]:
    """top-1 and top-3 flags must follow from the ranks."""
    wrong = ((table.rank <= 1).astype(int) != table.top1) | (
        (table.rank <= 3).astype(int) != table.top3
    )
    rows = table.facts.index[wrong.any(axis=1).to_numpy()]
    yield finding("flags-differ", table, rows, len(table))


@check(
    "impossible-ranks",
    "wrong",
    "Ranks beyond the candidates",
    "A rank is larger than the number of correct forms and distractors that the rows allow.",
    "Rows were removed after scoring, or the pool came from elsewhere: find out before comparing.",
)
def impossible_ranks(table: RankTable, wide: bool = False) -> Iterator[Finding]:
    """No rank can exceed correct forms + min(50, pool - excluded); with the corrected protocol 1 +
    distractors."""
    if table.n_distractors is not None:
        beyond = (table.rank.gt(table.n_distractors + 1, axis=0)).any(axis=1).tolist()
        yield finding(
            "impossible-ranks",
            table,
            [row for row, is_beyond in zip(table.facts.index, beyond, strict=True) if is_beyond],
            len(table),
        )
        return
    size = len(pool(table))
    excluded = correct_and_excluded(table)
    over = []
    for position, row in enumerate(table.facts.index):
        room = min(MAX_DISTRACTORS, size - len(excluded[position] - {""}))
        if any(
            max(ranks[position].values()) > len(ranks[position]) + room
            for ranks in table.form_ranks.values()
        ):
            over.append(row)
    yield finding("impossible-ranks", table, over, len(table))


@check(
    "english-distractors",
    "biased",
    "English labels among the distractors",
    "Distractors equal an English label of the relation; in a language of another script they "
    "are no competition.",
    "Take the English label out of the aliases (protocol corrected does).",
)
@check(
    "own-forms",
    "biased",
    "The right entity among its distractors",
    "A distractor is another form of the correct object, and beating it counts as a miss.",
    "Rank entities, not strings (protocol corrected does).",
)
@check(
    "also-true",
    "biased",
    "Right answers among the distractors",
    "A distractor is another object that the benchmark gives for the same subject.",
    "Take all true objects of a subject out of its distractors (protocol corrected does).",
)
def distractors(table: RankTable) -> Iterator[Finding]:
    """Who stood among the distractors of the paper's fixed sample: English labels, forms of the
    right entity, other right answers.

    The corrected protocol has none of them by construction.
    """
    if table.protocol != "paper":
        return
    order = sampling_order(pool(table))
    english = set(table.facts["en_obj_label"]) - {""}
    first = order[:MAX_DISTRACTORS]
    yield finding(
        "english-distractors",
        table,
        of=len(first),
        count=sum(form in english for form in first),
        detail="of the first in order",
    )
    excluded = correct_and_excluded(table)
    located: dict[str, set[str]] = {}
    named: dict[str, set[str]] = {}
    objects_of: dict[str, set[str]] = {}
    objects = zip(*(table.objects(v) for v in table.verbalisations), strict=True)
    for subject, entity, forms, taken in zip(
        table.facts["sub_uri"], table.facts["obj_uri"], objects, excluded, strict=True
    ):
        located.setdefault(entity, set()).update(form for form in forms if form)
        named.setdefault(entity, set()).update(taken)
        objects_of.setdefault(subject, set()).add(entity)
    own, true = [], []
    for row, subject, entity, taken in zip(
        table.facts.index, table.facts["sub_uri"], table.facts["obj_uri"], excluded, strict=True
    ):
        drawn = set(
            [form for form in order[: MAX_DISTRACTORS + len(taken)] if form not in taken][
                :MAX_DISTRACTORS
            ]
        )
        if drawn & located[entity]:
            own.append(row)
        if any(drawn & named[other] for other in objects_of[subject] - {entity}):
            true.append(row)
    yield finding("own-forms", table, own, len(table))
    yield finding("also-true", table, true, len(table))


@check(
    "few-distractors",
    "biased",
    "Too few distractors",
    "A fact has fewer than ten distractors: a rank among ten is easier than one among fifty; "
    "without any, R@1 is 1.",
    "Mark the relation in tables, or leave it out of means.",
)
@check(
    "small-pool",
    "note",
    "Fewer distractors than the pool's limit",
    "Facts of this relation have fewer than 50 distractors; a table of true counts is `stats.py"
    " relations`.",
    "Say so where relations are compared.",
)
def few_distractors(table: RankTable) -> Iterator[Finding]:
    """Facts with fewer than ten distractors, and relations that do not fill the pool."""
    counts = distractor_counts(table)
    low, high = int(counts.min()), int(counts.max())
    detail = str(low) if low == high else f"{low} to {high}"
    yield finding(
        "few-distractors",
        table,
        table.facts.index[(counts < FEW_DISTRACTORS).to_numpy()],
        len(table),
        detail,
    )
    if table.protocol == "paper":
        yield finding(
            "small-pool",
            table,
            table.facts.index[(counts < MAX_DISTRACTORS).to_numpy()],
            len(table),
            detail,
        )


@check(
    "rows-differ",
    "wrong",
    "Rows do not match the benchmark",
    "The dump holds rows that its rule excludes, or lacks rows that it keeps.",
    "Score the file again from the benchmark as it is now.",
    alone=False,
)
@check(
    "limited",
    "note",
    "The first rows alone",
    "The dump holds the first rows that its rule keeps and no others, as a run with --limit "
    "leaves it.",
    "Score the rest before relations or languages are compared.",
    alone=False,
)
def against_benchmark(table: RankTable, benchmark: Benchmark) -> Iterator[Finding]:
    """The dump's facts against those that its protocol keeps of the benchmark file as it is now.

    Rows that lack because an object cell is empty are named as such: three published files dropped
    them.
    """
    keys = benchmark.table["sub_uri"] + "|" + table.relation + "|" + benchmark.table["obj_uri"]
    row_of = dict(zip(keys, benchmark.table.index.tolist(), strict=True))
    here = set(table.fact_keys())
    kept, filled = _kept_rows(benchmark, table)
    wanted, hollow = {keys[row] for row in kept}, {keys[row] for row in kept - filled}
    beyond = {
        key for key in wanted - here if row_of[key] > max(row_of.get(key, -1) for key in here)
    }
    limited = bool(beyond) and wanted - here == beyond and len(beyond) > 1
    yield finding(
        "limited",
        table,
        of=len(wanted),
        count=len(beyond) if limited else 0,
        detail=f"{len(here)} rows" if limited else "",
    )
    if limited:
        wanted -= beyond
    parts = {
        "holds excluded rows": sorted(row_of.get(key, -1) for key in here - wanted),
        "lacks rows": sorted(row_of[key] for key in wanted - here - hollow),
        "left out rows with an empty object": sorted(
            row_of[key] for key in (wanted & hollow) - here
        ),
    }
    detail = "; ".join(f"{what} {' '.join(map(str, rows))}" for what, rows in parts.items() if rows)
    yield finding(
        "rows-differ", table, [row for rows in parts.values() for row in rows], len(wanted), detail
    )


def _kept_rows(benchmark: Benchmark, table: RankTable) -> tuple[set[int], set[int]]:
    """(rows that the protocol keeps, those of them without an empty object cell)."""
    if table.protocol == "corrected":
        kept = {
            question.row for question in corrected_task(benchmark, table.verbalisations).questions
        }
        return kept, kept
    kept = set(select_rows(benchmark, table.verbalisations).kept)
    return kept, set(select_rows(benchmark, table.verbalisations, drop_empty_objects=True).kept)


@check(
    "few-shot",
    "biased",
    "Facts shown as examples",
    "The translator saw these facts, with their right translation, among its examples.",
    "Leave them out when that verbalisation is compared.",
    alone=False,
)
def few_shot(table: RankTable, benchmark: Benchmark, few_shots: Source) -> Iterator[Finding]:
    """Ranked facts that are among the translator's examples (every verbalisation but template and
    gt is asked)."""
    if few_shot_name(table.lang, table.relation) not in few_shots.names():
        return
    shots = read_few_shot(few_shots, table.lang, table.relation)
    keys = benchmark.table["sub_uri"] + "|" + table.relation + "|" + benchmark.table["obj_uri"]
    ranked = benchmark.table.index[keys.isin(set(table.fact_keys())).to_numpy()]
    for v in table.verbalisations:
        if v not in ("template", "gt"):
            leakage = find_leakage(benchmark, shots, ranked, v)
            copied = len(set(leakage.verbatim) & set(leakage.kept))
            yield finding(
                "few-shot",
                table,
                leakage.kept,
                len(table),
                f"{v}: {copied} come back word for word" if leakage.kept else "",
            )


def benchmark_of(table: RankTable, benchmarks: Source) -> Benchmark | None:
    """The benchmark file of this dump: the one file of its language and relation that has all its
    verbalisations."""
    for lang, relation, spec, _ in find_benchmarks(benchmarks):
        if (lang, relation) == (table.lang, table.relation):
            benchmark = read_benchmark(benchmarks, lang, relation, spec)
            if set(table.verbalisations) <= set(benchmark.verbalisations):
                return benchmark
    return None


_LEAKED_KEY = re.compile(
    r"\s*(source sentence|sentence|subject|object|subject translation|object "
    r"translation|translation)\s*:",
    re.IGNORECASE,
)


@check(
    "error-cells",
    "wrong",
    "ERROR scored as text",
    "A prompt or object cell holds the marker ERROR, and the row was scored all the same.",
    "Leave the row out; the benchmark file should not have let it pass.",
)
def error_cells(table: RankTable) -> Iterator[Finding]:
    """Rows with the marker ERROR for a prompt or an object."""
    marked = [
        (v, (table.prompts(v) == ERROR) | (table.objects(v) == ERROR)) for v in table.verbalisations
    ]
    yield _by_verbalisation("error-cells", table, marked)


@check(
    "leaked-prefix",
    "wrong",
    "Sentences with a leaked key",
    'A sentence begins with a key of the request, such as "Translation:", or spans several lines.',
    "Strip the key and locate the object again.",
)
def leaked_prefixes(table: RankTable) -> Iterator[Finding]:
    """Sentences that begin with a key of the translator's request, or run over several lines."""
    marked = []
    for v in table.verbalisations:
        if v != "template":
            sentences = table.facts[f"{v}_translation"]
            marked.append(
                (
                    v,
                    sentences.map(
                        lambda text: bool(_LEAKED_KEY.match(text)) or "\n" in text.strip()
                    ),
                )
            )
    yield _by_verbalisation("leaked-prefix", table, marked)


@check(
    "not-final",
    "biased",
    "Objects that are not final",
    "Words follow the object and are not scored: the prompt is cut too early, or the wrong "
    "words were taken for the object.",
    "Score the rest of the sentence too (protocol corrected), or leave the rows out.",
)
def objects_not_final(table: RankTable) -> Iterator[Finding]:
    """Sentences with words after the object. The corrected protocol scores them, so there it is no
    finding."""
    if table.protocol == "paper":
        yield _by_verbalisation(
            "not-final", table, [(v, tails(table, v).map(has_words)) for v in table.verbalisations]
        )


@check(
    "stray-blanks",
    "biased",
    "Stray blanks in prompts",
    "A prompt begins with white space, or is nothing else; the model sees another first token "
    "than in the other verbalisations.",
    "Trim prompts (protocol corrected does).",
)
def stray_blanks(table: RankTable) -> Iterator[Finding]:
    """Prompts that begin with white space or hold nothing else. The corrected protocol trims them,
    so there it is no finding."""
    if table.protocol == "paper":
        marked = [
            (v, table.prompts(v).map(lambda text: text[:1].isspace())) for v in table.verbalisations
        ]
        yield _by_verbalisation("stray-blanks", table, marked)


@check(
    "minus-infinity",
    "biased",
    "Prompts of probability zero",
    "The prompt's log-probability underflowed to -inf: sums in half precision.",
    "Score in float32; means of log-probabilities must say what they leave out.",
)
def minus_infinity(table: RankTable) -> Iterator[Finding]:
    """Prompts whose log-probability is -inf."""
    marked = [
        (v, pd.Series(np.isneginf(table.prompt_prob[v].to_numpy()), index=table.facts.index))
        for v in table.verbalisations
    ]
    yield _by_verbalisation("minus-infinity", table, marked)


@check(
    "half-precision",
    "biased",
    "Sums in half precision",
    "All log-probabilities are numbers of half precision: many forms tie, and ties were broken "
    "in favour of the correct ones.",
    "Score in float32.",
)
def half_precision(table: RankTable) -> Iterator[Finding]:
    """Whether every finite log-probability is a number of half precision: no accident where there
    are more than a few."""
    values = table.prompt_prob.to_numpy().ravel()
    finite = values[np.isfinite(values)]
    with np.errstate(over="ignore"):
        exact = int((finite.astype(np.float16).astype(float) == finite).sum())
    in_half = len(finite) >= 10 and exact == len(finite)
    yield finding("half-precision", table, of=len(finite), count=exact if in_half else 0)


@check(
    "ties",
    "biased",
    "Tied ranks",
    "Candidates have the same score, so their order says nothing. In paper dumps only swapped "
    "correct forms show it: a lower bound.",
    "Report mid-ranks (protocol corrected does).",
)
def recorded_ties(table: RankTable) -> Iterator[Finding]:
    """Facts whose entity shares its score with another one (corrected dumps record it)."""
    if table.tied is not None:
        yield _by_verbalisation("ties", table, [(v, table.tied[v]) for v in table.verbalisations])


@check(
    "no-row-numbers",
    "note",
    "No row numbers",
    "The file has no index column, so its rows can only be matched with the benchmark by their "
    "facts.",
    "Match by subject and object, not by position.",
)
def missing_row_numbers(table: RankTable) -> Iterator[Finding]:
    """Whether the file has no index column."""
    yield finding("no-row-numbers", table, of=len(table), count=0 if table.numbered else len(table))


def _by_verbalisation(check: str, table: RankTable, marked: list[tuple[str, pd.Series]]) -> Finding:
    """One finding on (fact, verbalisation) cells, its detail the count in each verbalisation."""
    detail = ", ".join(f"{v} {int(cells.sum())}" for v, cells in marked if cells.any())
    rows = [row for _, cells in marked for row in table.facts.index[cells.to_numpy(dtype=bool)]]
    return finding(
        check, table, sorted(set(rows)), len(table) * len(marked), detail, count=len(rows)
    )
