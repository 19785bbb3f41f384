"""A task folder for lm-evaluation-harness (``lm_eval --include_path FOLDER``), made for version
0.4.13.

    fluent_mlama                        group of groups
      fluent_mlama_template             group: one verbalisation in all languages
        fluent_mlama_ru_template        task: multiple_choice, 0-shot, accuracy
    data/ru_template.jsonl              one document a fact
    documents.py                        what the tasks load it with, wherever the folder lies

The harness tokenises context and continuation as one string and cuts it by the number of the
context's tokens, as our engine does with `joint` but for tokens that straddle the boundary
(docs/exports.md). A document's choices are all forms of all entities with the sentence's tail; any
form of the gold entity is a hit, so ``acc`` is R@1 of `v_rank`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from fluent_mlama.console import UserError
from fluent_mlama.exporting.facts import Fact, Facts, export_folder, write_json_lines

GROUP = "fluent_mlama"
_NAME = re.compile(r"[\w.-]+")
_LOADER = '''"""Loads the documents of one task, wherever this folder lies. Nothing is fetched and nothing is cached."""

import json
from pathlib import Path

import datasets


def documents(file: str, **_: object) -> datasets.DatasetDict:
    text = Path(__file__).with_name("data").joinpath(file).read_text(encoding="utf-8")
    rows = [json.loads(line) for line in text.split("\\n") if line]
    return datasets.DatasetDict({"test": datasets.Dataset.from_list(rows)})
'''


def export_harness(facts: Facts, path: Path) -> None:
    """Write the task folder. A verbalisation whose name cannot be part of a task's name is a
    ``UserError``."""
    tasks = facts.by_task()
    for _, v in tasks:
        if not _NAME.fullmatch(v):
            raise UserError(
                f"verbalisation '{v}': lm-eval's task names hold letters, digits, '_', '-' and "
                "'.' only; rename its columns"
            )
    with export_folder(path, facts, "lm-eval") as folder:
        (folder / "documents.py").write_text(_LOADER, encoding="utf-8", newline="")
        for (lang, v), its_facts in tasks.items():
            delimiter = common_separator(its_facts)
            write_json_lines(
                folder / "data" / f"{lang}_{v}.jsonl",
                [document(fact, delimiter) for fact in its_facts],
            )
            _write_yaml(folder / f"{task_name(lang, v)}.yaml", _task(lang, v, delimiter))
        verbalisations = list(dict.fromkeys(v for _, v in tasks))
        for v in verbalisations:
            members = [task_name(lang, other) for lang, other in tasks if other == v]
            _write_yaml(folder / f"{GROUP}_{v}.yaml", _group(f"{GROUP}_{v}", members))
        _write_yaml(
            folder / f"{GROUP}.yaml", _group(GROUP, [f"{GROUP}_{v}" for v in verbalisations])
        )


def task_name(lang: str, verbalisation: str) -> str:
    """`fluent_mlama_ru_template`."""
    return f"{GROUP}_{lang}_{verbalisation}"


def common_separator(facts: Sequence[Fact]) -> str:
    """What stands between prompt and object in all of these facts; where they differ "", and each
    choice brings its own."""
    separators = {fact.separator for fact in facts}
    return separators.pop() if len(separators) == 1 else ""


def document(fact: Fact, delimiter: str) -> dict[str, Any]:
    """One document of a task.

    Gold's forms stand last: the harness takes the first of equal scores, so a tie counts against
    gold, as R@1 by mid-ranks has it.
    """
    choices = [choice for choice in fact.choices if choice.entity != fact.gold]
    wrong = len(choices)
    choices += [choice for choice in fact.choices if choice.entity == fact.gold]
    separator = "" if delimiter == fact.separator else fact.separator
    return {
        "relation": fact.relation,
        "row": fact.row,
        "sub_uri": fact.cells["sub_uri"],
        "obj_uri": fact.gold,
        "prompt": fact.prompt,
        "choices": [f"{separator}{choice.form}{fact.tail}" for choice in choices],
        "gold": list(range(wrong, len(choices))),
        "forms": [choice.form for choice in choices],
        "entities": [choice.entity for choice in choices],
        "own": [choice.own for choice in choices],
    }


def _task(lang: str, verbalisation: str, delimiter: str) -> dict[str, Any]:
    return {
        "task": task_name(lang, verbalisation),
        "custom_dataset": _Function("documents.documents"),
        "dataset_kwargs": {"file": f"{lang}_{verbalisation}.jsonl"},
        "test_split": "test",
        "output_type": "multiple_choice",
        "num_fewshot": 0,
        "doc_to_text": "prompt",
        "doc_to_choice": "choices",
        "doc_to_target": "gold",
        "target_delimiter": delimiter,
        "metric_list": [{"metric": "acc", "aggregation": "mean", "higher_is_better": True}],
        "metadata": {"version": 1.0},
    }


def _group(name: str, members: Sequence[str]) -> dict[str, Any]:
    return {
        "group": name,
        "task": list(members),
        "aggregate_metric_list": [{"metric": "acc", "weight_by_size": True}],
        "metadata": {"version": 1.0},
    }


class _Function(str):
    """A function that the harness takes from the Python file beside the YAML file."""


class _Dumper(yaml.SafeDumper):
    """Knows the harness's tag ``!function``."""


_Dumper.add_representer(
    _Function, lambda dumper, name: dumper.represent_scalar("!function", str(name))
)


def _write_yaml(path: Path, content: dict[str, Any]) -> None:
    path.write_text(
        yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True),
        encoding="utf-8",
        newline="",
    )
