"""Objects from the cache to a remote, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from flows.project import BadInput
from flows.snapshots.known import LAYERS, MANIFEST, Snapshot
from flows.snapshots.locks import Lock
from flows.snapshots.objects import FOLDER, Objects, Store

REQUIRED = frozenset(path for paths in LAYERS.values() for path in paths)
"""Outputs without which a snapshot is not whole; models and reports are copied where they are."""


@dataclass(frozen=True)
class Copied:
    """What a transfer did."""

    bytes: int
    absent: tuple[str, ...]
    """outputs that are neither here nor there, and that a snapshot can do without"""


def push(objects: Objects, store: Store, lock: Lock) -> Copied:
    """Copy all that a lock records to a remote.

    Raises:
        BadInput: a part of a layer is neither in the cache nor there; an object is damaged; the remote does
            not serve.
    """
    wanted, absent = set(), []
    there: set[str] = set()
    lists_lost = [output for output in lock.outs.values() if objects.files(output) is None]
    if lists_lost:
        there = store.held(lists_lost)
    for path, output in sorted(lock.outs.items()):
        if output in there:  # a list is copied after its files: they are there too
            continue
        names = objects.names([output])
        lost = names - objects.cache.held(names)
        if lost and (lost := lost - store.held(lost)):
            if path in REQUIRED:
                raise BadInput(
                    f"{path} is not whole: {len(lost)} of its {len(names)} objects are neither in DVC's "
                    f"cache nor in storage.{store.name} ({store.where}); `dvc repro` makes it again"
                )
            absent.append(path)
            continue
        wanted |= names
    return Copied(objects.copy(objects.cache, store, wanted), tuple(absent))


def pull(objects: Objects, stores: Iterable[Store], outs: Mapping[str, str]) -> Copied:
    """Copy outputs into the cache, each object from the first of the stores that has it.

    Raises:
        BadInput: a part of a layer is nowhere; an object is damaged; a remote does not serve.
    """
    stores = list(stores)
    total, absent = 0, []
    lists = {output for output in outs.values() if output.endswith(FOLDER)}
    total += _bring(objects, stores, lists)[0]
    for path, output in sorted(outs.items()):
        names = objects.names([output])
        brought, lost = _bring(objects, stores, names)
        total += brought
        if lost and path in REQUIRED:
            where = " or ".join(f"storage.{store.name} ({store.where})" for store in stores)
            raise BadInput(
                f"{path} cannot be brought back: {len(lost)} of its objects are neither in DVC's cache nor "
                f"in {where or 'any remote, since none is configured'}, such as {min(lost)}"
            )
        if lost:
            absent.append(path)
    return Copied(total, tuple(absent))


def pull_manifests(objects: Objects, stores: Iterable[Store], snapshots: Iterable[Snapshot]) -> int:
    """Bring the manifests of snapshots that are not here; returns how many came."""
    stores, came = list(stores), 0
    for snapshot in snapshots:
        if snapshot.manifest is not None:
            continue
        _bring(objects, stores, {snapshot.output})
        entry = (objects.files(snapshot.output) or {}).get(MANIFEST)
        if entry:
            came += bool(_bring(objects, stores, {entry})[0])
    return came


def _bring(objects: Objects, stores: list[Store], names: set[str]) -> tuple[int, set[str]]:
    """Copy what the cache lacks; returns the bytes, and what is nowhere."""
    lost, total = names - objects.cache.held(names), 0
    for store in stores:
        if lost:
            held = store.held(lost)
            total += objects.copy(store, objects.cache, held)
            lost -= held
    return total, lost
