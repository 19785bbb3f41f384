"""``stats.py compare``: what the differences between verbalisations, models or protocols are worth.

    python stats.py compare --stats stats/starter/paper
    python stats.py compare --stats stats/models/smollm2 --against stats/models/mine,stats/models/pythia --tables tables/models

Writes ``compare_values`` and ``compare_differences`` as TSV (full precision) and Markdown, ``compare.tex`` (the
main figures) and a forest plot (PDF, PNG), and prints the main figures. docs/comparing.md says how to read them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

import pandas as pd
from cyclopts import Parameter, Token
from tabulate import tabulate

from fluent_mlama.console import UserError, note
from fluent_mlama.files import write_text
from fluent_mlama.options import Cutoffs, Seed
from fluent_mlama.reporting.comparing import Pair, Settings, compare_pairs
from fluent_mlama.reporting.comparison_tables import (
    latex_body,
    main_figures,
    side_by_side,
    tsv,
    write_markdown,
)
from fluent_mlama.reporting.figures_compare import draw_differences
from fluent_mlama.reporting.folders import open_folders
from fluent_mlama.reporting.inference import STATEMENT
from fluent_mlama.reporting.latex import write_table
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
from fluent_mlama.reporting.paired import align, fact_ranks
from fluent_mlama.reporting.remarks import relation_counts, rules_text
from fluent_mlama.reporting.selection import kept_rows, narrow, relations_by_language
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
                found.append(kept_rows(narrow(table, wanted), options.rules))
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
