"""chrF and TER against the template: the published dumps' values, and sacrebleu called by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from sacrebleu.metrics import CHRF, TER
from small_dumps import small_dump, write_small_dumps

from fluent.fluency.similarity import by_relation, measure, metrics_for, over_relations
from fluent.reporting.loading import DumpFolder, rank_table
from fluent.reporting.selection import R15, select
from grammeval import main


@pytest.mark.data
def test_published_similarities_of_croatian(published: Path) -> None:
    folder = DumpFolder(published / "fluent_mlama" / "stats.zip")
    frame, signatures = by_relation([select(folder, ["hr"], R15)])
    means = over_relations(frame).set_index("verbalisation")
    columns = ["chrf_prompt", "chrf_sentence", "ter_prompt", "ter_sentence"]
    assert [round(value, 2) for value in means.loc["gt", columns]] == [70.07, 69.62, 35.23, 45.16]
    assert [round(value, 2) for value in means.loc["chatgpt", columns]] == [79.30, 76.26, 27.00, 39.51]
    assert [round(value, 3) for value in means["r"]] == [0.322, 0.429]
    assert signatures["hr"].startswith("chrF nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:")


def test_values_are_means_of_sentence_scores() -> None:
    dump = small_dump(facts=2)
    dump.table["template"] = ["a b c d .", "one two ."]
    dump.table["gt_translation"] = ["a b d c e .", "one two ."]
    row = measure(rank_table(dump), metrics_for("ru")).iloc[0]
    chrf, ter = CHRF(), TER()
    assert row["chrf_sentence"] == pytest.approx((chrf.sentence_score("a b d c e .", ["a b c d ."]).score + 100) / 2)
    assert row["ter_sentence"] == pytest.approx(ter.sentence_score("a b d c e .", ["a b c d ."]).score / 2)
    assert (row["verbalisation"], row["n"]) == ("gt", 2)


def test_languages_without_blanks_are_cut_into_characters_for_ter() -> None:
    dump = small_dump("zh", facts=1)
    dump.table["template"], dump.table["gt_translation"] = ["他生于北京市。"], ["他生在北京市。"]
    assert measure(rank_table(dump), metrics_for("zh")).iloc[0]["ter_sentence"] == pytest.approx(100 / 7)
    assert measure(rank_table(dump), metrics_for("ru")).iloc[0]["ter_sentence"] == pytest.approx(100)


def test_command_prints_values_and_signature(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stats = write_small_dumps(tmp_path / "stats", relations=("P19", "P36", "P103"))
    assert main(["similarity", "--stats", str(stats), "--tables", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "ru, cs: chrF nrefs:1" in out.replace("cs, ru:", "ru, cs:") and "TER nrefs:1|case:lc|tok:tercom" in out
    text = (tmp_path / "similarity.tex").read_text(encoding="utf-8")
    assert "tok:tercom" in text and "ru 36" in text and "cs 36" in text
    assert len((tmp_path / "similarity.tsv").read_text(encoding="utf-8").splitlines()) == 1 + 2 * 3
