"""stats.py: options, places and further files, command by command."""

from __future__ import annotations

from tests.bad_inputs.case import Case
from tests.bad_inputs.cases_dumps import DUMP
from tests.bad_inputs.spoiling import both, folder, put, remove

ON = "--stats stats/paper --wide stats_wide/paper"
GAINS = "lang\tverbalisation\trelation\tqe_delta\n"

CASES = [
    Case(
        "no command",
        "stats.py",
        "name a command; there are all, general, …",
    ),
    Case(
        "a command that there is not",
        "stats.py tables",
        "no command 'tables'; there are all, general, …",
    ),
    Case(
        "a folder that is not there",
        "stats.py general --stats nowhere",
        "no such folder or zip file: nowhere; check the path",
    ),
    Case(
        "an empty list of languages",
        f"stats.py general {ON} --langs ,",
        "--langs: an empty list; name at least one, for example ru,cs (see stats.py general --help)",
    ),
    Case(
        "a language without dumps",
        f"stats.py general {ON} --langs de",
        "no dump of de in stats/paper: it has cs, ru; choose with --langs",
    ),
    Case(
        "a language without a relation that is asked for",
        f"stats.py general {ON} --relations P36",
        "no dump of ru P36 in stats/paper: ru has P19; choose with --relations",
        remove(DUMP),
    ),
    Case(
        "no relation that all languages have",
        f"stats.py general {ON}",
        "stats/paper: no relation is there for all of ru, cs; choose fewer with --langs",
        both(remove(DUMP), remove("stats/paper/cs_P19_template_phrasebook.tsv")),
    ),
    Case(
        "a relation that is none",
        f"stats.py general {ON} --relations P9999",
        "no dump of ru P9999 in stats/paper: ru has P19, P36; choose with --relations",
    ),
    Case(
        "the paper's layout without the paper's languages",
        f"stats.py general {ON} --style paper",
        "no dump of ru P101 in stats/paper: ru has P19, P36; choose with --relations",
    ),
    Case(
        "an unknown style",
        f"stats.py general {ON} --style loud",
        'Invalid value "loud" for --style. Choose from: "paper", "clean" (see stats.py general --help)',
    ),
    Case(
        "--tables that is a file",
        f"stats.py general {ON} --tables translations.tsv",
        "cannot write translations.tsv/general_table.tex: translations.tsv is a file, or lies in one; choose another folder",
    ),
    Case(
        "--graphs that is a file, found before the tables are written",
        f"stats.py all {ON} --graphs translations.tsv",
        "--graphs translations.tsv is a file, or lies in one; name a folder",
    ),
    Case(
        "a folder where the table should go",
        f"stats.py general {ON}",
        "cannot write tables/general_table.tex: it is a folder; move it away",
        folder("tables/general_table.tex"),
    ),
    Case(
        "no wide dumps",
        "stats.py general-wide --stats stats/paper --wide nowhere",
        "no such folder or zip file: nowhere; check the path",
    ),
    Case(
        "wide dumps of another making",
        "stats.py general-wide --stats stats/paper --wide fixed_data",
        "fixed_data/cs_P19_phrasebook.tsv: no column '…_top1_correct'; this is no rank dump (script.py makes them)",
    ),
    Case(
        "no language with fewer verbalisations",
        f"stats.py additional-langs {ON}",
        "stats/paper: all languages have the same verbalisations: see the general table, or choose with --langs",
    ),
    Case(
        "one form a fact where two are compared",
        "stats.py infl-delta --stats stats/corrected",
        "ru_P19_template_phrasebook.tsv follows the corrected protocol, which ranks entities: it has no rank for each form to compare",
    ),
    Case(
        "a relation that is not there",
        f"stats.py relations {ON} --relations P101",
        "no dump of P101 for ru, cs in stats/paper; choose with --relations",
    ),
    Case(
        "gains that are not there",
        f"stats.py qe {ON} --qe gains.tsv",
        "no file gains.tsv: give a TSV with the columns lang, verbalisation, relation, qe_delta",
    ),
    Case(
        "gains without their column",
        f"stats.py qe {ON} --qe gains.tsv",
        "gains.tsv: no column verbalisation, qe_delta; it needs lang, verbalisation, relation, qe_delta",
        put("gains.tsv", "lang\trelation\nru\tP36\n"),
    ),
    Case(
        "a gain that is a word",
        f"stats.py qe {ON} --qe gains.tsv",
        "gains.tsv, row 0, column qe_delta: 'much' is not a number",
        put("gains.tsv", GAINS + "ru\tphrasebook\tP36\tmuch\n"),
    ),
    Case(
        "a gain that is infinite",
        f"stats.py qe {ON} --qe gains.tsv",
        "gains.tsv, row 0, column qe_delta: 'inf' is not a number",
        put("gains.tsv", GAINS + "ru\tphrasebook\tP36\tinf\n"),
    ),
    Case(
        "a gain that stands twice",
        f"stats.py qe {ON} --qe gains.tsv",
        "gains.tsv, row 1: ru phrasebook P36 stands twice; remove one",
        put("gains.tsv", GAINS + "ru\tphrasebook\tP36\t.1\n" * 2),
    ),
    Case(
        "gains of other languages",
        f"stats.py graphs {ON} --only qe --qe gains.tsv",
        "gains.tsv has no gain of any language and verbalisation of these dumps; choose others with --langs",
        put("gains.tsv", GAINS + "de\tgt\tP36\t.1\n"),
    ),
    Case(
        "a folder given as gains",
        f"stats.py qe {ON} --qe stats",
        "no file stats: give a TSV with the columns lang, verbalisation, relation, qe_delta",
    ),
    Case(
        "an unknown graph",
        f"stats.py graphs {ON} --only pie",
        "unknown graph 'pie': choose from general, rank_boxplot, percentile, logprob_rank, dumbbell, heatmap, qe",
    ),
    Case(
        "no graph",
        f"stats.py graphs {ON} --only ,",
        "--only: an empty list; name at least one, for example ru,cs (see stats.py graphs --help)",
    ),
    Case(
        "benchmark files that are not there",
        f"stats.py audit {ON} --data nowhere",
        "no such folder or zip file: nowhere; check the path",
    ),
    Case(
        "dumps given as benchmark files",
        f"stats.py audit {ON} --data stats/paper",
        "stats/paper/cs_P19_template_phrasebook.tsv is a rank dump, not a benchmark file; give the folder of the benchmark (fixed_data)",
    ),
    Case(
        "a language without dumps",
        f"stats.py audit {ON} --langs de",
        "no dump of de in stats/paper: it has cs, ru; choose with --langs",
    ),
    Case(
        "scores in a zip",
        "stats.py rerank --scores instruments.csv --out new",
        "instruments.csv is neither a folder nor a readable zip file (File is not a zip file)",
    ),
]
