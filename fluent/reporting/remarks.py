"""What stands above every clean table and below every graph: what it shows, from which dumps, made how."""

from __future__ import annotations

from collections.abc import Sequence

from fluent.reporting.loading import DumpFolder
from fluent.reporting.selection import Selection

SHORT_RULE_TEXTS = {
    "gt": "rows whose gt prompt is under a third of the others' length left out",
    "any": "rows with a prompt under a third of the others' length left out",
    "no": "no row left out for its length",
}


def caption(title: str, selection: Selection) -> str:
    """One sentence: title, languages, relations, facts, rule for short prompts, protocol."""
    number = len(selection.relations)
    facts = ", ".join(f"{lang} {sum(map(len, selection.of(lang)))}" for lang in selection.langs)
    return (
        f"{title}. Unweighted mean over {number} {'relation' if number == 1 else 'relations'} ({' '.join(selection.relations)}); "
        f"facts: {facts}; "
        f"{SHORT_RULE_TEXTS[selection.short_rule]}; protocol: {selection.protocol}."
    )


def remarks(title: str, selection: Selection, folder: DumpFolder, more: Sequence[str] = ()) -> list[str]:
    """Caption, further remarks and signature, one line each."""
    return [caption(title, selection), *more, f"signature: {folder.signature(selection.tables.values())}"]
