"""What comes back from a translator, cleaned and judged before anyone builds on it.

``check`` gives each answer a status: ``ok`` with flags for what was mended, or the reason it cannot
be used. The functions below it work on plain strings.
"""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import opencc
import regex

from fluent_mlama.languages import fold_case, is_known, language
from fluent_mlama.translating.backend import OK, Answer, SourceSentence

REASONS: dict[str, str] = {
    "failed": "the request failed for good; the next run asks again",
    "missing": "the back end has no translation of this sentence",
    "filtered": "the service's content filter held the answer back",
    "none": "the service answered with nothing at all",
    "empty": "the answer is blank",
    "cut": "the service stopped at its length limit",
    "refusal": "the model refused",
    "echo": "the answer repeats the question and holds no translation",
    "markup": "the answer is a piece of HTML or JSON",
    "unchanged": "the answer is the English sentence",
    "wrong-script": "most words outside the names are not of the language's script",
    "truncated": "much shorter than the sentence and without a final stop",
    "length": "length out of all proportion to the sentence",
}
"""Why an answer is not used."""

FLAGS: dict[str, str] = {
    "cleaned": (
        "invisible or control characters removed, odd blanks made plain, HTML entities resolved, or"
        " text brought to NFC"
    ),
    "leading-blank": "blanks around the sentence removed",
    "echo-removed": (
        "the answer repeated the question; the text after the last 'Translation:' was taken"
    ),
    "prefix-removed": "a leaked 'Translation:' or the like removed",
    "first-line": "several lines came; the first was taken",
    "unquoted": "quotes around the whole sentence removed",
    "no-stop": "no final stop (left as it is)",
}
"""What was mended or seen in an answer that is used."""

_REFUSAL = regex.compile(
    r"^\W*(I['’]?m sorry|I am sorry|Sorry,|I can(no|['’])t|I cannot|I['’]?m (not able|unable)|I am"
    r" (not able|unable)|As an AI|"
    r"Unfortunately, I|Извините|Простите|К сожалению, я|Я не могу|Вибачте|На жаль, я|Я не"
    r" можу|Omlouvám se|Bohužel|Žao mi je|Nažalost|"
    r"Lo siento|Beklager|Maaf|Xin lỗi|Tôi không thể|抱歉|对不起|很抱歉|我无法|我不能)",
    regex.IGNORECASE,
)
_SORRY_ITSELF = regex.compile(
    r"sorry|unfortunate|excuse|pardon|can['’]?t|cannot|apolog|forgive", regex.IGNORECASE
)
_MARKUP = regex.compile(r"</?\p{Latin}[^<>]*>|<!|^\s*[{\[]\s*\"")
_STOP = regex.compile(r"[.!?。！？．｡…।۔։؟።]+[\p{Pf}\p{Pi}\p{Pe}\"'”»]*$")
# Characters of the translation per character of the English sentence; beyond, it is something else.
_UNSPACED_BOUNDS = (0.1, 2.0)
_SPACED_BOUNDS = (0.3, 3.0)
_SHORT_WITHOUT_STOP = 0.6

_JOINERS = "\u200c\u200d"
_JOINED_SCRIPTS = {"Arabic", "Devanagari", "Bengali", "Tamil"}
_ENTITY = regex.compile(r"&(?:#\d+|#[xX][\da-fA-F]+|\p{Latin}[\p{Latin}\d]*);")
_MOST_ESCAPES = 3
_BLANK = regex.compile(r"[\p{Zs}\t\v\f]")
_HIDDEN = regex.compile(r"[\p{Cf}\p{Cc}\p{Co}\uFFFD]")

_QUOTES = tuple(
    pair.split()
    for pair in ("« »", "„ “", "„ ”", "“ ”", '" "', "「 」", "『 』", "‘ ’", "' '", "` `", "** **")
)

_LEAKS = (
    "Translation|Translated sentence|Sentence|Target sentence|Answer|Перевод|Переклад|"
    "Превод|Překlad|Preklad|Prijevod|Prevod|Traducción|Traduction|Tradução|Traduzione|"
    "Traducció|Übersetzung|Oversættelse|Översättning|Vertaling|Tłumaczenie|Fordítás|"
    "Käännös|Çeviri|Terjemahan|Bản dịch|翻译|译文|翻訳|번역|ترجمة|ترجمه|תרגום|अनुवाद"
)
"""What models write before a translation; the first is the key of the published few-shot text."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A judged answer: the mended text, ``ok`` or the reason it is not used, what was mended, and
    the object's span if known.
    """

    text: str
    reason: str
    flags: tuple[str, ...] = ()
    object_span: tuple[int, int] | None = None

    @property
    def usable(self) -> bool:
        return self.reason == OK

    @property
    def status(self) -> str:
        """The status cell: reason, then flags, joined by ";"."""
        return ";".join((self.reason, *self.flags))


def check(answer: Answer, item: SourceSentence, *, mend: bool = True) -> Checked:
    """Judge one answer. With ``mend=False`` quotes, blanks and lines stay as they came (the
    published files did so); the status is the same. Entities, invisible characters and the
    normalisation form are no part of a text and are cleaned in any case.
    """
    if answer.status != OK:
        return Checked(answer.text or "", answer.status)
    if answer.text is None:
        return Checked("", "none")
    if answer.object_span is not None:
        return _check_with_span(answer, item)
    # Each step sees what the one before left: an echo may hide behind quotes and blanks.
    text, flags = answer.text, list[str]()
    for flag, step in _mending(item):
        mended = step(text)
        if mended != text:
            flags.append(flag)
        text = mended
    reason = _reason(text, item)
    if reason == OK and language(item.target).full_stop and not _STOP.search(text):
        flags.append("no-stop")
    return Checked(
        text if mend else clean_characters(answer.text, item.target), reason, tuple(flags)
    )


def _mending(item: SourceSentence) -> tuple[tuple[str, Callable[[str], str]], ...]:
    """Each step with the flag it earns, in the order they are taken."""
    return (
        ("cleaned", lambda text: clean_characters(text, item.target)),
        ("leading-blank", str.strip),
        (
            "echo-removed",
            lambda text: last_translation(text, item.target) if "\n" in text else text,
        ),
        ("prefix-removed", lambda text: last_translation(text, item.target)),
        ("first-line", _first_line),
        ("unquoted", unwrap),
    )


def _first_line(text: str) -> str:
    """The first line that says something; a line that ends in a colon only announces the next."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    told = [line for line in lines if not line.endswith((":", "："))]
    return (told or lines or [""])[0]


def _check_with_span(answer: Answer, item: SourceSentence) -> Checked:
    """An answer with a known object: cleaned in three parts, so that the span stays true."""
    assert answer.text is not None and answer.object_span is not None
    start, end = answer.object_span
    parts = [
        clean_characters(part, item.target)
        for part in (answer.text[:start], answer.text[start:end], answer.text[end:])
    ]
    flags = () if "".join(parts) == answer.text else ("cleaned",)
    before, form, after = parts[0].lstrip(), parts[1], parts[2].rstrip()
    text = before + form + after
    return Checked(text, _reason(text, item), flags, (len(before), len(before) + len(form)))


def _reason(text: str, item: SourceSentence) -> str:
    """``ok``, or the gravest objection to the mended text."""
    # The order matters: the gravest objection comes first.
    letters = alphanumeric(text, item.target)
    if not letters:
        return "empty"
    if _MARKUP.search(text):
        return "markup"
    if _REFUSAL.search(text) and not _SORRY_ITSELF.search(item.sentence):
        return "refusal"
    if item.source != item.target and letters == alphanumeric(item.sentence, item.target):
        return "unchanged"
    if regex.match(r"\s*(Source sentence|Subject|Object)( translation)?:", text):
        return "echo"
    if _wrong_script(text, item):
        return "wrong-script"
    proportion = len(text) / max(1, len(item.sentence))
    spaced = language(item.target).spaces
    low, high = _SPACED_BOUNDS if spaced else _UNSPACED_BOUNDS
    if not low <= proportion <= high:
        return "length"
    if spaced and proportion < _SHORT_WITHOUT_STOP and not _STOP.search(text):
        return "truncated"
    return OK


def _wrong_script(text: str, item: SourceSentence) -> bool:
    """Whether most words (in Chinese: signs) are foreign, names aside: "BBC Four принадлежит BBC."
    is good Russian.
    """
    rest = text
    for label in (item.en_sub_label, item.en_obj_label, item.sub_label, item.obj_label):
        rest = rest.replace(label, " ") if label else rest
    own = own_letters(item.target)
    words = regex.findall(r"\p{Script=Han}|[\p{L}--\p{Script=Han}]+", rest, regex.VERSION1)
    foreign = sum(not own.match(word) and not word[0].isupper() for word in words)
    return foreign >= 2 and foreign > len(words) / 2


def clean_characters(text: str, target: str) -> str:
    """NFC, HTML entities resolved, odd blanks as plain ones, invisible and control characters gone
    (line ends stay).

    Zero-width joiners stay in the scripts that spell with them (Persian, Hindi …).
    """
    for _ in range(_MOST_ESCAPES):  # "&amp;quot;": escaped more than once on its way
        text = _ENTITY.sub(lambda match: html.unescape(match.group()), text)
    text = regex.sub(r"\r\n?|[\u2028\u2029\u0085]", "\n", text)
    kept = _JOINERS if is_known(target) and _JOINED_SCRIPTS & set(language(target).scripts) else ""
    text = _HIDDEN.sub(lambda match: match.group() if match.group() in "\n\t" + kept else "", text)
    return unicodedata.normalize("NFC", _BLANK.sub(" ", text))


@lru_cache
def own_letters(target: str) -> regex.Pattern[str]:
    """Matches a letter (or Chinese sign) of the scripts that the language is written in."""
    return regex.compile("|".join(rf"\p{{Script={script}}}" for script in language(target).scripts))


def is_written_in(text: str, target: str) -> bool:
    """Whether some of it is in a script of the language ("JR東日本" is Japanese); what has no letters
    is in every script.
    """
    return bool(own_letters(target).search(text)) or not regex.search(r"\p{L}", text)


def alphanumeric(text: str, lang: str) -> str:
    """Letters, marks and digits, case folded: equal for texts that differ in stops and blanks."""
    return "".join(regex.findall(r"[\p{L}\p{M}\p{N}]", fold_case(text, lang)))


def last_translation(text: str, target: str) -> str:
    """What follows the last line-initial "Translation:" (in any of the languages models put it, or
    "Russian:"); else the text.
    """
    name = language(target).name if is_known(target) else ""
    heads = f"{_LEAKS}|{regex.escape(name)}" if name else _LEAKS
    leaks = list(
        regex.finditer(
            rf"^[\s*_#-]*(?:{heads})[\s*_]*[:：][\s*_]*", text, regex.IGNORECASE | regex.MULTILINE
        )
    )
    return text[leaks[-1].end() :].strip() if leaks else text


def unwrap(text: str) -> str:
    """The sentence without quotes around all of it; quotes around a name at either end stay."""
    for opening, closing in _QUOTES:
        inside = text.removeprefix(opening).removesuffix(closing)
        if len(text) - len(inside) < len(opening) + len(closing) or not inside:
            continue
        inner = opening in inside or closing in inside
        if not inner and regex.search(r"[.!?。！？।۔։…]\s*$", inside):
            return inside.strip()
    return text


def simplify(text: str, lang: str) -> str:
    """Chinese in simplified script (OpenCC t2s); any other language as it is."""
    return _converter().convert(text) if lang == "zh" else text


@lru_cache(maxsize=1)
def _converter() -> opencc.OpenCC:
    return opencc.OpenCC("t2s")
