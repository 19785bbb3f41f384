"""Titles of persons, a closed class of words by language: a title beside a name is part of it.

Kings, queens, emperors, popes, princes, saints. Dictionary forms; inflected ones are recognised by ``Similarity``.
"""

from __future__ import annotations

from functools import cache

from fluent_mlama.locating.text import Word, split_words

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
    "pl": "król,królowa,cesarz,cesarzowa,car,caryca,książę,księżna,księżniczka,papież,święty,święta",
    "pt": "rei,rainha,imperador,imperatriz,czar,czarina,príncipe,princesa,papa",
    "ro": "rege,regele,regina,împărat,împăratul,împărăteasa,țar,țarina,prințul,prințesa,papa",
    "ru": "король,королева,император,императрица,царь,царица,князь,княгиня,принц,принцесса,папа,святой,святая",
    "sk": "kráľ,kráľovná,cisár,cisárovná,cár,cárovná,knieža,princ,princezná,pápež,svätý,svätá",
    "sl": "kralj,kraljica,cesar,cesarica,car,carica,knez,princ,princesa,papež,sveti,sveta",
    "sq": "mbreti,mbretëresha,perandori,perandoresha,car,princi,princesha,papa",
    "sr": "краљ,краљица,цар,царица,кнез,принц,принцеза,папа,свети,света,kralj,kraljica,car,carica,knez,princ,princeza",
    "sv": "kung,drottning,kejsare,kejsarinna,tsar,prins,prinsessa,påve",
    "sw": "mfalme,malkia,kaizari,papa",
    "ta": "அரசர்,அரசி,ராணி,மன்னர்,மகாராணி,பேரரசர்",
    "th": "สมเด็จพระราชินีนาถ,พระราชินี,ราชินี,กษัตริย์,พระเจ้า,จักรพรรดิ,จักรพรรดินี",
    "tr": "kral,kraliçe,imparator,imparatoriçe,çar,çariçe,sultan,prens,prenses,papa",
    "uk": "король,королева,імператор,імператриця,цар,цариця,князь,княгиня,принц,принцеса,папа,святий,свята",
    "ur": "ملکہ,بادشاہ,شاہ,شہنشاہ,شہزادہ,شہزادی,پوپ,سلطان",
    "vi": "nữ hoàng,nữ vương,hoàng hậu,vua,hoàng đế,quốc vương,hoàng tử,công chúa,giáo hoàng,sa hoàng",
    "zh": "女王,国王,皇帝,女皇,沙皇,皇后,王后,王子,公主,教皇,教宗",
}


@cache
def titles(lang: str) -> tuple[tuple[Word, ...], ...]:
    """The titles of a language, each as its words, the longest first; none where the language is not listed."""
    found = (tuple(split_words(title)) for title in _TITLES.get(lang, "").split(",") if title)
    return tuple(sorted(found, key=lambda title: (-len(title), title[0].text)))
