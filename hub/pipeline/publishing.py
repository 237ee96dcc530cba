"""Publishes Arrow tables, each in a transaction of its own, from one process."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Self

from .options import ServerLogin
from .rows_format import encode, pieces
from .transactions import TransactionClient

if TYPE_CHECKING:
    import pyarrow as pa


class TablePublisher:
    """Publishes tables in a series of transactions of one exchange. It is published once, whoever
    repeats it.

    Numbers are from 1 on and go up. Raises `WriteError` as `TransactionClient` does, and `RowError`
    for a row that no message can be.
    """

    def __init__(self, server: ServerLogin, vhost: str, exchange: str, series: str) -> None:
        self._client = TransactionClient(server, vhost, exchange)
        self._series = series

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def last(self) -> int:
        """Returns the number of the last transaction that was published, 0 if none was."""
        return self._client.last(self._series)

    def forget(self) -> None:
        """Has the server forget the series, which nobody repeats."""
        self._client.forget(self._series)

    def publish(self, number: int, rows: pa.Table) -> None:
        """Publishes rows, whose columns are those that can be written; when it returns they are on
        disk. Nothing happens if this number, or a later one, was published before."""
        attempt, count = secrets.randbits(62), 0
        encoded = (encode(batch, "") for batch in rows.to_batches() if batch.num_rows)
        for count, piece in enumerate(pieces(encoded), 1):
            self._client.stage(self._series, number, 0, attempt, count - 1, piece)
        self._client.commit(self._series, number, [(0, attempt, count)])
