"""python -m probes.zhoblimp: what is evaluated, trained and served."""

from __future__ import annotations

from tests.bad_inputs.case import Case
from tests.bad_inputs.spoiling import put

Z = "-m probes.zhoblimp"
EVALUATE = f"{Z} evaluate --model ./nowhere --data pairs --out new"
TRAIN = f"{Z} train --corpus pairs --out trained"

CASES = [
    Case(
        "a model that is not there",
        EVALUATE,
        "model folder ./nowhere not found; give an existing folder, a hub name, or smollm2",
        loads=True,
    ),
    Case(
        "pairs that are not there",
        EVALUATE.replace("--data pairs", "--data nowhere"),
        "no minimal pairs at nowhere; check the path",
    ),
    Case(
        "--per-paradigm 0",
        f"{EVALUATE} --per-paradigm 0",
        "--per-paradigm: '0' is not a whole number from 1 (see fluent-mlama zhoblimp evaluate "
        "--help)",
    ),
    Case(
        "an unknown linking function",
        f"{EVALUATE} --linking best",
        "unknown linking function 'best'; choose from lp, mean, slln, log, penlp, normlp, slor, "
        "morcela, per-char, pmi",
    ),
    Case(
        "no linking function",
        f"{EVALUATE} --linking ,",
        "--linking: an empty list; name at least one, for example ru,cs "
        "(see fluent-mlama zhoblimp evaluate --help)",
    ),
    Case(
        "judgements that are not there",
        f"{EVALUATE} --human h.csv",
        "no file at h.csv; check the path",
    ),
    Case(
        "judgements without a column",
        f"{EVALUATE} --human h.csv",
        "h.csv: row 1 must name the columns UID and acc",
        put("h.csv", "UID\nba_after_negation\n"),
    ),
    Case(
        "a judgement above 1",
        f"{EVALUATE} --human h.csv",
        "h.csv: row 2: acc '7' is not a number from 0 to 1",
        put("h.csv", "UID,acc\nba_after_negation,7\n"),
    ),
    Case(
        "a judgement that is nan",
        f"{EVALUATE} --human h.csv",
        "h.csv: row 2: acc 'nan' is not a number from 0 to 1",
        put("h.csv", "UID,acc\nba_after_negation,nan\n"),
    ),
    Case(
        "a judgement that is there twice",
        f"{EVALUATE} --human h.csv",
        "h.csv: row 3: UID 'x' is there twice",
        put("h.csv", "UID,acc\nx,.5\nx,.6\n"),
    ),
    Case(
        "frequencies that are not there",
        f"{EVALUATE} --unigrams u.json",
        "no unigram table at u.json; check the path",
    ),
    Case(
        "frequencies that are not JSON",
        f"{EVALUATE} --unigrams u.json",
        "u.json is not JSON (Expecting property name enclosed in double quotes: column 2); "
        "is the file cut off?",
        put("u.json", "{"),
    ),
    Case(
        "a corpus in UTF-16",
        f"{EVALUATE} --unigrams u.txt",
        "u.txt: not UTF-8 (byte 0); save the file as UTF-8",
        put("u.txt", "x".encode("utf-16")),
    ),
    Case(
        "--out that is a file",
        EVALUATE.replace("--out new", "--out translations.tsv"),
        "--out translations.tsv is a file, or lies in one; name a folder",
    ),
    Case(
        "checkpoints of a folder that has none",
        f"{EVALUATE.replace('./nowhere', './model')} --revisions ALL",
        "model has no checkpoints: no sub-folder holds a config.json; "
        "leave --revisions out to take the folder itself",
    ),
    Case(
        "a corpus that is not there",
        TRAIN.replace("--corpus pairs", "--corpus nowhere"),
        "no file at nowhere; check the path",
    ),
    Case(
        "an empty corpus",
        TRAIN.replace("--corpus pairs", "--corpus c.txt"),
        "c.txt: no text to train on; give one with one document per line",
        put("c.txt", "\n"),
    ),
    Case(
        "a budget that is a word",
        f"{TRAIN} --tokens many",
        "'many' is not an amount of tokens; write e.g. 3B, 100M, 50k or 20000",
    ),
    Case(
        "a budget of nought",
        f"{TRAIN} --tokens 0",
        "'0' is not an amount of tokens; write e.g. 3B, 100M, 50k or 20000",
    ),
    Case(
        "a checkpoint behind the end",
        f"{TRAIN} --tokens 1M --checkpoints 5M",
        "--checkpoints asks for 5000000 tokens, --tokens allows 1000000; "
        "raise --tokens or leave it out",
    ),
    Case(
        "--context 0",
        f"{TRAIN} --context 0",
        "--context: '0' is not a whole number from 1 (see fluent-mlama zhoblimp train --help)",
    ),
    Case(
        "--learning-rate -1",
        f"{TRAIN} --learning-rate -1",
        "--learning-rate -1.0: a number above 0",
    ),
    Case(
        "--learning-rate nan",
        f"{TRAIN} --learning-rate nan",
        "--learning-rate nan: a number above 0",
    ),
    Case(
        "an unknown size",
        f"{TRAIN} --size 3G",
        'Invalid value "3G" for --size. Choose from: … (see fluent-mlama zhoblimp train --help)',
    ),
    Case(
        "words for another kind of tokenizer",
        f"{TRAIN} --words vocabulary.tsv",
        "--words goes with --tokenizer word, not char; leave it out",
    ),
    Case(
        "a folder that was begun otherwise",
        TRAIN,
        "trained was begun with size 70M, not 14M; choose another --out",
        put("trained/train.json", '{"size": "70M"}'),
    ),
    Case(
        "a record of training that is not JSON",
        TRAIN,
        "trained/train.json is damaged, and says what the checkpoints beside it were made with; "
        "choose another --out",
        put("trained/train.json", "{"),
    ),
    Case(
        "--port 0",
        f"{Z} serve --port 0",
        "--port: '0' is not a whole number from 1 to 65535 (see fluent-mlama zhoblimp serve "
        "--help)",
    ),
    Case(
        "--port 99999",
        f"{Z} serve --port 99999",
        "--port: '99999' is not a whole number from 1 to 65535 (see fluent-mlama zhoblimp serve "
        "--help)",
    ),
]
