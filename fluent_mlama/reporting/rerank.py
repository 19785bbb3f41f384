"""``stats.py rerank``: new rank dumps from stored scores, no model loaded.

    python stats.py rerank --scores stats/starter/corrected --linking slln:0.5 --ties worst --k 1,3,5 --out stats/slln

With a run's own settings (the defaults) its dumps come out byte for byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
from cyclopts import Parameter, Token
from tabulate import tabulate

from fluent_mlama.console import UserError, note, progress
from fluent_mlama.files import check_writable, open_source, write_text
from fluent_mlama.linking import (
    NAMES,
    Linking,
    Unigrams,
    count_unigrams,
    parse_linking,
    read_unigrams,
)
from fluent_mlama.options import Cutoffs, File, Langs, Relations
from fluent_mlama.ranking.outputs import TIE_NAMES, TIES, dump_of_scores
from fluent_mlama.ranking.relinking import RELINKED, columns_for, for_protocol, relink, without
from fluent_mlama.ranking.settings import Settings
from fluent_mlama.ranking.task import Ties
from fluent_mlama.records.results import (
    NEUTRAL,
    NOT_AS_WRITTEN,
    Dump,
    ProtocolName,
    RunRecord,
    dump_columns,
    file_sha256,
    find_dumps,
    format_dump,
    read_dump,
    read_run,
    read_scores,
    run_path,
    scores_path,
    write_run,
)

COUNTS = "counts"
LOGPROB = parse_linking("lp")


def _linking(_: Any, tokens: Sequence[Token]) -> Linking:
    return parse_linking(tokens[-1].value)


Scores = Annotated[File, Parameter(help="dumps with their .scores.parquet and .run.json")]
Function = Annotated[Linking, Parameter(converter=_linking, n_tokens=1, help=", ".join(NAMES))]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RerankOptions:
    """How to rank again, from which scores, and where to."""

    scores: Scores
    linking: Function = LOGPROB
    unigrams: str | None = None
    """token frequencies for slor, normlp, morcela: a file, or counts (of the candidates here)"""
    protocol: ProtocolName | None = None
    """rank by this protocol's rule (default: the run's own)"""
    ties: Ties | None = None
    """rank that a tie gives to the correct side (default: the protocol's)"""
    k: Cutoffs = (1, 3)
    out: File
    """where the new dumps go"""
    langs: Langs | None = None
    relations: Relations | None = None


def rerank(*, options: RerankOptions) -> None:
    """Rank again from the scores files, no model loaded: other linking functions, k or ties.

        stats.py rerank --scores stats/starter/corrected --linking slln:0.5 --ties worst --k 1,3,5 --out stats/slln

    With a run's own settings (the defaults) its dumps come out byte for byte.
    """
    source = open_source(options.scores)
    if not options.scores.is_dir():
        raise UserError(
            f"--scores {options.scores} is no folder: scores files cannot be read from a zip, unpack it"
        )
    found = [
        entry
        for entry in find_dumps(source)
        if (options.langs is None or entry[0] in options.langs)
        and (options.relations is None or entry[1] in options.relations)
    ]
    if not found:
        raise UserError(
            f"no rank dump in {options.scores} (of these --langs and --relations): rank with script.py first"
        )
    if options.out.resolve() == options.scores.resolve():
        raise UserError(
            f"--out {options.out} is the folder that the scores come from: name another one"
        )
    paths = [options.scores / name for _, _, name in found]
    records = [read_run(run_path(path)) for path in paths]
    for path, record in zip(paths, records, strict=True):
        _check_run(record, options.scores)
        if record.tokenisation == "masked" and options.linking.name != LOGPROB.name:
            raise UserError(
                f"{path} holds a masked model's means over masks, for which only --linking lp is defined"
            )
        _check_scores(scores_path(path), record)
    unigrams = _unigrams(options, paths, records)
    new_records = [_new_record(record, options, unigrams) for record in records]
    check_writable(options.out, "--out")
    _check_out(options.out, new_records)
    made = [
        _rerank(path, record, new, options, unigrams)
        for path, record, new in progress(
            zip(paths, records, new_records, strict=True),
            total=len(paths),
            unit="dumps",
            label="ranking",
        )
    ]
    print(_table(made, options.k))
    print(f"{len(made)} dumps in {options.out}; signature of the first: {new_records[0].signature}")


def _rerank(
    path: Path,
    record: RunRecord,
    new: RunRecord,
    options: RerankOptions,
    unigrams: Unigrams | None,
) -> Dump:
    dump = read_dump(open_source(path.parent), path.name)
    results = dump_columns(dump.protocol, dump.verbalisations)
    facts = dump.table[without(list(dump.table.columns), results)]
    scores = _read(scores_path(path), options.linking)
    if record.dump_sha256 not in {"", file_sha256(path)}:
        note(f"{path} {NOT_AS_WRITTEN}")
    protocol: ProtocolName = options.protocol or dump.protocol
    relinked = relink(scores, options.linking, facts, dump.lang, dump.protocol, unigrams)
    scores = for_protocol(scores.assign(**{RELINKED: relinked}), dump.protocol, protocol)
    narrow: Dump | None = None
    wide_folder = Settings(out=options.out, protocol=protocol).wide
    for folder in (options.out, wide_folder):
        if folder is None:
            continue
        made = dump_of_scores(
            facts, scores, dump.lang, dump.relation, dump.verbalisations, protocol,
            wide=folder != options.out, logprob=RELINKED, ties=_ties(options, protocol), top=options.k,
        )  # fmt: skip
        write_text(folder / made.name, format_dump(made))
        ranks = "wide" if folder != options.out else "narrow"
        described = replace(
            new,
            dump_sha256=file_sha256(folder / made.name),
            extras=dict(new.extras) | {"ranks": ranks},
        )
        write_run(run_path(folder / made.name), described)
        narrow = narrow or made
    assert narrow is not None
    return narrow


def _check_run(record: RunRecord, folder: Path) -> None:
    if record.protocol not in {"paper", "corrected"}:
        raise UserError(
            f"{folder} was itself ranked again ({record.protocol}): give the folder of the run, which holds the scores"
        )


def _check_scores(path: Path, record: RunRecord) -> None:
    """Before the first dump is written: the scores are there, readable, and those that the run record tells of."""
    if path.is_file() and record.scores_sha256 not in {"", file_sha256(path)}:
        raise UserError(f"{path} {NOT_AS_WRITTEN}; rank again with script.py, which makes it again")
    read_scores(path, ["row"])


def _read(path: Path, linking: Linking) -> pd.DataFrame:
    try:
        return read_scores(path, columns_for(linking))
    except UserError as error:
        if linking.needs == "prior" and NEUTRAL.name in str(error):
            raise UserError(
                f"{path} has no scores behind a neutral prompt: rank with script.py --neutral-prompt TEXT for pmi"
            ) from None
        raise


def _new_record(record: RunRecord, options: RerankOptions, unigrams: Unigrams | None) -> RunRecord:
    """The record of the new dump: the run's own where nothing differs; else what differs stands in the signature."""
    own: ProtocolName = "corrected" if record.protocol == "corrected" else "paper"
    protocol: ProtocolName = options.protocol or own
    ties = _ties(options, protocol)
    if protocol == "paper" and ties == "mid":
        raise UserError(
            "--ties mid: dumps of protocol paper hold whole ranks; choose gold or worst, or --protocol corrected"
        )
    linking = options.linking.name + (f"({unigrams.source})" if unigrams is not None else "")
    name = protocol if protocol == own else f"{own}-scores/{protocol}-ranks"
    changed = (
        {}
        if linking == "lp" and protocol == own and ties == TIES[own]
        else {"linking": linking, "ties": ties, "ranked_by": protocol}
    )
    return replace(
        record,
        protocol=name if linking == "lp" else f"{name}+{linking}",
        ties=TIE_NAMES[ties],
        extras=dict(record.extras) | ({"reranked": changed} if changed else {}),
    )


def _ties(options: RerankOptions, protocol: ProtocolName) -> Ties:
    ties: Ties = options.ties or TIES[protocol]
    return ties


_MAKING = (
    "model",
    "revision",
    "dtype",
    "protocol",
    "rules",
    "pool_size",
    "sampling",
    "ties",
    "arithmetic",
    "tokenisation",
    "bos",
)


def _check_out(out: Path, new_records: Sequence[RunRecord]) -> None:
    """Refuse a folder with dumps of another making."""
    if not out.is_dir():
        return
    new = new_records[0]
    for _, _, name in find_dumps(open_source(out)):
        there = read_run(run_path(out / name)) if run_path(out / name).exists() else None
        same = there is not None and all(
            getattr(there, field) == getattr(new, field) for field in _MAKING
        )
        if not same or scores_path(out / name).exists():
            raise UserError(
                f"--out {out} holds dumps of another making ({name}): name an empty folder"
            )


def _unigrams(
    options: RerankOptions, paths: Sequence[Path], records: Sequence[RunRecord]
) -> Unigrams | None:
    if options.linking.needs != "unigram":
        return None
    if options.unigrams is None:
        raise UserError(
            f"--linking {options.linking.name} needs token frequencies: give --unigrams FILE, or --unigrams {COUNTS}"
        )
    if options.unigrams != COUNTS:
        table = read_unigrams(Path(options.unigrams))
        for tokenizer, model in {record.tokenizer: record.model for record in records}.items():
            table.check_made_for(tokenizer, model)
        return table
    if len({record.tokenizer for record in records} - {""}) > 1:
        raise UserError(
            f"{options.scores} holds scores of models with different tokenizers, whose counts cannot be added; rerank each alone"
        )
    candidates = (
        ids for path in paths for ids in read_scores(scores_path(path), ["token_ids"])["token_ids"]
    )
    return count_unigrams(chain.from_iterable(candidates), "counts of the candidates")


def _table(dumps: Sequence[Dump], ks: Sequence[int]) -> str:
    """Per language and verbalisation, means over relations: R@k and mean rank."""
    groups: dict[tuple[str, str], list[list[float]]] = {}
    facts: dict[tuple[str, str], int] = {}
    for dump in dumps:
        for v in dump.verbalisations:
            if dump.protocol == "paper":
                ranks = dump.table[f"{v}_true_ranks"].map(lambda cell: min(cell.values()))
            else:
                ranks = dump.table[f"{v}_rank"]
            recalls = [float(dump.table[f"{v}_top{k}_correct"].mean()) for k in ks]
            groups.setdefault((dump.lang, v), []).append([*recalls, float(ranks.mean())])
            facts[dump.lang, v] = facts.get((dump.lang, v), 0) + len(dump.table)
    rows = []
    for (lang, v), values in groups.items():
        means = [sum(column) / len(column) for column in zip(*values, strict=True)]
        rows.append(
            [
                lang,
                v,
                len(values),
                facts[lang, v],
                *(f"{mean:z.3f}" for mean in means[:-1]),
                f"{means[-1]:z.2f}",
            ]
        )
    heads = ["lang", "verbalisation", "relations", "facts", *(f"R@{k}" for k in ks), "mean rank"]
    return tabulate(
        rows,
        headers=heads,
        disable_numparse=True,
        colalign=("left", "left", *["right"] * (len(heads) - 2)),
    )
