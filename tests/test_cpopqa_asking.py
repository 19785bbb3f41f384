"""Answers to popularity questions: greedy writing, the endpoint, ranking by log-probability; all of them go on where they stopped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from fluent_mlama.console import UserError
from fluent_mlama.cpopqa import ask
from fluent_mlama.cpopqa.__main__ import main
from fluent_mlama.cpopqa.answers import Store, read_answers
from fluent_mlama.cpopqa.items import numbered, read_items
from fluent_mlama.cpopqa.parsing import parse
from fluent_mlama.cpopqa.rank import Ranking, chosen, prompts, request_of, values
from fluent_mlama.cpopqa.writing import Writer, cut
from fluent_mlama.runner.run import Busy, locked, run_job
from fluent_mlama.scoring.models import LoadedModel
from tests.stand_in import StandInScorer
from tests.tiny import byte_level_tokenizer, plain_scores, tiny_model, tiny_scorer
from tests.translating_world import Service, openai_error, openai_json


@pytest.fixture
def built(tmp_path: Path) -> Path:
    path = tmp_path / "things.csv"
    lines = [
        "item,group,US",
        *(
            f"{group}{name},{group},{place}"
            for group in "xy"
            for place, name in enumerate(("one", "two", "three", "four"))
        ),
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    words = [
        "build",
        "--concepts",
        str(path),
        "--n",
        "2,3",
        "--rounds",
        "1",
        "--questions",
        "2",
        "--shots",
        "1",
        "--wording",
        "{concepts}: {options}?",
    ]
    assert main([*words, "--out", str(tmp_path / "data")]) == 0
    return tmp_path / "data"


def tiny_writer(architecture: str = "llama", seed: int = 0) -> Writer:
    tokenizer = byte_level_tokenizer()
    return Writer(
        LoadedModel(
            architecture,
            "random",
            tiny_model(architecture, len(tokenizer), seed),
            tokenizer,
            torch.device("cpu"),
            "float32",
        )
    )


def greedy_by_hand(writer: Writer, prompt: str, most: int) -> str:
    """One token at a time, no cache, no batch."""
    tokenizer, ids = (
        writer.loaded.tokenizer,
        [0, *writer.loaded.tokenizer(prompt, add_special_tokens=False)["input_ids"]],
    )
    made: list[int] = []
    for _ in range(most):
        with torch.inference_mode():
            made.append(int(writer.loaded.model(torch.tensor([ids + made])).logits[0, -1].argmax()))
        if made[-1] == tokenizer.eos_token_id or any(
            stop in tokenizer.decode(made) for stop in ask.STOPS
        ):
            break
    return cut(tokenizer.decode(made, skip_special_tokens=True))


@pytest.mark.parametrize("architecture", ["llama", "gpt2"])
def test_batched_writing_is_plain_greedy_decoding(architecture: str) -> None:
    writer = tiny_writer(architecture)
    prompts = ["Q: a?\nA:", "Q: a longer one, of other length?\nA:", "Q: b?\nA:"]
    written = writer.write(prompts, 12)
    assert written == [greedy_by_hand(writer, prompt, 12) for prompt in prompts]
    assert len(set(written)) > 1 and written[1] == writer.write(prompts[1:2], 12)[0]


def test_a_prompt_beyond_the_window_is_told() -> None:
    with pytest.raises(UserError, match="llama has 128 positions, a prompt and its answer need 1"):
        tiny_writer().write(["x" * 126], 10)


def test_the_stop_is_cut_off() -> None:
    assert [cut(text) for text in (" 1. A 2. B\nQ: next", " 1. A\n\nmore", "\n1. A\n2. B")] == [
        "1. A 2. B",
        "1. A",
        "1. A\n2. B",
    ]


def test_asking_goes_on_where_it_stopped(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    items = read_items(built)
    asked: list[str] = []

    class Broken(Writer):
        def write(self, prompts: list[str], most: int) -> list[str]:  # type: ignore[override]
            if len(asked) >= 2:
                raise RuntimeError("the machine stops")
            asked.extend(prompts)
            return [" 1. no 2. matter"] * len(prompts)

    writer = tiny_writer("bloom")  # no window
    monkeypatch.setattr("fluent_mlama.scoring.models.load_model", lambda name, **_: writer.loaded)
    monkeypatch.setattr("fluent_mlama.cpopqa.ask.model_identity", lambda *_: "random")
    monkeypatch.setattr("fluent_mlama.cpopqa.writing.Writer", Broken)
    words = ["ask", "--data", str(built), "--model", "toy", "--batch", "1"]
    with pytest.raises(RuntimeError, match="the machine stops"):
        main(words)
    monkeypatch.setattr("fluent_mlama.cpopqa.writing.Writer", Writer)
    before = {one: answer for one, answer in read_answers(built, items)["toy (written)"].items()}
    assert len(before) == 2
    main(words)
    answers = read_answers(built, items)["toy (written)"]
    assert len(answers) == len(items) == 4 and all(
        answers[one] == answer for one, answer in before.items()
    )
    run = json.loads(Store(built, "toy (written)").run.read_text(encoding="utf-8"))
    assert run["made"]["last_run"][0] == 2 and run["made"]["revision"] == "random"


def test_ranking_more_questions_with_the_same_command(
    built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scorer = StandInScorer()
    monkeypatch.setattr("fluent_mlama.scoring.causal.load_scorer", lambda name, **_: scorer)
    monkeypatch.setattr("fluent_mlama.cpopqa.rank.model_identity", lambda *_: "first")
    words = ["rank", "--data", str(built), "--model", "toy"]
    assert main([*words, "--per-round", "1"]) == 0 and main(words) == 0 and main(words) == 0
    items = read_items(built)
    assert (
        len(read_answers(built, items)["toy (log-probability)"]) == 4
        and len(scorer.packs_scored) == 2
    )
    run = json.loads(Store(built, "toy (log-probability)").run.read_text(encoding="utf-8"))
    assert run["made"]["path"] == "hash" and run["device"] == "auto" and run["identity"] == "first"
    assert run["made"]["signature"].startswith(
        "stand-in@local|float32|float32|hash|tok:joint|bos:0|cpopqa,_log-probability|pool:"
    )
    monkeypatch.setattr("fluent_mlama.cpopqa.rank.model_identity", lambda *_: "second")
    with pytest.raises(UserError, match="was made with another identity .'first', now 'second'"):
        main(words)


def test_endpoint_answers_are_kept_refusals_and_faults_told_apart(
    built: Path,
    httpserver: HTTPServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-never-to-be-seen")
    items = read_items(built)
    by_prompt = {item.prompt: item for item in items}
    bad = items[0].prompt

    def answer(request: Request, number: int) -> Response:
        body = json.loads(request.get_data())
        assert (
            body["temperature"] == 0
            and body["max_completion_tokens"] in {32, 48}
            and body["model"] == "m"
        )
        (message,) = body["messages"]
        if message["content"] == bad and answer.failing:  # type: ignore[attr-defined]
            return openai_error(400, "odd_prompt")
        item = by_prompt[message["content"]]
        return (
            openai_json(None, refusal="no")
            if item.n == 3 and item is items[-1]
            else openai_json(numbered(item.gold))
        )

    answer.failing = True  # type: ignore[attr-defined]
    service = Service(httpserver, "/v1/chat/completions", answer)
    words = [
        "ask",
        "--data",
        str(built),
        "--model",
        "m",
        "--base-url",
        httpserver.url_for("/v1"),
        "--workers",
        "2",
    ]
    assert main(words) == 0
    assert "1 questions failed and are asked again by the next run" in capsys.readouterr().err
    answer.failing = False  # type: ignore[attr-defined]
    assert main(words) == 0
    assert len(service.requests) == 5
    answers = read_answers(built, items)["m (written)"]
    assert [answers[item.id].order for item in items[:-1]] == [
        item.gold for item in items[:-1]
    ] and answers[items[-1].id].status == "none"
    assert "sk-never" not in "".join(
        path.read_text(encoding="utf-8") for path in (built / "answers").iterdir()
    )


def test_a_service_that_fails_on_everything_is_left(
    built: Path, httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    monkeypatch.setattr(ask, "FAILURES_IN_A_ROW", 3)
    service = Service(
        httpserver, "/v1/chat/completions", lambda request, number: openai_error(400, "odd_prompt")
    )
    with pytest.raises(UserError, match=r"3 questions failed in a row \(HTTP 400 odd_prompt\)"):
        main(
            [
                "ask",
                "--data",
                str(built),
                "--model",
                "m",
                "--base-url",
                httpserver.url_for("/v1"),
                "--workers",
                "1",
            ]
        )
    assert len(service.requests) <= 4


def test_endpoint_without_the_model_ends_in_one_line(
    built: Path, httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    Service(
        httpserver,
        "/v1/chat/completions",
        lambda request, number: openai_error(404, "model_not_found"),
    )
    with pytest.raises(UserError, match="openai knows no model 'm'"):
        main(["ask", "--data", str(built), "--model", "m", "--base-url", httpserver.url_for("/v1")])


@pytest.mark.parametrize("form", [{}, {"examples": True}, {"unlisted": True}])
def test_ranking_is_the_mean_logprob_of_a_plain_forward(built: Path, form: dict[str, bool]) -> None:
    items = read_items(built)
    scorer = tiny_scorer("gpt2" if form else "llama", byte_level_tokenizer())
    shown = prompts(built, items, **form)
    requests = [request_of(item, prompt) for item, prompt in zip(items, shown, strict=True)]
    if form.get("unlisted"):
        assert shown[0] in {
            f"Q: Which of the items in {group} is the most popular in the United States?\nA:"
            for group in "xy"
        }
    else:
        assert shown[0].endswith("A: 1.") and shown[0].count("Q:") == (2 if form else 1)
    plain = plain_scores(scorer, requests, "joint")
    for item, request, expected in zip(
        items, scorer.score(requests, tokenisation="joint"), plain, strict=True
    ):
        found, sums = values(item, request), values(item, request, total=True)
        assert list(found) == list(item.options)
        assert list(found.values()) == pytest.approx(
            [sum(one) / len(one) for one in expected], abs=1e-4
        )
        assert list(sums.values()) == pytest.approx([sum(one) for one in expected], abs=1e-3)


def test_ranking_goes_on_where_it_stopped(built: Path) -> None:
    items = [item for item in read_items(built) for _ in range(1)]
    many = items * 3  # more than one pack
    job = Ranking(many, prompts(built, many), Store(built, "toy"), {"method": "log-probability"})
    with pytest.raises(RuntimeError, match="the machine stops"):
        run_job(job, StandInScorer(stop_after=1))
    assert not job.target.exists() and not job.is_finished()
    scorer = StandInScorer()
    assert run_job(job, scorer) and scorer.packs_scored == [1] and not job.packs.exists()
    kept = Store(built, "toy").begin({})
    assert set(kept) == {item.id for item in items}
    assert not run_job(job, scorer)
    with locked(job.target), pytest.raises(Busy, match="another run is at work on"):
        run_job(job, scorer)
    orders = read_answers(built, items)["toy"]
    for item in items:
        scores = kept[item.id]["scores"]
        assert orders[item.id].order == tuple(
            sorted(item.options, key=lambda name, s=scores: -s[name])
        )  # type: ignore[misc]
        assert orders[item.id].status == "full"


def test_some_questions_of_each_round(built: Path) -> None:
    items = read_items(built)
    assert [item.id for item in chosen(items, 1)] == ["US/n2/r1/001", "US/n3/r1/001"] and chosen(
        items, None
    ) == items


@pytest.mark.model
def test_the_embedded_model_ranks_and_writes(built: Path, smollm2) -> None:  # type: ignore[no-untyped-def]
    items = read_items(built)
    store = Store(built, "smollm2")
    run_job(Ranking(items, prompts(built, items), store, {"method": "log-probability"}), smollm2)
    assert all(answer.status == "full" for answer in read_answers(built, items)["smollm2"].values())
    text = Writer(smollm2.loaded).write(
        ["Q: Sort these numbers: 2, 1?\nA: 1. one 2. two\n\nQ: Sort these numbers: 2, 1?\nA:"], 12
    )
    assert parse(text[0], ("one", "two")).status == "full"
