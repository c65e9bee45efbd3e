"""A rebalance before it runs: the parameters that change, and what they would give."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from flows.project import PARAMETERS, RESOURCES, BadInput
from flows.rebalance_parameters import RebalanceParameters
from tasks.corpus.mix import MixParams, is_held_out, planned_groups
from tasks.corpus.mixture.comparison import Comparison, compare, expected
from tasks.corpus.mixture.plan import Group
from tasks.corpus.mixture.rebalancing import rebalanced, shares_like
from tasks.corpus.mixture.reference import read_reference
from tasks.corpus.mixture.results import MixedGroup
from tasks.corpus.mixture.sizes import training_sizes, unique_sizes
from tasks.corpus.snapshot import read_manifest
from tasks.parameters import ParameterError, load_resources, load_section
from tasks.stage import StageError


@dataclass(frozen=True)
class RebalancePlan:
    """What a rebalance changes, and what is known of it before it runs."""

    params: MixParams
    """of stage mix, after the change"""
    assignments: list[str]
    """what `gristmill run --set` would be given"""
    shown: list[str]
    """the columns by whose values asked and given are compared"""
    weights: dict[str, float]
    before: dict[Group, int] | None
    """bytes of training text of the project's mixture; None without one"""
    groups: list[MixedGroup]
    """as they would be"""
    available_bytes: int
    parent: str | None
    """the snapshot that the new one continues; None where there is none"""
    notes: list[str]

    @property
    def budget_bytes(self) -> float:
        """The size of the mixture that was asked for."""
        return self.params.budget_bytes or self.available_bytes

    def compared(self, groups: Iterable[MixedGroup] | None = None) -> list[Comparison]:
        """Asked against given, by value: for the groups of a report, or as it would be."""
        return compare(
            self.groups if groups is None else groups,
            self.params.columns,
            self.shown,
            weights=self.weights,
            maximum_epochs=self.params.maximum_epochs,
            budget_bytes=self.budget_bytes,
            before=self.before,
        )


def plan_rebalance(project: Path, asked: RebalanceParameters) -> RebalancePlan:
    """Work out a rebalance from ``params.yaml`` and ``data/unique``; no stage runs, nothing is written.

    Raises:
        BadInput: for what was asked, a reference, parameters or layers that do not fit; it names them.
    """
    try:
        return _planned(project, asked)
    except (StageError, ParameterError) as error:
        raise BadInput(str(error)) from None


def _planned(project: Path, asked: RebalanceParameters) -> RebalancePlan:
    before = load_section(project / PARAMETERS, "mix", MixParams)
    if before.epochs:
        named = ", ".join(f"{source}: {times:g}" for source, times in before.epochs.items())
        raise BadInput(
            f"{project / PARAMETERS}: mix.epochs ({named}) and shares exclude each other: write it as levels "
            "first, e.g. `levels: [{by: source, weights: {SOURCE: 0}}]` for one that is left out"
        )
    unique = project / "data" / "unique"
    if not (unique / "documents").is_dir():
        raise BadInput(f"there are no unique documents yet ({unique}): `gristmill run corpus` makes them")
    weights, notes = _weights(project, asked, unique, before)
    named = f"{asked.like}: " if asked.like else ""
    try:
        change = asked.change(weights)
        fields: dict[str, Any] = {
            "levels": [level.model_dump(exclude_defaults=True) for level in rebalanced(before.levels, change)]
        }
        for name in ("maximum_epochs", "tokens"):
            if (value := getattr(change, name)) is not None:
                fields[name] = value
        if not fields["levels"]:
            raise BadInput(
                f"{project / PARAMETERS}: mix.levels is empty, and a size or a maximum of epochs is for "
                "levels: give one too, e.g. `--by source --temperature 1`, which leaves the proportions"
            )
        params = MixParams.model_validate(before.model_dump() | fields)
    except ValidationError as error:
        told = [item["msg"].removeprefix("Value error, ") for item in error.errors()]
        raise BadInput(named + "\n".join(told)) from None
    if params == before:
        raise BadInput(f"nothing would change: {project / PARAMETERS} says this already")
    sizes = unique_sizes(unique, params.columns, is_held_out(params))
    try:
        planned = planned_groups(sizes, params)
    except StageError as error:
        raise BadInput(f"{named}{error}") from None
    if not any(group.size * group.epochs for group in planned):
        raise BadInput(
            "no training text would be left: every group with a share has 0 bytes or 0 epochs "
            "(mix.levels, mix.validation_share)"
        )
    shown = [asked.by] if asked.by else params.columns
    mixture, snapshot = project / "data" / "mixture", project / "data" / "snapshot"
    parent = read_manifest(snapshot).snapshot if (snapshot / "manifest.json").is_file() else None
    changed = [
        name
        for name in ("levels", "maximum_epochs", "tokens")
        if getattr(params, name) != getattr(before, name)
    ]
    assignments = [f"mix.{name}={json.dumps(fields[name], ensure_ascii=False)}" for name in changed]
    if parent is not None:  # quoted: digits alone would be a number
        assignments.append(f'snapshot.parent="{parent}"')
    return RebalancePlan(
        params=params,
        assignments=assignments,
        shown=shown,
        weights=weights,
        before=training_sizes(mixture, shown) if (mixture / "documents").is_dir() else None,
        groups=expected(planned),
        available_bytes=sum(sizes.values()),
        parent=parent,
        notes=notes,
    )


def _weights(
    project: Path, asked: RebalanceParameters, unique: Path, params: MixParams
) -> tuple[dict[str, float], list[str]]:
    """The weights that were given or that the reference has, and what is to be said of the latter."""
    if asked.like is None or asked.by is None:
        return asked.weights, []
    reference = read_reference(_reference_path(project, asked.like), asked.by)
    if reference.unit == "shares":
        return reference.counts, [f"shares of {reference.path}"]
    present = [group[0] for group in unique_sizes(unique, [asked.by], is_held_out(params))]
    try:
        weights = shares_like(reference.counts, present)
    except ValueError as error:
        raise BadInput(f"{reference.path}: {error}") from None
    notes = [f"shares as in {reference.path}, of its {reference.unit}"]
    total = sum(reference.counts.values())
    absent = {value: count / total for value, count in reference.counts.items() if value not in present}
    if absent:
        named = ", ".join(f"{value} {_percent(share)}" for value, share in sorted(absent.items()))
        notes.append(f"of the reference there is none here: {named}; the others share it")
    if lacking := [value for value in present if not reference.counts.get(value)]:
        notes.append(f"not in the reference, so left out: {', '.join(lacking)}")
    return weights, notes


def _reference_path(project: Path, like: str) -> Path:
    """The file or folder that a reference names: a path from the project's folder, or a run's name."""
    path = project / like
    if path.exists() or "/" in like or like.endswith(".json"):
        return path
    runs = project / load_resources(project / RESOURCES).work / "runs"
    # A run's worktree begins at the top of the repository, which may be above the project.
    top = next((folder for folder in (project, *project.parents) if (folder / ".git").exists()), project)
    folder = runs / like / project.relative_to(top)
    if not folder.is_dir():
        known = sorted(found.name for found in runs.iterdir()) if runs.is_dir() else []
        raise BadInput(
            f"{like} is neither a file or folder ({path}) nor a run in {runs}, which has "
            f"{', '.join(known) or 'none'}"
        )
    return folder


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
