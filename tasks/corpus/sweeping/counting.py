"""Documents counted for every bound of a sweep, a batch at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tasks.corpus.perplexity.buckets import buckets
from tasks.corpus.policies.decide import Decisions, decide, deciding
from tasks.corpus.policies.judgement import measured, unwanted
from tasks.corpus.policies.policy import CleanParams
from tasks.corpus.policies.rules import Rule
from tasks.corpus.sweeping.border import Border, fails
from tasks.corpus.sweeping.curves import Curve, Point
from tasks.corpus.sweeping.scale import Scale
from tasks.corpus.sweeping.thresholds import MOST_THRESHOLDS, Side, Tally, choose_thresholds

if TYPE_CHECKING:
    import pyarrow as pa

BARS = 48
"""Of a histogram."""


@dataclass
class Bound:
    """What is counted for one bound of one entry."""

    number: int
    entry: Rule
    side: Side
    tally: Tally
    border: Border | None
    documents: int = 0
    unmeasured: int = 0
    always: np.ndarray = field(default_factory=lambda: np.zeros(4, np.int64))
    """weights of those without a value"""
    now: np.ndarray = field(default_factory=lambda: np.zeros(4, np.int64))
    """weights that the bound keeps as it is"""

    @property
    def bound(self) -> float | None:
        """As the policy has it."""
        return getattr(self.entry, self.side)

    def add(self, batch: pa.RecordBatch, values_D: np.ndarray, weights_DW: np.ndarray) -> None:
        """Count documents that the entry decides on."""
        known_D = ~np.isnan(values_D)
        self.documents += len(values_D)
        self.unmeasured += int((~known_D).sum())
        self.always += weights_DW[~known_D].sum(axis=0)
        self.tally.add(values_D[known_D], weights_DW[known_D])
        if self.bound is not None:
            self.now += weights_DW[~fails(values_D, self.bound, self.side)].sum(axis=0)
        if self.border is not None:
            ids, sources = (batch.column(name).filter(_mask(known_D)) for name in ("id", "source"))
            self.border.add(values_D[known_D], ids, sources)

    def curve(self) -> Curve:
        """What was counted."""
        grid_G, sums_GW = self.tally.sorted()
        _, kept_GW = self.tally.kept()
        chosen = choose_thresholds(grid_G, sums_GW[:, 0], MOST_THRESHOLDS - 1)
        kept = {float(grid_G[n]): kept_GW[n] + self.always for n in chosen}
        if self.bound is not None:
            kept[float(self.bound)] = self.now
        marks = [value for value in (self.bound, self.border and self.border.bound) if value is not None]
        scale = Scale.fitting(grid_G, sums_GW[:, 0], marks)
        all_W = sums_GW.sum(axis=0) + self.always
        return Curve(
            scope=scope_in_words(self.entry),
            signal=str(self.entry.signal),
            side=self.side,
            bound=self.bound,
            examples_at=self.border.bound if self.border else None,
            documents=self.documents,
            characters=int(all_W[1]),
            unmeasured=self.unmeasured,
            passes_the_rest=int(all_W[2]),
            points=[_point(threshold, kept[threshold]) for threshold in sorted(kept)],
            bars=scale.histogram(grid_G, sums_GW[:, 0], BARS),
            scale=scale,
            just_kept=self.border.kept if self.border else [],
            just_removed=self.border.removed if self.border else [],
        )


def count(
    batch: pa.RecordBatch,
    params: CleanParams,
    cuts: dict[str, tuple[int, int]],
    name: str,
    entries: Sequence[Rule],
    bounds: Sequence[Bound],
) -> np.ndarray:
    """Count the documents of a batch for every bound.

    Returns documents and characters of the batch, and of what the policy as it is keeps of it.
    """
    names, signals_DS = measured(batch)
    kinds, languages = (batch.column(column).to_pylist() for column in ("kind", "language"))
    scopes = list(zip(batch.column("source").to_pylist(), kinds, languages, strict=True))
    decisions = decide(params.all_rules, signals_DS, names, scopes)
    perplexity_D = _column(names, signals_DS, "perplexity")
    in_bucket = buckets(perplexity_D, languages, cuts)
    passes_D = ~np.array(
        [bool(unwanted(params, *of)) for of in zip(kinds, languages, in_bucket, strict=True)], bool
    )
    failed_DR = decisions.failed_DR
    characters_D = np.nan_to_num(_column(names, signals_DS, "characters")).astype(np.int64)
    kept_D = passes_D & ~failed_DR.any(axis=1)
    others_D = passes_D & ~_without(failed_DR, decisions, name).any(axis=1)
    deciding_D = _deciding(params, entries, name, scopes)
    for bound in bounds:
        judged_D = deciding_D == bound.number
        values_D = _column(names, signals_DS, str(bound.entry.signal))
        policy_D = others_D & ~_fails_other_bound(bound, values_D)
        weights_DW = _weights(characters_D, policy_D)
        bound.add(batch.filter(_mask(judged_D)), values_D[judged_D], weights_DW[judged_D])
    return _weights(characters_D, kept_D).sum(axis=0)


def scope_in_words(rule: Rule) -> str:
    """The documents that an entry is for."""
    parts = []
    for only, excepted, what in (
        (rule.only_sources, [], "sources"),
        (rule.only_kinds, rule.except_kinds, "kinds"),
        (rule.only_languages, rule.except_languages, "languages"),
    ):
        if only is not None:
            parts.append(f"{what} {', '.join(only)}")
        if excepted:
            parts.append(f"{what} other than {', '.join(excepted)}")
    return "; ".join(parts) or "all documents"


def _point(threshold: float, kept_W: np.ndarray) -> Point:
    documents, characters, policy_documents, policy_characters = kept_W.tolist()
    return Point(
        threshold=threshold,
        documents=documents,
        characters=characters,
        policy_documents=policy_documents,
        policy_characters=policy_characters,
    )


def _column(names: Sequence[str], signals_DS: np.ndarray, signal: str) -> np.ndarray:
    return signals_DS[:, names.index(signal)] if signal in names else np.full(len(signals_DS), np.nan)


def _weights(characters_D: np.ndarray, policy_D: np.ndarray) -> np.ndarray:
    """What a document counts for: one, its characters, and both again if the rest of the policy keeps it."""
    ones_D = np.ones(len(characters_D), np.int64)
    return np.column_stack([ones_D, characters_D, policy_D, np.where(policy_D, characters_D, 0)])


def _without(failed_DR: np.ndarray, decisions: Decisions, name: str) -> np.ndarray:
    return failed_DR[:, [rule != name for rule in decisions.names]]


def _deciding(
    params: CleanParams, entries: Sequence[Rule], name: str, scopes: Sequence[tuple[str, str, str]]
) -> np.ndarray:
    """The number of the entry that decides for each document; −1 where none does, or it is off."""
    of_name = [rule for rule in params.all_rules if rule.name == name] or entries
    number = {id(entry): place for place, entry in enumerate(entries)}
    of_scope = {scope: number.get(id(deciding(of_name, scope).get(name)), -1) for scope in set(scopes)}
    return np.array([of_scope[scope] for scope in scopes])


def _fails_other_bound(bound: Bound, values_D: np.ndarray) -> np.ndarray:
    other: Side = "maximum" if bound.side == "minimum" else "minimum"
    limit = getattr(bound.entry, other)
    return np.zeros(len(values_D), bool) if limit is None else fails(values_D, limit, other)


def _mask(chosen_D: np.ndarray) -> pa.Array:
    import pyarrow as pa

    return pa.array(chosen_D)
