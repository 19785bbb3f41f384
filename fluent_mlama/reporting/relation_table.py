"""Table 4: the English template of each relation, its facts in each language, and how many distractors they had."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from tabulate import tabulate

from fluent_mlama.console import UserError
from fluent_mlama.ranking.paper import MAX_DISTRACTORS
from fluent_mlama.reporting.latex import Column, Raw, booktabs_in_blocks, escape, write_table
from fluent_mlama.reporting.loading import DumpFolder, RankTable, open_dumps
from fluent_mlama.reporting.measures import distractor_counts, published_pool
from fluent_mlama.reporting.options import StatsOptions
from fluent_mlama.reporting.selection import ADDITIONAL, R15, SLAVIC

NAME = "relation_table_all"


def relations(*, options: StatsOptions = StatsOptions()) -> None:
    """Facts and distractors of each relation (Table 4)."""
    write_relation_table(open_dumps(options.dumps), options)


def write_relation_table(folder: DumpFolder, options: StatsOptions) -> Path:
    """Select, lay out and write; a language that the folder lacks is a ``UserError``."""
    paper = options.style == "paper"
    langs = options.langs or ((*SLAVIC, *ADDITIONAL) if paper else ordered(folder.languages()))
    for lang in langs:
        if lang not in folder.languages():
            raise UserError(
                f"no dump of {lang} in {folder.path}: it has {', '.join(folder.languages())}; choose with --langs"
            )
    there = {relation for lang in langs for relation in folder.relations(lang)}
    wanted = options.relations or (R15 if paper and there.issuperset(R15) else tuple(sorted(there)))
    for relation in wanted:
        if relation not in there:
            raise UserError(
                f"no dump of {relation} for {', '.join(langs)} in {folder.path}; choose with --relations"
            )
    tables = {(t.lang, t.relation): t for t in folder.tables(langs, wanted)}
    templates = {
        r: english_template([t for t in tables.values() if t.relation == r]) for r in wanted
    }
    if paper:
        return write_table(options.tables, NAME, paper_layout(langs, wanted, templates, tables))
    comments = [
        f"Facts scored, before any are left out for their length; subscript: distractors of a fact where fewer than {MAX_DISTRACTORS}.",
        f"signature: {folder.signature(tables.values())}",
    ]
    return write_table(
        options.tables, NAME, clean_layout(langs, wanted, templates, tables), comments
    )


def ordered(langs: Iterable[str]) -> tuple[str, ...]:
    """The paper's languages in the paper's order, then the others alphabetically."""
    known = SLAVIC + ADDITIONAL
    return tuple(
        sorted(langs, key=lambda lang: (known.index(lang) if lang in known else len(known), lang))
    )


def english_template(tables: Sequence[RankTable]) -> str:
    """The relation's English template, won back from its sentences: "[X] was born in [Y] .".

    In every row the subject's and the object's English labels become [X] and [Y]; the outcome that most rows agree on is
    the template (all rows of the published files but those whose labels contain each other agree).
    """
    found: Counter[str] = Counter()
    named = ("en_template", "en_sub_label", "en_obj_label")
    for table in tables:
        columns = [table.facts[name] for name in named if name in table.facts]
        if len(columns) < len(named):
            continue
        for sentence, subject, object_label in zip(*columns, strict=True):
            if (
                subject
                and object_label
                and sentence.count(subject) == 1
                and sentence.count(object_label) == 1
            ):
                found[sentence.replace(subject, "[X]").replace(object_label, "[Y]")] += 1
    whole = [
        (count, template)
        for template, count in found.items()
        if "[X]" in template and "[Y]" in template
    ]
    if not whole:
        names = ", ".join(table.name for table in tables)
        raise UserError(
            f"{names}: no English sentence holds the labels of its subject and object, so the template stays unknown"
        )
    return max(whole)[1]


def paper_layout(
    langs: Sequence[str],
    relations: Sequence[str],
    templates: dict[str, str],
    tables: dict[tuple[str, str], RankTable],
) -> str:
    """The published layout, with the published (wrong) pool sizes."""

    def cell(lang: str, relation: str) -> str:
        table = tables.get((lang, relation))
        if table is None:
            return "--"
        size = published_pool(table)
        return str(len(table)) if size == MAX_DISTRACTORS else f"{len(table)}_{{{size}}}"

    rows = [
        [relation, escape(templates[relation]), *(cell(lang, relation) for lang in langs)]
        for relation in relations
    ]
    text = tabulate(
        rows,
        headers=[r"\makecell{Relation\\ID}", "en Template", *langs],
        tablefmt="latex_raw",
        disable_numparse=True,
    )
    _, _, rest = text.partition("\n")
    return f"\\begin{{tabular}}{{{'|l' * (len(langs) + 2)}|}}\n{rest}"


def clean_layout(
    langs: Sequence[str],
    relations: Sequence[str],
    templates: dict[str, str],
    tables: dict[tuple[str, str], RankTable],
) -> str:
    """Ours, with true distractor counts."""
    cells = {key: _cell(table) for key, table in tables.items()}
    columns = [Column("Relation", "l"), Column("English template", "l"), *map(Column, langs)]
    rows = [
        [r, templates[r], *(cells.get((lang, r), Raw("--")) for lang in langs)] for r in relations
    ]
    return booktabs_in_blocks(columns, rows, repeated=2)


def _cell(table: RankTable) -> Raw:
    counts = distractor_counts(table)
    low, high = int(counts.min()), int(counts.max())
    if low >= MAX_DISTRACTORS:
        return Raw(len(table))
    return Raw(rf"{len(table)}\textsubscript{{{low if low == high else f'{low}--{high}'}}}")
