"""reader.py: data in the mLAMA layout that is not."""

from __future__ import annotations

from tests.bad_inputs.case import Case
from tests.bad_inputs.spoiling import both, change, cut, lines, put, swap, zipped

FACTS = "mlama/ru/P36.jsonl"
STATS = "reader.py stats mlama"
SAMPLE = "reader.py sample mlama"

CASES = [
    Case(
        "no command",
        "reader.py",
        "name a command; there are stats, sample, download",
    ),
    Case(
        "a folder that is not there",
        "reader.py stats nowhere",
        "no such folder or zip file: nowhere; check the path",
    ),
    Case(
        "a folder without languages",
        "reader.py stats fixed_data",
        "fixed_data: no language folder with .jsonl files; this is not the mLAMA 1.1 layout (<lang>/<relation>.jsonl)",
    ),
    Case(
        "a zip that is cut off",
        "reader.py stats mlama.zip",
        "mlama.zip is neither a folder nor a readable zip file (File is not a zip file)",
        both(zipped("mlama.zip", "mlama", "mlama1.1/"), cut("mlama.zip")),
    ),
    Case(
        "a language that is none", f"{STATS} -l xx", "unknown language 'xx': choose from af, ar, …"
    ),
    Case(
        "a language that is not there",
        f"{STATS} -l de",
        "mlama: no language de; there are cs, en, ru",
    ),
    Case(
        "an empty list of languages",
        f"{STATS} -l ,",
        "--langs: an empty list; name at least one, for example ru,cs (see reader.py … --help)",
    ),
    Case(
        "a relation that no language has",
        f"{STATS} -r P9999",
        "mlama: no language of cs, en, ru has P9999; there are P19, P36",
    ),
    Case(
        "a fact that is not JSON",
        STATS,
        "mlama/ru/P36.jsonl: line 4 is not JSON (Expecting ',' delimiter: column 94); is the file cut off?",
        swap(FACTS, '"lineid": 3,', '"lineid": 3'),
    ),
    Case(
        "a fact without a label",
        STATS,
        "mlama/ru/P36.jsonl: line 3: no field 'obj_label'",
        swap(FACTS, '"obj_label": "Мадрид", ', ""),
    ),
    Case(
        "a label that is a number",
        STATS,
        "mlama/ru/P36.jsonl: line 3: field 'obj_label' holds 7, expected str",
        swap(FACTS, '"Мадрид"', "7"),
    ),
    Case(
        "a file of facts in UTF-16",
        STATS,
        "mlama/ru/P36.jsonl: line 1 is not UTF-8 (byte 0xff); get the file again",
        change(FACTS, lambda data: data.decode().encode("utf-16")),
    ),
    Case(
        "a fact that is a list",
        STATS,
        "mlama/ru/P36.jsonl: line 9 holds no JSON object",
        lines(FACTS, lambda rows: [*rows, "[1, 2]"]),
    ),
    Case(
        "a template that is not JSON",
        SAMPLE,
        "mlama/ru/templates.jsonl: line 1 is not JSON (Expecting value: column 1); is the file cut off?",
        put("mlama/ru/templates.jsonl", "P36: столица\n"),
    ),
    Case(
        "two templates of one relation",
        SAMPLE,
        "mlama/ru/templates.jsonl: line 13: relation P36 has a template already: 'Столица [X] - [Y].'",
        lines(
            "mlama/ru/templates.jsonl",
            lambda rows: [*rows, '{"relation": "P36", "template": "[X] [Y]"}'],
        ),
    ),
    Case(
        "a sample of no facts",
        f"{SAMPLE} -n 0",
        "--number: '0' is not a whole number from 1 (see reader.py sample --help)",
    ),
    Case(
        "a sample of nan facts",
        f"{SAMPLE} -n nan",
        "--number: 'nan' is not a whole number from 1 (see reader.py sample --help)",
    ),
    Case(
        "a download into a folder",
        "reader.py download mlama",
        "mlama is a folder; name the file to write, for example mlama/mlama1.1.zip",
    ),
    Case(
        "a download below a file",
        "reader.py download translations.tsv/mlama.zip",
        "the folder translations.tsv is a file, or lies in one; name a folder",
    ),
    Case(
        "a download from nowhere",
        "reader.py download new/mlama.zip --url file:///etc/hosts",
        "cannot get file:///etc/hosts (No connection adapters were found for 'file:///etc/hosts'); check the address",
    ),
    Case(
        "a download with another checksum",
        "reader.py download there.zip --sha256 abc",
        "there.zip has sha256 …, expected abc; remove it and get it again, or correct --sha256",
        zipped("there.zip", "mlama"),
        notes=("there.zip is there already; remove it to get it anew",),
    ),
]
