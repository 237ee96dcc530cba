"""The job `replay`: publishes an archive again, at a rate.

It is a series of transactions with the name `tx_id`; the number of each is the offset behind its
last message. The server knows the last one, so a replay that was interrupted goes on there, and one
that is repeated publishes nothing. Without a name the server forgets the series at the end.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ..errors import OptionError
from ..manifest import Manifest
from ..progress import Progress
from ..rate_limiter import RowRateLimiter
from ..server import require_exchange
from .job import Job, Task, parameter
from .table import open_archive, read_files

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

READ_ROWS: Final = 20_000
READ_BYTES: Final = 64 * 1024 * 1024
"""How much is read at a time, by the sizes of files; less of one kind is more of the other."""
COMMITS_PER_S: Final = 10
COMMIT_ROWS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Parameters:
    archive: str = parameter("", "The directory of the archive.")
    to: str = parameter("", "The exchange that gets the messages.")
    tx_id: str = parameter(
        "", "Replays with the same name are published once; one without a name each time."
    )
    rate: float = parameter(1000.0, "Maximum number of messages per second.", low=0.01)
    start: int = parameter(0, "The first offset that is replayed.", low=0)
    end: int = parameter(2**63 - 1, "The offset after the last one that is replayed.", low=0)


def check(task: Task[Parameters]) -> None:
    """Raises `OptionError` for a parameter that is missing, `OutputError` without an archive,
    `ReadError` without the exchange, and `WriteError` without permission to publish there."""
    for name in ("archive", "to"):
        if not getattr(task.parameters, name):
            raise OptionError(f"--{name} is missing: replay can't do without it")
    open_archive(task.parameters.archive)
    require_exchange(task.server, task.vhost, task.parameters.to)


def run(session: SparkSession, task: Task[Parameters], progress: Progress) -> None:
    """Publishes what was not published yet, in the order of offsets."""
    from ..publishing import TablePublisher

    given = task.parameters
    archive = open_archive(given.archive)
    rows = _messages(read_files(session, archive.directory, archive.files()))
    limiter, size = RowRateLimiter(given.rate), commit_rows(given.rate)
    series = f"replay-{given.tx_id or secrets.token_hex(16)}"
    with TablePublisher(task.server, task.vhost, given.to, series) as publisher:
        first, behind = bounds(archive)
        start, end = max(first, given.start, publisher.last()), min(behind, given.end)
        progress.add(0, max(0, end - start))
        for part in _parts(rows, start, end, read_rows(archive)):
            for at in range(0, part.num_rows, size):
                piece = part.slice(at, size)
                progress.wait(limiter.wait_s(piece.num_rows))
                if progress.stopped:
                    return
                number = piece["offset"][-1].as_py() + 1
                publisher.publish(number, piece.drop_columns("offset"))
                progress.add(piece.num_rows, end - number)
        if not given.tx_id:
            publisher.forget()


def bounds(archive: Manifest) -> tuple[int, int]:
    """Returns the first offset of an archive that has messages, and the one behind the last."""
    firsts = [file.first for file in archive.files() if file.first is not None]
    behind = [file.next for file in archive.files() if file.next is not None]
    return min(firsts), max(behind)


def commit_rows(rate: float) -> int:
    """Returns how many messages a transaction has, so that there are ten a second or fewer."""
    return max(1, min(COMMIT_ROWS, int(rate / COMMITS_PER_S)))


def read_rows(archive: Manifest) -> int:
    """Returns how many messages are read at a time."""
    files = archive.files()
    size = sum(file.bytes for file in files) / max(1, sum(file.rows for file in files))
    return max(1, min(READ_ROWS, int(READ_BYTES / max(1, size))))


def _messages(rows: DataFrame) -> DataFrame:
    """Returns `offset` and the columns that are published. Who published is whoever replays, and
    the offset that the header tells was that of the first time."""
    from ..schema import WRITTEN

    columns = [name for name in WRITTEN if name not in ("user_id", "headers")]
    headers = "map_filter(headers, (name, value) -> name <> 'x-offset') AS headers"
    return rows.selectExpr("offset", *columns, headers)


def _parts(rows: DataFrame, start: int, end: int, count: int) -> Iterator[pa.Table]:
    for first in range(start, end, count):
        part = rows.where(f"offset >= {first} AND offset < {min(end, first + count)}")
        yield part.orderBy("offset").toArrow()


REPLAY: Final[Job[Any]] = Job(
    "replay",
    "Publishes an archive again, at a rate.",
    Parameters,
    run,
    check,
    needs_stream=False,
    makes_table=False,
)
