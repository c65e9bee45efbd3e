"""What `data/profile.json` holds. Every number is an integer, or rounded from integers."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

UNKNOWN = "unknown"
"""The name under which documents without a language (or kind, or domain) are counted."""


class _Result(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Amount(_Result):
    """How much there is of something."""

    documents: int = 0
    characters: int = 0
    words: int = 0
    bytes: int = 0
    """of the text in UTF-8"""


class Part(Amount):
    """One value of a property, and its share of the layer."""

    document_share: float
    character_share: float


class Coverage(_Result):
    """How evenly the characters lie over the values of a property, as far as those are known."""

    entropy: float
    """Shannon entropy of the shares of characters, in nats"""
    effective: float
    """exp(entropy): so many values of equal size would be as even (Hill number of order 1, Jost 2006);
    0 if there are none"""
    rare: list[str]
    """values whose share of characters is below the threshold"""


class Ngrams(_Result):
    """Distinct n-grams of words."""

    total: int
    distinct: int
    """exact up to the size of the sketch, beyond it an estimate"""
    distinct_share: float | None
    """distinct / total; it falls as the text grows, so it compares only texts of one size"""
    distinct_of_100k: int | None
    """distinct n-grams expected among 100,000 drawn at random: it compares texts of any size that have as
    many (None for those that have not)"""
    single_share: float | None
    """share of the distinct that occur once"""


class Diversity(_Result):
    """How much of the text is unlike the rest of it."""

    ngrams: dict[int, Ngrams]
    """by n"""
    topic_spread: float | None
    """1 − mean cosine of two different documents' hashed bags of words: 0 if all have the same words; None
    for fewer than two documents with words"""


class Noise(_Result):
    """Marks of bad text that are still in the layer."""

    replaced_characters: int
    empty_share: float
    """share of the documents without text"""
    undetermined_share: float
    """share of those with language `und` among the documents whose language is known"""
    duplicate_share: float
    """share of the documents that repeat the text of another, but for case and white space"""


class Quantiles(_Result):
    """Quantiles of one signal over the documents that have it: the lower edge of the bin they lie in."""

    documents: int
    p5: float
    p50: float
    p95: float


class LayerProfile(_Result):
    """One layer."""

    total: Amount
    sources: dict[str, Part]
    kinds: dict[str, Part]
    domains: dict[str, Part]
    languages: dict[str, Part]
    sources_by_language: dict[str, dict[str, Amount]]
    """source, then language"""
    coverage: dict[str, Coverage]
    """of `sources`, `kinds`, `domains` and `languages`"""
    lengths: dict[str, list[int]]
    """by kind: documents in each bin of `Profile.length_edges`"""
    diversity: Diversity
    diversity_by_source: dict[str, Diversity]
    noise: Noise
    signals: dict[str, Quantiles]


class Loss(_Result):
    """What a rule, or a stage, took out of the layer before it."""

    documents: int
    document_share: float
    characters: int
    character_share: float


class StageLosses(_Result):
    """The noise ratio: what a stage did not pass on."""

    before: str
    """the layer that the shares refer to"""
    total: Loss
    rules: dict[str, Loss]
    """a document that failed several rules counts under each"""
    trimmed_characters: int | None
    """characters taken out of the documents that stayed (negative if added); None where documents are
    repeated"""


class Profile(_Result):
    """The layers, first to last, and what was lost between them."""

    sketch_size: int
    sketch_standard_error: float
    """relative, of the distinct n-grams beyond `sketch_size`"""
    minimum_share: float
    """below it a value is rare"""
    length_edges: list[int]
    """characters at which the bins of lengths begin; the last is open"""
    layers: dict[str, LayerProfile]
    losses: dict[str, StageLosses]
    """by stage"""
