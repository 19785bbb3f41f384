"""The paper's two experiments: which dumps belong to the general table and which to the additional languages'.

In paper style the paper's own languages and relations; in clean style whatever the folder holds that can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fluent_mlama.console import UserError
from fluent_mlama.reporting.loading import DumpFolder
from fluent_mlama.reporting.options import StatsOptions
from fluent_mlama.reporting.selection import (
    ADDITIONAL,
    R8,
    R15,
    SLAVIC,
    Selection,
    common_relations,
    languages_with_most_verbalisations,
    select,
)


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
