"""The dataset card of a Hugging Face export: its YAML header, and what a reader must know before using the numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml
from tabulate import tabulate

from fluent_mlama.exporting.facts import Facts
from fluent_mlama.exporting.folder import LEFT_OUT, RECORD
from fluent_mlama.languages import language

ALL = "all"
OWN_LICENCE = "cc-by-4.0"
UNKNOWN_LICENCE = "unknown"
SPLIT = "test"
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))

_BODY = """
# Fluent-mLAMA: facts in fluent sentences

Factual knowledge of language models, asked in more than one wording of the same fact: a filled template, as in mLAMA, and whole
sentences in good grammar. The right object competes with the other objects of its relation. The question behind it is that of
Semenov and Sennrich, *Measuring the Effect of Disfluency in Multilingual Knowledge Probing Benchmarks* (EMNLP 2025,
https://arxiv.org/abs/2510.15115).

```python
import datasets
everything = datasets.load_dataset("FOLDER", split="{split}")
one_language = datasets.load_dataset("FOLDER", "{example}", split="{split}")
```

## What is in it

{counts}

One row a fact and verbalisation. `sentence`, `prompt`, `object`, `tail`, `status` and the labels are the cells of the benchmark
file as they are. What a model is asked stands beside them (protocol `corrected` of Fluent-mLAMA's docs/protocols.md):

| column | what |
|---|---|
| `asked_prompt` | the sentence up to the object, trimmed |
| `separator` | what stands between prompt and object: a blank, or nothing (Chinese) |
| `candidates` | `form`, `entity` (obj_uri), `role`, `own` (the form that this verbalisation uses itself); gold's forms first |
| `asked_tail` | the rest of the sentence with its stop |
| `left_out` | why the row is not asked, "" where it is; such rows have no candidates |

Score `separator + form + asked_tail` behind `asked_prompt`, both tokenised as one string; an entity scores what its best form
scores; ties share the mean of their ranks. R@1 is the share of rows whose gold entity (`obj_uri`) has rank 1.

## Licence and sources

{licence}

Facts: Wikidata, in the selection of mLAMA (Kassner, Dufter and Schütze, EACL 2021, https://arxiv.org/abs/2102.00894). The benchmark
files that this export was made from, with their sha256, stand in `{record}`; rows that are not asked are listed in `{left_out}`.

## Limits

{few} of {rows} facts have fewer than 10 distractors; a hit among so few says little. {limits}
"""

_STARTER = (
    "The starter benchmark of Fluent-mLAMA. Facts and labels: CC0 1.0, as in Wikidata. Sentences, templates and forms: CC BY 4.0. "
    "Written for that project and read by a fresh reader a language; no group of native speakers has rated them."
)
_STARTER_LIMITS = (
    "Facts are famous, about Europe and North America more than about the rest of the world, "
    "and about men more than about women."
)
_UNKNOWN = (
    "Unknown: these are not the starter's files. The published Fluent-mLAMA data carries no licence; "
    "ask its authors before you pass it on."
)


def dataset_card(
    facts: Facts,
    counts: Mapping[str, int],
    features: list[dict[str, Any]],
    licence: str | None,
    starter: bool,
) -> str:
    """README.md of the folder. counts: language -> rows of its Parquet file. features: in the Hub's YAML notation.

    licence: as the user says it; None = ours if all files are the starter's, else unknown.
    """
    own, name = (_STARTER, OWN_LICENCE) if starter else (_UNKNOWN, UNKNOWN_LICENCE)
    record = facts.record()
    total = sum(counts.values())
    asked = {lang: sum(fact.lang == lang for fact in facts.facts) for lang in counts}
    table = [(lang, language(lang).name, count, asked[lang]) for lang, count in counts.items()]
    configs = [
        {
            "config_name": ALL,
            "data_files": [{"split": SPLIT, "path": f"*/{SPLIT}.parquet"}],
            "default": True,
        }
    ]
    configs += [
        {"config_name": lang, "data_files": [{"split": SPLIT, "path": f"{lang}/{SPLIT}.parquet"}]}
        for lang in counts
    ]
    header = {
        "pretty_name": "Fluent-mLAMA",
        "license": licence or name,
        "language": list(counts),
        "multilinguality": ["multilingual" if len(counts) > 1 else "monolingual"],
        "task_categories": ["multiple-choice", "question-answering"],
        "tags": ["knowledge-probing", "mlama", "wikidata"],
        "size_categories": [next((name for limit, name in _SIZES if total < limit), "n>1M")],
        "configs": configs,
        "dataset_info": [
            {"config_name": config["config_name"], "features": features} for config in configs
        ],
    }
    body = _BODY.format(
        split=SPLIT,
        example=next(iter(counts)),
        counts=tabulate(
            table, headers=["config", "language", "rows", "of these asked"], tablefmt="github"
        ),
        licence=own if licence is None else f"{licence}, as whoever exported it has said.",
        limits=_STARTER_LIMITS if starter else "",
        record=RECORD,
        left_out=LEFT_OUT,
        few=record["rows_with_few_distractors"],
        rows=record["rows_exported"],
    )
    return (
        f"---\n{yaml.dump(header, Dumper=_Plain, sort_keys=False, allow_unicode=True)}---\n{body}"
    )


class _Plain(yaml.SafeDumper):
    """Writes the features out for each config; the Hub's reader is spared YAML's back references."""

    def ignore_aliases(self, data: Any) -> bool:
        return True
