"""The commands of `gristmill` on snapshots: which there are, whether they are whole, and their return."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from flows.project import BadInput
from flows.snapshots.known import (
    LAYERS,
    Snapshot,
    current_snapshot,
    find_snapshot,
    known_snapshots,
)
from flows.snapshots.objects import COLD, WARM, Objects, Store, open_objects
from flows.tables import number, table, value

LEGEND = (
    "w in the working tree, c in the cache, r in storage.remote, k in storage.cold; "
    "capital: whole, small: in part"
)


def list_snapshots(project: Path) -> int:
    """Print every snapshot that a commit or a working tree records, newest first."""
    with open_objects(project) as objects:
        snapshots = known_snapshots(project, objects)
        if not snapshots:
            print(
                "no snapshot is known: `gristmill run corpus` makes one, `git commit` of dvc.lock records it"
            )
            return 0
        stores, notes = _reachable(objects)
        held = _held(objects, stores, snapshots)
        rows = [("snapshot", "date", "where", "parent", "documents", "tokens", *LAYERS)]
        for snapshot in snapshots:
            parent = snapshot.manifest.parent if snapshot.manifest else None
            rows.append(
                (
                    snapshot.short,
                    f"{snapshot.when:%Y-%m-%d %H:%M}",
                    snapshot.where,
                    parent[:12] if parent else "",
                    number(snapshot.documents),
                    number(snapshot.tokens),
                    *(_letters(project, objects, snapshot, layer, held) for layer in LAYERS),
                )
            )
    print(table(rows))
    print(f"\n{LEGEND}")
    for note in notes:
        print(f"note: {note}")
    if any(snapshot.manifest is None for snapshot in snapshots):
        print("of those named dvc-… no manifest is here: `gristmill pull` brings it from the remotes")
    return 0


def verify(project: Path, name: str | None) -> int:
    """Check every file of a snapshot that is on this machine; status 1 if one is damaged."""
    from flows.snapshots.verification import verify_snapshot

    with open_objects(project) as objects:
        snapshots = known_snapshots(project, objects)
        snapshot = find_snapshot(snapshots, name) if name else current_snapshot(project, snapshots)
        done = verify_snapshot(project, objects, snapshot)
    print(f"snapshot {snapshot.name}")
    for line in done.checked:
        print(f"  {line}")
    for fault in done.faults:
        print(f"error: {fault}")
    if done.faults:
        print(
            f"{len(done.faults)} faults; what is damaged in the cache: remove it there, then `gristmill pull`"
        )
        return 1
    if not done.files:
        print(f"nothing of it is on this machine: `gristmill pull {snapshot.short}`")
        return 1
    print(f"{done.files:,} files are what manifest and dvc.lock say")
    return 0


def restore(project: Path, name: str, *, parameters: bool) -> int:
    """Bring a snapshot and its layers back into the working tree."""
    from flows.graph import inspect_graph
    from flows.snapshots.restoring import restore as restore_snapshot

    with open_objects(project, lock=True) as objects:
        snapshot = find_snapshot(known_snapshots(project, objects), name)
        done = restore_snapshot(project, objects, snapshot, parameters=parameters)
    print(f"restored {snapshot.name}: {', '.join(done.outputs) or 'all layers were right already'}")
    commit = snapshot.lock.commit
    if done.parameters:
        print("\nparameters that differ from those that made it (the snapshot's → params.yaml):")
        for key, (old, new) in done.parameters.items():
            print(f"  {key}: {value(old)} → {value(new)}")
        print(f"`gristmill snapshot restore {snapshot.short} --params` sets them")
    if done.code:
        shown = " ".join(done.code[:5]) + (f" and {len(done.code) - 5} more" if len(done.code) > 5 else "")
        print(f"\ncode and inputs that differ: {shown}")
        if commit:
            print(f"`git diff {commit[:10]} -- {' '.join(done.code[:3])}` shows how")
    if done.reports:
        print(f"\nin no cache: {', '.join(done.reports)}; the stages that write them run once more")
    graph, changed = inspect_graph(project)
    stale = [stage for stage in graph.order if stage in changed]
    print(f"\nstages that the next run would do: {', '.join(stale) or 'none'}")
    return 0


def _reachable(objects: Objects) -> tuple[list[Store], list[str]]:
    """The cache and those remotes that answer; and why others do not."""
    stores, notes = [objects.cache], []
    for key in (WARM, COLD):
        if getattr(objects.storage, key):
            try:
                store = objects.remote(key)
                store.held(())
                stores.append(store)
            except BadInput as error:
                notes.append(str(error))
    return stores, notes


def _held(objects: Objects, stores: Sequence[Store], snapshots: Sequence[Snapshot]) -> dict[str, set[str]]:
    names = objects.names(output for snapshot in snapshots for output in snapshot.all_outputs().values())
    return {store.name: store.held(names) for store in stores}


def _letters(
    project: Path, objects: Objects, snapshot: Snapshot, layer: str, held: dict[str, set[str]]
) -> str:
    outputs = snapshot.outputs(layer)
    here = snapshot.stands_in(project) and [(project / path).exists() for path in outputs]
    letters = _letter("w", here or [])
    for name, letter in (("cache", "c"), (WARM, "r"), (COLD, "k")):
        if name not in held:
            continue
        wanted = _files_of(objects, outputs.values())
        letters += _letter(letter, [entry in held[name] for entry in wanted])
    return letters


def _files_of(objects: Objects, outputs: Iterable[str]) -> set[str]:
    """The files of outputs; the list of a folder where it is all that is known."""
    return {name for output in outputs for name in ((objects.files(output) or {"": output}).values())}


def _letter(letter: str, present: Sequence[bool]) -> str:
    if not any(present):
        return "-"
    return letter.upper() if all(present) else letter
