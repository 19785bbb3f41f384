"""``report``: ask what has not been asked yet, then every table and figure in one go, with a page
that shows them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from fluent_mlama.console import UserError, note
from fluent_mlama.files import check_writable, write_text
from fluent_mlama.mlama.analyse import Tables, uhn_tables
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
    bias_by_language,
    bias_table,
    coverage_table,
    p1_by_language,
    p1_by_relation,
    relative_p1,
    sample_table,
    split_by_pieces,
)
from fluent_mlama.mlama.pooling import pooling_by_relation, pooling_table
from fluent_mlama.mlama.query import AskingOptions, query
from fluent_mlama.mlama.results import Results, read_results
from fluent_mlama.mlama.uhn import uhn_rows
from fluent_mlama.options import ClusterOptions, File, LoadOptions
from fluent_mlama.reader import MLama
from fluent_mlama.reporting.table_io import write_tables

TITLES = {
    "coverage": "Triples of each language (Figure 1)",
    "samples": "Filled templates (Figures 4 and 5)",
    "p1": "Precision at 1",
    "p1_relations": "Precision at 1 by relation",
    "relative_p1": "Relative precision, on the same triples (Figure 3)",
    "split": "Objects of one piece and of several (Figure 2)",
    "bias": "Most frequent answers (Tables 1 and 4)",
    "bias_languages": "How concentrated the answers are",
    "pooling": "Languages pooled (Table 3)",
    "pooling_relations": "Languages pooled, by relation",
    "uhn": "Without names that give the answer away (LAMA-UHN, string filter)",
    "uhn_pooling": "Languages pooled, LAMA-UHN",
    "uhn_list": "Triples that LAMA-UHN leaves out",
    "articles": "Precision and the size of Wikipedia (Figure 6)",
}


def report(
    *,
    asking: AskingOptions,
    method: Literal["tyq", "untyq", "causal", "causal-sentence"] | None = None,
    loading: LoadOptions = LoadOptions(),
    where: ClusterOptions = ClusterOptions(),
    tables: File = Path("mlama_report"),
    articles: File | None = None,
) -> None:
    """Ask what has not been asked yet, then write every table and figure in one go.

        fluent-mlama mlama report --model smollm2 --data starter -l en,es,ru,zh

    Args:
        method: tyq for a masked model and causal for a causal one, unless you say otherwise
        tables: folder of the report
        articles: CSV with lang,articles (Figure 6)
    """
    data = MLama(asking.data)
    sizes = read_articles(articles) if articles else None
    check_writable(tables, "--tables")
    options = asking.of(
        asking.model,
        method or method_for(asking.model, loading.revision),
        loading,
        where.cluster(),
    )
    query(data, options, asking.langs, asking.relations)
    results = read_results(options.place, asking.langs, asking.relations)
    remark = " ".join(results.signatures)
    folder = tables
    found: Tables = {
        "coverage": coverage_table(data, asking.langs, asking.relations),
        "samples": sample_table(data, asking.langs, asking.relations), **result_tables(results),
    }  # fmt: skip
    if ENGLISH in results.frames:
        facts = {relation: data.triples(ENGLISH, relation) for relation in results.frames[ENGLISH]}
        found |= uhn_tables(results, uhn_rows(facts, ["string"]))
    figures = [
        *draw_coverage(found["coverage"], folder, remark),
        *draw_split({options.method: found["split"]}, folder, remark),
    ]
    if "relative_p1" in found:
        figures += draw_relative(found["relative_p1"], folder, remark)
    if sizes is not None:
        found["articles"] = articles_table(found["p1"], sizes)
        figures += draw_articles(found["articles"], folder, remark)
    write_tables(folder, found, remark)
    chosen = data.select(asking.langs, asking.relations)
    write_text(
        folder / "report.md",
        page(folder, list(found), figures, results, left_out(chosen, results)),
    )
    print(
        f"{len(found)} tables and {len(figures) // 2} figures are in {folder}; "
        f"{folder / 'report.md'} shows them\n{remark}"
    )


def method_for(model: str, revision: str | None) -> str:
    """The usual method for this kind of model, read off its config."""
    from fluent_mlama.scoring.models import is_masked

    return "tyq" if is_masked(model, revision) else "causal"


def result_tables(results: Results) -> Tables:
    """Everything that the results alone allow; what needs English or a second language is left out
    with a note.
    """
    bias = bias_table(results)
    tables: Tables = {
        "p1": p1_by_language(results),
        "p1_relations": p1_by_relation(results),
        "split": split_by_pieces(results),
        "bias": bias,
        "bias_languages": bias_by_language(bias),
    }
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
    """lang -> relations that were chosen but not asked, for languages that lack any."""
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
        lists = "; ".join(f"{lang}: {', '.join(relations)}" for lang, relations in missing.items())
        lines += [
            f"Not asked, so that means over relations are over fewer of them there: {lists}.",
            "",
        ]
    lines += [f"![{path.stem}]({path.name})\n" for path in figures if path.suffix == ".png"]
    for name in names:
        body = (folder / f"{name}.md").read_text(encoding="utf-8").partition("-->\n\n")[2]
        lines += [f"## {TITLES[name]}", "", body]
    return "\n".join(lines)
