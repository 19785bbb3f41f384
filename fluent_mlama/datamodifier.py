"""Rebuild mLAMA facts as fluent sentences: translate whole sentences, find the object, cut there.

    python datamodifier.py -l ru -r P19,P36 --mlama mlama1.1.zip --translator google

Writes one ``{lang}_{relation}_{variant}.tsv`` per pair. Finished translations are kept in a store
as they arrive: the same command goes on where a stopped one was. ``docs/translating.md`` describes
the back ends and what each row's status means.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter, Token

from fluent_mlama.command_line import run_command
from fluent_mlama.console import UserError, note, progress_bar
from fluent_mlama.files import check_writable
from fluent_mlama.languages import language
from fluent_mlama.locating import Locator
from fluent_mlama.options import File, Langs, Relations, whole_number
from fluent_mlama.reader import MLama, fill_template
from fluent_mlama.records.benchmark import (
    Benchmark,
    benchmark_name,
    make_benchmark,
    name_columns,
    write_benchmark,
)
from fluent_mlama.records.few_shot import FewShot, find_leakage
from fluent_mlama.translating.backend import (
    OK,
    Translator,
    TranslatorOptions,
    TranslatorWords,
    check_name,
    make_translator,
)
from fluent_mlama.translating.checks import Checked, check, simplify
from fluent_mlama.translating.document import DocumentTranslator, what_to_do
from fluent_mlama.translating.facts_table import cut_sentences, items_of, lines_of, rows_of
from fluent_mlama.translating.openai_chat import MOST_SHOTS, find_or_draw
from fluent_mlama.translating.store import DEFAULT_STORE, Store, ask, blaming
from fluent_mlama.translating.wikidata import (
    API,
    Names,
    NameSource,
    Wikidata,
    alias_cell,
    write_genders,
)

if TYPE_CHECKING:
    import pandas as pd

SOURCE = "en"
FACT_COLUMNS = (
    "sub_uri", "en_sub_label", "sub_label", "obj_uri", "en_obj_label", "obj_label",
    "en_template", "template", "template_prompt", "template_tail", "template_status",
)  # fmt: skip


class DataModifier:
    """One (language, relation) on its way from facts to a benchmark file.

    table: one row per fact that both languages have, in the order of mLAMA's lineid; the columns of
    a benchmark file, filled step by step. Public methods return what a person would look at next.
    """

    def __init__(self, benchmark: MLama | Path | str, lang: str, relation: str) -> None:
        """``UserError``: unknown language or relation, English itself, no template, no facts."""
        language(lang)
        if lang == SOURCE:
            raise UserError(
                "'en' is the language that facts are translated from: choose another with -l"
            )
        self.lang, self.relation = lang, relation
        self._mlama = benchmark if isinstance(benchmark, MLama) else MLama(benchmark)
        self.table = self._read_facts()
        self.checked: dict[str, list[Checked]] = {}
        self.few_shot: FewShot | None = None

    def add_translations(
        self,
        name: str,
        backend: Translator,
        *,
        store: Store | None = None,
        refresh: bool = False,
        mend: bool = True,
    ) -> Counter[str]:
        """Have every sentence translated; ``name`` becomes a verbalisation.

        Answers kept in ``store`` are not asked for again unless ``refresh``. ``mend=False`` keeps
        each text as it came. Returns how often each status and flag occurs.
        """
        check_name(name)
        with blaming(backend):
            backend.check(SOURCE, self.lang, self.relation)
        items = items_of(self.table, self.relation, SOURCE, self.lang)
        found: dict[int, Checked] = {}
        with progress_bar(
            total=len(items), unit="sentences", label=f"{self.lang} {self.relation} {name}"
        ) as bar:
            for item, answer in ask(backend, items, store, refresh=refresh):
                found[item.row] = check(answer, item, mend=mend)
                bar.update()
        self.checked[name] = [found[item.row] for item in items]
        self.table[name_columns(name).sentence] = [one.text for one in self.checked[name]]
        return Counter(word for one in self.checked[name] for word in one.status.split(";"))

    def mend(self, name: str, row: int, sentence: str) -> None:
        """Replace a translation by a sentence written by hand, before ``add_prompt_obj_split``."""
        if name not in self.checked or row not in self.table.index:
            raise UserError(
                f"no row {row} of a verbalisation '{name}': "
                f"there are {len(self.table)} rows of {', '.join(self.checked)}"
            )
        self.checked[name][row] = Checked(sentence, OK, ("by-hand",))
        self.table.at[row, name_columns(name).sentence] = sentence

    def add_few_shot_prompt(
        self,
        folder: Path | str = "chatgpt_prompts",
        *,
        base: str | None = None,
        number: int = MOST_SHOTS,
        seed: int = 0,
    ) -> FewShot:
        """The few-shot text for this language and relation; its rows are held out of the benchmark.

        It is the file in ``folder`` if there is one, else drawn from the usable translations of
        ``base`` (default: the first verbalisation added) and written there for a person to mend.
        """
        usable = {
            name: [one.text if one.usable else "" for one in checked]
            for name, checked in self.checked.items()
        }
        if base is not None and base not in usable:
            known = ", ".join(usable) or "none yet"
            raise UserError(f"no verbalisation '{base}' to draw examples from: there are {known}")
        columns = (self.table[name] for name in ("en_template", "sub_label", "obj_label"))
        self.few_shot = find_or_draw(
            Path(folder),
            list(zip(*columns, strict=True)),
            usable.get(base or next(iter(usable), "")),
            self.lang,
            self.relation,
            most=number,
            seed=seed,
        )
        return self.few_shot

    def add_aliases(self, source: NameSource) -> int:
        """Fill ``aliases`` with the objects' other names; returns how many rows have one.

        The English label goes apart into its own column ``en_wikidata_label``: as an alias it would
        count as a right answer in any language.
        """
        uris = sorted({uri for uri in self.table["obj_uri"] if uri})
        own, english = source.names(uris, self.lang), source.names(uris, SOURCE)
        objects = zip(self.table["obj_uri"], self.table["obj_label"], strict=True)
        cells = [alias_cell(own.get(uri, Names()), self.lang, label) for uri, label in objects]
        self.table["aliases"] = cells
        labels = [english.get(uri, Names()).label for uri in self.table["obj_uri"]]
        self.table["en_wikidata_label"] = labels
        return sum(bool(cell) for cell in cells)

    def add_prompt_obj_split(self) -> dict[str, Counter[str]]:
        """Cut every translation at its object: prompt, object form, tail and status.

        A form found in one verbalisation helps to find it in the next. Returns how often each
        status and flag occurs, by verbalisation.
        """
        template = self._mlama.template(self.lang, self.relation)
        known: list[tuple[str, ...]] = [()] * len(self.table)
        counts = {}
        for name, checked in self.checked.items():
            rows = rows_of(self.table, name, template, known)
            cuts = cut_sentences(checked, rows, Locator(self.lang, self.relation))
            columns = name_columns(name)
            self.table[columns.prompt] = [cut.prompt for cut in cuts]
            self.table[columns.object] = [cut.object_form for cut in cuts]
            self.table[columns.tail] = [cut.tail for cut in cuts]
            self.table[columns.status] = [cut.status for cut in cuts]
            known = [
                (*forms, cut.object_form) if cut.found else forms
                for forms, cut in zip(known, cuts, strict=True)
            ]
            counts[name] = Counter(word for cut in cuts for word in cut.status.split(";"))
        return counts

    def benchmark(self, variant: str = "") -> Benchmark:
        """The benchmark as it would be saved: published column order, few-shot rows held out."""
        self._require_cut()
        groups = [name_columns(name) for name in self.checked]
        columns = [*FACT_COLUMNS, *(group.sentence for group in groups)]
        columns += [name or "" for group in groups for name in group[1:]]
        columns += [name for name in ("aliases", "en_wikidata_label") if name in self.table]
        whole = make_benchmark(self.lang, self.relation, variant, self.table[columns])
        if self.few_shot is None:
            return whole
        held_out = list(find_leakage(whole, self.few_shot).rows)
        kept = whole.table.drop(index=held_out)
        return make_benchmark(self.lang, self.relation, variant, kept)

    def save(self, folder: Path | str = "fixed_data", variant: str = "") -> Path:
        """Write the benchmark file; returns its path."""
        benchmark = self.benchmark(variant)
        if held_out := len(self.table) - len(benchmark.table):
            note(f"{benchmark.name}: {held_out} rows are few-shot examples and are held out")
        return write_benchmark(benchmark, folder)

    def show(self, which: int | str = 10, names: Sequence[str] = ()) -> list[str]:
        """Sentences of each verbalisation, the object marked; rows without one show why.

        which: how many facts from the first on; ``failed``: rows without an object; ``unsure``:
        rows whose object was found without evidence from its name; ``all``.
        """
        self._require_cut()
        table = self.table.head(which) if isinstance(which, int) else self.table
        return lines_of(table, names or self.checked, which if isinstance(which, str) else "all")

    def _require_cut(self) -> None:
        if any(name_columns(name).prompt not in self.table for name in self.checked):
            raise UserError("the sentences are not cut yet: call add_prompt_obj_split first")

    def _read_facts(self) -> pd.DataFrame:
        import pandas as pd

        template = self._mlama.template(self.lang, self.relation)
        english = self._mlama.template(SOURCE, self.relation)
        pairs = self._mlama.join(SOURCE, self.lang, self.relation)
        if not pairs:
            raise UserError(
                f"no fact of {self.relation} is there both in English and in '{self.lang}'"
            )
        rows = []
        for source, target in pairs:
            before, after = (fill_template(part, target, "x") for part in template.split("[Y]"))
            cells = {
                "sub_uri": target.sub_uri or "",
                "en_sub_label": source.sub_label,
                "sub_label": simplify(target.sub_label, self.lang),
                "obj_uri": target.obj_uri or "",
                "en_obj_label": source.obj_label,
                "obj_label": simplify(target.obj_label, self.lang),
                "en_template": fill_template(english, source),
                "template": simplify(fill_template(template, target), self.lang),
                "template_prompt": simplify(before, self.lang),
                "template_tail": simplify(after, self.lang),
                "aliases": "",
            }
            words_follow = any(map(str.isalnum, cells["template_tail"]))
            rows.append(cells | {"template_status": "ok;not-final" if words_follow else "ok"})
        table = pd.DataFrame(rows, dtype="str")
        if doubles := int(table.duplicated(["sub_uri", "obj_uri", "en_template"]).sum()):
            note(
                f"{self.lang} {self.relation}: {doubles} facts appear more than once; all are kept"
            )
        return table


# ---- the command ---------------------------------------------------------------------------------


def _variant_named(_: Any, tokens: Sequence[Token]) -> str:
    value = tokens[-1].value
    if not re.fullmatch(r"(\w[\w.-]*)?", value):
        raise ValueError(
            f"{value!r} cannot be in a file name; "
            "take letters, digits, dots, hyphens and underscores"
        )
    return value


def _rows_shown(kind: Any, tokens: Sequence[Token]) -> int | str:
    value = tokens[-1].value
    return value if value in ("failed", "unsure", "all") else whole_number(0)(kind, tokens)


Variant = Annotated[str, Parameter(converter=_variant_named, n_tokens=1)]
Shown = Annotated[int | str, Parameter(converter=_rows_shown, n_tokens=1)]
Shots = Annotated[int, Parameter(converter=whole_number(0), n_tokens=1)]
OPTIONS = TranslatorOptions()


def main(words: Sequence[str] | None = None) -> int:
    """The command line of ``datamodifier.py``."""
    return run_command(build, words, program="datamodifier.py")


def build(
    *,
    langs: Langs,
    mlama: File,
    translator: TranslatorWords,
    relations: Relations = (),
    out: File = Path("fixed_data"),
    variant: Variant = "",
    store: File = DEFAULT_STORE,
    refresh: bool = False,
    as_returned: bool = False,
    aliases: Literal["wikidata", "none"] = "wikidata",
    gender: File | None = None,
    few_shot: File | None = None,
    shots: Shots = MOST_SHOTS,
    show: Shown = 0,
    options: TranslatorOptions = OPTIONS,
) -> None:
    """Rebuild mLAMA facts as fluent sentences, cut into prompt and inflected object.

        python datamodifier.py -l ru -r P19 --mlama starter --translator phrasebook
        python datamodifier.py -l ru,cs --mlama mlama1.1.zip --translator google

    Args:
        mlama: folder or zip in the mLAMA 1.1 layout; starter names the facts that ship
        out: folder of the benchmark files
        variant: what the file names say after the relation, for example nogpt
        store: SQLite file of finished answers
        refresh: ask for every sentence again
        as_returned: keep each text's blanks, quotes and lines as they came (the published files do)
        aliases: where other names of the objects come from
        gender: also write this file: the subjects' gender (gender.tsv), from Wikidata's P21
        few_shot: folder of few-shot texts for openai ({lang}_{relation}.txt), drawn if missing
        shots: most examples that a drawn text gets
        show: print sentences with the object marked: of the first N facts, of those without an
            object (failed), of those found without evidence from its name (unsure), or all
    """
    # All that can be wrong without asking a service is said before the first request.
    check_writable(out, "--out")
    if gender is not None:
        if gender.is_dir():
            example = gender / "gender.tsv"
            raise UserError(f"--gender {gender} is a folder: name a file, for example {example}")
        check_writable(gender.parent, "the folder of --gender")
    texts: dict[tuple[str, str], FewShot] = {}
    options = replace(options, examples=lambda *pair: texts.get(pair))
    translators = [make_translator(word, options) for word in translator]
    names = [name for name, _ in translators]
    if len(set(names)) < len(names):
        raise UserError(
            f"two translators are called the same ({', '.join(names)}): "
            f"name one, for example mine={translator[-1]}"
        )
    facts = MLama(mlama)
    modifiers = [
        DataModifier(facts, lang, relation)
        for lang in langs
        for relation in relations or _shared_relations(facts, lang)
    ]
    for modifier in modifiers:
        for _, one in translators:
            one.check(SOURCE, modifier.lang, modifier.relation)
        place = out / benchmark_name(modifier.lang, modifier.relation, variant)
        if place.is_dir():
            raise UserError(f"cannot write {place}: a folder is there; move it away")
    wikidata = Wikidata(store, api=options.address("wikidata") or API, refresh=refresh)
    _write_workbooks(modifiers, [one for _, one in translators])
    with Store(store) as answers, closing(wikidata):
        for modifier in modifiers:
            for name, one in translators:
                if one.name == "openai" and few_shot:
                    texts[modifier.lang, modifier.relation] = modifier.add_few_shot_prompt(
                        few_shot, number=shots, seed=options.seed
                    )
                modifier.add_translations(
                    name, one, store=answers, refresh=refresh, mend=not as_returned
                )
            if aliases == "wikidata" and not _add_aliases(modifier, wikidata):
                aliases = "none"
            counts = modifier.add_prompt_obj_split()
            path = modifier.save(out, variant)
            for name, count in counts.items():
                _tell_counts(path, name, len(modifier.table), count)
            for line in modifier.show(show):
                print(line)
        if gender:
            uris = {uri for modifier in modifiers for uri in modifier.table["sub_uri"] if uri}
            found = wikidata.genders(sorted(uris))
            write_genders(found, gender)
            note(f"{gender}: {len(found)} of {len(uris)} subjects have a gender")


def _write_workbooks(modifiers: Sequence[DataModifier], translators: Sequence[Translator]) -> None:
    """All workbooks that a person has to have translated; ends the run if there are any."""
    items = [
        item
        for modifier in modifiers
        for item in items_of(modifier.table, modifier.relation, SOURCE, modifier.lang)
    ]
    documents = [one for one in translators if isinstance(one, DocumentTranslator)]
    written = [path for document in documents for path in document.write_missing(items)]
    if written:
        raise UserError(what_to_do(written))


def _add_aliases(modifier: DataModifier, wikidata: Wikidata) -> bool:
    """Whether Wikidata could be reached: sentences are worth having without aliases."""
    try:
        modifier.add_aliases(wikidata)
    except UserError as error:
        pair = f"{modifier.lang} {modifier.relation}"
        note(f"no aliases from {pair} on: {error} (or choose --aliases none)")
        return False
    return True


def _tell_counts(path: Path, name: str, rows: int, count: Counter[str]) -> None:
    """One line per verbalisation: how many rows can be used, and each reason and flag."""
    others = sorted((-n, word) for word, n in count.items() if word != OK)
    rest = ", ".join(f"{word} {-n}" for n, word in others)
    usable = f"{count[OK]} of {rows} sentences can be used"
    note(f"{path}: {name}: {usable}" + (f" ({rest})" if rest else ""))
    if count["failed"]:
        note(
            f"{path}: {count['failed']} rows of {name} failed and were not kept: "
            "the same command asks for them again"
        )


def _shared_relations(mlama: MLama, lang: str) -> list[str]:
    """The relations that English and this language have, with a template."""
    english, templates = set(mlama.relations(SOURCE)), mlama.templates(lang)
    return [one for one in mlama.relations(lang) if one in english and one in templates]
