"""Rebuild mLAMA facts as fluent sentences: translate whole sentences, find the inflected object, cut there.

    python datamodifier.py -l ru -r P19,P36 --mlama mlama1.1.zip --translator google --out fixed_data --spec nogpt

Writes one ``{lang}_{relation}_{spec}.tsv`` a pair. Finished translations are kept in a store as they arrive: the same command
goes on where a stopped one was. ``docs/translating.md`` tells of the back ends and of what each row's status means.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from fluent_mlama.console import UserError, note, progress_bar
from fluent_mlama.languages import language
from fluent_mlama.locating.locator import Locator
from fluent_mlama.reader import MLama, fill_template
from fluent_mlama.records.benchmark import (
    TEMPLATE,
    Benchmark,
    benchmark_name,
    make_benchmark,
    name_columns,
    write_benchmark,
)
from fluent_mlama.records.few_shot import FewShot
from fluent_mlama.records.leakage import find_leakage
from fluent_mlama.translating.arguments import (
    check_choices,
    check_names,
    make_parser,
    report,
    split_url,
)
from fluent_mlama.translating.backend import OK, Translator
from fluent_mlama.translating.checks import Checked, check
from fluent_mlama.translating.cleaning import simplify
from fluent_mlama.translating.cutting import cut_sentences
from fluent_mlama.translating.document import DocumentTranslator, what_to_do
from fluent_mlama.translating.facts_table import items_of, lines_of, rows_of
from fluent_mlama.translating.few_shots import MOST_SHOTS, find_or_draw
from fluent_mlama.translating.registry import Options, check_name, make_translator
from fluent_mlama.translating.store import Store, ask, blaming
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

    table: one row a fact that both languages have, in the order of mLAMA's lineid; the columns of a benchmark file, filled
    step by step. Every public method returns what a person would look at next.
    """

    def __init__(self, benchmark: MLama | Path | str, lang: str, relation: str) -> None:
        """``UserError``: unknown language or relation, English itself, no template, no fact in both languages."""
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

    @property
    def verbalisations(self) -> tuple[str, ...]:
        """``template``, then those added so far."""
        return (TEMPLATE, *self.checked)

    def add_translations(
        self,
        name: str,
        backend: Translator,
        *,
        store: Store | None = None,
        refresh: bool = False,
        mend: bool = True,
    ) -> Counter[str]:
        """Have every sentence translated; ``name`` becomes a verbalisation. Returns how often each status and flag occurs.

        Answers kept in ``store`` are not asked for again unless ``refresh``. ``mend=False`` keeps each text as it came.
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
        """Put a sentence written by hand in place of a translation (before ``add_prompt_obj_split``)."""
        if name not in self.checked or row not in self.table.index:
            raise UserError(
                f"no row {row} of a verbalisation '{name}': there are {len(self.table)} rows of {', '.join(self.verbalisations[1:])}"
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
        """The few-shot text for this language and relation: the file in ``folder`` if there is one, else a new one, drawn from
        the usable translations of ``base`` (default: the first verbalisation added) and written there for a person to mend.

        Its rows are held out of the saved benchmark.
        """
        usable = {
            name: [one.text if one.usable else "" for one in checked]
            for name, checked in self.checked.items()
        }
        if base is not None and base not in usable:
            raise UserError(
                f"no verbalisation '{base}' to draw examples from: there are {', '.join(usable) or 'none yet'}"
            )
        chosen = base or next(iter(usable), "")
        facts = list(
            zip(
                *(self.table[column] for column in ("en_template", "sub_label", "obj_label")),
                strict=True,
            )
        )
        self.few_shot = find_or_draw(
            Path(folder),
            facts,
            usable.get(chosen),
            self.lang,
            self.relation,
            number=number,
            seed=seed,
        )
        return self.few_shot

    def add_aliases(self, source: NameSource) -> int:
        """Fill ``aliases`` with the objects' other names in the target language, and keep the English label apart, in its own
        column ``en_wikidata_label``. Returns how many rows have an alias."""
        uris = sorted({uri for uri in self.table["obj_uri"] if uri})
        own, english = source.names(uris, self.lang), source.names(uris, SOURCE)
        objects = zip(self.table["obj_uri"], self.table["obj_label"], strict=True)
        cells = [alias_cell(own.get(uri, Names()), self.lang, label) for uri, label in objects]
        self.table["aliases"] = cells
        self.table["en_wikidata_label"] = [
            english.get(uri, Names()).label for uri in self.table["obj_uri"]
        ]
        return sum(bool(cell) for cell in cells)

    def add_prompt_obj_split(self) -> dict[str, Counter[str]]:
        """Cut every translation at its object: prompt, object form, tail and status.

        A form found in one verbalisation helps to find it in the next. Returns how often each status and flag occurs, by verbalisation.
        """
        template = self._mlama.template(self.lang, self.relation)
        known: list[tuple[str, ...]] = [()] * len(self.table)
        counts = {}
        for name, checked in self.checked.items():
            cuts = cut_sentences(
                checked,
                rows_of(self.table, name, template, known),
                Locator(self.lang, self.relation),
            )
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

    def benchmark(self, spec: str = "") -> Benchmark:
        """The benchmark as it would be saved: published columns in published order, few-shot rows held out."""
        self._require_cut()
        groups = [name_columns(name) for name in self.checked]
        columns = [*FACT_COLUMNS, *(group.sentence for group in groups)]
        columns += [name or "" for group in groups for name in group[1:]]
        columns += [name for name in ("aliases", "en_wikidata_label") if name in self.table]
        table = self.table[columns]
        held_out = self.held_out_rows(make_benchmark(self.lang, self.relation, spec, table))
        return make_benchmark(self.lang, self.relation, spec, table.drop(index=held_out))

    def held_out_rows(self, benchmark: Benchmark) -> list[int]:
        """The rows that are few-shot examples."""
        return list(find_leakage(benchmark, self.few_shot).rows) if self.few_shot else []

    def save(self, folder: Path | str = "fixed_data", spec: str = "") -> Path:
        """Write the benchmark file; returns where it lies."""
        benchmark = self.benchmark(spec)
        if held_out := len(self.table) - len(benchmark.table):
            note(f"{benchmark.name}: {held_out} rows are few-shot examples and are held out")
        return write_benchmark(benchmark, folder)

    def show(self, which: int | str = 10, names: Sequence[str] = ()) -> list[str]:
        """Sentences of each verbalisation, the object marked; rows without one show their status and why.

        which: how many facts from the first on; ``failed``: rows without an object; ``unsure``: rows whose object was found
        without evidence from its name; ``all``.
        """
        self._require_cut()
        table = self.table.head(which) if isinstance(which, int) else self.table
        return lines_of(table, names or self.checked, which if isinstance(which, str) else "all")

    def _require_cut(self) -> None:
        if any(name_columns(name).prompt not in self.table for name in self.checked):
            raise UserError("the sentences are not cut yet: call add_prompt_obj_split first")

    def _read_facts(self) -> pd.DataFrame:
        import pandas as pd

        template, english = (
            self._mlama.template(self.lang, self.relation),
            self._mlama.template(SOURCE, self.relation),
        )
        pairs = self._mlama.join(SOURCE, self.lang, self.relation)
        if not pairs:
            raise UserError(
                f"no fact of {self.relation} is there both in English and in '{self.lang}'"
            )
        rows = []
        for source, target in pairs:
            filled = fill_template(template, target)
            before, after = (fill_template(part, target, "x") for part in template.split("[Y]"))
            cells = [
                target.sub_uri or "",
                source.sub_label,
                target.sub_label,
                target.obj_uri or "",
                source.obj_label,
                target.obj_label,
            ]
            own = [
                simplify(text, self.lang) for text in (cells[2], cells[5], filled, before, after)
            ]
            rows.append({
                "sub_uri": cells[0], "en_sub_label": cells[1], "sub_label": own[0], "obj_uri": cells[3], "en_obj_label": cells[4],
                "obj_label": own[1], "en_template": fill_template(english, source), "template": own[2], "template_prompt": own[3],
                "template_tail": own[4], "template_status": "ok;not-final" if any(map(str.isalnum, own[4])) else "ok", "aliases": "",
            })  # fmt: skip
        table = pd.DataFrame(rows, dtype="str")
        if doubles := int(table.duplicated(["sub_uri", "obj_uri", "en_template"]).sum()):
            note(
                f"{self.lang} {self.relation}: {doubles} facts stand there more than once; all are kept"
            )
        return table


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line. All that can be wrong without asking a service is said before the first request."""
    chosen = make_parser().parse_args(arguments)
    check_choices(chosen)
    urls = dict(split_url(word) for word in chosen.base_url)
    few_shots: dict[tuple[str, str], FewShot] = {}
    options = Options(
        urls,
        lambda *key: few_shots.get(key),
        chosen.seed,
        chosen.published_role,
        chosen.workers,
        chosen.per_second,
        chosen.device,
    )
    translators = [make_translator(word, options) for word in chosen.translator]
    check_names([name for name, _ in translators], chosen.translator)
    mlama = MLama(chosen.mlama)
    modifiers = [
        DataModifier(mlama, lang, relation)
        for lang in chosen.languages
        for relation in chosen.relations or _shared(mlama, lang)
    ]
    for modifier in modifiers:
        for _, translator in translators:
            translator.check(SOURCE, modifier.lang, modifier.relation)
        if (
            place := chosen.out / benchmark_name(modifier.lang, modifier.relation, chosen.spec)
        ).is_dir():
            raise UserError(f"cannot write {place}: a folder stands there; move it away")
    wikidata = Wikidata(chosen.store, api=urls.get("wikidata", API), refresh=chosen.refresh)
    _write_workbooks(
        modifiers,
        [translator for _, translator in translators if isinstance(translator, DocumentTranslator)],
    )
    with_aliases = chosen.aliases == "wikidata"
    with Store(chosen.store) as store, closing(wikidata):
        for modifier in modifiers:
            for name, translator in translators:
                if translator.name == "openai" and chosen.few_shot:
                    few_shot = modifier.add_few_shot_prompt(
                        chosen.few_shot, number=chosen.shots, seed=chosen.seed
                    )
                    few_shots[modifier.lang, modifier.relation] = few_shot
                modifier.add_translations(
                    name,
                    translator,
                    store=store,
                    refresh=chosen.refresh,
                    mend=not chosen.as_returned,
                )
            with_aliases = with_aliases and _try_aliases(modifier, wikidata)
            counts = modifier.add_prompt_obj_split()
            path = modifier.save(chosen.out, chosen.spec)
            for name, count in counts.items():
                report(path, name, len(modifier.table), count)
            for line in modifier.show(chosen.show):
                print(line)
        if chosen.gender:
            people = sorted(
                {uri for modifier in modifiers for uri in modifier.table["sub_uri"] if uri}
            )
            genders = wikidata.genders(people)
            write_genders(genders, chosen.gender)
            note(f"{chosen.gender}: {len(genders)} of {len(people)} subjects have a gender")


def _write_workbooks(
    modifiers: Sequence[DataModifier], translators: Sequence[DocumentTranslator]
) -> None:
    """All workbooks that a person has to have translated, at once; ends the run if there are any."""
    items = [
        item
        for modifier in modifiers
        for item in items_of(modifier.table, modifier.relation, SOURCE, modifier.lang)
    ]
    written = [path for translator in translators for path in translator.write_missing(items)]
    if written:
        raise UserError(what_to_do(written))


def _try_aliases(modifier: DataModifier, wikidata: Wikidata) -> bool:
    """Sentences are worth having without aliases, so a Wikidata that is out of reach stops nothing; False: ask it no more."""
    try:
        modifier.add_aliases(wikidata)
    except UserError as error:
        note(
            f"no aliases from {modifier.lang} {modifier.relation} on: {error} (or choose --aliases none)"
        )
        return False
    return True


def _shared(mlama: MLama, lang: str) -> list[str]:
    """The relations that English and this language have, with a template."""
    english = set(mlama.relations(SOURCE))
    return [
        relation
        for relation in mlama.relations(lang)
        if relation in english and relation in mlama.templates(lang)
    ]
