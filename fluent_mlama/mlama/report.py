"""``report``: ask what has not been asked yet, then every table and figure in one go, with a page that shows them."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from fluent_mlama.console import UserError, note
from fluent_mlama.mlama.analyse import Tables, uhn_tables
from fluent_mlama.mlama.bias import bias_by_language, bias_table
from fluent_mlama.mlama.coverage import coverage_table, sample_table
from fluent_mlama.mlama.figures import (
    articles_table,
    draw_articles,
    draw_coverage,
    draw_relative,
    draw_split,
    read_articles,
)
from fluent_mlama.mlama.measures import (
    ENGLISH,
    p1_by_language,
    p1_by_relation,
    relative_p1,
    split_by_pieces,
)
from fluent_mlama.mlama.pooling import pooling_by_relation, pooling_table
from fluent_mlama.mlama.query import add_asking_arguments, options_of, query
from fluent_mlama.mlama.results import METHODS, Results, read_results
from fluent_mlama.mlama.uhn import uhn_rows
from fluent_mlama.reader import MLama
from fluent_mlama.records.atomic import check_writable, write_text
from fluent_mlama.reporting.three_formats import write_tables

TITLES = {
    "coverage": "Triples of each language (Figure 1)", "samples": "Filled templates (Figures 4 and 5)", "p1": "Precision at 1",
    "p1_relations": "Precision at 1 by relation", "relative_p1": "Relative precision, on the same triples (Figure 3)",
    "split": "Objects of one piece and of several (Figure 2)", "bias": "Most frequent answers (Tables 1 and 4)",
    "bias_languages": "How concentrated the answers are", "pooling": "Languages pooled (Table 3)",
    "pooling_relations": "Languages pooled, by relation",
    "uhn": "Without names that give the answer away (LAMA-UHN, string filter)", "uhn_pooling": "Languages pooled, LAMA-UHN",
    "uhn_list": "Triples that LAMA-UHN leaves out", "articles": "Precision and the size of Wikipedia (Figure 6)",
}  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``report``: those of ``query``, and where the tables go."""
    add_asking_arguments(parser)
    parser.add_argument(
        "--method", choices=METHODS, help="default: tyq for a masked model, causal for a causal one"
    )
    parser.add_argument(
        "--tables",
        type=Path,
        default=Path("mlama_report"),
        help="folder of the report (default: %(default)s)",
    )
    parser.add_argument("--articles", type=Path, help="CSV with lang,articles (Figure 6)")


def run(arguments: argparse.Namespace) -> int:
    """Ask, count, draw, write."""
    data = MLama(arguments.data)
    articles = read_articles(arguments.articles) if arguments.articles else None
    check_writable(arguments.tables, "--tables")
    arguments.method = arguments.method or method_for(arguments.model, arguments.revision)
    options = options_of(arguments)
    query(data, options, arguments.langs, arguments.relations)
    results = read_results(options.place, arguments.langs, arguments.relations)
    remark = " ".join(results.signatures)
    folder = arguments.tables
    tables: Tables = {
        "coverage": coverage_table(data, arguments.langs, arguments.relations),
        "samples": sample_table(data, arguments.langs, arguments.relations), **result_tables(results),
    }  # fmt: skip
    if ENGLISH in results.frames:
        facts = {relation: data.triples(ENGLISH, relation) for relation in results.frames[ENGLISH]}
        tables |= uhn_tables(results, uhn_rows(facts, ["string"]))
    figures = [
        *draw_coverage(tables["coverage"], folder, remark),
        *draw_split({options.method: tables["split"]}, folder, remark),
    ]
    if "relative_p1" in tables:
        figures += draw_relative(tables["relative_p1"], folder, remark)
    if articles is not None:
        tables["articles"] = articles_table(tables["p1"], articles)
        figures += draw_articles(tables["articles"], folder, remark)
    write_tables(folder, tables, remark)
    chosen = data.select(arguments.langs, arguments.relations)
    write_text(
        folder / "report.md",
        page(folder, list(tables), figures, results, left_out(chosen, results)),
    )
    print(
        f"{len(tables)} tables and {len(figures) // 2} figures are in {folder}; {folder / 'report.md'} shows them\n{remark}"
    )
    return 0


def method_for(model: str, revision: str | None) -> str:
    """The usual method for this kind of model, told from its config."""
    from fluent_mlama.scoring.models import is_masked

    return "tyq" if is_masked(model, revision) else "causal"


def result_tables(results: Results) -> Tables:
    """Everything that the results alone allow; what needs English or a second language is left out with a note."""
    bias = bias_table(results)
    tables: Tables = {
        "p1": p1_by_language(results), "p1_relations": p1_by_relation(results), "split": split_by_pieces(results),
        "bias": bias, "bias_languages": bias_by_language(bias),
    }  # fmt: skip
    if ENGLISH not in results.frames or len(results.frames) < 2:
        note("without English and another language there is no relative precision and no pool")
        return tables
    try:
        tables["relative_p1"] = relative_p1(results, results)
    except UserError as lack:
        note(str(lack))
    return tables | {
        "pooling": pooling_table(results),
        "pooling_relations": pooling_by_relation(results),
    }


def left_out(chosen: Mapping[str, Sequence[str]], results: Results) -> dict[str, list[str]]:
    """lang -> relations that were chosen but not asked; languages with all of theirs are not in it."""
    missing = {
        lang: [one for one in names if one not in results.frames.get(lang, {})]
        for lang, names in chosen.items()
    }
    return {lang: names for lang, names in missing.items() if names}


def page(
    folder: Path,
    names: Sequence[str],
    figures: Sequence[Path],
    results: Results,
    missing: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """The report as Markdown: what made it, what was not asked, figures, tables."""
    place = results.place
    lines = [
        f"# {place.model}: {place.method}, templates {place.templates}",
        "",
        *(f"`{one}`" for one in results.signatures),
        "",
    ]
    if missing:
        told = "; ".join(f"{lang}: {', '.join(relations)}" for lang, relations in missing.items())
        lines += [
            f"Not asked, so that means over relations are over fewer of them there: {told}.",
            "",
        ]
    lines += [f"![{path.stem}]({path.name})\n" for path in figures if path.suffix == ".png"]
    for name in names:
        body = (folder / f"{name}.md").read_text(encoding="utf-8").partition("-->\n\n")[2]
        lines += [f"## {TITLES[name]}", "", body]
    return "\n".join(lines)
