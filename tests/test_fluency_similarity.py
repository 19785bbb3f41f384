"""chrF and TER against the template: the published dumps' values, and sacrebleu called by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from sacrebleu.metrics import CHRF, TER
from small_dumps import small_dump, write_small_dumps

from fluent_mlama.fluency.similarity import by_relation, measure, metrics_for, over_relations
from fluent_mlama.grammeval import main
from fluent_mlama.reporting.loading import DumpFolder, rank_table
from fluent_mlama.reporting.selection import R15, select

PUBLISHED = {
    "hr": ([70.07, 69.62, 35.23, 45.16], [79.30, 76.26, 27.00, 39.51], [0.322, 0.429]),
    "ru": ([65.82, 65.76, 56.61, 59.06], [80.71, 77.86, 35.34, 41.25], [-0.575, -0.392]),
    "cs": ([66.73, 70.59, 43.67, 47.77], [73.91, 74.81, 34.82, 37.86], [-0.290, -0.198]),
    "uk": ([66.25, 67.75, 53.48, 56.21], [79.07, 77.54, 34.25, 40.90], [-0.471, 0.082]),
}
"""Of gt and of chatgpt: chrF of prompt and sentence, TER of prompt and sentence; then r of chrF
(prompt) with the gain in R@1.
"""


@pytest.mark.parametrize(
    "lang", ["hr", *(pytest.param(lang, marks=pytest.mark.slow) for lang in ("ru", "cs", "uk"))]
)
def test_published_similarities(lang: str, published: Path) -> None:
    folder = DumpFolder(published / "fluent_mlama" / "stats.zip")
    frame, signatures = by_relation([select(folder, [lang], R15)])
    means = over_relations(frame).set_index("verbalisation")
    columns = ["chrf_prompt", "chrf_sentence", "ter_prompt", "ter_sentence"]
    gt, chatgpt, r = PUBLISHED[lang]
    assert means.loc["gt", columns].tolist() == pytest.approx(gt, abs=0.00501)
    assert means.loc["chatgpt", columns].tolist() == pytest.approx(chatgpt, abs=0.00501)
    assert means["r"].tolist() == pytest.approx(r, abs=0.000501)
    assert signatures[lang].startswith(
        "chrF nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:"
    )


def test_values_are_means_of_sentence_scores() -> None:
    dump = small_dump(facts=2)
    dump.table["template"] = ["a b c d .", "one two ."]
    dump.table["gt_translation"] = ["a b d c e .", "one two ."]
    row = measure(rank_table(dump), metrics_for("ru")).iloc[0]
    chrf, ter = CHRF(), TER()
    assert row["chrf_sentence"] == pytest.approx(
        (chrf.sentence_score("a b d c e .", ["a b c d ."]).score + 100) / 2
    )
    assert row["ter_sentence"] == pytest.approx(
        ter.sentence_score("a b d c e .", ["a b c d ."]).score / 2
    )
    assert (row["verbalisation"], row["n"]) == ("gt", 2)


def test_languages_without_blanks_are_cut_into_characters_for_ter() -> None:
    dump = small_dump("zh", facts=1)
    dump.table["template"], dump.table["gt_translation"] = ["他生于北京市。"], ["他生在北京市。"]
    assert measure(rank_table(dump), metrics_for("zh")).iloc[0]["ter_sentence"] == pytest.approx(
        100 / 7
    )
    assert measure(rank_table(dump), metrics_for("ru")).iloc[0]["ter_sentence"] == pytest.approx(
        100
    )


def test_command_prints_values_and_signature(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stats = write_small_dumps(tmp_path / "stats", relations=("P19", "P36", "P103"))
    assert main(["similarity", "--stats", str(stats), "--tables", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert (
        "ru, cs: chrF nrefs:1" in out.replace("cs, ru:", "ru, cs:")
        and "TER nrefs:1|case:lc|tok:tercom" in out
    )
    text = (tmp_path / "similarity.tex").read_text(encoding="utf-8")
    assert "tok:tercom" in text and "ru 36" in text and "cs 36" in text
    assert len((tmp_path / "similarity.tsv").read_text(encoding="utf-8").splitlines()) == 1 + 2 * 3
