"""The documents that each rule removed, and those that were kept, counted and sampled in one pass."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from tasks.corpus.reviewing.rows import read_columns
from tasks.corpus.reviewing.sample import KEPT_RULE, ReviewParams, RuleSample, Sample, allot
from tasks.corpus.reviewing.smallest import Smallest, id_bytes, ranks
from tasks.records import REMOVED

JUDGED = {"score": ("raw", "scored"), "clean": ("scored", "clean"), "dedup": ("clean", "unique")}
"""The stages whose removals can be judged: the layer that each reads and the one that it writes.

Collect drops what could not be read, so there is no text to look at; mix leaves out by chance.
"""


def draw(data: Path, params: ReviewParams) -> Sample:
    """The sample of all rules whose ledgers are there, and of the documents that are kept.

    Memory is bounded by the number of rules and sources; ledgers and ids are read a batch at a time.
    """
    rules: dict[str, _Strata] = {}
    for stage, (before, after) in JUDGED.items():
        for ids_N, names_N in _removals(data / after / "ledger"):
            sources_N = _sources(data / before / "documents", ids_N) if params.by_source else None
            for name in sorted(set(names_N.tolist())):
                rule, own_N = f"{stage}/{name}", names_N == name
                strata = rules.setdefault(rule, _Strata(rule, params.removed, params.seed))
                strata.add(ids_N[own_N], None if sources_N is None else sources_N[own_N])
    kept = _Strata(KEPT_RULE, params.kept, params.seed)
    columns = ["id", "source"] if params.by_source else ["id"]
    for batch in read_columns(last_layer(data) / "documents", columns):
        sources_N = _strings(batch.column("source")) if params.by_source else None
        kept.add(id_bytes(batch.column("id")), sources_N)
    drawn = {rule: strata.sample() for rule, strata in sorted(rules.items())}
    return Sample(params=params, rules=drawn | {KEPT_RULE: kept.sample()})


def last_layer(data: Path) -> Path:
    """The layer of the documents that no stage of `JUDGED` removed."""
    return data / "unique" if (data / "unique").is_dir() else data / "clean"


class _Strata:
    """The documents of one rule, by stratum."""

    def __init__(self, rule: str, size: int, seed: int) -> None:
        self._rule, self._size, self._seed = rule, size, seed
        self._counts: dict[str, int] = {}
        self._smallest: dict[str, Smallest] = {}

    def add(self, ids_N: np.ndarray, sources_N: np.ndarray | None) -> None:
        ranks_N = ranks(ids_N, self._seed, self._rule)
        for stratum in [""] if sources_N is None else sorted(set(sources_N.tolist())):
            chosen_N = slice(None) if sources_N is None else sources_N == stratum
            smallest = self._smallest.setdefault(stratum, Smallest(self._size))
            smallest.add(ranks_N[chosen_N], ids_N[chosen_N])
            self._counts[stratum] = self._counts.get(stratum, 0) + len(ids_N[chosen_N])

    def sample(self) -> RuleSample:
        ranked = {stratum: smallest.items() for stratum, smallest in self._smallest.items()}
        return RuleSample(strata=dict(sorted(self._counts.items())), drawn=allot(ranked, self._size))


def _removals(ledger: Path) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Ids and rules of what was removed, in batches; a rule that spoke twice of a document counts once.

    A ledger is sorted by id and rule, so that both stand together.
    """
    last = (b"", "")
    for batch in read_columns(ledger, ["id", "rule", "verdict"]):
        removed_N = _strings(batch.column("verdict")) == REMOVED
        ids_N = id_bytes(batch.column("id"))[removed_N]
        rules_N = _strings(batch.column("rule"))[removed_N]
        if not len(ids_N):
            continue
        new_N = np.empty(len(ids_N), bool)
        new_N[0] = (ids_N[0], rules_N[0]) != last
        new_N[1:] = (ids_N[1:] != ids_N[:-1]) | (rules_N[1:] != rules_N[:-1])
        last = (ids_N[-1], rules_N[-1])
        if new_N.any():
            yield ids_N[new_N], rules_N[new_N]


def _sources(documents: Path, ids_N: np.ndarray) -> np.ndarray:
    """The source of each removed document, found in the layer it was removed from; ``""`` if not there."""
    wanted_W, place_N = np.unique(ids_N, return_inverse=True)
    found_W = np.full(len(wanted_W), "", object)
    low, high = wanted_W[0].decode(), wanted_W[-1].decode()
    for batch in read_columns(documents, ["id", "source"], (low, high)):
        names_M = id_bytes(batch.column("id"))
        at_M = np.minimum(np.searchsorted(wanted_W, names_M), len(wanted_W) - 1)
        hit_M = wanted_W[at_M] == names_M
        found_W[at_M[hit_M]] = _strings(batch.column("source"))[hit_M]
    return found_W[place_N]


def _strings(column: pa.Array) -> np.ndarray:
    return np.array([value or "" for value in column.to_pylist()], object)
