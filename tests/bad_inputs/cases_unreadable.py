"""Every program: JSON whose brackets go on without end, and numbers that look like some and are none."""

from __future__ import annotations

from tests.bad_inputs.case import Case
from tests.bad_inputs.cases_cpopqa import FEW, GRAMS, RANK, SCORE
from tests.bad_inputs.cases_dumps import CORRECTED, RIGHT
from tests.bad_inputs.cases_mlama import ANSWER, BUILD, QUERY
from tests.bad_inputs.cases_model import MODEL, loading
from tests.bad_inputs.cases_zhoblimp import GENERATE, ONE, PAIR
from tests.bad_inputs.cases_zhoblimp_models import EVALUATE, TRAIN
from tests.bad_inputs.spoiling import NESTED, both, cell, put, swap

DEEP = "is not JSON (brackets nested too deeply)"
CUT = "is the file cut off?"
RECORD = "stats/paper/ru_P36_template_phrasebook.run.json"


def _deep(what: str, command: str, name: str, says: str = "", notes: tuple[str, ...] = ()) -> Case:
    """The whole file is such JSON."""
    return Case(
        f"{what} of brackets without end",
        command,
        says or f"{name} {DEEP}; {CUT}",
        put(name, NESTED),
        notes=notes,
    )


CASES = [
    _deep(
        "a run record",
        "script.py -l ru -r P36 --model stand-in --out stats/paper",
        RECORD,
        f"{RECORD} {DEEP}; move it away …",
    ),
    _deep(
        "a run record",
        "stats.py general --stats stats/paper",
        RECORD,
        f"{RECORD} is not a run record with a signature; score the dump beside it again or remove the record",
    ),
    _deep(
        "frequencies",
        "stats.py rerank --scores stats/paper --out new --linking slor --unigrams u.json",
        "u.json",
    ),
    Case(
        "frequencies of a token with a number that is none",
        "stats.py rerank --scores stats/paper --out new --linking slor --unigrams u.json",
        "u.json: entry '²': 0.5 is not a token id with a probability above 0 and up to 1",
        put("u.json", '{"²": 0.5}'),
    ),
    Case(
        "frequencies with a number of thousands of digits",
        "stats.py rerank --scores stats/paper --out new --linking slor --unigrams u.json",
        f"u.json is not JSON (a number of thousands of digits); {CUT}",
        put("u.json", f'{{"1": {"9" * 9000}}}'),
    ),
    Case(
        "a number of distractors beyond all numbers",
        CORRECTED,
        "stats/corrected/ru_P36_template_phrasebook.tsv: row 0, column n_distractors: cannot read '999999999999999999999999999999' as a "
        "whole number from 0; make the dump anew",
        cell(RIGHT, 0, "n_distractors", "9" * 30),
    ),
    *(
        Case(
            f"--k with {what}",
            f"{command} --k {value}",
            f"--k: '{value}' is not a list of whole numbers from 1, such as 1,3,5 (see {command.partition(' --')[0]} --help)",
        )
        for command in (
            "stats.py compare --stats stats/paper",
            "stats.py rerank --scores stats/paper --out new",
        )
        for what, value in (
            ("a raised digit", "1,²"),
            ("a digit of another script", "٣"),
            ("nothing between commas", "1,,3"),
        )
    ),
    _deep(
        "facts",
        "reader.py stats mlama",
        "mlama/ru/P36.jsonl",
        f"mlama/ru/P36.jsonl: line 1 {DEEP}; {CUT}",
    ),
    Case(
        "a fact with a number beyond all numbers",
        QUERY,
        "mlama/ru/P36.jsonl: line 4: field 'lineid' holds 9999999999…, a number too large to be one",
        swap("mlama/ru/P36.jsonl", '"lineid": 3,', f'"lineid": {"9" * 30},'),
    ),
    _deep(
        "templates",
        "datamodifier.py -l ru -r P36 --mlama mlama --out made --aliases none --store kept.sqlite --translator file:translations.tsv",
        "mlama/ru/templates.jsonl",
        f"mlama/ru/templates.jsonl: line 1 {DEEP}; {CUT}",
    ),
    _deep("candidates", f"{QUERY} --candidates lists", "lists/ru.json"),
    _deep(
        "a fact of LAMA", BUILD, "lama/TREx/P36.jsonl", f"lama/TREx/P36.jsonl: line 1 {DEEP}; {CUT}"
    ),
    _deep(
        "a record of answers",
        QUERY.replace("--out new", "--out answers"),
        f"{ANSWER}.run.json",
        f"{ANSWER}.run.json {DEEP}; move …",
    ),
    _deep(
        "a paradigm",
        GENERATE,
        ONE,
        f"ba_after_negation.json {DEEP}; {CUT}",
    ),
    _deep("phrases", GENERATE, "phrases.json"),
    Case(
        "a position of thousands of digits",
        GENERATE,
        "ba_after_negation.json: good_rule row 4: matchedPosition:999999999999999999999999999999 is not a number; positions count from 0",
        swap(ONE, "mPos:", f"mPos:{'9' * 5000}"),
    ),
    _deep("minimal pairs", EVALUATE, PAIR, f"ba_after_negation.jsonl: row 1 {DEEP}; {CUT}"),
    Case(
        "people's judgements with a cell too long for a CSV",
        f"{EVALUATE} --human h.csv",
        "h.csv: row …: field larger than field limit (131072); write a CSV with the columns UID and acc",
        put("h.csv", f"UID,acc\n{'u' * 200_000},1\n"),
    ),
    _deep(
        "a record of training",
        TRAIN,
        "trained/train.json",
        "trained/train.json is damaged, and says …; choose another --out",
    ),
    _deep(
        "frequencies",
        GRAMS,
        "us.json",
        f"us.json {DEEP}; save the viewer's json page as it is",
        FEW,
    ),
    _deep(
        "questions",
        RANK,
        "instruments/items.jsonl",
        "items.jsonl: line 1 is no question; …: run build again",
    ),
    Case(
        "answers of brackets without end",
        SCORE,
        "x.run.json is missing or damaged: it says what made the answers; move the answers away and ask again",
        both(
            put("instruments/answers/x.jsonl", f"{NESTED}\n"),
            put("instruments/answers/x.run.json", NESTED),
        ),
    ),
    loading(
        "a config.json of brackets without end",
        MODEL,
        "model ./model: config.json is not JSON; get the model again, or try --model smollm2, which needs no download",
        put("model/config.json", NESTED),
    ),
    loading("a GPU whose number is none", f"{MODEL} --device cuda:²", "--device cuda:²: …"),
]
