"""The locator's rules one by one: what belongs to the object, which place is taken, what is not
found.
"""

from __future__ import annotations

import unicodedata

import pytest

from fluent_mlama.locating import Location, Locator, NotFound, Outcome, Row
from fluent_mlama.locating.forms import Categories
from fluent_mlama.locating.grammar import particle_length, proclitic_length, unmutated
from fluent_mlama.locating.similarity import Similarity, resemblance, stem_score
from fluent_mlama.locating.text import fold, letters_before, split_words


def form(outcome: Outcome) -> str:
    assert outcome.found, outcome
    return outcome.object_form


def towns(lang_sentence: str, names: list[tuple[str, str]]) -> list[Row]:
    """Rows of one frame: (subject, object) filled in."""
    return [Row(lang_sentence.format(subject, obj), obj, subject=subject) for subject, obj in names]


PAIRS = [
    ("Norland", "Alvik"),
    ("Surland", "Bergen"),
    ("Ostland", "Corvo"),
    ("Vestland", "Delft"),
    ("Medland", "Ewell"),
    ("Hinland", "Ferrol"),
    ("Oberland", "Ghent"),
    ("Unterland", "Hobart"),
    ("Sealand", "Imola"),
    ("Highland", "Jaca"),
]


def test_a_location_is_never_empty() -> None:
    with pytest.raises(ValueError, match="empty object"):
        Location("Anna.", 4, 4, "exact", 1.0)
    with pytest.raises(ValueError, match="empty object"):
        Location("Anna  .", 4, 6, "exact", 1.0)


@pytest.mark.parametrize(
    "row",
    [Row("", "Rome"), Row(" ", "Rome"), Row("...", "Rome"), Row("Rome.", ""), Row("Rome.", "  ")],
)
def test_nothing_to_search_is_told(row: Row) -> None:
    assert Locator("en").locate(row) == NotFound("empty")


def test_a_label_of_signs_alone_is_not_found() -> None:
    assert Locator("en").locate(Row("The album is !!!.", "!!!")) == NotFound("not-found")


def test_an_unknown_language_is_served_by_the_general_rules() -> None:
    outcome = Locator("xx").locate(
        Row("Rebnom Danemi si Kopenhagenu.", "Kopenhagen", subject="Danem")
    )
    assert form(outcome) == "Kopenhagenu"


def test_the_tail_and_the_flags() -> None:
    outcome = Locator("cs").locate(Row("V Teheránu byla založena společnost.", "Teherán"))
    assert isinstance(outcome, Location)
    assert (outcome.prompt, outcome.object_form, outcome.tail) == (
        "V ",
        "Teheránu",
        " byla založena společnost.",
    )
    assert outcome.status == "ok;inflected;not-final"


@pytest.mark.parametrize("shape", ["NFC", "NFD"])
@pytest.mark.parametrize("label_shape", ["NFC", "NFD"])
@pytest.mark.parametrize(
    ("lang", "sentence", "label"),
    [
        ("vi", "Ông sinh ra ở Hà Nội.", "Hà Nội"),
        ("ko", "그는 부산에서 태어났다.", "부산"),
        ("cs", "Sídlí v Hradci Králové.", "Hradec Králové"),
    ],
)
def test_normalisation_forms_are_alike_and_offsets_are_the_sentences_own(
    shape: str, label_shape: str, lang: str, sentence: str, label: str
) -> None:
    told = unicodedata.normalize(shape, sentence)
    outcome = Locator(lang).locate(Row(told, unicodedata.normalize(label_shape, label)))
    expected = form(Locator(lang).locate(Row(sentence, label)))
    assert unicodedata.normalize("NFC", form(outcome)) == expected
    assert outcome.prompt + outcome.object_form + outcome.tail == told


def test_all_sentences_of_a_text_are_searched() -> None:
    outcome = Locator("es").locate(
        Row("Los Hermanos Sosa Bros. y Cía. se fundó en francés.", "francés")
    )
    assert form(outcome) == "francés"
    assert form(Locator("ru").locate(Row("P.S. Он живёт в Нью-Йорке.", "Нью-Йорк"))) == "Нью-Йорке"


def test_the_object_is_not_taken_from_the_subject() -> None:
    locator = Locator("fr")
    row = Row(
        "L'Université de Bologne se trouve à Bologne.", "Bologne", subject="Université de Bologne"
    )
    outcome = locator.locate(row)
    assert outcome.found and outcome.start == row.sentence.rindex("Bologne") and outcome.ambiguous
    only = Row("L'Université de Bologne est ancienne.", "Bologne", subject="Université de Bologne")
    assert locator.locate(only) == NotFound("inside-subject")


def test_the_template_tells_which_of_two_equal_places_is_the_object() -> None:
    row = Row("Luxembourg has its capital in Luxembourg.", "Luxembourg", subject="Luxembourg")
    assert Locator("en").locate(row).start == 30
    turned = Row(
        row.sentence, row.label, subject=row.subject, template="[Y] is the capital of [X]."
    )
    assert Locator("en").locate(turned).start == 0


@pytest.mark.parametrize(
    ("lang", "sentence", "label", "expected"),
    [
        ("hr", "Nizozemska je članica NATO-a.", "NATO", "NATO-a"),
        (
            "hr",
            "Zgrada je u vlasništvu Newark-a, New Jersey.",
            "Newark, New Jersey",
            "Newark-a, New Jersey",
        ),
        ("ru", "Имя написано по-гречески.", "греческий язык", "по-гречески"),
        ("uk", "Стадіон належить «Мілану».", "Мілан", "Мілану"),
        ("en", "The tool is written in C++.", "C++", "C++"),
        ("en", "He works for Apple Inc.", "Apple Inc.", "Apple Inc."),
        ("zh", "他在《时尚》杂志工作。", "时尚杂志", "《时尚》杂志"),
        ("es", "Es miembro de los Vengadores.", "Los Vengadores", "Vengadores"),
        ("it", "È la capitale dell'Italia.", "Italia", "Italia"),
        ("zh", "美因茨州的首府是美因茨 (Mainz)。", "美因茨", "美因茨"),
    ],
)
def test_endings_are_in_and_marks_and_articles_are_out(
    lang: str, sentence: str, label: str, expected: str
) -> None:
    assert form(Locator(lang).locate(Row(sentence, label))) == expected


@pytest.mark.parametrize(
    ("lang", "sentence", "label", "expected"),
    [
        # the sentence's stop ...
        ("cs", "Firma patří společnosti Honda.", "Honda Motor Co., Ltd.", "Honda"),
        ("cs", "Firma patří společnosti Honda Motor.", "Honda Motor Co., Ltd.", "Honda Motor"),
        ("cs", "Firma patří společnosti Škoda Auto.", "Škoda Auto a.s.", "Škoda Auto"),
        ("hr", "Tvrtka pripada Infobipu.", "Infobip d.o.o.", "Infobipu"),
        ("es", "La empresa pertenece a Repsol.", "Repsol S.A.", "Repsol"),
        ("ru", "Компания принадлежит Apple.", "Apple Inc.", "Apple"),
        ("en", "It belongs to Yahoo.", "Yahoo!", "Yahoo"),
        ("zh", "它属于雅虎。", "雅虎", "雅虎"),
        ("hi", "यह कंपनी का मालिक होंडा।", "होंडा", "होंडा"),
        # ... and the name's
        (
            "cs",
            "Firma patří společnosti Honda Motor Co., Ltd.",
            "Honda Motor Co., Ltd.",
            "Honda Motor Co., Ltd.",
        ),
        (
            "cs",
            "Firma patří společnosti Škoda Auto a. s. z Mladé Boleslavi.",
            "Škoda Auto a.s.",
            "Škoda Auto a. s.",
        ),
        ("en", "It belongs to Yahoo!", "Yahoo!", "Yahoo!"),
        ("es", "La empresa pertenece a Inc!", "Inc!", "Inc!"),
        ("zh", "该公司属于本田！", "本田!", "本田！"),
        ("en", "It is owned by Apple Inc. of California.", "Apple", "Apple Inc."),
        ("it", "Appartiene alla Fiat S.p.A.", "Fiat", "Fiat S.p.A."),
        ("de", "Das gehört der BMW GmbH & Co. KG.", "BMW", "BMW GmbH & Co. KG"),
    ],
)
def test_a_stop_belongs_to_the_sentence_unless_it_is_the_names(
    lang: str, sentence: str, label: str, expected: str
) -> None:
    assert form(Locator(lang).locate(Row(sentence, label))) == expected


@pytest.mark.parametrize(
    ("lang", "sentence", "label", "english", "expected"),
    [
        (
            "cs",
            "Patří firmě Walt Disney Companyho.",
            "Walt Disney",
            "The Walt Disney Company",
            "Walt Disney Companyho",
        ),
        (
            "cs",
            "Patří firmě Walt Disney Companyho.",
            "The Walt Disney Company",
            "The Walt Disney Company",
            "Walt Disney Companyho",
        ),
        (
            "hr",
            "Pripada tvrtki Ford Motor Companyja.",
            "Ford",
            "Ford Motor Company",
            "Ford Motor Companyja",
        ),
        (
            "fi",
            "Se kuuluu Microsoft Corporationille.",
            "Microsoft",
            "Microsoft Corporation",
            "Microsoft Corporationille",
        ),
        (
            "ru",
            "Она принадлежит Уолт Дисней Компани.",
            "Уолт Дисней",
            "The Walt Disney Company",
            "Уолт Дисней Компани",
        ),
        ("cs", "Patří firmě Apple Incu.", "Apple", "Apple Inc.", "Apple Incu"),
        (
            "nl",
            "Het is vernoemd naar koningin Victoria.",
            "Victoria",
            "Queen Victoria",
            "koningin Victoria",
        ),
        (
            "es",
            "Lleva el nombre de la reina Victoria.",
            "Victoria del Reino Unido",
            "Queen Victoria",
            "reina Victoria",
        ),
        (
            "ru",
            "Город назван в честь царицы Екатерины.",
            "Екатерина",
            "Empress Catherine",
            "царицы Екатерины",
        ),
        (
            "hu",
            "Az épület neve Viktória királynő.",
            "Viktória",
            "Queen Victoria",
            "Viktória királynő",
        ),
        (
            "ja",
            "これはヴィクトリア女王です。",
            "ヴィクトリア",
            "Queen Victoria",
            "ヴィクトリア女王",
        ),
        ("vi", "Nó thuộc về nữ hoàng Victoria.", "Victoria", "Queen Victoria", "nữ hoàng Victoria"),
    ],
)
def test_legal_forms_and_titles_are_part_of_the_name(
    lang: str, sentence: str, label: str, english: str, expected: str
) -> None:
    assert form(Locator(lang).locate(Row(sentence, label, english=english))) == expected


@pytest.mark.parametrize(
    ("lang", "sentence", "label"),
    [
        ("ja", "彼は東大阪市で生まれた。", "大阪"),
        ("ja", "彼は東京都に住む。", "京都"),
        ("ja", "彼はインドネシアで生まれた。", "インド"),
        ("ja", "彼はオーストリアで生まれた。", "オーストラリア"),
        ("zh", "他在本日出生。", "日本"),
        ("zh", "他出生于上海南站。", "海南"),
        ("cs", "Narodil se v Praze-západ.", "Praha"),
        ("cs", "Sídlí v Praze-západě.", "Praha"),
        ("de", "Er wohnt in Frankfurt-Höchst.", "Frankfurt"),
        ("en", "He rode Paris–Roubaix.", "Paris"),
        ("ru", "Он живёт в Нью-Йорке.", "Йорк"),
        ("fi", "Hän syntyi Turkissa.", "Turku"),
        ("fi", "Hän syntyi Nigeriassa.", "Niger"),
        ("fi", "Hän syntyi Australiassa.", "Austria"),
        ("hu", "Ausztráliában született.", "Ausztria"),
        ("tr", "Avustralya'da doğdu.", "Avusturya"),
        ("es", "Nació en Nigeria.", "Níger"),
        ("ru", "Он родился в Нигерии.", "Нигер"),
        ("cs", "Narodil se ve Slovinsku.", "Slovensko"),
        ("en", "He was born in New Mexico.", "Mexico"),
        ("pt", "Nasceu em Porto Alegre.", "Porto"),
        ("id", "Ia lahir di Papua Nugini.", "Papua"),
        ("en", "It is owned by Apple Records.", "Apple Inc."),
        ("it", "È nato in Nigeria.", "Niger"),
        ("az", "O, Nigeriyada anadan olub.", "Niger"),
        ("de", "Er wurde in Frankenberg geboren.", "Franken"),
        ("zh", "他毕业于北京大学。", "北京"),
    ],
)
def test_a_lookalike_or_a_piece_of_a_longer_name_is_not_found_or_flagged(
    lang: str, sentence: str, label: str
) -> None:
    outcome = Locator(lang).locate(Row(sentence, label))
    assert not outcome.found or "unsure" in outcome.flags, outcome


@pytest.mark.parametrize(
    ("lang", "sentence", "label"),
    [
        ("ja", "彼は大阪市で生まれた。", "大阪"),
        ("zh", "他出生于大阪。", "大阪"),
        ("fi", "Hän syntyi Turussa.", "Turku"),
        ("fi", "Hän syntyi Turkissa.", "Turkki"),
        ("hu", "Ausztriában született.", "Ausztria"),
        ("hr", "Nizozemska je članica NATO-a.", "NATO"),
        ("ru", "Он родился в Нигере.", "Нигер"),
        ("cs", "Narodil se na Slovensku.", "Slovensko"),
        ("sr", "Rođen je u Beogradu.", "Београд"),
        ("zh", "他在巴黎去世。", "巴黎"),
    ],
)
def test_the_name_itself_is_found_and_not_flagged(lang: str, sentence: str, label: str) -> None:
    outcome = Locator(lang).locate(Row(sentence, label))
    assert outcome.found and "unsure" not in outcome.flags, outcome


def test_a_shared_category_word_makes_no_two_names_alike() -> None:
    outcome = Locator("ru").locate(
        Row("Книга написана на английском языке.", "валлийский язык", english="Welsh")
    )
    assert not outcome.found or "unsure" in outcome.flags
    assert (
        form(Locator("ru").locate(Row("Книга написана на валлийском языке.", "валлийский язык")))
        == "валлийском языке"
    )


@pytest.mark.parametrize(
    ("sentence", "aliases", "expected"),
    [
        ("La lengua materna de Marie es el francés.", ("lengua inglesa", "idioma inglés"), None),
        ("La lengua materna de Mary es la inglesa.", ("lengua inglesa",), "inglesa"),
    ],
)
def test_a_part_of_a_name_holds_a_shorter_name_of_the_object(
    sentence: str, aliases: tuple[str, ...], expected: str | None
) -> None:
    outcome = Locator("es").locate(Row(sentence, "inglés", aliases=aliases))
    assert (form(outcome) if outcome.found else None) == expected


def test_language_codes_among_the_aliases_are_no_names() -> None:
    row = Row(
        "El idioma original de Ran es el japonés.",
        "español",
        aliases=("es", "esp"),
        english="Spanish",
    )
    assert not Locator("es").locate(row).found


def test_what_is_the_surely_found_form_of_another_object_is_not_this_one() -> None:
    rows = towns("Ba kaputo da {} so {}e.", PAIRS)
    locator = Locator("xx").fit(rows)
    assert locator.locate(rows[1]).found
    assert not locator.locate(
        Row("Ba kaputo da Surland so Bergene.", "Bergamo", subject="Surland")
    ).found


@pytest.mark.parametrize("mark", ["\u200f", "\u200e", "\u200b", "\ufeff", "\u00ad", "\u2069"])
def test_invisible_marks_beside_a_name_are_no_part_of_it(mark: str) -> None:
    outcome = Locator("he").locate(Row(f"הוא נולד בעיר {mark}ברלין{mark}.", "ברלין"))
    assert isinstance(outcome, Location) and (outcome.object_form, outcome.status) == (
        "ברלין",
        "ok",
    )


def test_a_longer_verbatim_name_is_taken_whole() -> None:
    outcome = Locator("cs").locate(Row("Pracuje pro Apple Inc.", "Apple", english="Apple Inc."))
    assert form(outcome) == "Apple Inc." and outcome.method == "english"


def test_another_name_that_begins_alike_is_not_taken() -> None:
    assert not Locator("en").locate(Row("He was born in San Diego.", "San Francisco")).found
    assert not Locator("en").locate(Row("It lies in South Korea.", "South Africa")).found


def test_a_piece_of_a_name_is_found_and_flagged_as_such() -> None:
    outcome = Locator("es").locate(Row("Nació en Santiago.", "Santiago de Chile"))
    assert form(outcome) == "Santiago" and outcome.method == "part"


def test_category_words_are_learnt_from_labels_and_taken_off_whole() -> None:
    labels = [
        "engleski jezik",
        "ruski jezik",
        "danski jezik",
        "Kota Taipei",
        "Kota Bandung",
        "Kota Medan",
        "idioma danés",
    ]
    categories = Categories.learn(labels)
    assert "jezik" in categories.last and "kota" in categories.first
    stripped = [
        " ".join(word.text for word in categories.strip(tuple(split_words(label))))
        for label in labels
    ]
    assert stripped == ["engleski", "ruski", "danski", "taipei", "bandung", "medan", "idioma danés"]


def test_the_labels_own_category_word_stays_in_beside_the_name() -> None:
    labels = ["Bahasa Inggris", "Bahasa Belanda", "Bahasa Prancis", "Bahasa Wales"]
    rows = [
        Row(f"Buku {n} ditulis dalam bahasa Inggris.", label, english="Welsh")
        for n, label in enumerate(labels)
    ]
    locator = Locator("id").fit(rows)
    kept = locator.locate(Row("Puisi ditulis dalam bahasa Welsh.", "Bahasa Wales", english="Welsh"))
    left_out = locator.locate(Row("Puisi ditulis dalam bahasa Welsh.", "Wales", english="Welsh"))
    assert (form(kept), form(left_out)) == ("bahasa Welsh", "Welsh")


def test_the_frame_finds_a_name_that_no_label_tells_and_says_so() -> None:
    locator = Locator("xx").fit(towns("Ba kaputo da {} so {}.", PAIRS))
    outcome = locator.locate(
        Row("Ba kaputo da Newland so Quito Maran.", "Zzyzx", subject="Newland")
    )
    assert (
        form(outcome) == "Quito Maran" and outcome.method == "frame" and "unsure" in outcome.flags
    )


def test_the_frame_does_not_take_another_objects_name_or_a_word_written_otherwise() -> None:
    locator = Locator("xx").fit(towns("Ba kaputo da {} so {}.", PAIRS))
    assert not locator.locate(
        Row("Ba kaputo da Newland so Bergen.", "Zzyzx", subject="Newland", english="Zzyzx")
    ).found
    assert not locator.locate(
        Row("Ba kaputo da Newland so mani.", "Zzyzx", subject="Newland")
    ).found


def test_the_frame_outweighs_a_name_elsewhere_in_the_sentence() -> None:
    locator = Locator("xx").fit(towns("Ba kaputo da {} so {}.", PAIRS))
    row = Row("Ba kaputo da Quito Parko so Quitu.", "Quito", subject="Parque Norte")
    assert locator.locate(row).start == row.sentence.index("Quitu")


def test_fitting_again_forgets_what_was_learnt() -> None:
    locator = Locator("xx").fit(towns("Ba kaputo da {} so {}.", PAIRS))
    locator.fit([])
    assert not locator.locate(
        Row("Ba kaputo da Newland so Quito Maran.", "Zzyzx", subject="Newland")
    ).found


def test_forms_known_from_elsewhere_help() -> None:
    row = Row("Prší v Benátkách.", "Venice", forms=("Benátkách",))
    assert form(Locator("cs").locate(row)) == "Benátkách"


def test_closed_classes() -> None:
    assert proclitic_length("ובברלין", "ברלין") == 2 and proclitic_length("וברלין", "ברל") == 0
    assert particle_length("서울에서는", "서울") == 3 and particle_length("서울역", "서울") == 0
    assert (
        "caerdydd" in unmutated("nghaerdydd", "cy")
        and "corcaigh" in unmutated("gcorcaigh", "ga")
        and unmutated("gcorcaigh", "fr") == []
    )


def test_stems_share_their_beginning_and_differ_in_endings() -> None:
    assert stem_score("helsinki", "helsingissä") > 0.6 and stem_score("praha", "praze") > 0.6
    assert (
        stem_score("словакия", "словении") == stem_score("iran", "iraqu") == 0.0
        and stem_score("glazbenik", "glazbe") == 0.0
    )
    assert resemblance("леонардо", "leonardo") == 1.0


def test_a_lemma_may_be_two_and_names_keep_their_own_form() -> None:
    similarity = Similarity("de")
    assert "sie" in similarity.lemmas("sie") and all(
        "|" not in lemma for lemma in similarity.lemmas("sie")
    )
    assert "xyzzyx" in Similarity("uk").lemmas("xyzzyx")


def test_words_know_their_place_and_invisible_characters_do_not_count() -> None:
    words = split_words("\u200fIn  Ni\u00adce, Elle 东京。")
    assert [word.text for word in words] == ["in", "nice", "elle", "东", "京"]
    assert [(word.start, word.end) for word in words] == [
        (1, 3),
        (5, 10),
        (12, 16),
        (17, 18),
        (18, 19),
    ]
    assert fold("İSTANBUL") == "istanbul" and letters_before("e\u0301te\u0301", 2) == 3
