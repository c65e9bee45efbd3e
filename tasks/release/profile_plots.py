"""The profile of the layers as bars, histograms and the rows of tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tasks.corpus.profiling.results import UNKNOWN, Amount, Diversity, LayerProfile, Profile
from tasks.release.charts import Chart, DrawnLine, Tick, nice_ticks

COLOURS = 7
"""Values that have a colour of their own; what is smaller is drawn as one, "other"."""


@dataclass(frozen=True)
class Segment:
    """A part of a bar: ``place`` and ``width`` are percentages, ``style`` is a class of the style sheet."""

    name: str
    style: str
    place: float
    width: float
    told: str


@dataclass(frozen=True)
class Bar:
    """One layer; ``summary`` says in words what the bar shows."""

    name: str
    segments: list[Segment]
    total: int
    summary: str


@dataclass(frozen=True)
class Bars:
    """Bars to one scale under a title, with the key to their colours: (name, style)."""

    title: str
    bars: list[Bar]
    key: list[tuple[str, str]]


@dataclass(frozen=True)
class ProfilePlots:
    """All that is drawn of a profile."""

    sources: list[Bars]
    languages: Bars
    lengths: list[tuple[str, Chart]]
    diversity: list[tuple[str, list[tuple[str, int, Diversity]]]]
    """(what the rows are, rows of name, words and diversity)"""


def profile_plots(profile: Profile | None) -> ProfilePlots | None:
    """Lay out the plots; None without a profile or without a document in it."""
    layers = {name: layer for name, layer in (profile.layers if profile else {}).items() if layer.sources}
    if profile is None or not layers:
        return None
    known = {name: layer for name, layer in layers.items() if set(layer.languages) != {UNKNOWN}}
    first, last = next(iter(layers)), list(layers)[-1]
    of_sources = {name: layer.sources for name, layer in layers.items()}
    of_languages = {name: layer.languages for name, layer in known.items()}
    source_key = _key(of_sources)  # a source has one colour, whatever is counted
    return ProfilePlots(
        sources=[
            _bars("Documents by source", of_sources, "documents", source_key),
            _bars("Characters by source", of_sources, "characters", source_key),
        ],
        languages=_bars(
            "Characters by language, as shares",
            of_languages,
            "characters",
            _key(of_languages),
            as_shares=True,
        ),
        lengths=_length_charts(profile, first, last),
        diversity=[
            ("Layer", [(name, layer.total.words, layer.diversity) for name, layer in layers.items()]),
            (f"Source, in {last}", _source_rows(layers[last])),
        ],
    )


def _source_rows(layer: LayerProfile) -> list[tuple[str, int, Diversity]]:
    return [
        (name, layer.sources[name].words, diversity) for name, diversity in layer.diversity_by_source.items()
    ]


def _key(layers: Mapping[str, Mapping[str, Amount]]) -> list[tuple[str, str]]:
    """(name, style) of the values with most characters in all layers together, and of what is left."""
    overall: dict[str, int] = {}
    for parts in layers.values():
        for part, amount in parts.items():
            overall[part] = overall.get(part, 0) + amount.characters
    order = sorted(overall, key=lambda part: (-overall[part], part))
    key = [(part, f"c{number}") for number, part in enumerate(order[:COLOURS], 1)]
    return [*key, (f"{len(order) - COLOURS} other", "other")] if len(order) > COLOURS else key


def _bars(
    title: str,
    layers: Mapping[str, Mapping[str, Amount]],
    field: str,
    key: list[tuple[str, str]],
    *,
    as_shares: bool = False,
) -> Bars:
    """A bar for each layer, its parts in the order of the key."""
    sizes = {name: {part: getattr(a, field) for part, a in parts.items()} for name, parts in layers.items()}
    widest = max((sum(parts.values()) for parts in sizes.values()), default=0) or 1
    bars = []
    for name, parts in sizes.items():
        total = sum(parts.values())
        drawn = [parts.get(part, 0) for part, _ in key[:COLOURS]]
        drawn += [total - sum(drawn)] if len(key) > COLOURS else []
        bars.append(_bar(name, key, drawn, total, (total or 1) if as_shares else widest))
    return Bars(title, bars, key)


def _bar(name: str, key: Sequence[tuple[str, str]], sizes: Sequence[int], total: int, scale: int) -> Bar:
    segments, before = [], 0
    for (part, style), size in zip(key, sizes, strict=True):
        if size:
            told = f"{part}: {size:,}, {_percent(size / total)}"
            place, width = round(100 * before / scale, 3), round(100 * size / scale, 3)
            segments.append(Segment(part, style, place, width, told))
        before += size
    return Bar(name, segments, total, f"{name}: " + "; ".join(segment.told for segment in segments))


def _percent(share: float) -> str:
    return "< 0.1 %" if 0 < share < 0.0005 else f"{100 * share:.1f} %"


def _length_charts(profile: Profile, first: str, last: str) -> list[tuple[str, Chart]]:
    """A histogram for each kind, before and after, over one axis of lengths."""
    before, after = profile.layers[first].lengths, profile.layers[last].lengths
    kinds = sorted(set(before) | set(after), key=lambda kind: (-sum(after.get(kind, [])), kind))
    nothing = [0] * len(profile.length_edges)
    used = [number for counts in (*before.values(), *after.values()) for number, n in enumerate(counts) if n]
    low, high = min(used), max(used) + 1
    charts = []
    for kind in kinds:
        histograms = [(first, "before", before.get(kind, nothing)), (last, "after", after.get(kind, nothing))]
        chart = _histogram(f"{kind}: documents by length", histograms, profile.length_edges, low, high)
        charts.append((kind, chart))
    return charts


def _histogram(
    title: str,
    histograms: Sequence[tuple[str, str, Sequence[int]]],
    edges: Sequence[int],
    low: int,
    high: int,
) -> Chart:
    """Counts of the bins ``low`` to ``high`` as steps; the bins are equally wide."""
    most = max(max(counts[low:high]) for _, _, counts in histograms)
    y_ticks = nice_ticks(0, most, 3, whole=True)

    def across(number: int) -> float:
        return round(100 * (number - low) / (high - low), 2)

    def down(count: int) -> float:
        return round(100 * (1 - count / y_ticks[-1]), 2)

    lines, told = [], []
    for name, style, counts in histograms:
        steps = [
            f"V{down(count):g}H{across(number + 1):g}" for number, count in enumerate(counts[low:high], low)
        ]
        lines.append(DrawnLine(name, f"M0 100{''.join(steps)}V100", style, f"{sum(counts):,}"))
        told.append(f"{name}: {_told(counts, edges)}")
    decades = [number for number in range(low, high + 1) if number < len(edges) and _is_decade(edges[number])]
    return Chart(
        title=title,
        x_label="characters",
        lines=lines,
        references=[],
        x_ticks=[Tick(across(number), _short(edges[number])) for number in decades],
        y_ticks=[Tick(down(int(tick)), f"{tick:,.0f}") for tick in y_ticks],
        summary=f"{title}; {'; '.join(told)}",
    )


def _told(counts: Sequence[int], edges: Sequence[int]) -> str:
    if not sum(counts):
        return "no documents"
    peak = max(range(len(counts)), key=counts.__getitem__)
    return f"{sum(counts):,} documents, most of them with {edges[peak]:,} characters or somewhat more"


def _is_decade(edge: int) -> bool:
    return edge > 0 and str(edge).strip("0") == "1"


def _short(edge: int) -> str:
    for size, unit in ((10**6, " M"), (10**3, " k")):
        if edge >= size:
            return f"{edge // size}{unit}"
    return str(edge)
