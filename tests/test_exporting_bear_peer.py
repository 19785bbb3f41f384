"""LM-Pub-Quiz itself reads the exported datasets and scores them. In the peers' own environment."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from fluent_mlama import script
from fluent_mlama.files import open_source
from fluent_mlama.ranking.corrected import corrected_task
from fluent_mlama.ranking.task import Question
from fluent_mlama.records.benchmark import read_benchmark
from fluent_mlama.scoring.causal import CausalScorer
from tests.peers import peers_python, run_peer

STARTER = "fixed_data/starter"
READ = """
import json, sys
from lm_pub_quiz import Dataset
dataset = Dataset.from_path(sys.argv[1])
print(json.dumps({relation.relation_code: {
    "templates": relation.templates,
    "rows": relation.instance_table.to_dict(orient="records"),
    "answers": relation.answer_space.to_dict(),
    "relation": relation.relation_info("relation"),
} for relation in dataset}))
"""
SCORE = """
import json, sys
from lm_pub_quiz import Dataset, Evaluator
dataset = Dataset.from_path(sys.argv[1])
some = dataset.filter_subset({code: rows for code, rows in json.loads(sys.argv[3]).items()},
keep_answer_space=True) options = {"model_type": "CLM", "device": "cpu", "capitalize": False}
results = Evaluator.from_model(sys.argv[2], **options).evaluate_dataset(some, batch_size=32,
metric="accuracy") rows = [{"code": result.relation_code, "row": row["row"], "answer":
row["answer_idx"], "ids": list(result.answer_space.index),
         "scores": row["pll_scores"]} for result in results for row in
         result.instance_table.to_dict(orient="records")]
by_relation = results.get_metrics("accuracy", accumulate="relation").to_dict()
print(json.dumps({"accuracy": results.get_metrics("accuracy"), "by_relation": by_relation, "rows":
rows}))
"""


def test_lm_pub_quiz_reads_every_row_and_answer(root: Path, tmp_path: Path) -> None:
    python = peers_python(root, "lm_pub_quiz")
    script.main(
        [
            "export",
            "bear",
            "--data",
            str(root / STARTER),
            "-l",
            "ru,zh",
            "--out",
            str(tmp_path / "bear"),
        ]
    )
    for name in ("ru_template", "ru_phrasebook", "zh_phrasebook"):
        read = json.loads(
            run_peer(python, ["-c", READ, str(tmp_path / "bear" / name)], cwd=tmp_path).split("\n")[
                -2
            ]
        )
        lang, v = name.split("_")
        sentences: dict[str, set[str]] = {}
        for one in read.values():
            (template,) = one["templates"]
            for row in one["rows"]:
                answer = list(one["answers"].values())[row["answer_idx"]]
                assert answer == row["obj_label"] == one["answers"][row["obj_id"]]
                filled = template.replace("[X]", row["sub_label"]).replace("[Y]", answer)
                sentences.setdefault(one["relation"], set()).add(filled)
        assert sum(len(one["rows"]) for one in read.values()) == 387
        for relation, found in sentences.items():
            benchmark = read_benchmark(open_source(root / STARTER), lang, relation)
            assert found == set(benchmark.table[benchmark.columns(v).sentence])


@pytest.mark.slow
@pytest.mark.model
def test_lm_pub_quiz_scores_sentences_as_the_engine_does(
    smollm2: CausalScorer, root: Path, tmp_path: Path
) -> None:
    from fluent_mlama.scoring.embedded import embedded_model_folder

    python = peers_python(root, "lm_pub_quiz")
    script.main(
        [
            "export",
            "bear",
            "--data",
            str(root / STARTER),
            "-l",
            "ru",
            "-r",
            "P463,P407",
            "--out",
            str(tmp_path / "bear"),
        ]
    )
    folder = tmp_path / "bear" / "ru_phrasebook"
    chosen = json.dumps({"P463": [0, 9, 18, 27], "P407-1": [0, 11, 22], "P407-2": [0]})
    told = run_peer(
        python, ["-c", SCORE, str(folder), str(embedded_model_folder()), chosen], cwd=tmp_path
    )
    found = json.loads(told.split("\n")[-2])
    differences, hits = [], []
    for one in found["rows"]:
        question = _question(root, one["code"].split("-")[0], one["row"])
        (answer,) = smollm2.score([question.request], tokenisation="joint")
        ours = {
            choice.entity: answer.prompt_logprob + part.logprob
            for choice, part in zip(question.choices, answer.candidates, strict=True)
            if choice.own
        }
        theirs = dict(zip(one["ids"], one["scores"], strict=True))
        assert theirs.keys() == ours.keys()
        differences += [abs(theirs[uri] - ours[uri]) for uri in ours]
        assert one["ids"][one["answer"]] == question.obj_uri
        hits.append(max(ours, key=ours.__getitem__) == question.obj_uri)
    print(f"{len(hits)} facts, {len(differences)} sentences: largest gap {max(differences):.1e}")
    assert len(hits) == 8 and max(differences) < 1e-3
    assert found["accuracy"] == pytest.approx(pd.Series(hits).mean())
    assert set(found["by_relation"]) == {"P463", "P407"}


def _question(root: Path, relation: str, row: int) -> Question:
    benchmark = read_benchmark(open_source(root / STARTER), "ru", relation)
    task = corrected_task(benchmark, benchmark.verbalisations)
    (question,) = [q for q in task.questions if (q.row, q.verbalisation) == (row, "phrasebook")]
    return question
