"""Back ends that read files or run a model here: workbooks, TSV files, a tiny random OPUS-MT model,
NLLB's codes.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import openpyxl
import pytest

from fluent_mlama.console import UserError
from fluent_mlama.languages import OFFICIAL_LANGUAGES
from fluent_mlama.translating import backend
from fluent_mlama.translating.backend import (
    Answer,
    SourceSentence,
    Translator,
    TranslatorOptions,
    make_translator,
)
from fluent_mlama.translating.codes import NLLB, opus_token, seq2seq_language, service_code
from fluent_mlama.translating.document import DocumentTranslator, read_workbook, write_workbook
from fluent_mlama.translating.file import FileTranslator, read_translations
from fluent_mlama.translating.seq2seq import Seq2SeqTranslator, _prefix_and_target
from fluent_mlama.translating.store import store_keys
from tests.fault_world import flip_bit
from tests.translating_world import make_item, translate


def asked(translator: Translator, items: list[SourceSentence]) -> dict[int, Answer]:
    return {item.row: answer for item, answer in translator.translate(items)}


# workbooks


def translated_workbook(path: Path, sentences: list[str | None], title: str = " Лист1") -> None:
    """A workbook as a document translator returns it: header and sheet name translated too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    book = openpyxl.Workbook()
    book.active.title = title
    book.active.append([None, "ru_шаблон"])
    for number, sentence in enumerate(sentences):
        book.active.append([number, sentence])
    book.save(path)


def test_document_writes_the_english_workbook_and_says_what_to_do(tmp_path: Path) -> None:
    items = [make_item(row) for row in range(3)]
    with pytest.raises(
        UserError,
        match=(
            r"1 English workbook\(s\) written into .*src \(ru_P19.xlsx\): have each translated"
            r" .*tgt under the same"
        ),
    ):
        asked(DocumentTranslator(tmp_path), items)
    path = tmp_path / "src" / "ru_P19.xlsx"
    assert read_workbook(path) == [item.sentence for item in items]
    sheet = openpyxl.load_workbook(path).worksheets[0]
    assert sheet.title == "Sheet1"
    assert [[cell.value for cell in row] for row in sheet.iter_rows(max_row=2)] == [
        [None, "en_template"],
        [0, items[0].sentence],
    ]


def test_document_joins_facts_by_the_english_sentence(tmp_path: Path) -> None:
    """The workbook's rows stand in another order than the facts, and one fact is not in it."""
    items = [make_item(row) for row in range(4)]
    order = [2, 0, 1]
    write_workbook(tmp_path / "src" / "ru_P19.xlsx", [items[row].sentence for row in order])
    translated_workbook(
        tmp_path / "tgt" / "ru_P19.xlsx",
        [" " + translate(items[row].sentence) for row in order] + [None, None],
    )
    found = asked(DocumentTranslator(tmp_path), items)
    assert [found[row].text for row in range(3)] == [
        " " + translate(item.sentence) for item in items[:3]
    ]
    assert found[3].status == "missing"


def test_document_reports_sentences_that_stand_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    twins = [make_item(0), replace(make_item(0), row=1)]
    write_workbook(tmp_path / "src" / "ru_P19.xlsx", [item.sentence for item in twins])
    translated_workbook(tmp_path / "tgt" / "ru_P19.xlsx", ["Первый.", "Второй."])
    found = asked(DocumentTranslator(tmp_path), twins)
    assert [found[0].text, found[1].text] == ["Первый.", "Второй."]
    assert "1 sentences appear more than once" in capsys.readouterr().err


def test_document_never_writes_over_a_workbook_that_was_translated(tmp_path: Path) -> None:
    write_workbook(tmp_path / "src" / "ru_P19.xlsx", ["One ."])
    translated_workbook(tmp_path / "tgt" / "ru_P19.xlsx", ["Один."])
    before = (tmp_path / "src" / "ru_P19.xlsx").read_bytes()
    assert asked(DocumentTranslator(tmp_path), [make_item(0)])[0].status == "missing"
    assert (tmp_path / "src" / "ru_P19.xlsx").read_bytes() == before


def test_a_sentence_that_looks_like_a_formula_is_text(tmp_path: Path) -> None:
    path = tmp_path / "x.xlsx"
    write_workbook(path, ["=1+1 was written in Latin .", "a\x07b"])
    assert read_workbook(path) == ["=1+1 was written in Latin .", "ab"]


def test_document_tells_broken_workbooks(tmp_path: Path) -> None:
    translator = DocumentTranslator(tmp_path)
    items = [make_item(0)]
    translated_workbook(tmp_path / "tgt" / "ru_P19.xlsx", ["Один.", "Два."])
    with pytest.raises(UserError, match=r"tgt/ru_P19.xlsx has no .*src/ru_P19.xlsx beside it"):
        asked(translator, items)
    write_workbook(tmp_path / "src" / "ru_P19.xlsx", ["One ."])
    with pytest.raises(UserError, match=r"src/ru_P19.xlsx has 1 rows and .*tgt/ru_P19.xlsx has 2"):
        asked(translator, items)
    (tmp_path / "tgt" / "ru_P19.xlsx").write_bytes(b"PK nonsense")
    with pytest.raises(UserError, match=r"tgt/ru_P19.xlsx cannot be read as an Excel workbook"):
        asked(translator, items)
    (tmp_path / "plain").write_text("x", encoding="utf-8")
    with pytest.raises(
        UserError, match="plain is a file: give the folder that holds src/ and tgt/"
    ):
        DocumentTranslator(tmp_path / "plain").check("en", "ru", "P19")


# two-column files


def test_file_reads_quotes_headers_and_blanks(tmp_path: Path) -> None:
    path = tmp_path / "t.tsv"
    path.write_text(
        'English\ttranslation\n"""A"" was  born ."\t«А» родился.\r\n\nNA\tНет\n',
        encoding="utf-8-sig",
    )
    assert read_translations(path) == {'"A" was born .': "«А» родился.", "NA": "Нет"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tb\nc\n", "t.tsv, row 2: 1 columns where 2 are wanted"),
        ('a\t"b\n', "t.tsv is not a proper TSV .*double the quotes"),
        ("English\tRussian\n", "t.tsv holds no translations"),
    ],
)
def test_file_names_the_row_that_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "t.tsv").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=message):
        FileTranslator(tmp_path / "t.tsv").check("en", "ru", "P19")


def test_file_finds_its_file_by_language_and_relation(tmp_path: Path) -> None:
    item = make_item(0)
    (tmp_path / "ru_P19.tsv").write_text(
        f"{item.sentence}\t{translate(item.sentence)}\n", encoding="utf-8"
    )
    for path in (tmp_path, tmp_path / "{lang}_{relation}.tsv", tmp_path / "ru_P19.tsv"):
        translator = FileTranslator(path)
        found = asked(translator, [item, make_item(1)])
        assert (found[0].text, found[1].status) == (translate(item.sentence), "missing")
    hashes = [
        FileTranslator(path).prompt_hash("en", "ru", "P19")
        for path in (tmp_path, tmp_path / "ru_P19.tsv")
    ]
    assert hashes[0] == hashes[1]


# models


@pytest.fixture(scope="module")
def opus_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random OPUS-MT (Marian) model with a SentencePiece model trained on a few sentences, and
    two target languages.
    """
    import sentencepiece
    import torch
    from transformers import MarianConfig, MarianMTModel, MarianTokenizer

    folder = tmp_path_factory.mktemp("opus")
    corpus = [make_item(row).sentence for row in range(12)] + [
        translate(make_item(row).sentence) for row in range(12)
    ]
    (folder / "corpus.txt").write_text("\n".join(corpus), encoding="utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "corpus.txt"),
        model_prefix=str(folder / "source"),
        vocab_size=110,
        character_coverage=1.0,
        minloglevel=2,
    )
    (folder / "source.model").rename(folder / "source.spm")
    (folder / "target.spm").write_bytes((folder / "source.spm").read_bytes())
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "source.spm"))
    names = ["</s>", "<unk>", ">>rus<<", ">>ukr<<"]
    names += [
        name
        for name in (pieces.id_to_piece(number) for number in range(pieces.get_piece_size()))
        if name not in {"<s>", *names}
    ]
    vocabulary = {name: number for number, name in enumerate([*names, "<pad>"])}
    (folder / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False), encoding="utf-8")
    MarianTokenizer(
        str(folder / "source.spm"), str(folder / "target.spm"), str(folder / "vocab.json")
    ).save_pretrained(folder)
    torch.manual_seed(1)
    size = len(vocabulary)
    config = MarianConfig(
        vocab_size=size,
        d_model=16,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=16,
        decoder_ffn_dim=16,
        max_position_embeddings=256,
        pad_token_id=size - 1,
        eos_token_id=0,
        decoder_start_token_id=size - 1,
        forced_eos_token_id=0,
    )
    MarianMTModel(config).save_pretrained(folder)
    return folder


def test_a_marian_model_translates_in_batches_and_the_same_each_time(opus_model: Path) -> None:
    items = [make_item(row) for row in range(5)]
    by_two = Seq2SeqTranslator(str(opus_model), batch_size=2, beams=2, max_new_tokens=12)
    by_two.check("en", "ru", "P19")
    found = asked(by_two, items)
    assert found == asked(
        Seq2SeqTranslator(str(opus_model), batch_size=5, beams=2, max_new_tokens=12), items
    )
    assert set(found) == {0, 1, 2, 3, 4}
    assert all(answer.text for answer in found.values())
    assert {answer.status for answer in found.values()} == {
        "cut"
    }  # a random model does not end by itself


def test_kept_answers_of_other_weights_are_not_taken(opus_model: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(opus_model, tmp_path / "opus"))
    first = store_keys(Seq2SeqTranslator(str(folder)), [make_item(0)])
    assert store_keys(Seq2SeqTranslator(str(folder)), [make_item(0)]) == first
    flip_bit(folder / "model.safetensors")
    assert store_keys(Seq2SeqTranslator(str(folder)), [make_item(0)]) != first


def test_an_end_mark_forced_at_the_limit_is_a_cut() -> None:
    translator = Seq2SeqTranslator("x", max_new_tokens=4)
    assert translator._has_ended([9, 5, 6, 0, 9], {0})
    assert not translator._has_ended([9, 5, 6, 7, 0], {0})
    assert not translator._has_ended([0, 5, 6, 7, 8], {0})


def test_marian_takes_the_target_mark_and_refuses_unknown_targets(opus_model: Path) -> None:
    translator = Seq2SeqTranslator(str(opus_model))
    tokenizer, model = translator._load()
    assert _prefix_and_target(tokenizer, model, "en", "ru") == (">>rus<< ", {})
    with pytest.raises(
        UserError,
        match=r"this OPUS-MT model does not translate language 'es': it knows >>rus<<, >>ukr<<",
    ):
        translator.check("en", "es", "P19")


def test_a_model_that_is_not_there_is_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="model folder .*nowhere not found"):
        Seq2SeqTranslator(str(tmp_path / "nowhere")).check("en", "ru", "P19")
    with pytest.raises(UserError, match="seq2seq needs a model"):
        make_translator("seq2seq")


def test_nllb_chooses_languages_by_flores_codes() -> None:
    from transformers import NllbTokenizer

    tokenizer = NllbTokenizer(
        vocab={"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "▁a": 4}, merges=[]
    )
    prefix, options = _prefix_and_target(tokenizer, None, "en", "zh")
    assert prefix == ""
    assert tokenizer.src_lang == "eng_Latn"
    assert tokenizer.convert_ids_to_tokens(options["forced_bos_token_id"]) == "zho_Hans"
    with pytest.raises(
        UserError, match="this model does not translate language 'la': it knows .*rus_Cyrl"
    ):
        _prefix_and_target(tokenizer, None, "en", "la")


def test_mbart_and_m2m100_choose_languages_by_their_own_codes(opus_model: Path) -> None:
    from transformers import M2M100Tokenizer, MBart50Tokenizer

    mbart = MBart50Tokenizer()
    _, options = _prefix_and_target(mbart, None, "en", "zh")
    assert (mbart.src_lang, mbart.convert_ids_to_tokens(options["forced_bos_token_id"])) == (
        "en_XX",
        "zh_CN",
    )
    m2m100 = M2M100Tokenizer(str(opus_model / "vocab.json"), str(opus_model / "source.spm"))
    for code, token in (("ru", "__ru__"), ("hr", "__hr__"), ("nb", "__no__")):
        _, options = _prefix_and_target(m2m100, None, "en", code)
        assert (m2m100.src_lang, m2m100.convert_ids_to_tokens(options["forced_bos_token_id"])) == (
            "en",
            token,
        )
    with pytest.raises(
        UserError, match="this model does not translate language 'la': it knows af, am, ar"
    ):
        _prefix_and_target(m2m100, None, "en", "la")


def test_every_flores_code_of_the_table_is_nllbs() -> None:
    from transformers.models.nllb.tokenization_nllb import FAIRSEQ_LANGUAGE_CODES

    assert set(NLLB.values()) <= set(FAIRSEQ_LANGUAGE_CODES)
    assert set(OFFICIAL_LANGUAGES) - set(NLLB) == {"la"}


# codes and the table of back ends


def test_opus_and_multilingual_codes() -> None:
    assert opus_token([], "ru") == ""
    assert opus_token([">>cmn_Hans<<", ">>cmn_Hant<<", ">>jpn<<"], "zh") == ">>cmn_Hans<<"
    assert opus_token([">>srp_Cyrl<<", ">>srp_Latn<<", ">>hrv<<"], "sr") == ">>srp_Cyrl<<"
    assert opus_token([">>fr<<", ">>es<<"], "es") == ">>es<<"
    assert opus_token([">>ara<<", ">>heb<<"], "ar") == ">>ara<<"
    assert seq2seq_language({"ru_RU", "zh_CN", "en_XX"}, "zh") == "zh_CN"
    assert seq2seq_language({"ru", "zh", "id"}, "id") == "id"


def test_services_name_languages_in_their_ways() -> None:
    assert (
        service_code(
            "x", {"chinese (simplified)": "zh-CN", "chinese (traditional)": "zh-TW"}, "zh-hans"
        )
        == "zh-CN"
    )
    assert service_code("x", {"russian": "ru-RU"}, "ru") == "ru-RU"
    assert service_code("x", {"hebrew": "iw"}, "he") == "iw"
    with pytest.raises(UserError, match="x does not translate language 'xx': choose from ru$"):
        service_code("x", {"russian": "ru"}, "xx")


def test_every_mlama_language_has_a_google_code() -> None:
    translator = make_translator("google")[1]
    for code in OFFICIAL_LANGUAGES:
        translator.check("en", code, "P19")


def test_words_of_the_command_line_make_back_ends(tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_text("a\tb\n", encoding="utf-8")
    words = {
        "google": ("gt", "google"),
        "mine=google": ("mine", "google"),
        "document": ("gt", "document"),
        "openai:m": ("chatgpt", "openai"),
        f"file:{tmp_path / 'x.tsv'}": ("file", "file"),
        "nllb=seq2seq:a/b": ("nllb", "seq2seq"),
        "phrasebook": ("phrasebook", "phrasebook"),
    }
    for word, (name, chosen) in words.items():
        made = make_translator(word)
        assert (made[0], made[1].name) == (name, chosen)
        assert chosen == "seq2seq" or isinstance(
            made[1], Translator
        )  # which asks for the model's identity
    assert make_translator("openai:m")[1].model == "m"


def test_an_installed_package_adds_a_back_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "echoes.py").write_text(ECHO, encoding="utf-8")
    package = tmp_path / "echoes-1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Name: echoes\nVersion: 1\n", encoding="utf-8")
    points = "[fluent_mlama.translators]\nechoes = echoes\n"
    (package / "entry_points.txt").write_text(points, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(backend, "_BACK_ENDS", dict(backend._BACK_ENDS))
    name, translator = make_translator("echo:!", TranslatorOptions(seed=3))
    assert (name, asked(translator, [make_item(0)])[0].text) == (
        "loud",
        "Ada Ash was born in Paris .!3",
    )


ECHO = """
from fluent_mlama.translating.backend import Answer, back_end

@back_end("echo", verbalisation="loud")
class Echo:
    name, model, costly = "echo", "1", False

    def __init__(self, argument, options):
        self.end = f"{argument}{options.seed}"

    def translate(self, items):
        for item in items:
            yield item, Answer(item.sentence + self.end)
"""


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("=google", "'' cannot name a verbalisation"),
        ("My_Name=google", "'My_Name' cannot name a verbalisation"),
        ("", "unknown translator ''"),
    ],
)
def test_words_that_make_none(word: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        make_translator(word)
    assert message in str(caught.value)
