"""Subscriptions in SQL. Every method is one committed transaction, durable when it returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from sqlalchemy import delete, select, update

from .database import Database
from .requests import Kind, Resource
from .subscription import Status, Subscription
from .tables import SubscriptionRow


class Repository:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, subscription: Subscription) -> Subscription:
        """Stores it, and gives what is stored.

        Where a failure has left a row of the same identity it takes that one's place, id and
        with it queue included, so that neither stays behind.
        """
        async with self._database.begin() as session:
            same = SubscriptionRow.identity == subscription.identity
            left = await session.scalar(select(SubscriptionRow.id).where(same))
            stored = subscription if left is None else replace(subscription, id=left)
            await session.merge(_to_row(stored))
        return stored

    async def renew(self, subscription: Subscription) -> None:
        """Stores the lease, secret and owner of a repeated subscribe."""
        values = {
            "lease_seconds": subscription.lease_seconds,
            "expires_at": subscription.expires_at,
            "secret": subscription.secret,
            "owner": subscription.owner,
        }
        await self._update(subscription.id, values)

    async def mark(self, subscription_id: str, status: Status) -> None:
        await self._update(subscription_id, {"status": status.value})

    async def delete(self, subscription_id: str) -> None:
        async with self._database.begin() as session:
            row = SubscriptionRow.id == subscription_id
            await session.execute(delete(SubscriptionRow).where(row))

    async def all(self) -> list[Subscription]:
        async with self._database.begin() as session:
            rows = (await session.scalars(select(SubscriptionRow))).all()
            return [_from_row(row) for row in rows]

    async def close(self) -> None:
        await self._database.close()

    async def _update(self, subscription_id: str, values: Mapping[str, object]) -> None:
        async with self._database.begin() as session:
            row = SubscriptionRow.id == subscription_id
            await session.execute(update(SubscriptionRow).where(row).values(**values))


def _to_row(subscription: Subscription) -> SubscriptionRow:
    sink = subscription.sink
    return SubscriptionRow(
        id=subscription.id,
        identity=subscription.identity,
        status=subscription.status.value,
        source_vhost=subscription.source.vhost,
        source_kind=subscription.source.kind,
        source_name=subscription.source.name,
        topic=subscription.topic,
        callback=subscription.callback,
        lease_seconds=subscription.lease_seconds,
        expires_at=subscription.expires_at,
        owner=subscription.owner,
        secret=subscription.secret,
        sink_vhost=sink and sink.vhost,
        sink_kind=sink and sink.kind,
        sink_name=sink and sink.name,
    )


def _from_row(row: SubscriptionRow) -> Subscription:
    return Subscription(
        id=row.id,
        source=Resource(row.source_vhost, cast(Kind, row.source_kind), row.source_name),
        topic=row.topic,
        callback=row.callback,
        lease_seconds=row.lease_seconds,
        expires_at=row.expires_at,
        owner=row.owner,
        secret=row.secret,
        sink=_read_sink(row),
        status=Status(row.status),
    )


def _read_sink(row: SubscriptionRow) -> Resource | None:
    if row.sink_vhost is None or row.sink_kind is None or row.sink_name is None:
        return None
    return Resource(row.sink_vhost, cast(Kind, row.sink_kind), row.sink_name)
