"""Lists of words: how they are read, what counts as a hit, what is masked."""

from __future__ import annotations

import logging
import pickle
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import ValidationError

from tasks.corpus.lexicons.folding import fold
from tasks.corpus.lexicons.lists import Lexicon, LexiconParams, read_lexicon
from tasks.corpus.lexicons.matching import Hit, Lexicons, mask_hits
from tasks.stage import StageError

SAMPLE = Path(__file__).parents[2] / "sample" / "lexicons"
Read = Callable[[bytes], Lexicon]


def lexicons(*entries: str, name: str = "rude", languages: list[str] | None = None) -> Lexicons:
    return Lexicons([Lexicon(LexiconParams(name=name, path="rude.txt", languages=languages), entries)])


def found(text: str, *entries: str) -> list[str]:
    """What stands in the text where entries hit."""
    return [text[hit.start : hit.end] for hit in lexicons(*entries).hits(text, "en")]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Write a list's file and read it."""

    def reader(content: bytes) -> Lexicon:
        (tmp_path / "rude.txt").write_bytes(content)
        return read_lexicon(LexiconParams(name="rude", path="rude.txt"), tmp_path)

    return reader


class TestInnocentWords:
    @pytest.mark.parametrize(
        "text",
        [
            "Scunthorpe", "an assassin", "Essex and Sussex", "hello, shellfish", "class passes", "Arsenal",
            "a@ss.example", "assess the classic Hellenic bassoon", "ass2", "2ass", "сass", "assé",
            "e\u0301ass",
        ],
    )  # fmt: skip
    def test_an_entry_inside_of_a_word_is_no_hit(self, text: str) -> None:
        assert found(text, "cunt", "ass", "sex", "hell", "arse") == []

    @pytest.mark.parametrize(
        "text", ["ass", "(ass)", "ass's", "an ass-like", "_ass_", "ass.", "\nass\t", "Ass!"]
    )
    def test_marks_around_a_word_are_not_part_of_it(self, text: str) -> None:
        assert [word.lower() for word in found(text, "ass")] == ["ass"]

    def test_letters_that_differ_by_an_accent_are_different_letters(self) -> None:
        assert found("el año, el an\u0303o, el ano", "ano") == ["ano"]

    @pytest.mark.parametrize("text", ["1955", "455", "@55", "$$", "1 + 4", "the sh1p"])
    def test_digits_and_signs_alone_spell_nothing(self, text: str) -> None:
        assert found(text, "ass", "iass", "ss", "shit") == []

    def test_letters_that_look_like_others_stand_for_themselves(self) -> None:
        assert found("a bail and a bal1", "ball") == ["bal1"]

    @pytest.mark.parametrize(
        "text", ["x*x*x", "1.2.3", "e.g.", "U.S.A.", "a.s", "b.a.s.s", "a.s-s", "---", "*-*"]
    )
    def test_abbreviations_products_and_versions_are_not_spelled_out_words(self, text: str) -> None:
        assert found(text, "xxx", "ass", "usa s", "eg") == []

    def test_a_run_of_katakana_is_one_word(self) -> None:
        assert found("グローバル変数", "グロ") == []
        assert found("グロい。グロ", "グロ") == ["グロ", "グロ"]


class TestDisguises:
    @pytest.mark.parametrize(
        "written",
        [
            "DAMN", "ｄａｍｎ", "𝐝𝐚𝐦𝐧", "Ｄam\u200bn", "da\u00admn", "d\u2060amn", "da\ufeffmn", "d\u202eamn",
            "d\u0336a\u0336m\u0336n", "da\u034fmn", "d@mn", "d4mn", "d.a.m.n", "d*a*m*n", "d_a_m_n",
            "d-a-m-n", "D.4.M.N",
        ],
    )  # fmt: skip
    def test_a_disguised_word_is_a_hit_and_its_place_is_that_in_the_original(self, written: str) -> None:
        assert found(f"Well, \u200b{written}, ß ﬁne…", "damn") == [written]

    @pytest.mark.parametrize(
        ("written", "entry"),
        [
            ("sh1t", "shit"), ("sh!t", "shit"), ("$hit", "shit"), ("5hit", "shit"), ("shi7", "shit"),
            ("he11", "hell"), ("p00p", "poop"), ("k33p", "keep"), ("1ick", "lick"), ("@$shat", "asshat"),
        ],
    )  # fmt: skip
    def test_digits_and_signs_stand_for_letters_beside_letters(self, written: str, entry: str) -> None:
        assert found(f"so {written}!", entry) == [written]

    @pytest.mark.parametrize("text", ["gros\u0327mot", "grosçmot", "de\u0301be\u0301", "débé", "DÉBÉ"])
    def test_an_accent_is_the_same_in_one_character_or_two(self, text: str) -> None:
        assert len(found(text, "débé", "gro\u015fmot", "grosçmot")) == 1

    @pytest.mark.parametrize("entry", ["ＤＡＭＮ", "da\u200bmn", " Damn ", "\u200b damn"])
    def test_entries_are_folded_as_texts_are(self, entry: str) -> None:
        assert found("damn", entry) == ["damn"]

    def test_characters_that_fold_to_several_are_hit_whole(self) -> None:
        assert found("Große Straße", "strasse", "grosse") == ["Große", "Straße"]

    def test_half_width_kana_is_kana(self) -> None:
        assert found("これはﾊﾞｶです", "バカ") == ["ﾊﾞｶ"]

    def test_hangul_in_parts_is_hangul(self) -> None:
        assert len(found("\u1107\u1161\u1107\u1169", "바보")) == 1

    @pytest.mark.parametrize("gap", [" ", "  ", "\n", "\r\n  ", "\t", "\u00a0", " \u200b "])
    def test_words_of_an_entry_may_be_any_white_space_apart(self, gap: str) -> None:
        assert found(f"a rude{gap}word.", "rude word") == [f"rude{gap}word"]

    @pytest.mark.parametrize("gap", [". ", ", ", "", "-", " the "])
    def test_words_of_an_entry_must_follow_each_other(self, gap: str) -> None:
        assert found(f"a rude{gap}word.", "rude word") == []

    def test_signs_of_an_entry_count(self) -> None:
        assert found("s&m is not s, m", "s&m") == ["s&m"]

    def test_an_emoji_may_be_an_entry(self) -> None:
        assert found("you🖕🖕\ufe0f!", "🖕") == ["🖕", "🖕\ufe0f"]


class TestScriptsWithoutSpaces:
    @pytest.mark.parametrize(
        ("text", "entry"),
        [("你是笨蛋吗", "笨蛋"), ("ภาษาหยาบคายนะ", "หยาบ"), ("これは奴隷です", "奴隷"), ("他fuck了", "fuck")],
    )
    def test_no_boundary_is_asked_for(self, text: str, entry: str) -> None:
        assert found(text, entry) == [entry]

    def test_vowels_that_are_marks_tell_words_apart(self) -> None:
        assert found("กัน", "กิน") == []


class TestHits:
    def test_a_hit_names_the_list_and_the_entry_as_the_list_has_it(self) -> None:
        assert lexicons("Damn").hits("oh d4mn", "en") == [Hit("rude", "Damn", 3, 7)]

    def test_of_entries_that_overlap_the_first_and_longest_counts(self) -> None:
        assert found("rude word play", "rude", "rude word", "word play", "play") == ["rude word", "play"]

    def test_lists_are_counted_apart(self) -> None:
        both = Lexicons(
            [
                Lexicon(LexiconParams(name="a", path="a.txt", languages=["en"]), ("damn",)),
                Lexicon(LexiconParams(name="b", path="b.txt"), ("damn", "heck")),
                Lexicon(LexiconParams(name="c", path="c.txt", languages=["de"]), ("damn",)),
            ]
        )
        hits = both.hits("damn heck damn", "en")
        assert Counter(hit.lexicon for hit in hits) == {"a": 2, "b": 3}

    def test_a_list_applies_to_its_languages_alone(self) -> None:
        english = lexicons("damn", languages=["en"])
        assert [len(english.hits("damn", language)) for language in ("en", "de", "und")] == [1, 0, 0]
        assert english.applying("de") == set()

    def test_lists_that_share_a_skeleton_do_not_hide_each_other(self) -> None:
        assert found("ball bail ba1l", "ball", "bail") == ["ball", "bail", "ba1l", "ba1l"][:3]

    @pytest.mark.parametrize("text", ["", " ", "\0", "\ud800 damn \udfff", "\u0301damn", "\u200b"])
    def test_any_text_can_be_searched(self, text: str) -> None:
        assert len(found(text, "damn")) == text.count("damn")

    def test_no_lists_no_hits(self) -> None:
        assert Lexicons([]).hits("damn", "en") == []

    def test_lists_travel_to_workers(self) -> None:
        sent = pickle.loads(pickle.dumps(Lexicon(LexiconParams(name="a", path="a.txt"), ("damn",))))
        assert Lexicons([sent]).hits("damn", "en")

    @pytest.mark.parametrize(
        "worst",
        ["\u0301", "a\u0301", "x", "a.", "*-", "\u200b", "@", " ", "x ", "ß", "ﷺ", "1", "\u1161", "ก็"],
    )
    def test_any_length_of_the_worst_is_searched_in_one_pass(self, worst: str) -> None:
        text = worst * (2**18 // len(worst))
        assert lexicons("xx", "x y", "il", "ass", "a a").hits(text, "en") == []


class TestMask:
    def test_each_hit_becomes_a_placeholder_that_names_the_list(self) -> None:
        text = "Oh d\u200bamn, Ｄ４mn it"
        assert mask_hits(text, lexicons("damn").hits(text, "en")) == "Oh <word-rude>, <word-rude> it"

    def test_hits_of_two_lists_that_overlap_become_one_placeholder(self) -> None:
        hits = [Hit("b", "word play", 5, 14), Hit("a", "rude word", 0, 9), Hit("a", "x", 15, 16)]
        assert mask_hits("rude word play x", hits) == "<word-a> <word-a>"

    def test_text_without_hits_stays(self) -> None:
        assert mask_hits("Ｆine\u200b", []) == "Ｆine\u200b"

    def test_nothing_of_a_struck_word_stays(self) -> None:
        text = "d\u0336a\u0336m\u0336n\u0336."
        assert mask_hits(text, lexicons("damn").hits(text, "en")) == "<word-rude>."


class TestLists:
    def test_entries_comments_and_empty_lines(self, read: Read) -> None:
        content = "\ufeff# rude words\r\n\r\ndamn\r\n  rude  word \n# more\nH\u00c9CK".encode()
        assert read(content).entries == ("damn", "rude  word", "HÉCK")

    def test_a_missing_file_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(StageError, match=r"lexicon rude: lists/none.txt cannot be read: No such file"):
            read_lexicon(LexiconParams(name="rude", path="lists/none.txt"), tmp_path)

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"damn\nh\xe9ck\n", "rude.txt, line 2: not UTF-8"),
            (b"", "rude.txt has no entries"),
            (b"# nothing\n\n", "rude.txt has no entries"),
            ("damn\n\u200b\u00ad\n".encode(), "rude.txt, line 2: nothing is left of the entry"),
            ("damn\nheck\nＤＡＭＮ\n".encode(), "rude.txt, line 3: the same entry as in line 1"),
        ],
    )
    def test_a_bad_file_is_refused_with_the_line(self, read: Read, content: bytes, message: str) -> None:
        with pytest.raises(StageError) as refusal:
            read(content)
        assert message in str(refusal.value)
        assert "damn" not in str(refusal.value).lower()

    @pytest.mark.parametrize("wrong", [{"name": "A b"}, {"path": "/etc/passwd"}, {"path": "a/../../b"}])
    def test_parameters_that_cannot_be_are_refused(self, wrong: dict[str, object]) -> None:
        with pytest.raises(ValidationError):
            LexiconParams.model_validate({"name": "a", "path": "a.txt"} | wrong)

    @pytest.mark.parametrize("path", sorted(SAMPLE.glob("*.txt")), ids=lambda path: path.stem)
    def test_the_lists_of_the_sample_are_good(self, path: Path) -> None:
        params = LexiconParams(name=path.stem, path=f"lexicons/{path.name}", languages=[path.stem])
        lexicon = read_lexicon(params, SAMPLE.parent)
        search = Lexicons([lexicon])
        assert all(search.hits(entry, path.stem) for entry in lexicon.entries)

    def test_words_are_not_logged(self, read: Read, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.DEBUG):
            Lexicons([read(b"damn")]).hits("damn", "en")
        assert "damn" not in caplog.text


def test_folding_keeps_what_unicode_keeps() -> None:
    assert fold("Ǆ Σς İ ﬃ ½ Å A\u030a ㍿\t\n").text == "dž σσ i ffi 1⁄2 å å 株式会社 "
