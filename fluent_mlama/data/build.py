"""Make everything that is made from the facts and the phrasebook.

    python -m fluent_mlama.data.build

* ``starter/{lang}/{relation}.jsonl`` and ``templates.jsonl``, the mLAMA 1.1 layout;
* ``benchmark/{lang}_{relation}_phrasebook.tsv``, benchmark files (template and phrasebook);
* ``chatgpt_prompts/starter/{lang}_{relation}.txt``, few-shot prompts from facts in none of these;
* the tables of counts and of corrections in ``README.md``, when all languages are built.

The same files give the same bytes; a language whose phrasebook has mistakes is refused.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd
from tabulate import tabulate

from fluent_mlama.command_line import run_command
from fluent_mlama.console import UserError, run_main
from fluent_mlama.data import DATA
from fluent_mlama.files import write_text
from fluent_mlama.options import File, Langs
from fluent_mlama.records.benchmark import (
    Benchmark,
    join_aliases,
    make_benchmark,
    name_columns,
    write_benchmark,
)
from fluent_mlama.records.few_shot import FewShot, Shot, write_few_shot
from fluent_mlama.translating.openai_chat import instruction
from fluent_mlama.translating.phrasebook import (
    SOURCE,
    Phrasebook,
    Sentence,
    StarterFact,
    read_cells,
    read_facts,
)
from fluent_mlama.translating.phrasebook_check import languages, mistakes

ROOT = Path(__file__).resolve().parents[2]
"""The repository: shipped files are made in a checkout."""
_PLACE = Path("fluent_mlama") / "data"
VARIANT = "phrasebook"


def benchmark_facts(facts: Sequence[StarterFact], relation: str) -> list[StarterFact]:
    """The facts of one relation that benchmark files hold; their place in the list is their
    ``lineid``.
    """
    return [fact for fact in facts if fact.relation == relation and not fact.held_out]


def relations(facts: Sequence[StarterFact]) -> list[str]:
    """The relations, in file order."""
    return list(dict.fromkeys(fact.relation for fact in facts))


def triples(
    book: Phrasebook, facts: Sequence[StarterFact], relation: str
) -> Iterator[dict[str, str | int]]:
    """The lines of a relation file as mLAMA 1.1 has them; ``uuid`` names the fact, alike in every
    language.
    """
    for lineid, fact in enumerate(benchmark_facts(facts, relation)):
        page = f"https://www.wikidata.org/wiki/{fact.sub_uri}"
        address = f"{page}#{relation}:{fact.obj_uri}"
        yield {
            "sub_uri": fact.sub_uri,
            "obj_uri": fact.obj_uri,
            "obj_label": book.entry(fact.obj_uri).label,
            "sub_label": book.entry(fact.sub_uri).label,
            "lineid": lineid,
            "uuid": str(uuid.uuid5(uuid.NAMESPACE_URL, address)),
        }


def benchmark(
    book: Phrasebook, english: Phrasebook, facts: Sequence[StarterFact], relation: str
) -> Benchmark:
    """The benchmark file of one relation: naive template and fluent sentence of each fact."""
    rows = []
    for fact in benchmark_facts(facts, relation):
        key = (relation, fact.sub_uri, fact.obj_uri)
        target, english_object = book.entry(fact.obj_uri), english.entry(fact.obj_uri)
        aliases = [english_object.label, *english_object.aliases, *target.aliases]
        naive, fluent = _cells("template", book.naive(*key)), _cells(VARIANT, book.fluent(*key))
        del naive["obj_label"]  # the entry's own, below
        rows.append(
            {
                "sub_uri": fact.sub_uri,
                "en_sub_label": english.entry(fact.sub_uri).label,
                "sub_label": book.entry(fact.sub_uri).label,
                "obj_uri": fact.obj_uri,
                "en_obj_label": english_object.label,
                "obj_label": target.label,
                "en_template": english.naive(*key).sentence,
                **naive,
                **fluent,
                "aliases": join_aliases(list(dict.fromkeys(aliases))),
            }
        )
    return make_benchmark(book.language.code, relation, VARIANT, pd.DataFrame(rows))


def few_shot(
    book: Phrasebook, english: Phrasebook, facts: Sequence[StarterFact], relation: str
) -> FewShot:
    """The held-out facts of one relation as examples for a translating model."""
    shots = [
        Shot(
            source=english.naive(relation, fact.sub_uri, fact.obj_uri).sentence,
            subject=book.entry(fact.sub_uri).label,
            object=book.entry(fact.obj_uri).label,
            translation=book.fluent(relation, fact.sub_uri, fact.obj_uri).sentence,
        )
        for fact in facts
        if fact.relation == relation and fact.held_out
    ]
    return FewShot(instruction(book.language.code), tuple(shots))


def counts(books: Sequence[Phrasebook], facts: Sequence[StarterFact]) -> str:
    """The sizes of all this as Markdown: relations by row, then what differs between languages."""
    rows = []
    for relation in relations(facts):
        shipped = benchmark_facts(facts, relation)
        objects = Counter(fact.obj_uri for fact in shipped)
        subjects = {fact.sub_uri for fact in shipped}
        repeated = sum(number > 1 for number in objects.values())
        held_out = sum(fact.relation == relation and fact.held_out for fact in facts)
        sizes = (len(shipped), len(subjects), len(objects), repeated, held_out)
        rows.append((relation, *sizes))
    totals = [sum(sizes) for sizes in zip(*(row[1:] for row in rows), strict=True)]
    heads = ["relation", "facts", "subjects", "objects", "objects of several facts", "held out"]
    by_relation = tabulate([*rows, ("all", *totals)], heads, "github")
    targets = [book for book in books if book.language.code != SOURCE]
    by_language = tabulate(
        [_sizes(book, facts) for book in targets], headers="keys", tablefmt="github"
    )
    return f"{by_relation}\n\n{by_language}\n"


def _sizes(book: Phrasebook, facts: Sequence[StarterFact]) -> dict[str, str | int]:
    """What differs between languages, by column of the card."""
    shipped = [fact for fact in facts if not fact.held_out]
    said = [
        (book.fluent(fact.relation, fact.sub_uri, fact.obj_uri), book.entry(fact.obj_uri))
        for fact in shipped
    ]
    names = [(book.entry(fact.sub_uri).label, book.entry(fact.obj_uri).label) for fact in shipped]
    return {
        "language": book.language.code,
        "entities": len(book.entries),
        "object form ≠ label": sum(sentence.object != entry.label for sentence, entry in said),
        "multi-word objects": sum(" " in entry.label for _, entry in said),
        "words after the object": sum(not _ends_sentence(s.tail) for s, _ in said),
        "subject holds object": sum(target in subject for subject, target in names),
        "aliases": sum(len(entry.aliases) for entry in book.entries.values()),
    }


def corrections() -> str:
    """What fresh readers changed (``review``), by language and by what the changed cell is."""
    rows = []
    for path in sorted((DATA / "review").glob("*.tsv")):
        found = read_cells(path)
        changed = [row for row in found if row["before"] != row["after"]]
        kinds = Counter(
            "patterns" if row["file"] == "patterns" else row["column"] for row in changed
        )
        patterns, classes, aliases = (kinds.pop(one, 0) for one in ("patterns", "class", "aliases"))
        rows.append(
            {
                "language": path.stem,
                "corrections": len(changed),
                "patterns": patterns,
                "classes": classes,
                "aliases": aliases,
                "names, nouns, forms": kinds.total(),
                "asked and left": len(found) - len(changed),
            }
        )
    return tabulate(rows, headers="keys", tablefmt="github") + "\n"


def _cells(verbalisation: str, said: Sentence) -> dict[str, str]:
    names = name_columns(verbalisation)
    status = "ok" if _ends_sentence(said.tail) else "ok;not-final"
    values = (said.sentence, said.prompt, said.object, said.tail, status)
    return {name: value for name, value in zip(names, values, strict=True) if name}


def _ends_sentence(tail: str) -> bool:
    return not any(character.isalnum() for character in tail)


def build(root: Path, codes: Sequence[str], facts: Sequence[StarterFact]) -> int:
    """Write the files of these languages below ``root``; returns how many."""
    english, books, written = Phrasebook(SOURCE), [Phrasebook(code) for code in codes], 0
    for book in books:
        wrong = list(mistakes(book, facts))
        if wrong:
            check = "python -m fluent_mlama.translating.phrasebook_check"
            raise UserError(
                f"{book.path} is not finished ({len(wrong)} mistakes, the first: {wrong[0]}); "
                f"`{check} --langs {book.language.code}` lists them"
            )
    prompts, benchmarks = root / "chatgpt_prompts" / "starter", root / _PLACE / "benchmark"
    for book in books:
        code = book.language.code
        folder = root / _PLACE / "starter" / code
        names = relations(facts)
        templates = [{"relation": one, "template": book.pattern(one).template} for one in names]
        write_text(folder / "templates.jsonl", _json_lines(templates))
        for relation in names:
            write_text(folder / f"{relation}.jsonl", _json_lines(triples(book, facts, relation)))
            if code != SOURCE:
                write_benchmark(benchmark(book, english, facts, relation), benchmarks)
                examples = few_shot(book, english, facts, relation)
                write_few_shot(prompts, code, relation, examples)
        written += 1 + len(names) * (1 if code == SOURCE else 3)
    if set(codes) < set(languages()):
        return written  # the card tells the sizes of the whole
    card = (ROOT / _PLACE / "README.md").read_text(encoding="utf-8")
    for name, table in (("counts", counts(books, facts)), ("corrections", corrections())):
        card = _replace_between(card, f"<!-- {name} -->\n", f"<!-- /{name} -->", table)
    write_text(root / _PLACE / "README.md", card)
    return written + 1


def _replace_between(text: str, start: str, end: str, new: str) -> str:
    before, _, rest = text.partition(start)
    return before + start + new + end + rest.partition(end)[2]


def _json_lines(rows: Iterable[Mapping[str, str | int]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def main(words: Sequence[str] | None = None) -> int:
    """The command line of the build."""
    return run_command(build_starter, words, program="python -m fluent_mlama.data.build")


def build_starter(*, langs: Langs = (), out: File = ROOT) -> None:
    """Make the starter benchmark (default: all languages) from the facts and the phrasebook.

    Args:
        out: folder to write below
    """
    codes = langs or languages()
    written = build(out, codes, read_facts())
    print(f"{written} files of {', '.join(codes)} written below {out}")


if __name__ == "__main__":
    run_main(main)
