"""The job `near-duplicates`: documents of a stream that are nearly the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ..client import Offsets
from ..progress import Progress
from .documents import documents
from .job import Job, Task, parameter
from .ranges import read_range, repeat
from .table import Table, read_files, stream_check, stream_origin

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

NAME: Final = "near-duplicates"
_SOURCE: Final = ("offset", "exchange", "routing_key", "id")
"""Columns that tell which document it is: ids are those of its source."""
_FINGERPRINT: Final = (
    "offset bigint, exchange string, routing_key string, id string, shingles array<bigint>, "
    "buckets array<bigint>"
)
_PAIRS_AT_ONCE: Final = 100_000
_SLICE_ROWS: Final = 1000
"""How many documents a task computes with at a time; long ones need some memory."""


@dataclass(frozen=True, slots=True)
class Parameters:
    similarity: float = parameter(
        0.7,
        "Minimum similarity of two documents: the share of shingles that they have in common.",
        low=0.5,
        high=1,
    )
    last: int = parameter(100_000, "Number of the newest documents that are compared.", low=1)
    neighbours: int = parameter(
        50, "Maximum number of earlier documents in a bucket with which each is compared.", low=1
    )
    every_s: float = parameter(600.0, "With --follow, seconds between two comparisons.", low=1)


def fingerprints(found: DataFrame) -> DataFrame:
    """Returns source, `shingles` and `buckets` of documents that have words."""
    return found.select(*_SOURCE, "text").mapInArrow(_fingerprints, _FINGERPRINT)


def _fingerprints(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for first in range(0, batch.num_rows, _SLICE_ROWS):
            yield _fingerprint(batch.slice(first, _SLICE_ROWS))


def _fingerprint(batch: pa.RecordBatch) -> pa.RecordBatch:
    import pyarrow as pa
    import pyarrow.compute as pc

    from ..minhash import BANDS, buckets, shingles

    found = shingles(batch["text"])
    has_words = pc.greater(pc.list_value_length(found), 0)
    found, kept = found.filter(has_words), batch.filter(has_words)
    numbers = pa.array(buckets(found).ravel()) if len(found) else pa.array([], pa.int64())
    return pa.RecordBatch.from_arrays(
        [
            *(kept[name] for name in _SOURCE),
            found.cast(pa.list_(pa.int64())),
            pa.FixedSizeListArray.from_arrays(numbers, BANDS).cast(pa.list_(pa.int64())),
        ],
        [*_SOURCE, "shingles", "buckets"],
    )


def near_duplicates(prints: DataFrame, similarity: float, neighbours: int) -> DataFrame:
    """Returns pairs of documents whose shingles are alike, with their Jaccard `similarity`:
    `first`, `first_offset`, `first_exchange` and `first_routing_key` of the earlier document, and
    the same of the later one, `second`.

    In each bucket a document is compared with the `neighbours` before it, so that a text that comes
    a million times does not make a million times a million pairs. Documents with the same id are
    one that was published again, and no pair.
    """
    pairs = _candidates(prints, neighbours)
    return (
        pairs.join(_side(prints, "first"), "first_offset")
        .join(_side(prints, "second"), "second_offset")
        .where("first <> second")
        .selectExpr(
            "*", "size(array_intersect(first_shingles, second_shingles)) AS common"
        )
        .selectExpr(
            *_columns("first"), *_columns("second"),
            "common / (size(first_shingles) + size(second_shingles) - common) AS similarity",
        )
        .where(f"similarity >= {similarity}")
    )  # fmt: skip


def _candidates(prints: DataFrame, neighbours: int) -> DataFrame:
    """Returns the pairs that share a bucket. One task sees all buckets, 128 bytes for each
    document: a sort in it takes less time than a shuffle of them among many."""

    def pairs(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from _pairs(batches, neighbours)

    together = prints.select("offset", "buckets").repartition(1)
    return together.mapInArrow(pairs, "first_offset bigint, second_offset bigint")


def _pairs(batches: Iterator[pa.RecordBatch], neighbours: int) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa
    import pyarrow.compute as pc

    from ..minhash import BANDS, candidates

    parts = list(batches)
    if not parts:
        return
    table = pa.Table.from_batches(parts).sort_by("offset")
    offsets = table["offset"].to_numpy()
    found = pc.list_flatten(table["buckets"]).to_numpy().reshape(-1, BANDS)
    first, second = candidates(found, neighbours)
    columns = {"first_offset": offsets[first], "second_offset": offsets[second]}
    yield from pa.table(columns).to_batches(max_chunksize=_PAIRS_AT_ONCE)


def _side(prints: DataFrame, name: str) -> DataFrame:
    renamed = zip(("id", "offset", "exchange", "routing_key"), _columns(name), strict=True)
    return prints.selectExpr(
        *(f"{old} AS {new}" for old, new in renamed), f"shingles AS {name}_shingles"
    )


def _columns(name: str) -> tuple[str, ...]:
    return name, f"{name}_offset", f"{name}_exchange", f"{name}_routing_key"


def run(session: SparkSession, task: Task[Parameters], progress: Progress) -> None:
    """Adds the pairs that were not found before."""
    table = Table(task, stream_origin(NAME, task))
    repeat(task, progress, lambda offsets: _compare(session, task, table, offsets))


def _compare(session: SparkSession, task: Task[Parameters], table: Table, offsets: Offsets) -> int:
    """Returns the offset of the first document."""
    given = task.parameters
    start = max(offsets.first, offsets.next - given.last)
    rows = read_range(session, task, start, offsets.next)
    prints = fingerprints(documents(rows)).persist()
    try:
        found = near_duplicates(prints, given.similarity, given.neighbours)
        if table.manifest.files():
            known = read_files(session, task.directory, table.manifest.files())
            found = found.join(known, ["first_offset", "second_offset"], "left_anti")
        table.add(found, f"{offsets.next}/{given}")
    finally:
        prints.unpersist()
    return start


NEAR_DUPLICATES: Final[Job[Any]] = Job(
    NAME,
    "Finds documents that are nearly the same.",
    Parameters,
    run,
    stream_check(NAME),
)
