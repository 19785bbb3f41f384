"""Small rank dumps for tests: made-up facts, ranks from a seeded generator, written through the project's own writer."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from fluent_mlama.records.results import Dump, dump_columns, write_dump

CITIES = (
    "Avel",
    "Brun",
    "Corda",
    "Dall",
    "Enth",
    "Firl",
    "Goss",
    "Harn",
    "Ilva",
    "Jost",
    "Krem",
    "Lund",
    "Mirn",
    "Norr",
    "Ost",
)


def small_dump(
    lang: str = "ru",
    relation: str = "P19",
    verbalisations: Sequence[str] = ("template", "gt"),
    facts: int = 12,
    protocol: str = "paper",
    seed: int = 0,
) -> Dump:
    """``facts`` made-up facts; the inflected object is the label with an "e" behind it."""
    draw = random.Random(f"{seed}{lang}{relation}")
    rows = []
    for number in range(facts):
        city, person = CITIES[number % len(CITIES)], f"Person {number}"
        row: dict[str, object] = {
            "sub_uri": f"Q{number}",
            "en_sub_label": person,
            "sub_label": person,
            "obj_uri": f"Q{1000 + number % len(CITIES)}",
            "en_obj_label": city,
            "obj_label": city,
            "en_template": f"{person} was born in {city} .",
            "template": f"{person} born in {city}.",
            "template_prompt": f"{person} born in ",
        }
        for v in verbalisations[1:]:
            row |= {
                f"{v}_translation": f"{person} was born in {city}e.",
                f"{v}_prompt": f"{person} was born in ",
                f"{v}_infl_object": f"{city}e",
            }
        row["aliases"] = [f"{city} City"]
        for v in verbalisations:
            row |= _paper_cells(v, city, draw) if protocol == "paper" else _corrected_cells(v, draw)
        if protocol == "corrected":
            row["n_distractors"] = 14
        rows.append(row)
    frame = pd.DataFrame(rows)
    kind = "paper" if protocol == "paper" else "corrected"
    columns = [c for c in frame if c not in dump_columns(kind, verbalisations)] + dump_columns(
        kind, verbalisations
    )
    return Dump(lang, relation, tuple(verbalisations), kind, frame[columns])


def _paper_cells(v: str, city: str, draw: random.Random) -> dict[str, object]:
    label, form = draw.sample(range(1, 15), 2)
    best = min(label, form)
    ranks = dict(sorted({city: label, f"{city}e": form}.items(), key=lambda item: item[1]))
    return {
        f"{v}_true_ranks": ranks,
        f"{v}_top1_correct": int(best == 1),
        f"{v}_prompt_prob": -draw.randrange(80, 400) / 8,
        f"{v}_top3_correct": int(best <= 3),
    }


def _corrected_cells(v: str, draw: random.Random) -> dict[str, object]:
    rank = draw.randrange(1, 15)
    return {
        f"{v}_rank": float(rank),
        f"{v}_rank_min": rank,
        f"{v}_rank_max": rank,
        f"{v}_all_forms_rank": float(rank),
        f"{v}_logprob": -draw.random() * 20,
        f"{v}_top1_correct": int(rank == 1),
        f"{v}_top3_correct": int(rank <= 3),
        f"{v}_prompt_prob": -draw.random() * 50,
    }


def write_small_dumps(
    folder: Path,
    langs: Sequence[str] = ("ru", "cs"),
    relations: Sequence[str] = ("P19", "P36"),
    **options: object,
) -> Path:
    """A folder of small dumps."""
    folder.mkdir(parents=True, exist_ok=True)
    for lang in langs:
        for relation in relations:
            write_dump(small_dump(lang, relation, **options), folder)  # type: ignore[arg-type]
    return folder
