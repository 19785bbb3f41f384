"""What the tests run in place of a command of the docs, and why. What stands here not is run as written.

``PARSE``: only the command's real parser takes the words. ``quick`` is run by `make test`, ``slow`` by `make test-all`;
``slow=AS_WRITTEN`` where only time forbids it.
"""

from __future__ import annotations

from dataclasses import dataclass

AS_WRITTEN = "as written"
PARSE = "parse"


@dataclass(frozen=True)
class Instead:
    """why: one of the reasons below. quick, slow: a command, AS_WRITTEN or PARSE."""

    why: str
    quick: str
    slow: str = ""

    def command(self, written: str, *, slow: bool) -> str:
        """What to run; PARSE where only the parser is asked."""
        chosen = self.slow if slow and self.slow else self.quick
        return written if chosen == AS_WRITTEN else chosen


NETWORK = "needs the network"
PLACEHOLDER = "a name in it is the reader's to fill in"
LONG = "takes minutes to hours"
HARDWARE = "needs a GPU or a gated model"
INSTALLS = "installs or deletes"
THEIRS = "a command of another program, named for comparison"
WRITES = "writes into the repository or runs for ever"

INSTEAD: dict[str, Instead] = {
    # README
    "python -m venv .venv": Instead(INSTALLS, "python -m venv --without-pip .venv", AS_WRITTEN),
    "pip install torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu": Instead(
        INSTALLS,
        "pip install --dry-run --no-deps --quiet torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu",
    ),
    "pip install -r requirements.txt": Instead(
        INSTALLS, "pip install --dry-run --no-deps --quiet -r requirements.txt"
    ),
    "pip install --no-deps -r requirements-demo.txt": Instead(
        INSTALLS, "pip install --dry-run --no-deps --quiet -r requirements-demo.txt"
    ),
    "pip install -r requirements-dev.txt": Instead(
        INSTALLS, "pip install --dry-run --no-deps --quiet -r requirements-dev.txt"
    ),
    "mypy": Instead(LONG, "mypy --version"),
    "python -m pytest": Instead(LONG, "python -m pytest --version"),
    "python script.py -l ru,es,cs -r P19,P36,P103 --data fixed_data/starter --model smollm2 --out stats/demo": Instead(
        LONG,
        "python script.py -l ru -r P19,P36 --data fixed_data/starter --model smollm2 --limit 1 --out stats/demo",
        AS_WRITTEN,
    ),
    "python datamodifier.py -l ru -r P19,P36 --mlama data/mlama1.1.zip --translator google --out fixed_data --variant nogpt": Instead(
        NETWORK,
        "python datamodifier.py -l ru -r P19,P36 --mlama data/mlama1.1.zip --translator gt=phrasebook --aliases none "
        "--out fixed_data --variant nogpt",
    ),
    "python script.py -l ru -r P19,P36 --model …": Instead(
        PLACEHOLDER,
        "python script.py -l ru -r P19,P36 --data fixed_data/starter --model smollm2 --limit 3",
    ),
    "python stats.py compare --stats stats/models/A,stats/models/B": Instead(
        PLACEHOLDER,
        PARSE,
        "python stats.py compare --stats stats/starter/paper,stats/starter/corrected --tables tables/models",
    ),
    "python script.py … --model A,B,C --out stats/models": Instead(
        PLACEHOLDER, "python script.py --help"
    ),
    "python script.py -l ru -r P19 --data path/to/fixed_data.zip --model smollm2 --limit 20 --out stats/try": Instead(
        LONG,
        "python script.py -l ru -r P19 --data path/to/fixed_data.zip --model smollm2 --limit 1 --out stats/try",
        AS_WRITTEN,
    ),
    "python stats.py all --stats stats --tables tables --graphs graphs": Instead(
        LONG, "python stats.py general --stats stats --tables tables", AS_WRITTEN
    ),
    "python stats.py all --style paper --stats path/to/stats.zip --wide path/to/stats_wide.zip --tables tables --graphs graphs": Instead(
        LONG,
        "python stats.py infl-delta --style paper --stats path/to/stats.zip --tables tables",
        AS_WRITTEN,
    ),
    "python script.py -l ru -r P101,P103,P108,P127,P1376,P159,P19,P20,P36,P364,P407,P449,P463,P495,P740": Instead(
        HARDWARE,
        "python script.py -l ru -r P103,P108 --data fixed_data/starter --model smollm2 --limit 1 --out stats/job",
    ),
    "python stats.py report --stats stats": Instead(LONG, PARSE, AS_WRITTEN),
    "python stats.py report --stats stats/polish-corrected/smollm2 --out polish.html": Instead(
        LONG, PARSE, AS_WRITTEN
    ),
    "hf auth login": Instead(NETWORK, "hf auth login --help"),
    "python benchmarks/locating.py --write": Instead(WRITES, PARSE),
    # architecture, comparing
    "pip install -e .": Instead(INSTALLS, "pip install --help"),
    "python stats.py compare --stats OUT --baseline lp": Instead(PLACEHOLDER, PARSE),
    "python stats.py report --stats OUT --out page.html": Instead(PLACEHOLDER, PARSE),
    "python stats.py audit --stats OUT": Instead(PLACEHOLDER, PARSE),
    "python stats.py export --stats OUT --out folder": Instead(PLACEHOLDER, PARSE),
    "python -m probes.NAME": Instead(PLACEHOLDER, "python -m probes.mlama --help"),
    "python stats.py compare --stats stats/starter/paper --tables tables/mine": Instead(
        LONG,
        "python stats.py compare --stats stats/starter/paper --tables tables/mine --langs cs --relations P19 --resamples 200",
        AS_WRITTEN,
    ),
    "python stats.py compare --stats stats/models/smollm2 --against stats/models/mine,stats/models/pythia-410m "
    "--tables tables/models": Instead(
        PLACEHOLDER,
        PARSE,
        "python stats.py compare --stats stats/starter/paper --against stats/starter/corrected --tables tables/models",
    ),
    "python stats.py compare --stats stats/starter/corrected --tables tables/mine": Instead(
        LONG, PARSE, AS_WRITTEN
    ),
    "python script.py -l all --data fixed_data/starter --model smollm2,models/mine,EleutherAI/pythia-410m --out stats/models": Instead(
        PLACEHOLDER, PARSE
    ),
    "python script.py -l all --data fixed_data/starter --models models.txt --out stats/models": Instead(
        PLACEHOLDER, PARSE
    ),
    "python stats.py report --stats A,B,C --out report.html": Instead(PLACEHOLDER, PARSE),
    "python stats.py report --stats FOLDER --out report.html": Instead(
        PLACEHOLDER,
        PARSE,
        "python stats.py report --stats stats/starter/paper --langs cs --out report.html",
    ),
    # scaling
    "pip install -r requirements-ray.txt": Instead(
        INSTALLS, "pip install --dry-run --no-deps --quiet -r requirements-ray.txt"
    ),
    # exports
    "python script.py export hf --data fixed_data/starter --out exports/hf": Instead(
        LONG,
        "python script.py export hf --data fixed_data/starter -l es -r P108 --out exports/hf",
        AS_WRITTEN,
    ),
    "python script.py export lm-eval --data fixed_data/starter --out exports/lm-eval": Instead(
        LONG, PARSE, AS_WRITTEN
    ),
    "python script.py export bear --data fixed_data/starter --out exports/bear": Instead(
        LONG, PARSE, AS_WRITTEN
    ),
    "python script.py -l es -r P108 --data fixed_data/starter --model NAME --protocol corrected --out stats/NAME": Instead(
        PLACEHOLDER,
        "python script.py -l es -r P108 --data fixed_data/starter --model smollm2 --protocol corrected --limit 1 --out stats/NAME",
    ),
    "hf upload": Instead(NETWORK, "hf upload --help"),
    # tutorial
    "python stats.py compare --stats stats/polish-corrected/smollm2,stats/polish-corrected/my_model --tables tables/polish "
    "--graphs graphs/polish": Instead(
        LONG,
        "python stats.py compare --stats stats/polish-corrected/smollm2,stats/polish-corrected/my_model --tables tables/polish "
        "--graphs graphs/polish --resamples 200",
        AS_WRITTEN,
    ),
    # cpopqa
    "python -m probes.cpopqa build --ngrams US=us.json --ngrams UK=uk.json --out popularity": Instead(
        PLACEHOLDER, PARSE
    ),
    "python -m probes.cpopqa rank --data popularity --model smollm2": Instead(
        LONG,
        "python -m probes.cpopqa rank --data popularity --model smollm2 --per-round 1",
        AS_WRITTEN,
    ),
    "python -m probes.cpopqa ask --data popularity --model meta-llama/Llama-2-7b-chat-hf": Instead(
        HARDWARE,
        PARSE,
        "python -m probes.cpopqa ask --data popularity --model smollm2 --per-round 1",
    ),
    "python -m probes.cpopqa ask --data popularity --model gpt-4o-mini --endpoint": Instead(
        NETWORK, PARSE
    ),
    "python -m probes.cpopqa score --data popularity": Instead(
        LONG, "python -m probes.cpopqa score --data popularity --no-figures", AS_WRITTEN
    ),
    # fluency
    "python grammeval.py qe --stats stats/starter/paper": Instead(
        LONG,
        "python grammeval.py qe --stats stats/starter/paper --langs cs --relations P36",
        AS_WRITTEN,
    ),
    "python grammeval.py qe --stats stats --back-end comet": Instead(NETWORK, PARSE),
    "python grammeval.py qe --stats stats --back-end file --scores grammeval": Instead(
        PLACEHOLDER,
        "python grammeval.py qe --stats stats/starter/paper --langs cs --relations P36 --back-end file --scores grammeval "
        "--out grammeval/again",
    ),
    "python grammeval.py similarity --stats stats/starter/paper": Instead(
        LONG, "python grammeval.py similarity --stats stats/starter/paper --langs cs", AS_WRITTEN
    ),
    # mlama
    "python -m probes.mlama query --model bert-base-multilingual-cased --method tyq --data mlama1.1.zip --langs en,de,ja": Instead(
        NETWORK, PARSE
    ),
    "python -m probes.mlama report --model smollm2 --data starter --langs en,es,ru,zh": Instead(
        LONG,
        "python -m probes.mlama query --model smollm2 --method causal --data starter --langs en --relations P36 --limit 2",
        AS_WRITTEN,
    ),
    "python -m probes.mlama build --lama LAMA --langs sw,de --translator google --out data/mine": Instead(
        NETWORK, PARSE
    ),
    # protocols
    "python script.py -l ru -r P19 --data fixed_data/starter --model smollm2 --out stats/mine": Instead(
        LONG,
        "python script.py -l ru -r P19 --data fixed_data/starter --model smollm2 --out stats/mine --limit 2",
        AS_WRITTEN,
    ),
    "python script.py -l ru -r P19 --data fixed_data/starter --model smollm2 --out stats/mine-corrected --protocol corrected": Instead(
        LONG,
        "python script.py -l ru -r P19 --data fixed_data/starter --model smollm2 --out stats/mine-corrected --protocol corrected --limit 2",
        AS_WRITTEN,
    ),
    # statistics
    "python stats.py all --stats stats/starter/paper --tables tables/mine --graphs graphs/mine": Instead(
        LONG,
        "python stats.py general --stats stats/starter/paper --tables tables/mine --graphs graphs/mine --langs cs,ru",
        AS_WRITTEN,
    ),
    "python stats.py audit --stats published/stats.zip --wide published/stats_wide.zip --data published/fixed_data.zip": Instead(
        LONG, PARSE, AS_WRITTEN
    ),
    # translating
    "python datamodifier.py -l ru,cs -r P19,P36 --mlama data/mlama1.1.zip --translator google --out fixed_data --variant nogpt": Instead(
        NETWORK,
        "python datamodifier.py -l ru,cs -r P19,P36 --mlama starter --translator gt=phrasebook --aliases none "
        "--out fixed_data --variant nogpt",
    ),
    # zhoblimp
    "python -m probes.zhoblimp evaluate --model smollm2 --data fluent_mlama/zhoblimp/content/zh/pairs --out results": Instead(
        LONG,
        "python -m probes.zhoblimp evaluate --model smollm2 --data fluent_mlama/zhoblimp/content/zh/pairs --per-paradigm 1 --out results",
        AS_WRITTEN,
    ),
    "python -m probes.zhoblimp evaluate --model A,B --data ZhoBLiMP.tar.gz --linking all --unigrams corpus.txt "
    "--human human_validation_result.csv --out results": Instead(PLACEHOLDER, PARSE),
    "python -m probes.zhoblimp serve --projects zhoblimp_projects": Instead(WRITES, PARSE),
    "python -m probes.zhoblimp generate --templates FOLDER/paradigms --out pairs -n 300 --seed 0": Instead(
        PLACEHOLDER,
        "python -m probes.zhoblimp generate --templates fluent_mlama/zhoblimp/content/ru/paradigms --out pairs -n 20 --seed 0",
    ),
    "python -m probes.zhoblimp check --templates FOLDER/paradigms --data pairs": Instead(
        PLACEHOLDER,
        "python -m probes.zhoblimp check --templates fluent_mlama/zhoblimp/content/ru/paradigms --data pairs",
    ),
    "python -m probes.zhoblimp lint --templates FOLDER/paradigms --data pairs": Instead(
        PLACEHOLDER,
        "python -m probes.zhoblimp lint --templates fluent_mlama/zhoblimp/content/ru/paradigms --data pairs",
    ),
    "python -m probes.zhoblimp train --corpus corpus.txt --size 14M --tokenizer char --tokens 100M --checkpoints 1M,10M,50M "
    "--out suite/14M": Instead(
        LONG,
        "python -m probes.zhoblimp train --corpus pairs --size tiny --tokenizer char --tokens 500 --context 128 --batch 1 --out suite/14M",
    ),
    "python -m probes.zhoblimp evaluate --model suite/14M --revisions ALL --unigrams suite/14M/unigram.json --data ZhoBLiMP.tar.gz "
    "--out results": Instead(
        PLACEHOLDER,
        "python -m probes.zhoblimp evaluate --model suite/14M --revisions ALL --unigrams suite/14M/unigram.json --data pairs "
        "--per-paradigm 1 --out results/14M",
    ),
    "accelerate launch -m probes.zhoblimp train …": Instead(HARDWARE, "accelerate launch --help"),
    "python -m probes.zhoblimp evaluate --model M --data D --linking all --out OUT": Instead(
        PLACEHOLDER, PARSE
    ),
}

HARMLESS = {"source", "export", "mkdir", "cp", "ruff", "MODEL=$(python"}
"""Programs that are none of ours and may run as written; every other one needs a line above before anything is run."""

CLUSTER = Instead(HARDWARE, PARSE)
CLUSTER_PROGRAMS = {"for", "ray", "sbatch", "srun"}
PEERS = Instead(
    "runs in an environment of its own (make peers); the shell reads it, tests/test_exporting_*_peer.py run it there",
    PARSE,
)

NOT_OURS = {"python src/run.py": THEIRS, "python frontend/app.py": THEIRS}
