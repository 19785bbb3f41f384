"""lm-evaluation-harness itself reads the exported tasks, and its scores are the engine's. In the
peers' own environment."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fluent_mlama import script
from fluent_mlama.files import open_source
from fluent_mlama.ranking.corrected import corrected_ranks, corrected_task
from fluent_mlama.ranking.task import Question, score_table
from fluent_mlama.records.benchmark import read_benchmark
from fluent_mlama.scoring.causal import CausalScorer
from tests.peers import peers_python, run_peer

STARTER = "fixed_data/starter"
ASKED = {
    "es_template": [*range(5, 387, 32)],
    "zh_phrasebook": [*range(32, 64, 4), *range(256, 286, 3)],
    "ru_phrasebook": [224, *range(128, 160, 4), *range(256, 288, 3)],
}
"""Task -> documents: 50 facts, of all twelve relations in Spanish, of those with few candidates in
Chinese (no separator) and Russian."""
Pair = tuple[str, str]
LOAD = """
import json, sys
from lm_eval.tasks import TaskManager
loaded = TaskManager(include_path=sys.argv[1], include_defaults=False).load(["fluent_mlama"])
told = {}
for name, task in loaded["tasks"].items():
    documents = list(task.test_docs())
    context = task.fewshot_context(documents[0], 0)
    requests = task.construct_requests(documents[0], context, metadata=(name, 0, 1))
    told[name] = {"documents": len(documents), "gold": task.doc_to_target(documents[0]), "requests":
    [one.args for one in requests]}
print(json.dumps({"groups": sorted(loaded["groups"]), "tasks": told}))
"""


def test_the_harness_asks_what_the_engine_is_asked(root: Path, tmp_path: Path) -> None:
    python = peers_python(root, "lm_eval")
    script.main(
        [
            "export",
            "lm-eval",
            "--data",
            str(root / STARTER),
            "-l",
            "ru,zh",
            "-r",
            "P407",
            "--out",
            str(tmp_path / "tasks"),
        ]
    )
    loaded = json.loads(
        run_peer(python, ["-c", LOAD, str(tmp_path / "tasks")], cwd=tmp_path).split("\n")[-2]
    )
    assert loaded["groups"] == ["fluent_mlama", "fluent_mlama_phrasebook", "fluent_mlama_template"]
    assert sorted(loaded["tasks"]) == [
        f"fluent_mlama_{lang}_{v}" for lang in ("ru", "zh") for v in ("phrasebook", "template")
    ]
    for name, told in loaded["tasks"].items():
        _, _, lang, v = name.split("_")
        benchmark = read_benchmark(open_source(root / STARTER), lang, "P407")
        question = next(
            q
            for q in corrected_task(benchmark, benchmark.verbalisations).questions
            if q.verbalisation == v
        )
        asked = [
            (question.request.prompt, candidate.text + candidate.tail)
            for candidate in question.request.candidates
        ]
        assert told["documents"] == 32
        assert sorted(map(tuple, told["requests"])) == sorted(asked)
        gold = {
            asked[number]
            for number, choice in enumerate(question.choices)
            if choice.entity == question.obj_uri
        }
        assert {tuple(told["requests"][number]) for number in told["gold"]} == gold


@pytest.mark.slow
@pytest.mark.model
def test_the_harness_scores_fifty_facts_as_the_engine_does(
    smollm2: CausalScorer, root: Path, tmp_path: Path
) -> None:
    python = peers_python(root, "lm_eval")
    script.main(
        [
            "export",
            "lm-eval",
            "--data",
            str(root / STARTER),
            "-l",
            "ru,zh,es",
            "--out",
            str(tmp_path / "tasks"),
        ]
    )
    samples = {f"fluent_mlama_{task}": documents for task, documents in ASKED.items()}
    assert sum(map(len, samples.values())) == 50
    logged = run_harness(python, tmp_path, samples)
    differences, straddling, facts = [], 0, 0
    for task, documents in logged.items():
        ours, hits = ask_engine(
            smollm2, root / STARTER, *task.removeprefix("fluent_mlama_").split("_"), documents
        )
        for logged_document in documents:
            document = logged_document["doc"]
            key = (document["relation"], document["row"])
            facts += 1
            assert logged_document["acc"] == hits[key], f"{task} {key}"
            for (answer,), entity, form in zip(
                logged_document["resps"], document["entities"], document["forms"], strict=True
            ):
                logprob, straddles = ours[key][entity, form]
                straddling += straddles
                if not straddles:
                    differences.append(abs(float(answer[0]) - logprob))
    assert facts == 50
    print(
        f"{facts} facts, {len(differences)} candidates: largest gap {max(differences):.1e}; "
        f"straddling: {straddling}"
    )
    assert max(differences) < 1e-3


def run_harness(python: Path, folder: Path, samples: dict[str, list[int]]) -> dict[str, list[dict]]:
    """Task -> its logged documents, as the harness wrote them down."""
    from fluent_mlama.scoring.embedded import embedded_model_folder

    words = [
        "-m", "lm_eval", "run", "--model", "hf", "--model_args", f"pretrained={embedded_model_folder()},dtype=float32,add_bos_token=True",
        "--device", "cpu", "--batch_size", "32", "--include_path", str(folder / "tasks"), "--tasks", ",".join(samples),
        "--samples", json.dumps(samples), "--log_samples", "--output_path", str(folder / "out"),
    ]  # fmt: skip
    run_peer(python, words, cwd=folder)
    logged: dict[str, list[dict]] = {}
    for task in samples:
        (path,) = (folder / "out").rglob(f"samples_{task}_*.jsonl")
        logged[task] = [
            json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line
        ]
    return logged


def ask_engine(
    scorer: CausalScorer, data: Path, lang: str, verbalisation: str, documents: list[dict]
) -> tuple[dict[tuple[str, int], dict[Pair, tuple[float, bool]]], dict[tuple[str, int], int]]:
    """(relation, row) -> (entity, form) -> log-probability and whether its first token straddles;
    and whether gold is at rank 1."""
    scores: dict[tuple[str, int], dict[Pair, tuple[float, bool]]] = {}
    hits: dict[tuple[str, int], int] = {}
    for relation in dict.fromkeys(document["doc"]["relation"] for document in documents):
        rows = {
            document["doc"]["row"]
            for document in documents
            if document["doc"]["relation"] == relation
        }
        benchmark = read_benchmark(open_source(data), lang, relation)
        task = corrected_task(benchmark, benchmark.verbalisations)
        questions: list[Question] = [
            q for q in task.questions if q.row in rows and q.verbalisation == verbalisation
        ]
        answers = scorer.score([question.request for question in questions], tokenisation="joint")
        only = type(task)(benchmark, (verbalisation,), "corrected", "joint", tuple(questions), {})
        ranks = corrected_ranks(score_table(only, dict(enumerate(answers)), {}), (verbalisation,))
        for question, answer in zip(questions, answers, strict=True):
            key = (relation, question.row)
            hits[key] = int(ranks[f"{verbalisation}_top1_correct"][question.row])
            scores[key] = {
                (choice.entity, choice.form): (part.logprob, part.straddles)
                for choice, part in zip(question.choices, answer.candidates, strict=True)
            }
    return scores, hits
