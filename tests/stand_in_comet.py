"""Answers as ``comet-score`` 2.2.7 does, without a model: same options, same JSON, same last words when it fails.

FLUENT_COMET_MODE: ``ok``; ``crash`` (out of memory), ``gated``, ``unknown-model``, ``half`` (JSON cut off), ``short`` (too few
scores), ``silent`` (ends well, writes nothing), ``crash-after:N`` (fails in call N + 1). Every call is noted in FLUENT_COMET_LOG.
"""

import argparse
import json
import os
import sys
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("-s", "--sources", required=True)
parser.add_argument("-t", "--translations", nargs="+", required=True)
parser.add_argument("--model", default="Unbabel/wmt22-comet-da")
parser.add_argument("--batch_size", type=int, default=16)
parser.add_argument("--gpus", type=int, default=1)
parser.add_argument("--to_json", default="")
parser.add_argument("--quiet", action="store_true")
parser.add_argument("--only_system", action="store_true")
options = parser.parse_args()

log = Path(os.environ["FLUENT_COMET_LOG"])
with log.open("a", encoding="utf-8") as stream:
    stream.write(json.dumps(vars(options)) + "\n")
calls = len(log.read_text(encoding="utf-8").splitlines())

mode = os.environ.get("FLUENT_COMET_MODE", "ok")
if mode.startswith("crash-after:") and calls > int(mode.partition(":")[2]):
    mode = "crash"
LAST_WORDS = {
    "crash": "RuntimeError: [enforce fail at alloc_cpu.cpp:116] DefaultCPUAllocator: can't allocate memory: out of memory",
    "gated": f"huggingface_hub.errors.GatedRepoError: 401 Client Error.\nCannot access gated repo for url {options.model}",
    "unknown-model": f"KeyError: \"Model '{options.model}' not supported by COMET.\"",
    "other": "ValueError: something else",
}
if mode in LAST_WORDS:
    print("Traceback (most recent call last):", file=sys.stderr)
    sys.exit(LAST_WORDS[mode])

sources = [line.strip() for line in Path(options.sources).read_text(encoding="utf-8").split("\n")][
    :-1
]
found = {}
for name in options.translations:
    sentences = [line.strip() for line in Path(name).read_text(encoding="utf-8").split("\n")][:-1]
    rows = [
        {"src": s, "mt": t, "COMET": len(t) / 8 - len(s) / 16}
        for s, t in zip(sources, sentences, strict=True)
    ]
    found[name] = rows[: len(rows) // 2] if mode == "short" else rows
    if not options.only_system:
        for number, row in enumerate(rows):
            print(f"{name}\tSegment {number}\tscore: {row['COMET']:.4f}")
    print(f"{name}\tscore: {sum(row['COMET'] for row in rows) / len(rows):.4f}")
if options.to_json and mode != "silent":
    text = json.dumps(found, ensure_ascii=False, indent=4)
    Path(options.to_json).write_text(
        text[: len(text) // 2] if mode == "half" else text, encoding="utf-8"
    )
    print(f"Predictions saved in: {options.to_json}.")
