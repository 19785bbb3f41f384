"""``stats.py compare``: what the differences between verbalisations, models or protocols are worth.

    python stats.py compare --stats stats/starter/paper
    python stats.py compare --stats stats/models/smollm2 --against stats/models/mine,stats/models/pythia --tables tables/models

Writes ``compare_values`` and ``compare_differences`` as TSV (full precision) and Markdown, ``compare.tex`` (the
main figures) and a forest plot (PDF, PNG), and prints the main figures. docs/comparing.md says how to read them.

How comparisons are written down: full TSV, readable Markdown, a LaTeX table of the main figures.

The forest plot of ``stats.py compare``: each difference with its interval, by language and pooled, a line of no difference between.

Several folders of dumps side by side: models or protocols that were asked for the same facts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby, product
from pathlib import Path
from typing import Annotated, Any, Literal

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from cyclopts import Parameter, Token
from matplotlib.ticker import MaxNLocator
from tabulate import tabulate

from fluent_mlama.console import UserError, note
from fluent_mlama.files import format_table, write_text
from fluent_mlama.options import Cutoffs, Seed
from fluent_mlama.reporting.inference import FEWEST, STATEMENT
from fluent_mlama.reporting.latex import Column, Raw, bold, booktabs, number, write_table
from fluent_mlama.reporting.loading import DumpFolder, RankTable, open_dumps
from fluent_mlama.reporting.options import Against, Resamples, StatsOptions
from fluent_mlama.reporting.outcomes import (
    compare_outcomes,
    has_outcomes,
    join_outcomes,
    open_outcomes,
    statement,
    tell_missing,
)
from fluent_mlama.reporting.paired import (
    SIGNIFICANT,
    Pair,
    Settings,
    align,
    better,
    compare_pairs,
    fact_ranks,
)
from fluent_mlama.reporting.plotting import COLOURS, MARKERS, MUTED, legend_above, look, save
from fluent_mlama.reporting.selection import (
    kept_rows,
    relation_counts,
    relations_by_language,
    rules_text,
    select_verbalisations,
)
from fluent_mlama.reporting.yardsticks import STATEMENT as YARDSTICKS
from fluent_mlama.reporting.yardsticks import yardstick_table

AVERAGES = {
    "relation": "mean over relations",
    "object": "mean over relations, each object once",
    "fact": "mean over facts",
}


def _level(_: Any, tokens: Sequence[Token]) -> float:
    value = tokens[-1].value
    try:
        level = float(value)
    except ValueError:
        level = 0.0
    if not 0.5 <= level < 1:
        raise ValueError(
            f"{value!r} is not a level; give a number from 0.5 to below 1, such as 0.95"
        )
    return level


Level = Annotated[float, Parameter(converter=_level, n_tokens=1, help="of the intervals")]


def compare(
    *,
    options: StatsOptions = StatsOptions(),
    against: Against = (),
    baseline: str = "template",
    k: Cutoffs = (1, 3, 5),
    weights: Literal["relation", "object", "fact"] = "relation",
    level: Level = 0.95,
    resamples: Resamples = 10_000,
    seed: Seed = 0,
    all_forms: bool = False,
) -> None:
    """Intervals and paired tests between verbalisations, models or protocols.

        stats.py compare --stats stats/starter/paper
        stats.py compare --stats stats/models/smollm2,stats/models/mine --tables tables/models

    Writes compare_values and compare_differences as TSV (full precision) and Markdown, compare.tex (the main
    figures) and a forest plot (PDF, PNG), and prints the main figures. docs/comparing.md says how to read them.

    Args:
        baseline: what each verbalisation is compared with
        weights: what counts alike in what is printed and set in LaTeX (the TSV has all)
        all_forms: rank each entity by its best form (dumps made with --forms all)
    """
    settings = Settings(k, level, resamples, seed)
    options = replace(options, stats=(*options.stats, *against))
    if has_outcomes(options.stats[0]):
        compare_experiment(options, baseline, settings)
        return
    several = len(options.stats) > 1
    beside = None if several else yardsticks_of(options)
    table, pairs, remarks = (
        several_folders(options, all_forms=all_forms)
        if several
        else one_folder(options, baseline, all_forms=all_forms)
    )
    remarks.append(
        f"{STATEMENT} Level {settings.level:.0%}, {settings.resamples} flips, seed {settings.seed}; Holm over all tests of the table. "
        "detectable: the true difference found in 80 % of such samples"
    )
    values, differences = compare_pairs(table, pairs, settings)
    differences = differences[differences["first"] != differences["second"]]
    folder: Path = options.tables
    name = f"compare{'_all_forms' if all_forms else ''}{'_against' if several else ''}"
    for part, frame in (("values", values), ("differences", differences)):
        if len(frame):
            write_text(folder / f"{name}_{part}.tsv", tsv(frame))
            write_markdown(folder / f"{name}_{part}.md", frame, remarks)
    note(
        f"wrote {folder / name}_values{' and _differences' if len(differences) else ''} (.tsv, .md)"
    )
    if several:
        print(
            tabulate(
                side_by_side(values, weights),
                headers="keys",
                showindex=False,
                disable_numparse=True,
            ),
            end="\n\n",
        )
    if len(differences):
        title = f"What the differences are worth, {AVERAGES[weights]}"
        write_table(folder, name, latex_body(differences, weights), [title, *remarks])
        draw_differences(differences, weights, options.graphs, name, "; ".join([title, *remarks]))
        print(
            tabulate(
                main_figures(differences, weights),
                headers="keys",
                showindex=False,
                disable_numparse=True,
            )
        )
    if beside is not None:
        write_text(folder / f"{name}_yardsticks.tsv", tsv(beside))
        print(f"\n{tabulate(beside, headers='keys', showindex=False, floatfmt='z.3f')}")
        remarks.append(YARDSTICKS)
    print("\n".join(remarks))


def yardsticks_of(options: StatsOptions) -> pd.DataFrame | None:
    """The yardsticks of one folder's R@1, on the rows that are compared."""
    folder = open_dumps(options.dumps)
    (tables,) = chosen_tables([folder], options)
    found = yardstick_table(folder, tables)
    return None if found is None else found.reset_index()


def compare_experiment(options: StatsOptions, baseline: str, settings: Settings) -> None:
    """The same for the outcomes of another experiment (minimal pairs, typed queries, popularity questions)."""
    places = options.stats
    folders = {path.name or str(path): open_outcomes(path) for path in places}
    if len(folders) < len(places):
        raise UserError("two folders of one name cannot be told apart; rename one")
    outcomes = join_outcomes(folders) if len(folders) > 1 else next(iter(folders.values()))
    tell_missing(outcomes)
    known = baseline in outcomes.conditions
    if not known and baseline != "template":  # the default of rank dumps
        raise UserError(
            f"no condition '{baseline}': there are {', '.join(outcomes.conditions)}; choose with --baseline"
        )
    values, differences = compare_outcomes(
        outcomes, baseline if known else outcomes.conditions[0], settings
    )
    remarks = statement(outcomes, settings)
    folder: Path = options.tables
    for part, frame in (("values", values), ("differences", differences)):
        if len(frame):
            write_text(folder / f"compare_{part}.tsv", tsv(frame))
            print(tabulate(frame, headers="keys", showindex=False, floatfmt="z.3f"), end="\n\n")
    print("\n".join(remarks))


def one_folder(
    options: StatsOptions, baseline: str, *, all_forms: bool
) -> tuple[pd.DataFrame, list[Pair], list[str]]:
    """The baseline against every other verbalisation of one folder."""
    folder = open_dumps(options.dumps)
    (tables,) = chosen_tables([folder], options)
    names = list(dict.fromkeys(v for table in tables for v in table.verbalisations))
    if baseline not in names:
        raise UserError(
            f"{folder.path} has no verbalisation '{baseline}', it has {', '.join(names)}; choose with --baseline"
        )
    pairs = [Pair(baseline, name) for name in names if name != baseline]
    if not pairs:
        raise UserError(
            f"{folder.path} has only the verbalisation {baseline}: nothing to compare it with; or give --against FOLDER"
        )
    return (
        fact_ranks(tables, all_forms=all_forms),
        pairs,
        _remarks(folder, tables, options, "", all_forms),
    )


def several_folders(
    options: StatsOptions, *, all_forms: bool
) -> tuple[pd.DataFrame, list[Pair], list[str]]:
    """Each verbalisation of the first folder against the same one of each other folder, on the facts that both have."""
    folders = open_folders(options.stats)
    tables = dict(zip(folders, chosen_tables(list(folders.values()), options), strict=True))
    kinds = {label: folder.is_masked(tables[label]) for label, folder in folders.items()}
    if len(set(kinds.values())) > 1:
        masked = ", ".join(label for label, is_masked in kinds.items() if is_masked)
        raise UserError(
            f"{masked}: scores of a masked model, which cannot be set beside those of a causal one; "
            "compare masked models with each other"
        )
    remarks = [
        remark
        for label, folder in folders.items()
        for remark in _remarks(folder, tables[label], options, f"{label}: ", all_forms)
    ]
    table, shared, pairs = pair_folders(tables, all_forms=all_forms)
    first, *others = folders
    sizes = {label: sum(map(len, part)) for label, part in tables.items()}
    for other in others:
        only = [sizes[label] - shared[other] for label in (first, other)]
        remarks.append(
            f"{shared[other]} rows in both; only in {first}: {only[0]}, only in {other}: {only[1]}"
        )
        protocols = [tables[label][0].protocol for label in (first, other)]
        if protocols[0] != protocols[1]:
            remarks.append(
                f"{first} ({protocols[0]}) and {other} ({protocols[1]}) rank among different candidates: "
                "their values stand side by side and are not tested against each other"
            )
    return table, pairs, remarks


def pair_folders(
    tables: Mapping[str, Sequence[RankTable]], *, all_forms: bool = False
) -> tuple[pd.DataFrame, dict[str, int], list[Pair]]:
    """Ranks of several folders (label -> dumps) side by side, how many facts each shares with the first, and the pairs to compare.

    Folders of another protocol than the first's are in no pair but of a way with itself, which has values and no test.
    """
    names = {
        label: list(dict.fromkeys(v for table in part for v in table.verbalisations))
        for label, part in tables.items()
    }
    first, *others = tables
    for other in others:
        if not set(names[first]) & set(names[other]):
            raise UserError(f"{first} and {other} share no verbalisation; nothing can be paired")
    table, shared = align(
        {
            label: fact_ranks(part, prefix=f"{label}:", all_forms=all_forms)
            for label, part in tables.items()
        }
    )
    pairs = []
    for v, other in product(names[first], others):
        ways = [f"{label}:{v}" for label in (first, other)]
        if v in names[other] and tables[first][0].protocol == tables[other][0].protocol:
            pairs.append(Pair(*ways))
        elif v in names[other]:
            pairs += [Pair(way, way) for way in ways]
    return table, shared, list(dict.fromkeys(pairs))


def chosen_tables(folders: Sequence[DumpFolder], options: StatsOptions) -> list[list[RankTable]]:
    """Of each folder the dumps that are compared (``relations_by_language``), verbalisations narrowed, short prompts left out."""
    for lang in options.langs or ():
        for relation in options.relations or ():
            folders[0].table(lang, relation)  # a UserError that names what there is
    for folder in folders:
        for table in folder.tables(options.langs, options.relations):
            if options.verbalisations and not set(options.verbalisations) & set(
                table.verbalisations
            ):
                raise UserError(
                    f"{table.name} has none of {', '.join(options.verbalisations)}, it has {', '.join(table.verbalisations)}"
                )
    relations = relations_by_language(
        folders, options.langs, options.relations, options.verbalisations
    )
    chosen = []
    for folder in folders:
        found = []
        for lang in dict.fromkeys(options.langs or folder.languages()):
            for table in (
                folder.tables([lang], relations[lang]) if lang in folder.languages() else ()
            ):
                wanted = [
                    v
                    for v in table.verbalisations
                    if v in (options.verbalisations or table.verbalisations)
                ]
                found.append(kept_rows(select_verbalisations(table, wanted), options.rules))
        chosen.append([table for table in found if len(table)])
    return chosen


def _remarks(
    folder: DumpFolder,
    tables: Sequence[RankTable],
    options: StatsOptions,
    label: str,
    all_forms: bool,
) -> list[str]:
    if not tables:
        raise UserError(
            f"{folder.path}: every row falls to the rule for short prompts; choose --exclude-short no"
        )
    rule = rules_text(options.rules, tables)
    counted = relation_counts([(table.lang, table.relation, len(table)) for table in tables])
    ranked = ", ranks by the best of all forms" if all_forms else ""
    return [
        f"{label}{counted}; {rule}; protocol: {tables[0].protocol}{ranked}",
        f"{label}signature: {folder.signature(tables)}",
    ]


_LESS_DIGITS = {"mean rank": 2}


def digits(metric: str) -> int:
    """Decimals of a metric's values: as in the paper, 3 for shares and 2 for ranks."""
    return _LESS_DIGITS.get(metric, 3)


def tsv(frame: pd.DataFrame) -> str:
    """The frame with every number at full precision and an empty cell where there is none."""
    return format_table(frame.map(_plain))


def _plain(value: object) -> str:
    if isinstance(value, float):
        return (
            ""
            if math.isnan(value)
            else (
                str(int(value))
                if value.is_integer() and abs(value) >= 2
                else repr(float(value) + 0.0)
            )
        )
    return str(value)


def write_markdown(path: Path, frame: pd.DataFrame, remarks: Sequence[str]) -> None:
    """Write the frame, rounded, as a Markdown table with the remarks above it."""
    rows = [[_rounded(row, column) for column in frame.columns] for row in _records(frame)]
    headers = [column.replace("_", " ") for column in frame.columns]
    text = tabulate(rows, headers=headers, tablefmt="github", disable_numparse=True)
    write_text(path, "".join(f"{remark}  \n" for remark in remarks) + f"\n{text}\n")


def _rounded(row: dict[str, Any], column: str) -> str:
    value = row[column]
    if not isinstance(value, float):
        return str(value).replace("|", "\\|")
    if math.isnan(value):
        return ""
    if column in ("p", "p_holm"):
        return p_value(value)
    if column in ("effect_size", "superiority"):
        return f"{value:z.2f}"
    if column == "effective_objects":
        return f"{value:z.1f}"
    return f"{value:z.{digits(str(row['metric']))}f}"


def p_value(value: float) -> str:
    """Three decimals, ``<.001`` below, nothing where there is no test."""
    if math.isnan(value):
        return ""
    return "<.001" if value < 0.001 else f"{value:z.3f}".removeprefix("0")


def verdict(row: dict[str, Any]) -> str:
    """``better``, ``worse`` or ``–`` (the test cannot tell, or there is none), for the second way."""
    if not row["p_holm"] < SIGNIFICANT:
        return "–"
    gain = float(row["difference"]) * better(str(row["metric"]))
    return "better" if gain > 0 else "worse"


def main_figures(differences: pd.DataFrame, weights: str) -> pd.DataFrame:
    """What is printed: the main metrics under these weights, values, difference with its interval, p-values, verdict.

    Beside them the difference where each object counts once, with its p, as a check that no frequent object decides.
    """
    key = ["comparison", "language", "metric"]
    by_object = differences[differences["weights"] == "object"].set_index(key)
    rows = []
    for row in _main_rows(differences, weights):
        places = digits(row["metric"])
        once = by_object.loc[tuple(row[name] for name in key)]
        rows.append(
            {
                "comparison": row["comparison"],
                "language": row["language"],
                "rows": str(row["rows"]),
                "G*": f"{row['effective_objects']:z.0f}",
                "metric": row["metric"],
                "first": f"{row['first_value']:z.{places}f}",
                "second": f"{row['second_value']:z.{places}f}",
                "difference": f"{row['difference']:+z.{places}f}",
                "interval": interval_cell(row, f"+z.{places}f"),
                "detectable": ""
                if math.isnan(row["detectable"])
                else f"{row['detectable']:z.{places}f}",
                "p": p_value(row["p"]),
                "p (Holm)": p_value(row["p_holm"]),
                "second is": verdict(row),
                "each object once": f"{once['difference']:+z.{places}f} {p_value(float(once['p_holm']))}".strip(),
            }
        )
    return pd.DataFrame(rows)


def interval_cell(row: Mapping[Any, Any], form: str) -> str:
    """``[low, high]``; why there is none, where the objects are too few; nothing where no row varies."""
    if row["effective_objects"] < FEWEST:
        return "too few objects"
    return "" if math.isnan(row["low"]) else f"[{row['low']:{form}}, {row['high']:{form}}]"


def side_by_side(values: pd.DataFrame, weights: str) -> pd.DataFrame:
    """The main metrics of several folders, a row per metric, language and verbalisation, a column a folder: value [interval].

    values: as ``comparing.compare_pairs`` gives them, with ways named ``folder:verbalisation``.
    """
    rows: dict[tuple[str, str, str], dict[str, str]] = {}
    for row in _records(
        values[(values["weights"] == weights) & values["metric"].isin(main_metrics(values))]
    ):
        places = digits(row["metric"])
        folder, _, verbalisation = row["way"].rpartition(":")
        rows.setdefault((row["metric"], row["language"], verbalisation), {})[folder] = (
            f"{row['value']:z.{places}f} {interval_cell(row, f'z.{places}f')}".strip()
        )
    ordered = sorted(rows, key=lambda key: key[0] == "mean rank")
    heads = [
        {"metric": metric, "language": language, "verbalisation": v}
        for metric, language, v in ordered
    ]
    return pd.DataFrame(
        [head | rows[key] for head, key in zip(heads, ordered, strict=True)]
    ).fillna("")


def latex_body(differences: pd.DataFrame, weights: str) -> str:
    """A booktabs table: a block a comparison, a row a language; a difference that the test can tell from 0 is bold."""
    columns = [Column("", "l"), Column("rows")]
    for metric in main_metrics(differences):
        title = Raw(rf"{metric} $\{'up' if better(metric) > 0 else 'down'}arrow$")
        columns += [
            Column(header, "r", title)
            for header in ("first", "second", Raw(r"$\Delta$"), "interval", Raw("$p$"))
        ]
    rows: list[Sequence[object] | None] = []
    ordered = _main_rows(differences, weights)
    for comparison, block in groupby(ordered, key=lambda row: row["comparison"]):
        rows += [] if not rows else [None]
        rows.append([comparison, *[""] * (len(columns) - 1)])
        for language, cells in groupby(block, key=lambda row: row["language"]):
            line: list[object] = []
            for row in cells:
                line = line or [language, row["rows"]]
                line += _latex_cells(row)
            rows.append(line)
    return booktabs(columns, rows).replace("→", r"$\rightarrow$")


def _latex_cells(row: dict[str, Any]) -> list[object]:
    places = digits(str(row["metric"]))
    first, second, difference, low, high = (
        number(float(row[column]), places)
        for column in ("first_value", "second_value", "difference", "low", "high")
    )
    shown = bold(difference) if verdict(row) != "–" else difference
    interval = (
        interval_cell(row, "") if row["effective_objects"] < FEWEST else Raw(f"[{low}, {high}]")
    )
    return [first, second, shown, interval, Raw(p_value(row["p_holm"]).replace("<", "$<$"))]


def main_metrics(differences: pd.DataFrame) -> tuple[str, str]:
    """The first R@k and the mean rank, of values or differences."""
    return differences["metric"].iloc[0], "mean rank"


def _main_rows(differences: pd.DataFrame, weights: str) -> list[dict[str, Any]]:
    return _records(
        differences[
            (differences["weights"] == weights)
            & differences["metric"].isin(main_metrics(differences))
        ]
    )


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]


METRICS = ("R@1", "MRR", "mean rank")
ROW_INCHES = 0.3


def draw_differences(
    differences: pd.DataFrame, weights: str, folder: Path, name: str, remark: str
) -> list[Path]:
    """Write ``{name}.pdf`` and ``.png``: one panel a metric, one line a language (``all`` last), one mark a comparison.

    differences: the rows of ``compare_differences.tsv``; weights: which of them. A bar is the interval of the
    difference second − first; where it crosses the grey line, the sign of the difference is not settled.
    """
    shown = differences[differences["weights"] == weights]
    metrics = [metric for metric in METRICS if metric in set(shown["metric"])]
    comparisons = list(dict.fromkeys(shown["comparison"]))
    languages = list(dict.fromkeys(shown["language"]))
    with look():
        height = 1.0 + ROW_INCHES * len(languages) * max(1.0, 0.6 * len(comparisons))
        figure, axes = plt.subplots(
            1, len(metrics), figsize=(3.1 * len(metrics), height), sharey=True, squeeze=False
        )
        offsets = (
            (np.arange(len(comparisons)) - (len(comparisons) - 1) / 2) * 0.6 / len(comparisons)
        )
        for axis, metric in zip(axes[0], metrics, strict=True):
            for place, comparison in enumerate(comparisons):
                rows = shown[(shown["metric"] == metric) & (shown["comparison"] == comparison)]
                at = (
                    np.array([languages.index(language) for language in rows["language"]])
                    + offsets[place]
                )
                values = rows[["difference", "low", "high"]].to_numpy(dtype=np.float64)
                reach = np.abs(values[:, 1:] - values[:, :1]).T
                style = {
                    "color": COLOURS[place % len(COLOURS)],
                    "fmt": MARKERS[place % len(MARKERS)],
                }
                axis.errorbar(
                    values[:, 0],
                    at,
                    xerr=reach,
                    markersize=4,
                    elinewidth=1.2,
                    label=comparison,
                    **style,
                )
            axis.axvline(0, color=MUTED, linewidth=1)
            axis.xaxis.set_major_locator(MaxNLocator(5))
            axis.set_title(metric)
            axis.set_xlabel(f"difference ({'right' if better(metric) > 0 else 'left'}: better)")
        axes[0][0].set_yticks(range(len(languages)), languages)
        axes[0][0].invert_yaxis()
        legend_above(figure, axes[0][0], columns=2)
        return save(figure, folder, name, remark)


def open_folders(places: Sequence[Path]) -> dict[str, DumpFolder]:
    """The folders under short names, in the order in which they were named."""
    folders = [open_dumps(place) for place in places]
    return dict(zip(labels([folder.path for folder in folders]), folders, strict=True))


def labels(paths: Sequence[Path]) -> list[str]:
    """The last part of each path, or as many parts as tell it from the others; a folder named twice is a ``UserError``."""
    parts = [
        path.resolve().with_suffix("" if path.suffix == ".zip" else path.suffix).parts
        for path in paths
    ]
    for place, path in enumerate(paths):
        if parts[place] in parts[:place]:
            raise UserError(
                f"{path} is named twice, or a folder beside its zip: name each folder of dumps once"
            )
    return [
        "/".join(own[-_depth(own, [other for other in parts if other != own]) :]) for own in parts
    ]


def _depth(own: Sequence[str], others: Sequence[Sequence[str]]) -> int:
    return next(
        depth
        for depth in range(1, len(own) + 1)
        if all(other[-depth:] != own[-depth:] for other in others)
    )
