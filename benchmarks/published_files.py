"""Every published benchmark file, two rows each, ranked with the embedded model.

    python benchmarks/published_files.py [--data ../shared/data/fluent_mlama] [--limit 2]

No file may fail (the five with empty ChatGPT prompts included); the dumps must have the published columns in the published
order, and their rows must be those that the published dump begins with. Exit status 1 where anything differs.
"""

from __future__ import annotations

import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fluent_mlama.console import progress, run_main
from fluent_mlama.files import open_source
from fluent_mlama.processor import Processor
from fluent_mlama.ranking.settings import Settings
from fluent_mlama.records.benchmark import find_benchmarks, read_benchmark
from fluent_mlama.records.results import Dump, dump_columns, read_dump, read_run, with_row_numbers
from fluent_mlama.scoring.causal import load_scorer

IRREGULAR = {
    "cs_P19": "index named Column1, template columns before aliases",
    "ru_P19": "no index, chatgpt columns first",
}
DROPPED_EMPTY_OBJECTS = {"cs_P159", "hr_P36", "ru_P463"}
WITHOUT_SOME_CHATGPT_PROMPTS = {"cs_P127", "cs_P740", "hr_P1376", "ru_P127", "uk_P127"}


def differences(ours: Dump, published: Dump, limit: int) -> list[str]:
    """What sets our dump apart from the published one: columns, their order, the rows it begins with, the facts there."""
    found = []
    key = f"{ours.lang}_{ours.relation}"
    wanted = list(published.table.columns)
    if key in IRREGULAR:
        facts = [
            column
            for column in wanted
            if column not in dump_columns("paper", published.verbalisations)
        ]
        wanted = [*facts, *dump_columns("paper", published.verbalisations)]
    if list(ours.table.columns) != wanted:
        found.append("columns")
    if ours.table.index.tolist() != published.table.index.tolist()[:limit]:
        found.append(f"rows {ours.table.index.tolist()}")
    shared = [
        column
        for column in ours.table.columns
        if not column.endswith(("_true_ranks", "_correct", "_prompt_prob"))
    ]
    if not ours.table[shared].equals(published.table.loc[ours.table.index, shared]):
        found.append("facts")
    for v in ours.verbalisations:
        if [set(ranks) for ranks in ours.table[f"{v}_true_ranks"]] != [
            set(r) for r in published.table[f"{v}_true_ranks"].iloc[:limit]
        ]:
            found.append(f"correct forms of {v}")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--data", type=Path, default=Path("../shared/data/fluent_mlama"), metavar="FOLDER"
    )
    parser.add_argument("--limit", type=int, default=2, metavar="N")
    asked = parser.parse_args(arguments)
    source, dumps = (
        open_source(asked.data / "fixed_data.zip"),
        open_source(asked.data / "stats.zip"),
    )
    files = find_benchmarks(source)
    scorer = load_scorer("smollm2")
    started, facts, prompts, differing, holes = time.perf_counter(), 0, 0, {}, set()
    with tempfile.TemporaryDirectory() as folder:
        for lang, relation, spec, name in progress(
            files, total=len(files), unit="files", label="published files"
        ):
            benchmark = read_benchmark(source, lang, relation, spec)
            settings = Settings(
                model="smollm2",
                limit=asked.limit,
                out=Path(folder) / "stats",
                drop_empty_objects=f"{lang}_{relation}" in DROPPED_EMPTY_OBJECTS,
            )
            processor = Processor(benchmark, settings)
            processor.rank(scorer)
            ours = read_dump(open_source(settings.out), processor.outputs.dump.name)
            published = with_row_numbers(read_dump(dumps, processor.outputs.dump.name), benchmark)
            facts += read_run(processor.outputs.run).rows_scored
            prompts += len(ours.table) * len(ours.verbalisations)
            if found := differences(ours, published, asked.limit):
                differing[name] = found
            if (
                "chatgpt_prompt" in benchmark.table.columns
                and (benchmark.table["chatgpt_prompt"] == "").any()
            ):
                holes.add(f"{lang}_{relation}")
    seconds = time.perf_counter() - started
    print(
        f"{len(files)} files, {facts} facts, {prompts} prompts ranked in {seconds:.0f} s, none failed"
    )
    print(f"files with empty ChatGPT prompts among them: {', '.join(sorted(holes))}")
    for name, found in differing.items():
        print(f"differs from the published dump: {name}: {', '.join(found)}")
    return int(bool(differing) or holes != WITHOUT_SOME_CHATGPT_PROMPTS)


if __name__ == "__main__":
    run_main(main)
