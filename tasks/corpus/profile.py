"""All layers in, their profile out: how much there is of what, how diverse, how noisy."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from tasks.corpus.profiling.distinct import standard_error
from tasks.corpus.profiling.histograms import LENGTH_EDGES
from tasks.corpus.profiling.losses import gone_documents, stage_losses
from tasks.corpus.profiling.results import Profile
from tasks.corpus.profiling.sketch import COLUMNS, Sketch, add_batch, merge_sketches
from tasks.corpus.profiling.summary import layer_profile
from tasks.resources import Resources
from tasks.spark import spark_session
from tasks.stage import Input, Output, StageParams, StageReport, run_as_stage, stage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DOCUMENTS_AT_ONCE = 256


class ProfileParams(StageParams):
    """How exactly is counted, and what is called rare."""

    sketch_size: int = Field(
        default=4096,
        ge=16,
        description="distinct n-grams of a source up to which they are counted exactly",
    )
    minimum_share: float = Field(
        default=0.01,
        ge=0,
        le=1,
        description="share of characters below which a source or a language is rare",
    )


class ProfileReport(StageReport):
    """The profile in a few numbers, by layer."""

    documents: dict[str, int]
    characters: dict[str, int]
    words: dict[str, int]
    effective_sources: dict[str, float]
    duplicate_share: dict[str, float]
    distinct_trigrams: dict[str, int]
    lost_document_share: dict[str, float]
    """by stage"""
    lost_character_share: dict[str, float]


@stage
def profile(
    raw: Input,
    scored: Input,
    clean: Input,
    unique: Input,
    mixture: Input,
    profile: Output,
    params: ProfileParams,
    resources: Resources,
) -> ProfileReport:
    """Measure every layer in one pass each, and write what is found as JSON.

    What comes to the driver is a sketch of each source and layer, whatever their size.
    """
    layers = {"raw": raw, "scored": scored, "clean": clean, "unique": unique, "mixture": mixture}
    with spark_session("profile", resources) as spark:
        sketches = _sketches(spark, layers, params.sketch_size)
        gone = gone_documents(spark, layers)
    profiles = {
        name: layer_profile(sketches[name], params.sketch_size, params.minimum_share) for name in layers
    }
    found = Profile(
        sketch_size=params.sketch_size,
        sketch_standard_error=round(standard_error(params.sketch_size), 4),
        minimum_share=params.minimum_share,
        length_edges=list(LENGTH_EDGES),
        layers=profiles,
        losses=stage_losses(profiles, gone),
    )
    profile.write_text(found.model_dump_json(indent=1) + "\n", "utf-8")
    return _report(found)


def _sketches(spark: SparkSession, layers: Mapping[str, Path], size: int) -> dict[str, dict[str, Sketch]]:
    """The sketch of every source of every layer, by layer, in one Spark job.

    Workers read the parts themselves: of a row Spark would make two copies on its way to them.
    """
    parts = [
        (name, str(part.resolve()))
        for name, layer in layers.items()
        for part in sorted((layer / "documents").glob("*.parquet"))
    ]
    context = spark.sparkContext
    # A task merges the sketches of its parts before any is sent on.
    tasks = max(1, min(len(parts), 4 * context.defaultParallelism))
    sketched = context.parallelize(parts, tasks).flatMap(lambda part: _sketch_part(*part, size))
    merged = sketched.reduceByKey(lambda left, right: merge_sketches([left, right]))
    found: dict[str, dict[str, Sketch]] = {name: {} for name in layers}
    for (name, source), sketch in merged.collect():
        found[name][source] = sketch
    return found


def _sketch_part(layer: str, part: str, size: int) -> list[tuple[tuple[str, str], Sketch]]:
    """Sketch one part of a layer; runs on a Spark worker, which must see the same directory."""
    import pyarrow.parquet as pq

    known: dict[str, Sketch] = {}
    with pq.ParquetFile(part) as file:
        for batch in file.iter_batches(batch_size=_DOCUMENTS_AT_ONCE, columns=list(COLUMNS)):
            add_batch(known, batch, size)
    return [((layer, source), sketch) for source, sketch in known.items()]


def _report(found: Profile) -> ProfileReport:
    layers = found.layers.items()
    return ProfileReport(
        documents={name: layer.total.documents for name, layer in layers},
        characters={name: layer.total.characters for name, layer in layers},
        words={name: layer.total.words for name, layer in layers},
        effective_sources={name: layer.coverage["sources"].effective for name, layer in layers},
        duplicate_share={name: layer.noise.duplicate_share for name, layer in layers},
        distinct_trigrams={name: layer.diversity.ngrams[3].distinct for name, layer in layers},
        lost_document_share={stage: lost.total.document_share for stage, lost in found.losses.items()},
        lost_character_share={stage: lost.total.character_share for stage, lost in found.losses.items()},
    )


if __name__ == "__main__":
    run_as_stage(profile)
