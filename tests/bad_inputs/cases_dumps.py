"""stats.py: rank dumps that are damaged, mixed or lacking."""

from __future__ import annotations

import json
from pathlib import Path

from tests.bad_inputs.case import Break, Case
from tests.bad_inputs.spoiling import (
    both,
    cell,
    change,
    copy,
    cut,
    folder,
    lines,
    put,
    swap,
    without_column,
    zipped,
)

NAME = "ru_P36_template_phrasebook"
DUMP = f"stats/paper/{NAME}.tsv"
RIGHT = f"stats/corrected/{NAME}.tsv"
GENERAL = "stats.py general --stats stats/paper"
CORRECTED = "stats.py general --stats stats/corrected"


def _record(name: str, **changes: object) -> Break:
    """A run record with other values."""
    return change(name, lambda data: json.dumps(json.loads(data) | changes).encode())


def _headers_only(desk: Path) -> None:
    for path in (desk / "stats/paper").glob("*.tsv"):
        path.write_text(path.read_text(encoding="utf-8").split("\n")[0] + "\n", encoding="utf-8")


CASES = [
    Case(
        "no dumps there",
        "stats.py general --stats nothing",
        "no rank dump in nothing: it wants files such as ru_P19_template_gt.tsv; run script.py or name another folder",
        folder("nothing"),
    ),
    Case(
        "benchmark files given as dumps",
        "stats.py general --stats fixed_data",
        "fixed_data/cs_P19_phrasebook.tsv: no column '…_top1_correct'; this is no rank dump (script.py makes them)",
    ),
    Case(
        "a zip of dumps that is cut off",
        "stats.py general --stats dumps.zip",
        "dumps.zip is neither a folder nor a readable zip file (File is not a zip file)",
        both(zipped("dumps.zip", "stats/paper", "stats/"), cut("dumps.zip")),
    ),
    Case(
        "an empty dump",
        GENERAL,
        "stats/paper/ru_P36_template_phrasebook.tsv: a header and no rows; is the file cut off?",
        lines(DUMP, lambda rows: rows[:1]),
    ),
    Case(
        "dumps of no rows at all",
        "stats.py all --stats stats/paper",
        "stats/paper/cs_P19_template_phrasebook.tsv: a header and no rows; is the file cut off?",
        _headers_only,
    ),
    Case(
        "a file of nothing",
        GENERAL,
        "stats/paper/ru_P36_template_phrasebook.tsv: the file is empty",
        put(DUMP, ""),
    ),
    Case(
        "a dump that is cut off in a row",
        GENERAL,
        "stats/paper/ru_P36_template_phrasebook.tsv: not UTF-8 (byte 0xd0 in line 6); save it as UTF-8",
        cut(DUMP, 0.6),
    ),
    Case(
        "a dump in UTF-16",
        GENERAL,
        "stats/paper/ru_P36_template_phrasebook.tsv: not UTF-8 (byte 0xff in line 1); save it as UTF-8",
        change(DUMP, lambda data: data.decode().encode("utf-16")),
    ),
    Case(
        "a dump with a broken character",
        GENERAL,
        "stats/paper/ru_P36_template_phrasebook.tsv: not UTF-8 (byte 0xff in line 9); save it as UTF-8",
        change(DUMP, lambda data: data[:-200] + b"\xff" + data[-200:]),
    ),
    Case(
        "a dump with a NUL byte",
        GENERAL,
        "stats/paper/ru_P36_template_phrasebook.tsv: a NUL byte in line 4, so the file is damaged; get it again",
        swap(DUMP, "\tМадрид\t", "\tМад\0рид\t"),
    ),
    Case(
        "a fact that stands twice",
        GENERAL,
        "ru_P36_template_phrasebook.tsv, row 99: the fact Q142 P36 Q90 stands twice (1 doubles in all); "
        "remove the doubles from the benchmark file and score it again",
        lines(DUMP, lambda rows: [*rows, "99" + rows[1][1:]]),
    ),
    Case(
        "a row number that stands twice",
        GENERAL,
        "stats/paper/ru_P36_template_phrasebook.tsv: row number 0 stands twice in the first column; make the dump anew",
        lines(DUMP, lambda rows: [*rows, rows[1]]),
    ),
    Case(
        "a row number that is a word",
        GENERAL,
        "stats/paper/ru_P36_template_phrasebook.tsv: row 0, column row number (first column): cannot read "
        "'first' as a whole number; make the dump anew",
        lines(DUMP, lambda rows: [rows[0], "first" + rows[1][1:], *rows[2:]]),
    ),
    Case(
        "two dumps of one relation",
        GENERAL,
        "stats/paper holds 2 dumps of ru P36: ru_P36_template.tsv, ru_P36_template_phrasebook.tsv; keep one, move the others",
        copy(DUMP, "stats/paper/ru_P36_template.tsv"),
    ),
    Case(
        "protocols mixed in one folder",
        GENERAL,
        "stats/paper mixes protocols: cs_P19_template_phrasebook.tsv is paper, "
        "ru_P36_template_phrasebook.tsv is corrected; their ranks mean different things, so keep each "
        "protocol in a folder of its own",
        both(
            copy(RIGHT, DUMP),
            copy(RIGHT.replace(".tsv", ".run.json"), DUMP.replace(".tsv", ".run.json")),
        ),
    ),
    Case(
        "a dump without the ranks of a verbalisation",
        GENERAL,
        "stats/paper/ru_P36_template_phrasebook.tsv: no column 'phrasebook_true_ranks', which a dump of protocol paper has",
        without_column(DUMP, "phrasebook_true_ranks"),
    ),
    Case(
        "a dump without a verbalisation that is asked for",
        f"{GENERAL} --verbalisations template,gt",
        "ru_P19_template_phrasebook.tsv has no verbalisation 'gt', it has template, phrasebook; choose others",
    ),
    Case(
        "ranks that are no ranks",
        GENERAL,
        "stats/paper/ru_P36_template_phrasebook.tsv: row 0, column template_true_ranks: cannot read '{Paris: "
        "1}' as ranks {form: rank}, ranks different and from 1; make the dump anew",
        cell(DUMP, 0, "template_true_ranks", "{Paris: 1}"),
    ),
    Case(
        "ranks that a program would run",
        GENERAL,
        "stats/paper/ru_P36_template_phrasebook.tsv: row 0, column template_true_ranks: cannot read "
        "\"__import__('os').getcwd()\" as ranks {form: rank}, ranks different and from 1; make the dump anew",
        cell(DUMP, 0, "template_true_ranks", "__import__('os').getcwd()"),
    ),
    Case(
        "no correct form with a rank",
        GENERAL,
        "ru_P36_template_phrasebook.tsv, row 0, column template_true_ranks: no correct form has a rank; score this file again",
        cell(DUMP, 0, "template_true_ranks", "{}"),
    ),
    Case(
        "a rank of nought",
        GENERAL,
        "stats/paper/ru_P36_template_phrasebook.tsv: row 0, column template_true_ranks: cannot read "
        "\"{'Париж': 0}\" as ranks {form: rank}, ranks different and from 1; make the dump anew",
        cell(DUMP, 0, "template_true_ranks", "{'Париж': 0}"),
    ),
    Case(
        "a flag that is none",
        GENERAL,
        "stats/paper/ru_P36_template_phrasebook.tsv: row 0, column template_top1_correct: cannot read 'yes' "
        "as a flag 0 or 1; make the dump anew",
        cell(DUMP, 0, "template_top1_correct", "yes"),
    ),
    Case(
        "aliases that are no list",
        GENERAL,
        "stats/paper/ru_P36_template_phrasebook.tsv: row 0, column aliases: cannot read 'Paris|||Lutetia' as "
        "a list of strings; make the dump anew",
        cell(DUMP, 0, "aliases", "Paris|||Lutetia"),
    ),
    Case(
        "a log-probability that is a word",
        GENERAL,
        "stats/paper/ru_P36_template_phrasebook.tsv: row 0, column template_prompt_prob: cannot read 'much' "
        "as a number; make the dump anew",
        cell(DUMP, 0, "template_prompt_prob", "much"),
    ),
    Case(
        "a rank of protocol corrected that is nan",
        CORRECTED,
        "stats/corrected/ru_P36_template_phrasebook.tsv: row 0, column template_rank: cannot read 'nan' as a "
        "rank from 1; make the dump anew",
        cell(RIGHT, 0, "template_rank", "nan"),
    ),
    Case(
        "a rank of protocol corrected that is empty",
        CORRECTED,
        "stats/corrected/ru_P36_template_phrasebook.tsv: row 0, column template_rank: cannot read '' as a rank from 1; make the dump anew",
        cell(RIGHT, 0, "template_rank", ""),
    ),
    Case(
        "a number of distractors below nought",
        CORRECTED,
        "stats/corrected/ru_P36_template_phrasebook.tsv: row 0, column n_distractors: cannot read '-1' as a "
        "whole number from 0; make the dump anew",
        cell(RIGHT, 0, "n_distractors", "-1"),
    ),
    Case(
        "a run record that is not JSON",
        GENERAL,
        "stats/paper/ru_P36_template_phrasebook.run.json is not a run record with a signature; score the "
        "dump beside it again or remove the record",
        cut(DUMP.replace(".tsv", ".run.json")),
    ),
    Case(
        "a run record without a signature",
        GENERAL,
        "stats/paper/ru_P36_template_phrasebook.run.json is not a run record with a signature; score the "
        "dump beside it again or remove the record",
        put(DUMP.replace(".tsv", ".run.json"), "{}"),
    ),
    Case(
        "a folder where a dump should be",
        f"{GENERAL} --langs ru --relations P36",
        "no dump of ru P36 in stats/paper: ru has P19; choose with --relations",
        folder(DUMP),
    ),
]
