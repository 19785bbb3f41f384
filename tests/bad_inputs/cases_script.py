"""script.py and script.py explain: what is asked for, and where to."""

from __future__ import annotations

from tests.bad_inputs.case import Case
from tests.bad_inputs.spoiling import both, cell, change, copy, folder, lines, put, remove, swap

FILE = "fixed_data/ru_P36_phrasebook.tsv"
DUMP = "stats/paper/ru_P36_template_phrasebook"
RANK = "script.py -l ru -r P36 --model stand-in"
NEW = f"{RANK} --out stats/new"
AGAIN = f"{RANK} --out stats/paper"
EXPLAIN = "script.py explain -l ru -r P36 --model stand-in"

CASES = [
    Case(
        "no language",
        "script.py --model stand-in",
        "--langs is required (see script.py --help)",
    ),
    Case(
        "an empty list of languages",
        "script.py -l , --model stand-in",
        "--langs: an empty list; name at least one, for example ru,cs (see script.py --help)",
    ),
    Case(
        "a language that is none",
        "script.py -l xx --model stand-in",
        "unknown language 'xx': choose from af, ar, …",
    ),
    Case(
        "a language without a file",
        "script.py -l de --model stand-in --out stats/new",
        "no benchmark file for language 'de' in fixed_data: there are cs, ru",
    ),
    Case(
        "a relation that is none",
        "script.py -l ru -r P9999 --model stand-in --out stats/new",
        "no benchmark file for relation 'P9999' of ru in fixed_data: there are P19, P36",
    ),
    Case(
        "a verbalisation that the file lacks",
        f"{NEW} --verbalisations template,gt",
        "ru_P36_phrasebook.tsv has no verbalisation 'gt': its columns hold template, phrasebook (--verbalisations)",
    ),
    Case(
        "a spec that no file has",
        f"{NEW} --variant 20prompt",
        "no file of variant '20prompt' in fixed_data: there are phrasebook (--variant)",
    ),
    Case(
        "two files of one relation",
        NEW,
        "2 files for ru P36 in fixed_data (ru_P36_mine.tsv, ru_P36_phrasebook.tsv): choose one with --variant mine or --variant phrasebook",
        copy(FILE, "fixed_data/ru_P36_mine.tsv"),
    ),
    Case(
        "-m that contradicts the file",
        f"{NEW} -m 3",
        "-m 3 contradicts ru_P36_phrasebook.tsv, whose columns hold 2 verbalisations (template, phrasebook): "
        "leave "
        "-m out, or choose some with --verbalisations",
    ),
    Case(
        "-m that no paper has",
        f"{NEW} -m 4",
        'Invalid value "4" for -m. Choose from: 2, 3 (see script.py --help)',
    ),
    Case(
        "--limit 0",
        f"{NEW} --limit 0",
        "--limit: '0' is not a whole number from 1 (see script.py --help)",
    ),
    Case(
        "--limit -3",
        f"{NEW} --limit -3",
        "--limit: '-3' is not a whole number from 1 (see script.py --help)",
    ),
    Case(
        "--limit nan",
        f"{NEW} --limit nan",
        "--limit: 'nan' is not a whole number from 1 (see script.py --help)",
    ),
    Case(
        "--token-budget 0",
        f"{NEW} --token-budget 0",
        "--token-budget: '0' is not a whole number from 1 (see script.py --help)",
    ),
    Case(
        "a model without a name",
        "script.py -l ru --model ''",
        "--model: an empty name (see script.py --help)",
    ),
    Case(
        "an option that there is not",
        f"{NEW} --batch 3",
        "Unknown option: --batch. Did you mean --data? (see script.py --help)",
    ),
    Case(
        "an unknown protocol",
        f"{NEW} --protocol fair",
        'Invalid value "fair" for --protocol. Choose from: "paper", "corrected" (see script.py --help)',
    ),
    Case(
        "an empty neutral prompt",
        f"{NEW} --neutral-prompt ''",
        "--neutral-prompt '': a prompt of zero tokens; give a prompt with at least one token",
    ),
    Case(
        "no row that can be ranked",
        f"{NEW} --verbalisations template",
        "ru_P36_phrasebook.tsv: no row can be ranked (8 × template: a prompt of zero tokens); nothing is written",
        lines(
            FILE,
            lambda rows: [
                rows[0],
                *("\t".join([*row.split("\t")[:8], "", *row.split("\t")[9:]]) for row in rows[1:]),
            ],
        ),
    ),
    Case(
        "--out that is a file",
        f"{RANK} --out translations.tsv",
        "--out translations.tsv is a file, not a folder; name a folder, for example --out stats/stand-in",
    ),
    Case(
        "--out below a file",
        f"{RANK} --out translations.tsv/new",
        "--out translations.tsv/new is a file, or lies in one; name a folder",
    ),
    Case(
        "--out with a name too long for the disk",
        f"{RANK} --out stats/{'n' * 300}",
        "File name too long at stats/nnn…; choose a shorter name, then run the same command again",
    ),
    Case(
        "a folder where the dump should go",
        NEW,
        "cannot write stats/new/ru_P36_template_phrasebook.tsv: it is a folder; move it away",
        folder("stats/new/ru_P36_template_phrasebook.tsv"),
    ),
    Case(
        "--out holds dumps of another model",
        AGAIN.replace("stand-in", "other"),
        "stats/paper holds dumps of another model: stand-in, not other (cs_P19_template_phrasebook.tsv); "
        "choose "
        "another folder, for example --out stats/other, or --overwrite what is there",
    ),
    Case(
        "--out holds dumps of another protocol",
        f"{AGAIN} --protocol corrected",
        "stats/paper holds dumps of another protocol: paper, not corrected (cs_P19_template_phrasebook.tsv); "
        "choose "
        "another folder, for example --out stats/stand-in-corrected, or --overwrite what is there",
    ),
    Case(
        "--out holds dumps that another program made",
        AGAIN,
        "stats/paper holds rank dumps that this program did not make (ru_P36_template_phrasebook.tsv has no "
        "run "
        "record), such as the published ones; choose another folder, for example --out stats/stand-in",
        remove(f"{DUMP}.run.json"),
    ),
    Case(
        "a run record that is not JSON",
        AGAIN,
        "stats/paper/ru_P36_template_phrasebook.run.json is not JSON (Expecting value: line 4, column 15); "
        "move it away with the file that it tells of, and make both anew",
        change(f"{DUMP}.run.json", lambda data: data[:200]),
    ),
    Case(
        "a run record of a later version",
        AGAIN,
        "stats/paper/ru_P36_template_phrasebook.run.json: unknown field 'colour', so another version of this "
        "project "
        "wrote it; use that one, or move it away with the file that it tells of, and make both anew",
        swap(f"{DUMP}.run.json", '"lang"', '"colour": "blue",\n  "lang"'),
    ),
    Case(
        "a run record with a number that is text",
        AGAIN,
        "stats/paper/ru_P36_template_phrasebook.run.json: field 'pool_size' holds '50', expected int; move "
        "it away "
        "with the file that it tells of, and make both anew",
        swap(f"{DUMP}.run.json", '"pool_size": 50', '"pool_size": "50"'),
    ),
    Case(
        "a run record in UTF-16",
        AGAIN,
        "stats/paper/ru_P36_template_phrasebook.run.json is not JSON (byte 0xff is not UTF-8); "
        "move it away with the file that it tells of, and make both anew",
        change(f"{DUMP}.run.json", lambda data: data.decode().encode("utf-16")),
    ),
    Case(
        "--out holds dumps of other data",
        AGAIN,
        "stats/paper holds dumps of other data: ru_P36_template_phrasebook.tsv was made from another "
        "ru_P36_phrasebook.tsv than that in fixed_data; choose another folder, for example --out "
        "stats/stand-in-fixed_data, or --overwrite what is there",
        swap(FILE, "Варшава", "Краков"),
    ),
    Case(
        "a dump changed by hand that would be made anew, its wide twin being gone",
        AGAIN,
        "stats/paper/ru_P36_template_phrasebook.tsv would be made again (stats_wide/paper/ru_P36_template_phrasebook.tsv "
        "is gone), but it was changed or damaged since it was written; move it away or give --overwrite",
        both(
            swap(f"{DUMP}.tsv", "Париж", "Лион"),
            remove("stats_wide/paper/ru_P36_template_phrasebook.tsv"),
        ),
    ),
    Case(
        "packs of an unfinished run that are a file",
        NEW,
        "stats/new/ru_P36_template_phrasebook.packs is a file, where the folder of an unfinished run's packs should be; move it away",
        put("stats/new/ru_P36_template_phrasebook.packs", "x"),
    ),
    Case(
        "explain without a subject",
        "script.py explain -l ru --model stand-in",
        "--subject is required (see script.py explain --help)",
    ),
    Case(
        "a subject that is in no file",
        f"{EXPLAIN} --subject Q1",
        "--subject Q1 is in none of ru_P36_phrasebook.tsv; check the id",
    ),
    Case(
        "an object that the subject has not",
        f"{EXPLAIN} --subject Q142 --object Q64",
        "--subject Q142 --object Q64 is in none of ru_P36_phrasebook.tsv; check the id",
    ),
    Case(
        "a subject whose row is left out",
        f"{EXPLAIN} --subject Q142",
        "--subject Q142 is left out (ru_P36_phrasebook.tsv row 0: phrasebook: object not found)",
        cell(FILE, 0, "phrasebook_infl_object", "ERROR"),
    ),
]
