"""What stands above every clean table and below every graph: what it shows, from which dumps, made how."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from fluent_mlama.reporting.loading import DumpFolder, RankTable
from fluent_mlama.reporting.options import RowRules
from fluent_mlama.reporting.selection import Selection

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
