"""run.json: complete, strict, and honest about rows and changed dumps."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import pytest

from fluent_mlama import __version__
from fluent_mlama.console import UserError
from fluent_mlama.records.results import RunRecord, read_run, run_path, write_run

RECORD = RunRecord(
    lang="ru",
    relation="P19",
    verbalisations=("template", "gt"),
    model="org/model",
    revision="abc123",
    dtype="bfloat16",
    device="cuda:0",
    arithmetic="published-fp16",
    path="batch",
    path_reason="trie failed",
    tokenisation="joint",
    bos="0",
    protocol="corrected",
    pool_size=50,
    ties="mid-rank",
    limit=10,
    data_name="ru_P19_20prompt.tsv",
    data_sha256="f" * 64,
    rows_in=30,
    rows_scored=10,
    rows_left_out={"gt: not-found": 5},
    rows_beyond_limit=15,
    self_check={"gap": math.inf},
    packages={"torch": "2.13.0"},
    times={"seconds": 1.5},
    extras={"seed": 0, "nested": {"list": [1, None, "ž"]}},
)


def test_signature_has_the_defined_order() -> None:
    assert RECORD.signature == (
        "org/model@abc123|bfloat16|published-fp16|batch|tok:joint|bos:0|corrected|pool:50|ties:mid-rank|limit:10|data:ffffffff|v"
        + __version__
    )
    strange = dataclasses.replace(RECORD, model="a|b\nc", revision="")
    assert (
        strange.signature.startswith("a_b_c@local|")
        and strange.signature.count("|") == RECORD.signature.count("|") == 11
    )


def test_record_comes_back_with_infinities_as_words(tmp_path: Path) -> None:
    path = run_path(tmp_path / "ru_P19_template_gt.tsv")
    write_run(path, RECORD)
    text = path.read_text(encoding="utf-8")
    assert json.loads(text)["signature"] == RECORD.signature and "ž" in text
    assert read_run(path) == dataclasses.replace(RECORD, self_check={"gap": "inf"})


def test_rows_must_add_up(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="30 rows came in, 29 are told of"):
        write_run(tmp_path / "x.run.json", dataclasses.replace(RECORD, rows_scored=9))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": None}, "field 'model' holds None, expected str"),
        ({"bos": 1}, "field 'bos' holds 1, expected str"),
        ({"limit": True}, "field 'limit' holds True, expected int"),
        ({"extras": []}, r"field 'extras' holds \[\]"),
        ({"colour": "red"}, "unknown field 'colour'"),
    ],
)
def test_a_wrong_field_is_named(tmp_path: Path, change: dict[str, object], message: str) -> None:
    path = tmp_path / "x.run.json"
    write_run(path, RECORD)
    path.write_text(
        json.dumps(json.loads(path.read_text(encoding="utf-8")) | change), encoding="utf-8"
    )
    with pytest.raises(UserError, match=message):
        read_run(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "is not JSON"), ("[]", "no JSON object"), ('{"lang": "ru"}', "no field 'relation'")],
)
def test_what_is_no_record_is_told(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "x.run.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=message):
        read_run(path)
    with pytest.raises(UserError, match="no run record"):
        read_run(tmp_path / "y.run.json")


@pytest.mark.parametrize(("written", "read"), [(True, "1"), (False, "0"), ("</s>", "</s>")])
def test_what_stands_in_front_is_read_from_old_and_new_records(
    tmp_path: Path, written: bool | str, read: str
) -> None:
    path = tmp_path / "x.run.json"
    write_run(path, RECORD)
    fields = json.loads(path.read_text(encoding="utf-8")) | {"bos": written}
    fields.pop("tokenizer")  # older records have none
    path.write_text(json.dumps(fields), encoding="utf-8")
    record = read_run(path)
    assert (record.bos, record.tokenizer) == (read, "") and f"|bos:{read}|" in record.signature
