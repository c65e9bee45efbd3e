"""Which language a text is in, and when that cannot be told."""

from __future__ import annotations

import codecs
import time

import pytest

from tasks.corpus.language import UNDETERMINED, detect_language, detect_languages

TEXTS = {
    "en": "The miller got up before the sun, opened the gate and let the water run onto the wheel.",
    "es": "El molinero se levantó antes que el sol, abrió la compuerta y dejó correr el agua sobre la rueda.",
    "de": "Der Müller stand vor der Sonne auf, öffnete das Wehr und ließ das Wasser auf das Rad laufen.",
    "fr": "Le meunier se leva avant le soleil, ouvrit la vanne et laissa l'eau couler sur la roue.",
    "it": "Il mugnaio si alzò prima del sole, aprì la chiusa e lasciò che l'acqua scorresse sulla ruota.",
    "pt": "O moleiro levantou-se antes do sol, abriu a comporta e deixou que a água corresse sobre a roda.",
    "pl": "Młynarz wstał przed słońcem, otworzył śluzę i puścił wodę na koło młyńskie.",
    "cs": "Mlynář vstal před sluncem, otevřel stavidlo a pustil vodu na mlýnské kolo.",
    "nl": "De molenaar stond voor de zon op, opende de sluis en liet het water op het rad lopen.",
    "sv": "Mjölnaren steg upp före solen, öppnade luckan och lät vattnet rinna på hjulet.",
    "tr": "Değirmenci güneşten önce kalktı, kapağı açtı ve suyun çarkın üzerine akmasına izin verdi.",
    "eo": "La muelisto leviĝis antaŭ la suno, malfermis la kluzon kaj lasis la akvon flui sur la radon.",
    "ru": "Мельник встал до восхода солнца, открыл заслонку и пустил воду на колесо.",
    "uk": "Мельник прокинувся ще до світанку, відчинив заставку і пустив воду на колесо.",
    "el": "Ο μυλωνάς σηκώθηκε πριν από τον ήλιο και άφησε το νερό να τρέξει.",
    "he": "הטוחן קם לפני הזריחה, פתח את הסכר ונתן למים לזרום על הגלגל.",
    "ar": "استيقظ الطحان قبل شروق الشمس وفتح البوابة وترك الماء يجري على العجلة.",
    "th": "คนสีข้าวตื่นก่อนพระอาทิตย์ขึ้นแล้วเปิดประตูน้ำ",
    "zh": "磨坊主在日出之前起床，打开水闸，让水流到轮子上。",
    "ja": "粉屋は日の出前に起きて、水門を開け、水を水車に流した。",
    "ko": "방앗간 주인은 해가 뜨기 전에 일어나 수문을 열었다.",
}
LATIN = ("en", "es", "de", "fr", "it", "pt", "pl", "cs", "nl", "sv", "tr", "eo")
SHORT = {
    "en": "Are you having fun yet?",
    "es": "No es oro todo lo que reluce.",
    "de": "Das ist nicht mein Bier.",
    "fr": "Il n'y a pas de fumée sans feu.",
    "it": "Non è tutto oro quello che luccica.",
    "pt": "Você não sabe o que diz.",
    "pl": "Nie wiem, co to jest.",
    "ru": "Я не знаю, что это такое.",
    "zh": "不在其位，不谋其政，君子也。",
    "ja": "これは何ですか。分かりません。",
}


@pytest.mark.parametrize("language", TEXTS)
def test_a_sentence_gets_its_language(language: str) -> None:
    found, score = detect_language(TEXTS[language])
    assert found == language
    assert 0.5 < score <= 1


@pytest.mark.parametrize("language", SHORT)
def test_a_short_sentence_gets_its_language(language: str) -> None:
    assert detect_language(SHORT[language])[0] == language


@pytest.mark.parametrize("language", LATIN)
def test_capitals_change_nothing(language: str) -> None:
    assert detect_language(TEXTS[language].upper())[0] == language


@pytest.mark.parametrize("language", TEXTS)
@pytest.mark.parametrize("between", ["\n", "\r\n\r\n", "\u2028", "\t \n"])
def test_many_lines_get_one_label(language: str, between: str) -> None:
    assert detect_language(between.join([TEXTS[language]] * 40))[0] == language


@pytest.mark.parametrize("language", LATIN)
def test_a_line_broken_at_every_word_is_the_same_text(language: str) -> None:
    assert detect_language(TEXTS[language].replace(" ", "\n")) == detect_language(TEXTS[language])


@pytest.mark.parametrize("language", ["en", "es", "de", "fr", "it", "pt"])
@pytest.mark.parametrize("texts", [TEXTS, SHORT])
def test_a_text_in_rot13_is_in_no_language(language: str, texts: dict[str, str]) -> None:
    assert detect_language(codecs.encode(texts[language], "rot13")) == (UNDETERMINED, 0.0)


def test_a_long_text_in_rot13_is_in_no_language() -> None:
    text = "\n".join(TEXTS[language] for language in ("en", "es", "de", "fr")) * 50
    assert detect_language(codecs.encode(text, "rot13"))[0] == UNDETERMINED


@pytest.mark.parametrize("shift", range(1, 26))
def test_a_text_with_shifted_letters_is_not_its_language(shift: int) -> None:
    alphabet = "abcdefghijklmnopqrstuvwxyz"
    shifted = TEXTS["en"].lower().translate(str.maketrans(alphabet, alphabet[shift:] + alphabet[:shift]))
    assert detect_language(shifted)[0] != "en"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   \n\t \u3000 ",
        "ok",
        "Nein!",
        "你好",
        "12345 67890 + 333 = 44",
        "2026-11-30 17:20:05 0x7ffe 192.168.0.1",
        "😀🎉🚀👍🏽🇪🇸 😀🎉🚀👍🏽🇪🇸 😀🎉🚀👍🏽🇪🇸",
        "def f(x):\n    return x[0] + g(x[1:])\n",
        "while (*p++ = *q++);\n{ if (!x) { y = z(); } }\n",
        "rm -fr ~/* && cat /etc/fstab | grep -v '#'",
        "https://www.example.org/index.html?a=b&c=d",
        "first.last@example.org, other@example.org",
        "asdfjkl qwrtzp xcvbnm sdfghjk wrtpsd fghjkl",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "ha ha ha ha ha ha ha ha ha ha ha ha ha",
        "  /\\_/\\ \n ( o.o )\n  > ^ < \n",
        "\x00\x01\x02\x7f\ufffd\ufeff",
        "ᚠᚢᚦᚨᚱᚲ ᚷᚹᚺᚾᛁᛃ ᛈᛇᛉᛊᛏᛒ",
    ],
)
def test_what_cannot_be_told_is_undetermined_with_score_0(text: str) -> None:
    assert detect_language(text) == (UNDETERMINED, 0.0)


def test_chinese_that_uses_one_kana_is_chinese() -> None:
    assert detect_language(TEXTS["zh"] * 2 + "の")[0] == "zh"


def test_japanese_is_not_chinese_however_many_kanji() -> None:
    assert detect_language("東京都千代田区永田町一丁目に国会議事堂がある。")[0] == "ja"


@pytest.mark.parametrize(
    ("most", "least"), [("en", "es"), ("de", "en"), ("ru", "en"), ("zh", "en"), ("fr", "de")]
)
def test_a_mixed_document_gets_the_language_of_most_of_it(most: str, least: str) -> None:
    paragraphs = [TEXTS[most]] * 4 + [TEXTS[least]]
    assert detect_language("\n\n".join(paragraphs))[0] == most
    assert detect_language("\n\n".join(reversed(paragraphs)))[0] == most


def test_a_page_of_commands_before_the_text_does_not_decide() -> None:
    commands = "./configure --prefix=/usr && make -j4 && make_install DESTDIR=/tmp\n" * 10
    assert detect_language(commands + (TEXTS["de"] + "\n") * 40)[0] == "de"


def test_links_and_terminal_colours_say_nothing() -> None:
    text = f"\x1b[33m{SHORT['de']}\x1b[m https://the-and-of.example.org/with-that-which-is"
    assert detect_language(text)[0] == "de"


def test_typographic_apostrophes_are_apostrophes() -> None:
    assert detect_language(SHORT["fr"].replace("'", "’")) == detect_language(SHORT["fr"])


def test_texts_together_get_what_each_gets_alone_in_any_order() -> None:
    texts = [*TEXTS.values(), "", *SHORT.values(), codecs.encode(TEXTS["es"], "rot13")]
    alone = [detect_language(text) for text in texts]
    assert list(zip(*detect_languages(texts), strict=True)) == alone
    assert list(zip(*detect_languages(texts[::-1]), strict=True)) == alone[::-1]


def test_no_texts_get_no_languages() -> None:
    assert detect_languages([]) == ([], [])


@pytest.mark.parametrize("text", ["\ud800" * 30, f"\udcff{TEXTS['en']}\ud800", f"{TEXTS['ru']}\udfff"])
def test_lone_surrogates_are_passed_over(text: str) -> None:
    assert detect_language(text)[0] == detect_language(text.encode("utf-8", "ignore").decode())[0]


@pytest.mark.parametrize(
    "unit",
    [
        "a",
        " ",
        "\n",
        "a ",
        "a-",
        "a'",
        "(",
        "'",
        "-",
        "_",
        "É",
        "中",
        "あ",
        "я",
        "\ud800",
        "http://",
        "\x1b[",
    ],
)
def test_a_megabyte_of_one_thing_takes_no_longer_than_a_page(unit: str) -> None:
    started = time.process_time()
    _, score = detect_language(unit * (10**6 // len(unit)))
    assert 0 <= score <= 1
    assert time.process_time() - started < 1
