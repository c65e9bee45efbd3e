"""What deduplication leaves: the documents that stay, the ledger of those that go, the next index."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.corpus.deduplication.index import NextIndex
from tasks.corpus.deduplication.ledger import LedgerWriter, Removals, ledger_parts
from tasks.corpus.deduplication.passage_keys import RepeatedPassagesParams
from tasks.corpus.deduplication.repeated_passages import RepeatedReport, repeated_ledger, strip_repeated
from tasks.distributed import run_tasks
from tasks.layer_files import parts_of
from tasks.layer_filter import Part, PartFilter, count_part

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Written:
    """What was written.

    Attributes:
        kept: documents that stay, by source and language.
        rules: documents that each rule removed.
        repeated: the passages that went of those that stay.
    """

    kept: Counter[tuple[str, str]]
    rules: Counter[str]
    repeated: RepeatedReport | None

    def counts(self) -> dict[str, Any]:
        """Fields of a `DocumentReport`."""
        by_source, by_language = Counter(), Counter()
        for (source, language), count in self.kept.items():
            by_source[source] += count
            by_language[language] += count
        return {
            "kept": sum(self.kept.values()),
            "removed": sum(self.rules.values()),
            "removed_by_rule": dict(sorted(self.rules.items())),
            "kept_by_source": dict(sorted(by_source.items())),
            "kept_by_language": dict(sorted(by_language.items())),
        }


@dataclass(frozen=True)
class DedupOutput:
    """The folders of the stage's output and of its steps, and files with the numbers of the rows that go."""

    folder: Path
    steps: Path
    removed: Sequence[Path]

    def write(
        self,
        spark: SparkSession,
        parts: Sequence[Part],
        removals: Sequence[Removals],
        entries: int,
        index: NextIndex | None,
        repeated: RepeatedPassagesParams | None,
    ) -> Written:
        """Write the documents of the parts that stay, the ledger of so many entries, and the next index."""
        (self.folder / "ledger").mkdir()
        stays = self.folder if repeated is None else self.steps / "deduplicated"
        (stays / "documents").mkdir(parents=True)
        filtering = PartFilter(stays / "documents", self.removed)
        filters = [partial(filtering.filter, part) for part in parts]
        indexing = index.tasks(spark) if index else []
        # In one job: one core may write documents while others write the rest.
        ledger = [] if repeated else self._ledger(removals, entries)
        written = _called(spark, [*filters, *indexing, *ledger])
        kept, indexed, rules = (
            written[: len(filters)],
            written[len(filters) : len(filters) + len(indexing)],
            written[len(filters) + len(indexing) :],
        )
        if index:
            index.finish(indexed)
        if repeated is None:
            return Written(sum(kept, Counter()), sum(rules, Counter()), None)
        # Behind the rest: of copies of one document every line would be there many times.
        report = strip_repeated(spark, stays, self.folder, self.steps, repeated)
        kept = run_tasks(spark, parts_of(self.folder), count_part)
        rules = _called(spark, self._ledger(removals, entries))
        return Written(sum(kept, Counter()), sum(rules, Counter()), report)

    def _ledger(self, removals: Sequence[Removals], entries: int) -> list[Callable[[], Counter[str]]]:
        ledger = LedgerWriter(
            self.folder / "ledger", ledger_parts(entries), removals, repeated_ledger(self.steps)
        )
        return [partial(ledger.write, number) for number in range(ledger.parts)]


def _called(spark: SparkSession, tasks: Sequence[Callable[[], Any]]) -> list[Any]:
    return run_tasks(spark, tasks, lambda task: task())
