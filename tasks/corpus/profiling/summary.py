"""From the sketches of a layer's sources to what the profile says of it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from tasks.corpus.profiling.histograms import SIGNAL_EDGES, quantile
from tasks.corpus.profiling.results import (
    UNKNOWN,
    Amount,
    Coverage,
    Diversity,
    LayerProfile,
    Ngrams,
    Noise,
    Part,
    Quantiles,
)
from tasks.corpus.profiling.sketch import AMOUNTS, NGRAMS, Sketch, Topics, empty_sketch, merge_sketches
from tasks.corpus.profiling.word_features import UNIT

DRAWS = 100_000

UNDETERMINED = "und"


def layer_profile(sources: Mapping[str, Sketch], size: int, minimum_share: float) -> LayerProfile:
    """One layer; without any document all is 0 or None."""
    ordered = {name: sources[name] for name in sorted(sources)}
    whole = merge_sketches([empty_sketch(size), *ordered.values()])
    total = _amount(sum(whole.cells.values(), np.zeros(len(AMOUNTS), np.int64)))
    by: dict[str, dict[str, np.ndarray]] = {name: {} for name in ("source", "kind", "domain", "language")}
    for source, sketch in ordered.items():
        for cell, amounts in sketch.cells.items():
            for name, value in (("source", source), *cell._asdict().items()):
                by[name][value] = by[name].get(value, 0) + amounts
    parts = {f"{name}s": _parts(found, total) for name, found in by.items()}
    return LayerProfile(
        total=total,
        sources=parts["sources"],
        kinds=parts["kinds"],
        domains=parts["domains"],
        languages=parts["languages"],
        sources_by_language={source: _languages(sketch) for source, sketch in ordered.items()},
        coverage={name: _coverage(found, minimum_share) for name, found in parts.items()},
        lengths={kind: whole.lengths[kind].tolist() for kind in sorted(whole.lengths)},
        diversity=_diversity(whole),
        diversity_by_source={source: _diversity(sketch) for source, sketch in ordered.items()},
        noise=_noise(whole, total, parts["languages"]),
        signals={
            name: _quantiles(whole.signals[name], name) for name in SIGNAL_EDGES if _any(whole.signals, name)
        },
    )


def topic_spread(topics: Topics) -> float | None:
    """1 − the mean cosine of two different documents.

    The sum of all cosines is the squared length of the summed unit vectors, of which the cosines of each
    document with itself are taken off.
    """
    if topics.vectors < 2:
        return None
    together = sum(int(value) ** 2 for value in topics.sum_V) - topics.squares
    pairs = topics.vectors * (topics.vectors - 1)
    return round(1 - together / (pairs * UNIT**2), 4)


def share(part: int, whole: int) -> float:
    """Rounded; 0 of nothing is 0."""
    return round(part / whole, 6) if whole else 0.0


def _amount(amounts: np.ndarray) -> Amount:
    return Amount(**dict(zip(AMOUNTS, amounts.tolist(), strict=True)))


def _parts(found: Mapping[str, np.ndarray], total: Amount) -> dict[str, Part]:
    parts = {}
    for name in sorted(found):
        amount = _amount(found[name])
        parts[name] = Part(
            **amount.model_dump(),
            document_share=share(amount.documents, total.documents),
            character_share=share(amount.characters, total.characters),
        )
    return parts


def _languages(sketch: Sketch) -> dict[str, Amount]:
    found: dict[str, np.ndarray] = defaultdict(lambda: np.zeros(len(AMOUNTS), np.int64))
    for cell, amounts in sketch.cells.items():
        found[cell.language] = found[cell.language] + amounts
    return {language: _amount(found[language]) for language in sorted(found)}


def _coverage(parts: Mapping[str, Part], minimum_share: float) -> Coverage:
    parts = {name: part for name, part in parts.items() if name != UNKNOWN}
    total = sum(part.characters for part in parts.values())
    shares = [part.characters / total for part in parts.values() if part.characters]
    entropy = math.fsum(-portion * math.log(portion) for portion in shares)
    return Coverage(
        entropy=round(abs(entropy), 4),
        effective=round(math.exp(entropy), 4) if shares else 0.0,
        rare=[name for name, part in parts.items() if part.characters < minimum_share * total],
    )


def _diversity(sketch: Sketch) -> Diversity:
    return Diversity(ngrams={n: _ngrams(sketch, n) for n in NGRAMS}, topic_spread=topic_spread(sketch.topics))


def _ngrams(sketch: Sketch, n: int) -> Ngrams:
    found, total = sketch.ngrams[n], sketch.ngram_totals[n]
    distinct, drawn, single = min(found.distinct(), total), found.drawn(total, DRAWS), found.single_share()
    return Ngrams(
        total=total,
        distinct=distinct,
        distinct_share=round(distinct / total, 4) if total else None,
        distinct_of_100k=None if drawn is None else round(drawn),
        single_share=None if single is None else round(single, 4),
    )


def _noise(whole: Sketch, total: Amount, languages: Mapping[str, Part]) -> Noise:
    nothing = Amount()
    known = total.documents - languages.get(UNKNOWN, nothing).documents
    repeats = whole.contents.mean_count()
    return Noise(
        replaced_characters=whole.replaced_characters,
        empty_share=share(whole.empty, total.documents),
        undetermined_share=share(languages.get(UNDETERMINED, nothing).documents, known),
        duplicate_share=0.0 if repeats is None else round(1 - 1 / repeats, 6),
    )


def _any(histograms: Mapping[str, np.ndarray], name: str) -> bool:
    return name in histograms and bool(histograms[name].any())


def _quantiles(counts: np.ndarray, name: str) -> Quantiles:
    p5, p50, p95 = (quantile(counts, SIGNAL_EDGES[name], percent) for percent in (5, 50, 95))
    return Quantiles(documents=int(counts.sum()), p5=p5, p50=p50, p95=p95)
