"""python -m probes.mlama: facts, answers and lists that do not fit."""

from __future__ import annotations

from tests.bad_inputs.case import Case
from tests.bad_inputs.spoiling import change, copy, cut, put, remove, swap

M = "-m probes.mlama"
QUERY = f"{M} query --model stand-in --method causal --data mlama --langs ru --out new"
ON = "--model stand-in --results answers"
BUILD = f"{M} build --lama lama --langs de --translator file:translations.tsv --out built --store s.sqlite --names n.sqlite"
ANSWER = "answers/stand-in/causal/mlama/ru/P36"

CASES = [
    Case(
        "no command",
        M,
        "name a command; there are query, report, …",
    ),
    Case(
        "data that is not there",
        QUERY.replace("--data mlama", "--data nowhere"),
        "no such folder or zip file: nowhere; check the path",
    ),
    Case(
        "a language that is none",
        QUERY.replace("--langs ru", "--langs xx"),
        "unknown language 'xx': choose from af, ar, …",
    ),
    Case(
        "a language that is not there",
        QUERY.replace("--langs ru", "--langs de"),
        "mlama: no language de; there are cs, en, ru",
    ),
    Case(
        "a relation that no language has",
        f"{QUERY} --relations P9999",
        "mlama: no language of ru has P9999; there are P19, P36",
    ),
    Case(
        "a fact that is cut off",
        QUERY,
        "mlama/ru/P36.jsonl: line 8 is not JSON (Unterminated string starting at: column 106); is the file cut off?",
        change("mlama/ru/P36.jsonl", lambda data: data[:-20]),
    ),
    Case(
        "a template without [Y]",
        QUERY,
        "mlama/ru/templates.jsonl: the template of P36 needs one [X] and one [Y]: 'Столица [X] - Y.'",
        swap("mlama/ru/templates.jsonl", "[X] - [Y]", "[X] - Y"),
    ),
    Case(
        "templates that are not there",
        f"{QUERY} --templates nowhere",
        "no such folder or zip file: nowhere; check the path",
    ),
    Case(
        "a folder without templates",
        f"{QUERY} --templates fixed_data",
        "fixed_data holds no <lang>/templates.jsonl",
    ),
    Case(
        "candidates that are not there",
        f"{QUERY} --candidates nowhere",
        "no such folder or zip file: nowhere; check the path",
    ),
    Case(
        "candidates that are not JSON",
        f"{QUERY} --candidates lists",
        "lists/ru.json is not JSON (Expecting property name enclosed in double quotes: column 2); is the file cut off?",
        put("lists/ru.json", "{"),
    ),
    Case(
        "--top 0",
        f"{QUERY} --top 0",
        "--top: '0' is not a whole number from 1 (see fluent-mlama mlama query --help)",
    ),
    Case(
        "--limit -1",
        f"{QUERY} --limit -1",
        "--limit: '-1' is not a whole number from 1 (see fluent-mlama mlama query --help)",
    ),
    Case(
        "--limit nan",
        f"{QUERY} --limit nan",
        "--limit: 'nan' is not a whole number from 1 (see fluent-mlama mlama query --help)",
    ),
    Case(
        "displaced masks for a causal model",
        f"{QUERY} --compat",
        "--compat is about masks, and method causal has none; leave it out",
    ),
    Case(
        "an unknown method",
        QUERY.replace("--method causal", "--method guess"),
        'Invalid value "guess" for --method. Choose from: … (see fluent-mlama mlama query --help)',
    ),
    Case(
        "--out that is a file",
        QUERY.replace("--out new", "--out translations.tsv"),
        "--out translations.tsv is a file, or lies in one; name a folder",
    ),
    Case(
        "answers of another making that are damaged",
        QUERY.replace("--out new", "--out answers"),
        "answers/stand-in/causal/mlama/ru/P36.run.json is not JSON (Expecting property name enclosed "
        "in double quotes: column 2); move it away with the file that it tells of, and make "
        "both anew",
        put(f"{ANSWER}.run.json", "{"),
    ),
    Case(
        "a model folder that is not there",
        QUERY.replace("stand-in", "./nowhere"),
        "model folder ./nowhere not found; give an existing folder, a hub name, or smollm2",
        loads=True,
    ),
    Case(
        "a report without data",
        f"{M} report --model stand-in --data nowhere --out new",
        "no such folder or zip file: nowhere; check the path",
    ),
    Case(
        "no answers",
        f"{M} p1 --model nobody --results answers",
        "no results in answers/nobody; run: fluent-mlama mlama query --model nobody",
    ),
    Case(
        "a folder of answers that is not there",
        f"{M} p1 --model stand-in --results nowhere",
        "no results in nowhere/stand-in; run: fluent-mlama mlama query --model stand-in",
    ),
    Case(
        "answers of another method",
        f"{M} p1 {ON} --method tyq",
        "no results in answers/stand-in/tyq/mlama; run: fluent-mlama mlama query --model stand-in --method tyq",
    ),
    Case(
        "answers of two methods",
        f"{M} p1 {ON}",
        "answers/stand-in has answers of causal, causal-sentence; choose one with --method (they are never mixed)",
        copy("answers/stand-in/causal", "answers/stand-in/causal-sentence"),
    ),
    Case(
        "a language without answers",
        f"{M} p1 {ON} --langs cs",
        "answers/stand-in/causal/mlama has no results for language cs; query it first (there are: en, ru)",
    ),
    Case(
        "a relation without answers",
        f"{M} p1 {ON} --relations P19",
        "no results in answers/stand-in/causal/mlama; run query first",
    ),
    Case(
        "an empty list of languages",
        f"{M} p1 {ON} --langs ,",
        "--langs: an empty list; name at least one, for example ru,cs (see fluent-mlama mlama p1 --help)",
    ),
    Case(
        "answers that are cut off",
        f"{M} p1 {ON}",
        "answers/stand-in/causal/mlama/ru/P36.parquet is not the table that its run.json tells of; delete both and query again",
        cut(f"{ANSWER}.parquet"),
    ),
    Case(
        "answers without their record",
        f"{M} p1 {ON}",
        "no run record answers/stand-in/causal/mlama/ru/P36.run.json; the dump beside it cannot be told apart from others",
        remove(f"{ANSWER}.run.json"),
    ),
    Case(
        "a record without its answers",
        f"{M} p1 {ON}",
        "no results in answers/stand-in/causal/mlama; run query first",
        remove(
            "answers/stand-in/causal/mlama/ru/P36.parquet",
            "answers/stand-in/causal/mlama/en/P36.parquet",
        ),
    ),
    Case(
        "a record of a later version",
        f"{M} p1 {ON}",
        "answers/stand-in/causal/mlama/ru/P36.run.json: unknown field 'colour', so another version of this "
        "project wrote it; use that one, or move it away with the file that it tells of, and make both "
        "anew",
        swap(f"{ANSWER}.run.json", '"lang"', '"colour": 1, "lang"'),
    ),
    Case(
        "sizes of Wikipedias that are not there",
        f"{M} p1 {ON} --articles a.csv",
        "no file a.csv; give a CSV with the columns lang,articles",
    ),
    Case(
        "a size that is a word",
        f"{M} p1 {ON} --articles a.csv",
        "a.csv: row 2: articles 'many' is no whole number above 0",
        put("a.csv", "lang,articles\nru,many\n"),
    ),
    Case(
        "sizes in UTF-16",
        f"{M} p1 {ON} --articles a.csv",
        "a.csv is no CSV ('utf-8' codec can't decode byte 0xff in position 0: invalid start byte); give the columns lang,articles",
        put("a.csv", "lang,articles\n".encode("utf-16")),
    ),
    Case(
        "sizes of other languages",
        f"{M} p1 {ON} --articles a.csv",
        "fewer than two of the queried languages are in the list of articles",
        put("a.csv", "lang,articles\nde,7\n"),
    ),
    Case(
        "--tables that is a file",
        f"{M} p1 {ON} --tables translations.tsv",
        "--tables translations.tsv is a file, or lies in one; name a folder",
    ),
    Case(
        "no English to compare with",
        f"{M} rel-p1 {ON} --langs ru --reference nobody",
        "no results in answers/nobody/causal/mlama; run: fluent-mlama mlama query --model nobody --method causal",
    ),
    Case(
        "a relation without answers",
        f"{M} bias {ON} --relations P19",
        "no results in answers/stand-in/causal/mlama; run query first",
    ),
    Case(
        "no untyped answers",
        f"{M} split {ON} --untyped",
        "no results in answers/stand-in/untyq/mlama; run: fluent-mlama mlama query --model stand-in --method untyq",
    ),
    Case(
        "--seed -1",
        f"{M} pool {ON} --seed -1",
        "--seed: '-1' is not a whole number from 0 to 4294967295 (see fluent-mlama mlama pool --help)",
    ),
    Case(
        "one language, which cannot vote",
        f"{M} pool {ON} --langs ru",
        "answers/stand-in/causal/mlama has no English results, which this is measured against; query with --langs en too",
    ),
    Case(
        "a list of left-out facts that is not there",
        f"{M} p1 {ON} --uhn u.tsv",
        "no list u.tsv; make one with: fluent-mlama mlama uhn",
    ),
    Case(
        "a list of left-out facts without a column",
        f"{M} p1 {ON} --uhn u.tsv",
        "u.tsv: the header must name the columns relation and lineid",
        put("u.tsv", "relation\nP36\n"),
    ),
    Case(
        "a left-out fact without its number",
        f"{M} p1 {ON} --uhn u.tsv",
        "u.tsv: row 2: lineid 'first' is no whole number",
        put("u.tsv", "relation\tlineid\nP36\tfirst\n"),
    ),
    Case(
        "a list that leaves out every fact",
        f"{M} p1 {ON} --uhn u.tsv",
        "no fact of answers/stand-in/causal/mlama is left: the list names every one; give another --uhn, or leave it out",
        put("u.tsv", "relation\tlineid\n" + "".join(f"P36\t{number}\n" for number in range(400))),
    ),
    Case(
        "an unknown filter",
        f"{M} uhn --data mlama --filters smell",
        "--filters smell: choose from string, name",
    ),
    Case(
        "the filter by names without a model",
        f"{M} uhn --data mlama --filters name --relations P19",
        "the name filter asks a masked model; give one with --names-model, or leave --filters string",
    ),
    Case(
        "a template set that is not there",
        f"{M} templates {ON} --with mine",
        "no results in answers/stand-in/causal/mine; run: fluent-mlama mlama query --model stand-in --method causal",
    ),
    Case(
        "data that is not there",
        f"{M} coverage --data nowhere",
        "no such folder or zip file: nowhere; check the path",
    ),
    Case(
        "a relation that no language has",
        f"{M} coverage --data mlama --relations P9999",
        "mlama: no language of cs, en, ru has P9999; there are P19, P36",
    ),
    Case(
        "LAMA that is not there",
        BUILD.replace("--lama lama", "--lama nowhere"),
        "no such folder or zip file: nowhere; check the path",
    ),
    Case(
        "a folder that is not LAMA's",
        BUILD.replace("--lama lama", "--lama mlama"),
        "mlama has no relations.jsonl: this is not LAMA's data folder",
    ),
    Case(
        "a language that is none",
        BUILD.replace("--langs de", "--langs xx"),
        "unknown language 'xx': choose from af, ar, az, be, bg, bn, ca, ceb, cs, cy, da, de, el, en, es, "
        "et, eu, fa, fi, fr, ga, gl, he, hi, hr, hu, hy, id, it, ja, ka, ko, la, lt, lv, ms, nl, pl, pt, "
        "ro, ru, sk, sl, sq, sr, sv, ta, th, tr, uk, ur, vi, zh, fil, is, jv, mk, nb, no, nn, sw, tl",
    ),
    Case(
        "no languages",
        BUILD.replace("--langs de", "--langs ,"),
        "--langs: an empty list; name at least one, for example ru,cs (see fluent-mlama mlama build --help)",
    ),
    Case(
        "a relation that LAMA has not",
        f"{BUILD} --relations P9999",
        "lama/relations.jsonl: P9999 has no template with one [X] and one [Y]",
    ),
    Case(
        "--min-coverage 2", f"{BUILD} --min-coverage 2", "--min-coverage 2.0: from 0 to less than 1"
    ),
    Case(
        "--min-coverage nan",
        f"{BUILD} --min-coverage nan",
        "--min-coverage nan: from 0 to less than 1",
    ),
    Case(
        "an unknown back end",
        BUILD.replace("file:", "babel:"),
        "unknown translator 'babel': choose from baidu, deepl, document, file, google, libre, linguee, "
        "microsoft, mymemory, openai, papago, phrasebook, pons, qcri, seq2seq, yandex",
    ),
    Case(
        "a fact of LAMA that is cut off",
        BUILD,
        "lama/TREx/P36.jsonl: line 8 is not JSON (Unterminated string starting at: column 107); is the file cut off?",
        change("lama/TREx/P36.jsonl", lambda data: data[:-30]),
    ),
    Case(
        "LAMA's facts in UTF-16",
        BUILD,
        "lama/TREx/P36.jsonl: line 1 is not JSON (Expecting value: column 1); is the file cut off?",
        change("lama/TREx/P36.jsonl", lambda data: data.decode().encode("utf-16")),
    ),
    Case(
        "--out that is a file",
        BUILD.replace("--out built", "--out translations.tsv"),
        "--out translations.tsv is a file, or lies in one; name a folder",
    ),
    Case(
        "repairs that are not there",
        f"{BUILD} --repairs nowhere",
        "--repairs nowhere: no such folder; give one of <lang>.jsonl, or leave it out",
    ),
]
