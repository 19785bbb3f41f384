"""python -m probes.cpopqa: concepts, frequencies, questions and answers that do not fit."""

from __future__ import annotations

from tests.bad_inputs.case import Case
from tests.bad_inputs.spoiling import both, change, cut, lines, put, swap, without_column

C = "-m probes.cpopqa"
FREE = f"{C} build --concepts instruments.csv --noun instruments --n 2 --rounds 1 --questions 3 --out new"
DAYS = f"{C} build --out new"
RANK = f"{C} rank --data instruments --model ./nowhere"
ASK = f"{C} ask --data instruments --model ./nowhere"
SCORE = f"{C} score --data instruments"
GRAMS = f"{DAYS} --ngrams US=us.json"

FEW = ("… countries have fewer than 5 holidays and are left out",)
NONE_YET = (
    "instruments holds no answers yet: only the baselines are scored (ask and rank make answers)",
)

CASES = [
    Case(
        "no command",
        C,
        "name a command; there are build, ask, rank, score",
    ),
    Case(
        "no frequencies at all",
        DAYS,
        "no popularity given: use --ngrams, --popularity or --proxy (docs/cpopqa.md)",
        notes=FEW,
    ),
    Case(
        "concepts that are not there",
        FREE.replace("instruments.csv", "nothing.csv"),
        "nothing.csv: no such file; check the path",
    ),
    Case(
        "concepts without a column",
        FREE,
        "instruments.csv: row 1 lacks the column item; it must name item, group",
        swap("instruments.csv", "item,", "thing,", 1),
    ),
    Case(
        "concepts without frequencies",
        FREE,
        "instruments.csv: no popularity: beside item and group it needs a column of numbers for each target",
        put("instruments.csv", "item,group\nguitar,string\n"),
    ),
    Case(
        "a frequency that is a word",
        FREE,
        "instruments.csv: row 2: EN-proxy 'often' is no number of at least 0; correct it or remove the row",
        swap("instruments.csv", "3.02e-05", "often"),
    ),
    Case(
        "a frequency below nought",
        FREE,
        "instruments.csv: row 2: EN-proxy '-1' is no number of at least 0; correct it or remove the row",
        swap("instruments.csv", "3.02e-05", "-1"),
    ),
    Case(
        "a frequency that is nan",
        FREE,
        "instruments.csv: row 2: EN-proxy 'nan' is no number of at least 0; correct it or remove the row",
        swap("instruments.csv", "3.02e-05", "nan"),
    ),
    Case(
        "a concept that stands twice",
        FREE,
        "instruments.csv: row 50: item 'guitar' is empty or stands twice in its group",
        lines("instruments.csv", lambda rows: [*rows, rows[1]]),
    ),
    Case(
        "a row with a field too many",
        FREE,
        "instruments.csv: row 50 has 7 fields, the header 6; quote commas",
        lines("instruments.csv", lambda rows: [*rows, rows[1] + ",1"]),
    ),
    Case(
        "concepts in UTF-16",
        FREE,
        "instruments.csv: not UTF-8 (byte 0); save it as UTF-8",
        change("instruments.csv", lambda data: data.decode().encode("utf-16")),
    ),
    Case(
        "a folder given as concepts",
        FREE.replace("instruments.csv", "instruments"),
        "instruments: no such file; check the path",
    ),
    Case(
        "an option of calendars beside concepts",
        f"{FREE} --proxy",
        "--proxy has no effect beside --concepts, whose file holds the popularity; leave one out",
    ),
    Case(
        "too few concepts for a question",
        FREE,
        "EN-proxy: only 0 different untied sets of 2 in 0 groups, 3 questions and 18 examples a round need "
        "more: lower --questions or --shots, or leave 2 out of --n",
        lines("instruments.csv", lambda rows: rows[:2]),
    ),
    Case(
        "--n 1",
        FREE.replace("--n 2", "--n 1"),
        "--n: a question sorts 2 to 9 concepts, e.g. --n 2,3,5",
    ),
    Case(
        "--n that is a word",
        FREE.replace("--n 2", "--n two"),
        "--n two: write whole numbers, for example 2,3,5",
    ),
    Case(
        "--rounds 0",
        FREE.replace("--rounds 1", "--rounds 0"),
        "--rounds: '0' is not a whole number from 1 (see fluent-mlama cpopqa build --help)",
    ),
    Case(
        "--questions -1",
        FREE.replace("--questions 3", "--questions -1"),
        "--questions: '-1' is not a whole number from 1 (see fluent-mlama cpopqa build --help)",
    ),
    Case(
        "--shots -1",
        f"{FREE} --shots -1",
        "--shots: '-1' is not a whole number from 0 to 10 (see fluent-mlama cpopqa build --help)",
    ),
    Case(
        "--seed -1",
        f"{FREE} --seed -1",
        "--seed: '-1' is not a whole number from 0 to 4294967295 (see fluent-mlama cpopqa build --help)",
    ),
    Case(
        "a wording with an unknown place",
        f"{FREE} --wording 'Which of {{things}}?'",
        "--wording lacks {concepts}; it may hold {concepts}, {target} and {options}",
    ),
    Case(
        "words for a target that there is not",
        f"{FREE} --target-text US=America",
        "--target-text names US, the targets are EN-proxy, ES-proxy",
    ),
    Case(
        "--out that is a file",
        FREE.replace("--out new", "--out translations.tsv"),
        "--out translations.tsv is a file, or lies in one; name a folder",
    ),
    Case(
        "years the wrong way round",
        f"{GRAMS} --years 2000-1900",
        "--years 2000-1900: write the first and the last year, for example 1800-2019",
    ),
    Case(
        "frequencies without a target",
        f"{DAYS} --ngrams us.json",
        "--ngrams us.json: write it as TARGET=VALUE, for example US=us.json",
        notes=FEW,
    ),
    Case(
        "frequencies that are not there", GRAMS, "us.json: no such file; check the path", notes=FEW
    ),
    Case(
        "frequencies that are not JSON",
        GRAMS,
        "us.json is not JSON (…); save the viewer's json page as it is",
        put("us.json", "{"),
        notes=FEW,
    ),
    Case(
        "frequencies of other years",
        GRAMS,
        "us.json: 'Christmas Day' has 2 yearly values, 1800 to 2019 are 220; give the years of the export with --years",
        put("us.json", '[{"ngram": "Christmas Day", "timeseries": [1, 2]}]'),
        notes=FEW,
    ),
    Case(
        "a raw file without its totals",
        f"{DAYS} --ngrams US=us.gz",
        "us.gz: a raw file needs the yearly totals; give the totalcounts file with --totals",
        put("us.gz", b"\x1f\x8b"),
        notes=FEW,
    ),
    Case(
        "people's rankings that are not there",
        f"{FREE} --human h.csv",
        "h.csv: no such file; check the path",
    ),
    Case(
        "people's rankings without a column",
        f"{FREE} --human h.csv",
        "h.csv: row 1 lacks the column holiday; it must name rater, country, holiday, rank",
        put("h.csv", "rater,country\nA,DE\n"),
    ),
    Case(
        "questions that are not there",
        RANK.replace("--data instruments", "--data nowhere"),
        "nowhere holds no questions (items.jsonl is missing): run build first, or check --data",
    ),
    Case(
        "questions that are cut off",
        RANK,
        "items.jsonl: line 3 is no question; the file is cut off or was edited: run build again",
        cut("instruments/items.jsonl"),
    ),
    Case(
        "--per-round 0",
        f"{RANK} --per-round 0",
        "--per-round: '0' is not a whole number from 1 (see fluent-mlama cpopqa rank --help)",
    ),
    Case(
        "two forms of the prompt",
        f"{RANK} --examples --unlisted",
        "--examples and --unlisted exclude each other; give one of them",
    ),
    Case(
        "a model that is not there",
        RANK,
        "model folder ./nowhere not found; give an existing folder, a hub name, or smollm2",
        loads=True,
    ),
    Case(
        "a model that is not there",
        ASK,
        "model folder ./nowhere not found; give an existing folder, a hub name, or smollm2",
        loads=True,
    ),
    Case(
        "--batch 0",
        f"{ASK} --batch 0",
        "--batch: '0' is not a whole number from 1 (see fluent-mlama cpopqa ask --help)",
    ),
    Case(
        "--workers 0",
        f"{ASK} --endpoint --workers 0",
        "--workers: '0' is not a whole number from 1 (see fluent-mlama cpopqa ask --help)",
    ),
    Case(
        "an endpoint without a key",
        f"{ASK} --endpoint",
        "openai needs a key: set OPENAI_API_KEY, or write it into openai-api-key.txt",
    ),
    Case(
        "an address that is none",
        f"{ASK} --base-url somewhere",
        "--base-url somewhere: give the address of a server, for example http://127.0.0.1:8000/v1",
    ),
    Case(
        "no questions",
        f"{C} score --data fixed_data",
        "fixed_data holds no questions (items.jsonl is missing): run build first, or check --data",
    ),
    Case(
        "an unknown baseline",
        f"{SCORE} --baselines luck",
        "--baselines luck: choose from random, shared, question order, name length, wiki length, trends",
    ),
    Case(
        "a baseline without its file",
        f"{SCORE} --baselines trends",
        "--baselines trends needs a file: give --trends",
        notes=NONE_YET,
    ),
    Case(
        "a baseline's file that is not there",
        f"{SCORE} --trends t.csv",
        "t.csv: no such file; check the path",
        notes=NONE_YET,
    ),
    Case(
        "a baseline's number that is a word",
        f"{SCORE} --wiki-length w.csv",
        "w.csv: row 2: words 'many' is no number of at least 0; correct it or remove the row",
        put("w.csv", "holiday,words\nguitar,many\n"),
        notes=NONE_YET,
    ),
    Case(
        "nothing to score",
        f"{SCORE} --baselines ,",
        "--baselines: an empty list; name at least one, for example ru,cs (see fluent-mlama cpopqa score --help)",
    ),
    Case(
        "--shared 0",
        f"{SCORE} --shared 0",
        "--shared: '0' is not a whole number from 1 (see fluent-mlama cpopqa score --help)",
    ),
    Case(
        "concepts without a column",
        SCORE,
        "concepts.tsv: a column or a number is missing; the file was edited or is another one: run build again",
        without_column("instruments/concepts.tsv", "aliases"),
    ),
    Case(
        "answers that are no JSON",
        SCORE,
        "x.run.json is missing or damaged: it says what made the answers; move the answers away and ask again",
        both(put("instruments/answers/x.jsonl", "{\n"), put("instruments/answers/x.json", "{}")),
    ),
]
