"""Topics in SQL: each method is one committed transaction, durable when it returns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import msgspec
from sqlalchemy import delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import defer

from ..storage.database import Database
from ..storage.tables import NewSubscriberRow, TopicRow
from .topic import Topic


class TopicRepository:
    """Reads and writes the tables of topics and of their new subscribers."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def all(self, first: int = 0, size: int | None = None) -> list[Topic]:
        """Returns at most `size` topics from position `first` on, sorted by URL.

        They come without the digests of entries, some 70 kB each.
        """
        query = select(TopicRow).options(defer(TopicRow.entries))
        query = query.order_by(TopicRow.url, TopicRow.key).offset(first).limit(size)
        async with self._database.begin() as session:
            return [_from_row(row, {}) for row in (await session.scalars(query)).all()]

    async def count(self) -> int:
        async with self._database.begin() as session:
            return (await session.scalars(select(func.count()).select_from(TopicRow))).one()

    async def get(self, key: str) -> Topic | None:
        async with self._database.begin() as session:
            row = await session.get(TopicRow, key)
            return None if row is None else _from_row(row, _known(row.entries))

    async def put(self, topic: Topic, served: Collection[str] = ()) -> None:
        """Stores the topic; the served subscribers are no longer new."""
        async with self._database.begin() as session:
            await session.merge(_to_row(topic))
            row = NewSubscriberRow
            for identity in served:
                query = delete(row).where(row.topic_key == topic.key, row.identity == identity)
                await session.execute(query)

    async def add_subscriber(self, topic: Topic, identity: str) -> None:
        """Stores a new subscriber of the topic, and when the topic is due."""
        async with self._database.begin() as session:
            await session.merge(NewSubscriberRow(topic_key=topic.key, identity=identity))
            await _mark_due(session, topic)

    async def new_subscribers(self) -> dict[str, list[str]]:
        """Returns the identities of all new subscribers, by the keys of their topics."""
        found: dict[str, list[str]] = {}
        async with self._database.begin() as session:
            for row in await session.scalars(select(NewSubscriberRow)):
                found.setdefault(row.topic_key, []).append(row.identity)
        return found

    async def mark_due(self, topics: Iterable[Topic]) -> None:
        """Stores when these topics are due, and adds those that are missing."""
        async with self._database.begin() as session:
            for topic in topics:
                await _mark_due(session, topic)

    async def delete(self, keys: Iterable[str]) -> None:
        async with self._database.begin() as session:
            for key in keys:
                await session.execute(delete(TopicRow).where(TopicRow.key == key))
                query = delete(NewSubscriberRow).where(NewSubscriberRow.topic_key == key)
                await session.execute(query)


async def _mark_due(session: AsyncSession, topic: Topic) -> None:
    row = update(TopicRow).where(TopicRow.key == topic.key)
    done = await session.execute(row.values(due_at=topic.due_at).returning(TopicRow.key))
    if done.scalar() is None:
        session.add(_to_row(topic))


def _known(text: str) -> dict[str, str]:
    return msgspec.json.decode(text, type=dict[str, str]) if text else {}


def _from_row(row: TopicRow, known: Mapping[str, str]) -> Topic:
    return Topic(
        key=row.key,
        url=row.url,
        etag=row.etag,
        last_modified=row.last_modified,
        content_type=row.content_type,
        digest=row.body_digest,
        known=known,
        checked_at=row.checked_at,
        changed_at=row.changed_at,
        failures=row.failures,
        error=row.error,
        notice=row.notice,
        due_at=row.due_at,
        not_before=row.not_before,
    )


def _to_row(topic: Topic) -> TopicRow:
    return TopicRow(
        key=topic.key,
        url=topic.url,
        etag=topic.etag,
        last_modified=topic.last_modified,
        content_type=topic.content_type,
        body_digest=topic.digest,
        entries=msgspec.json.encode(topic.known).decode() if topic.known else "",
        checked_at=topic.checked_at,
        changed_at=topic.changed_at,
        failures=topic.failures,
        error=topic.error,
        notice=topic.notice,
        due_at=topic.due_at,
        not_before=topic.not_before,
    )
