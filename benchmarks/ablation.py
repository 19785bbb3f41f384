"""What each difference between the protocols does: the table of docs/ablation.md, made by one command.

    python benchmarks/ablation.py published     first 100 rows of P19, P36, P103, P364, P407 in the published ru, cs, hr, es, zh
    python benchmarks/ablation.py starter       every row of every file of fixed_data/starter
    python benchmarks/ablation.py table         docs/ablation.md from what has been scored

Resumable: finished packs are kept in --work, so that a stopped run goes on where it stopped.
"""

from __future__ import annotations

import hashlib
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.ablation_steps import PASSES, STEPS, make_ladder, read_ranks
from fluent_mlama import __version__
from fluent_mlama.console import UserError, note, progress, run_main
from fluent_mlama.files import open_source, write_text
from fluent_mlama.records.benchmark import TEMPLATE, Benchmark, find_benchmarks, read_benchmark
from fluent_mlama.reporting.inference import STATEMENT, Interval, Scale, intervals
from fluent_mlama.reporting.paired import find_design
from fluent_mlama.runner.run import PackStore, fingerprint
from fluent_mlama.scoring.contract import RequestScore, Scorer

ROOT = Path(__file__).resolve().parent.parent
TITLES = {
    "published": "Published data: P19 P36 P103 P364 P407 in ru cs hr es zh, `template` against `gt`",
    "starter": "The starter: nine languages × twelve relations, `template` against `phrasebook`",
}
RELATIONS, LANGUAGES = {"P19", "P36", "P103", "P364", "P407"}, {"ru", "cs", "hr", "es", "zh"}
SOURCE_COLUMNS = ["language", "relation", "row", "sub_uri", "obj_uri"]


def open_benchmarks(kind: str, data: Path) -> list[Benchmark]:
    """The files of one of the two parts of the table."""
    source = open_source(data)
    wanted = [
        entry
        for entry in find_benchmarks(source)
        if kind == "starter" or (entry[1] in RELATIONS and entry[0] in LANGUAGES)
    ]
    return [read_benchmark(source, *entry[:3]) for entry in wanted]


def rank_everything(
    benchmarks: Sequence[Benchmark], scorer: Scorer, work: Path, limit: int | None
) -> pd.DataFrame:
    """Ranks by (row, verbalisation, step), every scoring pass of every file; finished files and packs are not scored again."""
    records = []
    for benchmark in benchmarks:
        ladder = make_ladder(benchmark, limit)
        if ladder is None:
            note(f"{benchmark.name}: no row that every step can rank")
            continue
        for name, scoring in PASSES.items():
            requests = ladder.requests(name)
            plan = scorer.plan(requests, scoring.tokenisation)
            if plan.unscorable:
                raise UserError(
                    f"{benchmark.name}, pass {name}: {next(iter(plan.unscorable.values()))}"
                )
            mark = fingerprint(plan, scorer.describe(scoring.tokenisation), scoring.arithmetic)
            store = PackStore(work / f"{benchmark.name.removesuffix('.tsv')}.{name}.packs", mark)
            finished = store.finished()
            for number in progress(
                range(len(plan.packs)),
                total=len(plan.packs),
                unit="packs",
                label=f"{benchmark.name} {name}",
            ):
                if number not in finished:
                    finished[number] = scorer.score_pack(plan, number, scoring.arithmetic)
                    store.save(number, finished[number])
            answers: dict[int, RequestScore] = {
                request: score for pack in finished.values() for request, score in pack.items()
            }
            records += read_ranks(ladder, name, requests, answers)
        note(f"{benchmark.name}: {len(ladder.rows)} rows in all steps")
    return pd.DataFrame(records)


def make_table(ranks: pd.DataFrame) -> str:
    """The steps as lines: R@1, the difference that fluency makes, and what the step itself changed, with 95 % intervals."""
    fluent = next(v for v in ranks["verbalisation"].unique() if v != TEMPLATE)
    hits = ranks.assign(hit=(ranks["rank"] <= 1).astype(float))
    wide = {
        value: hits.pivot(index=SOURCE_COLUMNS, columns=["step", "verbalisation"], values=value)
        for value in ("hit", "rank")
    }
    design = find_design(wide["hit"].index.to_frame(index=False))
    steps = [step for step in STEPS if step in set(ranks["step"])]
    columns = []
    for number, step in enumerate(steps):
        hit, rank, before = (
            wide["hit"][step],
            wide["rank"][step],
            wide["hit"][steps[max(number - 1, 0)]],
        )
        columns += [hit[TEMPLATE], hit[fluent], hit[fluent] - hit[TEMPLATE]]
        columns += [
            hit[TEMPLATE] - before[TEMPLATE],
            hit[fluent] - before[fluent],
            rank[TEMPLATE],
            rank[fluent],
        ]
    values = np.column_stack([column.to_numpy(dtype=np.float64) for column in columns])
    result = intervals(
        design, values, [Scale.DIFFERENCE] * values.shape[1]
    )  # only differences have their ends printed
    lines = [
        f"| step | R@1 template | R@1 {fluent} | {fluent} − template | this step, template | this step, {fluent} | mean rank | ",
        "|---|---|---|---|---|---|---|",
    ]
    for number, step in enumerate(steps):
        at = 7 * number
        changes = [_signed(result, at + 3), _signed(result, at + 4)] if number else ["", ""]
        recalls = [f"{value:.3f}" for value in result.estimate[at : at + 2]]
        ends = f"{result.estimate[at + 5]:.2f} → {result.estimate[at + 6]:.2f}"
        lines.append(f"| {' | '.join([step, *recalls, _signed(result, at + 2), *changes, ends])} |")
    rows = ranks.groupby(["language", "relation"])["row"].nunique()
    lines.append(
        f"\n{len(wide['hit'])} facts: up to {rows.max()} rows that every step can rank in each of {len(rows)} files; mean over "
        f"languages of the mean over relations. {STATEMENT.partition(' p: ')[0]} "
        "*This step* is the change from the line above; mean rank: template → the other."
    )
    return "\n".join(line.rstrip() for line in lines)


def _signed(result: Interval, column: int) -> str:
    if result.error[column] == 0:
        return "0 (in no fact)"
    if np.isnan(result.low[column]):
        return f"{result.estimate[column]:+.3f} (too few objects)"
    return f"{result.estimate[column]:+.3f} [{result.low[column]:+.3f}, {result.high[column]:+.3f}]"


def write_page(work: Path, page: Path) -> None:
    """docs/ablation.md from the ranks that lie in ``work``."""
    parts = [
        "# What each difference between the protocols does\n",
        "Made by `python benchmarks/ablation.py`; do not edit. The steps and why they are taken: [protocols](protocols.md).\n",
        "\n".join(f"- **{step}**: {text}" for step, text in STEPS.items()) + "\n",
    ]
    for kind, title in TITLES.items():
        path = work / f"{kind}.tsv"
        if path.exists():
            signature = (work / f"{kind}.signature").read_text(encoding="utf-8").strip()
            ranks = pd.read_csv(path, sep="\t")
            parts.append(f"## {title}\n\n{make_table(ranks)}\n\n`{signature}`\n")
    if len(parts) == 3:
        raise UserError(
            f"nothing is scored yet in {work}: run `benchmarks/ablation.py published` or `starter` first"
        )
    write_text(page, "\n".join(parts))
    print(f"wrote {page}")


def _signature(scorer: Scorer, benchmarks: Sequence[Benchmark], limit: int | None) -> str:
    d = scorer.describe()
    data = hashlib.sha256(
        "".join(sorted(benchmark.sha256 for benchmark in benchmarks)).encode()
    ).hexdigest()[:8]
    parts = [
        f"{d.model}@{d.revision or 'local'}",
        d.dtype,
        "arith:by-step",
        d.path,
        "tok:by-step",
        f"bos:{d.bos}",
        "paper-to-corrected",
    ]
    return "|".join(
        [
            *parts,
            "pool:50",
            "ties:by-step",
            f"limit:{limit or 'none'}",
            f"data:{data}",
            f"v{__version__}",
        ]
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("part", choices=("published", "starter", "table"))
    parser.add_argument(
        "--published",
        type=Path,
        default=Path("../shared/data/fluent_mlama/fixed_data.zip"),
        metavar="FOLDER|ZIP",
    )
    parser.add_argument(
        "--starter", type=Path, default=Path("fixed_data/starter"), metavar="FOLDER"
    )
    parser.add_argument(
        "--limit",
        type=int,
        metavar="N",
        help="rows of each file (default: 100 of the published, all of the starter's)",
    )
    parser.add_argument("--model", default="smollm2")
    parser.add_argument(
        "--work",
        type=Path,
        default=Path("benchmarks/ablation.work"),
        metavar="FOLDER",
        help="packs and ranks",
    )
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "ablation.md")
    asked = parser.parse_args(arguments)
    if asked.part != "table":
        from fluent_mlama.scoring.causal import load_scorer

        limit = asked.limit or (100 if asked.part == "published" else None)
        benchmarks = open_benchmarks(
            asked.part, asked.published if asked.part == "published" else asked.starter
        )
        scorer = load_scorer(asked.model, device="cpu")
        ranks = rank_everything(benchmarks, scorer, asked.work / "packs", limit)
        asked.work.mkdir(parents=True, exist_ok=True)
        write_text(
            asked.work / f"{asked.part}.tsv",
            ranks.to_csv(sep="\t", index=False, lineterminator="\n"),
        )
        write_text(
            asked.work / f"{asked.part}.signature", _signature(scorer, benchmarks, limit) + "\n"
        )
    write_page(asked.work, asked.page)
    return 0


if __name__ == "__main__":
    run_main(main)
