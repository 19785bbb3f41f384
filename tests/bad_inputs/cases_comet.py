"""grammeval.py qe: COMET that is not there, fails, or answers half."""

from __future__ import annotations

from pathlib import Path

from tests.bad_inputs.case import Break, Case
from tests.bad_inputs.spoiling import both, put, without_column

QE = "grammeval.py qe --stats stats/paper"
COMET = f"{QE} --back-end comet --comet ./comet-score"


def comet(script: str) -> Break:
    """A ``comet-score`` that does what this shell script does."""

    def spoil(desk: Path) -> None:
        (desk / "comet-score").write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        (desk / "comet-score").chmod(0o755)

    return spoil


def told(what: str, script: str, says: str) -> Case:
    """What COMET printed, and how it is told."""
    return Case(what, COMET, says, comet(script))


CASES = [
    Case(
        "COMET that is not installed",
        f"{QE} --back-end comet",
        "COMET is not installed: no .venv-comet/bin/comet-score; install it with `make comet` or name its comet-score with --comet",
    ),
    Case(
        "COMET that cannot be run",
        COMET,
        "comet-score does not start (Permission denied): install COMET again with `make comet`",
        put("comet-score", "no program"),
    ),
    Case(
        "a COMET checkpoint that is not there",
        f"{COMET} --model no/model.ckpt",
        "no COMET checkpoint no/model.ckpt: give the path of a model.ckpt (hparams.yaml two folders up), or a model's name",
        comet("exit 0"),
    ),
    Case(
        "--batch-size 0",
        f"{COMET} --batch-size 0",
        "--batch-size: '0' is not a whole number from 1 (see grammeval.py qe --help)",
        comet("exit 0"),
    ),
    Case(
        "--gpus 3",
        f"{COMET} --gpus 3",
        'Invalid value "3" for --gpus. Choose from: 0, 1 (see grammeval.py qe --help)',
        comet("exit 0"),
    ),
    told(
        "COMET killed by the system",
        "kill -9 $$",
        "ru_P19, sentences 1 to 16 of 16: comet-score was killed: by the system for want of memory (choose a "
        "smaller --batch-size), or by hand; what was finished is kept: run the same command again to go on",
    ),
    told(
        "COMET killed by somebody",
        "kill -15 $$",
        "ru_P19, sentences 1 to 16 of 16: comet-score was ended by signal 15; what was "
        "finished is kept: run the same command again to go on",
    ),
    told(
        "COMET out of memory",
        "echo 'RuntimeError: out of memory' >&2; exit 1",
        "ru_P19, sentences 1 to 16 of 16: COMET ran out of memory; choose a smaller --batch-size, or close "
        "other programs; what was finished is kept: run the same command again to go on",
    ),
    told(
        "COMET that wants a licence",
        "echo 'GatedRepoError: 401 Client Error' >&2; exit 1",
        "ru_P19, sentences 1 to 16 of 16: wmt20-comet-qe-da is a gated model: accept its licence at "
        "https://huggingface.co/wmt20-comet-qe-da and log in (HF_TOKEN in the environment); what was "
        "finished is kept: run the same command again to go on",
    ),
    told(
        "COMET on a full disk",
        "echo 'OSError: [Errno 28] No space left on device' >&2; exit 1",
        "ru_P19, sentences 1 to 16 of 16: wmt20-comet-qe-da cannot be fetched: the disk is full; free some "
        "space; what was finished is kept: run the same command again to go on",
    ),
    told(
        "COMET that stops without a word",
        "exit 3",
        "ru_P19, sentences 1 to 16 of 16: comet-score stopped with status 3 (without a word); what was "
        "finished is kept: run the same command again to go on",
    ),
    told(
        "COMET that writes nothing",
        "exit 0",
        "ru_P19, sentences 1 to 16 of 16: comet-score wrote no scores though it ended well; what was "
        "finished is kept: run the same command again to go on",
    ),
    told(
        "COMET that writes half",
        'echo \'{"mt.txt": [{"COMET": 1\' > scores.json',
        "ru_P19, sentences 1 to 16 of 16: comet-score wrote scores that are cut off or unreadable; what was "
        "finished is kept: run the same command again to go on",
    ),
    told(
        "COMET that writes too little",
        'echo \'{"mt.txt": [{"COMET": 1}]}\' > scores.json',
        "ru_P19, sentences 1 to 16 of 16: comet-score wrote 1 scores for 16 sentences; what was finished is "
        "kept: run the same command again to go on",
    ),
    told(
        "COMET that writes nan",
        'echo \'{"mt.txt": [{"COMET": NaN}]}\' > scores.json',
        "ru_P19, sentences 1 to 16 of 16: comet-score wrote 0 scores for 16 sentences; what was finished is "
        "kept: run the same command again to go on",
    ),
    Case(
        "dumps without English sentences for COMET",
        COMET,
        "ru_P19: 16 sentences have no English one beside them (column en_template), and COMET compares the two; choose --back-end lm",
        both(
            comet("exit 0"),
            *(
                without_column(
                    f"stats/paper/{lang}_{relation}_template_phrasebook.tsv", "en_template"
                )
                for lang in ("ru", "cs")
                for relation in ("P19", "P36")
            ),
        ),
        notes=(
            "… was cut off, damaged or changed since it was written (not the hash in its run record)",
        )
        * 4,
    ),
]
