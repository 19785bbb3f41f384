"""The commands that read results: ``p1``, ``rel-p1``, ``split``, ``bias``, ``pool``, ``uhn``,
``templates``; and ``coverage``.

Each writes its tables as TSV, Markdown and LaTeX (and the paper's figure where there is one) and
prints the main one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import pandas as pd
from cyclopts import Parameter
from tabulate import tabulate

from fluent_mlama.console import UserError
from fluent_mlama.files import check_writable
from fluent_mlama.mlama.measures import (
    bias_by_language,
    bias_table,
    compare_templates,
    coverage_table,
    p1_by_language,
    p1_by_relation,
    relative_p1,
    sample_table,
    split_by_pieces,
    without,
)
from fluent_mlama.mlama.pooling import pooling_by_relation, pooling_table
from fluent_mlama.mlama.query import DEFAULT_OUT
from fluent_mlama.mlama.results import USUAL_TEMPLATES, Place, Results, read_results
from fluent_mlama.mlama.uhn import FILTERS, read_uhn_list, uhn_rows
from fluent_mlama.options import File, Langs, Name, Names, Relations, Seed
from fluent_mlama.reader import MLama
from fluent_mlama.records.results import read_run, run_path
from fluent_mlama.reporting.table_io import write_tables

Tables = dict[str, pd.DataFrame]


Data = Annotated[
    File, Parameter(help="folder or zip in the mLAMA 1.1 layout; starter names what ships")
]
TablesFolder = Annotated[File, Parameter(help="folder of tables and figures")]
TABLES = Path("mlama_tables")


@Parameter(name="*", group="which results")
@dataclass(frozen=True, kw_only=True)
class ResultsOptions:
    """The answers of one model that a table is about."""

    model: Name
    """the model whose results are meant"""
    method: Literal["tyq", "untyq", "causal", "causal-sentence"] | None = None
    """which answers (default: those that are there, if of one method only)"""
    results: File = DEFAULT_OUT
    """folder of the results"""
    name: Name = USUAL_TEMPLATES
    """template set"""
    compat: bool = False
    """the answers with displaced masks"""
    uhn: File | None = None
    """leave out the triples of this list (columns relation, lineid)"""
    langs: Langs | None = None
    """languages, comma-separated (default: all that are there)"""
    relations: Relations | None = None
    """relations, comma-separated (default: all)"""
    tables: TablesFolder = TABLES

    def read(self) -> Results:
        """The results, without the triples of ``uhn``."""
        check_writable(self.tables, "--tables")
        method = self.method or _only_method(self.results, self.model, self.name)
        suffix = "-compat" if self.compat else ""
        place = Place(self.results, self.model, method.removesuffix("-compat") + suffix, self.name)
        results = read_results(place, self.langs, self.relations)
        return without(results, read_uhn_list(self.uhn)) if self.uhn else results

    def of(self, model: str, method: str) -> Results:
        """Those of another model, in all languages."""
        plain: Any = method.removesuffix("-compat")
        return replace(self, model=model, method=plain, langs=None).read()


def show(folder: Path, tables: Tables, remark: str) -> None:
    """Write the tables and print the first."""
    write_tables(folder, tables, remark)
    shown = next(iter(tables.values()))
    print(tabulate(shown.to_numpy().tolist(), list(shown.columns), floatfmt="z.4f"))
    print(f"written to {folder}: {', '.join(tables)}" + (f"\n{remark}" if remark else ""))


def p1(*, which: ResultsOptions, articles: File | None = None) -> None:
    """Precision at 1 by language and relation.

    Args:
        articles: CSV with lang,articles: p1 against the size of each Wikipedia (Figure 6)
    """
    results = which.read()
    remark = " ".join(results.signatures)
    tables = {"p1": p1_by_language(results), "p1_relations": p1_by_relation(results)}
    if articles:
        from fluent_mlama.mlama.figures import articles_table, draw_articles, read_articles

        tables["articles"] = articles_table(tables["p1"], read_articles(articles))
        draw_articles(tables["articles"], which.tables, remark)
    show(which.tables, tables, remark)


def rel_p1(
    *, which: ResultsOptions, reference: Name | None = None, beside: Name | None = None
) -> None:
    """Precision relative to English on the same triples (Figure 3).

    Args:
        reference: the model whose English is 1.0 (default: the model itself)
        beside: a model whose English gets a bar of its own, for example a monolingual one
    """
    from fluent_mlama.mlama.figures import draw_relative

    results = which.read()
    remark, method = " ".join(results.signatures), results.place.method
    table = relative_p1(
        results,
        which.of(reference or which.model, method),
        which.of(beside, method) if beside else None,
    )
    draw_relative(table, which.tables, remark)
    show(which.tables, {"relative_p1": table}, remark)


def split(*, which: ResultsOptions, untyped: bool = False) -> None:
    """Objects of one piece and of several (Figure 2).

    Args:
        untyped: show the untyped answers beside the typed ones
    """
    from fluent_mlama.mlama.figures import draw_split

    results = which.read()
    remark = " ".join(results.signatures)
    by_method = {results.place.method: split_by_pieces(results)}
    if untyped:
        others = replace(which, method="untyq").read()
        by_method = {"untyq": split_by_pieces(others), **by_method}
    draw_split(by_method, which.tables, remark)
    tables = {
        "split" if method == results.place.method else f"split_{method}": table
        for method, table in reversed(by_method.items())
    }
    show(which.tables, tables, remark)


def bias(*, which: ResultsOptions) -> None:
    """The most frequent answers of each language (Tables 1 and 4)."""
    results = which.read()
    table = bias_table(results)
    tables = {"bias": table, "bias_languages": bias_by_language(table)}
    show(which.tables, tables, " ".join(results.signatures))


def pool(*, which: ResultsOptions, seed: Seed = 0) -> None:
    """Languages vote for the answer (Table 3).

    Args:
        seed: of the tie rule 'random'
    """
    results = which.read()
    tables = {
        "pooling": pooling_table(results, seed),
        "pooling_relations": pooling_by_relation(results, seed=seed),
    }
    show(which.tables, tables, " ".join(results.signatures))


def coverage(
    *,
    data: Data,
    langs: Langs | None = None,
    relations: Relations | None = None,
    tables: TablesFolder = TABLES,
) -> None:
    """What the data holds in each language (Figure 1)."""
    from fluent_mlama.mlama.figures import draw_coverage

    check_writable(tables, "--tables")
    source, remark = MLama(data), f"data {data.name}"
    table = coverage_table(source, langs, relations)
    draw_coverage(table, tables, remark)
    show(tables, {"coverage": table, "samples": sample_table(source, langs, relations)}, remark)


Filters = Annotated[Names, Parameter(help=f"of {', '.join(FILTERS)}")]


def uhn(
    *,
    data: Data,
    filters: Filters = ("string",),
    names_model: Name | None = None,
    model: Name | None = None,
    method: Literal["tyq", "untyq", "causal", "causal-sentence"] | None = None,
    results: File = DEFAULT_OUT,
    name: Name = USUAL_TEMPLATES,
    compat: bool = False,
    langs: Langs | None = None,
    relations: Relations | None = None,
    tables: TablesFolder = TABLES,
) -> None:
    """Leave out facts that a name gives away (LAMA-UHN); with --model what is left of its answers.

    Args:
        names_model: masked model for the name filter, for example bert-base-cased
        model: the model whose results are meant (default: write the list alone)
        method: which answers
        results: folder of the results
        name: template set
        compat: the answers with displaced masks
    """
    check_writable(tables, "--tables")
    if model is None:
        dropped = uhn_list(MLama(data), filters, names_model, relations)
        show(tables, {"uhn_list": dropped}, f"filters {','.join(filters)}")
        return
    which = ResultsOptions(
        model=model,
        method=method,
        results=results,
        name=name,
        compat=compat,
        langs=langs,
        relations=relations,
        tables=tables,
    )
    found = which.read()
    dropped = uhn_list(MLama(data), filters, names_model, relations)
    show(tables, uhn_tables(found, dropped), " ".join(found.signatures))


def uhn_list(
    data: MLama,
    filters: Sequence[str],
    names_model: str | None,
    relations: Sequence[str] | None,
) -> pd.DataFrame:
    """The English triples that the filters leave out."""
    likeliest = None
    if "name" in filters and names_model:
        from fluent_mlama.scoring.masked import load_masked_scorer

        likeliest = load_masked_scorer(names_model).likeliest
    facts = {
        relation: data.triples("en", relation) for relation in data.select(["en"], relations)["en"]
    }
    return uhn_rows(facts, filters, likeliest)


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


def templates(
    *,
    which: ResultsOptions,
    others: Annotated[
        Names,
        Parameter(name="--with", help="names of further template sets, compared with --name"),
    ],
) -> None:
    """Compare template sets."""
    results = which.read()
    sets: dict[str, Results] = {which.name: results}
    for other in others:
        place = Place(which.results, which.model, results.place.method, other)
        sets[other] = read_results(place, which.langs, which.relations)
    used = {name: templates_of(one) for name, one in sets.items()}
    tables = {"templates": compare_templates(sets, used)}
    show(which.tables, tables, " ".join(results.signatures))


def _only_method(out: Path, model: str, templates: str) -> str:
    folder = Place(out, model, "", templates).folder.parent
    present = (
        sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    )
    if not present:
        raise UserError(f"no results in {folder}; run: fluent-mlama mlama query --model {model}")
    if len(present) > 1:
        raise UserError(
            f"{folder} has answers of {', '.join(present)}; choose one with --method (they are "
            "never mixed)"
        )
    return present[0]


def templates_of(results: Results) -> dict[str, dict[str, str]]:
    """lang -> relation -> the template that was used, from the records."""
    found: dict[str, dict[str, str]] = {}
    for lang, frames in results.frames.items():
        for relation in frames:
            record = read_run(run_path(results.place.file(lang, relation)))
            found.setdefault(lang, {})[relation] = str(record.extras["settings"]["template"])
    return found
