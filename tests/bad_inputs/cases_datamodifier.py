"""datamodifier.py: facts, back ends and options that do not fit."""

from __future__ import annotations

from tests.bad_inputs.case import Case
from tests.bad_inputs.spoiling import both, change, folder, lines, put, swap

MAKE = "datamodifier.py -l ru -r P36 --mlama mlama --out made --aliases none --store kept.sqlite"
FILE = f"{MAKE} --translator file:translations.tsv"
FACTS = "mlama/ru/P36.jsonl"
TEMPLATES = "mlama/ru/templates.jsonl"

CASES = [
    Case(
        "no translator",
        MAKE,
        "--translator is required (see datamodifier.py --help)",
    ),
    Case(
        "no languages",
        FILE.replace("-l ru", "-l ,"),
        "--langs: an empty list; name at least one, for example ru,cs (see datamodifier.py --help)",
    ),
    Case(
        "no relations",
        FILE.replace("-r P36", "-r ,"),
        "--relations: an empty list; name at least one, for example ru,cs (see datamodifier.py --help)",
    ),
    Case(
        "a language that is none",
        FILE.replace("-l ru", "-l xx"),
        "unknown language 'xx': choose from af, ar, …",
    ),
    Case(
        "a language without facts",
        FILE.replace("-l ru", "-l de"),
        "mlama: no language de; there are cs, en, ru",
    ),
    Case(
        "English, which is translated from",
        FILE.replace("-l ru", "-l en"),
        "'en' is the language that facts are translated from: choose another with -l",
    ),
    Case(
        "a relation without facts",
        FILE.replace("P36", "P9999"),
        "mlama/ru/templates.jsonl: no template for relation P9999",
    ),
    Case(
        "facts that are not there",
        FILE.replace("--mlama mlama", "--mlama nowhere"),
        "no such folder or zip file: nowhere; check the path",
    ),
    Case(
        "a relation without a template",
        FILE,
        "mlama/ru/templates.jsonl: no template for relation P36",
        lines(TEMPLATES, lambda rows: [row for row in rows if "P36" not in row]),
    ),
    Case(
        "a template without [Y]",
        FILE,
        "mlama/ru/templates.jsonl: the template of P36 needs one [X] and one [Y]: 'Столица [X] - Y.'",
        swap(TEMPLATES, "[Y]", "Y"),
    ),
    Case(
        "facts that English has not",
        FILE,
        "no fact of P36 is there both in English and in 'ru'",
        swap(FACTS, '"lineid": ', '"lineid": 9'),
    ),
    Case(
        "a fact that is cut off",
        FILE,
        "mlama/ru/P36.jsonl: line 8 is not JSON (Unterminated string starting at: column 106); is the file cut off?",
        change(FACTS, lambda data: data[:-20]),
    ),
    Case(
        "an unknown back end",
        f"{MAKE} --translator babel",
        "unknown translator 'babel': choose from baidu, deepl, document, file, google, libre, linguee, "
        "microsoft, mymemory, openai, papago, phrasebook, pons, qcri, seq2seq, yandex",
    ),
    Case(
        "a back end without its argument",
        f"{MAKE} --translator file",
        "file needs a path: file:translations.tsv, or file:translations/{lang}_{relation}.tsv",
    ),
    Case(
        "a back end with an argument that it does not take",
        f"{MAKE} --translator google:fast",
        "translator 'google:fast': google takes nothing after a colon",
    ),
    Case(
        "a name that no column can have",
        f"{MAKE} --translator Mine=file:translations.tsv",
        "'Mine' cannot name a verbalisation: take lower-case letters and digits, and none of en, obj, sub, template",
    ),
    Case(
        "a name that is taken",
        f"{MAKE} --translator template=file:translations.tsv",
        "'template' cannot name a verbalisation: take lower-case letters and digits, and none of en, obj, sub, template",
    ),
    Case(
        "two back ends of one name",
        f"{FILE} --translator file:translations.tsv",
        "two translators are called the same (file, file): name one, for example mine=file:translations.tsv",
    ),
    Case(
        "translations that are not there",
        f"{MAKE} --translator file:nothing.tsv",
        "cannot read translations nothing.tsv (No such file or directory): give a TSV of English sentence and translation",
    ),
    Case(
        "a folder of translations without this relation",
        f"{MAKE} --translator file:fixed_data",
        "cannot read translations fixed_data/ru_P36.tsv (No such file or directory): give a TSV of English sentence and translation",
    ),
    Case(
        "translations in UTF-16",
        FILE,
        "translations.tsv is not UTF-8 (byte 0): save it as UTF-8 text",
        change("translations.tsv", lambda data: data.decode().encode("utf-16")),
    ),
    Case(
        "translations of three columns",
        FILE,
        "translations.tsv, row 1: 3 columns where 2 are wanted (English sentence, tab, translation)",
        swap("translations.tsv", "\tПеревод", "\tда\tПеревод"),
    ),
    Case(
        "two translations of a sentence",
        FILE,
        "translations.tsv, row 9: another translation than in row 1 for 'The capital of France is Paris .'; keep one of them",
        lines("translations.tsv", lambda rows: [*rows, rows[0] + "!"]),
    ),
    Case(
        "an empty file of translations",
        FILE,
        "translations.tsv holds no translations: one row a sentence (English sentence, tab, translation)",
        put("translations.tsv", ""),
    ),
    Case(
        "a phrasebook that is not there",
        f"{MAKE} --translator phrasebook:nowhere",
        "nowhere/ru.tsv: no such file; fluent_mlama/data/phrasebook/README.md tells how to add a language",
    ),
    Case(
        "a workbook that is none",
        f"{MAKE} --translator document:gt_doc",
        "gt_doc/src/ru_P36.xlsx cannot be read as an Excel workbook (BadZipFile): save it as .xlsx",
        both(put("gt_doc/src/ru_P36.xlsx", "x"), put("gt_doc/tgt/ru_P36.xlsx", "x")),
    ),
    Case(
        "a seq2seq model that is not there",
        f"{MAKE} --translator seq2seq:./nowhere",
        "model folder ./nowhere not found; give an existing folder, a hub name, or smollm2",
    ),
    Case(
        "a seq2seq model that does not translate",
        f"{MAKE} --translator seq2seq:./model",
        "model ./model is no translation model (llama); choose one such as facebook/nllb-200-distilled-600M",
    ),
    Case(
        "a device that there is not",
        f"{MAKE} --translator seq2seq:./model --device tpu",
        "--device: 'tpu' is not a device; choose auto, cpu, cuda, cuda:N or mps (see datamodifier.py --help)",
    ),
    Case(
        "an openai key that is not there",
        f"{MAKE} --translator openai",
        "openai needs a key: set OPENAI_API_KEY, or write it into openai-api-key.txt",
    ),
    Case(
        "an address that is none",
        f"{FILE} --base-url google=ftp://x",
        "--base-url 'google=ftp://x': give NAME=URL, for example openai=http://127.0.0.1:8000/v1",
    ),
    Case(
        "a variant that is no file name",
        f"{FILE} --variant ../x",
        "--variant: '../x' cannot be in a file name; take letters, digits, dots, hyphens and underscores (see datamodifier.py --help)",
    ),
    Case(
        "--workers 0",
        f"{FILE} --workers 0",
        "--workers: '0' is not a whole number from 1 (see datamodifier.py --help)",
    ),
    Case(
        "--per-second nan",
        f"{FILE} --per-second nan",
        "--per-second: 'nan' is not a number above 0 (see datamodifier.py --help)",
    ),
    Case(
        "--per-second inf",
        f"{FILE} --per-second inf",
        "--per-second: 'inf' is not a number above 0 (see datamodifier.py --help)",
    ),
    Case(
        "--shots -1",
        f"{FILE} --shots -1",
        "--shots: '-1' is not a whole number from 0 (see datamodifier.py --help)",
    ),
    Case(
        "--show -1",
        f"{FILE} --show -1",
        "--show: '-1' is not a whole number from 0 (see datamodifier.py --help)",
    ),
    Case(
        "--out that is a file",
        FILE.replace("--out made", "--out translations.tsv"),
        "--out translations.tsv is a file, or lies in one; name a folder",
    ),
    Case(
        "--out below a file",
        FILE.replace("--out made", "--out translations.tsv/made"),
        "--out translations.tsv/made is a file, or lies in one; name a folder",
    ),
    Case(
        "a folder where the benchmark file should go",
        FILE,
        "cannot write made/ru_P36.tsv: a folder is there; move it away",
        folder("made/ru_P36.tsv"),
    ),
    Case(
        "a store that is no SQLite file",
        FILE,
        "store kept.sqlite is damaged or no SQLite file (file is not a database): move it away, or give another --store",
        put("kept.sqlite", "these are no answers, but a page" * 20),
    ),
    Case(
        "a store that is a folder",
        FILE,
        "store kept.sqlite is a folder: give the name of a file",
        folder("kept.sqlite"),
    ),
    Case(
        "--gender below a file",
        f"{FILE} --gender translations.tsv/gender.tsv",
        "the folder of --gender translations.tsv is a file, or lies in one; name a folder",
    ),
    Case(
        "--gender that is a folder",
        f"{FILE} --gender fixed_data",
        "--gender fixed_data is a folder: name a file, for example fixed_data/gender.tsv",
    ),
    Case(
        "a few-shot text that is none",
        f"{MAKE} --translator openai --few-shot shots",
        "openai needs a key: set OPENAI_API_KEY, or write it into openai-api-key.txt",
        put("shots/ru_P36.txt", "Source sentence: x\n"),
    ),
]
