"""Rank dumps of invented facts, with labels that try to break a page: markup, quotes, other scripts, characters beyond 16 bits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from fluent_mlama.records.results import COLUMNS, Dump, scores_path, write_dump, write_scores

VERBALISATIONS = ("template", "gt", "chatgpt")
LABELS = (
    "<script>window.broken = 1</script>",
    "</script><img src=x onerror='window.broken = 1'>",
    '"Quoted" & co.',
    "北京市",
    "דוד המלך",
    "Škoda 🚗 Superb",
    "back\\slash",
    "Nový Bor",
)


def synthetic_dump(
    lang: str,
    relation: str,
    facts: int,
    seed: int = 0,
    verbalisations: tuple[str, ...] = VERBALISATIONS,
) -> Dump:
    """A paper dump; the object of fact i is ``object i % 97`` or one of LABELS, later verbalisations rank a little better."""
    generator = np.random.default_rng(seed)
    base = np.clip(np.round(np.exp(generator.normal(0.3, 1.6, size=facts))), 1, 51)
    number = np.arange(facts)
    objects = [LABELS[i % 97] if i % 97 < len(LABELS) else f"object {i % 97}" for i in number]
    subjects = [
        f"{LABELS[i // 50 % len(LABELS)]} {relation}"
        if i % 50 == 0
        else f"subject {i} of {relation}"
        for i in number
    ]
    frame = pd.DataFrame(
        {"sub_uri": [f"Q{i}" for i in number], "en_sub_label": subjects, "sub_label": subjects}
    )
    frame = frame.assign(
        obj_uri=[f"Q{900_000 + i % 97}" for i in number], en_obj_label=objects, obj_label=objects
    )
    sentences = [
        f"{subject} stands in some relation to {form}."
        for subject, form in zip(subjects, objects, strict=True)
    ]
    frame["en_template"] = frame["template"] = sentences
    frame["template_prompt"] = [f"{subject} stands in some relation to " for subject in subjects]
    frame["aliases"] = [[form] for form in objects]
    for place, v in enumerate(verbalisations):
        ranks = np.clip(base + generator.integers(-2 - place, 3, size=facts), 1, 51).astype(int)
        if v != "template":
            frame[f"{v}_translation"], frame[f"{v}_prompt"], frame[f"{v}_infl_object"] = (
                sentences,
                frame["template_prompt"],
                objects,
            )
        frame[f"{v}_true_ranks"] = [
            {form: int(rank)} for form, rank in zip(objects, ranks, strict=True)
        ]
        frame[f"{v}_top1_correct"], frame[f"{v}_top3_correct"] = (
            (ranks <= 1).astype(int),
            (ranks <= 3).astype(int),
        )
        frame[f"{v}_prompt_prob"] = np.round(generator.normal(-50, 8, size=facts), 2)
    return Dump(lang, relation, verbalisations, "paper", frame)


def write_scores_beside(dump: Dump, folder: Path, distractors: int = 8) -> None:
    """A scores file for the dump: the correct form and some distractors, scored so that the order agrees with nothing in particular."""
    generator = np.random.default_rng(1)
    rows = []
    for number, subject, answer, label in dump.table[
        ["sub_uri", "obj_uri", "obj_label"]
    ].itertuples():
        for v in dump.verbalisations:
            for place in range(distractors + 1):
                role, candidate = (
                    ("correct", label) if place == 0 else ("distractor", f"distractor {place}")
                )
                logprob = float(-generator.integers(10, 400) / 10)
                rows.append(
                    (
                        number,
                        subject,
                        answer,
                        v,
                        candidate,
                        role,
                        "",
                        role == "correct",
                        5,
                        -9.0,
                        [1, 2],
                        [logprob / 2] * 2,
                        0,
                        logprob,
                    )
                )
    write_scores(scores_path(folder / dump.name), pd.DataFrame(rows, columns=list(COLUMNS)))


def write_folder(
    folder: Path, facts: int, languages: tuple[str, ...], relations: tuple[str, ...]
) -> None:
    """Dumps of about ``facts`` facts in all, spread evenly over languages × relations."""
    each = facts // (len(languages) * len(relations))
    for seed, (lang, relation) in enumerate(
        (lang, relation) for lang in languages for relation in relations
    ):
        write_dump(synthetic_dump(lang, relation, each, seed), folder)
