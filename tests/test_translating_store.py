"""Finished answers are kept as they arrive, found again, and never asked for twice."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from unicodedata import normalize

import pytest

from fluent_mlama.console import UserError
from fluent_mlama.patience import Pace, Patience, RequestFailed, TryLater, retry_after
from fluent_mlama.translating.backend import FAILED, Answer, SourceSentence
from fluent_mlama.translating.store import FAILURES_IN_A_ROW, Store, ask, store_keys
from tests.translating_world import QUICK, make_item, translate


@dataclass
class Parrot:
    """A back end that says what it is told and remembers what it was asked."""

    failing: frozenset[int] = frozenset()
    silent: frozenset[int] = frozenset()
    dies_after: int | None = None
    name: str = "parrot"
    model: str = "1"
    costly: bool = True
    shaping: str = "plain"
    span: tuple[int, int] | None = None
    asked: list[int] = field(default_factory=list)

    def check(self, source: str, target: str, relation: str) -> None: ...

    def prompt_hash(self, source: str, target: str, relation: str) -> str:
        return self.shaping

    def query(self, item: SourceSentence) -> str:
        return item.sentence

    def translate(self, items: Sequence[SourceSentence]) -> Iterator[tuple[SourceSentence, Answer]]:
        for number, item in enumerate(items):
            if number == self.dies_after:
                raise UserError("the quota is used up")
            self.asked.append(item.row)
            if item.row in self.failing:
                yield item, Answer(None, FAILED, detail="HTTP 500")
            elif item.row not in self.silent:
                yield item, Answer(translate(item.sentence), object_span=self.span, detail="d")


ITEMS = [make_item(row) for row in range(10)]


def run(
    parrot: Parrot,
    path: Path | None,
    items: Sequence[SourceSentence] = ITEMS,
    *,
    refresh: bool = False,
) -> dict[int, Answer]:
    if path is None:
        return {item.row: answer for item, answer in ask(parrot, items, None)}
    with Store(path) as store:
        return {item.row: answer for item, answer in ask(parrot, items, store, refresh=refresh)}


def test_a_second_run_asks_for_nothing(tmp_path: Path) -> None:
    first, second = Parrot(span=(0, 3)), Parrot()
    before = run(first, tmp_path / "s.sqlite")
    after = run(second, tmp_path / "s.sqlite")
    assert (first.asked, second.asked) == (list(range(10)), [])
    assert before == after
    assert after[0] == Answer(translate(ITEMS[0].sentence), object_span=(0, 3), detail="d")


def test_a_run_that_ends_in_the_middle_goes_on_with_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="quota"):
        run(Parrot(dies_after=4), tmp_path / "s.sqlite")
    second = Parrot()
    found = run(second, tmp_path / "s.sqlite")
    assert second.asked == [4, 5, 6, 7, 8, 9]
    assert found == run(Parrot(), tmp_path / "other.sqlite")


def test_failed_rows_are_asked_for_again_and_others_are_not(tmp_path: Path) -> None:
    found = run(Parrot(failing=frozenset({6})), tmp_path / "s.sqlite")
    assert [answer.status for answer in found.values()].count("ok") == 9
    assert found[6] == Answer(None, FAILED, detail="HTTP 500")
    second = Parrot()
    assert run(second, tmp_path / "s.sqlite")[6].status == "ok"
    assert second.asked == [6]


def test_refresh_asks_again_and_keeps_the_new(tmp_path: Path) -> None:
    run(Parrot(), tmp_path / "s.sqlite")
    again = Parrot(span=(1, 2))
    run(again, tmp_path / "s.sqlite", refresh=True)
    assert again.asked == list(range(10))
    assert run(Parrot(), tmp_path / "s.sqlite")[0].object_span == (1, 2)


def test_equal_sentences_are_asked_for_once(tmp_path: Path) -> None:
    parrot = Parrot()
    twins = [
        ITEMS[0],
        replace(ITEMS[0], row=1),
        replace(ITEMS[0], row=2, sentence=normalize("NFD", ITEMS[0].sentence)),
    ]
    found = run(parrot, None, twins)
    assert parrot.asked == [0]
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize(
    "change",
    [{"model": "2"}, {"name": "other"}, {"shaping": "fancy"}],
    ids=["model", "back end", "prompt"],
)
def test_what_shapes_an_answer_is_in_its_key(tmp_path: Path, change: dict[str, str]) -> None:
    run(Parrot(), tmp_path / "s.sqlite")
    other = Parrot(**change)  # type: ignore[arg-type]
    run(other, tmp_path / "s.sqlite")
    assert other.asked == list(range(10))


def test_language_and_nfc_text_are_in_the_key() -> None:
    parrot = Parrot()
    composed = replace(ITEMS[0], sentence="Café was born in Rome .")
    keys = store_keys(
        parrot,
        [
            composed,
            replace(composed, sentence=normalize("NFD", composed.sentence)),
            replace(composed, target="uk"),
        ],
    )
    assert keys[0] == keys[1]
    assert keys[0] != keys[2]


def test_a_back_end_of_files_is_not_kept(tmp_path: Path) -> None:
    run(Parrot(costly=False), tmp_path / "s.sqlite")
    second = Parrot()
    run(second, tmp_path / "s.sqlite")
    assert second.asked == list(range(10))


def test_a_service_that_is_down_ends_the_run_soon(tmp_path: Path) -> None:
    many = [replace(ITEMS[0], row=row, sentence=f"{row} x") for row in range(40)]
    parrot = Parrot(failing=frozenset(range(40)))
    with pytest.raises(
        UserError,
        match=r"parrot failed 6 rows one after the other \(last: HTTP 500\); .* kept in .*s.sqlite",
    ):
        run(parrot, tmp_path / "s.sqlite", many)
    assert len(parrot.asked) == FAILURES_IN_A_ROW


def test_a_back_end_that_forgets_a_row_does_not_lose_it() -> None:
    found = run(Parrot(silent=frozenset({3})), None)
    assert found[3].status == FAILED
    assert "no answer for row 3" in found[3].detail


@dataclass
class Broken(Parrot):
    """Somebody's own back end, which fails in the middle."""

    def translate(self, items: Sequence[SourceSentence]) -> Iterator[tuple[SourceSentence, Answer]]:
        yield items[0], Answer("One is done.")
        raise ZeroDivisionError("by nought")


def test_a_back_end_that_raises_is_named_in_one_line_and_what_it_did_is_kept(
    tmp_path: Path,
) -> None:
    with pytest.raises(UserError, match=r"back end parrot failed \(ZeroDivisionError: by nought\)"):
        run(Broken(), tmp_path / "s.sqlite")
    with Store(tmp_path / "s.sqlite") as store:
        assert store.get(store_keys(Broken(), ITEMS)[0]) == Answer("One is done.")


@dataclass
class Careless(Parrot):
    """Says for every item, and as often as told, the same."""

    answer: object = None
    times: int = 1

    def translate(self, items: Sequence[SourceSentence]) -> Iterator[tuple[SourceSentence, Answer]]:
        for item in items:
            yield from [(item, self.answer)] * self.times  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("answer", "times"),
    [("bare text", 1), (Answer(b"bytes"), 1), (Answer(42), 1), (Answer("twice."), 2)],  # type: ignore[arg-type]
)
def test_a_back_end_that_breaks_its_contract_is_told(
    tmp_path: Path, answer: object, times: int
) -> None:
    with pytest.raises(UserError, match="back end parrot breaks its contract"):
        run(Careless(answer=answer, times=times), tmp_path / "store.sqlite")


def test_half_a_character_can_be_kept_and_written(tmp_path: Path) -> None:
    found = run(Careless(answer=Answer("Он \ud83d \U0001f600.")), tmp_path / "store.sqlite")
    assert {answer.text for answer in found.values()} == {"Он \ufffd \U0001f600."}


def test_the_store_tells_what_is_wrong_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "text.sqlite").write_text(
        "this is no database, only a long enough text to be read as one " * 20, encoding="utf-8"
    )
    with pytest.raises(
        UserError,
        match=r"text.sqlite is damaged or no SQLite file .*: move it away, or give another --store",
    ):
        Store(tmp_path / "text.sqlite")
    with pytest.raises(UserError, match="is a folder: give the name of a file"):
        Store(tmp_path)
    with pytest.raises(UserError, match="cannot make the folder of store"):
        Store(tmp_path / "text.sqlite" / "s.sqlite")


def test_a_store_with_broken_pages_is_told_and_not_used(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    run(Parrot(), path)
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    data = bytearray(path.read_bytes())
    data[4096 + 8 : 4096 + 200] = b"\xff" * 192
    path.write_bytes(data)
    with pytest.raises(UserError, match="damaged"):
        Store(path)


def test_a_locked_store_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.sqlite"
    Store(path).close()
    connect = sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda where, **options: connect(where, **{**options, "timeout": 0.05})
    )
    blocker = connect(path, isolation_level=None)
    blocker.execute("BEGIN EXCLUSIVE")
    with pytest.raises(UserError, match="is in use by another run"), Store(path) as store:
        store.keep(store_keys(Parrot(), ITEMS)[0], Answer("x"))
    blocker.close()


# patience


def test_backoff_grows_and_stays_under_its_ceiling(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    waits: list[float] = []
    monkeypatch.setattr(
        "tenacity.nap.time.sleep", lambda seconds: waits.append(seconds) if seconds else None
    )
    patience = Patience(attempts=8, first_wait=1.0, longest_wait=10.0, per_second=0)

    def call() -> str:
        raise TryLater("HTTP 503")

    with pytest.raises(RequestFailed, match="HTTP 503, 8 times"):
        patience.persist("x", call)
    assert len(waits) == 7
    ceilings = [1, 2, 4, 8, 10, 10, 10]
    assert all(0 <= wait <= ceiling for wait, ceiling in zip(waits, ceilings, strict=True))
    announced = [
        line.removeprefix("x: HTTP 503; trying again in ")
        for line in capsys.readouterr().err.splitlines()
    ]
    assert announced == [f"{wait:.0f} s" for wait in waits if wait >= 5]
    assert (
        len({round(wait / ceiling, 3) for wait, ceiling in zip(waits, ceilings, strict=True)}) > 3
    )  # jitter


def test_what_does_not_pass_is_not_tried_again() -> None:
    calls = []

    def call() -> str:
        calls.append(1)
        raise RequestFailed("HTTP 400")

    with pytest.raises(RequestFailed, match="HTTP 400"):
        QUICK.persist("x", call)
    assert len(calls) == 1


def test_retry_after_is_seconds_or_a_date() -> None:
    assert [retry_after(value) for value in (None, "", "2.5", "-1", "soon")] == [
        None,
        None,
        2.5,
        0.0,
        None,
    ]
    later = retry_after(format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True))
    assert later is not None
    assert 90 < later <= 100


def test_pace_spaces_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    now, sleeps = [100.0], list[float]()
    monkeypatch.setattr("fluent_mlama.patience.time.monotonic", lambda: now[0])
    monkeypatch.setattr("fluent_mlama.patience.time.sleep", sleeps.append)
    pace = Pace(4.0)
    for _ in range(4):
        pace.wait()
    now[0] = 200.0
    pace.wait()
    assert sleeps == [0.0, 0.25, 0.5, 0.75, 0.0]
    sleeps.clear()
    patience = Patience(per_second=4.0)
    for _ in range(3):
        patience.persist("x", lambda: "answer")
    assert sleeps == [0.0, 0.25, 0.5]
