"""``grammeval.py similarity``: how far each verbalisation is from the template, by chrF and TER
(sacrebleu).

Hypothesis = the verbalisation, reference = the template; sentence level, the mean of each relation,
then the mean over relations. It is no measure of quality: a template's faults are in the reference.
It tells how much was changed, whether by grammar or by words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from sacrebleu.metrics import CHRF, TER
from tabulate import tabulate

from fluent_mlama.console import note, progress
from fluent_mlama.files import format_table, write_text
from fluent_mlama.fluency.judges import one_line, sentences
from fluent_mlama.languages import is_known, language
from fluent_mlama.reporting.latex import Column, Raw, booktabs, number, write_table
from fluent_mlama.reporting.loading import DumpFolder, RankTable, open_dumps
from fluent_mlama.reporting.options import StatsOptions
from fluent_mlama.reporting.plotting import shown
from fluent_mlama.reporting.qe_table import KEY, pearson, retrieval_gains
from fluent_mlama.reporting.selection import Selection, both, caption

NAME = "similarity"
PARTS = ("prompt", "sentence")
MEASURES = tuple(f"{metric}_{part}" for metric in ("chrf", "ter") for part in PARTS)


def similarity(*, options: StatsOptions = StatsOptions()) -> None:
    """chrF and TER of each verbalisation against the template.

    grammeval.py similarity --stats stats/starter/paper
    """
    write_similarity(open_dumps(options.dumps), options)


@dataclass(frozen=True)
class Metrics:
    """chrF and TER for one language; TER cuts unspaced words into characters."""

    chrf: CHRF
    ter: TER

    @property
    def signature(self) -> str:
        """sacrebleu's signatures, known once something was scored."""
        return f"chrF {self.chrf.get_signature()}; TER {self.ter.get_signature()}"


def metrics_for(lang: str) -> Metrics:
    """sacrebleu's defaults; for languages without blanks TER's own treatment of them."""
    # TER counts edits of words; without blanks a whole sentence would be one word.
    cut = is_known(lang) and not language(lang).spaces
    return Metrics(CHRF(), TER(normalized=cut, asian_support=cut))


def measure(table: RankTable, metrics: Metrics) -> pd.DataFrame:
    """One row per verbalisation but the template: means over facts, 0 to 100 (TER may be more)."""
    texts = {
        "sentence": sentences(table),
        "prompt": pd.DataFrame({v: table.prompts(v).map(one_line) for v in table.verbalisations}),
    }
    rows = []
    for v in (v for v in table.verbalisations if v != "template"):
        row = {"lang": table.lang, "verbalisation": v, "relation": table.relation, "n": len(table)}
        for part, of in texts.items():
            pairs = list(zip(of[v], of["template"], strict=True))
            for name, metric in (("chrf", metrics.chrf), ("ter", metrics.ter)):
                total = sum(metric.sentence_score(text, [naive]).score for text, naive in pairs)
                row[f"{name}_{part}"] = total / len(pairs)
        rows.append(row)
    return pd.DataFrame(rows)


def by_relation(selections: Sequence[Selection]) -> tuple[pd.DataFrame, dict[str, str]]:
    """Measures and gains per language, verbalisation and relation; each language's signature."""
    parts, signatures = [], {}
    for selection in selections:
        gained = retrieval_gains(selection)
        for lang in selection.langs:
            metrics = metrics_for(lang)
            total, label = len(selection.relations), f"similarity {lang}"
            for table in progress(selection.of(lang), total=total, unit="relations", label=label):
                parts.append(measure(table, metrics).merge(gained, on=KEY))
            signatures[lang] = metrics.signature
    return pd.concat(parts, ignore_index=True), signatures


def over_relations(frame: pd.DataFrame) -> pd.DataFrame:
    """Means over relations, and Pearson's r of the prompt's chrF with the gain in R@1."""
    groups = frame.groupby(["lang", "verbalisation"], sort=False)
    means = groups[list(MEASURES)].mean()
    means["r"] = pd.Series(
        {key: pearson(group["chrf_prompt"], group["r1_delta"])[0] for key, group in groups}
    )
    return means.reset_index()


def write_similarity(folder: DumpFolder, options: StatsOptions) -> list[Path]:
    """``similarity.tsv`` (by relation) and ``similarity.tex``; returns their paths."""
    selections = both(folder, options)
    frame, signatures = by_relation(selections)
    means = over_relations(frame)
    path = options.tables / f"{NAME}.tsv"
    write_text(path, format_table(frame.astype(object).map(str)))
    note(f"wrote {path}")
    names = [*means.columns[:-1], "r(chrF prompt, R@1 gain)"]
    print(tabulate(means.to_numpy().tolist(), names, floatfmt="z.3f"))
    lines = [
        f"{', '.join(lang for lang, its in signatures.items() if its == one)}: {one}"
        for one in dict.fromkeys(signatures.values())
    ]
    print("\n".join(lines))
    heads = {"chrf": r"chrF $\uparrow$", "ter": r"TER $\downarrow$"}
    columns = [Column("", "l"), Column("", "l")]
    columns += [Column(part, group=Raw(head)) for head in heads.values() for part in PARTS]
    columns.append(Column(Raw("$r$")))
    rows = [
        [
            record["lang"],
            shown(str(record["verbalisation"])),
            *(number(record[name], 2) for name in MEASURES),
            number(record["r"], 3),
        ]
        for record in means.to_dict("records")
    ]
    titles = [caption("Similarity to the template", selection) for selection in selections]
    more = ["r: Pearson over relations of the prompt's chrF with the gain in R@1.", *lines]
    tables = [table for selection in selections for table in selection.tables.values()]
    remarks = [*titles, *more, f"signature: {folder.signature(tables)}"]
    return [write_table(options.tables, NAME, booktabs(columns, rows), remarks), path]
