"""The good desk that every case begins with: a few facts of the starter, ranked by a stand-in scorer, and the probes' inputs.

fixed_data/  chatgpt_prompts/  mlama/         from the starter, cut short
stats/paper  stats_wide/paper  stats/corrected   ranked
lama/  answers/  pairs/  paradigms/ (with vocabulary.tsv, phrases.json)  instruments/  model/  translations.tsv
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from fluent_mlama.cpopqa.__main__ import main as cpopqa
from fluent_mlama.files import open_source
from fluent_mlama.mlama.query import Options, query
from fluent_mlama.processor import Processor
from fluent_mlama.ranking.settings import Settings
from fluent_mlama.reader import MLama
from fluent_mlama.records.benchmark import read_benchmark
from tests.stand_in import StandInScorer

ROOT = Path(__file__).resolve().parents[2]
PAIRS = (("ru", "P19"), ("ru", "P36"), ("cs", "P19"), ("cs", "P36"))
FACTS = 8
LLAMA = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 8, "intermediate_size": 8, "num_attention_heads": 1,
    "num_hidden_layers": 1, "vocab_size": 32, "max_position_embeddings": 64, "dtype": "float32",
}  # fmt: skip
"""A model folder of which only the weights and the tokenizer are missing."""


def make_desk(desk: Path) -> None:
    """Write the good desk into a folder."""
    for lang, relation in PAIRS:
        _head(
            ROOT / f"fixed_data/starter/{lang}_{relation}_phrasebook.tsv",
            desk / f"fixed_data/{lang}_{relation}_phrasebook.tsv",
            1,
        )
        shutil.copytree(
            ROOT / f"fluent_mlama/data/starter/{lang}",
            desk / f"mlama/{lang}",
            dirs_exist_ok=True,
            ignore=_only("P19", "P36", "templates"),
        )
    shutil.copytree(
        ROOT / "fluent_mlama/data/starter/en",
        desk / "mlama/en",
        ignore=_only("P19", "P36", "templates"),
    )
    for path in (desk / "mlama").glob("*/P*.jsonl"):
        _head(path, path, 0)
    _rank(desk, "paper")
    _rank(desk, "corrected")
    _probes(desk)
    (desk / "model").mkdir()
    (desk / "model/config.json").write_text(json.dumps(LLAMA), encoding="utf-8")
    english = [
        row.split("\t")[6]
        for row in (desk / "fixed_data/ru_P36_phrasebook.tsv")
        .read_text(encoding="utf-8")
        .splitlines()[1:]
    ]
    (desk / "translations.tsv").write_text(
        "".join(f"{sentence}\tПеревод {sentence}\n" for sentence in english), encoding="utf-8"
    )


def _rank(desk: Path, protocol: str) -> None:
    settings = Settings(model="stand-in", protocol=protocol, out=desk / "stats" / protocol)
    source = open_source(desk / "fixed_data")
    for lang, relation in PAIRS:
        Processor(read_benchmark(source, lang, relation), settings).rank(StandInScorer("stand-in"))


def _probes(desk: Path) -> None:
    query(
        MLama(desk / "mlama"),
        Options("stand-in", "causal", desk / "answers"),
        ["en", "ru"],
        ["P36"],
        StandInScorer("stand-in"),
    )
    (desk / "lama/TREx").mkdir(parents=True)
    (desk / "lama/relations.jsonl").write_text(
        '{"relation": "P36", "template": "The capital of [X] is [Y] ."}\n', encoding="utf-8"
    )
    shutil.copy(desk / "mlama/en/P36.jsonl", desk / "lama/TREx/P36.jsonl")
    content = ROOT / "fluent_mlama/zhoblimp/content/zh"
    (desk / "paradigms").mkdir()
    (desk / "pairs").mkdir()
    for name in ("ba_after_negation", "bei_before_verb"):
        shutil.copy(content / f"paradigms/{name}.json", desk / "paradigms")
        _head(content / f"pairs/{name}.jsonl", desk / f"pairs/{name}.jsonl", 0)
    for name in ("vocabulary.tsv", "phrases.json"):
        shutil.copy(content / name, desk)
    shutil.copy(ROOT / "fluent_mlama/cpopqa/examples/instruments.csv", desk / "instruments.csv")
    cpopqa(["build", "--concepts", str(desk / "instruments.csv"), "--noun", "instruments", "--questions", "3", "--rounds", "1", "--n", "2",
            "--out", str(desk / "instruments")])  # fmt: skip


def _head(path: Path, to: Path, headers: int) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    kept = path.read_text(encoding="utf-8").split("\n")[: FACTS + headers]
    to.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")


def _only(*stems: str) -> Callable[[str, list[str]], list[str]]:
    return lambda _, names: [name for name in names if name.partition(".")[0] not in stems]
