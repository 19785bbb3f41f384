"""stats.py compare, rerank and report: options, stored scores and places."""

from __future__ import annotations

from tests.bad_inputs.case import Case
from tests.bad_inputs.cases_dumps import DUMP
from tests.bad_inputs.spoiling import copy, cut, put, remove

ON = "--stats stats/paper --wide stats_wide/paper"
RERANK = "stats.py rerank --scores stats/paper --out new"
SCORES = DUMP.replace(".tsv", ".scores.parquet")

CASES = [
    Case(
        "a baseline that there is not",
        f"stats.py compare {ON} --baseline gt",
        "stats/paper has no verbalisation 'gt', it has template, phrasebook; choose with --baseline",
    ),
    Case(
        "one verbalisation and nothing to compare it with",
        f"stats.py compare {ON} --verbalisations template",
        "stats/paper has only the verbalisation template: nothing to compare it with; or give --against FOLDER",
    ),
    Case(
        "another folder that is not there",
        f"stats.py compare {ON} --against nowhere",
        "no such folder or zip file: nowhere; check the path",
    ),
    Case(
        "--k 0",
        f"stats.py compare {ON} --k 0",
        "--k: '0' is not a list of whole numbers from 1, such as 1,3,5 (see stats.py compare --help)",
    ),
    Case(
        "--level 1",
        f"stats.py compare {ON} --level 1",
        "--level: '1' is not a level; give a number from 0.5 to below 1, such as 0.95 (see stats.py compare --help)",
    ),
    Case(
        "--level nan",
        f"stats.py compare {ON} --level nan",
        "--level: 'nan' is not a level; give a number from 0.5 to below 1, such as 0.95 (see stats.py compare --help)",
    ),
    Case(
        "--resamples 10",
        f"stats.py compare {ON} --resamples 10",
        "--resamples: '10' is not a whole number from 200 to 1000000 (see stats.py compare --help)",
    ),
    Case(
        "--resamples beyond all memory",
        f"stats.py compare {ON} --resamples 999999999999",
        "--resamples: '999999999999' is not a whole number from 200 to 1000000 (see stats.py compare --help)",
    ),
    Case(
        "--seed -1",
        f"stats.py compare {ON} --seed -1",
        "--seed: '-1' is not a whole number from 0 to 4294967295 (see stats.py compare --help)",
    ),
    Case(
        "--seed that is a word",
        f"stats.py compare {ON} --seed dice",
        "--seed: 'dice' is not a whole number from 0 to 4294967295 (see stats.py compare --help)",
    ),
    Case(
        "scores that are not there",
        f"{RERANK} ",
        "no scores file stats/paper/ru_P36_template_phrasebook.scores.parquet; rank again to get one",
        remove(SCORES),
    ),
    Case(
        "scores that are cut off",
        RERANK,
        "stats/paper/ru_P36_template_phrasebook.scores.parquet was cut off, damaged or changed since it was "
        "written (not the hash in its run record); rank again with script.py, which makes it again",
        cut(SCORES),
    ),
    Case(
        "scores that are text",
        RERANK,
        "stats/paper/ru_P36_template_phrasebook.scores.parquet was cut off, damaged or changed since it was "
        "written (not the hash in its run record); rank again with script.py, which makes it again",
        put(SCORES, "no scores"),
    ),
    Case(
        "scores of another run",
        RERANK,
        "stats/paper/ru_P36_template_phrasebook.scores.parquet was cut off, damaged or changed since it was "
        "written (not the hash in its run record); rank again with script.py, which makes it again",
        copy("stats/paper/cs_P36_template_phrasebook.scores.parquet", SCORES),
    ),
    Case(
        "dumps without a run record",
        RERANK,
        "no run record stats/paper/ru_P36_template_phrasebook.run.json; the dump beside it cannot be told apart from others",
        remove(DUMP.replace(".tsv", ".run.json")),
    ),
    Case(
        "--out that the scores come from",
        RERANK.replace("new", "stats/paper"),
        "--out stats/paper is the folder that the scores come from: name another one",
    ),
    Case(
        "--out that is a file",
        RERANK.replace("new", "translations.tsv"),
        "--out translations.tsv is a file, or lies in one; name a folder",
    ),
    Case(
        "--out with dumps of another making",
        RERANK.replace("new", "stats/corrected"),
        "--out stats/corrected holds dumps of another making (cs_P19_template_phrasebook.tsv): name an empty folder",
    ),
    Case(
        "an unknown linking function",
        f"{RERANK} --linking best",
        "unknown linking function 'best'; choose from lp, mean, slln, log, penlp, "
        "normlp, slor, morcela, per-char, pmi",
    ),
    Case(
        "an exponent that is nan",
        f"{RERANK} --linking slln:nan",
        "linking function 'slln:nan': parameters must be finite",
    ),
    Case(
        "an exponent beyond 1",
        f"{RERANK} --linking slln:7",
        "linking function 'slln:7': the exponent of slln lies between 0 (lp) and 1 (mean)",
    ),
    Case(
        "a linking function without its frequencies",
        f"{RERANK} --linking slor",
        "--linking slor needs token frequencies: give --unigrams FILE, or --unigrams counts",
    ),
    Case(
        "frequencies that are not JSON",
        f"{RERANK} --linking slor --unigrams u.json",
        "u.json is not JSON (Expecting property name enclosed in double quotes: column 2); is the file cut off?",
        put("u.json", "{"),
    ),
    Case(
        "a frequency above 1",
        f"{RERANK} --linking slor --unigrams u.json",
        "u.json: entry '1': 7 is not a token id with a probability above 0 and up to 1",
        put("u.json", '{"1": 7}'),
    ),
    Case(
        "frequencies that are a folder",
        f"{RERANK} --linking slor --unigrams stats",
        "Is a directory at stats; check the path, then run the same command again",
    ),
    Case(
        "a linking function without its neutral scores",
        f"{RERANK} --linking pmi",
        "stats/paper/cs_P19_template_phrasebook.scores.parquet has no scores behind a neutral prompt: rank "
        "with script.py --neutral-prompt TEXT for pmi",
    ),
    Case(
        "a rule for ties that whole ranks cannot follow",
        f"{RERANK} --ties mid",
        "--ties mid: dumps of protocol paper hold whole ranks; choose gold or worst, or --protocol corrected",
    ),
    Case(
        "--k that is empty",
        f"{RERANK} --k ,",
        "--k: ',' is not a list of whole numbers from 1, such as 1,3,5 (see stats.py rerank --help)",
    ),
    Case(
        "a report that is a folder",
        f"stats.py report {ON} --out stats",
        "stats is a folder: give a file name for the report, such as stats/report.html",
    ),
    Case(
        "a report below a file",
        f"stats.py report {ON} --out translations.tsv/report.html",
        "the folder of --out translations.tsv is a file, or lies in one; name a folder",
    ),
    Case(
        "--resamples 3",
        f"stats.py report {ON} --resamples 3",
        "--resamples: '3' is not a whole number from 200 to 1000000 (see stats.py report --help)",
    ),
    Case(
        "--seed -1",
        f"stats.py report {ON} --seed -1",
        "--seed: '-1' is not a whole number from 0 to 4294967295 (see stats.py report --help)",
    ),
    Case(
        "a fact that stands nowhere",
        f"stats.py report {ON} --langs ru --relations P101",
        "no dump of ru P101 in stats/paper: ru has P19, P36; choose with --relations",
    ),
]
