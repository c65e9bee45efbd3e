"""A batch of scored documents, judged: verdicts, findings, and the text that is kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tasks.corpus.forgotten import ForgottenDocuments
from tasks.corpus.perplexity.buckets import buckets
from tasks.corpus.pii.find import find_personal_data
from tasks.corpus.pii.mask import count, mask
from tasks.corpus.policies.decide import decide
from tasks.corpus.policies.policy import CleanParams
from tasks.corpus.scoring.c4 import keep_lines
from tasks.corpus.scoring.columns import signals_matrix
from tasks.corpus.scoring.parts import LEXICON_SIGNAL
from tasks.records import KEPT, REMOVED, Finding, arrow_schema, content_hash

if TYPE_CHECKING:
    import pyarrow as pa

    from tasks.corpus.lexicons.matching import Lexicons

BUCKET = "perplexity_bucket"
"""The key of a document's bucket in ``meta``."""

NO_EDITS = frozenset(("code",))
"""Kinds whose lines no rule edits: ``list[3]`` is no citation, a brace no fault."""


@dataclass(frozen=True)
class Judge:
    """A policy, ready to be held against documents."""

    params: CleanParams
    cutoffs: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """the last bins of head and of middle, for each language (tasks/corpus/perplexity/buckets.py)"""
    lexicons: Lexicons | None = None
    """lists whose words are masked"""
    forgotten: ForgottenDocuments = field(default_factory=ForgottenDocuments)
    """documents that are removed whatever the rules say"""


def judge_batch(batch: pa.RecordBatch, judge: Judge) -> pa.RecordBatch:
    """The same documents with verdict and findings; those that are kept have their text edited and masked."""
    import pyarrow as pa

    languages = batch.column("language").to_pylist()
    kinds = batch.column("kind").to_pylist()
    names, signals_DS = measured(batch)
    scopes = list(zip(batch.column("source").to_pylist(), kinds, languages, strict=True))
    decisions = decide(judge.params.all_rules, signals_DS, names, scopes)
    failed_DR = decisions.failed_DR
    findings: list[list[Finding]] = [[] for _ in kinds]
    for document in np.flatnonzero(failed_DR.any(axis=1)).tolist():
        findings[document] = decisions.findings(document, failed_DR[document])
    perplexity_D = (
        signals_DS[:, names.index("perplexity")] if "perplexity" in names else np.full(len(kinds), np.nan)
    )
    in_bucket = buckets(perplexity_D, languages, judge.cutoffs)
    for document, found in enumerate(findings):
        found += unwanted(judge.params, kinds[document], languages[document], in_bucket[document])
    _forget(batch, batch.column("content"), judge.forgotten, findings)
    kept = [not found for found in findings]
    texts = _edited(batch, judge, kept, kinds, languages, names, signals_DS, findings)
    contents = _contents(batch, texts)
    _forget(batch, contents, judge.forgotten, findings, kept)
    columns = {name: batch.column(name) for name in batch.schema.names}
    columns |= {
        "text": texts,
        "content": contents,
        "meta": _with_buckets(batch.column("meta"), in_bucket),
        "verdict": pa.array([KEPT if keep else REMOVED for keep in kept]),
        "findings": pa.array([[vars(finding) for finding in found] for found in findings], _type("findings")),
    }
    schema = arrow_schema()
    return pa.RecordBatch.from_arrays(
        [columns[name].cast(schema.field(name).type) for name in schema.names], schema=schema
    )


def measured(batch: pa.RecordBatch) -> tuple[list[str], np.ndarray]:
    """All that a rule may ask for: the names of the signals, and float64 (D, S), NaN where one was not
    measured."""
    names, signals_DS = signals_matrix(batch.column("signals"))
    scores = np.nan_to_num(batch.column("language_score").to_numpy(zero_copy_only=False), nan=0.0)
    return [*names, "language_score"], np.column_stack([signals_DS, scores])


def unwanted(params: CleanParams, kind: str, language: str, bucket: str | None) -> list[Finding]:
    """What speaks against a document besides rules: its language, its perplexity's bucket."""
    found = []
    if params.languages is not None and kind != "code" and language not in params.languages:
        found.append(Finding("language", None, None, f"{language} is not kept"))
    if params.keep_buckets is not None and bucket is not None and bucket not in params.keep_buckets:
        found.append(Finding(BUCKET, None, None, f"{bucket} is not kept"))
    return found


def _forget(
    batch: pa.RecordBatch,
    contents: pa.Array,
    forgotten: ForgottenDocuments,
    findings: list[list[Finding]],
    kept: list[bool] | None = None,
) -> None:
    """Speak, before any rule, against what is to be forgotten; with ``kept`` of documents kept so far only,
    which learns it."""
    if not forgotten:
        return
    pairs = zip(batch.column("id").to_pylist(), contents.to_pylist(), strict=True)
    for document, (name, content) in enumerate(pairs):
        if kept is not None and not kept[document]:
            continue
        if finding := forgotten.finding(name, content):
            findings[document].insert(0, finding)
            if kept is not None:
                kept[document] = False


def _type(column: str) -> pa.DataType:
    return arrow_schema().field(column).type


def _edited(
    batch: pa.RecordBatch,
    judge: Judge,
    kept: list[bool],
    kinds: Sequence[str],
    languages: Sequence[str],
    names: Sequence[str],
    signals_DS: np.ndarray,
    findings: list[list[Finding]],
) -> pa.Array:
    """The texts, edited where they are kept; ``kept`` and ``findings`` learn what the edits come to."""
    import pyarrow as pa

    params = judge.params
    private_D = _any_above_zero(names, signals_DS, [f"pii_{kind}" for kind in params.mask])
    listed_D = _lists_to_mask(params, names, signals_DS)
    by_lines = [params.line_rule is not None and kind not in NO_EDITS for kind in kinds]
    changed = {}
    for document in np.flatnonzero(kept).tolist():
        if not (private_D[document] or listed_D[document] or by_lines[document]):
            continue
        text = batch.column("text")[document].as_py()
        if by_lines[document] and params.line_rule:
            text = keep_lines(text, params.line_rule)
            if not text:
                findings[document].append(Finding("empty", 0, 1, f"{params.line_rule} leaves no line"))
                kept[document] = False
                continue
        if listed_D[document]:
            text = _without_listed(text, judge, languages[document], listed_D[document], findings[document])
        if private_D[document]:
            text = _without_personal_data(text, params, findings[document])
        changed[document] = text
    if not changed:
        return batch.column("text")
    texts = batch.column("text").to_pylist()
    for document, text in changed.items():
        texts[document] = text
    return pa.array(texts, pa.string())


def _any_above_zero(names: Sequence[str], signals_DS: np.ndarray, wanted: Sequence[str]) -> np.ndarray:
    columns = [number for number, name in enumerate(names) if name in wanted]
    return np.asarray((signals_DS[:, columns] > 0).any(axis=1))


def _lists_to_mask(params: CleanParams, names: Sequence[str], signals_DS: np.ndarray) -> list[frozenset[str]]:
    """For each document the lists whose words are masked in it: those that it has above their rate."""
    rates = {
        action.lexicon: (names.index(signal), action.minimum_rate)
        for action in params.lexicons
        if action.action == "mask" and (signal := LEXICON_SIGNAL.format(action.lexicon)) in names
    }
    return [
        frozenset(name for name, (column, least) in rates.items() if signals_S[column] > least)
        for signals_S in signals_DS
    ]


def _without_listed(
    text: str, judge: Judge, language: str, lists: frozenset[str], findings: list[Finding]
) -> str:
    from tasks.corpus.lexicons.matching import mask_hits

    if judge.lexicons is None:
        return text
    hits = [hit for hit in judge.lexicons.hits(text, language) if hit.lexicon in lists]
    for name, times in sorted(Counter(hit.lexicon for hit in hits).items()):
        findings.append(Finding(f"lexicon_{name}", times, None, "words replaced by placeholders"))
    return mask_hits(text, hits)


def _without_personal_data(text: str, params: CleanParams, findings: list[Finding]) -> str:
    found = find_personal_data(text, params.mask)
    for kind, times in count(found).items():
        if times:
            findings.append(Finding(f"pii_{kind}", times, None, "values replaced by placeholders"))
    return mask(text, found, params.mask_key.encode())


def _contents(batch: pa.RecordBatch, texts: pa.Array) -> pa.Array:
    import pyarrow as pa

    before = batch.column("text")
    if texts is before:
        return batch.column("content")
    contents = batch.column("content").to_pylist()
    for document, (old, new) in enumerate(zip(before.to_pylist(), texts.to_pylist(), strict=True)):
        if new != old:
            contents[document] = content_hash(new)
    return pa.array(contents, pa.string())


def _with_buckets(meta: pa.Array, in_bucket: Sequence[str | None]) -> pa.Array:
    import pyarrow as pa

    if not any(in_bucket):
        return meta
    pairs = meta.to_pylist()
    for own, bucket in zip(pairs, in_bucket, strict=True):
        if bucket is not None:  # one that is there already is of another run, or the source's
            own[:] = [*(pair for pair in own if pair[0] != BUCKET), (BUCKET, bucket)]
    return pa.array(pairs, _type("meta"))
