"""Subscriptions in SQL. Every method is one committed transaction, durable when it returns."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple, cast

import msgspec
from sqlalchemy import Table, bindparam, delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from ..keys.seal import Sealer, is_sealed
from ..requests import Kind, Resource
from ..storage.database import Database
from ..storage.group_commit import GroupCommit
from ..storage.tables import SubscriptionRow
from .options import DEFAULTS, NO_KEYS, Keys, Options
from .subscription import Subscription, SubscriptionStatus
from .websub import without_token

ROWS_AT_ONCE = 500  # in one statement: both databases bound its parameters


_TABLE = cast(Table, SubscriptionRow.__table__)


class _Addition:
    """A subscription that is being added. `stored` is the subscription as it is stored, maybe with
    the id of an earlier row."""

    def __init__(self, subscription: Subscription) -> None:
        self.stored = subscription


class _Marking(NamedTuple):
    id: str
    status: SubscriptionStatus
    reason: str


_Change = _Addition | _Marking


class Repository:
    """Reads and writes the table of subscriptions. Additions and marks are committed in groups."""

    def __init__(self, database: Database, sealer: Sealer) -> None:
        self._database = database
        self._sealer = sealer
        self._changes: GroupCommit[_Change] = GroupCommit(self._commit)

    async def add(self, subscription: Subscription) -> Subscription:
        """Stores a subscription, and returns it as it is stored.

        It replaces a row of the same identity that a failure has left, and takes over its id, and
        with it its queue.
        """
        addition = _Addition(subscription)
        await self._changes.add(addition)
        return addition.stored

    async def renew(self, subscription: Subscription) -> None:
        """Stores the fields that a repeated subscribe may change."""
        values = {
            "status": subscription.status.value,
            "reason": subscription.reason,
            "lease_seconds": subscription.lease_seconds,
            "expires_at": subscription.expires_at,
            "secret": self._seal(subscription),
            "owner": subscription.owner,
            "base_url": subscription.base_url,
            "options": _options_text(subscription.options),
            # At `/hub`, another kind of content or another spelling of the URL.
            "source_name": subscription.source.name,
            "topic": subscription.topic,
            "topic_url": self._sealed_topic_url(subscription),
            "callback": self._sealed_callback(subscription),
        }
        await self._update(subscription.id, values)

    async def mark(
        self, subscription_id: str, status: SubscriptionStatus, reason: str = ""
    ) -> None:
        await self._changes.add(_Marking(subscription_id, status, reason))

    async def close(self) -> None:
        """Waits until all changes that were begun are stored."""
        await self._changes.close()

    async def _commit(self, changes: list[_Change]) -> None:
        added = [one for one in changes if isinstance(one, _Addition)]
        marked = [one for one in changes if isinstance(one, _Marking)]
        async with self._database.begin() as session:
            if added:
                await self._add_all(session, added)
            if marked:
                # In their order: two may be about the same row.
                rows = update(_TABLE).where(_TABLE.c.id == bindparam("of"))
                await session.execute(
                    rows.values(status=bindparam("to"), reason=bindparam("why")),
                    [{"of": one.id, "to": one.status.value, "why": one.reason} for one in marked],
                )

    async def _add_all(self, session: AsyncSession, added: list[_Addition]) -> None:
        by_identity = {one.stored.identity: one for one in added}
        same = _TABLE.c.identity.in_(by_identity)
        left = (await session.execute(select(_TABLE.c.id, _TABLE.c.identity).where(same))).all()
        for row_id, identity in left:
            by_identity[identity].stored = replace(by_identity[identity].stored, id=row_id)
        if left:
            await session.execute(delete(_TABLE).where(same))
        columns = [column.name for column in _TABLE.columns]
        rows = [self._to_row(one.stored) for one in by_identity.values()]
        await session.execute(
            insert(_TABLE),
            [{name: getattr(row, name) for name in columns} for row in rows],
        )

    async def delete(self, subscription_id: str) -> None:
        async with self._database.begin() as session:
            row = SubscriptionRow.id == subscription_id
            await session.execute(delete(SubscriptionRow).where(row))

    async def mark_ending(self, reasons: Mapping[str, str]) -> None:
        """Marks the rows with these ids as ending, each with its reason."""
        by_reason = sorted(reasons.items(), key=lambda item: item[1])
        for reason, items in groupby(by_reason, key=lambda item: item[1]):
            values = {"status": SubscriptionStatus.ENDING.value, "reason": reason}
            for ids in _pieces([subscription_id for subscription_id, _ in items]):
                async with self._database.begin() as session:
                    rows = update(SubscriptionRow).where(SubscriptionRow.id.in_(ids))
                    await session.execute(rows.values(**values))

    async def delete_all(self, subscription_ids: Sequence[str]) -> None:
        for ids in _pieces(subscription_ids):
            async with self._database.begin() as session:
                rows = delete(SubscriptionRow).where(SubscriptionRow.id.in_(ids))
                await session.execute(rows)

    async def all(self) -> list[Subscription]:
        async with self._database.begin() as session:
            rows = (await session.scalars(select(SubscriptionRow))).all()
            return [self._from_row(row) for row in rows]

    async def _update(self, subscription_id: str, values: Mapping[str, object]) -> None:
        async with self._database.begin() as session:
            row = SubscriptionRow.id == subscription_id
            await session.execute(update(SubscriptionRow).where(row).values(**values))

    def _seal(self, subscription: Subscription) -> str | None:
        if subscription.keys == NO_KEYS:
            return None
        text = msgspec.json.encode(subscription.keys).decode()
        return self._sealer.seal(text, subscription.id)

    def _sealed_callback(self, subscription: Subscription) -> str:
        """Returns the whole URL sealed: any part of it may be secret."""
        return self._sealer.seal(subscription.callback, _url_of(subscription.id))

    def _callback(self, row: SubscriptionRow) -> str:
        """Returns the callback of a row; rows of a Warren before 0.2 have it in plain text."""
        if not is_sealed(row.callback):
            return row.callback
        return self._sealer.open(row.callback, _url_of(row.id))

    def _sealed_topic_url(self, subscription: Subscription) -> str:
        """Returns the URL of a document of this hub sealed, if it has a token."""
        url = subscription.topic_url
        if without_token(url) == url:
            return url
        return self._sealer.seal(url, _topic_of(subscription.id))

    def _topic_url(self, row: SubscriptionRow) -> str:
        if not is_sealed(row.topic_url):
            return sys.intern(row.topic_url)
        return self._sealer.open(row.topic_url, _topic_of(row.id))

    def _keys(self, row: SubscriptionRow) -> Keys:
        if row.secret is None:
            return NO_KEYS
        if not is_sealed(row.secret):
            return Keys(secret=row.secret)
        return msgspec.json.decode(self._sealer.open(row.secret, row.id), type=Keys)

    def _to_row(self, subscription: Subscription) -> SubscriptionRow:
        sink = subscription.sink
        return SubscriptionRow(
            id=subscription.id,
            identity=subscription.identity,
            status=subscription.status.value,
            source_vhost=subscription.source.vhost,
            source_kind=subscription.source.kind,
            source_name=subscription.source.name,
            topic=subscription.topic,
            callback=self._sealed_callback(subscription),
            lease_seconds=subscription.lease_seconds,
            expires_at=subscription.expires_at,
            owner=subscription.owner,
            secret=self._seal(subscription),
            sink_vhost=sink and sink.vhost,
            sink_kind=sink and sink.kind,
            sink_name=sink and sink.name,
            topic_url=self._sealed_topic_url(subscription),
            base_url=subscription.base_url,
            options=_options_text(subscription.options),
            reason=subscription.reason,
        )

    def _from_row(self, row: SubscriptionRow) -> Subscription:
        return Subscription(
            id=row.id,
            source=_resource(row.source_vhost, row.source_kind, row.source_name),
            topic=sys.intern(row.topic),
            callback=self._callback(row),
            lease_seconds=row.lease_seconds,
            expires_at=row.expires_at,
            owner=sys.intern(row.owner),
            keys=self._keys(row),
            sink=_read_sink(row),
            status=SubscriptionStatus(row.status),
            topic_url=self._topic_url(row),
            base_url=sys.intern(row.base_url),
            options=_read_options(row.options),
            reason=row.reason,
        )


def _url_of(row_id: str) -> str:
    """Returns the context that binds a sealed URL to its row."""
    return f"{row_id} callback"


def _topic_of(row_id: str) -> str:
    """Returns the context that binds a sealed topic URL to its row."""
    return f"{row_id} topic"


def _pieces(ids: Sequence[str]) -> list[Sequence[str]]:
    return [ids[start : start + ROWS_AT_ONCE] for start in range(0, len(ids), ROWS_AT_ONCE)]


@lru_cache(maxsize=1_000)
def _resource(vhost: str, kind: str, name: str) -> Resource:
    """Returns one object for all subscriptions of a source: there may be ten thousand."""
    return Resource(vhost, cast(Kind, kind), name)


def _options_text(options: Options) -> str:
    return "" if options == DEFAULTS else msgspec.json.encode(options).decode()


@lru_cache(maxsize=1_000)
def _read_options(text: str) -> Options:
    return msgspec.json.decode(text, type=Options) if text else DEFAULTS


def _read_sink(row: SubscriptionRow) -> Resource | None:
    if row.sink_vhost is None or row.sink_kind is None or row.sink_name is None:
        return None
    return _resource(row.sink_vhost, row.sink_kind, row.sink_name)
