"""``build``: mLAMA again for any language, from English LAMA: templates translated, labels from
Wikidata, thin languages cut.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from fluent_mlama.console import UserError, note
from fluent_mlama.files import Source, check_writable, open_source, parse_json, write_text
from fluent_mlama.languages import language
from fluent_mlama.mlama.measures import ENGLISH
from fluent_mlama.options import File, Langs, Name, Relations
from fluent_mlama.reader import TEMPLATES, is_valid_template
from fluent_mlama.records.facts import read_templates
from fluent_mlama.translating.backend import (
    OK,
    SourceSentence,
    Translator,
    TranslatorOptions,
    back_ends,
    make_translator,
    named_addresses,
)
from fluent_mlama.translating.store import DEFAULT_STORE, Store, ask
from fluent_mlama.translating.wikidata import API, NameSource, Wikidata

COVERAGE = 0.2
NAMES = Path(".cache") / "wikidata.sqlite"


def build_mlama(
    *,
    lama: Annotated[
        File, Parameter(help="LAMA's data: folder or zip with relations.jsonl and TREx/")
    ],
    langs: Langs,
    relations: Relations | None = None,
    translator: Annotated[
        Name,
        Parameter(
            help=f"who translates the templates: {', '.join(back_ends())}, as in datamodifier.py"
        ),
    ],
    repairs: File | None = None,
    min_coverage: float = COVERAGE,
    out: File,
    store: File = DEFAULT_STORE,
    names: File = NAMES,
    base_url: tuple[str, ...] = (),
) -> None:
    """Make mLAMA again for any language from English LAMA.

        fluent-mlama mlama build --lama data/LAMA -l de,sw --translator google --out mlama_de_sw

    Args:
        repairs: templates edited manually: <lang>.jsonl with relation and template
        min_coverage: languages with no greater share of the facts are left out
        out: folder for the data in the mLAMA 1.1 layout
        store: SQLite file of finished translations
        names: SQLite file of Wikidata's names
        base_url: NAME=URL, another address of a back end, or of wikidata; may be repeated
    """
    if not 0 <= min_coverage < 1:
        raise UserError(f"--min-coverage {min_coverage}: from 0 to less than 1")
    for lang in langs:
        language(lang)
    options = TranslatorOptions(base_url=named_addresses(base_url))
    _, back_end = make_translator(translator, options)
    source = read_lama(lama, relations)
    if repairs is not None and not repairs.is_dir():
        raise UserError(
            f"--repairs {repairs}: no such folder; give one of <lang>.jsonl, or leave it out"
        )
    check_writable(out, "--out")
    with (
        closing(Wikidata(names, api=options.address("wikidata") or API)) as wikidata,
        Store(store) as answers,
    ):
        shares = build(
            source,
            langs,
            back_end,
            wikidata,
            answers,
            out,
            repairs,
            min_coverage,
        )
    total = sum(map(len, source.facts.values()))
    for lang, share in shares.items():
        print(
            f"{lang}: {share:.1%} of {total} facts" + ("" if share > min_coverage else ", left out")
        )


def build(
    lama: Lama,
    languages: Sequence[str],
    translator: Translator,
    names: NameSource,
    store: Store,
    out: Path,
    repairs: Path | None = None,
    min_coverage: float = COVERAGE,
) -> dict[str, float]:
    """Write English and every language whose share of the facts is above ``min_coverage``; returns
    the shares.

    A fact is kept where both entities have a label in the language. lineid stays that of the
    English file.
    """
    total = sum(map(len, lama.facts.values()))
    write_language(
        out / ENGLISH,
        lama.templates,
        {relation: [vars_of(one) for one in facts] for relation, facts in lama.facts.items()},
    )
    shares = {}
    uris = sorted(
        {
            uri
            for facts in lama.facts.values()
            for one in facts
            for uri in (one.sub_uri, one.obj_uri)
        }
    )
    for lang in [one for one in languages if one != ENGLISH]:
        labels = {uri: found.label for uri, found in names.names(uris, lang).items() if found.label}
        kept: dict[str, list[dict[str, Any]]] = {}
        for relation, facts in lama.facts.items():
            both = [one for one in facts if one.sub_uri in labels and one.obj_uri in labels]
            kept[relation] = [
                vars_of(one) | {"sub_label": labels[one.sub_uri], "obj_label": labels[one.obj_uri]}
                for one in both
            ]
        shares[lang] = sum(map(len, kept.values())) / total if total else 0.0
        if shares[lang] > min_coverage:
            translated = translate_templates(lama.templates, lang, translator, store, repairs)
            write_language(
                out / lang,
                translated,
                {relation: rows for relation, rows in kept.items() if relation in translated},
            )
    return shares


def translate_templates(
    templates: Mapping[str, str],
    lang: str,
    translator: Translator,
    store: Store,
    repairs: Path | None = None,
) -> dict[str, str]:
    """relation -> template in ``lang``, mended where that needs no person; the others are
    reported and left out.
    """
    by_hand = read_repairs(repairs, lang)
    wanted = [relation for relation in templates if relation not in by_hand]
    for relation in wanted:
        translator.check(ENGLISH, lang, relation)
    items = [
        SourceSentence(
            row=row,
            relation=relation,
            sub_uri="",
            obj_uri="",
            en_sub_label="[X]",
            en_obj_label="[Y]",
            sub_label="[X]",
            obj_label="[Y]",
            sentence=templates[relation],
            target=lang,
        )
        for row, relation in enumerate(wanted)
    ]
    found = dict(by_hand)
    for item, answer in ask(translator, items, store):
        mended = (
            mend_template(answer.text) if answer.text is not None and answer.status == OK else None
        )
        if mended is None:
            note(
                f"{lang} {item.relation}: no template with one [X] and one [Y] ({answer.text!r}); "
                "put it right with --repairs"
            )
        else:
            found[item.relation] = mended
    return {relation: found[relation] for relation in templates if relation in found}


def read_repairs(folder: Path | None, lang: str) -> dict[str, str]:
    """Templates edited manually, if there are any; an invalid one is a ``UserError``."""
    path = folder / f"{lang}.jsonl" if folder is not None else None
    if path is None or not path.is_file():
        return {}
    templates = read_templates(path.read_bytes(), str(path))
    for relation, template in templates.items():
        if not is_valid_template(template):
            raise UserError(
                f"{path}: the template of {relation} needs one [X] and one [Y]: {template!r}"
            )
    return templates


def vars_of(fact: Any) -> dict[str, Any]:
    """A fact's fields as mLAMA 1.1 has them."""
    names = ("sub_uri", "obj_uri", "obj_label", "sub_label", "lineid", "uuid")
    return {name: getattr(fact, name) for name in names if getattr(fact, name) != ""}


def write_language(
    folder: Path, templates: Mapping[str, str], facts: Mapping[str, Sequence[Mapping[str, Any]]]
) -> None:
    """``templates.jsonl`` and one file a relation."""
    for relation, rows in facts.items():
        write_text(folder / f"{relation}.jsonl", _lines(rows))
    write_text(
        folder / TEMPLATES,
        _lines([{"relation": relation, "template": text} for relation, text in templates.items()]),
    )


def _lines(rows: Sequence[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


RELATIONS = "relations.jsonl"
_LETTERS = {"X": "XxХхΧχＸｘ", "Y": "YyУуΥυＹｙ"}
"""Cyrillic, Greek and fullwidth letters that translators put for X and Y."""


@dataclass(frozen=True, slots=True)
class EnglishFact:
    """One line of LAMA; lineid: its place in the file, from 0."""

    lineid: int
    sub_uri: str
    obj_uri: str
    sub_label: str
    obj_label: str
    uuid: str


@dataclass(frozen=True)
class Lama:
    """relation -> template, relation -> facts."""

    templates: dict[str, str]
    facts: dict[str, list[EnglishFact]]


def read_lama(path: Path, relations: Sequence[str] | None = None) -> Lama:
    """LAMA's relations that have a file and a valid template. ``UserError`` names file and line."""
    source = open_source(path)
    folder = source.folder("TREx") if "TREx" in source.folders() else source
    if RELATIONS not in source.names():
        raise UserError(f"{path} has no {RELATIONS}: this is not LAMA's data folder")
    templates = read_templates(source.read(RELATIONS), source.where(RELATIONS))
    wanted = relations or [
        relation for relation in templates if f"{relation}.jsonl" in folder.names()
    ]
    facts: dict[str, list[EnglishFact]] = {}
    for relation in wanted:
        if relation not in templates or not is_valid_template(templates[relation]):
            raise UserError(
                f"{source.where(RELATIONS)}: {relation} has no template with one [X] and one [Y]"
            )
        facts[relation] = list(_facts(folder, f"{relation}.jsonl"))
    if not facts:
        raise UserError(f"{path} holds no relation file (TREx/<relation>.jsonl)")
    return Lama({relation: templates[relation] for relation in facts}, facts)


def _facts(folder: Source, name: str) -> Iterator[EnglishFact]:
    lines = [
        line
        for line in folder.read(name).decode("utf-8-sig", errors="replace").split("\n")
        if line.strip()
    ]
    foreign = 0
    for lineid, line in enumerate(lines):
        where = f"{folder.where(name)}: line {lineid + 1}"
        values = parse_json(line, where)
        if not isinstance(values, dict) or not {
            "sub_uri",
            "obj_uri",
            "sub_label",
            "obj_label",
        } <= set(values):
            raise UserError(
                f"{where} is no LAMA fact with sub_uri, obj_uri, sub_label and obj_label; correct "
                "or remove it"
            )
        texts = [values[field] for field in ("sub_uri", "obj_uri", "sub_label", "obj_label")]
        if not all(isinstance(text, str) for text in texts):
            raise UserError(f"{where}: labels and ids must be strings")
        if all(re.fullmatch(r"Q[1-9][0-9]*", uri) for uri in texts[:2]):
            sub_uri, obj_uri, sub_label, obj_label = texts
            yield EnglishFact(
                lineid, sub_uri, obj_uri, sub_label, obj_label, str(values.get("uuid", ""))
            )
        else:
            foreign += 1
    if foreign:
        note(f"{folder.where(name)}: {foreign} facts have no Wikidata ids and are left out")


def mend_template(text: str) -> str | None:
    """The translated template with just one [X] and one [Y], or None where that needs a person.

    Mends other brackets, blanks inside them, small letters and letters of other scripts; nothing is
    guessed.
    """
    mended = text.strip()
    for letter, variants in _LETTERS.items():
        mended = re.sub(
            rf"[\[［【〔〈{{(（]\s*[{variants}]\s*[\]］】〕〉}})）]", f"[{letter}]", mended
        )
    return mended if is_valid_template(mended) else None
