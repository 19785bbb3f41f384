"""Where a subject's gender comes from: a ``gender.tsv``, the starter's phrasebook, or Wikidata."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from fluent_mlama.console import UserError
from fluent_mlama.data import DATA
from fluent_mlama.records.table import read_table
from fluent_mlama.translating.phrasebook import read_entries, read_facts
from fluent_mlama.translating.wikidata import API, Wikidata, write_genders

FEMALE = ("female", "transgender female", "trans woman")
MALE = ("male", "transgender male", "trans man")
PERSON_RELATIONS = ("P19", "P20", "P103", "P108")
"""Relations of the starter whose subjects are people; elsewhere a noun class says nothing of a person."""
GENDERED_PHRASEBOOKS = ("ru", "cs", "uk", "hr")
CLASSES = {"f": FEMALE[0], "m": MALE[0]}


def read_genders(path: Path) -> dict[str, str]:
    """id -> gender from a TSV with the columns ``p`` (bare Wikidata id) and ``genderLabel``, as the paper's program reads it."""
    if not path.is_file():
        raise UserError(
            f"no {path}: give a TSV with the columns p and genderLabel, or --gender phrasebook, or --gender wikidata"
        )
    frame = read_table(path.read_bytes(), str(path))
    lacking = [column for column in ("p", "genderLabel") if column not in frame]
    if lacking:
        raise UserError(
            f"{path}: no column {', '.join(lacking)}; it needs p (a bare id such as Q42) and genderLabel"
        )
    found: dict[str, str] = {}
    for row, uri, gender in zip(frame.index, frame["p"], frame["genderLabel"], strict=True):
        if found.setdefault(uri, gender) != gender:
            raise UserError(
                f"{path}, row {row}: {uri} is '{gender}' here and '{found[uri]}' above; keep one"
            )
    return found


def phrasebook_genders(
    langs: Sequence[str] = GENDERED_PHRASEBOOKS, folder: Path = DATA
) -> dict[str, str]:
    """id -> gender of the starter's people, from the classes of their names in the phrasebooks whose verbs agree (``f``, ``m``,
    or finer ones such as ``f-past``; a name that no pattern needs has none). The phrasebooks agree; a test compares them."""
    people = {
        fact.sub_uri
        for fact in read_facts(folder / "facts.tsv")
        if fact.relation in PERSON_RELATIONS
    }
    found: dict[str, str] = {}
    for lang in langs:
        for uri, entry in read_entries(folder / "phrasebook" / f"{lang}.tsv").items():
            name = entry.noun_class.partition("-")[0]
            if uri in people and name in CLASSES:
                found.setdefault(uri, CLASSES[name])
    return found


def wikidata_genders(
    uris: Iterable[str], store: Path, keep: Path, api: str = API
) -> dict[str, str]:
    """Ask Wikidata (answers are kept in ``store``), and write them as a ``gender.tsv`` to ``keep``."""
    wikidata = Wikidata(store, api=api)
    try:
        genders = wikidata.genders(list(uris))
    finally:
        wikidata.close()
    write_genders(genders, keep)
    return genders
