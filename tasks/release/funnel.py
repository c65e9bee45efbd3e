"""Documents on their way through the layers: how many stay, how many go and why."""

from __future__ import annotations

from dataclasses import dataclass

from tasks.release.evidence import LAYERS, Evidence
from tasks.release.ledgers import RuleSummary

VERBS = {
    "collect": "Collected",
    "score": "Scored",
    "clean": "Cleaned",
    "dedup": "Deduplicated",
    "mix": "Mixed",
}


@dataclass(frozen=True)
class Reason:
    """Why documents went: how many went for this rule first, how many failed it at all, and one of them."""

    rule: str
    decided: int
    share: float
    failed: int | None
    example: str | None


@dataclass(frozen=True)
class Step:
    """One layer of the funnel. Widths are percentages of the largest number of documents."""

    stage: str
    title: str
    layer: str
    records_in: int | None
    kept: int
    gone: int
    kept_width: float
    gone_width: float
    reasons: list[Reason]
    changes: list[RuleSummary]


@dataclass(frozen=True)
class Breakdown:
    """Counts of one property, layer by layer: ``cells[row][layer]``, None where the layer says nothing."""

    layers: list[str]
    rows: list[tuple[str, list[int | None], float]]


def funnel(evidence: Evidence) -> list[Step]:
    """The layers with counts, first to last."""
    widest = max((counts.records_in for counts in evidence.counts.values()), default=0) or 1
    steps = []
    for stage, layer in LAYERS.items():
        counts = evidence.counts.get(stage)
        if counts is None:
            continue
        ledger = evidence.ledgers.get(stage)
        gone = counts.removed + counts.quarantined
        reasons = []
        for rule, decided in sorted(counts.removed_by_rule.items(), key=lambda item: (-item[1], item[0])):
            found = ledger.against(rule) if ledger else None
            share = 100 * decided / gone if gone else 0.0
            reasons.append(
                Reason(
                    rule, decided, share, found.documents if found else None, found.example if found else None
                )
            )
        steps.append(
            Step(
                stage=stage,
                title=VERBS[stage],
                layer=layer,
                records_in=counts.records_in,
                kept=counts.kept,
                gone=gone,
                kept_width=round(100 * counts.kept / widest, 2),
                gone_width=round(100 * gone / widest, 2),
                reasons=reasons,
                changes=[rule for rule in ledger.rules if rule.kept] if ledger else [],
            )
        )
    return steps


def breakdown(evidence: Evidence, field: str) -> Breakdown:
    """Documents kept by source or by language, largest in the last layer first."""
    stages = [stage for stage in LAYERS if stage in evidence.counts]
    by_layer = [getattr(evidence.counts[stage], field) for stage in stages]
    # A layer that knows no language counts all as undetermined; that says nothing.
    by_layer = [{} if set(counts) <= {"und", ""} else counts for counts in by_layer]
    names = {name for counts in by_layer for name in counts}
    last = next((counts for counts in reversed(by_layer) if counts), {})
    total = sum(last.values()) or 1
    order = sorted(names, key=lambda name: (-last.get(name, 0), name))
    rows = [
        (
            name,
            [counts.get(name, 0) if counts else None for counts in by_layer],
            100 * last.get(name, 0) / total,
        )
        for name in order
    ]
    return Breakdown([LAYERS[stage] for stage in stages], rows)
