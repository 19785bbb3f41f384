"""Write docs/bad-input.md from the table: ``python -m tests.bad_inputs``."""

from __future__ import annotations

from itertools import groupby

from fluent.records.atomic import write_text
from tests.bad_inputs.case import Case
from tests.bad_inputs.desk import ROOT
from tests.bad_inputs.table import CASES

PAGE = "docs/bad-input.md"
_HEAD = """# Bad input

What every command says to input that it cannot use: one line on standard error (what is wrong, where, what to do), exit status 2,
no traceback, no file changed, nothing half-written, no new folder left behind. The {count} cases below are a test
(`tests/test_bad_input.py`); this page is made from its table by `python -m tests.bad_inputs`.

The commands are given in a folder with a few facts of the starter (`fixed_data/`, `mlama/`), dumps made from them
(`stats/paper`, `stats/corrected`, `stats_wide/paper`) and small inputs of the probes, of which one thing was spoilt as told.
The error line begins with the program's name (here without its subcommand) and `error:`; `…` stands for what differs from
machine to machine or is too long to be told here.
"""


def page() -> str:
    """The page, program by program."""
    parts = [_HEAD.format(count=len(CASES))]
    by_program = sorted(CASES, key=lambda case: list(dict.fromkeys(one.program for one in CASES)).index(case.program))
    for program, group in groupby(by_program, key=lambda case: case.program):
        cases = list(group)
        parts.append(f"\n## `{'python ' if program.startswith('-m') else ''}{program}`: {len(cases)}\n")
        parts += [_entry(case) for case in cases]
    return "\n".join(parts)


def _entry(case: Case) -> str:
    notes = "".join(f"  {note}\n" for note in case.notes)
    return f"- **{case.what}**\n\n  ```text\n  $ python {case.command}\n{notes}  {case.error_name}: error: {case.says}\n  ```\n"


if __name__ == "__main__":
    write_text(ROOT / PAGE, page())
