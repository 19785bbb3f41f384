"""grammeval.py: judges, forms and genders that cannot be had."""

from __future__ import annotations

from tests.bad_inputs.case import Case
from tests.bad_inputs.spoiling import put

QE = "grammeval.py qe --stats stats/paper"
FILES = f"{QE} --back-end file --scores"
GENDER = "grammeval.py gender --stats stats/paper"
LONG = "lang\trelation\tsub_uri\tobj_uri\tverbalisation\tscore\n"


CASES = [
    Case(
        "no command",
        "grammeval.py",
        "name a command; there are qe, gender, similarity",
    ),
    Case(
        "a folder that is not there",
        "grammeval.py qe --stats nowhere",
        "no such folder or zip file: nowhere; check the path",
    ),
    Case(
        "dumps without the template",
        f"{QE} --verbalisations phrasebook",
        "gains are measured against the template, and these dumps compare phrasebook: choose --verbalisations with template",
    ),
    Case(
        "an unknown back end",
        f"{QE} --back-end oracle",
        'Invalid value "oracle" for --back-end. Choose from: "lm", "comet", "file" (see grammeval.py qe --help)',
    ),
    Case(
        "scores for another back end",
        f"{QE} --scores stats",
        "--scores is for --back-end file: give that as well, or leave --scores out",
    ),
    Case(
        "back end file without scores",
        f"{QE} --back-end file",
        "--back-end file needs --scores: a folder of *_qe.tsv, a TSV of scores, or a TSV of gains (qe_delta)",
    ),
    Case(
        "scores that are not there",
        f"{FILES} nowhere",
        "no scores at nowhere: give a folder of {lang}_{relation}_qe.tsv, or one TSV with lang, relation, "
        "sub_uri, obj_uri, verbalisation, score",
    ),
    Case(
        "a folder without the scores of these dumps",
        f"{FILES} fixed_data",
        "no ru_P19_qe.tsv in fixed_data: score ru P19, or choose with --langs and --relations",
    ),
    Case(
        "scores without a column",
        f"{FILES} s.tsv",
        "s.tsv: no column score; give a TSV of scores with these, or one of gains (qe_delta)",
        put("s.tsv", LONG.replace("\tscore", "") + "ru\tP36\tQ1\tQ2\tgt\n"),
    ),
    Case(
        "a score that is a word",
        f"{FILES} s.tsv --langs ru --relations P36",
        "s.tsv, row 0, column score: 'much' is not a number",
        put(
            "s.tsv",
            LONG + "ru\tP36\tQ142\tQ90\ttemplate\tmuch\n" + "ru\tP36\tQ142\tQ90\tphrasebook\t1\n",
        ),
    ),
    Case(
        "a score that stands twice",
        f"{FILES} s.tsv --langs ru --relations P36",
        "s.tsv: template, row 1: the fact Q142 – Q90 stands twice; remove one",
        put("s.tsv", LONG + "ru\tP36\tQ142\tQ90\ttemplate\t1\n" * 2),
    ),
    Case(
        "scores in UTF-16",
        f"{FILES} s.tsv",
        "s.tsv: not UTF-8 (byte 0xff in line 1); save it as UTF-8",
        put("s.tsv", LONG.encode("utf-16")),
    ),
    Case(
        "gains of other languages",
        f"{FILES} g.tsv",
        "g.tsv has no gain of any language and verbalisation of these dumps; choose others with --langs",
        put("g.tsv", "lang\tverbalisation\trelation\tqe_delta\nde\tgt\tP36\t.1\n"),
    ),
    Case(
        "an unknown linking function",
        f"{QE} --linking best",
        "unknown linking function 'best'; choose from lp, mean, slln, log, penlp, normlp, slor, morcela, per-char, pmi",
    ),
    Case(
        "a linking function without its frequencies",
        f"{QE} --linking slor",
        "--linking slor needs unigram probabilities: give them with --unigram, or choose mean",
    ),
    Case(
        "frequencies that are not there",
        f"{QE} --unigrams u.json",
        "no unigram table at u.json; check the path",
    ),
    Case(
        "frequencies that are a list",
        f"{QE} --unigrams u.json",
        "u.json: a unigram table is an object of token id: probability",
        put("u.json", "[1]"),
    ),
    Case(
        "a judge that is not there",
        f"{QE} --model ./nowhere",
        "model folder ./nowhere not found; give an existing folder, a hub name, or smollm2",
    ),
    Case(
        "--out that is a file",
        f"{QE} --out translations.tsv",
        "--out translations.tsv is a file, or lies in one; name a folder",
    ),
    Case(
        "--tables that is a file",
        f"{QE} --tables translations.tsv",
        "--tables translations.tsv is a file, or lies in one; name a folder",
    ),
    Case(
        "--graphs that is a file, found before any sentence is scored",
        f"{QE} --graphs translations.tsv",
        "--graphs translations.tsv is a file, or lies in one; name a folder",
    ),
    Case(
        "forms that are not there",
        f"{GENDER} --forms nothing.tsv",
        "no table of forms nothing.tsv: give a TSV with the columns lang, relation, gender, form",
    ),
    Case(
        "forms without a column",
        f"{GENDER} --forms f.tsv",
        "f.tsv: no column gender, form; it needs lang, relation, gender, form",
        put("f.tsv", "lang\trelation\nru\tP19\n"),
    ),
    Case(
        "a form of no gender",
        f"{GENDER} --forms f.tsv",
        "f.tsv, row 0: gender 'x' and form 'родилась'; write f or m, and a form",
        put("f.tsv", "lang\trelation\tgender\tform\nru\tP19\tx\tродилась\n"),
    ),
    Case(
        "forms of other languages",
        f"{GENDER} --forms f.tsv",
        "f.tsv knows none of the languages of these dumps (cs, ru): give --forms",
        put("f.tsv", "lang\trelation\tgender\tform\nde\tP19\tf\tx\n"),
    ),
    Case(
        "a relation without forms",
        f"{GENDER} --relations P36",
        "…gendered_forms.tsv has no forms for cs P36: add rows, or choose with --langs and --relations",
    ),
    Case(
        "genders that are not there",
        f"{GENDER} --gender nothing.tsv",
        "no nothing.tsv: give a TSV with the columns p and genderLabel, or --gender phrasebook, or --gender wikidata",
    ),
    Case(
        "genders without a column",
        f"{GENDER} --gender g.tsv",
        "g.tsv: no column genderLabel; it needs p (a bare id such as Q42) and genderLabel",
        put("g.tsv", "p\nQ1\n"),
    ),
    Case(
        "two genders of a person",
        f"{GENDER} --gender g.tsv",
        "g.tsv, row 1: Q1 is 'female' here and 'male' above; keep one",
        put("g.tsv", "p\tgenderLabel\nQ1\tmale\nQ1\tfemale\n"),
    ),
    Case(
        "a folder given as genders",
        f"{GENDER} --gender stats",
        "no stats: give a TSV with the columns p and genderLabel, or --gender phrasebook, or --gender wikidata",
    ),
    Case(
        "--tables that is a file",
        f"{GENDER} --tables translations.tsv",
        "cannot write translations.tsv/gender_stats.tsv: translations.tsv is a file, or lies in one; choose another folder",
    ),
    Case(
        "a language without dumps",
        "grammeval.py similarity --stats stats/paper --langs de",
        "no dump of de in stats/paper: it has cs, ru; choose with --langs",
    ),
    Case(
        "one verbalisation and no other",
        "grammeval.py similarity --stats stats/paper --verbalisations template",
        "gains are measured against the template, and these dumps compare template: choose --verbalisations with template",
    ),
    Case(
        "--tables that is a file",
        "grammeval.py similarity --stats stats/paper --tables translations.tsv",
        "cannot write translations.tsv/similarity.tsv: translations.tsv is a file, or lies in one; choose another folder",
    ),
]
