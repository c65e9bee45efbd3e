# pyright: reportMissingImports=false
"""datatrove's four filter groups, run in an environment of their own.

    python datatrove_filters.py time DOCUMENTS        CPU seconds of the filters, with datatrove's
    segmentation python datatrove_filters.py verdicts DOCUMENTS [gristmill]   every rule alone that a
    document fails, a line each

DOCUMENTS is JSON Lines with `text`; `gristmill` puts our segmentation in the place of spaCy's.
"""

from __future__ import annotations

import copy
import json
import sys
import time
from pathlib import Path

from datatrove.data import Document
from datatrove.pipeline.filters import (
    C4QualityFilter,
    FineWebQualityFilter,
    GopherQualityFilter,
    GopherRepetitionFilter,
)
from datatrove.utils import text as datatrove_text
from segmentation import sentences, words

REPETITION_OFF = {
    "dup_line_frac": None, "dup_para_frac": None, "dup_line_char_frac": None, "dup_para_char_frac": None,
    "top_n_grams": (), "dup_n_grams": (),
}  # fmt: skip
QUALITY_OFF = {
    "min_doc_words": None, "max_doc_words": None, "min_avg_word_length": None, "max_avg_word_length": None,
    "max_symbol_word_ratio": None, "max_bullet_lines_ratio": None, "max_ellipsis_lines_ratio": None,
    "max_non_alpha_words_ratio": None, "min_stop_words": None,
}  # fmt: skip
FINEWEB_OFF = {
    "line_punct_thr": -1.0,
    "short_line_thr": 2.0,
    "char_duplicates_ratio": 2.0,
    "new_line_ratio": 1e9,
}
REPETITION = {
    "dup_line_frac": 0.3,
    "dup_para_frac": 0.3,
    "dup_line_char_frac": 0.2,
    "dup_para_char_frac": 0.2,
}
TOP_GRAMS = ((2, 0.2), (3, 0.18), (4, 0.16))
REPEATED_GRAMS = ((5, 0.15), (6, 0.14), (7, 0.13), (8, 0.12), (9, 0.11), (10, 0.10))
QUALITY = {
    "min_doc_words": 50, "max_doc_words": 100000, "min_avg_word_length": 3, "max_avg_word_length": 10,
    "max_symbol_word_ratio": 0.1, "max_bullet_lines_ratio": 0.9, "max_ellipsis_lines_ratio": 0.3,
    "max_non_alpha_words_ratio": 0.8, "min_stop_words": 2,
}  # fmt: skip
FINEWEB = {"line_punct_thr": 0.12, "short_line_thr": 0.67, "new_line_ratio": 0.3}


def main() -> None:
    """Run what the arguments ask for."""
    mode, path, *segmentation = sys.argv[1:]
    with Path(path).open(encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for line in lines]
    if segmentation == ["gristmill"]:
        _use_our_segmentation()
    if mode == "time":
        print(json.dumps(_timed(texts)))
    else:
        for failed in _verdicts(texts):
            print(json.dumps(failed))


def _timed(texts: list[str]) -> dict[str, object]:
    c4 = C4QualityFilter(filter_no_terminal_punct=False)
    groups = [GopherRepetitionFilter(), GopherQualityFilter(), c4, FineWebQualityFilter()]
    _passes(groups, "A first text loads the tokenizer.")
    started = time.process_time()
    passing = [_passes(groups, text) for text in texts]
    return {"cpu_seconds": time.process_time() - started, "passing": passing}


def _passes(groups: list, text: str) -> bool:
    document = Document(text=text, id="0")
    for group in groups:
        try:
            passed = group.filter(document)
        except ZeroDivisionError:  # a text without words
            return False
        if passed is not True:
            return False
    return True


def _verdicts(texts: list[str]):
    alone = _rules_alone()
    for text in texts:
        failed = []
        for name, filters in alone.items():
            document = Document(text=text, id="0")
            for each in filters[:-1]:
                each.filter(document)
            try:
                verdict = copy.copy(filters[-1]).filter(document)
            except (ZeroDivisionError, IndexError):
                verdict = (False, "error")
            if verdict is not True:
                reason = verdict[1] if isinstance(verdict, tuple) else ""
                failed.append(f"{name}: {reason}" if name.startswith("c4") else name)
        yield failed


def _rules_alone() -> dict[str, list]:
    """Filters with all rules but one off; the last of a list gives the verdict on what the others leave."""
    rules: dict[str, list] = {}
    for key, value in REPETITION.items():
        rules[key] = [GopherRepetitionFilter(**{**REPETITION_OFF, key: value})]
    for n, share in TOP_GRAMS:
        rules[f"top_{n}_gram"] = [GopherRepetitionFilter(**{**REPETITION_OFF, "top_n_grams": ((n, share),)})]
    for n, share in REPEATED_GRAMS:
        rules[f"dup_{n}_gram"] = [GopherRepetitionFilter(**{**REPETITION_OFF, "dup_n_grams": ((n, share),)})]
    for key, value in QUALITY.items():
        rules[key] = [GopherQualityFilter(**{**QUALITY_OFF, key: value})]
    for where, before in (("", []), ("edited_", [C4QualityFilter(filter_no_terminal_punct=False)])):
        for key, value in FINEWEB.items():
            rules[where + key] = [*before, FineWebQualityFilter(**{**FINEWEB_OFF, key: value})]
        for name, value in (("char_dup_code", 0.01), ("char_dup_paper", 0.1)):
            rules[where + name] = [
                *before,
                FineWebQualityFilter(**{**FINEWEB_OFF, "char_duplicates_ratio": value}),
            ]
    rules["c4_datatrove"] = [C4QualityFilter()]
    rules["c4_fineweb"] = [C4QualityFilter(filter_no_terminal_punct=False)]
    return rules


def _use_our_segmentation() -> None:
    terminal = frozenset(datatrove_text.TERMINAL_PUNCTUATION)
    from datatrove.pipeline.filters import (
        c4_filters,
        fineweb_quality_filter,
        gopher_quality_filter,
        gopher_repetition_filter,
    )

    for module in (fineweb_quality_filter, gopher_quality_filter, gopher_repetition_filter):
        module.split_into_words = lambda text, language="eng": words(text)
    c4_filters.split_into_sentences = lambda text, language="eng": sentences(text, terminal)


if __name__ == "__main__":
    main()
