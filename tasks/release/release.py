"""Turn the aligned model into a directory that others can load, check and cite."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from tasks.corpus.snapshot import file_sha256, read_manifest
from tasks.evaluation.results import AssessReport
from tasks.parameters import StageParams
from tasks.release.card import CardFacts, licences_summary, model_card
from tasks.release.sources import licensed_sources
from tasks.release.verification import Verification, verify_release
from tasks.resources import Resources
from tasks.stage import Input, Output, StageError, StageReport, Tracker, run_as_stage, stage
from tasks.training.chat import TOKENIZER_FILES

MANIFEST = "release.json"


class GenerationDefaults(StageParams):
    """What `generation_config.json` says to whoever generates without saying how."""

    max_new_tokens: int = Field(default=64, ge=1)
    temperature: float = Field(default=0.7, gt=0)
    top_p: float = Field(default=0.9, gt=0, le=1)


class ReleaseParams(StageParams):
    """What is released, and under which name."""

    name: str = Field(default="gristmill", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    version: str = Field(default="0.1.0", pattern=r"^\d+\.\d+\.\d+([.-][0-9A-Za-z.-]+)?$")
    license: str = Field(default="other", min_length=1, description="of the weights, for the card")
    dtype: Literal["float32", "bfloat16", "float16"] = Field(
        default="float32", description="of the weights in the file"
    )
    generation: GenerationDefaults = GenerationDefaults()


class ReleaseReport(StageReport):
    """The release in numbers."""

    name: str
    version: str
    snapshot: str
    dtype: str
    parameters: int
    bytes: int
    weights_sha256: str
    verification: Verification


@stage
def release(
    aligned: Input,
    assessment: Input,
    snapshot: Input,
    release: Output,
    params: ReleaseParams,
    resources: Resources,
    tracker: Tracker,
) -> ReleaseReport:
    """Write the model in the Hugging Face layout with its card, licences and checksums, and prove it.

    ``release.json``, written last, has the sha256 of every other file, the snapshot's hash, and a hash of the
    parameters of each stage that made the documents.

    Raises:
        StageError: if an input is broken, or the release does not compute what the aligned model computes.
    """
    import torch

    from models.estimates import parameter_count
    from models.hub import save_model
    from tasks.training.model_directory import open_model

    results = _results(assessment / "results.json")
    manifest = read_manifest(snapshot)
    if results.snapshot != manifest.snapshot:
        raise StageError(
            f"{assessment} was made with snapshot {results.snapshot[:12]}, but {snapshot} is "
            f"{manifest.snapshot[:12]}: run assess again"
        )
    model, _ = open_model(aligned)
    dtype = getattr(torch, params.dtype)
    save_model(model, release, dtype=dtype)
    for name in TOKENIZER_FILES:
        shutil.copyfile(aligned / name, release / name)
    _add_generation_defaults(release / "generation_config.json", params.generation)
    verification = verify_release(aligned, release, dtype)
    facts = CardFacts(
        name=params.name,
        version=params.version,
        license=params.license,
        dtype=params.dtype,
        config=model.config,
        manifest=manifest,
        sources=licensed_sources(snapshot),
        results=results,
    )
    (release / "README.md").write_text(model_card(facts), "utf-8")
    (release / "LICENSES.md").write_text(licences_summary(facts), "utf-8")
    files = {
        path.name: {"sha256": file_sha256(path), "bytes": path.stat().st_size}
        for path in sorted(release.iterdir())
    }
    parameters = {entry["stage"]: _hash(entry["parameters"]) for entry in manifest.lineage}
    content = {
        "name": params.name,
        "version": params.version,
        "dtype": params.dtype,
        "snapshot": manifest.snapshot,
        "parameters": parameters | {"release": _hash(params.model_dump(mode="json"))},
        "files": files,
        "verification": verification.model_dump(),
    }
    _write_json(release / MANIFEST, content)
    tracker.tag(snapshot=manifest.snapshot, release=f"{params.name} {params.version}")
    return ReleaseReport(
        name=params.name,
        version=params.version,
        snapshot=manifest.snapshot,
        dtype=params.dtype,
        parameters=parameter_count(model.config),
        bytes=sum(file["bytes"] for file in files.values()),
        weights_sha256=files["model.safetensors"]["sha256"],
        verification=verification,
    )


def _results(path: Path) -> AssessReport:
    try:
        return AssessReport.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise StageError(f"{path} holds no results of an assessment: {error}") from None


def _add_generation_defaults(path: Path, defaults: GenerationDefaults) -> None:
    _write_json(path, json.loads(path.read_text("utf-8")) | {"do_sample": True, **defaults.model_dump()})


def _hash(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n", "utf-8")


if __name__ == "__main__":
    run_as_stage(release)
