"""Publishes what is staged for a transaction, once: what was committed is remembered in the log."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple

from ...core.auth import User
from ...core.message.model import Row
from ..engine.port import Engine
from ..keyed_locks import KeyedLocks
from .rows import count_rows, read_rows
from .staging import Piece, StagedAttempt, StagedTransaction, Staging


class Committed(NamedTuple):
    """A transaction that is on disk. `published` is None if a later one of its series is too;
    `last` is the number of the last one that is."""

    published: int | None
    unrouted: int
    is_replayed: bool
    last: int
    is_durable: bool = True
    """False if the disk is full; the commit may be repeated."""


class Transactions:
    """Stages rows and commits them.

    Series belong to a user and an exchange: nobody else can commit, and so block, their numbers.
    """

    def __init__(self, engine: Engine, staging: Staging, max_bytes: int) -> None:
        self._engine = engine
        self._staging = staging
        self._max_bytes = max_bytes
        self._locks: KeyedLocks[tuple[str, str]] = KeyedLocks()

    async def start(self) -> None:
        await self._staging.start()

    async def watch(self) -> None:
        """Removes what has expired, without end."""
        await self._staging.watch()

    async def stage(self, transaction: StagedTransaction, piece: Piece, data: bytes) -> int:
        """Stores rows of an attempt and returns their number. Raises `BadRows` and
        `StagingFull`."""
        count = count_rows(data)
        await self._staging.put(transaction, piece, data)
        return count

    async def abort(self, transaction: StagedTransaction) -> None:
        """Removes what is staged; what is committed stays."""
        await self._staging.remove(transaction)

    async def forget(self, vhost: str, series: str) -> None:
        """Forgets what was committed of a series that does not go on."""
        async with self._locks.of((vhost, series)):
            self._engine.transactions(vhost).forget(series)

    async def commit(
        self,
        transaction: StagedTransaction,
        user: User,
        exchange: str,
        attempts: list[StagedAttempt],
    ) -> Committed:
        """Publishes the rows of these attempts, in their order, as one group of the log; a repeat
        publishes nothing.

        Raises `MissingPiece`, `BadRows`, and what `TransactionLog.publish` does.
        """
        vhost, series, number = transaction
        async with self._locks.of((vhost, series)):
            log = self._engine.transactions(vhost)
            last = log.last(series)
            if last is not None and number <= last.number:
                is_durable = await log.synced()
                await self._staging.remove(transaction)
                count = last.messages if number == last.number else None
                return Committed(
                    count, 0, is_replayed=True, last=last.number, is_durable=is_durable
                )
            await self._staging.require(transaction, attempts)
            outcome = await log.publish(
                user, exchange, self._rows(transaction, attempts), series, number,
                max_bytes=self._max_bytes,
            )  # fmt: skip
            if outcome.is_durable:
                await self._staging.remove(transaction)
            return Committed(
                outcome.published, outcome.unrouted, is_replayed=False, last=number,
                is_durable=outcome.is_durable,
            )  # fmt: skip

    async def _rows(
        self, transaction: StagedTransaction, attempts: list[StagedAttempt]
    ) -> AsyncIterator[Sequence[Row]]:
        for attempt in attempts:
            for piece in attempt.each_piece():
                for rows in read_rows(await self._staging.read(transaction, piece)):
                    yield rows
