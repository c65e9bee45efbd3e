"""Function words and letters of languages, written by hand: the second witness beside the classifier.

Languages that are often taken for one another have to be here together, or the one that is listed wins.
"""

from __future__ import annotations

_WORDS = {
    "en": """the of and to in a is that it for was on are as with his they at be this have from or had by
        not but what all were we when your can said there an which she do their if will each about
        how up out them then so some her would make like him into has than been who its now did get
        may no my he you i me our just don't it's i'm you're can't isn't doesn't didn't won't that's
        there's i've i'll never only why because where any more other us should could does these
        those am very two first over after before being too off down much many such same without
        between again while here let always here's what's he's she's""",
    "es": """de la que el en y a los se del las un por con no una su para es al lo como más o pero sus le
        ya este sí porque esta entre cuando muy sin sobre también me hasta hay donde quien desde
        todo nos durante todos uno les ni contra otros ese eso ante ellos esto mí antes algunos qué
        unos yo otro otras otra él tanto esa estos mucho nada muchos cual poco ella estar estas mi
        tu te si son ser está era fue tiene puede hace cada mas e u siempre mejor nunca así soy eres
        estoy somos aquí""",
    "de": """der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als auch es an
        werden aus er hat dass daß sie nach wird bei einer um am sind noch wie einem über einen so
        zum war haben nur oder aber vor zur bis mehr durch man sein wurde wenn ich du wir ihr mir
        mich dir dich uns kann was wer wo da dann doch schon hier kein keine ja nein immer mal ihm
        ihn ihre seine mein dein alle jeder nichts hab habe bin bist sehr denn weil gegen ohne unter
        diese dieser dieses beim vom ins eines muss soll machen macht gibt können hat's gut etwas""",
    "pt": """de a o que e do da em um para é com não uma os no se na por mais as dos como mas foi ao ele
        das tem à seu sua ou ser quando muito há nos já está eu também só pelo pela até isso ela
        entre era depois sem mesmo aos ter seus quem nas me esse eles estão você vocês essa num nem
        suas meu às minha têm numa pelos elas havia seja qual será nós tenho lhe deles essas esses
        pelas este dele tu te lo isto aquilo são nao voce vc eh pra tudo nada nunca sempre porque
        ainda pode fazer vai vou então bem cada todo todos sou estou somos aqui""",
    "pl": """i w nie na z do się to jest że o jak ale po co tak za od być dla może czy już tylko był go
        by jej jego ma mnie ich przez a jestem tego są ten sie mi przed pod bez kto gdy te tym kiedy
        bardzo ja ty on ona my wy oni mam masz nic coś cos jeszcze nawet gdzie bo więc wiec ze też
        tez tu tam no niech jeśli jesli jeżeli które który która aby oraz lub przy nad u we moze
        zeby żeby wszystko wszyscy tej ta było bylo była będzie bedzie dobrze dlaczego trzeba można
        mozna ci cię cie jako je jesteś jesteśmy czym""",
    "it": """di e il la che in un a per è non una sono mi si ho ma l'ha lo ha le ti i con cosa se io come
        da ci no questo qui hai sei del bene tu sì me al gli della perché più nel solo mio lei ne
        dei alla anche era quando fare così essere chi tutto molto lui o su te noi mai niente questa
        nella delle dal sua suo dalla loro può dove quello tutti senza poi sempre stato ed ad ogni
        alle degli nei agli sul sulla tra fra cui quanto allora già perche' piu' e' cosi' puo' po'
        uno mia tua tuo dio c'è c'e' dell'ha d'un l' un' due fa va d' dell' all' nell' sull' dall'
        c' s' siamo sta""",
    "fr": """de la le et les des en un du une que est pour qui dans a par plus pas au sur ne se ce il
        sont avec son aux ou cette comme mais on être fait ses tout sa ces nous vous je tu elle ils
        leur leurs même y sans peut deux si très bien non où entre encore aussi dont après avant
        sous mon ma mes ton ta tes notre votre nos vos moi toi lui c'est n'est j'ai qu'il d'un d'une
        qu'un s'il n'a l'on quand rien jamais toujours faire quoi avoir été était ont cela ça peu
        tous toutes à chaque chez comment ca va l' d' qu' c' n' s' j' m' t' suis es êtes est-ce cet
        celle celui ici alors""",
    "cs": """a se v na je že o s z do i to k ve pro za by ale si po jako jsou od jsem tak co které který
        jeho jak když než nebo už bylo však podle jen mezi byl kde být její až aby ne má ho mu ji
        není jste jsme bych ten ta ty tím tom tu toho této tento tato při před pod nad bez kdo kdy
        proč protože ani také my vy on ona oni mě mi mně ti tě člověk nic všechno vždy ještě jenom
        může lze která u ze lidé asi dobře pak než-li kdyby bude budou byla byly""",
    "sk": """a sa v na je že o s z do i to k vo pre za by ale si po ako sú od som tak čo ktoré ktorý
        ktorá jeho keď než alebo už bolo však podľa len medzi bol kde byť jej až aby nie má ho mu ju
        ste sme ten tá tým tom tu toho táto tento pri pred pod nad bez kto kedy prečo pretože ani
        tiež môže veľmi bude budú bola boli zo ešte všetko nič človek""",
    "eo": """la kaj de en al ne estas por kun li ĝi mi ke el sed pri oni ŝi ili ni vi kiu kiuj kio kiel
        kiam se tio tiu ĉi ĉe sur per pli plej ankaŭ nur jam aŭ ol tiel kiom ĝis inter sen post
        antaŭ estis havas povas iu io ĉiu ĉio ĉiuj tute nek ja do kie jen tre unu sia sian sin lia
        mia via ĝia ilia dum kontraŭ sub super tra ĉar krom laŭ malgraŭ nenio neniu neniam ĉiam ofte
        faras venas fari esti havi kiun tion ĝin ĉion estu lin min vin ilin""",
    "nl": """de van een het en in is dat op te zijn met voor die niet aan er om ook als maar dan door
        over bij uit naar ze hij wordt worden werd tot heeft je ik hebben deze kan nog zou geen wel
        meer of dit wat was had zo hun haar we u mijn jij wij alle al veel moet onder waar wie hoe
        zich tegen toen kunnen zonder na""",
    "af": """die en van is in 'n nie het dit wat te met vir om op sy word sal was ek hulle aan ons na as
        hy ook maar deur by jou jy kan haar daar uit tot oor of moet baie geen sonder nog wees dat
        hierdie""",
    "sv": """och i att en det som på är av för med den till inte har de ett om han var jag men sig från
        vi så kan när du man ska hon eller nu också efter bara där år mot vid än dig mig hur vad
        skulle alla många denna detta dessa över under upp ut ingen något några finns får blir varje
        sina sin utan då hans honom""",
    "da": """og i at det er en til af på for med der den de ikke har som jeg et var han kan fra du vi om
        men så sig hun vil ved skal efter eller hvad nu også kun når hvor blev være mig dig alle
        denne dette disse over under ud op ingen noget nogle bliver hver sin sine uden da hans ham
        mere meget hvis""",
    "no": """og i det er på som en til av for med at den de ikke har jeg et var han kan fra du vi om men
        så seg hun vil ved skal etter eller hva nå også bare når hvor ble være meg deg alle denne
        dette disse over under ut opp ingen noe noen blir hver sin sine uten da hans ham mer mye
        hvis""",
    "fi": """ja on ei se että hän oli en mutta ovat kun niin minä ole mitä tai jos kuin sen sinä vain nyt
        ne joka myös hänen olen mikä he voi tämä minun kaikki sitten siitä tässä olla jo vielä koska
        siellä sitä me te jonka jotka kuka miksi ilman mukaan""",
    "et": """ja on ei see et ta oli ma aga kui ka siis nii mis mida või kes seda ole sa ning oma nad me
        te kõik ainult veel juba selle pole siin sest ilma pärast kuid olla saab""",
    "hu": """a az és hogy nem is van egy ez de meg csak ha el már mint vagy ki én te ő mi ti ők azt ezt
        volt lesz minden nincs még aki ami amely sem kell lehet után nagyon mert akkor fel le be itt
        ott hogyan mit miért egyik szerint között nélkül való ne jó""",
    "ro": """de și si în in la a cu nu că ca pe un o este din pentru care mai sunt se s-a am ai al ale
        lui ei eu tu el ea noi voi ce dar sau când cum dacă fi fost după până fără sub prin între
        acest această acesta toate tot doar foarte unde cine va vor au îi își sa să le lor""",
    "ca": """de la el i a que en els per un les una amb no és del es al l'home d'un més però com si o són
        aquest aquesta va ha seu seva dels també ser tot molt quan on sense sobre entre fins des pel
        cada ho hi em et li nosaltres vostè què qui perquè jo tu ell ella meu teu pot fer l' d' s'
        n' m'""",
    "gl": """de a o que e do da en un para é con non unha os no se na por máis as dos como mais foi ao el
        das ten á seu súa ou ser cando moi hai nos xa está eu tamén só polo pola ata iso ela entre
        era despois sen mesmo aos quen nas lle eles estes isto son tódolos""",
    "oc": """de la lo e a que en los per un las una amb non es del se al mai mas coma si o son aqueste
        aquesta dins sens tot plan quand ont fins cada dels tanben""",
    "la": """et in est non ad ut cum sed quod qui si ex aut sunt ab de quae per nec enim quam esse hoc
        etiam atque ne eius sic tu ego me te se nos quid nihil omnia semper ac pro sine inter post
        ante tamen erat fuit""",
    "tr": """ve bir bu için da de ne ile çok daha ama gibi en var o ben sen biz siz onlar mi mı değil
        kadar olan olarak her sonra ya şey yok hiç nasıl neden kim ki veya ise bile göre olduğu
        ancak önce tüm bana sana beni seni onu şu iyi eğer""",
    "hr": """i u je na se da za su od s ne to koji a o kao li ali iz što će bi po samo sve ili još nije
        bio ako kad jer nego gdje tko šta koja koje mi ti on ona oni vi me te ga mu joj bez pri pod
        nad pred prije poslije između kroz biti može sam si smo ste""",
    "sl": """in je na se da za so od z s ne to ki a o kot pa ali iz kaj bo bi po samo vse še ni bil če ko
        ker kje kdo ti on ona oni vi me te ga mu brez pri pod nad pred med lahko sem si smo ste v
        tudi več zelo""",
    "lt": """ir yra kad į iš su tai ne kaip bet jo jis buvo už ar tik jau dar per po apie nuo jie ji aš
        tu mes jūs kas ką kur kai nes taip labai visi šis ši be prie arba gali būti""",
    "lv": """un ir ka no ar uz par tas nav kā bet viņš bija vai tikai jau vēl pēc pie es tu mēs jūs kas
        ko kur kad jo tā ļoti visi šis šī bez līdz var būt arī""",
    "vi": """và của là có cho không được một với các những này trong người đã để khi từ như cũng đến về
        thì sẽ tôi bạn ra vào nhưng nếu mà hay rất gì ai đó năm bị nó chỉ trên theo tại""",
    "id": """yang dan di ini itu dengan untuk tidak dari dalam akan pada juga saya ke karena tersebut
        bisa ada mereka lebih kata tahun sudah atau saat oleh menjadi orang ia telah adalah seperti
        sebagai bahwa dapat para harus namun kita dua satu masih hari hanya kamu dia apa aku tanpa""",
    "eu": """eta da ez bat du ere dira izan zen hori baina dute edo bere egin dago den zuen gabe oso ni
        zu hau horrek nola non nor zer baino beste guztiak bezala arte duen""",
    "cy": """yn y a i o ar ei yr mae am wedi ac bod gan wrth fel hyn nid oedd neu ond un eu hi fod ni chi
        mewn dim sydd bydd roedd gyda cael hwn hon mwy fy dy ein eich pan""",
    "ga": """an na agus is i a ar le do go bhí tá sé sí ní ag ó de mar ach as nach leis gur bhfuil féin
        seo sin atá faoi chun raibh mé tú siad gach""",
    "is": """og að í á er sem það ekki við til var en um með af hann ég fyrir því eru hún þú ef þá frá
        hafa verið eða svo þegar upp eftir bara mig þig þetta allt""",
    "sq": """dhe të në një e i për me nga që është nuk u së ka si më do janë por se kjo ky ai ajo ishte
        edhe kur ose pa te tek unë ti""",
    "sw": """na ya wa kwa ni katika la za cha hiyo huo kuwa ambao hii kama yake lakini watu pia hakuna
        sana mimi wewe yeye""",
    "tl": """ang ng sa na mga ay at si ko hindi ka mo ito kung para ni isang siya ako may kay pero lang
        niya nila namin kami tayo""",
    "nds": """de un in dat is to en van för mit op nich as ok vun he se wi ik du bi ut na wat hett sünd
        weer harr dor den'n""",
    "fy": """de en fan it yn is dat op te foar mei net in hy wie oan ek by as út sy har nei ta om syn""",
    "lb": """an de vun d' ass zu en dat mat fir op net den eng ech si hien och wéi war nëmmen sinn hunn
        beim awer""",
    "ia": """de le e in que un es a pro non del con per se esser al como ha o ma iste illo plus sed su""",
    "io": """la e di en a qua kun por da ne esas on ol il ni vi li ma sed o pri pos plu ula omna""",
    "ast": """de la que el en y a los se del les un por con nun una pa ye al lo como más o pero yá esta
        ente cuando ensin tamién hai onde""",
    "ru": """и в не на что я с он как это по но к а у за из от то мы вы же так его бы для она они если
        или ты ее только мне было был когда есть нет ещё еще до во все всё чем кто где быть может
        можно при без себя со ни даже уже под об них этот этого тоже который которые которая также
        вам нам меня тебя ли""",
    "uk": """і в не на що я з він як це по але до а у за із від то ми ви ж так його б для вона вони якщо
        або ти її тільки мені було був коли є немає ще й та все чим хто де бути може можна при без
        себе зі ні навіть вже під про них цей який які також""",
    "be": """і ў не на што я з ён як гэта па але да а у за ад мы вы ж так яго б для яна яны калі або ты
        толькі мне было быў ёсць няма яшчэ й ды ўсё хто дзе можа без ні нават ужо пра які якія
        таксама""",
    "bg": """и в не на че аз с той как това по но към а у за от то ние вие да се е са си ще ли би тя те
        ако или ти само ми беше има няма още до във всичко кой къде може при без дори вече под който
        които също ни му""",
    "sr": """и у је на се да за су од с не то који а о као ли али из што ће би по само све или још није
        био ако кад јер него где ко шта која које ми ти он она они ви ме те га му без при под над
        пред пре после између кроз""",
    "mk": """и во е на се да за од со не тоа кој а што како ли но ќе би по само сè или уште беше ако кога
        каде ја ги го му таа тие ние вие без при под над пред меѓу низ сум си сме сте""",
}

FUNCTION_WORDS = {language: frozenset(words.split()) for language, words in _WORDS.items()}
"""ISO 639 code → the words that hold its sentences together, in lower case."""

LETTERS = {
    "en": "éèï", "es": "áéíóúüñªº", "de": "äöüß", "pt": "áâãàçéêíóôõúüªº", "pl": "ąćęłńóśźż",
    "it": "àèéìíîòóùú", "fr": "àâæçéèêëîïôœùûüÿ", "cs": "áčďéěíňóřšťúůýž", "sk": "áäčďéíĺľňóôŕšťúýž",
    "eo": "ĉĝĥĵŝŭ", "nl": "áéíóúëïèö", "af": "êëéèôöûïáí", "sv": "åäöéà", "da": "æøåéé", "no": "æøåéòôó",
    "fi": "äöåšž", "et": "äöõüšž", "hu": "áéíóöőúüű", "ro": "ăâîșțşţ", "ca": "àçèéíïòóúü",
    "gl": "áéíóúñüï", "oc": "áàçèéíïòóúü", "tr": "çğıöşüâîû", "hr": "čćđšž", "sl": "čšž",
    "lt": "ąčęėįšųūž", "lv": "āčēģīķļņšūž", "is": "áðéíóúýþæö", "sq": "çë", "cy": "âêîôûŵŷäëïöü",
    "ga": "áéíóú", "eu": "ñç", "id": "é", "la": "āēīōūæœ", "ast": "áéíóúüñ", "ia": "", "io": "",
    "nds": "äöü", "fy": "âêôûúëï", "lb": "äëéöü", "sw": "", "tl": "ñ",
    "vi": "àáâãèéêìíòóôõùúýăđĩũơưạảấầẩẫậắằẳẵặẹẻẽếềểễệỉịọỏốồổỗộớờởỡợụủứừửữựỳỵỷỹ",
    "ru": "абвгдеёжзийклмнопрстуфхцчшщъыьэюя", "uk": "абвгґдеєжзиіїйклмнопрстуфхцчшщьюя",
    "be": "абвгдеёжзійклмнопрстуўфхцчшыьэюя", "bg": "абвгдежзийклмнопрстуфхцчшщъьюя",
    "sr": "абвгдђежзијклљмнњопрстћуфхцчџш", "mk": "абвгдѓежзѕијклљмнњопрстќуфхцчџш",
}  # fmt: skip
"""ISO 639 code → its letters beyond a to z; a language that is not here is not judged by letters."""
