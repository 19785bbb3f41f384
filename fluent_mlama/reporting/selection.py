"""Which dumps a table speaks of: languages, relations, verbalisations and rows.

``PAPER`` holds the paper's own choices (EMNLP 2025, sections 4 and 5). ``Selection`` turns a folder and the options
into one ``RankTable`` for each (language, relation), all with the same verbalisations and short prompts left out.

The paper's two experiments: which dumps belong to the general table and which to the additional languages'.

In paper style the paper's own languages and relations; in clean style whatever the folder holds that can be compared.

What stands above every clean table and below every graph: what it shows, from which dumps, made how.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pandas as pd

from fluent_mlama.console import UserError, note
from fluent_mlama.ranking.corrected import names_object
from fluent_mlama.records.benchmark import name_columns
from fluent_mlama.reporting.loading import DumpFolder, RankTable
from fluent_mlama.reporting.options import RowRules, StatsOptions

R15 = (
    "P101",
    "P103",
    "P108",
    "P127",
    "P1376",
    "P159",
    "P19",
    "P20",
    "P36",
    "P364",
    "P407",
    "P449",
    "P463",
    "P495",
    "P740",
)
R16 = (*R15[:8], "P264", *R15[8:])
R8 = ("P103", "P108", "P159", "P19", "P36", "P364", "P407", "P740")
R8_INFLECTION = ("P101", "P1376", "P159", "P19", "P20", "P407", "P495", "P740")
SLAVIC = ("ru", "cs", "uk", "hr")
ADDITIONAL = ("es", "zh", "vi", "id", "da")

PAPER_RULES = RowRules("gt")
SHORT_RULES = ("gt", "any", "no")
"""``gt``: the paper's test, on the gt prompt alone; ``any``: the same test on every verbalisation but the template; ``no``: keep all."""


@dataclass(frozen=True)
class Selection:
    """The tables of some languages × relations, with one list of verbalisations and one rule for short prompts."""

    langs: tuple[str, ...]
    relations: tuple[str, ...]
    verbalisations: tuple[str, ...]
    rules: RowRules
    tables: dict[tuple[str, str], RankTable]

    def of(self, lang: str) -> list[RankTable]:
        """The tables of one language in the order of the relations."""
        return [self.tables[lang, relation] for relation in self.relations]

    @property
    def protocol(self) -> str:
        """The protocol that all the dumps share."""
        return next(iter(self.tables.values())).protocol


def select(
    folder: DumpFolder,
    langs: Sequence[str],
    relations: Sequence[str],
    verbalisations: Sequence[str] | None = None,
    rules: RowRules = PAPER_RULES,
) -> Selection:
    """Every language × relation must be there and have every verbalisation, else a ``UserError`` names what lacks."""
    raw = {
        (lang, relation): folder.table(lang, relation) for lang in langs for relation in relations
    }
    names = tuple(verbalisations or _shared_verbalisations(raw.values()))
    for table in raw.values():
        for name in names:
            if name not in table.verbalisations:
                raise UserError(
                    f"{table.name} has no verbalisation '{name}', it has {', '.join(table.verbalisations)}; choose others"
                )
    tables = {
        key: folder.remember(
            (key, names, rules), partial(kept_rows, select_verbalisations(raw[key], names), rules)
        )
        for key in raw
    }
    for table in tables.values():
        if not len(table):
            raise UserError(
                f"{table.name}: every row falls to the rule for short prompts; choose --exclude-short no or leave the file out"
            )
    return Selection(tuple(langs), tuple(relations), names, rules, tables)


def _shared_verbalisations(tables: Iterable[RankTable]) -> tuple[str, ...]:
    first, *others = tables
    for other in others:
        if other.verbalisations != first.verbalisations:
            shared = [v for v in first.verbalisations if v in other.verbalisations]
            raise UserError(
                f"{other.name} has the verbalisations {', '.join(other.verbalisations)} but {first.name} has "
                f"{', '.join(first.verbalisations)}: choose with --verbalisations {','.join(shared)} or with --langs"
            )
    return first.verbalisations


def select_verbalisations(table: RankTable, verbalisations: Sequence[str]) -> RankTable:
    """The table with these verbalisations only (the rows stay)."""
    if tuple(verbalisations) == table.verbalisations:
        return table
    names = list(verbalisations)
    return replace(
        table,
        verbalisations=tuple(names),
        rank=table.rank[names],
        all_forms_rank=None if table.all_forms_rank is None else table.all_forms_rank[names],
        top1=table.top1[names],
        top3=table.top3[names],
        prompt_prob=table.prompt_prob[names],
        form_ranks={v: ranks for v, ranks in table.form_ranks.items() if v in names},
        tied=None if table.tied is None else table.tied[names],
    )


def kept_rows(table: RankTable, rules: RowRules) -> RankTable:
    """The table without the rows whose sentence was cut too early, or whose subject names the object."""
    left_out = short_rows(table, rules.short)
    if table.protocol == "corrected" and not rules.with_named:
        named = named_rows(table) & ~left_out
        table, left_out = replace(table, named=int(named.sum())), left_out | named
    return rows(table, ~left_out) if left_out.any() else table


def named_rows(table: RankTable) -> pd.Series:
    """Rows whose subject's label holds the object's label or form as whole words: no knowledge is needed there."""
    forms = [name_columns(v).object for v in table.verbalisations]
    columns = list(dict.fromkeys(["sub_label", "obj_label", *forms]))
    found = []
    for values in table.facts[columns].itertuples(index=False, name=None):
        cells = dict(zip(columns, values, strict=True))
        found.append(names_object(cells, [cells[form] for form in forms], table.lang))
    return pd.Series(found, index=table.facts.index, dtype=bool)


def rows(table: RankTable, keep: pd.Series) -> RankTable:
    """The table with the rows where ``keep`` is true."""
    kept = keep.to_numpy()
    return replace(
        table,
        facts=table.facts[kept],
        rank=table.rank[kept],
        all_forms_rank=None if table.all_forms_rank is None else table.all_forms_rank[kept],
        top1=table.top1[kept],
        top3=table.top3[kept],
        prompt_prob=table.prompt_prob[kept],
        form_ranks={
            v: [r for r, k in zip(ranks, kept, strict=True) if k]
            for v, ranks in table.form_ranks.items()
        },
        n_distractors=None if table.n_distractors is None else table.n_distractors[kept],
        tied=None if table.tied is None else table.tied[kept],
    )


def short_rows(table: RankTable, rule: str) -> pd.Series:
    """Rows where a prompt is shorter than a third of the mean of the other verbalisations' prompts.

    Rule ``gt`` tests gt against the others as the paper's program does, an empty cell having the three letters of "nan"
    there; rule ``any`` tests each verbalisation but the template.
    """
    if rule not in SHORT_RULES:
        raise UserError(
            f"unknown rule '{rule}' for short prompts: choose from {', '.join(SHORT_RULES)}"
        )
    empty = 3 if rule == "gt" else 0
    lengths = pd.DataFrame(
        {v: table.prompts(v).str.len().replace(0, empty) for v in table.verbalisations},
        index=table.facts.index,
    )
    tested = (
        []
        if rule == "no"
        else [v for v in table.verbalisations if v == "gt" or (rule == "any" and v != "template")]
    )
    short = pd.Series(False, index=table.facts.index)
    for v in tested:
        others = lengths.drop(columns=v)
        if others.shape[1]:
            short |= lengths[v] < others.sum(axis=1) / (3 * others.shape[1])
    return short


def languages_with_most_verbalisations(
    folder: DumpFolder,
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(languages of the richest dumps, all others): the paper compares three verbalisations in four languages, two in five."""
    counts = {
        lang: max(len(t.verbalisations) for t in folder.tables([lang]))
        for lang in folder.languages()
    }
    most = max(counts.values())
    ordered = sorted(
        counts,
        key=lambda lang: (SLAVIC + ADDITIONAL).index(lang) if lang in SLAVIC + ADDITIONAL else 99,
    )
    return tuple(x for x in ordered if counts[x] == most), tuple(
        x for x in ordered if counts[x] < most
    )


def common_relations(
    folders: Sequence[DumpFolder],
    langs: Sequence[str],
    asked: Sequence[str] | None = None,
    verbalisations: Sequence[str] = (),
) -> tuple[str, ...]:
    """The one rule on relations: those that every one of these languages has in every folder where it has dumps, with all of
    these verbalisations and more than one object. What is left out is told.

    asked: of these alone; they may have one object. Raises UserError where none is left.
    """
    if absent := [
        lang for lang in langs if not any(lang in folder.languages() for folder in folders)
    ]:
        there = ", ".join(folders[0].languages())
        raise UserError(
            f"no dump of {', '.join(absent)} in {folders[0].path}: it has {there}; choose with --langs"
        )
    places = [(folder, lang) for folder in folders for lang in langs if lang in folder.languages()]
    seen = dict.fromkeys(
        relation
        for folder, lang in places
        for relation in folder.relations(lang)
        if not asked or relation in asked
    )
    kept, told = [], []
    for relation in sorted(seen):
        here = [(folder, lang) for folder, lang in places if folder.has(lang, relation)]
        tables = [folder.table(lang, relation) for folder, lang in here]
        lonely = [table.lang for table in tables if table.facts["obj_uri"].nunique() == 1]
        if len(here) < len(places):
            told.append(f"{relation} (only {', '.join(dict.fromkeys(lang for _, lang in here))})")
        elif any(not set(verbalisations) <= set(table.verbalisations) for table in tables):
            told.append(f"{relation} (not in every verbalisation)")
        elif lonely and not asked:
            told.append(f"{relation} (one object: {', '.join(dict.fromkeys(lonely))})")
        else:
            kept.append(relation)
    if not kept:
        raise UserError(
            f"{folders[0].path}: no relation is there for all of {', '.join(langs)}; choose fewer with --langs"
        )
    if told:
        note(
            f"left out of {', '.join(langs)}, since all that is compared must have a relation, with two objects: {', '.join(told)}"
        )
    return tuple(kept)


def relations_by_language(
    folders: Sequence[DumpFolder],
    langs: Sequence[str] | None,
    asked: Sequence[str] | None,
    wanted: Sequence[str] | None,
) -> dict[str, tuple[str, ...]]:
    """``common_relations`` of each language: languages with the same verbalisations (of those wanted) are compared with each other."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for lang in langs or dict.fromkeys(lang for folder in folders for lang in folder.languages()):
        here = [folder for folder in folders if lang in folder.languages()]
        names = [
            dict.fromkeys(v for table in folder.tables([lang]) for v in table.verbalisations)
            for folder in here
        ]
        shared = tuple(
            v
            for v in (names[0] if names else ())
            if all(v in own for own in names) and v in (wanted or names[0])
        )
        groups.setdefault(shared, []).append(lang)
    found = {
        names: common_relations(folders, members, asked, names) for names, members in groups.items()
    }
    return {lang: found[names] for names, members in groups.items() for lang in members}


@dataclass(frozen=True)
class Kind:
    """One of the general tables: its file, the paper's choice, its title."""

    name: str
    langs: tuple[str, ...]
    relations: tuple[str, ...]
    title: str


KINDS = {
    "general": Kind("general_table", SLAVIC, R15, "Knowledge retrieval by verbalisation"),
    "general-wide": Kind(
        "general_table_wide",
        SLAVIC,
        R15,
        "Knowledge retrieval by verbalisation, aliases counted as right",
    ),
    "additional-langs": Kind(
        "general_table_additional_langs",
        ADDITIONAL,
        R8,
        "Knowledge retrieval in the additional languages",
    ),
}


def select_for(
    kind_name: str,
    folder: DumpFolder,
    options: StatsOptions,
    preferred: Sequence[str] | None = None,
    langs: Sequence[str] | None = None,
) -> Selection:
    """The dumps of this kind: as asked, else the paper's in paper style, else all that can be compared.

    preferred: the paper's relations where they are not those of the table (Table 2, Figure 3).
    langs: these languages rather than those asked for.
    """
    kind = KINDS[kind_name]
    whole_paper = options.style == "paper" and not options.langs
    chosen = (
        langs
        or options.langs
        or (kind.langs if whole_paper else comparable_languages(kind_name, folder))
    )
    if not chosen:
        raise UserError(
            f"{folder.path}: all languages have the same verbalisations: see the general table, or choose with --langs"
        )
    wanted = preferred or kind.relations
    papers = options.style == "paper" and all(
        folder.has(lang, relation) for lang in chosen for relation in wanted
    )
    relations = options.relations or (
        wanted if whole_paper or papers else common_relations([folder], chosen)
    )
    return select(
        folder,
        chosen,
        relations,
        options.verbalisations,
        options.rules,
    )


def comparable_languages(kind_name: str, folder: DumpFolder) -> tuple[str, ...]:
    """The languages with the most verbalisations (general) or the others (additional)."""
    richest, others = languages_with_most_verbalisations(folder)
    return others if kind_name == "additional-langs" else richest


def both(
    folder: DumpFolder, options: StatsOptions, preferred: Sequence[str] | None = None
) -> list[Selection]:
    """The languages with most verbalisations and the others (if any), each with the relations of its own table."""
    if options.style == "paper" and not options.langs:
        parts = {"general": SLAVIC, "additional-langs": ADDITIONAL}
    else:
        richest, others = languages_with_most_verbalisations(folder)
        wanted = options.langs or richest + others
        poorer = tuple(lang for lang in wanted if lang in others)
        parts = {
            "general": tuple(lang for lang in wanted if lang not in others),
            "additional-langs": poorer,
        }
    return [
        select_for(kind, folder, options, preferred if kind == "general" else None, langs)
        for kind, langs in parts.items()
        if langs
    ]


SHORT_RULE_TEXTS = {
    "gt": "rows whose gt prompt is under a third of the others' length left out",
    "any": "rows with a prompt under a third of the others' length left out",
    "no": "no row left out for its length",
}


def rules_text(rules: RowRules, tables: Iterable[RankTable]) -> str:
    """Which rows are left out, in words, and how many for their subject."""
    told = SHORT_RULE_TEXTS[rules.short]
    named = sum(table.named for table in tables)
    if named:
        told += f"; {named} facts whose subject names the object left out (--with-named)"
    return told


def relation_counts(counted: Sequence[tuple[str, str, int]]) -> str:
    """Which relations and how many facts of each language, from (language, relation, facts); equal lists of relations once."""
    facts: Counter[str] = Counter()
    relations: dict[str, list[str]] = {}
    for lang, relation, size in counted:
        facts[lang] += size
        relations.setdefault(lang, []).append(relation)
    groups: dict[tuple[str, ...], list[str]] = {}
    for lang, own in relations.items():
        groups.setdefault(tuple(own), []).append(lang)
    told = []
    for names, langs in groups.items():
        whole = f"{len(names)} {'relation' if len(names) == 1 else 'relations'} ({' '.join(names)})"
        told.append(f"{whole}; facts: {', '.join(f'{lang} {facts[lang]}' for lang in langs)}")
    return "; ".join(told)


def caption(title: str, selection: Selection) -> str:
    """One sentence: title, languages, relations, facts, rule for short prompts, protocol."""
    counted = [
        (lang, relation, len(selection.tables[lang, relation]))
        for lang in selection.langs
        for relation in selection.relations
    ]
    return (
        f"{title}. Unweighted mean over {relation_counts(counted)}; "
        f"{rules_text(selection.rules, selection.tables.values())}; protocol: {selection.protocol}."
    )


def remarks(
    title: str, selection: Selection, folder: DumpFolder, more: Sequence[str] = ()
) -> list[str]:
    """Caption, further remarks and signature, one line each."""
    return [
        caption(title, selection),
        *more,
        f"signature: {folder.signature(selection.tables.values())}",
    ]
