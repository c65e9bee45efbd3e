"""Scored documents in, clean ones out: rules decide on the signals, personal data and listed words are
masked."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.corpus.forgotten import ForgottenDocuments, forgotten_documents, read_forgotten
from tasks.corpus.lexicons.lists import Lexicon, LexiconParams, read_lexicon
from tasks.corpus.perplexity.buckets import Histogram, cutoffs, histogram, perplexity_of
from tasks.corpus.policies.judgement import Judge, judge_batch
from tasks.corpus.policies.policy import CleanParams
from tasks.corpus.policies.verdict_changes import compare_verdicts, keep_for_comparison, same_policy
from tasks.corpus.scoring.parts import LEXICON_SIGNAL
from tasks.layer_files import read_documents
from tasks.parameters import nearest
from tasks.records import (
    DOCUMENT_COLUMNS,
    JUDGEMENT_COLUMNS,
    DocumentReport,
    carry_lineage,
    read_lineage,
    schema,
    write_layer,
)
from tasks.resources import Resources
from tasks.spark import spark_session
from tasks.stage import Input, Output, StageError, run_as_stage, stage

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger("gristmill")


class CleanReport(DocumentReport):
    """What became of the scored documents."""

    masked: dict[str, int]
    """values and words replaced in the documents that are kept, by rule of the ledger"""
    perplexity_cutoffs: dict[str, list[float]]
    """perplexities of each language at which head and middle end"""


@stage
def clean(
    scored: Input,
    lexicons: Input,
    forgotten: Input,
    clean: Output,
    params: CleanParams,
    resources: Resources,
) -> CleanReport:
    """Hold the rules against the signals of every document, and mask what is kept.

    Raises:
        StageError: if ``forgotten`` has a line that is no entry, a rule or an action needs something that
            `score` did not measure, or a rule names a source that is none.
    """
    made_by = {entry["stage"]: entry["parameters"] for entry in read_lineage(scored)}
    if "score" not in made_by:
        raise StageError(f"{scored} holds no documents that were scored: run the stage `score` first")
    scoring = made_by["score"]
    _refuse_unknown_sources(made_by, params)
    lists = _masked_lists(scoring, lexicons, params)
    _refuse_unmeasured(scoring, params)
    listed = forgotten_documents(read_forgotten(forgotten))
    carry_lineage(scored, clean)
    with spark_session("clean", resources) as spark:
        documents = read_documents(spark, scored)
        cuts = cutoffs(_perplexities(documents), params.bucket_shares)
        judged = documents.mapInArrow(
            _judged(params, cuts, lists, listed), schema(DOCUMENT_COLUMNS | JUDGEMENT_COLUMNS)
        )
        counts = write_layer(judged, clean, "clean", params)
        masked = _masked(spark, clean)
        _tell_changes(spark, clean, resources.kept / "clean")
    ends = {language: [round(perplexity_of(cut), 2) for cut in pair] for language, pair in cuts.items()}
    return CleanReport(**counts, masked=masked, perplexity_cutoffs=ends)


def _masked_lists(scoring: Mapping[str, Any], lexicons: Path, params: CleanParams) -> list[Lexicon]:
    """The lists whose words are masked.

    Raises:
        StageError: if an action speaks of a list that was not counted.
    """
    counted = {given["name"]: LexiconParams.model_validate(given) for given in scoring["lexicons"]}
    for action in params.lexicons:
        if action.lexicon not in counted:
            known = ", ".join(sorted(counted)) or "none"
            raise StageError(
                f"clean.lexicons: there is no list `{action.lexicon}` in score.lexicons; there are: {known}"
            )
    masked = [counted[action.lexicon] for action in params.lexicons if action.action == "mask"]
    return [read_lexicon(given, lexicons) for given in masked]


def _refuse_unknown_sources(made_by: Mapping[str, Any], params: CleanParams) -> None:
    """A rule for a source that is none would judge nothing without a word.

    Raises:
        StageError: if `collect` has no such source.
    """
    collected = made_by.get("collect", {"sources": []})
    known = sorted(source["name"] for source in collected["sources"])
    for rule in params.rules:
        for name in rule.only_sources or ():
            if name not in known:
                hint = nearest(name, known)
                raise StageError(f"clean.rules: {rule.name}: no source `{name}` in collect.sources; {hint}")


def _refuse_unmeasured(scoring: Mapping[str, Any], params: CleanParams) -> None:
    """A rule on what was not measured would let everything pass without a word.

    Raises:
        StageError: if a rule, or the choice of buckets, needs a signal that was left out.
    """
    perplexity = scoring["perplexity"] or {}
    given = (
        ("toxicity", "toxicity", scoring["toxicity"]),
        ("perplexity", "perplexity", perplexity.get("trusted_sources") or perplexity.get("model")),
        ("contamination", "evaluation_sets", scoring["evaluation_sets"]),
    )
    missing = {signal: key for signal, key, what in given if not what}
    rates = {LEXICON_SIGNAL.format(listed["name"]) for listed in scoring["lexicons"]}
    needed = [(f"rule {rule.name}", str(rule.signal)) for rule in params.all_rules if not rule.off]
    if params.keep_buckets is not None:
        needed.append(("keep_buckets", "perplexity"))
    missing |= {
        signal: "lexicons" for _, signal in needed if signal.startswith("lexicon_") and signal not in rates
    }
    for what, signal in needed:
        if signal in missing:
            raise StageError(
                f"clean: {what} needs the signal {signal}, which score did not measure: "
                f"set score.{missing[signal]}, or leave it out"
            )


def _perplexities(documents: DataFrame) -> Histogram:
    """How many documents of each language have a perplexity in each bin."""
    total: Histogram = Histogram()
    counted = documents.select("language", documents["signals"]["perplexity"].alias("perplexity"))
    measured = counted.where("perplexity is not null")
    for row in measured.mapInArrow(_binned, "language string, bin long, documents long").collect():
        total[row["language"], row["bin"]] += row["documents"]
    return total


def _binned(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    """The histogram of a partition, in rows."""
    import pyarrow as pa

    total: Histogram = Histogram()
    for batch in batches:
        values = batch.column("perplexity").to_numpy(zero_copy_only=False)
        total += histogram(values, batch.column("language").to_pylist())
    rows = [{"language": key[0], "bin": key[1], "documents": count} for key, count in total.items()]
    types = pa.schema([("language", pa.string()), ("bin", pa.int64()), ("documents", pa.int64())])
    yield pa.RecordBatch.from_pylist(rows, types)


def _judged(
    params: CleanParams,
    cuts: dict[str, tuple[int, int]],
    lists: list[Lexicon],
    forgotten: ForgottenDocuments,
) -> Callable[[Iterable[pyarrow.RecordBatch]], Iterator[pyarrow.RecordBatch]]:
    """Judges the batches of a partition, in a worker."""

    def judged(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        from tasks.corpus.lexicons.matching import Lexicons

        judge = Judge(params, cuts, Lexicons(lists) if lists else None, forgotten)
        for batch in batches:
            yield judge_batch(batch, judge)

    return judged


def _masked(spark: SparkSession, layer: Path) -> dict[str, int]:
    from pyspark.sql import functions as F

    entries = spark.read.parquet(str(layer / "ledger")).where("verdict = 'kept' and threshold is null")
    rows = entries.groupBy("rule").agg(F.sum("value").cast("long").alias("count")).collect()
    return {row["rule"]: row["count"] for row in sorted(rows, key=lambda row: row["rule"])}


def _tell_changes(spark: SparkSession, layer: Path, work: Path) -> None:
    """Say which documents another policy judges otherwise than the last one did here, and keep this one's
    verdicts.

    That depends on what ran before, so it goes to the log and to ``work``, never into the report.
    """
    before = work / "before"
    if (before / "lineage.json").exists() and not same_policy(before, layer):
        changes = compare_verdicts(spark, before, layer)
        log.info("%s", changes)
        (work / "changes.json").write_text(changes.model_dump_json(indent=1) + "\n", "utf-8")
    keep_for_comparison(layer, before)


if __name__ == "__main__":
    run_as_stage(clean)
