"""mLAMA 1.1: facts and templates in up to 53 languages (Kassner, Dufter and Schütze, EACL 2021).

    python reader.py download data/mlama1.1.zip
    python reader.py stats data/mlama1.1.zip -l ru,cs
    python reader.py sample data/mlama1.1.zip -l ru,cs -r P19,P36

Layout, as a folder or as a zip: ``<lang>/templates.jsonl`` and ``<lang>/<relation>.jsonl``, one
JSON object a line. A fact's ``lineid`` is its line in the English original, so (relation, lineid)
joins the languages.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from fluent_mlama.command_line import Commands
from fluent_mlama.console import UserError, note, progress
from fluent_mlama.data import STARTER, shipped
from fluent_mlama.files import Source, by_number, open_source
from fluent_mlama.languages import OFFICIAL_LANGUAGES, is_known, language
from fluent_mlama.options import Count, Langs, Relations, Seed
from fluent_mlama.records.download import download
from fluent_mlama.records.facts import Facts, Triple, read_facts, read_templates

TEMPLATES = "templates.jsonl"
PUBLISHED_URL = "https://cistern.cis.lmu.de/mlama/mlama1.1.zip"
URL_VARIABLE = "FLUENT_MLAMA_URL"
_SLOT = re.compile(r"\[[XY]\]")


class MLama:
    """A folder or zip in the mLAMA 1.1 layout. Files are opened when they are asked for, once, and
    no others.
    """

    official_languages: tuple[str, ...] = OFFICIAL_LANGUAGES

    def __init__(self, path: Path | str) -> None:
        """``UserError`` where there is no such folder or zip, or no language folder in it."""
        path = shipped(path, STARTER)
        self._root = _enter_root(open_source(path, enter_top_folder=False))
        self._templates: dict[str, Mapping[str, str]] = {}
        self._facts: dict[tuple[str, str], Facts] = {}
        self._languages = [
            name
            for name in self._root.folders()
            if is_known(name) and _jsonl(self._root.folder(name))
        ]
        if not self._languages:
            raise UserError(
                f"{path}: no language folder with .jsonl files; this is not the mLAMA 1.1 layout "
                "(<lang>/<relation>.jsonl)"
            )

    def languages(self) -> list[str]:
        """The languages that are really there, sorted; stray files and folders are none."""
        return list(self._languages)

    def relations(self, lang: str) -> list[str]:
        """The relations of this language that are there, by number. Listing opens no file."""
        names = (
            name.removesuffix(".jsonl") for name in _jsonl(self._folder(lang)) if name != TEMPLATES
        )
        return sorted(names, key=by_number)

    def templates(self, lang: str) -> Mapping[str, str]:
        """relation -> template, as the file has them, valid or not; empty where the language has no
        templates file.
        """
        if lang not in self._templates:
            folder = self._folder(lang)
            present = TEMPLATES in folder.names()
            self._templates[lang] = (
                read_templates(folder.read(TEMPLATES), folder.where(TEMPLATES)) if present else {}
            )
        return self._templates[lang]

    def template(self, lang: str, relation: str) -> str:
        """One template; ``UserError`` where it is missing or lacks one [X] and one [Y]."""
        template = self.templates(lang).get(relation)
        where = self._folder(lang).where(TEMPLATES)
        if template is None:
            raise UserError(f"{where}: no template for relation {relation}")
        if not is_valid_template(template):
            raise UserError(
                f"{where}: the template of {relation} needs one [X] and one [Y]: {template!r}"
            )
        return template

    def facts(self, lang: str, relation: str) -> Facts:
        """The facts of one relation in one language, by lineid, with the doubled lines it had."""
        key = (lang, relation)
        if key not in self._facts:
            self._facts[key] = self._read(lang, relation)
            if doubles := self._facts[key].doubles:
                numbers = ", ".join(str(triple.lineid) for triple in doubles[:5])
                note(
                    f"{lang} {relation}: {len(doubles)} lines use a lineid again, the first stands "
                    f"({numbers}{', …' * (len(doubles) > 5)})"
                )
        return self._facts[key]

    def triples(self, lang: str, relation: str) -> dict[int, Triple]:
        """lineid -> triple."""
        return dict(self.facts(lang, relation).by_lineid)

    def load(
        self, languages: Sequence[str] | None = None, relations: Sequence[str] | None = None
    ) -> dict[str, dict[str, Facts]]:
        """lang -> relation -> facts. None (or nothing) = all that is there, found anew for each
        language.

        A relation that one language lacks is left out there, with a note; one that all lack is a
        ``UserError``.
        """
        selected = self.select(languages, relations)
        return {
            lang: {relation: self.facts(lang, relation) for relation in names}
            for lang, names in selected.items()
        }

    def select(
        self, languages: Sequence[str] | None = None, relations: Sequence[str] | None = None
    ) -> dict[str, list[str]]:
        """lang -> those of the wanted relations that it has; ``load`` tells what is left out and
        what is an error.
        """
        selected: dict[str, list[str]] = {}
        lacking: dict[str, list[str]] = {relation: [] for relation in relations or ()}
        for lang in languages or self.languages():
            present = self.relations(lang)
            selected[lang] = [relation for relation in relations or present if relation in present]
            for relation in lacking.keys() - set(present):
                lacking[relation].append(lang)
        if relations and not any(selected.values()):
            there = ", ".join(
                dict.fromkeys(relation for lang in selected for relation in self.relations(lang))
            )
            raise UserError(
                f"{self._root.path}: no language of {', '.join(selected)} has "
                f"{', '.join(relations)}; there are {there}"
            )
        for relation, without in lacking.items():
            if without:
                note(f"no relation {relation} in {', '.join(without)}: left out there")
        return selected

    def join(self, lang: str, other: str, relation: str) -> list[tuple[Triple, Triple]]:
        """The facts that both languages have, paired by (relation, lineid), by lineid."""
        here, there = self.facts(lang, relation).by_lineid, self.facts(other, relation).by_lineid
        return [(here[lineid], there[lineid]) for lineid in sorted(here.keys() & there.keys())]

    def fill_templates(self, lang: str, relation: str, slots: str = "xy") -> dict[int, str]:
        """lineid -> the relation's template with subject (``x``), object (``y``) or both (``xy``)
        filled in.
        """
        template = self.template(lang, relation)
        return {
            lineid: fill_template(template, triple, slots)
            for lineid, triple in self.facts(lang, relation).by_lineid.items()
        }

    def count_triples(
        self, languages: Sequence[str] | None = None, relations: Sequence[str] | None = None
    ) -> dict[str, int]:
        """lang -> number of facts, most first. Nothing is kept in memory, so that all of mLAMA can
        be counted.
        """
        selected = self.select(languages, relations)
        counts = {}
        for lang in progress(selected, unit="languages", label="counting"):
            counts[lang] = sum(
                len(self._read(lang, relation).by_lineid) for relation in selected[lang]
            )
        return dict(sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])))

    def sample(
        self,
        languages: Sequence[str] | None = None,
        relations: Sequence[str] | None = None,
        number: int = 3,
        seed: int = 0,
    ) -> list[tuple[str, str, str]]:
        """``number`` random facts a language as (lang, relation, filled template); the same seed
        gives the same facts.
        """
        drawn = []
        for lang, by_relation in self.load(languages, relations).items():
            usable = {
                relation: facts
                for relation, facts in by_relation.items()
                if is_valid_template(self.templates(lang).get(relation, ""))
            }
            for relation in by_relation.keys() - usable.keys():
                note(f"{lang} {relation}: no valid template, not sampled")
            pool = [
                (relation, lineid)
                for relation, facts in usable.items()
                for lineid in facts.by_lineid
            ]
            chosen = random.Random(f"{seed}|{lang}").sample(pool, min(number, len(pool)))
            for relation, lineid in chosen:
                drawn.append(
                    (
                        lang,
                        relation,
                        fill_template(
                            self.template(lang, relation), usable[relation].by_lineid[lineid]
                        ),
                    )
                )
        return drawn

    def _read(self, lang: str, relation: str) -> Facts:
        folder = self._folder(lang)
        name = f"{relation}.jsonl"
        return read_facts(folder.read(name), folder.where(name), lang, relation)

    def _folder(self, lang: str) -> Source:
        if lang not in self._languages:
            language(lang)
            raise UserError(
                f"{self._root.path}: no language {lang}; there are {', '.join(self._languages)}"
            )
        return self._root.folder(lang)


def is_valid_template(template: str) -> bool:
    """Whether the template has just one [X] and just one [Y]."""
    return sorted(_SLOT.findall(template)) == ["[X]", "[Y]"]


def fill_template(template: str, triple: Triple, slots: str = "xy") -> str:
    """Fill subject and/or object in one pass: a label that holds "[Y]" is text, not a slot."""
    if slots not in {"x", "y", "xy"}:
        raise ValueError(f"slots: 'x', 'y' or 'xy', not {slots!r}")
    labels = {
        "[X]": triple.sub_label if "x" in slots else "[X]",
        "[Y]": triple.obj_label if "y" in slots else "[Y]",
    }
    return _SLOT.sub(lambda slot: labels[slot[0]], template)


def _enter_root(source: Source) -> Source:
    """Below the one top folder (``mlama1.1/``) where there is one that itself holds folders."""
    folders = source.folders()
    if len(folders) == 1 and source.folder(folders[0]).folders():
        return source.folder(folders[0])
    return source


def _jsonl(folder: Source) -> list[str]:
    return [name for name in folder.names() if name.endswith(".jsonl")]


def _stats_rows(
    data: MLama, languages: Sequence[str] | None, relations: Sequence[str] | None
) -> Iterator[dict[str, Any]]:
    for lang, count in data.count_triples(languages, relations).items():
        present = [
            relation for relation in data.relations(lang) if not relations or relation in relations
        ]
        templates = data.templates(lang)
        bad = [
            relation for relation in present if not is_valid_template(templates.get(relation, ""))
        ]
        yield {
            "language": lang,
            "relations": len(present),
            "facts": count,
            "without a valid template": ", ".join(bad) or "none",
        }


Place = Annotated[
    Path, Parameter(help="folder or zip in the mLAMA 1.1 layout; starter names what ships")
]
COMMANDS = {
    "stats": ("fluent_mlama.reader:show_stats", "facts, relations and templates per language"),
    "sample": ("fluent_mlama.reader:show_sample", "random filled templates as a LaTeX table"),
    "download": ("fluent_mlama.reader:get_published", "get the published zip (about 40 MB)"),
}


def main(words: Sequence[str] | None = None) -> int:
    """The command line."""
    about = "Look at, sample or get facts in the mLAMA 1.1 layout."
    return Commands("reader.py", about, COMMANDS).run(words)


def show_stats(
    path: Place, /, *, langs: Langs | None = None, relations: Relations | None = None
) -> None:
    """Print facts, relations and templates per language.

    reader.py stats data/mlama1.1.zip -l ru,cs
    """
    from tabulate import tabulate

    data = MLama(path)
    table = list(_stats_rows(data, langs, relations))
    official = set(data.languages()) & set(OFFICIAL_LANGUAGES)
    print(tabulate(table, headers="keys", tablefmt="simple"))
    print(
        f"{sum(row['facts'] for row in table)} facts; {len(official)} of the "
        f"{len(OFFICIAL_LANGUAGES)} official languages are here"
    )


def show_sample(
    path: Place,
    /,
    *,
    langs: Langs | None = None,
    relations: Relations | None = None,
    number: Annotated[Count, Parameter(name=["--number", "-n"])] = 3,
    seed: Seed = 0,
) -> None:
    """Print random filled templates as a LaTeX table.

        reader.py sample data/mlama1.1.zip -l ru,cs -r P19,P36

    Args:
        number: facts per language
        seed: the same seed draws the same facts
    """
    from tabulate import tabulate

    drawn = MLama(path).sample(langs, relations, number, seed)
    rows = [(lang, relation, " ".join(sentence.split())) for lang, relation, sentence in drawn]
    print(
        tabulate(
            rows,
            headers=["language", "relation", "sentence"],
            tablefmt="latex_booktabs",
            disable_numparse=True,
        )
    )


def get_published(
    path: Path = Path("data/mlama1.1.zip"),
    /,
    *,
    url: str | None = None,
    sha256: str | None = None,
) -> None:
    """Get the published zip (about 40 MB); goes on where it was cut.

    Args:
        path: where to put it
        url: another address (default: $FLUENT_MLAMA_URL, else the published one)
        sha256: refuse a file with another checksum
    """
    address = url or os.environ.get(URL_VARIABLE, PUBLISHED_URL)
    checksum = download(address, path, sha256=sha256)
    print(f"{path}\nsha256 {checksum}")
