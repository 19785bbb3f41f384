"""script.py export: to Hugging Face datasets, lm-evaluation-harness and LM-Pub-Quiz."""

from __future__ import annotations

from tests.bad_inputs.case import Break, Case
from tests.bad_inputs.spoiling import (
    NESTED,
    both,
    change,
    copy,
    cut,
    lines,
    put,
    remove,
    without_column,
    zipped,
)

FILE = "fixed_data/ru_P36_phrasebook.tsv"
HF, HARNESS, BEAR = (
    f"script.py export {name} -l ru -r P36 --out new" for name in ("hf", "lm-eval", "bear")
)


def _column(name: str, value: str) -> Break:
    """Every cell of the column."""

    def make(rows: list[str]) -> list[str]:
        place = rows[0].split("\t").index(name)
        table = [row.split("\t") for row in rows[1:]]
        return [rows[0], *("\t".join([*row[:place], value, *row[place + 1 :]]) for row in table)]

    return lines(FILE, make)


def _verbalisation(name: str) -> Break:
    """The phrasebook's columns under another name."""
    return lines(FILE, lambda rows: [rows[0].replace("phrasebook_", f"{name}_"), *rows[1:]])


CASES = [
    Case(
        "an export without a format",
        "script.py export",
        "name a command; there are hf, lm-eval, bear",
    ),
    Case(
        "a format that there is not",
        "script.py export csv --out new",
        "no command 'csv'; there are hf, lm-eval, bear",
    ),
    Case(
        "an export without a folder",
        "script.py export hf",
        "--out is required (see script.py export hf --help)",
    ),
    Case(
        "a folder without a name",
        "script.py export hf --out ''",
        "--out: an empty name (see script.py export hf --help)",
    ),
    Case(
        "an option that exports have not",
        f"{HF} --model stand-in",
        "Unknown option: --model… (see script.py export hf --help)",
    ),
    Case(
        "data that is not there",
        f"{HF} --data nowhere",
        "no such folder or zip file: nowhere; check the path",
    ),
    Case(
        "data without benchmark files",
        f"{HARNESS} --data mlama",
        "no benchmark files in mlama: put the published ones there (…), make your own with datamodifier.py, or take ours with "
        "--data fixed_data/starter",
    ),
    Case(
        "dumps in place of benchmark files",
        f"{BEAR} --data stats/paper",
        "stats/paper/ru_P36_template_phrasebook.tsv is a rank dump, not a benchmark file; give the folder of the benchmark (fixed_data)",
    ),
    Case(
        "a zip that is cut off",
        f"{BEAR} --data b.zip",
        "b.zip is neither a folder nor a readable zip file (File is not a zip file)",
        both(zipped("b.zip", "fixed_data"), cut("b.zip")),
    ),
    Case(
        "a language without a file",
        "script.py export lm-eval -l de --out new",
        "no benchmark file for language 'de' in fixed_data: there are cs, ru",
    ),
    Case(
        "an empty list of languages",
        "script.py export lm-eval -l , --out new",
        "--langs: an empty list; name at least one, for example ru,cs (see script.py export lm-eval --help)",
    ),
    Case(
        "a relation that is none",
        "script.py export bear -r P9999 --out new",
        "no benchmark file for relation 'P9999' of cs, ru in fixed_data: there are P19, P36",
    ),
    Case(
        "a relation with a number that is none",
        "script.py export bear -r P² --out new",
        "no benchmark file for relation 'P²' of cs, ru in fixed_data: there are P19, P36",
    ),
    Case(
        "a verbalisation that the file lacks",
        f"{HF} --verbalisations gt",
        "ru_P36_phrasebook.tsv has no verbalisation 'gt': its columns hold template, phrasebook (--verbalisations)",
    ),
    Case(
        "a spec that no file has",
        f"{HARNESS} --variant nogpt",
        "no file of variant 'nogpt' in fixed_data: there are phrasebook (--variant)",
    ),
    Case(
        "two files of one relation",
        BEAR,
        "2 files for ru P36 in fixed_data (ru_P36_mine.tsv, ru_P36_phrasebook.tsv): choose one with --variant mine or --variant phrasebook",
        copy(FILE, "fixed_data/ru_P36_mine.tsv"),
    ),
    Case(
        "--limit 0",
        f"{HF} --limit 0",
        "--limit: '0' is not a whole number from 1 (see script.py export hf --help)",
    ),
    Case(
        "a licence where there is no card for it",
        f"{HARNESS} --licence mit",
        "Unknown option: --licence (see script.py export lm-eval --help)",
    ),
    Case(
        "a licence that is no id",
        f"{HF} --licence 'mit: no'",
        "Invalid value \"mit: no\" for --licence. 'mit: no' is not a licence id; give one as the Hub writes it, for "
        "example cc-by-4.0 (see script.py export hf --help)",
    ),
    Case(
        "--out that is a file",
        HF.replace("new", "translations.tsv"),
        "cannot write translations.tsv: it is a file; choose another folder",
    ),
    Case(
        "--out below a file",
        HARNESS.replace("new", "translations.tsv/new"),
        "cannot write translations.tsv/new: translations.tsv is a file, or lies in one; choose another folder",
    ),
    Case(
        "--out that is the data's own folder",
        BEAR.replace("new", "fixed_data"),
        "fixed_data holds other files (cs_P19_phrasebook.tsv), so it is left as it is; choose a new folder",
    ),
    Case(
        "--out that is the folder one stands in",
        HF.replace("new", "."),
        ". holds other files (answers), so it is left as it is; choose a new folder",
    ),
    Case(
        "--out with a name too long for the disk",
        HF.replace("new", "n" * 300),
        "File name too long at nnn…; choose a shorter name, then run the same command again",
    ),
    Case(
        "--out with a record that is cut off",
        HF,
        "new holds other files (export.json), so it is left as it is; choose a new folder",
        put("new/export.json", "{"),
    ),
    Case(
        "--out with a record of brackets without end",
        HARNESS,
        "new holds other files (export.json), so it is left as it is; choose a new folder",
        put("new/export.json", NESTED),
    ),
    Case(
        "an earlier export in which somebody keeps notes",
        BEAR,
        "new holds other files (notes.txt), so it is left as it is; choose a new folder",
        both(put("new/export.json", '{"holds": []}'), put("new/notes.txt", "x")),
    ),
    Case(
        "a file in UTF-16",
        HF,
        "fixed_data/ru_P36_phrasebook.tsv: not UTF-8 (byte 0xff in line 1); save it as UTF-8",
        change(FILE, lambda data: data.decode().encode("utf-16")),
    ),
    Case(
        "a file without ids",
        HARNESS,
        "fixed_data/ru_P36_phrasebook.tsv: no column 'sub_uri'; it has …",
        without_column(FILE, "sub_uri"),
    ),
    Case(
        "a file that is cut off",
        BEAR,
        "fixed_data/ru_P36_phrasebook.tsv: line 5 ends a row of 9 fields, the header has 17; the file is cut off, or a tab or a quote is "
        "missing",
        cut(FILE),
    ),
    Case(
        "a file without rows",
        HF,
        "fixed_data/ru_P36_phrasebook.tsv: a header and no rows; is the file cut off?",
        lines(FILE, lambda rows: rows[:1]),
    ),
    Case(
        "a file of nothing",
        HF,
        "fixed_data/ru_P36_phrasebook.tsv: the file is empty",
        put(FILE, ""),
    ),
    Case(
        "a file that is gone",
        HF,
        "no benchmark file for relation 'P36' of ru in fixed_data: there are P19",
        remove(FILE),
    ),
    Case(
        "no row with an object",
        HARNESS,
        "no row of ru_P36_phrasebook.tsv can be exported: 8 × phrasebook: not-found",
        _column("phrasebook_infl_object", "ERROR"),
    ),
    Case(
        "many right answers, of which BEAR holds one",
        BEAR,
        "BEAR holds questions with one right answer in a space that the relation shares; there is none: 16 × another answer is right "
        "for its subject as well",
        _column("sub_uri", "Q90"),
    ),
    Case(
        "a verbalisation that no task can be named after",
        HARNESS,
        "verbalisation 'my book': lm-eval's task names hold letters, digits, '_', '-' and '.' only; rename its columns",
        _verbalisation("my book"),
    ),
    Case(
        "a verbalisation that leads out of the folder",
        BEAR,
        "verbalisation '../../x' cannot be part of a folder's name, which BEAR needs; rename its columns",
        _verbalisation("../../x"),
    ),
]
