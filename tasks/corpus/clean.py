"""Raw documents in, clean ones out: text from markup, language, signals, rules, privacy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from pydantic import Field, field_validator

from tasks.corpus.extract import extract_text
from tasks.corpus.language import NO_LANGUAGE, detect_language
from tasks.corpus.policy import Rule, failed
from tasks.corpus.privacy import mask_emails
from tasks.corpus.signals import measure
from tasks.records import (
    DOCUMENT_COLUMNS,
    JUDGEMENT_COLUMNS,
    KEPT,
    REMOVED,
    DocumentReport,
    Finding,
    arrow_schema,
    carry_lineage,
    content_hash,
    read_documents,
    schema,
    write_layer,
)
from tasks.resources import Resources
from tasks.spark import spark_session
from tasks.stage import Input, Output, StageParams, run_as_stage, stage

if TYPE_CHECKING:
    import pyarrow


class CleanParams(StageParams):
    """What counts as a clean document."""

    rules: list[Rule] = Field(
        default=[], description="bounds on signals; a document that fails one is removed"
    )
    languages: list[str] | None = Field(default=None, description="languages that are kept; empty: all")
    mask_emails: bool = True

    @field_validator("rules")
    @classmethod
    def _signals_exist(cls, rules: list[Rule]) -> list[Rule]:
        known = {*measure(""), "language_score"}
        for rule in rules:
            if rule.signal not in known:
                raise ValueError(
                    f"rule {rule.name}: no signal `{rule.signal}`; there are {', '.join(sorted(known))}"
                )
        return rules


class CleanReport(DocumentReport):
    """What became of the raw documents."""

    emails_masked: int


@stage
def clean(raw: Input, clean: Output, params: CleanParams, resources: Resources) -> CleanReport:
    """Extract the text of every document, measure it, and keep those that pass all rules."""
    from pyspark.sql import functions as F

    carry_lineage(raw, clean)
    with spark_session("clean", resources) as spark:
        judged = read_documents(spark, raw).repartition(spark.sparkContext.defaultParallelism * 2)
        judged = judged.mapInArrow(_cleaner(params), schema(DOCUMENT_COLUMNS | JUDGEMENT_COLUMNS))
        counts = write_layer(judged, clean, "clean", params)
        masked = spark.read.parquet(str(clean / "ledger")).where("rule = 'email' and verdict = 'kept'")
        (total,) = masked.agg(F.coalesce(F.sum("value"), F.lit(0)).cast("long").alias("emails")).collect()
    return CleanReport(**counts, emails_masked=total["emails"])


def judge(document: dict[str, Any], params: CleanParams) -> dict[str, Any]:
    """One document, cleaned, with its verdict and every finding that was made."""
    document = dict(document)
    signals = dict(document["signals"])
    text = extract_text(document["text"], document["meta"].get("markup", "plain"))
    findings: list[Finding] = []
    if not text:
        findings.append(Finding("empty", 0, 1, "no text is left after extraction"))
    signals |= measure(text)
    if document["kind"] == "code":
        document["language"], document["language_score"] = NO_LANGUAGE, 1.0
    else:
        document["language"], document["language_score"] = detect_language(text)
        if params.languages is not None and document["language"] not in params.languages:
            findings.append(Finding("language", None, None, f"{document['language']} is not kept"))
    judged = signals | {"language_score": document["language_score"]}
    findings += failed(params.rules, judged, document["kind"], document["language"])
    document["verdict"] = REMOVED if findings else KEPT
    if params.mask_emails:
        text, masked = mask_emails(text)
        signals["emails_masked"] = float(masked)
        if masked:
            findings.append(Finding("email", masked, None, "addresses replaced by placeholders"))
    document["text"], document["content"], document["signals"] = text, content_hash(text), signals
    document["findings"] = [vars(finding) for finding in findings]
    return document


def _cleaner(params: CleanParams):
    def cleaned(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            rows = []
            for row in batch.to_pylist(maps_as_pydicts="strict"):
                rows.append(judge(row, params))
            yield pa.RecordBatch.from_pylist(rows, arrow_schema())

    return cleaned


if __name__ == "__main__":
    run_as_stage(clean)
