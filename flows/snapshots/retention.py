"""Which layers of which snapshots the cache keeps, and which objects it may therefore lose."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from flows.snapshots.known import INDEX, LAYERS, MANIFEST, SNAPSHOT, Snapshot
from flows.snapshots.locks import Lock
from flows.snapshots.objects import FOLDER, Objects, Store
from tasks.resources import Retention


@dataclass(frozen=True)
class Removal:
    """Objects of a layer of a snapshot that nothing else needs."""

    snapshot: Snapshot
    layer: str
    names: frozenset[str]
    bytes: int


@dataclass
class Plan:
    """What is to be removed, and what stays although retention would let it go."""

    removals: list[Removal] = field(default_factory=list)
    without_copy: list[Removal] = field(default_factory=list)

    @property
    def bytes(self) -> int:
        """Of all removals."""
        return sum(removal.bytes for removal in self.removals)


def let_go(snapshots: Sequence[Snapshot], retention: Retention) -> set[tuple[str, str]]:
    """The (snapshot, layer) beyond retention, given the snapshots newest first."""
    gone = set()
    for layer in LAYERS:
        kept = getattr(retention, layer)
        if kept is not None:
            gone |= {(snapshot.output, layer) for snapshot in snapshots[kept:]}
    return gone


def plan(
    objects: Objects,
    place: Store,
    locks: Iterable[Lock],
    snapshots: Sequence[Snapshot],
    gone: Collection[tuple[str, str]],
    copies: Sequence[Store] | None,
) -> Plan:
    """Work out what may be removed from a local or remote place.

    An object stays if anything needs it that is kept: another layer or version, an output of any other stage
    in any lock, the lock of any working tree. Lists of folders, manifests and indexes stay in any case: by
    them a snapshot is listed, compared and brought back. ``copies`` are stores of which one must have an
    object; None asks for no copy.
    """
    needed: set[str] = set()
    for lock in locks:
        output = lock.outs.get(SNAPSHOT, "")
        for path, own in lock.outs.items():
            if lock.is_in_use or (output, _layer(path)) not in gone:
                needed |= objects.names([own])
    found = Plan()
    taken: set[str] = set()
    for snapshot in snapshots:
        for layer in LAYERS:
            if (snapshot.output, layer) not in gone:
                continue
            names = _objects(objects, snapshot, layer) - needed - taken
            names = place.held(names)
            taken |= names
            lonely: set[str] = set()
            if copies is not None:
                lonely = set(names)
                for copy in copies:
                    lonely -= copy.held(lonely) if lonely else set()
            for some, into in ((names - lonely, found.removals), (lonely, found.without_copy)):
                if some:
                    into.append(Removal(snapshot, layer, frozenset(some), _size(place, some)))
    return found


def remove(place: Store, found: Plan) -> None:
    """Remove what was planned."""
    for removal in found.removals:
        for name in sorted(removal.names):
            if place.is_local:
                path = place.path(name)
                path.unlink(missing_ok=True)
            else:
                place.odb.delete(name)


def _layer(path: str) -> str:
    return next((layer for layer, paths in LAYERS.items() if path in paths), "")


def _objects(objects: Objects, snapshot: Snapshot, layer: str) -> set[str]:
    """The objects of a layer, in all versions that were recorded with the snapshot, without the small files
    that describe it."""
    found = set()
    for lock in snapshot.locks:
        for path in LAYERS[layer]:
            files = objects.files(lock.outs[path]) if path in lock.outs else None
            found |= {entry for name, entry in (files or {}).items() if name not in (MANIFEST, INDEX)}
    return {name for name in found if not name.endswith(FOLDER)}


def _size(place: Store, names: set[str]) -> int:
    if place.is_local:
        return sum(place.path(name).stat().st_size for name in names)
    return sum(place.odb.fs.size(place.odb.oid_to_path(name)) or 0 for name in names)
