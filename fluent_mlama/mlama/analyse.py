"""The commands that read results: ``p1``, ``rel-p1``, ``split``, ``bias``, ``pool``, ``uhn``, ``templates``; and ``coverage``.

Each writes its tables as TSV, Markdown and LaTeX (and the paper's figure where there is one) and prints the main one.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
from tabulate import tabulate

from fluent_mlama.console import UserError, seed_number, split_list
from fluent_mlama.mlama.bias import bias_by_language, bias_table
from fluent_mlama.mlama.coverage import coverage_table, sample_table
from fluent_mlama.mlama.measures import (
    compare_templates,
    p1_by_language,
    p1_by_relation,
    relative_p1,
    split_by_pieces,
    without,
)
from fluent_mlama.mlama.pooling import pooling_by_relation, pooling_table
from fluent_mlama.mlama.query import DEFAULT_OUT, check_lists
from fluent_mlama.mlama.results import METHODS, USUAL_TEMPLATES, Place, Results, read_results
from fluent_mlama.mlama.uhn import FILTERS, read_uhn_list, uhn_rows
from fluent_mlama.reader import MLama
from fluent_mlama.records.atomic import check_writable
from fluent_mlama.records.run import read_run, run_path
from fluent_mlama.reporting.three_formats import write_tables

Tables = dict[str, pd.DataFrame]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of one of these commands."""
    name = parser.get_default("command")
    add = parser.add_argument
    if name in {"coverage", "uhn"}:
        add(
            "--data",
            type=Path,
            required=True,
            metavar="PATH",
            help="folder or zip in the mLAMA 1.1 layout",
        )
    if name != "coverage":
        add("--model", required=name != "uhn", help="the model whose results are meant")
        add(
            "--method",
            choices=METHODS,
            help="which answers (default: those that are there, if of one method only)",
        )
        add(
            "--results",
            type=Path,
            default=DEFAULT_OUT,
            help="folder of the results (default: %(default)s)",
        )
        add("--name", default=USUAL_TEMPLATES, help="template set (default: %(default)s)")
        add("--compat", action="store_true", help="the answers with displaced masks")
        add(
            "--uhn",
            type=Path,
            metavar="LIST",
            help="leave out the triples of this list (columns relation, lineid)",
        )
    add("--langs", type=split_list, help="comma-separated codes (default: all that are there)")
    add("--relations", type=split_list, help="comma-separated relations (default: all)")
    add(
        "--tables",
        type=Path,
        default=Path("mlama_tables"),
        help="folder of tables and figures (default: %(default)s)",
    )
    _add_own(parser, name)


def _add_own(parser: argparse.ArgumentParser, name: str) -> None:
    add = parser.add_argument
    if name == "p1":
        add(
            "--articles",
            type=Path,
            help="CSV with lang,articles: p1 against the size of each Wikipedia (Figure 6)",
        )
    elif name == "rel-p1":
        add("--reference", help="the model whose English is 1.0 (default: the model itself)")
        add(
            "--beside",
            help="a model whose English gets a bar of its own, for example a monolingual one",
        )
    elif name == "split":
        add(
            "--untyped",
            action="store_true",
            help="show the untyped answers beside the typed ones (Figure 2)",
        )
    elif name == "pool":
        add("--seed", type=seed_number, default=0, help="of the tie rule 'random' (default: 0)")
    elif name == "uhn":
        add(
            "--filters",
            type=split_list,
            default=["string"],
            help=f"comma list of {', '.join(FILTERS)} (default: string)",
        )
        add("--names-model", help="masked model for the name filter, for example bert-base-cased")
    elif name == "templates":
        add(
            "--with",
            dest="others",
            type=split_list,
            required=True,
            help="names of further template sets, compared with --name",
        )


def run(arguments: argparse.Namespace) -> int:
    """Make the command's tables and figures."""
    name = arguments.command
    check_lists(arguments)
    check_writable(arguments.tables, "--tables")
    if name == "coverage":
        tables, remark = _coverage(arguments), f"data {arguments.data.name}"
    elif name == "uhn" and not arguments.model:
        tables, remark = {"uhn_list": uhn_list(arguments)}, f"filters {','.join(arguments.filters)}"
    else:
        results = chosen_results(arguments)
        remark = " ".join(results.signatures)
        tables = _COMMANDS[name](results, arguments)
    write_tables(arguments.tables, tables, remark)
    shown = next(iter(tables.values()))
    print(tabulate(shown.to_numpy().tolist(), list(shown.columns), floatfmt="z.4f"))
    print(f"written to {arguments.tables}: {', '.join(tables)}" + (f"\n{remark}" if remark else ""))
    return 0


def chosen_results(
    arguments: argparse.Namespace, model: str | None = None, method: str | None = None
) -> Results:
    """The results that the arguments name, without the triples of --uhn."""
    method = (
        method
        or arguments.method
        or _only_method(arguments.results, model or arguments.model, arguments.name)
    )
    suffix = "-compat" if arguments.compat else ""
    place = Place(
        arguments.results,
        model or arguments.model,
        method.removesuffix("-compat") + suffix,
        arguments.name,
    )
    languages = arguments.langs if model is None else None
    results = read_results(place, languages, arguments.relations)
    return without(results, read_uhn_list(arguments.uhn)) if arguments.uhn else results


def _only_method(out: Path, model: str, templates: str) -> str:
    folder = Place(out, model, "", templates).folder.parent
    present = (
        sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    )
    if not present:
        raise UserError(
            f"no results in {folder}; run: python -m probes.mlama query --model {model}"
        )
    if len(present) > 1:
        raise UserError(
            f"{folder} has answers of {', '.join(present)}; choose one with --method (they are never mixed)"
        )
    return present[0]


def _coverage(arguments: argparse.Namespace) -> Tables:
    from fluent_mlama.mlama.figures import draw_coverage

    data = MLama(arguments.data)
    table = coverage_table(data, arguments.langs, arguments.relations)
    draw_coverage(table, arguments.tables, f"data {arguments.data.name}")
    return {"coverage": table, "samples": sample_table(data, arguments.langs, arguments.relations)}


def _p1(results: Results, arguments: argparse.Namespace) -> Tables:
    tables = {"p1": p1_by_language(results), "p1_relations": p1_by_relation(results)}
    if arguments.articles:
        from fluent_mlama.mlama.figures import articles_table, draw_articles, read_articles

        tables["articles"] = articles_table(tables["p1"], read_articles(arguments.articles))
        draw_articles(tables["articles"], arguments.tables, " ".join(results.signatures))
    return tables


def _relative(results: Results, arguments: argparse.Namespace) -> Tables:
    from fluent_mlama.mlama.figures import draw_relative

    method = results.place.method
    reference = chosen_results(arguments, arguments.reference or arguments.model, method)
    beside = chosen_results(arguments, arguments.beside, method) if arguments.beside else None
    table = relative_p1(results, reference, beside)
    draw_relative(table, arguments.tables, " ".join(results.signatures))
    return {"relative_p1": table}


def _split(results: Results, arguments: argparse.Namespace) -> Tables:
    from fluent_mlama.mlama.figures import draw_split

    by_method = {results.place.method: split_by_pieces(results)}
    if arguments.untyped:
        by_method = {
            "untyq": split_by_pieces(chosen_results(arguments, method="untyq")),
            **by_method,
        }
    draw_split(by_method, arguments.tables, " ".join(results.signatures))
    return {
        "split" if method == results.place.method else f"split_{method}": table
        for method, table in reversed(by_method.items())
    }


def _bias(results: Results, arguments: argparse.Namespace) -> Tables:
    table = bias_table(results)
    return {"bias": table, "bias_languages": bias_by_language(table)}


def _pool(results: Results, arguments: argparse.Namespace) -> Tables:
    return {
        "pooling": pooling_table(results, arguments.seed),
        "pooling_relations": pooling_by_relation(results, seed=arguments.seed),
    }


def uhn_list(arguments: argparse.Namespace) -> pd.DataFrame:
    """The English triples that the filters leave out."""
    data = MLama(arguments.data)
    likeliest = None
    if "name" in arguments.filters and arguments.names_model:
        from fluent_mlama.scoring.masked import load_masked_scorer

        likeliest = load_masked_scorer(arguments.names_model).likeliest
    facts = {
        relation: data.triples("en", relation)
        for relation in data.select(["en"], arguments.relations)["en"]
    }
    return uhn_rows(facts, arguments.filters, likeliest)


def uhn_tables(results: Results, dropped: pd.DataFrame) -> Tables:
    """p1 and pooling with all triples and without those of the list."""
    left = without(results, set(zip(dropped["relation"], dropped["lineid"], strict=True)))
    both = {"all": p1_by_language(results), "UHN": p1_by_language(left)}
    table = both["all"][["language", "triples", "p1"]].merge(
        both["UHN"][["language", "triples", "p1"]], on="language", how="left", suffixes=("", " UHN")
    )
    tables = {"uhn": table, "uhn_list": dropped}
    if "en" in results.frames and len(results.frames) > 1:
        tables["uhn_pooling"] = pooling_table(left)
    return tables


def _uhn(results: Results, arguments: argparse.Namespace) -> Tables:
    return uhn_tables(results, uhn_list(arguments))


def templates_of(results: Results) -> dict[str, dict[str, str]]:
    """lang -> relation -> the template that was used, from the records."""
    found: dict[str, dict[str, str]] = {}
    for lang, frames in results.frames.items():
        for relation in frames:
            record = read_run(run_path(results.place.file(lang, relation)))
            found.setdefault(lang, {})[relation] = str(record.extras["settings"]["template"])
    return found


def _templates(results: Results, arguments: argparse.Namespace) -> Tables:
    sets: Mapping[str, Results] = {
        arguments.name: results,
        **{
            other: read_results(
                Place(arguments.results, arguments.model, results.place.method, other),
                arguments.langs,
                arguments.relations,
            )
            for other in arguments.others
        },
    }
    return {
        "templates": compare_templates(
            sets, {name: templates_of(one) for name, one in sets.items()}
        )
    }


_COMMANDS = {
    "p1": _p1, "rel-p1": _relative, "split": _split, "bias": _bias, "pool": _pool, "uhn": _uhn, "templates": _templates,
}  # fmt: skip
