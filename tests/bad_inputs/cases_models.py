"""script.py with several models: ``--model A,B,C`` and ``--models FILE``."""

from __future__ import annotations

from tests.bad_inputs.case import Break, Case
from tests.bad_inputs.spoiling import both, folder, put, unreadable

RANK = "script.py -l ru -r P36 --out stats/new"
FROM_FILE = f"{RANK} --models models.txt"
A_LINE = "; a line is a model and its options, such as NAME --dtype float16 --folder X"
ABSENT = "model folder ./{} not found; give an existing folder, a hub name, or smollm2"


def _models(text: str | bytes) -> Break:
    return put("models.txt", text)


def _line(what: str, line: str, says: str) -> Case:
    """A bad line behind a good one."""
    return Case(what, FROM_FILE, f"models.txt, line 2: {says}", _models(f"good\n{line}\n"))


CASES = [
    Case(
        "a list of models that is not there",
        FROM_FILE,
        "--models models.txt: no such file; make one with a model a line, or name models with --model A,B,C",
    ),
    Case(
        "a list of models that is a folder",
        f"{RANK} --models stats",
        "--models stats is a folder; make a file with a model a line, or name models with --model A,B,C",
    ),
    Case(
        "a list of models without a name",
        f"{RANK} --models ''",
        "--models: an empty name (see script.py --help)",
    ),
    Case(
        "a list of models below a file",
        f"{RANK} --models translations.tsv/m",
        "Not a directory at translations.tsv/m; check the path, then run the same command again",
    ),
    Case(
        "a list of models in UTF-16",
        FROM_FILE,
        "--models models.txt is no UTF-8 text; write a model a line, # begins a comment",
        _models("a\nb\n".encode("utf-16")),
    ),
    Case(
        "a list of no models",
        FROM_FILE,
        "--models models.txt names no model; write one a line, # begins a comment",
        _models("# nothing\n\n   # more\n"),
    ),
    Case(
        "a list of models that may not be read",
        FROM_FILE,
        "Permission denied at models.txt; check its permissions, or choose another folder, then run the same command again",
        both(_models("a\n"), unreadable("models.txt")),
        by_root=False,
    ),
    Case(
        "a list of models and a model",
        f"{FROM_FILE} --model stand-in",
        "--model and --models exclude each other; give one of them",
        _models("a\n"),
    ),
    _line(
        "a line with an option that there is not",
        "b --colour blue",
        f"Unknown option: --colour. Did you mean --folder?{A_LINE}",
    ),
    _line("a line with an option of the run", "b --out x", f"Unknown option: --out{A_LINE}"),
    _line("a line with two models", "b c", f"unexpected argument 'c'{A_LINE}"),
    _line(
        "a line without a model",
        "--dtype float16",
        f"--MODEL is required{A_LINE}",
    ),
    _line("a line with an empty name", "'' --dtype float16", f"--MODEL: an empty name{A_LINE}"),
    _line(
        "a line with an unknown number type",
        "b --dtype int4",
        f'Invalid value "int4" for --dtype. Choose from: "auto", "float32", "bfloat16", "float16"{A_LINE}',
    ),
    _line(
        "a line with --token-budget 0",
        "b --token-budget 0",
        f"--token-budget: '0' is not a whole number from 1{A_LINE}",
    ),
    _line(
        "a line with an open quotation mark",
        'b "c',
        "No closing quotation; close the quotation mark",
    ),
    _line(
        "a line with --folder and nothing behind it",
        "b --folder",
        f"--folder needs a value{A_LINE}",
    ),
    *(
        _line(
            what,
            f"b --folder {name}",
            f"--folder {name!r} cannot be a folder's name below --out; choose …",
        )
        for what, name in (
            ("a model's folder that leads elsewhere", "../../x"),
            ("a model's folder that is another one's inside", "x/y"),
            ("a model's folder with a colon", "x:y"),
            ("a model's folder that Windows keeps for a device", "nul"),
            ("a model's folder with a NUL byte", "x\x00"),
        )
    ),
    Case(
        "a model's folder with a name too long for the disk",
        FROM_FILE,
        "cannot write into --out stats/new/nnn… (File name too long); choose another folder",
        _models(f"a --folder {'n' * 300}\n"),
    ),
    Case(
        "two models of one name",
        FROM_FILE,
        "models one/a and two/a would both keep their dumps in stats/new/a: list them in a file (--models) and give one of them another "
        "folder: NAME --folder OTHER",
        _models("one/a\ntwo/a\n"),
    ),
    Case(
        "two models whose names differ in capitals alone",
        f"{RANK} --model one/a,two/A",
        "models one/a and two/A would both keep their dumps in stats/new/A: list them in a file (--models) and give one of them another "
        "folder: NAME --folder OTHER",
    ),
    Case(
        "a comma and no model",
        f"{RANK} --model ,",
        "--model ',' names no model; give one, or several as A,B,C",
    ),
    Case(
        "explain with two models",
        "script.py explain -l ru --subject Q142 --model a,b",
        "--model a,b: explain asks one model; name one",
    ),
    Case(
        "explain with a list of models",
        "script.py explain -l ru --subject Q142 --models models.txt",
        "Unknown option: --models. Did you mean --modes? (see script.py explain --help)",
    ),
    Case(
        "a file where the second model's folder should be",
        f"{RANK} --model a,b",
        "--out stats/new/b is a file, not a folder; name a folder, for example --out stats/b",
        put("stats/new/b", "x"),
    ),
    Case(
        "a folder where the second model's dump should go",
        f"{RANK} --model a,b",
        "cannot write stats/new/b/ru_P36_template_phrasebook.tsv: it is a folder; move it away",
        folder("stats/new/b/ru_P36_template_phrasebook.tsv"),
    ),
    Case(
        "models of which none is there",
        f"{RANK} --model ./no,./none",
        f"none of the models can be loaded: {ABSENT.format('no')}; {ABSENT.format('none')}",
        notes=tuple(
            f"this will fail, the others go on: {ABSENT.format(name)}" for name in ("no", "none")
        ),
        loads=True,
    ),
]
