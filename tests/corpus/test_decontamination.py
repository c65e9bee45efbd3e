from __future__ import annotations

import gzip
import json
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pydantic import ValidationError

from tasks.corpus.decontamination.contamination import EXCERPT, Contamination, find_contamination
from tasks.corpus.decontamination.evaluation_sets import (
    EvaluationItem,
    EvaluationSet,
    read_evaluation_sets,
)
from tasks.corpus.decontamination.index import (
    ContaminationIndex,
    OverlapParams,
    answer_texts,
    build_index,
    question_texts,
)
from tasks.corpus.scoring.segments import segment_words
from tasks.stage import StageError

QUESTION = (
    "A miller grinds forty sacks of grain on Monday, half as many on Tuesday, and twice as many on "
    "Wednesday as on both days before; how many sacks does he grind in all?"
)
BEFORE = "The town lies where two rivers meet. "
AFTER = " And so the story of the town went on for many years."
SHORT = "How many eggs does the heron lay in spring?"
CHINESE = "磨坊主星期一磨了四十袋谷子星期二磨了一半请问他一共磨了多少袋"


def index_of(*given: Any, **params: Any) -> ContaminationIndex:
    """Items given as questions, or as (question, answers …)."""
    items = [
        EvaluationItem("sums", line, *((one, ()) if isinstance(one, str) else (one[0], tuple(one[1:]))))
        for line, one in enumerate(given, 1)
    ]
    return build_index(
        items, segmented(question_texts(items)), segmented(answer_texts(items)), OverlapParams(**params)
    )


def segmented(texts: Sequence[str | None]):
    return segment_words(pa.array(texts, pa.large_string()))


def find(index: ContaminationIndex, *texts: str | None) -> list[Contamination | None]:
    return find_contamination(index, segmented(texts), pa.array(texts, pa.large_string()))


def test_an_item_inside_a_document_is_found_with_its_place():
    (found,) = find(index_of(SHORT, QUESTION), "Résumé. " + BEFORE + QUESTION + AFTER)
    assert found is not None
    assert (found.set, found.line, found.overlap, found.with_answer) == ("sums", 2, 1.0, False)
    text = ("Résumé. " + BEFORE + QUESTION + AFTER).encode()
    assert text[found.start : found.end].decode() == QUESTION.rstrip("?")
    assert found.excerpt == QUESTION.rstrip("?")
    assert str(found) == f"sums:2 at bytes {found.start}-{found.end}: {found.excerpt}"


@pytest.mark.parametrize(
    "text",
    [
        QUESTION,
        QUESTION.upper(),
        QUESTION.replace(",", " —").replace(";", "...").replace(" ", "\n \t"),
        "«" + QUESTION.replace("?", "") + "»",
    ],
    ids=["the whole document", "case", "punctuation and space", "quoted"],
)
def test_an_item_is_found_however_it_is_written(text: str):
    (found,) = find(index_of(QUESTION), text)
    assert found is not None
    assert found.overlap == 1.0


@pytest.mark.parametrize("text", [BEFORE + AFTER, "", None, "?!", "grain", QUESTION[:40]])
def test_a_document_without_the_item_is_clean(text: str | None):
    assert find(index_of(QUESTION), text) == [None]


def test_the_first_half_of_a_question_is_not_the_question():
    half = " ".join(QUESTION.split()[:16])
    assert find(index_of(QUESTION), BEFORE + half + AFTER) == [None]


def test_the_threshold_is_a_share_of_the_n_grams_of_the_question():
    words = [f"word{number}" for number in range(22)]  # ten n-grams of 13 words
    document = " ".join(words[:20])  # eight of them
    (found,) = find(index_of(" ".join(words), minimum_overlap=0.8), document)
    assert found is not None
    assert found.overlap == 0.8
    assert find(index_of(" ".join(words), minimum_overlap=0.81), document) == [None]


def test_repeating_a_part_of_a_question_adds_nothing_to_its_share():
    half = " ".join(QUESTION.split()[:16])
    assert find(index_of(QUESTION), (half + ". ") * 50) == [None]


class TestAnswers:
    half = " ".join(QUESTION.split()[:24])

    def test_half_a_question_and_its_answer_near_are_the_item(self):
        (found,) = find(index_of((QUESTION, "180 sacks")), BEFORE + self.half + "? He grinds 180 sacks.")
        assert found is not None
        assert found.with_answer
        assert 0.5 <= found.overlap < 0.8

    def test_the_answer_may_come_first(self):
        (found,) = find(index_of((QUESTION, "180 sacks")), "180 sacks is what? " + self.half)
        assert found is not None

    def test_any_answer_of_several_will_do(self):
        (found,) = find(index_of((QUESTION, "180 sacks", "one hundred")), self.half + " … one hundred")
        assert found is not None

    @pytest.mark.parametrize("answer", ["181 sacks", "", "…", "grinds forty sacks"])
    def test_another_answer_an_empty_one_and_one_that_the_question_names_are_not(self, answer: str):
        assert find(index_of((QUESTION, answer)), self.half + "? 180 sacks") == [None]

    def test_a_far_answer_is_not(self):
        far = self.half + " and" * 60 + " 180 sacks"
        assert find(index_of((QUESTION, "180 sacks"), answer_distance=50), far) == [None]
        assert find(index_of((QUESTION, "180 sacks"), answer_distance=70), far) != [None]

    def test_an_answer_alone_is_no_occurrence(self):
        assert find(index_of((QUESTION, "180 sacks")), "He grinds 180 sacks in all.") == [None]

    def test_a_question_too_short_alone_is_looked_for_with_its_first_answer(self):
        index = index_of(("Who built the old mill?", "Jan van der Meer", "Meer"))
        assert find(index, "Who built the old mill? Jan van der Meer!") != [None]
        assert find(index, "Who built the old mill? Jan's aunt") == [None]


def test_a_question_shorter_than_an_n_gram_is_looked_for_whole():
    index = index_of(SHORT, "The heron is grey.")
    (found, other) = find(index, BEFORE + SHORT + AFTER, "How many eggs does the heron lay in autumn?")
    assert found is not None
    assert (found.line, found.overlap) == (1, 1.0)
    assert other is None


@pytest.mark.parametrize("question", ["", "…", "Why?", "The heron is grey."])
def test_items_too_short_to_look_for_are_counted_and_match_nothing(question: str):
    index = index_of(question, QUESTION)
    assert index.not_looked_for == {"sums": 1}
    assert find(index, question, "", BEFORE) == [None, None, None]


def test_no_items_match_nothing():
    assert find(index_of(), QUESTION) == [None]


def test_the_words_of_a_script_without_spaces_are_its_characters():
    (found, other) = find(
        index_of(CHINESE), "河边。" + CHINESE + "？他笑了。", "河边的磨坊主星期一磨了谷子。"
    )
    assert found is not None
    assert found.excerpt == CHINESE
    assert found.start == len("河边。".encode())
    assert other is None


def test_an_n_gram_of_many_questions_does_not_count():
    preamble = (
        "Read the following passage with care and then answer the question that stands below it in one word. "
    )
    questions = [preamble + f"Topic {n}: " + " ".join(f"w{n}x{k}" for k in range(14)) for n in range(20)]
    index = index_of(*questions, maximum_items=10)
    (boilerplate, item) = find(index, preamble * 2, questions[7])
    assert boilerplate is None
    assert item is not None
    assert (item.line, item.overlap) == (8, 1.0)


def test_an_item_of_nothing_but_boilerplate_is_counted():
    preamble = " ".join(f"word{n}" for n in range(13))
    index = index_of(*(f"{preamble} and{n}" for n in range(11)), preamble, maximum_items=10)
    assert index.not_looked_for == {"sums": 1}


def test_copies_of_a_question_are_one_question_and_no_boilerplate():
    index = index_of(*[(QUESTION, f"{n} sacks") for n in range(30)], QUESTION.upper(), maximum_items=1)
    (found,) = find(index, QUESTION)
    assert found is not None
    assert found.line == 1
    assert find(index, TestAnswers.half + " 29 sacks") != [None]


def test_the_item_with_the_largest_share_is_named_and_of_equals_the_longest_then_the_first():
    words = [f"word{n}" for n in range(60)]
    small, large, other = " ".join(words[:20]), " ".join(words[:30]), " ".join(words[30:60])
    (found,) = find(index_of(small, large), large)
    assert found is not None
    assert found.line == 2
    (found,) = find(index_of(large, other), other + ". " + large)
    assert found is not None
    assert found.line == 1
    (found,) = find(index_of(large, other), large[:-7] + ". " + other)
    assert found is not None
    assert found.line == 2


def test_a_question_that_occurs_twice_is_shown_once():
    text = QUESTION + " filler" * 500 + " " + QUESTION
    (found,) = find(index_of(QUESTION), text)
    assert found is not None
    assert (found.start, found.end) == (0, len(QUESTION) - 1)


def test_a_long_excerpt_is_cut():
    question = " ".join(f"wörd{n}" for n in range(300))
    (found,) = find(index_of(question), question)
    assert found is not None
    assert len(found.excerpt) == EXCERPT
    assert found.excerpt.endswith("…")
    assert found.end == len(question.encode())


def test_a_document_does_not_depend_on_the_others_of_its_batch():
    texts = [BEFORE, QUESTION, TestAnswers.half, SHORT + QUESTION, "", CHINESE, QUESTION]
    index = index_of((QUESTION, "180"), SHORT, CHINESE)
    assert find(index, *texts) == [find(index, text)[0] for text in texts]


def test_an_index_can_be_sent_to_a_worker():
    index = pickle.loads(pickle.dumps(index_of(QUESTION)))
    assert find(index, QUESTION)[0] is not None


def test_a_megabyte_of_the_worst_is_read_in_linear_time():
    line = "a a a a a a a a a a a a a a a "
    index = index_of((line * 4, "a " * 1000 + "b"), *[f"{line}b{n}" for n in range(9)])
    (found,) = find(index, line * 35_000)
    assert found is not None


def test_an_n_gram_longer_than_every_short_item_is_refused():
    with pytest.raises(ValidationError, match="minimum_words must not be more than ngram_words"):
        OverlapParams(ngram_words=5, minimum_words=8)


class TestFiles:
    @staticmethod
    def read(tmp_path: Path, content: bytes, answer_field: str | None = None) -> list[EvaluationItem]:
        (tmp_path / "sums.jsonl").write_bytes(content)
        one = EvaluationSet(name="sums", path="sums.jsonl", question_field="q", answer_field=answer_field)
        return read_evaluation_sets([one], tmp_path)

    def test_items_have_the_line_that_they_stand_on(self, tmp_path: Path):
        first, empty = b'\xef\xbb\xbf{"q": "one", "a": "1"}\r\n', b'{"q": "", "a": null}\n'
        content = first + b"\r\n" + empty + b'{"q": "ii", "a": ["2", "ii"]}\n\n'
        assert self.read(tmp_path, content, "a") == [
            EvaluationItem("sums", 1, "one", ("1",)),
            EvaluationItem("sums", 3, "", ()),
            EvaluationItem("sums", 4, "ii", ("2", "ii")),
        ]

    def test_a_lone_surrogate_is_replaced_and_a_pair_is_none(self, tmp_path: Path):
        content = rb'{"q": "one \ud83d\ude00 \ud800", "a": ["\udfff", "two"]}'
        (item,) = self.read(tmp_path, content, "a")
        assert (item.question, item.answers) == ("one \U0001f600 \ufffd", ("\ufffd", "two"))

    @pytest.mark.parametrize("path", ["/etc/sums.jsonl", "../sums.jsonl", "a/../../sums.jsonl"])
    def test_a_set_outside_its_folder_is_refused(self, path: str):
        with pytest.raises(ValidationError, match="within the folder of evaluation sets"):
            EvaluationSet(name="sums", path=path, question_field="q")

    def test_a_set_may_be_compressed(self, tmp_path: Path):
        assert self.read(tmp_path, gzip.compress(b'{"q": "one"}\n'))[0].question == "one"

    @pytest.mark.parametrize(
        ("line", "reason"),
        [
            (b'{"q": "two"', "not JSON"),
            (b'{"q": "tw\xff"}', "invalid UTF-8 at byte 9 of the line"),
            (b'["two"]', "holds a list, not an object"),
            (b'{"question": "two", "id": 2}', "no field 'q'; the fields there are 'question', 'id'"),
            (b'{"q": 2, "a": "2"}', "q must be a text, not 2"),
            (b'{"q": null, "a": "2"}', "q must be a text, not null"),
            (b'{"q": "two"}', "no field 'a'"),
            (b'{"q": "two", "a": 2}', "a must be a text or a list of texts, not "),
            (b'{"q": "two", "a": ["2", null]}', "a must be a text or a list of texts, not "),
            (b"[" * 100_000, "not JSON"),
        ],
    )
    def test_a_broken_line_is_named_with_its_file(self, tmp_path: Path, line: bytes, reason: str):
        with pytest.raises(StageError, match=r"sums\.jsonl:2: ") as raised:
            self.read(tmp_path, b'{"q": "one", "a": "1"}\n' + line + b"\n", "a")
        assert reason in str(raised.value)

    @pytest.mark.parametrize("content", [b"", b"\n \n", b"\xef\xbb\xbf"])
    def test_a_set_without_items_is_an_error(self, tmp_path: Path, content: bytes):
        with pytest.raises(StageError, match=r"sums\.jsonl: holds no item"):
            self.read(tmp_path, content)

    def test_a_torn_gzip_file_is_an_error(self, tmp_path: Path):
        content = gzip.compress(json.dumps({"q": np.random.default_rng(0).bytes(9000).hex()}).encode())
        with pytest.raises(StageError, match=r"sums\.jsonl: not a whole gzip file"):
            self.read(tmp_path, content[:-100])

    def test_a_missing_file_is_named(self, tmp_path: Path):
        one = EvaluationSet(name="sums", path="sums.jsonl", question_field="q")
        with pytest.raises(StageError, match=r"sums\.jsonl: No such file"):
            read_evaluation_sets([one], tmp_path)

    def test_two_sets_of_one_name_are_refused(self, tmp_path: Path):
        (tmp_path / "sums.jsonl").write_text('{"q": "one"}\n')
        one = EvaluationSet(name="sums", path="sums.jsonl", question_field="q")
        with pytest.raises(StageError, match="two evaluation sets are named 'sums'"):
            read_evaluation_sets([one, one], tmp_path)
