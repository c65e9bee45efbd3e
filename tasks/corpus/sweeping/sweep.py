"""A rule's bound moved through all values of its signal: what each would keep, and what lies at the border.

Nothing is measured again: everything is read from the signals of the scored layer, by one process, in
batches.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tasks.corpus.perplexity.buckets import Histogram, cutoffs, histogram
from tasks.corpus.policies.judgement import measured
from tasks.corpus.policies.policy import CleanParams
from tasks.corpus.policies.rules import Rule
from tasks.corpus.scoring.parts import FIXED_SIGNALS, LEXICON_SIGNAL
from tasks.corpus.sweeping.border import Border, add_excerpts
from tasks.corpus.sweeping.counting import Bound, count
from tasks.corpus.sweeping.curves import Sweep
from tasks.corpus.sweeping.selection import Selecting, Selection, SweepError
from tasks.corpus.sweeping.thresholds import Side, Tally
from tasks.parameters import nearest
from tasks.records import read_lineage

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = ["id", "source", "kind", "language", "language_score", "signals"]
BATCH_DOCUMENTS = 8192


def sweep(
    layer: Path,
    params: CleanParams,
    name: str,
    *,
    selection: Selection | None = None,
    examples: int = 5,
    at: float | None = None,
) -> Sweep:
    """Sweep the bounds of a rule of the policy, or those that a signal without a rule might have.

    For each entry of the rule, and each of its bounds: what every threshold would keep by itself, and with
    all else that the policy says. What line rules leave of a text is not foreseen.

    Args:
        layer: the scored layer.
        params: the policy.
        name: a rule, else a signal.
        selection: the documents that are looked at; all if left out.
        examples: how many documents are shown on either side of the bound.
        at: show them at this value, not at the bound.

    Raises:
        SweepError: there is no such rule or signal, or nothing that it judges; the layer is not scored.
    """
    if at is not None and not math.isfinite(at):
        raise SweepError(f"examples can be shown at a number, not at {at}")
    wanted = selection.wanted() if selection else {}
    parts = _parts(layer)
    entries = _entries(layer, params, name)
    bounds = [Bound(number, entry, side, *_start(entry, side, examples, at))
              for number, entry in enumerate(entries) for side in _sides(entry)]  # fmt: skip
    cuts = cutoffs(_perplexities(parts), params.bucket_shares) if params.keep_buckets is not None else {}
    selecting, sums = Selecting(wanted), np.zeros(4, np.int64)
    for batch in _batches(parts, COLUMNS):
        chosen = selecting.select(batch)
        if chosen.num_rows:
            sums += count(chosen, params, cuts, name, entries, bounds)
    selecting.refuse_what_is_nowhere()
    judged = [bound for bound in bounds if bound.documents]
    signals = sorted({str(bound.entry.signal) for bound in bounds})
    if not judged:
        raise SweepError(f"{name} judges none of the {sums[0]:,} documents that are looked at")
    if all(bound.documents == bound.unmeasured for bound in judged):
        raise SweepError(
            f"no document that is looked at has the signal {', '.join(signals)}: `score` did not measure it "
            "(section `score` of params.yaml)"
        )
    add_excerpts(parts, [bound.border for bound in judged if bound.border], params.mask_key)
    documents, characters, policy_documents, policy_characters = sums.tolist()
    return Sweep(
        name=name,
        selection=wanted,
        documents=documents,
        characters=characters,
        unjudged=documents - sum({bound.number: bound.documents for bound in judged}.values()),
        policy_documents=policy_documents,
        policy_characters=policy_characters,
        rules_of_signal=sorted(
            {rule.name for rule in params.all_rules if rule.signal in signals and rule.name != name}
        ),
        curves=[bound.curve() for bound in judged],
    )


def _entries(layer: Path, params: CleanParams, name: str) -> list[Rule]:
    """The entries of a rule that have bounds; for a signal one without."""
    of_name = [rule for rule in params.all_rules if rule.name == name]
    if of_name:
        on = [rule for rule in of_name if not rule.off]
        if not on:
            raise SweepError(f"the rule {name} is off wherever it is named: it has no bound to sweep")
        return on
    signals = {*FIXED_SIGNALS, *_lexicon_signals(layer)}
    if name in signals:
        return [Rule.model_construct(name=name, signal=name)]
    rules = list(dict.fromkeys(rule.name for rule in params.all_rules))
    close = nearest(name, [*rules, *signals])
    hint = f"; {close}" if close.startswith("did you mean") else ""
    raise SweepError(
        f"the policy has no rule `{name}`, and there is no signal of that name{hint}\n"
        f"rules: {', '.join(rules) or 'none'}\nsignals: {', '.join(sorted(signals))}"
    )


def _lexicon_signals(layer: Path) -> list[str]:
    made_by = [entry["parameters"] for entry in read_lineage(layer) if entry["stage"] == "score"]
    return [LEXICON_SIGNAL.format(given["name"]) for entry in made_by for given in entry.get("lexicons", [])]


def _parts(layer: Path) -> list[Path]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    parts = sorted((layer / "documents").glob("*.parquet"))
    if not parts:
        raise SweepError(f"{layer} has no documents: `gristmill run corpus` makes the scored layer")
    for part in parts:
        try:
            columns = pq.read_schema(part).names
        except (OSError, pa.ArrowException) as error:
            raise SweepError(f"{part} cannot be read: {error}") from None
        if missing := [column for column in [*COLUMNS, "text"] if column not in columns]:
            raise SweepError(f"{part} has no column {', '.join(missing)}: it is no part of a scored layer")
    return parts


def _batches(parts: Sequence[Path], columns: list[str]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    for path in parts:
        try:
            with pq.ParquetFile(path) as part:
                yield from part.iter_batches(BATCH_DOCUMENTS, columns=columns)
        except (OSError, pa.ArrowException) as error:
            raise SweepError(f"{path} cannot be read: {error}") from None


def _perplexities(parts: Sequence[Path]) -> Histogram:
    """Of all documents, as `clean` counts them: a selection moves no cutoff."""
    total: Histogram = Histogram()
    for batch in _batches(parts, ["language", "language_score", "signals"]):
        names, signals_DS = measured(batch)
        if "perplexity" in names:
            total += histogram(signals_DS[:, names.index("perplexity")], batch.column("language").to_pylist())
    return total


def _sides(entry: Rule) -> list[Side]:
    if entry.minimum is None and entry.maximum is None:
        return ["minimum", "maximum"]
    sides: list[Side] = ["minimum", "maximum"]
    return [side for side in sides if getattr(entry, side) is not None]


def _start(entry: Rule, side: Side, examples: int, at: float | None) -> tuple[Tally, Border | None]:
    place = getattr(entry, side) if at is None else at
    return Tally(side, 4), None if place is None else Border(side, place, examples)
