"""Make everything that is made from the facts and the phrasebook: ``python -m fluent_mlama.data.build``.

* ``starter/{lang}/{relation}.jsonl`` and ``templates.jsonl``, the mLAMA 1.1 layout;
* ``benchmark/{lang}_{relation}_phrasebook.tsv``, benchmark files (template and phrasebook);
* ``chatgpt_prompts/starter/{lang}_{relation}.txt``, few-shot prompts from facts that stand in none of the former;
* the tables of counts and of corrections in ``README.md``, when all languages are built.

The same files give the same bytes; a language whose phrasebook has mistakes is refused.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd
from tabulate import tabulate

from fluent_mlama.console import ArgumentParser, UserError, run_main, split_list
from fluent_mlama.records.atomic import write_text
from fluent_mlama.records.benchmark import (
    Benchmark,
    join_aliases,
    make_benchmark,
    name_columns,
    write_benchmark,
)
from fluent_mlama.records.few_shot import FewShot, Shot, write_few_shot
from fluent_mlama.translating.openai_chat import instruction
from fluent_mlama.translating.phrasebook import SOURCE, Phrasebook, Sentence
from fluent_mlama.translating.phrasebook_check import languages, mistakes
from fluent_mlama.translating.phrasebook_rows import DATA, Fact, read_cells, read_facts

ROOT = Path(__file__).resolve().parents[2]
"""The repository: shipped files are made in a checkout."""
_PLACE = Path("fluent_mlama") / "data"
SPEC = "phrasebook"


def benchmark_facts(facts: Sequence[Fact], relation: str) -> list[Fact]:
    """The facts of one relation that benchmark files hold; their place in the list is their ``lineid``."""
    return [fact for fact in facts if fact.relation == relation and not fact.held_out]


def relations(facts: Sequence[Fact]) -> list[str]:
    """The relations, in file order."""
    return list(dict.fromkeys(fact.relation for fact in facts))


def triples(
    book: Phrasebook, facts: Sequence[Fact], relation: str
) -> Iterator[dict[str, str | int]]:
    """The lines of a relation file as mLAMA 1.1 has them; ``uuid`` names the fact, alike in every language."""
    for lineid, fact in enumerate(benchmark_facts(facts, relation)):
        yield {
            "sub_uri": fact.sub_uri,
            "obj_uri": fact.obj_uri,
            "obj_label": book.entry(fact.obj_uri).label,
            "sub_label": book.entry(fact.sub_uri).label,
            "lineid": lineid,
            "uuid": str(
                uuid.uuid5(
                    uuid.NAMESPACE_URL,
                    f"https://www.wikidata.org/wiki/{fact.sub_uri}#{relation}:{fact.obj_uri}",
                )
            ),
        }


def benchmark(
    book: Phrasebook, english: Phrasebook, facts: Sequence[Fact], relation: str
) -> Benchmark:
    """The benchmark file of one relation: the naive template and the fluent sentence of each fact."""
    rows = []
    for fact in benchmark_facts(facts, relation):
        key = (relation, fact.sub_uri, fact.obj_uri)
        target, english_object = book.entry(fact.obj_uri), english.entry(fact.obj_uri)
        aliases = [
            english_object.label,
            *english_object.aliases,
            *(alias for alias in target.aliases),
        ]
        naive, fluent = _cells("template", book.naive(*key)), _cells(SPEC, book.fluent(*key))
        rows.append(
            {
                "sub_uri": fact.sub_uri,
                "en_sub_label": english.entry(fact.sub_uri).label,
                "sub_label": book.entry(fact.sub_uri).label,
                "obj_uri": fact.obj_uri,
                "en_obj_label": english_object.label,
                "obj_label": target.label,
                "en_template": english.naive(*key).sentence,
                **{column: cell for column, cell in naive.items() if column != "obj_label"},
                **fluent,
                "aliases": join_aliases(list(dict.fromkeys(aliases))),
            }
        )
    return make_benchmark(book.language.code, relation, SPEC, pd.DataFrame(rows))


def few_shot(
    book: Phrasebook, english: Phrasebook, facts: Sequence[Fact], relation: str
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


def counts(books: Sequence[Phrasebook], facts: Sequence[Fact]) -> str:
    """The sizes of all this as Markdown: relations by row; what differs between languages by language."""
    rows = []
    for relation in relations(facts):
        shipped = benchmark_facts(facts, relation)
        objects = Counter(fact.obj_uri for fact in shipped)
        held_out = sum(fact.relation == relation and fact.held_out for fact in facts)
        repeated = sum(number > 1 for number in objects.values())
        rows.append(
            (
                relation,
                len(shipped),
                len({fact.sub_uri for fact in shipped}),
                len(objects),
                repeated,
                held_out,
            )
        )
    totals = [sum(sizes) for sizes in zip(*(row[1:] for row in rows), strict=True)]
    by_relation = tabulate(
        [*rows, ("all", *totals)],
        ["relation", "facts", "subjects", "objects", "objects of several facts", "held out"],
        "github",
    )
    by_language = tabulate(
        [_language_row(book, facts) for book in books if book.language.code != SOURCE],
        _LANGUAGE_HEAD,
        "github",
    )
    return f"{by_relation}\n\n{by_language}\n"


_LANGUAGE_HEAD = (
    "language",
    "entities",
    "object form ≠ label",
    "multi-word objects",
    "words after the object",
    "subject holds object",
    "aliases",
)


def _language_row(
    book: Phrasebook, facts: Sequence[Fact]
) -> tuple[str, int, int, int, int, int, int]:
    shipped = [fact for fact in facts if not fact.held_out]
    said = [
        (book.fluent(fact.relation, fact.sub_uri, fact.obj_uri), book.entry(fact.obj_uri))
        for fact in shipped
    ]
    return (
        book.language.code,
        len(book.entries),
        sum(sentence.object != entry.label for sentence, entry in said),
        sum(" " in entry.label for _, entry in said),
        sum(not _ends_sentence(sentence.tail) for sentence, _ in said),
        sum(book.entry(fact.obj_uri).label in book.entry(fact.sub_uri).label for fact in shipped),
        sum(len(entry.aliases) for entry in book.entries.values()),
    )


def corrections() -> str:
    """What fresh readers changed (``review``) as Markdown, by language and by what the changed cell is."""
    rows = []
    for path in sorted((DATA / "review").glob("*.tsv")):
        found = read_cells(path)
        changed = [row for row in found if row["before"] != row["after"]]
        kinds = Counter(
            "patterns" if row["file"] == "patterns" else row["column"] for row in changed
        )
        sizes = (
            kinds.pop("patterns", 0),
            kinds.pop("class", 0),
            kinds.pop("aliases", 0),
            sum(kinds.values()),
        )
        rows.append((path.stem, len(changed), *sizes, len(found) - len(changed)))
    head = [
        "language",
        "corrections",
        "patterns",
        "classes",
        "aliases",
        "names, nouns, forms",
        "asked and left",
    ]
    return tabulate(rows, head, "github") + "\n"


def _cells(verbalisation: str, said: Sentence) -> dict[str, str]:
    names = name_columns(verbalisation)
    status = "ok" if _ends_sentence(said.tail) else "ok;not-final"
    values = (said.sentence, said.prompt, said.object, said.tail, status)
    return {name: value for name, value in zip(names, values, strict=True) if name}


def _ends_sentence(tail: str) -> bool:
    return not any(character.isalnum() for character in tail)


def build(root: Path, codes: Sequence[str], facts: Sequence[Fact]) -> int:
    """Write the files of these languages below ``root``; returns how many."""
    english, books, written = Phrasebook(SOURCE), [Phrasebook(code) for code in codes], 0
    for book in books:
        wrong = list(mistakes(book, facts))
        if wrong:
            command = (
                f"python -m fluent_mlama.translating.phrasebook_check --lang {book.language.code}"
            )
            raise UserError(
                f"{book.path} is not finished ({len(wrong)} mistakes, the first: {wrong[0]}); `{command}` lists them"
            )
    for book in books:
        code = book.language.code
        folder = root / _PLACE / "starter" / code
        templates = [
            {"relation": relation, "template": book.pattern(relation).template}
            for relation in relations(facts)
        ]
        write_text(folder / "templates.jsonl", _json_lines(templates))
        for relation in relations(facts):
            write_text(folder / f"{relation}.jsonl", _json_lines(triples(book, facts, relation)))
            written += 1
            if code != SOURCE:
                write_benchmark(
                    benchmark(book, english, facts, relation), root / _PLACE / "benchmark"
                )
                write_few_shot(
                    root / "chatgpt_prompts" / "starter",
                    code,
                    relation,
                    few_shot(book, english, facts, relation),
                )
                written += 2
        written += 1
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


def _json_lines(rows: Iterator[dict[str, str | int]] | Sequence[dict[str, str]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Build all languages, or those of ``--lang``."""
    parser = ArgumentParser(
        prog="python -m fluent_mlama.data.build",
        description="Make the starter benchmark from the facts and the phrasebook.",
    )
    parser.add_argument(
        "--lang",
        default="",
        help="language codes, comma-separated (default: all that have a pattern file)",
    )
    parser.add_argument(
        "--out", type=Path, default=ROOT, help="folder to write below (default: the repository)"
    )
    chosen = parser.parse_args(arguments)
    codes = split_list(chosen.lang) or languages()
    print(
        f"{build(chosen.out, codes, read_facts())} files of {', '.join(codes)} written below {chosen.out}"
    )
    return 0


if __name__ == "__main__":
    run_main(main)
