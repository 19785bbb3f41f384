"""``grammeval.py gender``: does the sentence agree with the subject's gender, and is the fact
retrieved (Table 6)?

Rows of the chosen relations are pooled per language, none left out for its length, as the paper
does. A group is the rows whose subject is female, male or of unknown gender, or (``feminine form``,
which needs no gender) the rows where a verbalisation other than the template has a feminine form.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import regex
from cyclopts import Parameter
from statsmodels.stats.proportion import proportion_confint
from tabulate import tabulate

from fluent_mlama.console import UserError, note
from fluent_mlama.data import DATA, GENDERED_FORMS
from fluent_mlama.files import format_table, read_table, write_text
from fluent_mlama.fluency.judges import sentences
from fluent_mlama.languages import fold_case
from fluent_mlama.options import File
from fluent_mlama.reporting.latex import (
    Column,
    Raw,
    booktabs_in_blocks,
    escape,
    number,
    write_table,
)
from fluent_mlama.reporting.loading import DumpFolder, RankTable, open_dumps
from fluent_mlama.reporting.options import StatsOptions
from fluent_mlama.reporting.plotting import shown
from fluent_mlama.reporting.selection import SLAVIC, RowRules, select
from fluent_mlama.translating.phrasebook import read_entries, read_facts
from fluent_mlama.translating.wikidata import API, Wikidata, write_genders

NAME = "gender_stats"
PAPER_RELATIONS = ("P19", "P20")
GROUPS = ("all", "female", "male", "unknown", "feminine form")
PHRASEBOOK, WIKIDATA = "phrasebook", "wikidata"


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class GenderOptions:
    """Who is a woman, and which forms are feminine."""

    gender: str = ""
    """a gender.tsv (p, genderLabel), phrasebook (the starter's people) or wikidata
    (default: gender.tsv where it lies here, else phrasebook)"""
    forms: File = GENDERED_FORMS
    """forms by language and relation (default: the shipped)"""
    store: File = Path(".cache/wikidata.sqlite")
    """where Wikidata's answers are kept"""
    wikidata: str = API
    """address of Wikidata's API"""

    @property
    def source(self) -> str:
        """Where genders come from."""
        return self.gender or ("gender.tsv" if Path("gender.tsv").is_file() else PHRASEBOOK)


def gender(
    *, options: StatsOptions = StatsOptions(), source: GenderOptions = GenderOptions()
) -> None:
    """Verb forms that agree with the subject's gender, and retrieval (Table 6).

    grammeval.py gender --stats stats/starter/paper
    """
    write_gender(open_dumps(options.dumps), options, source)


def write_gender(
    folder: DumpFolder, options: StatsOptions, source: GenderOptions = GenderOptions()
) -> list[Path]:
    """``gender_stats.tex`` and ``gender_stats.tsv``; returns their paths."""
    tables = chosen_tables(folder, options, source)
    counts = _count(tables, options, source)
    path = options.tables / f"{NAME}.tsv"
    write_text(
        path,
        format_table(counts.astype(object).map(lambda cell: "" if cell != cell else str(cell))),
    )
    note(f"wrote {path}")
    columns = ["lang", "group", "verbalisation", "n", "feminine", "feminine_share", "hits", "r1"]
    print(tabulate(counts[columns].to_numpy().tolist(), columns, floatfmt="z.3f"))
    unknown = counts[counts["group"] == "unknown"].drop_duplicates("lang")["n"].sum()
    if unknown:
        rows = counts[counts["group"] == "all"].drop_duplicates("lang")["n"].sum()
        note(
            f"{source.source} does not know the gender of {unknown} of {rows} rows; the women of"
            " the table are those it knows"
        )
    relations = " ".join(dict.fromkeys(table.relation for of in tables.values() for table in of))
    if options.style == "paper":
        return [write_table(options.tables, NAME, paper_layout(counts)), path]
    lines = [
        (
            f"Facts about women ({relations}, pooled): share of sentences with a feminine form, and"
            " R@1; Wilson 95 % intervals."
        ),
        f"n: {', '.join(f'{lang} {n}' for lang, n in _women(counts).items())}.",
        f"Gender: {source.source}. Forms: {source.forms.name}.",
        f"signature: {folder.signature([table for of in tables.values() for table in of])}",
    ]
    return [write_table(options.tables, NAME, clean_layout(counts), lines), path]


def count(
    folder: DumpFolder, options: StatsOptions, source: GenderOptions = GenderOptions()
) -> pd.DataFrame:
    """One row for each (lang, group, verbalisation): n rows, those with a feminine and with a
    masculine form, those with R@1 = 1, shares of both with Wilson's 95 % interval (NaN where n is
    0).
    """
    return _count(chosen_tables(folder, options, source), options, source)


def _count(
    tables: Mapping[str, Sequence[RankTable]], options: StatsOptions, source: GenderOptions
) -> pd.DataFrame:
    forms = read_forms(source.forms, published=options.style == "paper")
    people = [uri for of in tables.values() for table in of for uri in table.facts["sub_uri"]]
    genders = _genders(list(dict.fromkeys(people)), options, source)
    parts = [_count_language(lang, of, forms, genders) for lang, of in tables.items()]
    return pd.concat(parts, ignore_index=True)


def chosen_tables(
    folder: DumpFolder, options: StatsOptions, source: GenderOptions
) -> dict[str, list[RankTable]]:
    """lang -> its dumps: as asked, else the paper's (paper style), else those with known forms."""
    forms = read_forms(source.forms, published=options.style == "paper")
    langs = options.langs or [
        lang for lang in folder.languages() if any(known == lang for known, _ in forms)
    ]
    if options.style == "paper" and not options.langs:
        langs = [lang for lang in SLAVIC if lang in folder.languages()]
    wanted = options.relations or (PAPER_RELATIONS if options.style == "paper" else None)
    chosen = {}
    for lang in langs:
        relations = wanted or [
            relation for relation in folder.relations(lang) if (lang, relation) in forms
        ]
        lacking = [relation for relation in relations if (lang, relation) not in forms]
        if lacking or not relations:
            what = (
                ", ".join(lacking)
                or f"any relation of these dumps ({', '.join(folder.relations(lang))})"
            )
            raise UserError(
                f"{source.forms} has no forms for {lang} {what}: add rows, or choose with --langs"
                " and --relations"
            )
        selection = select(folder, [lang], relations, options.verbalisations, RowRules("no"))
        chosen[lang] = selection.of(lang)
    if not chosen:
        raise UserError(
            f"{source.forms} knows none of the languages of these dumps"
            f" ({', '.join(folder.languages())}): give --forms"
        )
    return chosen


def _genders(people: Sequence[str], options: StatsOptions, source: GenderOptions) -> dict[str, str]:
    name = source.source
    if name == PHRASEBOOK:
        return phrasebook_genders()
    if name == WIKIDATA:
        return wikidata_genders(
            people, source.store, options.tables / "gender.tsv", source.wikidata
        )
    return read_genders(Path(name))


def _count_language(
    lang: str,
    tables: Sequence[RankTable],
    forms: Mapping[tuple[str, str], Forms],
    genders: Mapping[str, str],
) -> pd.DataFrame:
    def has(gender: str) -> pd.DataFrame:
        """Whether each sentence has a form of this gender."""
        parts = []
        for table in tables:
            pattern = getattr(forms[lang, table.relation], gender)
            texts = sentences(table)
            parts.append(texts.map(lambda text, one=pattern: one is not None and one.matches(text)))
        return pd.concat(parts, ignore_index=True)

    feminine, masculine = has("feminine"), has("masculine")
    hit = pd.concat([table.top1 for table in tables], ignore_index=True)
    subjects = pd.concat([table.facts["sub_uri"] for table in tables], ignore_index=True)
    known = subjects.map(lambda uri: genders.get(uri, ""))
    groups = {
        "all": np.ones(len(known), dtype=bool),
        "female": known.isin(FEMALE).to_numpy(),
        "male": known.isin(MALE).to_numpy(),
        "unknown": ~known.isin((*FEMALE, *MALE)).to_numpy(),
        "feminine form": feminine.drop(columns="template", errors="ignore").any(axis=1).to_numpy(),
    }
    rows = []
    for group in GROUPS:
        of = groups[group]
        for v in hit.columns:
            n, hits = int(of.sum()), int(hit.loc[of, v].sum())
            with_feminine = int(feminine.loc[of, v].sum())
            row = {"lang": lang, "group": group, "verbalisation": v, "n": n}
            row |= {"feminine": with_feminine, "masculine": int(masculine.loc[of, v].sum())}
            row |= {"hits": hits} | _share("feminine", with_feminine, n) | _share("r1", hits, n)
            rows.append(row)
    return pd.DataFrame(rows)


def _share(name: str, k: int, n: int) -> dict[str, float]:
    # Wilson's interval holds for shares near 0 and 1, where these mostly are.
    low, high = proportion_confint(k, n, method="wilson") if n else (np.nan, np.nan)
    value = "r1" if name == "r1" else f"{name}_share"
    return {value: k / n if n else np.nan, f"{name}_low": float(low), f"{name}_high": float(high)}


def _women(counts: pd.DataFrame) -> dict[str, int]:
    of = counts[counts["group"] == "female"].drop_duplicates("lang")
    return dict(zip(of["lang"], of["n"], strict=True))


def _cells(counts: pd.DataFrame) -> dict[tuple[str, str], dict[Hashable, Any]]:
    female = counts[counts["group"] == "female"]
    return {
        (record["lang"], record["verbalisation"]): record for record in female.to_dict("records")
    }


def paper_layout(counts: pd.DataFrame) -> str:
    """R@1(F) and %(F) by verbalisation; three decimals, no padding, languages in the first line."""
    cells, langs, names = (
        _cells(counts),
        list(dict.fromkeys(counts["lang"])),
        list(dict.fromkeys(counts["verbalisation"])),
    )

    def value(lang: str, v: str, column: str) -> object:
        found = cells.get((lang, v), {}).get(column, np.nan)
        return "N/A" if np.isnan(found) else round(float(found), 3)

    rows: list[list[object]] = [["", "", *langs]]
    rows += [["R@1(F)", escape(shown(v)), *(value(lang, v, "r1") for lang in langs)] for v in names]
    rows += [
        [r"\%(F)", escape(shown(v)), *(value(lang, v, "feminine_share") for lang in langs)]
        for v in names
    ]
    return str(tabulate(rows, tablefmt="latex_raw", disable_numparse=True))


def clean_layout(counts: pd.DataFrame) -> str:
    """Ours: counts and Wilson's intervals beside every share."""
    cells, langs, names = (
        _cells(counts),
        list(dict.fromkeys(counts["lang"])),
        list(dict.fromkeys(counts["verbalisation"])),
    )

    def value(lang: str, v: str, k: str, share: str, ends: str) -> list[object]:
        of = cells.get((lang, v))
        if of is None or not of["n"]:
            return [Raw("--"), Raw("--")]
        interval = f"[{number(of[f'{ends}_low'], 2)}, {number(of[f'{ends}_high'], 2)}]"
        return [Raw(f"{number(of[share], 3)} ({of[k]}/{of['n']})"), Raw(interval)]

    columns = [Column("women", "l"), Column("", "l")]
    columns += [Column(head, group=lang) for lang in langs for head in ("share", "95 % interval")]
    measures = (
        ("feminine form", "feminine", "feminine_share", "feminine"),
        ("R@1", "hits", "r1", "r1"),
    )
    rows: list[Sequence[object] | None] = []
    for title, *parts in measures:
        rows += [None] * bool(rows)
        rows += [
            [
                title if v == names[0] else "",
                shown(v),
                *(cell for lang in langs for cell in value(lang, v, *parts)),
            ]
            for v in names
        ]
    return booktabs_in_blocks(columns, rows, repeated=2)


# ---- forms that agree --------------------------------------------------------------------------

COLUMNS = ("lang", "relation", "gender", "form")
BLANK = "␣"


@dataclass(frozen=True)
class FormPattern:
    """Forms of one gender as a pattern. lang: folds case by it; None: the text as it is."""

    pattern: regex.Pattern[str]
    lang: str | None = None

    def matches(self, text: str) -> bool:
        """Whether the text has one of the forms."""
        return (
            self.pattern.search(text if self.lang is None else fold_case(text, self.lang))
            is not None
        )


@dataclass(frozen=True)
class Forms:
    """The forms of one (language, relation); None where there is no form of that gender."""

    feminine: FormPattern | None
    masculine: FormPattern | None


def read_forms(
    path: Path = GENDERED_FORMS, *, published: bool = False
) -> dict[tuple[str, str], Forms]:
    """(lang, relation) -> forms: whole words in any case, or the paper's own strings."""
    if not path.is_file():
        raise UserError(
            f"no table of forms {path}: give a TSV with the columns {', '.join(COLUMNS)}"
        )
    frame = read_table(path.read_bytes(), str(path))
    lacking = [
        column
        for column in (*COLUMNS, *(("published",) if published else ()))
        if column not in frame
    ]
    if lacking:
        raise UserError(f"{path}: no column {', '.join(lacking)}; it needs {', '.join(COLUMNS)}")
    for row, gender, form in zip(frame.index, frame["gender"], frame["form"], strict=True):
        if gender not in ("f", "m") or not form.strip():
            raise UserError(
                f"{path}, row {row}: gender '{gender}' and form '{form}'; write f or m, and a form"
            )
    found = {}
    for (lang, relation), rows in frame.groupby(["lang", "relation"], sort=False):
        if published:
            strings = [cell.replace(BLANK, " ") for cell in rows["published"] if cell]
            if strings:
                found[str(lang), str(relation)] = Forms(
                    FormPattern(regex.compile("|".join(map(regex.escape, strings)))), None
                )
        else:
            of = {gender: list(rows.loc[rows["gender"] == gender, "form"]) for gender in ("f", "m")}
            found[str(lang), str(relation)] = Forms(
                _whole_words(of["f"], str(lang)), _whole_words(of["m"], str(lang))
            )
    return found


def _whole_words(forms: Sequence[str], lang: str) -> FormPattern | None:
    if not forms:
        return None
    words = "|".join(
        r"\s+".join(map(regex.escape, fold_case(form, lang).split())) for form in forms
    )
    # \w leaves combining marks out, which are part of words in the scripts of India.
    return FormPattern(regex.compile(rf"(?<![\w\p{{M}}])(?:{words})(?![\w\p{{M}}])"), lang)


# ---- where a subject's gender comes from -------------------------------------------------------

FEMALE = ("female", "transgender female", "trans woman")
MALE = ("male", "transgender male", "trans man")
PERSON_RELATIONS = ("P19", "P20", "P103", "P108")
"""Relations of the starter whose subjects are people; elsewhere a noun class says nothing of a
person.
"""
GENDERED_PHRASEBOOKS = ("ru", "cs", "uk", "hr")
CLASSES = {"f": FEMALE[0], "m": MALE[0]}


def read_genders(path: Path) -> dict[str, str]:
    """id -> gender from a TSV with the columns ``p`` (bare Wikidata id) and ``genderLabel``."""
    if not path.is_file():
        raise UserError(
            f"no {path}: give a TSV with the columns p and genderLabel, or --gender phrasebook, or"
            " --gender wikidata"
        )
    frame = read_table(path.read_bytes(), str(path))
    lacking = [column for column in ("p", "genderLabel") if column not in frame]
    if lacking:
        raise UserError(
            f"{path}: no column {', '.join(lacking)}; it needs p (a bare id such as Q42) and"
            " genderLabel"
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
    """id -> gender of the starter's people, from the classes of their names in the phrasebooks
    whose verbs agree (``f``, ``m``, or finer ones such as ``f-past``; a name that no pattern needs
    has none). The phrasebooks agree; a test compares them.
    """
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
    """Ask Wikidata (answers are kept in ``store``) and write a ``gender.tsv`` to ``keep``."""
    with closing(Wikidata(store, api=api)) as wikidata:
        genders = wikidata.genders(list(uris))
    write_genders(genders, keep)
    return genders
