from __future__ import annotations

from tasks.release.duplicates import excerpts


def test_an_excerpt_begins_shortly_before_the_first_difference():
    start, left, right = excerpts("word " * 200 + "old end", "word " * 200 + "new end", 100)
    assert start > 900
    assert [part.text for part in left if part.differs] == ["old"]
    assert [part.text for part in right if part.differs] == ["new"]


def test_excerpts_do_not_differ_by_where_they_end():
    _, left, right = excerpts("a " + "same " * 100, "another " + "same " * 100, 52)
    assert [part.text for part in left if part.differs] == ["a"]
    assert [part.text for part in right if part.differs] == ["another"]


def test_equal_texts_are_excerpted_from_their_beginning():
    start, left, right = excerpts("the same text", "the same text", 8)
    assert (start, left) == (0, right)
    assert "".join(part.text for part in left) == "the same"
    assert not any(part.differs for part in left)
