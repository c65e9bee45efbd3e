"""What a run left behind, read for its report. Bounded, whatever its size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tasks.corpus.mixture.results import MixedGroup
from tasks.corpus.profiling.results import Profile
from tasks.corpus.snapshot import Manifest, read_manifest
from tasks.evaluation.results import AssessReport
from tasks.release.duplicates import DuplicatePair, duplicate_pairs
from tasks.release.ledgers import LedgerSummary, summarise_ledger
from tasks.release.review_section import Review, read_review
from tasks.stage import StageError

LAYERS = {"collect": "raw", "score": "scored", "clean": "clean", "dedup": "unique", "mix": "mixture"}
"""The stages through which documents pass, and the layer that each writes."""

MODELS = {"pretrain": "base", "sft": "tuned", "reward": "reward", "ppo": "aligned"}
"""The stages that train, and the directory that each writes."""

M = TypeVar("M", bound=BaseModel)


class DocumentCounts(BaseModel):
    """What the page reads of a `DocumentReport`."""

    model_config = ConfigDict(extra="allow")

    records_in: int
    kept: int
    removed: int = 0
    quarantined: int = 0
    removed_by_rule: dict[str, int] = {}
    kept_by_source: dict[str, int] = {}
    kept_by_language: dict[str, int] = {}


class EncodeCounts(BaseModel):
    """What the page reads of the report of `encode`."""

    vocabulary: int
    tokens: dict[str, int]
    tokens_by: dict[str, dict[str, int]]


class MixtureCounts(BaseModel):
    """What the page reads of the report of `mix` besides its documents."""

    grouped_by: list[str]
    groups: list[MixedGroup]


class Answer(BaseModel):
    """What one model said."""

    text: str
    tokens: int
    ended: bool


class Sample(BaseModel):
    """One question and its answers: a line of ``samples.jsonl``."""

    prompt: str
    split: str
    reference: str | None
    answers: dict[str, Answer]


class Point(BaseModel):
    """One line of ``history.jsonl``: a step and what was measured at it."""

    model_config = ConfigDict(extra="allow")

    step: int = Field(ge=0)

    def value(self, name: str) -> float | None:
        """A measurement, if it was made at this step."""
        found = (self.model_extra or {}).get(name)
        return float(found) if isinstance(found, int | float) else None


class ReleaseFacts(BaseModel):
    """What the page reads of ``release.json``."""

    name: str
    version: str
    dtype: str
    files: dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Evidence:
    """All that the page shows, but for the circumstances of the run. What is missing is None or empty."""

    counts: dict[str, DocumentCounts]
    ledgers: dict[str, LedgerSummary]
    mixture: MixtureCounts | None
    profile: Profile | None
    encode: EncodeCounts | None
    histories: dict[str, list[Point]]
    duplicates: list[DuplicatePair]
    review: Review | None
    manifest: Manifest | None
    results: AssessReport | None
    samples: list[Sample]
    release: ReleaseFacts | None


def gather(
    data: Path, artifacts: Path, reports: Path, examples: int, excerpt: int, reviews: Path | None = None
) -> Evidence:
    """Read the layers, the models' histories and the reports of a run.

    Of a ledger only counts and a few examples are held, of documents only the texts of those examples.

    Raises:
        StageError: naming a file that is there and is broken. A file that is not there is no error.
    """
    counts = {stage: _json(reports / f"{stage}.json", DocumentCounts) for stage in LAYERS}
    ledgers = {stage: summarise_ledger(data / layer / "ledger") for stage, layer in LAYERS.items()}
    histories = {
        stage: list(_lines(artifacts / model / "history.jsonl", Point)) for stage, model in MODELS.items()
    }
    snapshot = data / "snapshot"
    known = {stage: found for stage, found in ledgers.items() if found is not None}
    return Evidence(
        counts={stage: found for stage, found in counts.items() if found is not None},
        ledgers=known,
        mixture=_json(reports / "mix.json", MixtureCounts),
        profile=_json(data / "profile.json", Profile),
        encode=_json(reports / "encode.json", EncodeCounts),
        histories={stage: points for stage, points in histories.items() if points},
        duplicates=duplicate_pairs(
            data / "unique" / "ledger", data / "clean" / "documents", examples, excerpt
        ),
        review=read_review(reviews, known) if reviews else None,
        manifest=read_manifest(snapshot) if (snapshot / "manifest.json").exists() else None,
        results=_json(artifacts / "assessment" / "results.json", AssessReport)
        or _json(reports / "assess.json", AssessReport),
        samples=list(_lines(artifacts / "assessment" / "samples.jsonl", Sample)),
        release=_json(artifacts / "release" / "release.json", ReleaseFacts),
    )


def _json(path: Path, model: type[M]) -> M | None:
    if not path.exists():
        return None
    return _validated(path, "", path.read_bytes(), model)


def _lines(path: Path, model: type[M]) -> Iterator[M]:
    if path.exists():
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                yield _validated(path, f" line {number}", line, model)


def _validated(path: Path, where: str, content: bytes, model: type[M]) -> M:
    try:
        return model.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(map(str, first["loc"]))
        raise StageError(
            f"{path}{where} is broken: {f'`{key}`: ' if key else ''}{first['msg']}. "
            "Run the stage that writes it again (`dvc repro -f -s STAGE`)."
        ) from None
