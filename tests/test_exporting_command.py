"""Exports from the command line: what stands in the folders, what is left out and listed, bad
input. Without the tools themselves."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
import yaml

from fluent_mlama import script
from fluent_mlama.console import UserError
from fluent_mlama.exporting.bear import export_bear, pattern_of
from fluent_mlama.exporting.facts import Facts, gather_facts
from fluent_mlama.exporting.harness import common_separator, document, export_harness
from fluent_mlama.exporting.huggingface import export_huggingface
from fluent_mlama.files import open_source, read_table
from fluent_mlama.ranking.corrected import corrected_ranks, corrected_task
from fluent_mlama.ranking.task import score_table
from fluent_mlama.records.benchmark import make_benchmark, read_benchmark, write_benchmark
from tests.stand_in import StandInScorer

STARTER = Path(__file__).resolve().parent.parent / "fixed_data" / "starter"


def fact(
    sub: str,
    obj: str,
    label: str,
    prompt: str = "Věta s ",
    form: str | None = None,
    tail: str = ".",
    **cells: str,
) -> dict[str, str]:
    """A row; the template is `SUBJECT v LABEL.`, the other verbalisation `prompt + form + tail`."""
    form = label if form is None else form
    return {
        "sub_uri": sub, "sub_label": f"subjekt {sub}", "obj_uri": obj, "en_obj_label": "", "obj_label": label,
        "template": f"subjekt {sub} v {label}.", "template_prompt": f"subjekt {sub} v ",
        "gt_translation": prompt + form + tail, "gt_prompt": prompt, "gt_infl_object": form, "aliases": "",
    } | cells  # fmt: skip


def facts_of(
    *rows: dict[str, str], lang: str = "cs", relation: str = "P19", **options: int
) -> Facts:
    return gather_facts(
        [make_benchmark(lang, relation, "test", pd.DataFrame(rows, dtype="str"))], None, **options
    )


def jsonl(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two languages and two relations of the starter in all three formats, from the command
    line."""
    folder = tmp_path_factory.mktemp("exports")
    for name in ("hf", "lm-eval", "bear"):
        script.main(
            [
                "export",
                name,
                "--data",
                str(STARTER),
                "-l",
                "ru,zh",
                "-r",
                "P36,P407",
                "--out",
                str(folder / name),
            ]
        )
    return folder


# lm-evaluation-harness


def test_a_task_a_language_and_verbalisation_in_a_group_each(exported: Path) -> None:
    class Loader(yaml.SafeLoader):
        pass

    Loader.add_constructor("!function", lambda loader, node: loader.construct_scalar(node))
    configs = [
        yaml.load(path.read_text(encoding="utf-8"), Loader)
        for path in sorted((exported / "lm-eval").glob("*.yaml"))
    ]
    tasks = {config["task"]: config for config in configs if "group" not in config}
    groups = {config["group"]: config["task"] for config in configs if "group" in config}
    assert sorted(tasks) == [
        f"fluent_mlama_{lang}_{v}" for lang in ("ru", "zh") for v in ("phrasebook", "template")
    ]
    assert groups["fluent_mlama"] == ["fluent_mlama_template", "fluent_mlama_phrasebook"]
    assert groups["fluent_mlama_phrasebook"] == [
        "fluent_mlama_ru_phrasebook",
        "fluent_mlama_zh_phrasebook",
    ]
    assert {name: task["target_delimiter"] for name, task in tasks.items()} == {
        "fluent_mlama_ru_phrasebook": " ", "fluent_mlama_ru_template": " ",
        "fluent_mlama_zh_phrasebook": "", "fluent_mlama_zh_template": "",
    }  # fmt: skip
    for task in tasks.values():
        (row,) = jsonl(exported / "lm-eval" / "data" / task["dataset_kwargs"]["file"])[:1]
        assert (task["doc_to_text"], task["doc_to_choice"], task["doc_to_target"]) == (
            "prompt",
            "choices",
            "gold",
        )
        assert (
            isinstance(row["prompt"], str)
            and isinstance(row["choices"], list)
            and isinstance(row["gold"], list)
        )


def test_documents_are_the_requests_of_the_corrected_protocol(exported: Path) -> None:
    for lang, delimiter in (("ru", " "), ("zh", "")):
        documents = jsonl(exported / "lm-eval" / "data" / f"{lang}_phrasebook.jsonl")
        source = open_source(STARTER)
        asked = []
        for relation in ("P36", "P407"):
            benchmark = read_benchmark(source, lang, relation)
            questions = corrected_task(benchmark, benchmark.verbalisations).questions
            asked += [question for question in questions if question.verbalisation == "phrasebook"]
        assert len(documents) == len(asked) == 64
        for written, question in zip(documents, asked, strict=True):
            continuations = {
                candidate.text + candidate.tail for candidate in question.request.candidates
            }
            assert written["prompt"] == question.request.prompt
            assert {delimiter + choice for choice in written["choices"]} == continuations
            assert {written["entities"][number] for number in written["gold"]} == {question.obj_uri}
            assert written["gold"] == list(
                range(written["entities"].index(question.obj_uri), len(written["choices"]))
            )


def test_accuracy_as_the_harness_counts_it_is_r_at_1_ties_included() -> None:
    rows = [
        fact(
            f"Q{n}",
            f"Q1{n % 3}",
            f"Město{n % 3}",
            form=f"Městě{n % 3}" if n % 3 else "Brně",
        )
        for n in range(9)
    ]
    benchmark = make_benchmark("cs", "P19", "test", pd.DataFrame(rows, dtype="str"))
    task = corrected_task(benchmark, benchmark.verbalisations)
    scores = score_table(
        task, dict(enumerate(StandInScorer().score(task.requests(), tokenisation="joint"))), {}
    )
    scores["logprob"] = scores["logprob"].round(-1)  # coarse, so that many are equal
    ranks = corrected_ranks(scores, benchmark.verbalisations)
    seen = set()
    for one in gather_facts([benchmark], None).facts:
        written = document(one, " ")
        mine = scores[(scores["row"] == one.row) & (scores["verbalisation"] == one.verbalisation)]
        by_form = dict(zip(mine["candidate"], mine["logprob"], strict=True))
        values = [by_form[form] for form in written["forms"]]
        hit = int(
            values.index(max(values)) in written["gold"]
        )  # the first of equal scores, as numpy.argmax
        assert hit == ranks[f"{one.verbalisation}_top1_correct"][one.row]
        gold, others = values[written["gold"][0] :], values[: written["gold"][0]]
        seen.add(
            "hit" if max(gold) > max(others) else "tie" if max(gold) == max(others) else "miss"
        )
    assert seen == {"hit", "tie", "miss"}


def test_where_separators_differ_each_choice_brings_its_own() -> None:
    facts = facts_of(
        fact("Q1", "Q11", "Praha"), fact("Q2", "Q12", "Brno", prompt="Věta „", tail="“.")
    )
    of_gt = [one for one in facts.facts if one.verbalisation == "gt"]
    assert common_separator(of_gt) == ""
    assert [document(one, "")["choices"] for one in of_gt] == [
        [" Brno.", " Praha."],
        ["Praha“.", "Brno“."],
    ]


# LM-Pub-Quiz


def test_a_shared_template_is_written_as_one_and_any_other_sentence_goes_into_the_subject(
    exported: Path,
) -> None:
    metadata = json.loads(
        (exported / "bear" / "ru_template" / "metadata_relations.json").read_text(encoding="utf-8")
    )
    rows = jsonl(exported / "bear" / "ru_template" / "P36.jsonl")
    table = read_benchmark(open_source(STARTER), "ru", "P36").table
    assert (
        (exported / "bear" / "ru_template" / "P36.jsonl").read_text(encoding="utf-8").count("\n")
        == len(rows)
        == 32
    )
    sentences = {
        metadata["P36"]["templates"][0]
        .replace("[X]", row["sub_label"])
        .replace("[Y]", row["obj_label"])
        for row in rows
    }
    assert sentences == set(table["template"])
    assert set(metadata["P36"]["answer_space_labels"]) == set(table["obj_label"])
    metadata = json.loads(
        (exported / "bear" / "ru_phrasebook" / "metadata_relations.json").read_text(
            encoding="utf-8"
        )
    )
    sentences, codes = set(), [code for code in metadata if metadata[code]["relation"] == "P407"]
    for code in codes:
        (template,) = metadata[code]["templates"]
        for row in jsonl(exported / "bear" / "ru_phrasebook" / f"{code}.jsonl"):
            sentences.add(
                template.replace("[X]", row["sub_label"]).replace("[Y]", row["obj_label"])
            )
            assert (
                row["obj_label"]
                == dict(
                    zip(
                        *(metadata[code][f"answer_space_{k}"] for k in ("ids", "labels")),
                        strict=True,
                    )
                )[row["obj_id"]]
            )
    assert len(codes) == 2
    assert sentences == set(
        read_benchmark(open_source(STARTER), "ru", "P407").table["phrasebook_translation"]
    )


def test_what_bear_cannot_hold_is_listed_with_its_reason(tmp_path: Path) -> None:
    facts = facts_of(
        fact("Q1", "Q11", "Praha"),
        fact("Q1", "Q12", "Brno"),
        fact("Q2", "Q13", "Zlín", tail=" a [Y]."),
        fact("Q3", "Q14", "Most"),
        fact("Q4", "Q15", "MOST"),
        fact("Q5", "Q16", "Cheb"),
        fact("Q6", "Q17", "ERROR", form="ERROR"),
    )
    export_bear(facts, tmp_path / "bear")
    left_out = read_table((tmp_path / "bear" / "left_out.tsv").read_bytes(), "left_out.tsv")
    right, shared = (
        "another answer is right for its subject as well",
        "another answer shares a name with its object",
    )
    assert set(left_out[["row", "verbalisation", "reason"]].itertuples(index=False, name=None)) == {
        ("6", "", "template: not-found"),
        *((row, v, right) for row in "01" for v in ("template", "gt")),
        ("2", "gt", "its sentence holds [X] or [Y] behind the object"),
        *((row, v, shared) for row in "34" for v in ("template", "gt")),
    }
    record = json.loads((tmp_path / "bear" / "export.json").read_text(encoding="utf-8"))
    assert (record["rows_in"], record["rows_exported"], record["questions"]) == (7, 2, 3)
    assert record["questions_left_out"] == {
        right: 4,
        shared: 4,
        "its sentence holds [X] or [Y] behind the object": 1,
    }
    assert [row["sub_id"] for row in jsonl(tmp_path / "bear" / "cs_template" / "P19.jsonl")] == [
        "Q2",
        "Q5",
    ]


def test_another_form_of_an_object_gets_an_answer_space_of_its_own(tmp_path: Path) -> None:
    rows = [
        fact("Q1", "Q11", "Praha", form="Praze"),
        fact("Q2", "Q11", "Praha", form="Praze"),
        fact("Q3", "Q11", "Praha", form="Prahy"),
    ]
    export_bear(facts_of(*rows, fact("Q4", "Q12", "Brno")), tmp_path / "bear")
    metadata = json.loads(
        (tmp_path / "bear" / "cs_gt" / "metadata_relations.json").read_text(encoding="utf-8")
    )
    assert {code: one["answer_space_labels"] for code, one in metadata.items()} == {
        "P19-1": ["Praze", "Brno"],
        "P19-2": ["Prahy", "Brno"],
    }
    assert [len(jsonl(tmp_path / "bear" / "cs_gt" / f"P19-{n}.jsonl")) for n in (1, 2)] == [3, 1]


def test_subjects_that_pandas_would_turn_into_numbers_stay_within_their_sentence(
    tmp_path: Path,
) -> None:
    rows = [
        fact(
            f"Q{n}",
            f"Q1{n}",
            f"M{n}",
            sub_label=f"00{n}",
            template=f"00{n} v M{n}.",
            template_prompt=f"00{n} v ",
        )
        for n in range(3)
    ]
    facts = facts_of(*rows)
    assert {pattern_of(one) for one in facts.facts if one.verbalisation == "template"} == {
        "[X] v [Y]."
    }
    export_bear(facts, tmp_path / "bear")
    assert [row["sub_label"] for row in jsonl(tmp_path / "bear" / "cs_template" / "P19.jsonl")] == [
        "000 v",
        "001 v",
        "002 v",
    ]


# Hugging Face


def test_every_row_is_carried_in_every_verbalisation(exported: Path, tmp_path: Path) -> None:
    table = pq.read_table(exported / "hf" / "ru" / "test.parquet").to_pylist()
    source = read_benchmark(open_source(STARTER), "ru", "P36").table
    assert len(table) == 2 * 2 * 32
    mine = [
        row for row in table if row["relation"] == "P36" and row["verbalisation"] == "phrasebook"
    ]
    assert [row["sentence"] for row in mine] == source["phrasebook_translation"].tolist()
    assert all(
        row["asked_prompt"] + row["separator"] + row["object"] + row["asked_tail"]
        == row["sentence"]
        for row in mine
    )
    facts = facts_of(
        fact("Q1", "Q11", "Praha"),
        fact("Q2", "Q12", "Brno", form="ERROR"),
        fact("Q3", "Q13", "Zlín"),
        limit=1,
    )
    export_huggingface(facts, tmp_path / "hf")
    rows = pq.read_table(tmp_path / "hf" / "cs" / "test.parquet").to_pylist()
    assert [(row["row"], row["left_out"], len(row["candidates"])) for row in rows if row["verbalisation"] == "gt"] == [
        (0, "", 2), (1, "gt: not-found", 0), (2, "beyond --limit", 0),
    ]  # fmt: skip


def test_the_card_knows_the_licence_of_the_starter_and_of_nothing_else(
    exported: Path, tmp_path: Path
) -> None:
    def header(folder: Path) -> dict:
        return yaml.safe_load((folder / "README.md").read_text(encoding="utf-8").split("---\n")[1])

    assert header(exported / "hf")["license"] == "cc-by-4.0"
    export_huggingface(
        facts_of(fact("Q1", "Q11", "Praha"), fact("Q2", "Q12", "Brno")), tmp_path / "other"
    )
    assert header(tmp_path / "other")["license"] == "unknown"
    export_huggingface(
        facts_of(fact("Q1", "Q11", "Praha"), fact("Q2", "Q12", "Brno")),
        tmp_path / "other",
        licence="cc-by-4.0",
    )
    assert header(tmp_path / "other")["license"] == "cc-by-4.0"
    assert "starter" not in (tmp_path / "other" / "README.md").read_text(encoding="utf-8")
    assert [config["config_name"] for config in header(exported / "hf")["configs"]] == [
        "all",
        "ru",
        "zh",
    ]


def test_datasets_loads_the_folder_offline_with_the_features_of_the_card(
    exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_OFFLINE", True)
    both = datasets.load_dataset(str(exported / "hf"), split="test", cache_dir=str(tmp_path))
    russian = datasets.load_dataset(
        str(exported / "hf"), "ru", split="test", cache_dir=str(tmp_path)
    )
    assert (len(both), len(russian)) == (256, 128)
    written = pq.read_table(exported / "hf" / "ru" / "test.parquet").to_pylist()
    assert russian[0] == written[0] and russian[127] == written[127]
    assert russian.features == datasets.Features.from_arrow_schema(
        pq.read_schema(exported / "hf" / "ru" / "test.parquet")
    )


# Folders and bad input


def test_the_same_files_give_the_same_bytes_and_an_earlier_export_is_replaced(
    exported: Path, tmp_path: Path
) -> None:
    out = tmp_path / "again"
    words = [
        "export",
        "hf",
        "--data",
        str(STARTER),
        "-l",
        "ru,zh",
        "-r",
        "P36,P407",
        "--out",
        str(out),
    ]
    script.main([*words[:4], "-l", "ru", *words[6:]])
    script.main(words)
    before, after = (
        {str(p.relative_to(f)): p.read_bytes() for p in f.rglob("*") if p.is_file()}
        for f in (exported / "hf", out)
    )
    assert before == after and set(before) == {
        "export.json",
        *json.loads(before["export.json"])["holds"],
    }
    assert [path.name for path in tmp_path.iterdir()] == ["again"]


def test_other_peoples_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x", encoding="utf-8")
    with pytest.raises(UserError, match="holds other files"):
        script.main(
            [
                "export",
                "bear",
                "--data",
                str(STARTER),
                "-l",
                "ru",
                "-r",
                "P36",
                "--out",
                str(tmp_path),
            ]
        )
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    facts = facts_of(fact("Q1", "Q11", "Praha"), fact("Q2", "Q12", "Brno"))
    export_harness(facts, tmp_path / "tasks")
    (tmp_path / "tasks" / "__pycache__").mkdir()
    (tmp_path / "tasks" / "__pycache__" / "documents.pyc").write_bytes(b"")
    export_harness(facts, tmp_path / "tasks")
    (tmp_path / "tasks" / "data" / "mine.jsonl").write_text("{}", encoding="utf-8")
    with pytest.raises(UserError, match="holds other files .data/mine.jsonl."):
        export_harness(facts, tmp_path / "tasks")
    assert (tmp_path / "tasks" / "data" / "mine.jsonl").exists()


def test_an_export_that_fails_leaves_the_earlier_one(
    exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = facts_of(fact("Q1", "Q11", "Praha"), fact("Q2", "Q12", "Brno"))
    export_harness(facts, tmp_path / "tasks")
    before = sorted(path.name for path in (tmp_path / "tasks").rglob("*"))

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("fluent_mlama.exporting.harness._write_yaml", fail)
    with pytest.raises(OSError, match="No space"):
        export_harness(facts, tmp_path / "tasks")
    assert sorted(path.name for path in (tmp_path / "tasks").rglob("*")) == before
    assert [path.name for path in tmp_path.iterdir()] == ["tasks"]


def test_labels_with_line_separators_stay_on_their_line(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    rows = pd.DataFrame(
        [fact("Q1", "Q11", "Praha", sub_label="a\u2028b"), fact("Q2", "Q12", "Brno")], dtype="str"
    )
    write_benchmark(make_benchmark("cs", "P19", "test", rows), folder)
    script.main(["export", "bear", "--data", str(folder), "--out", str(tmp_path / "bear")])
    lines = (tmp_path / "bear" / "cs_gt" / "P19.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["subject"] for line in lines] == ["a\u2028b", "subjekt Q2"]


def test_of_the_published_files_every_row_is_carried_or_listed(
    published: Path, tmp_path: Path
) -> None:
    data = published / "fluent_mlama" / "fixed_data.zip"
    script.main(
        [
            "export",
            "lm-eval",
            "--data",
            str(data),
            "-l",
            "zh",
            "-r",
            "P36",
            "--out",
            str(tmp_path / "tasks"),
        ]
    )
    script.main(
        [
            "export",
            "bear",
            "--data",
            str(data),
            "-l",
            "zh",
            "-r",
            "P36",
            "--out",
            str(tmp_path / "bear"),
        ]
    )
    record = json.loads((tmp_path / "tasks" / "export.json").read_text(encoding="utf-8"))
    left_out = read_table((tmp_path / "tasks" / "left_out.tsv").read_bytes(), "left_out.tsv")
    carried = {row["row"] for row in jsonl(tmp_path / "tasks" / "data" / "zh_gt.jsonl")}
    listed = {int(row) for row in left_out["row"]}
    assert listed and carried | listed == set(range(record["rows_in"])) and not carried & listed
    listed_by_bear = read_table((tmp_path / "bear" / "left_out.tsv").read_bytes(), "left_out.tsv")
    instances = [
        row for path in (tmp_path / "bear" / "zh_gt").glob("P36*.jsonl") for row in jsonl(path)
    ]
    not_in_gt = listed_by_bear[listed_by_bear["verbalisation"].isin(["", "gt"])]
    assert sorted(
        [row["row"] for row in instances] + [int(row) for row in not_in_gt["row"]]
    ) == list(range(record["rows_in"]))
