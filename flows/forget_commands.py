"""The command `gristmill forget`: a legal request, and what the document had reached; and `explain`."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from flows.project import BadInput
from flows.snapshots.contents import InSnapshot, Model, ids_beginning, look_in_snapshots, models_of
from flows.snapshots.known import Snapshot, known_snapshots
from flows.snapshots.locks import known_locks
from flows.snapshots.objects import Objects, open_objects
from tasks.corpus.explain import AmbiguousDocument, Story, UnknownDocument, contents_of, render
from tasks.corpus.explain import explain as explain_document
from tasks.corpus.forgotten import Forgotten, add_forgotten, read_forgotten
from tasks.stage import StageError

FORGOTTEN = "forgotten.jsonl"


@contextmanager
def _bad_input() -> Iterator[None]:
    """A block in which a damaged file of a layer is bad input."""
    try:
        yield
    except StageError as error:
        raise BadInput(str(error)) from None


@_bad_input()
def forget(project: Path, prefix: str, reason: str, *, with_duplicates: bool) -> int:
    """Add a document to ``forgotten.jsonl``, and print what it had reached."""
    listed = _listed(project)
    done = _already(listed, prefix)
    if done and not with_duplicates:
        return _changed_nothing(done)
    with open_objects(project) as objects:
        locks = known_locks(project)
        snapshots = known_snapshots(project, objects, locks)
        name, story = _find(project, objects, snapshots, prefix)
        duplicates = _duplicates(project, story)
        ids = [name, *duplicates] if with_duplicates else [name]
        found = look_in_snapshots(project, objects, snapshots, ids)
        models = models_of(objects, locks, [one.snapshot for one in found if one.holds])
        remotes = [f"storage.{store.name} ({store.where})" for store in objects.remotes]
    known = {entry.id for entry in listed}
    today = datetime.datetime.now(datetime.UTC).date()
    entries = [
        Forgotten(id=one, contents=tuple(_contents(project, one, found)), date=today, reason=reason)
        for one in ids
        if one not in known
    ]
    if not entries and (done := _already(listed, name)):
        return _changed_nothing(done)
    add_forgotten(project / FORGOTTEN, entries)
    _print_reached(name, story, found, models)
    _print_duplicates(duplicates, with_duplicates)
    print(f"\n{len(entries)} written to {FORGOTTEN}: commit it; `gristmill run` makes a snapshot without")
    _print_remains(story, found, remotes)
    return 0


def _changed_nothing(entry: Forgotten) -> int:
    print(f"{entry.id} was forgotten on {entry.date}{_because(entry)}; nothing was changed")
    return 0


@_bad_input()
def explain(project: Path, prefix: str) -> int:
    """Print a document's story, and whether it was forgotten."""
    done = _already(_listed(project), prefix)
    try:
        story = explain_document(project / "data", prefix)
    except UnknownDocument as error:
        if done is None or isinstance(error, AmbiguousDocument):
            raise BadInput(str(error)) from None
        print(f"document {done.id}\n  in no layer here")
    else:
        done = _already(_listed(project), story.id)
        print(render(story))
    if done is not None:
        print(f"\nforgotten on {done.date}{_because(done)}: no snapshot made since has it ({FORGOTTEN})")
    return 0


def _listed(project: Path) -> list[Forgotten]:
    path = project / FORGOTTEN
    if not path.exists():
        return []
    return read_forgotten(path)


def _because(entry: Forgotten) -> str:
    return f" ({entry.reason})" if entry.reason else ""


def _already(listed: Iterable[Forgotten], prefix: str) -> Forgotten | None:
    """The only entry whose id begins so."""
    fitting = [entry for entry in listed if prefix and entry.id.startswith(prefix.strip().lower())]
    return fitting[0] if len(fitting) == 1 else None


def _find(
    project: Path, objects: Objects, snapshots: Sequence[Snapshot], prefix: str
) -> tuple[str, Story | None]:
    """The document, in the layers here, else in a snapshot that git knows."""
    try:
        story = explain_document(project / "data", prefix)
        return story.id, story
    except AmbiguousDocument as error:
        raise BadInput(str(error)) from None
    except UnknownDocument as error:
        unknown = str(error)
    ids = ids_beginning(project, objects, snapshots, prefix.strip().lower())
    if len(ids) == 1:
        return ids.pop(), None
    if ids:
        shown = ", ".join(sorted(ids)[:5])
        raise BadInput(f"{len(ids)} documents' ids begin with {prefix}: {shown}")
    raise BadInput(f"{unknown}, nor is there one in a snapshot on this machine")


def _duplicates(project: Path, story: Story | None) -> list[str]:
    """The other documents of its group of duplicates: what was dropped in its favour, or what it was dropped
    for, and what else was."""
    if story is None:
        return []
    if story.kept_instead is None:
        return sorted(story.stands_for)
    group = explain_document(project / "data", story.kept_instead.id)
    return sorted({group.id, *group.stands_for} - {story.id})


def _contents(project: Path, name: str, found: Iterable[InSnapshot]) -> list[str]:
    copies = (copy for one in found for copy in one.copies or [] if copy.document == name)
    return sorted({*contents_of(project / "data", name), *(copy.content for copy in copies)})


def _print_reached(
    name: str, story: Story | None, found: Iterable[InSnapshot], models: Iterable[Model]
) -> None:
    print(f"document {name}")
    if story is not None:
        origin = f"{story.facts.get('source')}, {story.facts.get('origin')}"
        print(f"  collected from: {origin}\n  layers here: {', '.join(story.layers) or 'none'}")
    for one in found:
        where = f"snapshot {one.snapshot.short} ({one.snapshot.where})"
        if one.copies is None and not one.ranges:
            print(f"  {where}: its documents are not on this machine; `gristmill pull {one.snapshot.short}`")
            print("    then `gristmill forget` tells more of a document that is not forgotten yet")
        elif one.holds:
            splits = ", ".join(f"copy {copy.copy} ({copy.split})" for copy in one.copies or [])
            print(f"  {where}: {splits or 'in its tokens'}")
            for part in one.ranges:
                print(f"    {part.file}: tokens {part.start:,} to {part.stop - 1:,}")
    for model in models:
        label = f" {model.name}" if model.name else ""
        print(f"  model {model.path}{label} {model.output[:10]} ({model.where})")


def _print_duplicates(duplicates: Sequence[str], with_duplicates: bool) -> None:
    if not duplicates:
        return
    did = "forgotten as well"
    if not with_duplicates:
        did = "not forgotten: one of them takes its place; --with-duplicates forgets them"
    print(f"\n{len(duplicates)} documents say nearly the same ({did}):")
    for other in duplicates[:20]:
        print(f"  {other}")
    if len(duplicates) > 20:
        print(f"  and {len(duplicates) - 20} more")


def _print_remains(story: Story | None, found: Iterable[InSnapshot], remotes: Sequence[str]) -> None:
    """Where the text still lies, and what removes it."""
    print("\nits text still lies in")
    if story is not None:
        print(f"  the source {story.facts.get('source')}, {story.facts.get('origin')}, and in data/raw and")
        print(
            "    data/scored, which are made of it: clean is what keeps it out; remove it from the source too"
        )
    names = [one.snapshot.short for one in found if one.holds or one.copies is None]
    if names:
        remote = f", and in {' and '.join(remotes)} if they were pushed" if remotes else ""
        print(f"  the layers of snapshots made before{remote}; these commands drop those of a snapshot")
        print("    that is no working tree's:")
        for name in names:
            print(f"    gristmill snapshot prune {name} --without-copy --from-remotes")
    print("  pages of examples: reports/, work/review; they are written anew by their commands")
    print("models that learnt from it stay as they are: train them again")
