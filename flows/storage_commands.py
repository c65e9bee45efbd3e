"""The commands of `gristmill` that move snapshots between DVC's cache and remotes, or drop them."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from flows.project import BadInput
from flows.snapshots.known import LAYERS, Snapshot, current_snapshot, find_snapshot, known_snapshots
from flows.snapshots.locks import known_locks
from flows.snapshots.objects import COLD, WARM, Store, open_objects
from flows.tables import size


def push(project: Path, name: str | None, *, cold: bool) -> int:
    """Copy all that a snapshot's lock records to a remote."""
    from flows.snapshots.transfers import push as push_lock

    with open_objects(project, lock=True) as objects:
        snapshots = known_snapshots(project, objects)
        snapshot = find_snapshot(snapshots, name) if name else current_snapshot(project, snapshots)
        lock = next((lock for lock in snapshot.locks if lock.stands_in(project)), snapshot.lock)
        store = objects.remote(COLD if cold else WARM)
        done = push_lock(objects, store, lock)
    print(f"{size(done.bytes)} of snapshot {snapshot.short} copied to storage.{store.name} ({store.where})")
    if done.absent:
        print(f"neither here nor there: {', '.join(done.absent)}")
    return 0


def pull(project: Path, name: str | None, *, cold: bool) -> int:
    """Copy what a snapshot's lock records from a remote into the cache; all manifests too without a name."""
    from flows.snapshots.transfers import pull as pull_outputs
    from flows.snapshots.transfers import pull_manifests

    with open_objects(project, lock=True) as objects:
        stores = [objects.remote(COLD if cold else WARM)]
        snapshots = known_snapshots(project, objects)
        if any(snapshot.manifest is None for snapshot in snapshots):
            came = pull_manifests(objects, stores, snapshots)
            print(f"{came} manifests of snapshots came")
            snapshots = known_snapshots(project, objects)
        try:
            snapshot = find_snapshot(snapshots, name) if name else current_snapshot(project, snapshots)
        except BadInput:
            if name or not snapshots:
                raise
            return 0
        done = pull_outputs(objects, stores, snapshot.lock.outs)
    print(
        f"{size(done.bytes)} of snapshot {snapshot.short} copied from storage.{stores[0].name} to the cache"
    )
    if done.absent:
        print(f"not there: {', '.join(done.absent)}")
    print(f"`gristmill snapshot restore {snapshot.short}` lays its layers into data/")
    return 0


def prune(project: Path, arguments: argparse.Namespace) -> int:
    """Remove from the cache what retention lets go, or the layers of the named snapshots."""
    from flows.snapshots.retention import let_go, plan, remove

    if arguments.from_remotes and not arguments.snapshots:
        raise BadInput("--from-remotes needs the names of snapshots: retention speaks of the cache alone")
    with open_objects(project, lock=True) as objects:
        locks = known_locks(project)
        snapshots = known_snapshots(project, objects, locks)
        retention = objects.storage.retention
        if arguments.snapshots:
            named = [find_snapshot(snapshots, name) for name in arguments.snapshots]
            _refuse_in_use(named)
            gone = {(snapshot.output, layer) for snapshot in named for layer in LAYERS}
        else:
            gone = let_go(snapshots, retention)
        places: list[Store] = [objects.cache, *(objects.remotes if arguments.from_remotes else [])]
        copies = None if arguments.without_copy or arguments.from_remotes or not gone else objects.remotes
        total = 0
        for place in places:
            found = plan(objects, place, locks, snapshots, gone, copies)
            if not arguments.dry_run:
                remove(place, found)
            for removal in found.removals:
                print(
                    f"{removal.snapshot.short}  {removal.layer:<6}  {len(removal.names):>6,} files  "
                    f"{size(removal.bytes):>10}  from {place.name}"
                )
            for removal in found.without_copy:
                print(
                    f"{removal.snapshot.short}  {removal.layer:<6}  {len(removal.names):>6,} files  "
                    f"{size(removal.bytes):>10}  stays: no remote has a copy "
                    f"(`gristmill push {removal.snapshot.short}`, or --without-copy)"
                )
            total += found.bytes
    if not gone:
        print("nothing is beyond storage.retention (resources.yaml)")
    print(f"{size(total)} {'would be freed' if arguments.dry_run else 'freed'} ({total:,} bytes)")
    return 0


def _refuse_in_use(snapshots: Iterable[Snapshot]) -> None:
    for snapshot in snapshots:
        if snapshot.is_in_use:
            folder = next(place.folder for lock in snapshot.locks for place in lock.places if place.folder)
            raise BadInput(
                f"snapshot {snapshot.short} is that of the working tree {folder}: make or restore another "
                "one there first"
            )
