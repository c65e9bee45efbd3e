# pyright: reportMissingImports=false
"""The cleaning of pages of TFDS's C4, run in an environment of its own, with Gristmill's sentences for
NLTK's.

python tfds_c4.py DOCUMENTS      why each page is dropped, or `kept`, and what is left of it, a line each
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from segmentation import sentences
from tensorflow_datasets.text import c4_utils


def main() -> None:
    """Clean every page of a JSON Lines file with `text` and `terminal` (the marks that end a sentence)."""
    citation = re.compile(r"\[\d*\]|\[edit\]|\[citation needed\]")
    with Path(sys.argv[1]).open(encoding="utf-8") as lines:
        for line in lines:
            given = json.loads(line)
            terminal = frozenset(given["terminal"])
            c4_utils._get_sentences = lambda text, terminal=terminal: sentences(text, terminal)
            reasons: list[str] = []
            page = c4_utils.PageFeatures(text=given["text"])
            left = list(c4_utils.clean_page(page, citation, lambda name, amount=1, r=reasons: r.append(name)))
            dropped = [reason for reason in reasons if reason.startswith("filtered:")]
            print(
                json.dumps(
                    {"verdict": "kept" if left else dropped[0], "text": left[0].text if left else None}
                )
            )


if __name__ == "__main__":
    main()
