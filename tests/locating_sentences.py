"""Own sentences in many languages, the object marked: language, sentence, object label, subject label, English label.

They were written for these tests by the rules of docs/locating.md and use no published sentence. Endings belong to the
object, articles, prepositions (glued ones too) and Korean particles do not.
"""

from __future__ import annotations

SENTENCES = """
af|Die hoofstad van Namibië is ⟦Windhoek⟧.|Windhoek|Namibië|Windhoek
af|Marie se moedertaal is ⟦Duits⟧.|Duits|Marie|German
ar|وُلد نجيب محفوظ في ⟦القاهرة⟧.|القاهرة|نجيب محفوظ|Cairo
ar|كُتبت الرواية ب⟦اللغة الفرنسية⟧.|اللغة الفرنسية|الرواية|French
ar|تعمل سلمى ل⟦جوجل⟧.|جوجل|سلمى|Google
ar|عاصمة تونس هي مدينة ⟦تونس⟧.|تونس|تونس|Tunis
az|Azərbaycanın paytaxtı ⟦Bakıdır⟧.|Bakı|Azərbaycan|Baku
az|Kərim ⟦Gəncədə⟧ anadan olub.|Gəncə|Kərim|Ganja
be|Ён нарадзіўся ў ⟦Мінску⟧.|Мінск||Minsk
be|Сталіца Грузіі — ⟦Тбілісі⟧.|Тбілісі|Грузія|Tbilisi
bg|Столицата на Гърция е ⟦Атина⟧.|Атина|Гърция|Athens
bg|Романът е написан на ⟦български език⟧.|български език|Романът|Bulgarian
bn|বাংলাদেশের রাজধানী ⟦ঢাকা⟧।|ঢাকা|বাংলাদেশ|Dhaka
bn|রবি ⟦কলকাতায়⟧ জন্মগ্রহণ করেন।|কলকাতা|রবি|Kolkata
ca|La capital d'Itàlia és ⟦Roma⟧.|Roma|Itàlia|Rome
ca|La novel·la va ser escrita en ⟦català⟧.|català|La novel·la|Catalan
ceb|Ang kaulohan sa Pilipinas mao ang ⟦Manila⟧.|Manila|Pilipinas|Manila
cs|Jan se narodil v ⟦Praze⟧.|Praha|Jan|Prague
cs|Ústředí firmy sídlí v ⟦Hradci Králové⟧.|Hradec Králové|Firma|Hradec Králové
cs|Anna pracuje pro ⟦Karlovu univerzitu⟧.|Univerzita Karlova|Anna|Charles University
cy|Prifddinas Cymru yw ⟦Caerdydd⟧.|Caerdydd|Cymru|Cardiff
cy|Cafodd Dylan ei eni yng ⟦Nghaerdydd⟧.|Caerdydd|Dylan|Cardiff
cy|Ganwyd hi ym ⟦Mangor⟧.|Bangor||Bangor
da|Hovedstaden i Sverige er ⟦Stockholm⟧.|Stockholm|Sverige|Stockholm
da|Sangen er skrevet på ⟦dansk⟧.|dansk|Sangen|Danish
de|Goethe wurde in ⟦Frankfurt am Main⟧ geboren.|Frankfurt am Main|Goethe|Frankfurt
de|Bern ist die Hauptstadt der ⟦Schweiz⟧.|Schweiz|Bern|Switzerland
de|Berlin ist die Hauptstadt ⟦Deutschlands⟧.|Deutschland|Berlin|Germany
de|Der Roman wurde auf ⟦Deutsch⟧ geschrieben.|deutsche Sprache|Der Roman|German
de|Paris ist die Hauptstadt der ⟦Französischen Republik⟧.|Französische Republik|Paris|French Republic
el|Η πρωτεύουσα της Γαλλίας είναι το ⟦Παρίσι⟧.|Παρίσι|Γαλλία|Paris
el|Ο Νίκος γεννήθηκε στη ⟦Θεσσαλονίκη⟧.|Θεσσαλονίκη|Νίκος|Thessaloniki
el|Η Αθήνα είναι η πρωτεύουσα της ⟦Ελλάδας⟧.|Ελλάδα|Αθήνα|Greece
en|The capital of Mexico is ⟦Mexico City⟧.|Mexico City|Mexico|Mexico City
en|The bridge is ⟦Boston's⟧.|Boston|The bridge|Boston
es|La sede de la Universidad de Granada está en ⟦Granada⟧.|Granada|Universidad de Granada|Granada
es|Ana nació en ⟦Córdoba⟧ (Argentina).|Córdoba|Ana|Córdoba
et|Anna sündis ⟦Tallinnas⟧.|Tallinn|Anna|Tallinn
et|Raamat on kirjutatud ⟦soome keeles⟧.|soome keel|Raamat|Finnish
eu|Miren ⟦Bilbon⟧ jaio zen.|Bilbo|Miren|Bilbao
eu|Frantziako hiriburua ⟦Paris⟧ da.|Paris|Frantzia|Paris
fa|پایتخت ایران ⟦تهران⟧ است.|تهران|ایران|Tehran
fa|او در ⟦شیراز⟧ به دنیا آمد.|شیراز||Shiraz
fi|Anna syntyi ⟦Helsingissä⟧.|Helsinki|Anna|Helsinki
fi|Yrityksen pääkonttori on ⟦Turussa⟧.|Turku|Yritys|Turku
fi|Kirja on kirjoitettu ⟦ruotsiksi⟧.|ruotsi|Kirja|Swedish
fi|Ranskan pääkaupunki on ⟦Pariisi⟧.|Pariisi|Ranska|Paris
fi|Laulaja syntyi ⟦New Yorkissa⟧.|New York|Laulaja|New York City
fr|La capitale de l'Allemagne est ⟦Berlin⟧.|Berlin|Allemagne|Berlin
fr|Bonn fut la capitale de l'⟦Allemagne de l'Ouest⟧.|Allemagne de l'Ouest|Bonn|West Germany
fr|Le siège de la société est situé aux ⟦États-Unis⟧.|États-Unis|la société|United States
fr|L'opéra a été écrit en ⟦italien⟧.|italien|L'opéra|Italian
ga|Is í ⟦Baile Átha Cliath⟧ príomhchathair na hÉireann.|Baile Átha Cliath|Éire|Dublin
ga|Rugadh Máire i ⟦gCorcaigh⟧.|Corcaigh|Máire|Cork
ga|Rugadh Seán i ⟦mBéal Feirste⟧.|Béal Feirste|Seán|Belfast
gl|A capital de Portugal é ⟦Lisboa⟧.|Lisboa|Portugal|Lisbon
he|בירת צרפת היא ⟦פריז⟧.|פריז|צרפת|Paris
he|דנה נולדה ב⟦תל אביב⟧.|תל אביב|דנה|Tel Aviv
he|הספר נכתב ב⟦אנגלית⟧.|אנגלית|הספר|English
hi|भारत की राजधानी ⟦नई दिल्ली⟧ है।|नई दिल्ली|भारत|New Delhi
hi|उनका जन्म ⟦मुंबई⟧ में हुआ था।|मुंबई||Mumbai
hr|Ana je rođena u ⟦Splitu⟧.|Split|Ana|Split
hu|Anna ⟦Budapesten⟧ született.|Budapest|Anna|Budapest
hu|A könyvet ⟦angolul⟧ írták.|angol|A könyv|English
hu|A cég központja ⟦Prágában⟧ van.|Prága|A cég|Prague
hu|Jókai ⟦Komáromban⟧ született.|Komárom|Jókai|Komárom
hy|Արամը ծնվել է ⟦Երևանում⟧։|Երևան|Արամ|Yerevan
hy|Ֆրանսիայի մայրաքաղաքը ⟦Փարիզն⟧ է։|Փարիզ|Ֆրանսիա|Paris
id|Ibu kota Jepang adalah ⟦Tokyo⟧.|Tokyo|Jepang|Tokyo
it|La sede dell'azienda è a ⟦Reggio Emilia⟧.|Reggio Emilia|l'azienda|Reggio Emilia
it|Torino fu la capitale dell'⟦Italia⟧.|Italia|Torino|Italy
it|Il libro è stato scritto in ⟦francese⟧.|lingua francese|Il libro|French
ja|ドイツの首都は⟦ベルリン⟧です。|ベルリン|ドイツ|Berlin
ja|夏目漱石は⟦東京⟧で生まれました。|東京都|夏目漱石|Tokyo
ja|その小説は⟦英語⟧で書かれた。|英語|その小説|English
ja|ソニーの本社は⟦港区⟧にある。|港区|ソニー|Minato
ka|საქართველოს დედაქალაქი არის ⟦თბილისი⟧.|თბილისი|საქართველო|Tbilisi
ka|ნინო დაიბადა ⟦ბათუმში⟧.|ბათუმი|ნინო|Batumi
ko|대한민국의 수도는 ⟦서울⟧이다.|서울|대한민국|Seoul
ko|그는 ⟦부산⟧에서 태어났다.|부산||Busan
ko|그 소설은 ⟦영어⟧로 쓰였다.|영어|그 소설|English
ko|민수는 ⟦삼성전자⟧에서 일한다.|삼성전자|민수|Samsung Electronics
la|Caput Italiae est ⟦Roma⟧.|Roma|Italia|Rome
lt|Jonas gimė ⟦Vilniuje⟧.|Vilnius|Jonas|Vilnius
lt|Prancūzijos sostinė yra ⟦Paryžius⟧.|Paryžius|Prancūzija|Paris
lt|Būstinė yra ⟦Kaune⟧.|Kaunas|Būstinė|Kaunas
lv|Anna dzimusi ⟦Rīgā⟧.|Rīga|Anna|Riga
lv|Grāmata ir sarakstīta ⟦vācu valodā⟧.|vācu valoda|Grāmata|German
mk|Главен град на Македонија е ⟦Скопје⟧.|Скопје|Македонија|Skopje
ms|Ibu negara Malaysia ialah ⟦Kuala Lumpur⟧.|Kuala Lumpur|Malaysia|Kuala Lumpur
nb|Hovedkontoret ligger i ⟦Bergen⟧.|Bergen|Hovedkontoret|Bergen
nl|Anna werkt voor de ⟦Universiteit Leiden⟧.|Universiteit Leiden|Anna|Leiden University
nl|De hoofdstad van Nederland is ⟦Amsterdam⟧.|Amsterdam|Nederland|Amsterdam
pl|Maria urodziła się w ⟦Warszawie⟧.|Warszawa|Maria|Warsaw
pl|Siedziba firmy znajduje się w ⟦Łodzi⟧.|Łódź|Firma|Łódź
pl|Piosenka została napisana w ⟦języku polskim⟧.|język polski|Piosenka|Polish
pl|Stolicą Czech jest ⟦Praga⟧.|Praga|Czechy|Prague
pl|Jan pracuje dla ⟦Uniwersytetu Jagiellońskiego⟧.|Uniwersytet Jagielloński|Jan|Jagiellonian University
pt|A capital do Brasil é ⟦Brasília⟧.|Brasília|Brasil|Brasília
pt|João nasceu no ⟦Rio de Janeiro⟧.|Rio de Janeiro|João|Rio de Janeiro
ro|Capitala Franței este ⟦Paris⟧.|Paris|Franța|Paris
ro|București este capitala ⟦României⟧.|România|București|Romania
ro|Cartea a fost scrisă în ⟦limba română⟧.|limba română|Cartea|Romanian
ru|Столица Литвы — ⟦Вильнюс⟧.|Вильнюс|Литва|Vilnius
sk|Jozef sa narodil v ⟦Bratislave⟧.|Bratislava|Jozef|Bratislava
sk|Hlavným mestom Rakúska je ⟦Viedeň⟧.|Viedeň|Rakúsko|Vienna
sl|Ana je bila rojena v ⟦Ljubljani⟧.|Ljubljana|Ana|Ljubljana
sl|Knjiga je napisana v ⟦nemščini⟧.|nemščina|Knjiga|German
sq|Kryeqyteti i Shqipërisë është ⟦Tirana⟧.|Tirana|Shqipëria|Tirana
sq|Ai lindi në ⟦Durrës⟧.|Durrësi||Durrës
sr|Ана је рођена у ⟦Београду⟧.|Београд|Ана|Belgrade
sr|Knjiga je napisana na ⟦srpskom jeziku⟧.|српски језик|Knjiga|Serbian
sv|Stockholm är huvudstad i ⟦Sverige⟧.|Sverige|Stockholm|Sweden
sv|Boken skrevs på ⟦svenska⟧.|svenska|Boken|Swedish
sw|Mji mkuu wa Kenya ni ⟦Nairobi⟧.|Nairobi|Kenya|Nairobi
ta|தமிழ்நாட்டின் தலைநகரம் ⟦சென்னை⟧ ஆகும்.|சென்னை|தமிழ்நாடு|Chennai
ta|அவர் ⟦மதுரையில்⟧ பிறந்தார்.|மதுரை||Madurai
th|เมืองหลวงของประเทศไทยคือ⟦กรุงเทพมหานคร⟧|กรุงเทพมหานคร|ประเทศไทย|Bangkok
th|เขาเกิดที่⟦เชียงใหม่⟧|เชียงใหม่||Chiang Mai
tr|Orhan ⟦İstanbul'da⟧ doğdu.|İstanbul|Orhan|Istanbul
tr|Türkiye'nin başkenti ⟦Ankara'dır⟧.|Ankara|Türkiye|Ankara
tr|Kitap ⟦İngilizce⟧ yazılmıştır.|İngilizce|Kitap|English
tr|Ayşe ⟦Ankara Üniversitesi'nde⟧ çalışıyor.|Ankara Üniversitesi|Ayşe|Ankara University
uk|Книгу написано ⟦українською мовою⟧.|українська мова|Книга|Ukrainian
uk|Олена народилася у ⟦Львові⟧.|Львів|Олена|Lviv
ur|پاکستان کا دارالحکومت ⟦اسلام آباد⟧ ہے۔|اسلام آباد|پاکستان|Islamabad
vi|Thủ đô của Việt Nam là ⟦Hà Nội⟧.|Hà Nội|Việt Nam|Hanoi
vi|Ông sinh ra ở ⟦Thành phố Hồ Chí Minh⟧.|Thành phố Hồ Chí Minh||Ho Chi Minh City
zh|法国的首都是⟦巴黎⟧。|巴黎|法国|Paris
zh|他在⟦微软⟧工作。|微软公司||Microsoft
"""


def cases() -> list[tuple[str, str, str, str, str, str]]:
    """Each as (language, sentence, object form, object label, subject label, English label)."""
    rows = []
    for line in SENTENCES.strip().splitlines():
        lang, marked, label, subject, english = line.split("|")
        before, _, rest = marked.partition("⟦")
        form, _, after = rest.partition("⟧")
        rows.append((lang, before + form + after, form, label, subject, english))
    return rows
