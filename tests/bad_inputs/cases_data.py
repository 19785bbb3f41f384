"""script.py: benchmark files and zips that are damaged or of another kind."""

from __future__ import annotations

import zipfile
from pathlib import Path

from tests.bad_inputs.case import Break, Case
from tests.bad_inputs.cases_script import FILE, NEW
from tests.bad_inputs.spoiling import (
    both,
    change,
    cut,
    folder,
    lines,
    put,
    remove,
    swap,
    unreadable,
    without_column,
    zipped,
)

ZIP = NEW + " --data data.zip"


def _escaping(name: str) -> Break:
    def spoil(desk: Path) -> None:
        with zipfile.ZipFile(desk / "data.zip", "w") as archive:
            archive.writestr(name, "x")

    return spoil


CASES = [
    Case(
        "no benchmark files yet",
        NEW,
        "no benchmark files in fixed_data: put the published ones there (fixed_data.zip of the Fluent-mLAMA "
        "repository, unpacked or not; a zip is as good as a folder: --data fixed_data.zip), make your own "
        "with "
        "datamodifier.py, or take ours with --data fixed_data/starter",
        remove("fixed_data"),
    ),
    Case(
        "an empty data folder",
        f"{NEW} --data nothing",
        "no benchmark files in nothing: put the published ones there (fixed_data.zip of the Fluent-mLAMA "
        "repository, "
        "unpacked or not; a zip is as good as a folder: --data fixed_data.zip), make your own with "
        "datamodifier.py, "
        "or take ours with --data fixed_data/starter",
        folder("nothing"),
    ),
    Case(
        "a data folder that is not there",
        f"{NEW} --data nowhere",
        "no such folder or zip file: nowhere; check the path",
    ),
    Case(
        "a data folder that is a file",
        f"{NEW} --data translations.tsv",
        "translations.tsv is neither a folder nor a readable zip file (File is not a zip file)",
    ),
    Case(
        "a zip that is cut off",
        ZIP,
        "data.zip is neither a folder nor a readable zip file (File is not a zip file)",
        both(zipped("data.zip", "fixed_data"), cut("data.zip")),
    ),
    Case(
        "a zip with a damaged member",
        ZIP,
        "data.zip:ru_P36_phrasebook.tsv is damaged (Bad CRC-32 for file 'ru_P36_phrasebook.tsv'); get the zip again",
        both(
            zipped("data.zip", "fixed_data"), swap("data.zip", "Столица Франции", "Столица Фрунции")
        ),
    ),
    Case(
        "a zip with the files two folders deep",
        ZIP,
        "the benchmark files lie a folder deeper, in data.zip:one/two/: unpack the zip and name that folder with --data",
        zipped("data.zip", "fixed_data", "one/two/"),
    ),
    Case(
        "a zip whose member points outside",
        ZIP,
        "data.zip holds the member name '../ru_P36_x.tsv', which points outside the zip; it is not read",
        _escaping("../ru_P36_x.tsv"),
    ),
    Case(
        "an empty zip",
        ZIP,
        "no benchmark files in data.zip: put the published ones there (fixed_data.zip of the Fluent-mLAMA "
        "repository, unpacked or not; a zip is as good as a folder: --data fixed_data.zip), make your own "
        "with "
        "datamodifier.py, or take ours with --data fixed_data/starter",
        zipped("data.zip", "nothing"),
    ),
    Case(
        "an empty file", NEW, "fixed_data/ru_P36_phrasebook.tsv: the file is empty", put(FILE, b"")
    ),
    Case(
        "a file of blank lines",
        NEW,
        "fixed_data/ru_P36_phrasebook.tsv: the file is empty",
        put(FILE, "\n\n\n"),
    ),
    Case(
        "a header and no rows",
        NEW,
        "fixed_data/ru_P36_phrasebook.tsv: a header and no rows; is the file cut off?",
        lines(FILE, lambda rows: rows[:1]),
    ),
    Case(
        "a file that is cut off in a row",
        NEW,
        "fixed_data/ru_P36_phrasebook.tsv: line 7 ends a row of 7 fields, the header has 17; the file is cut "
        "off, or "
        "a tab or a quote is missing",
        cut(FILE, 0.7),
    ),
    Case(
        "a file without its last line end",
        NEW,
        "fixed_data/ru_P36_phrasebook.tsv: no line end after the last row, so the file seems cut off; get it "
        "again, "
        "or add one if it is whole",
        change(FILE, lambda data: data[:-1]),
    ),
    Case(
        "a file in UTF-16",
        NEW,
        "fixed_data/ru_P36_phrasebook.tsv: not UTF-8 (byte 0xff in line 1); save it as UTF-8",
        change(FILE, lambda data: data.decode().encode("utf-16")),
    ),
    Case(
        "a file in Windows-1251",
        NEW,
        "fixed_data/ru_P36_phrasebook.tsv: not UTF-8 (byte 0xd4 in line 2); save it as UTF-8",
        change(FILE, lambda data: data.decode().replace("—", "-").encode("cp1251")),
    ),
    Case(
        "a broken character",
        NEW,
        "fixed_data/ru_P36_phrasebook.tsv: not UTF-8 (byte 0xd0 in line 4); save it as UTF-8",
        change(FILE, lambda data: data[:900] + b"\xd0" + data[900:]),
    ),
    Case(
        "a NUL byte",
        NEW,
        "fixed_data/ru_P36_phrasebook.tsv: a NUL byte in line 4, so the file is damaged; get it again",
        swap(FILE, "Мадрид\tThe", "Мад\0рид\tThe"),
    ),
    Case(
        "commas instead of tabs",
        NEW,
        "fixed_data/ru_P36_phrasebook.tsv: no column 'sub_uri', 'sub_label', 'obj_uri', 'obj_label', "
        "'template', "
        "'template_prompt', 'aliases'; it has sub_uri…",
        swap(FILE, "\t", ","),
    ),
    Case(
        "a lacking column",
        NEW,
        "fixed_data/ru_P36_phrasebook.tsv: no column 'aliases'; it has sub_uri…",
        without_column(FILE, "aliases"),
    ),
    Case(
        "a verbalisation without its prompts",
        NEW,
        "fixed_data/ru_P36_phrasebook.tsv: no column 'phrasebook_prompt'; it has sub_uri…",
        without_column(FILE, "phrasebook_prompt"),
    ),
    Case(
        "a column that stands twice",
        NEW,
        "fixed_data/ru_P36_phrasebook.tsv: column 'sub_label' stands twice in the header; remove one",
        swap(FILE, "en_sub_label", "sub_label", 1),
    ),
    Case(
        "a row with a field too many",
        NEW,
        "fixed_data/ru_P36_phrasebook.tsv: line 4 ends a row of 18 fields, the header has 17; the file is "
        "cut off, "
        "or a tab or a quote is missing",
        swap(FILE, "Мадрид\tThe", "Мадрид\tx\tThe"),
    ),
    Case(
        "a row with an open quote",
        NEW,
        "fixed_data/ru_P36_phrasebook.tsv: line 9: unexpected end of data; the file is cut off, or a quote is not closed or not doubled",
        both(
            swap(FILE, "\tИспания\t", '\t"Испания\t', 1),
            swap(FILE, "\tИталия\t", '\t""Италия\t', 1),
        ),
    ),
    Case(
        "a folder where the file should be",
        NEW,
        "no benchmark file for relation 'P36' of ru in fixed_data: there are P19",
        folder(FILE),
    ),
    Case(
        "a file without read permission",
        NEW,
        "Permission denied at fixed_data/ru_P36_phrasebook.tsv; check its permissions, or choose another folder, then run the same "
        "command again",
        unreadable(FILE),
        by_root=False,
    ),
    Case(
        "rank dumps given as benchmark files",
        f"{NEW} --data stats/paper",
        "stats/paper/ru_P36_template_phrasebook.tsv is a rank dump, not a benchmark file; give the folder of the benchmark (fixed_data)",
    ),
]
