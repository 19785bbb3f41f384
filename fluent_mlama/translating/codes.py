"""From mLAMA's language codes to those of the translation services.

Every mapping is done before the first request, and a language that a service does not know is an
error at the start that lists the ones it knows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from fluent_mlama.console import UserError
from fluent_mlama.languages import LANGUAGES, is_known, language

_SPELLINGS: dict[str, tuple[str, ...]] = {
    "zh": ("zh-CN", "zh-Hans", "zh", "chinese (simplified)", "chinese simplified"),
    "zh-hans": ("zh-CN", "zh-Hans", "zh", "chinese (simplified)", "chinese simplified"),
    "zh-hant": ("zh-TW", "zh-Hant", "chinese (traditional)", "chinese traditional"),
    "he": ("iw", "he"),
    "nb": ("nb", "no", "norwegian bokmål", "norwegian"),
    "no": ("no", "nb", "norwegian", "norwegian bokmål"),
    "jv": ("jw", "jv"),
    "fil": ("fil", "tl"),
    "tl": ("tl", "fil"),
    "ar": ("ar", "arabic"),
    "sr": ("sr", "serbian cyrillic"),
    "pt": ("pt", "pt-PT"),
    "en": ("en", "en-US", "english us"),
    "es": ("es", "es-ES"),
    "ta": ("ta", "tamil india"),
}
"""How services spell a language, the likeliest first; all others are tried by mLAMA's code, then by
English name.
"""

_NLLB = """
af:afr_Latn ar:arb_Arab az:azj_Latn be:bel_Cyrl bg:bul_Cyrl bn:ben_Beng ca:cat_Latn
ceb:ceb_Latn cs:ces_Latn cy:cym_Latn da:dan_Latn de:deu_Latn el:ell_Grek en:eng_Latn
es:spa_Latn et:est_Latn eu:eus_Latn fa:pes_Arab fi:fin_Latn fr:fra_Latn ga:gle_Latn
gl:glg_Latn he:heb_Hebr hi:hin_Deva hr:hrv_Latn hu:hun_Latn hy:hye_Armn id:ind_Latn
it:ita_Latn ja:jpn_Jpan ka:kat_Geor ko:kor_Hang lt:lit_Latn lv:lvs_Latn ms:zsm_Latn
nl:nld_Latn pl:pol_Latn pt:por_Latn ro:ron_Latn ru:rus_Cyrl sk:slk_Latn sl:slv_Latn
sq:als_Latn sr:srp_Cyrl sv:swe_Latn ta:tam_Taml th:tha_Thai tr:tur_Latn uk:ukr_Cyrl
ur:urd_Arab vi:vie_Latn zh:zho_Hans fil:tgl_Latn tl:tgl_Latn is:isl_Latn jv:jav_Latn
mk:mkd_Cyrl nb:nob_Latn no:nob_Latn nn:nno_Latn sw:swh_Latn
"""
NLLB: dict[str, str] = dict(pair.split(":") for pair in _NLLB.split())
"""FLORES-200 codes, which NLLB names its languages by (Latin is not among them)."""

_MACRO: dict[str, tuple[str, ...]] = {
    "ar": ("ara",),
    "az": ("aze",),
    "et": ("ekk",),
    "fa": ("fas",),
    "la": ("lat",),
    "lv": ("lav",),
    "ms": ("msa",),
    "no": ("nor",),
    "sq": ("sqi",),
    "sw": ("swa",),
    "zh": ("cmn", "zho"),
}
"""ISO 639-3 codes that OPUS-MT uses beside or instead of NLLB's first three letters."""


def service_code(service: str, table: Mapping[str, str], code: str) -> str:
    """The spelling of language ``code`` in a service's table of names and codes (either may be the
    key): the table's value.

    Raises UserError with the codes that would do, if the service does not know the language.
    """
    found = _spelling(table, code)
    if found is None:
        known = [one for one in LANGUAGES if _spelling(table, one) is not None]
        raise UserError(
            f"{service} does not translate language '{code}': choose from {', '.join(known)}"
        )
    return found


def _spelling(table: Mapping[str, str], code: str) -> str | None:
    spellings = {key.casefold(): value for key, value in table.items()}
    spellings |= {value.casefold(): value for value in table.values()}
    wanted = list(_SPELLINGS.get(code.casefold(), (code,)))
    if is_known(code):
        wanted.append(language(code).name)
    for text in wanted:
        if text.casefold() in spellings:
            return spellings[text.casefold()]
    regional = [one for key, one in spellings.items() if key.startswith(code.casefold() + "-")]
    return regional[0] if len(set(regional)) == 1 else None


def opus_token(supported: Collection[str], code: str) -> str:
    """The ``>>xxx<<`` mark that an OPUS-MT model wants first; "" if it has one target."""
    if not supported:
        return ""
    script = NLLB.get(code, "_Latn").split("_")[1]
    three = [*_MACRO.get(code, ()), *([NLLB[code][:3]] if code in NLLB else [])]
    marks = [f">>{spelt}<<" for base in [*three, code] for spelt in (base, f"{base}_{script}")]
    return _first(marks, supported, "this OPUS-MT model", code)


def seq2seq_language(known: Collection[str], code: str) -> str:
    """How an NLLB (``rus_Cyrl``), mBART (``ru_RU``) or M2M-100 (``ru``) tokenizer spells the
    language, among those ``known``.
    """
    spellings = [NLLB[code]] if code in NLLB else []
    spellings += [code, *(("nb", "no") if code in ("nb", "no") else ())]
    regional = sorted(
        spelt for spelt in known if spelt.startswith(f"{code}_") and len(spelt) == len(code) + 3
    )
    return _first([*spellings, *regional], known, "this model", code)


def _first(candidates: Iterable[str], known: Collection[str], service: str, code: str) -> str:
    for candidate in candidates:
        if candidate in known:
            return candidate
    raise UserError(
        f"{service} does not translate language '{code}': it knows {', '.join(sorted(known))}"
    )
