"""Transactions of the embedded engine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from ...core.auth import User
from ...core.broker import Broker
from ...core.definitions.committed import CommittedTransaction
from ...core.errors import ChannelError, LowOnMemory
from ...core.local.transaction import LocalTransaction
from ...core.message.model import Row
from .commits import is_durable
from .names import Names
from .port import TransactionOutcome


class EmbeddedTransactions:
    """Implements `TransactionLog` on a `Broker` whose turns run in the same event loop."""

    def __init__(self, broker: Broker, names: Names, vhost: str) -> None:
        self._broker = broker
        self._names = names
        self._vhost = vhost

    def last(self, series: str) -> CommittedTransaction | None:
        return self._names.vhost(self._vhost).committed.last(series.encode())

    def forget(self, series: str) -> None:
        self._names.vhost(self._vhost).committed.drop(series.encode())
        self._broker.on_work()

    async def publish(
        self,
        user: User | None,
        exchange: str,
        rows: AsyncIterator[Sequence[Row]],
        series: str,
        number: int,
        *,
        max_bytes: int,
    ) -> TransactionOutcome:
        host = self._names.vhost(self._vhost)
        transaction = LocalTransaction(self._broker, host, user, exchange, max_bytes)
        try:
            async for some in rows:
                self._broker.tick()
                transaction.add(some)
                self._require_memory(transaction)
                await asyncio.sleep(0)
            if self._names.vhost(self._vhost) is not host:
                raise ChannelError(404, f"vhost '{self._vhost}' was deleted and made anew")
            commit = transaction.commit(series.encode(), number)
        except BaseException:
            transaction.drop()
            raise
        kept = await is_durable(self._broker, commit)
        return TransactionOutcome(transaction.messages, transaction.unrouted_count, kept)

    def _require_memory(self, transaction: LocalTransaction) -> None:
        """Raises `LowOnMemory` if many transactions at once take more than there is. The first to
        come here gives up its own, until it is enough for the others."""
        alarms = self._broker.alarms
        if alarms.is_due:
            alarms.update()
        if alarms.memory:
            raise LowOnMemory(
                f"the server is low on memory after {transaction.messages} rows of this transaction"
            )

    async def synced(self) -> bool:
        commit = self._broker.store.barrier()
        self._broker.on_work()
        return await is_durable(self._broker, commit)
