"""python -m probes.zhoblimp: paradigms and pairs that do not fit."""

from __future__ import annotations

from tests.bad_inputs.case import Case
from tests.bad_inputs.spoiling import change, copy, cut, lines, put, remove, swap

Z = "-m probes.zhoblimp"
GENERATE = f"{Z} generate --templates paradigms -n 2 --out new"
CHECK = f"{Z} check --templates paradigms --data pairs"
ONE = "paradigms/ba_after_negation.json"
PAIR = "pairs/ba_after_negation.jsonl"

CASES = [
    Case(
        "no command",
        Z,
        "name a command; there are evaluate, generate, check, train, serve, lint",
    ),
    Case(
        "templates that are not there",
        GENERATE.replace("paradigms", "nowhere"),
        "no such folder or zip file: nowhere; check the path",
    ),
    Case(
        "a folder without templates",
        GENERATE.replace("paradigms", "pairs"),
        "pairs: no .json paradigm files here; name a folder or zip of them",
    ),
    Case(
        "a template that is not JSON",
        GENERATE,
        "ba_after_negation.json is not JSON (Expecting ',' delimiter: line 13, column 54); "
        "is the file cut off?",
        cut(ONE),
    ),
    Case(
        "a template in UTF-16",
        GENERATE,
        "ba_after_negation.json: not UTF-8 (byte 0); save the file as UTF-8",
        change(ONE, lambda data: data.decode().encode("utf-16")),
    ),
    Case(
        "a template without its bad rule",
        GENERATE,
        "ba_after_negation.json: 'bad_rule' is missing or empty; add it",
        swap(ONE, '"bad_rule"', '"other_rule"'),
    ),
    Case(
        "a template that is a list",
        GENERATE,
        "ba_after_negation.json: must be an object with uid, phenomenon, good_rule and bad_rule",
        put(ONE, "[]"),
    ),
    Case(
        "a column that the words have not",
        GENERATE,
        "ba_after_negation.json: good_rule row 4: unknown column 'colour'; "
        "vocabulary.tsv has expression, "
        "pos, subcat, gender, number, animate, person, classifier, object, place, stem",
        swap(ONE, "pos:", "colour:", 1),
    ),
    Case(
        "two templates of one name",
        GENERATE,
        "more.json: UID 'ba_after_negation' (user 'fluent') is also in ba_after_negation.json; "
        "rename one of them",
        copy(ONE, "paradigms/more.json"),
    ),
    Case(
        "words that are not there",
        GENERATE,
        "no file at vocabulary.tsv; check the path",
        remove("vocabulary.tsv"),
    ),
    Case(
        "words without their column",
        GENERATE,
        "vocabulary.tsv: row 1 has no column 'expression'; "
        "the first line must name the columns, separated by tabs",
        swap("vocabulary.tsv", "expression", "word", 1),
    ),
    Case(
        "words in UTF-16",
        GENERATE,
        "vocabulary.tsv: not UTF-8 (byte 0); save the file as UTF-8",
        change("vocabulary.tsv", lambda data: data.decode().encode("utf-16")),
    ),
    Case(
        "a row of words with a cell too many",
        GENERATE,
        "vocabulary.tsv: row 443 has 99 cells for 11 columns; remove the extra tabs",
        lines("vocabulary.tsv", lambda rows: [*rows, "\t".join("x" * 99)]),
    ),
    Case(
        "phrases that are not JSON",
        GENERATE,
        "phrases.json is not JSON (Expecting property name enclosed in double quotes: column 2); "
        "is the file cut off?",
        put("phrases.json", "{"),
    ),
    Case(
        "-n 0",
        GENERATE.replace("-n 2", "-n 0"),
        "--pairs: '0' is not a whole number from 1 (see fluent-mlama zhoblimp generate --help)",
    ),
    Case(
        "-n nan",
        GENERATE.replace("-n 2", "-n nan"),
        "--pairs: 'nan' is not a whole number from 1 (see fluent-mlama zhoblimp generate --help)",
    ),
    Case(
        "--seed -1",
        f"{GENERATE} --seed -1",
        "--seed: '-1' is not a whole number from 0 to 4294967295 (see fluent-mlama zhoblimp "
        "generate --help)",
    ),
    Case(
        "--out that holds pairs",
        GENERATE.replace("--out new", "--out pairs"),
        "pairs already holds ba_after_negation.jsonl and 1 more; "
        "choose another --out or say --overwrite",
    ),
    Case(
        "--out that is a file",
        GENERATE.replace("--out new", "--out translations.tsv"),
        "cannot write translations.tsv/ba_after_negation.jsonl: "
        "translations.tsv is a file, or lies in one; choose another folder",
    ),
    Case(
        "pairs that are not there",
        CHECK.replace("--data pairs", "--data nowhere"),
        "no minimal pairs at nowhere; check the path",
    ),
    Case(
        "a folder without pairs",
        CHECK.replace("--data pairs", "--data paradigms"),
        "paradigms: no minimal pairs found; a folder or tar archive of .jsonl files is needed",
    ),
    Case(
        "a pair that is cut off",
        CHECK,
        "ba_after_negation.jsonl: row 8 is not JSON (Unterminated string starting at: column 132); "
        "is the file cut off?",
        change(PAIR, lambda data: data[:-9]),
    ),
    Case(
        "a pair without its bad sentence",
        CHECK,
        "ba_after_negation.jsonl: row 1: 'sentence_bad' is missing or empty",
        swap(PAIR, '"sentence_bad"', '"sentence"', 1),
    ),
    Case(
        "a pair whose number is a word",
        CHECK,
        "ba_after_negation.jsonl: row 1: pairID 'first' is not a number",
        swap(PAIR, '"pairID": 0', '"pairID": "first"', 1),
    ),
    Case(
        "pairs in UTF-16",
        CHECK,
        "ba_after_negation.jsonl: not UTF-8 (byte 0); save the file as UTF-8",
        change(PAIR, lambda data: data.decode().encode("utf-16")),
    ),
    Case(
        "a paradigm in two files",
        CHECK,
        "more.jsonl: row 1: UID 'ba_after_negation' is also in ba_after_negation.jsonl; "
        "rename one of them",
        copy(PAIR, "pairs/more.jsonl"),
    ),
    Case(
        "a paradigm given twice",
        f"{CHECK} --data pairs",
        "pairs: UID 'ba_after_negation' is also in an earlier --data; give each paradigm once",
    ),
    Case(
        "pairs that are not there",
        f"{Z} lint --data nowhere",
        "no minimal pairs at nowhere; check the path",
    ),
    Case(
        "a tar that is cut off",
        f"{Z} lint --without-templates --data pairs.tar.gz",
        "pairs.tar.gz: not a readable tar archive (Compressed file ended before the end-of-stream "
        "marker was "
        "reached); give a folder, a .jsonl file or a .tar.gz",
        put("pairs.tar.gz", b"\x1f\x8b\x08\x00half"),
    ),
    Case(
        "an empty line of pairs only",
        f"{Z} lint --without-templates --data p.jsonl",
        "p.jsonl: no minimal pairs found; a folder or tar archive of .jsonl files is needed",
        put("p.jsonl", "\n\n"),
    ),
]
