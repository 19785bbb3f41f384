"""``stats.py compare``: what the differences between verbalisations, models or protocols are worth.

    python stats.py compare --stats stats/starter/paper
    python stats.py compare --stats stats/models/smollm2 --against stats/models/mine,stats/models/pythia --tables tables/models

Writes ``compare_values`` and ``compare_differences`` as TSV (full precision) and Markdown, ``compare.tex`` (the
main figures) and a forest plot (PDF, PNG), and prints the main figures. docs/comparing.md says how to read them.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path

import pandas as pd
from tabulate import tabulate

from fluent_mlama.console import UserError, note
from fluent_mlama.records.atomic import write_text
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
from fluent_mlama.reporting.inference import STATEMENT, WEIGHTS
from fluent_mlama.reporting.latex import write_table
from fluent_mlama.reporting.loading import DumpFolder, RankTable, open_dumps
from fluent_mlama.reporting.options import (
    add_further_folders,
    add_resampling,
    add_short_rule,
    cutoffs,
)
from fluent_mlama.reporting.outcomes import (
    compare_outcomes,
    has_outcomes,
    join_outcomes,
    open_outcomes,
    statement,
    tell_missing,
)
from fluent_mlama.reporting.paired import align, fact_ranks
from fluent_mlama.reporting.remarks import SHORT_RULE_TEXTS, relation_counts
from fluent_mlama.reporting.selection import kept_rows, narrow, relations_by_language, short_rule

AVERAGES = {
    "relation": "mean over relations",
    "object": "mean over relations, each object once",
    "fact": "mean over facts",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of compare."""
    add_further_folders(
        parser, "dumps of other models or protocols, each compared with --stats fact by fact"
    )
    parser.add_argument(
        "--baseline",
        default="template",
        metavar="NAME",
        help="what each verbalisation is compared with (default: template)",
    )
    parser.add_argument(
        "--k", type=cutoffs, default=(1, 3, 5), metavar="K,…", help="the k of R@k (default: 1,3,5)"
    )
    parser.add_argument(
        "--weights",
        choices=WEIGHTS,
        default="relation",
        help="what counts alike in what is printed and set in LaTeX (default: relation; the TSV has all)",
    )
    parser.add_argument(
        "--level", type=_level, default=0.95, help="of the intervals (default: 0.95)"
    )
    add_resampling(parser, 10_000)
    parser.add_argument(
        "--own-form",
        action="store_true",
        help="rank only the form that the sentence itself uses, not an entity's best (protocol corrected)",
    )
    add_short_rule(parser)


def run(arguments: argparse.Namespace) -> int:
    """Compare, write the files and print the main figures."""
    settings = Settings(arguments.k, arguments.level, arguments.resamples, arguments.seed)
    if has_outcomes(Path(arguments.stats)):
        return run_outcomes(arguments, settings)
    table, pairs, remarks = (
        several_folders(arguments) if arguments.against else one_folder(arguments)
    )
    remarks.append(
        f"{STATEMENT} Level {settings.level:.0%}, {settings.resamples} flips, seed {settings.seed}; Holm over all tests of the table. "
        "detectable: the true difference found in 80 % of such samples"
    )
    values, differences = compare_pairs(table, pairs, settings)
    differences = differences[differences["first"] != differences["second"]]
    folder: Path = arguments.tables
    name = f"compare{'_own_form' if arguments.own_form else ''}{'_against' if arguments.against else ''}"
    for part, frame in (("values", values), ("differences", differences)):
        if len(frame):
            write_text(folder / f"{name}_{part}.tsv", tsv(frame))
            write_markdown(folder / f"{name}_{part}.md", frame, remarks)
    note(
        f"wrote {folder / name}_values{' and _differences' if len(differences) else ''} (.tsv, .md)"
    )
    if arguments.against:
        print(
            tabulate(
                side_by_side(values, arguments.weights),
                headers="keys",
                showindex=False,
                disable_numparse=True,
            ),
            end="\n\n",
        )
    if len(differences):
        title = f"What the differences are worth, {AVERAGES[arguments.weights]}"
        write_table(folder, name, latex_body(differences, arguments.weights), [title, *remarks])
        draw_differences(
            differences, arguments.weights, arguments.graphs, name, "; ".join([title, *remarks])
        )
        print(
            tabulate(
                main_figures(differences, arguments.weights),
                headers="keys",
                showindex=False,
                disable_numparse=True,
            )
        )
    print("\n".join(remarks))
    return 0


def run_outcomes(arguments: argparse.Namespace, settings: Settings) -> int:
    """The same for the outcomes of another experiment (minimal pairs, typed queries, popularity questions)."""
    places = [Path(arguments.stats), *map(Path, arguments.against or ())]
    folders = {path.name or str(path): open_outcomes(path) for path in places}
    if len(folders) < len(places):
        raise UserError("two folders of one name cannot be told apart; rename one")
    outcomes = join_outcomes(folders) if len(folders) > 1 else next(iter(folders.values()))
    tell_missing(outcomes)
    baseline = arguments.baseline if arguments.baseline in outcomes.conditions else ""
    if not baseline and arguments.baseline != "template":  # the default of rank dumps
        raise UserError(
            f"no condition '{arguments.baseline}': there are {', '.join(outcomes.conditions)}; choose with --baseline"
        )
    values, differences = compare_outcomes(outcomes, baseline or outcomes.conditions[0], settings)
    remarks = statement(outcomes, settings)
    folder: Path = arguments.tables
    for part, frame in (("values", values), ("differences", differences)):
        if len(frame):
            write_text(folder / f"compare_{part}.tsv", tsv(frame))
            print(tabulate(frame, headers="keys", showindex=False, floatfmt="z.3f"), end="\n\n")
    print("\n".join(remarks))
    return 0


def one_folder(arguments: argparse.Namespace) -> tuple[pd.DataFrame, list[Pair], list[str]]:
    """The baseline against every other verbalisation of one folder."""
    folder = open_dumps(arguments.stats)
    (tables,) = chosen_tables([folder], arguments)
    names = list(dict.fromkeys(v for table in tables for v in table.verbalisations))
    if arguments.baseline not in names:
        raise UserError(
            f"{folder.path} has no verbalisation '{arguments.baseline}', it has {', '.join(names)}; choose with --baseline"
        )
    pairs = [Pair(arguments.baseline, name) for name in names if name != arguments.baseline]
    if not pairs:
        raise UserError(
            f"{folder.path} has only the verbalisation {arguments.baseline}: nothing to compare it with; or give --against FOLDER"
        )
    return (
        fact_ranks(tables, own_form=arguments.own_form),
        pairs,
        _remarks(folder, tables, arguments, ""),
    )


def several_folders(arguments: argparse.Namespace) -> tuple[pd.DataFrame, list[Pair], list[str]]:
    """Each verbalisation of ``--stats`` against the same one of each folder of ``--against``, on the facts that both have."""
    folders = open_folders(arguments)
    tables = dict(zip(folders, chosen_tables(list(folders.values()), arguments), strict=True))
    remarks = [
        remark
        for label, folder in folders.items()
        for remark in _remarks(folder, tables[label], arguments, f"{label}: ")
    ]
    table, shared, pairs = pair_folders(tables, own_form=arguments.own_form)
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
    tables: Mapping[str, Sequence[RankTable]], *, own_form: bool = False
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
            label: fact_ranks(part, prefix=f"{label}:", own_form=own_form)
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


def chosen_tables(
    folders: Sequence[DumpFolder], arguments: argparse.Namespace
) -> list[list[RankTable]]:
    """Of each folder the dumps that are compared (``relations_by_language``), verbalisations narrowed, short prompts left out."""
    for lang in arguments.langs or ():
        for relation in arguments.relations or ():
            folders[0].table(lang, relation)  # a UserError that names what there is
    for folder in folders:
        for table in folder.tables(arguments.langs, arguments.relations):
            if arguments.verbalisations and not set(arguments.verbalisations) & set(
                table.verbalisations
            ):
                raise UserError(
                    f"{table.name} has none of {', '.join(arguments.verbalisations)}, it has {', '.join(table.verbalisations)}"
                )
    relations = relations_by_language(
        folders, arguments.langs, arguments.relations, arguments.verbalisations
    )
    rule = short_rule(arguments.style, arguments.exclude_short)
    chosen = []
    for folder in folders:
        found = []
        for lang in dict.fromkeys(arguments.langs or folder.languages()):
            for table in (
                folder.tables([lang], relations[lang]) if lang in folder.languages() else ()
            ):
                wanted = [
                    v
                    for v in table.verbalisations
                    if v in (arguments.verbalisations or table.verbalisations)
                ]
                found.append(kept_rows(narrow(table, wanted), rule))
        chosen.append([table for table in found if len(table)])
    return chosen


def _remarks(
    folder: DumpFolder, tables: Sequence[RankTable], arguments: argparse.Namespace, label: str
) -> list[str]:
    if not tables:
        raise UserError(
            f"{folder.path}: every row falls to the rule for short prompts; choose --exclude-short no"
        )
    rule = SHORT_RULE_TEXTS[short_rule(arguments.style, arguments.exclude_short)]
    counted = relation_counts([(table.lang, table.relation, len(table)) for table in tables])
    ranked = ", ranks by the verbalisation's own form" if arguments.own_form else ""
    return [
        f"{label}{counted}; {rule}; protocol: {tables[0].protocol}{ranked}",
        f"{label}signature: {folder.signature(tables)}",
    ]


def _level(value: str) -> float:
    try:
        level = float(value)
    except ValueError:
        level = 0.0
    if not 0.5 <= level < 1:
        raise argparse.ArgumentTypeError(
            f"'{value}' is no level; give a number from 0.5 to below 1, such as 0.95"
        )
    return level
