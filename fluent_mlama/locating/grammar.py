"""Closed classes of grammar: proclitics, particles, initial mutations, titles of persons.

Endings need no list: they are told by the common beginning (``similarity``). Beginnings do, since a
common end alone means little. The lists are grammar of the language, never words of any data.
"""

from __future__ import annotations

import re
from functools import cache

from fluent_mlama.locating.text import Word, split_words

_PROCLITICS = (
    ("\u0600", "\u0780", re.compile(r"[وف]?[بکل]?")),
    ("\u0590", "\u0600", re.compile(r"ו?(?:כש|מש|ש)?[בכלמה]?")),
)
"""Arabic and Hebrew letters, and the conjunctions and prepositions (in Hebrew the article too)
that are written as one with the next word."""

_KOREAN = re.compile(
    "(?:에게서|에게|에서의|에서|에는|에도|에|께서|께|한테서|한테|으로서|로서|으로써|로써|으로부터|로부터|으로의|로의|으로|로|부터|까지|"
    "처럼|보다|마다|밖에|조차|이나|나|이란|란|이라는|라는|이라고|라고|이라|라|와의|과의|와|과|랑|이랑|은|는|이|가|을|를|의|도|만)?"
    "(?:은|는|도|만|이며|며|이고|고|입니다|이었습니다|였습니다|이에요|예요|이었다|였다|이다|다|인|이었던|였던|이자|임)?$"
)

_KOREAN_REGIONS = ("특별자치시", "특별자치도", "광역시", "특별시", "시")
_KOREAN_REGION = re.compile(f"(?:{'|'.join(_KOREAN_REGIONS)})$")

# Mutated beginning and the radical behind it; "" is a letter that the mutation adds or drops.
_BRYTHONIC = (
    "ngh:c mh:p nh:t ng:g dd:d ch:c ph:p th:t g:c b:p d:t f:b f:m m:b n:d l:ll r:rh h: v:b v:m :g"
)
_GOIDELIC = (
    "mb:b gc:c nd:d bhf:f ng:g bp:p dt:t ts:s bh:b ch:c dh:d fh:f gh:g mh:m ph:p sh:s th:t h: n: t:"
)
_MUTATIONS = dict.fromkeys(("cy", "br", "kw"), _BRYTHONIC) | dict.fromkeys(
    ("ga", "gd", "gv"), _GOIDELIC
)


def proclitic_length(word: str, name: str) -> int:
    """How many letters of ``word`` are proclitics before ``name``; 0 if it is something else."""
    length = len(word) - len(name)
    if not 0 < length <= 4 or len(name) < 2 or not word.endswith(name):
        return 0
    for first, behind, pattern in _PROCLITICS:
        if first <= name[0] < behind and pattern.fullmatch(word[:length]):
            return length
    return 0


def without_article(word: str) -> str:
    """An Arabic word without its article and what may come before it (``بال``, ``لل``)."""
    return re.sub(r"^[وف]?(?:[بک]?ال|لل)(?=\w{3})", "", word)


def particle_length(word: str, name: str) -> int:
    """How many letters of a Korean ``word`` are particles or the copula after ``name``."""
    length = len(word) - len(name)
    if length <= 0 or not is_korean(name) or not word.startswith(name):
        return 0
    return length if _KOREAN.fullmatch(word[len(name) :]) else 0


def is_korean(word: str) -> bool:
    """Whether the word ends in Hangul."""
    return "가" <= word[-1] <= "힣"


def regional_names(name: str) -> list[str]:
    """Other names of a Korean place: with a word for city or province, or without its own."""
    own = _KOREAN_REGION.search(name)
    core = name[: own.start()] if own and own.start() >= 2 else name
    return [
        other for other in (core, *(core + region for region in _KOREAN_REGIONS)) if other != name
    ]


def proclitic_rests(word: str) -> list[str]:
    """What may be left, two letters at least, of an Arabic or Hebrew word without proclitics."""
    return [word[length:] for length in range(1, 4) if proclitic_length(word, word[length:])]


def unmutated(word: str, lang: str) -> list[str]:
    """The forms that a word of a Celtic language may have before mutation."""
    changes = (change.split(":") for change in _MUTATIONS.get(lang, "").split())
    return [
        radical + word[len(mutated) :]
        for mutated, radical in changes
        if word.startswith(mutated) and len(word) > len(mutated) + 1
    ]


# Kings, queens, emperors, popes, princes, saints: a title beside a name is part of it. Dictionary
# forms; inflected ones are recognized by ``Similarity``.
_TITLES = {
    "af": "koning,koningin,keiser,keiserin,prins,prinses,pous",
    "ar": "الملك,الملكة,ملك,ملكة,الإمبراطور,الإمبراطورة,الأمير,الأميرة,البابا,السلطان",
    "az": "kral,kraliça,imperator,çar,çariça,sultan,papa",
    "be": "кароль,каралева,імператар,імператрыца,цар,царыца,князь,папа",
    "bg": "крал,кралица,император,императрица,цар,царица,княз,княгиня,папа,свети",
    "bn": "রাজা,রানী,রাণী,সম্রাট,সম্রাজ্ঞী,মহারানী",
    "ca": "rei,reina,emperador,emperadriu,príncep,princesa,papa,tsar,tsarina",
    "ceb": "hari,rayna,haring,reyna,emperador,papa",
    "cs": "král,královna,císař,císařovna,car,carevna,kníže,princ,princezna,papež,svatý,svatá",
    "cy": "brenin,brenhines,ymerawdwr,tywysog,tywysoges,pab",
    "da": "kong,konge,dronning,kejser,kejserinde,zar,prins,prinsesse,pave",
    "de": "könig,königin,kaiser,kaiserin,zar,zarin,prinz,prinzessin,papst",
    "el": "βασιλιάς,βασίλισσα,αυτοκράτορας,αυτοκράτειρα,τσάρος,τσαρίνα,πρίγκιπας,πριγκίπισσα,πάπας",
    "en": "king,queen,emperor,empress,tsar,tsarina,prince,princess,pope,sultan",
    "es": "rey,reina,emperador,emperatriz,zar,zarina,príncipe,princesa,papa",
    "et": "kuningas,kuninganna,keiser,keisrinna,tsaar,prints,printsess,paavst",
    "eu": "errege,erregina,enperadore,enperatriz,printze,printzesa,aita santu",
    "fa": "شاه,ملکه,پادشاه,امپراتور,امپراتریس,شاهزاده,پاپ,سلطان",
    "fi": "kuningas,kuningatar,keisari,keisarinna,tsaari,prinssi,prinsessa,paavi",
    "fr": "roi,reine,empereur,impératrice,tsar,tsarine,prince,princesse,pape",
    "ga": "rí,banríon,impire,banimpire,prionsa,banphrionsa,pápa",
    "gl": "rei,raíña,emperador,emperatriz,príncipe,princesa,papa",
    "he": "המלך,המלכה,מלך,מלכה,הקיסר,הקיסרית,הנסיך,הנסיכה,האפיפיור,הצאר",
    "hi": "राजा,रानी,महारानी,महाराजा,सम्राट,सम्राज्ञी",
    "hr": "kralj,kraljica,car,carica,knez,princ,princeza,papa,sveti,sveta",
    "hu": "király,királynő,császár,császárnő,cár,cárnő,herceg,hercegnő,pápa",
    "hy": "թագավոր,թագուհի,կայսր,կայսրուհի,ցար,արքայազն,արքայադուստր,պապ",
    "id": "raja,ratu,kaisar,permaisuri,pangeran,putri,paus,tsar,sultan",
    "is": "konungur,kóngur,drottning,keisari,keisaraynja,prins,prinsessa,páfi",
    "it": "re,regina,imperatore,imperatrice,zar,zarina,principe,principessa,papa",
    "ja": "女王,国王,王,皇帝,女帝,皇后,王妃,王子,王女,天皇,教皇,法王",
    "jv": "raja,ratu,kaisar,pangeran,paus",
    "ka": "მეფე,დედოფალი,იმპერატორი,დედოფალ,მეფის,პრინცი,პრინცესა,პაპი",
    "ko": "여왕,국왕,왕,황제,여제,황후,왕자,공주,교황,대왕",
    "la": "rex,regina,imperator,imperatrix,princeps,papa",
    "lt": "karalius,karalienė,imperatorius,imperatorienė,caras,carienė,princas,princesė,popiežius",
    "lv": "karalis,karaliene,imperators,imperatore,cars,cariene,princis,princese,pāvests",
    "mk": "крал,кралица,император,императорка,цар,царица,принц,принцеза,папа",
    "ms": "raja,ratu,maharaja,permaisuri,putera,puteri,paus,sultan",
    "nb": "kong,dronning,keiser,keiserinne,tsar,prins,prinsesse,pave",
    "nl": "koning,koningin,keizer,keizerin,tsaar,tsarina,prins,prinses,paus",
    "nn": "kong,dronning,keisar,keisarinne,tsar,prins,prinsesse,pave",
    "no": "kong,dronning,keiser,keiserinne,tsar,prins,prinsesse,pave",
    "pl": (
        "król,królowa,cesarz,cesarzowa,car,caryca,książę,księżna,księżniczka,papież,święty,święta"
    ),
    "pt": "rei,rainha,imperador,imperatriz,czar,czarina,príncipe,princesa,papa",
    "ro": "rege,regele,regina,împărat,împăratul,împărăteasa,țar,țarina,prințul,prințesa,papa",
    "ru": (
        "король,королева,император,императрица,царь,царица,князь,княгиня,принц,принцесса,"
        "папа,святой,святая"
    ),
    "sk": "kráľ,kráľovná,cisár,cisárovná,cár,cárovná,knieža,princ,princezná,pápež,svätý,svätá",
    "sl": "kralj,kraljica,cesar,cesarica,car,carica,knez,princ,princesa,papež,sveti,sveta",
    "sq": "mbreti,mbretëresha,perandori,perandoresha,car,princi,princesha,papa",
    "sr": (
        "краљ,краљица,цар,царица,кнез,принц,принцеза,папа,свети,света,"
        "kralj,kraljica,car,carica,knez,princ,princeza"
    ),
    "sv": "kung,drottning,kejsare,kejsarinna,tsar,prins,prinsessa,påve",
    "sw": "mfalme,malkia,kaizari,papa",
    "ta": "அரசர்,அரசி,ராணி,மன்னர்,மகாராணி,பேரரசர்",
    "th": "สมเด็จพระราชินีนาถ,พระราชินี,ราชินี,กษัตริย์,พระเจ้า,จักรพรรดิ,จักรพรรดินี",
    "tr": "kral,kraliçe,imparator,imparatoriçe,çar,çariçe,sultan,prens,prenses,papa",
    "uk": (
        "король,королева,імператор,імператриця,цар,цариця,князь,княгиня,принц,принцеса,папа,"
        "святий,свята"
    ),
    "ur": "ملکہ,بادشاہ,شاہ,شہنشاہ,شہزادہ,شہزادی,پوپ,سلطان",
    "vi": (
        "nữ hoàng,nữ vương,hoàng hậu,vua,hoàng đế,quốc vương,hoàng tử,công chúa,giáo hoàng,sa hoàng"
    ),
    "zh": "女王,国王,皇帝,女皇,沙皇,皇后,王后,王子,公主,教皇,教宗",
}


@cache
def titles(lang: str) -> tuple[tuple[Word, ...], ...]:
    """The titles of a language, each as its words, the longest first."""
    found = (tuple(split_words(title)) for title in _TITLES.get(lang, "").split(",") if title)
    return tuple(sorted(found, key=lambda title: (-len(title), title[0].text)))
