"""Functions called in Spark's workers, a task for each item.

What is large lies in files that every worker sees; Spark hands out the items, and takes back what is small.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from tasks.stage import StageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
R = TypeVar("R")

_TASKS_A_CORE = 4


def run_tasks(spark: SparkSession, items: Sequence[T], function: Callable[[T], R]) -> list[R]:
    """What ``function`` returns for each item, in their order.

    A task may be repeated on a cluster: the function must write its files whole or not at all.

    Raises:
        StageError: one that the function raised for an item.
    """
    if not items:
        return []
    held = list(items)
    numbers = spark.sparkContext.parallelize(range(len(held)), len(held))
    answers = numbers.map(lambda number: _answer(function, held[number])).collect()
    for complaint in answers:
        if isinstance(complaint, StageError):
            raise complaint
    return [answer for answer in answers if not isinstance(answer, StageError)]


def batches(spark: SparkSession, items: Sequence[T]) -> list[Sequence[T]]:
    """Items in their order, some to a task: starting one takes about 20 ms, more than a light item does."""
    size = max(1, -(-len(items) // (_TASKS_A_CORE * spark.sparkContext.defaultParallelism)))
    return [items[start : start + size] for start in range(0, len(items), size)]


def _answer(function, item):
    """An error of a worker's comes to the driver as text; bad input has to arrive as what it is."""
    try:
        return function(item)
    except StageError as error:
        return error
    finally:
        if not gc.get_freeze_count():
            # A worker looks through all it has imported after each task: it need not.
            gc.freeze()
