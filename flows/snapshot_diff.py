"""The command `gristmill snapshot diff`: documents, files, parameters and code of two snapshots."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from flows.project import BadInput
from flows.snapshots.known import Snapshot, document_files, find_snapshot, known_snapshots
from flows.snapshots.objects import Objects, open_objects
from flows.snapshots.restored_parameters import leaves
from flows.tables import number, size, table, value
from tasks.corpus.snapshot_difference import CHANGES, compare_documents


def diff(project: Path, before: str, after: str, ids: Path | None, work: Path) -> int:
    """Print how two snapshots differ."""
    with open_objects(project) as objects:
        snapshots = known_snapshots(project, objects)
        pair = [find_snapshot(snapshots, name) for name in (before, after)]
        files = [_documents(project, objects, snapshot) for snapshot in pair]
        partial = ids and ids.with_name(f".{ids.name}.partial")
        with partial.open("w", encoding="utf-8") if partial else nullcontext() as lines:
            found = compare_documents(files[0], files[1], work / "diff", lines)
        if ids and partial:
            partial.replace(ids)
        sizes = [sum(file.stat().st_size for file in some) for some in files]
    old, new = pair
    print(f"{old.name}  {old.where}\n{new.name}  {new.where}\n")
    told = ", ".join(f"{found.totals[change]:,} {change}" for change in CHANGES)
    print(f"documents {found.before:,} → {found.after:,}: {told}")
    for group, values in found.by.items():
        if values:
            rows = [(group, *CHANGES)]
            rows += [
                (value or "none", *(f"{counts[change]:,}" for change in CHANGES))
                for value, counts in sorted(values.items(), key=lambda item: (-item[1].total(), item[0]))
            ]
            print(f"\n{table(rows)}")
    _print_files(old, new, sizes)
    _print_lineage(old, new)
    if ids:
        print(f"\n{ids} has the id and the change of every such document")
    return 0


def _documents(project: Path, objects: Objects, snapshot: Snapshot) -> list[Path]:
    files = document_files(project, objects, snapshot)
    if files is None:
        raise BadInput(
            f"the documents of snapshot {snapshot.short} are not on this machine: "
            f"`gristmill pull {snapshot.short}` brings them"
        )
    return files


def _print_files(old: Snapshot, new: Snapshot, sizes: Sequence[int]) -> None:
    before, after = ({f.path: f.sha256 for f in s.manifest.files} if s.manifest else {} for s in (old, new))
    same = len(before.items() & after.items())
    print(
        f"\nfiles {len(before)} → {len(after)}, {same} the same; {size(sizes[0])} → {size(sizes[1])}; "
        f"tokens {number(old.tokens)} → {number(new.tokens)}"
    )


def _print_lineage(old: Snapshot, new: Snapshot) -> None:
    """Parameters, by the manifests; code and inputs, by the locks."""
    steps = [dict(_parameters(snapshot)) for snapshot in (old, new)]
    names = [
        name for name in sorted(steps[0].keys() | steps[1].keys()) if steps[0].get(name) != steps[1].get(name)
    ]
    if names:
        print("\nparameters")
        for name in names:
            print(f"  {name}: {value(steps[0].get(name))} → {value(steps[1].get(name))}")
    files = [_code(snapshot) for snapshot in (old, new)]
    changed = sorted(p for p in files[0].keys() | files[1].keys() if files[0].get(p) != files[1].get(p))
    if changed:
        print("\ncode and inputs (MD5)")
        for path in changed:
            print(f"  {path}: {files[0].get(path, 'none')[:10]} → {files[1].get(path, 'none')[:10]}")


def _code(snapshot: Snapshot) -> dict[str, str]:
    """The hashes of what the stages that made the snapshot depend on, apart from outputs."""
    stages = {entry["stage"] for entry in (snapshot.manifest.lineage if snapshot.manifest else [])} | {
        "snapshot"
    }
    found = (dep for name in stages for dep in snapshot.lock.stages.get(name, {}).get("deps", []))
    return {dep["path"]: str(dep.get("md5")) for dep in found if dep["path"] not in snapshot.lock.outs}


def _parameters(snapshot: Snapshot) -> Iterable[tuple[str, Any]]:
    for entry in snapshot.manifest.lineage if snapshot.manifest else []:
        yield from leaves(entry["parameters"], entry["stage"])
    if snapshot.manifest:
        yield "snapshot.parent", snapshot.manifest.parent
        yield "snapshot.note", snapshot.manifest.note
