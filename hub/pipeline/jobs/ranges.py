"""Jobs that look at a range of a stream as a whole, again and again with `--follow`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..client import Offsets
from ..progress import Progress
from .job import Task

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_range(session: SparkSession, task: Task[Any], start: int, end: int) -> DataFrame:
    """Returns the messages at offsets from `start` to before `end`."""
    return (
        session.read.format("warren")
        .options(**task.options(), startingOffset=str(start), endingOffset=str(end))
        .load()
    )


def repeat(task: Task[Any], progress: Progress, compare: Callable[[Offsets], int]) -> None:
    """Calls `compare` with the offsets of the stream, with `--follow` every `every_s` seconds until
    the run is stopped. It returns the first offset that it has looked at; a message that was looked
    at before is not counted again."""
    seen = 0
    while True:
        offsets = task.offsets()
        start = compare(offsets)
        rows = max(0, offsets.next - max(start, seen))
        progress.add(rows, max(0, task.offsets().next - offsets.next))
        seen = offsets.next
        if task.follow:
            progress.wait(task.parameters.every_s)
        if progress.stopped or not task.follow:
            return
