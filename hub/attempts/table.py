"""Attempts in SQL; imported only where the database is open."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from itertools import chain
from typing import Any

from sqlalchemy import Row, Select, delete, exists, func, insert, or_, select
from sqlalchemy.orm import aliased

from ..keys.seal import Sealer
from ..storage.database import Database
from ..storage.tables import FAILED, AttemptRow
from .attempt import (
    RESPONSE_CHARACTERS,
    Attempt,
    AttemptCount,
    AttemptFilter,
    AttemptOutcome,
    StoredAttempt,
)
from .kept_request import pack, unpack
from .sealed_urls import SealedUrls

WEBHOOK_ID_CHARACTERS = 255
BODY_CHARACTERS = 65_536
_INTEGER_MAX = 2**31 - 1
ROWS_AT_ONCE = (64, 8, 1)
"""The driver lets go of the interpreter at each statement, and gets it back from a busy loop after
some 0.3 ms: with a row in each, a batch of 400 took 0.12 s beside deliveries, now 0.03."""
SEALED_AT_ONCE = 50
"""Requests that are encrypted in one iteration of the event loop: a millisecond."""
_COLUMNS = [name for name in AttemptRow.__table__.columns.keys() if name != "id"]  # noqa: SIM118
WHOLE, CUT = "+", "-"
"""The first character of a stored request: whether its body is whole."""
_LISTED = [
    *(column for column in AttemptRow.__table__.columns if column.name != "request"),
    func.substr(AttemptRow.request, 1, 1).label("mark"),
]


class AttemptTable:
    """The table of attempts. Every method is one transaction, and raises `StorageFailed`."""

    def __init__(self, database: Database, sealer: Sealer) -> None:
        self._database = database
        self._sealer = sealer
        self._urls = SealedUrls(sealer)
        self._inserts: dict[int, str] = {}
        """By the number of rows; given to the driver with tuples: 2.5 us a row against 5.6."""

    async def add(self, attempts: Iterable[Attempt]) -> None:
        rows = await self._to_rows(attempts)
        async with self._database.begin() as session:
            connection = await session.connection()
            at = 0
            for count in ROWS_AT_ONCE:
                while len(rows) - at >= count:
                    values = tuple(chain.from_iterable(rows[at : at + count]))
                    await connection.exec_driver_sql(await self._insert(count), values)
                    at += count

    async def _insert(self, count: int) -> str:
        statement = self._inserts.get(count)
        if statement is None:  # compiled aside from the loop: 64 rows take 15 ms
            statement = await asyncio.to_thread(_compile_insert, self._database, count)
            self._inserts[count] = statement
        return statement

    async def find(self, wanted: AttemptFilter) -> list[StoredAttempt]:
        """Returns stored attempts, the newest first."""
        async with self._database.begin() as session:
            return [self._from_row(row) for row in await session.execute(_selection(wanted))]

    async def count(self, wanted: AttemptFilter) -> list[AttemptCount]:
        """Counts the newest attempts, `limit` at most, by outcome and class of status."""
        newest = _selection(wanted).with_only_columns(AttemptRow.outcome, AttemptRow.status)
        columns = newest.subquery().columns
        groups = columns.outcome, columns.status // 100
        counted = select(*groups, func.count()).group_by(*groups)
        async with self._database.begin() as session:
            return [
                AttemptCount(AttemptOutcome(outcome), status_class, attempts)
                for outcome, status_class, attempts in await session.execute(counted)
            ]

    async def get(self, attempt_id: int) -> StoredAttempt | None:
        """Returns the attempt with its request."""
        wanted = select(*_LISTED, AttemptRow.request).where(AttemptRow.id == attempt_id)
        async with self._database.begin() as session:
            row: Any = (await session.execute(wanted)).one_or_none()
        if row is None:
            return None
        found = self._from_row(row)
        if row.request:
            text = self._sealer.open(row.request[1:], row.subscription_id)
            found.attempt.request = unpack(text)
        return found

    async def last_failures(self) -> dict[str, StoredAttempt]:
        """Returns the last attempt of each subscription where that has failed, by the
        subscription's id."""
        last = select(func.max(AttemptRow.id)).where(FAILED).group_by(AttemptRow.subscription_id)
        later = aliased(AttemptRow)
        is_over = exists().where(
            later.subscription_id == AttemptRow.subscription_id, later.id > AttemptRow.id
        )
        found = select(*_LISTED).where(AttemptRow.id.in_(last), ~is_over)
        async with self._database.begin() as session:
            stored = [self._from_row(row) for row in await session.execute(found)]
        return {one.attempt.subscription_id: one for one in stored}

    async def drop_oldest(self, before_s: float, keep_rows: int, limit: int) -> int:
        """Drops attempts from before a time, and those that are too many, among the `limit` oldest;
        returns how many. Ids have few gaps, so they stand for the count."""
        oldest, newest = select(func.min(AttemptRow.id)), select(func.max(AttemptRow.id))
        ends = select(oldest.scalar_subquery(), newest.scalar_subquery())
        async with self._database.begin() as session:
            low, high = (await session.execute(ends)).one()
            if low is None:
                return 0
            is_due = or_(AttemptRow.at < before_s, AttemptRow.id <= high - keep_rows)
            dropped = await session.execute(
                delete(AttemptRow).where(AttemptRow.id < low + limit, is_due)
            )
            return int(dropped.rowcount)  # type: ignore[attr-defined]

    async def _to_rows(self, attempts: Iterable[Attempt]) -> list[tuple[object, ...]]:
        rows, sealed = [], 0
        for attempt in attempts:
            rows.append(self._to_row(attempt))
            if attempt.request is not None:
                sealed += 1
                if sealed % SEALED_AT_ONCE == 0:
                    await asyncio.sleep(0)
        return rows

    def _to_row(self, attempt: Attempt) -> tuple[object, ...]:
        """Returns the values in the order of the columns. Publishers and targets choose some of
        them, and what a database refuses would hold up all the others."""
        return (
            attempt.subscription_id,
            _webhook_id(attempt.webhook_id),
            min(attempt.number, _INTEGER_MAX),
            attempt.at,
            min(attempt.latency_ms, _INTEGER_MAX),
            attempt.status,
            attempt.outcome.value,
            _storable(attempt.response, RESPONSE_CHARACTERS),
            self._urls.seal(attempt.callback, attempt.subscription_id),
            _storable(attempt.body, BODY_CHARACTERS),
            self._seal(attempt),
            attempt.next_at,
        )

    def _seal(self, attempt: Attempt) -> str:
        if attempt.request is None:
            return ""
        mark = WHOLE if attempt.request.is_whole else CUT
        return mark + self._sealer.seal(pack(attempt.request), attempt.subscription_id)

    def _from_row(self, row: Row[Any]) -> StoredAttempt:
        attempt = Attempt(
            subscription_id=row.subscription_id,
            webhook_id=row.webhook_id,
            number=row.number,
            at=row.at,
            latency_ms=row.latency_ms,
            status=row.status,
            outcome=AttemptOutcome(row.outcome),
            response=row.response,
            callback=self._urls.open(row.callback, row.subscription_id),
            body=row.body,
            next_at=row.next_at,
            has_whole_request=row.mark == WHOLE,
        )
        return StoredAttempt(row.id, attempt)


def _compile_insert(database: Database, count: int) -> str:
    rows = [dict.fromkeys(_COLUMNS)] * count
    return str(insert(AttemptRow).values(rows).compile(dialect=database.engine.dialect))


def _selection(wanted: AttemptFilter) -> Select[Any]:
    found = select(*_LISTED).order_by(AttemptRow.id.desc()).limit(wanted.limit)
    if wanted.subscription_ids is not None:
        found = found.where(
            AttemptRow.subscription_id.in_(map(_webhook_id, wanted.subscription_ids))
        )
    if wanted.ids is not None:
        found = found.where(AttemptRow.id.in_(wanted.ids))
    if wanted.webhook_id is not None:
        found = found.where(AttemptRow.webhook_id == _webhook_id(wanted.webhook_id))
    if wanted.outcome is not None:
        found = found.where(AttemptRow.outcome == wanted.outcome.value)
        if wanted.outcome is not AttemptOutcome.DELIVERED:
            found = found.where(FAILED)  # which the index of failures wants to hear
    if wanted.since is not None:
        found = found.where(AttemptRow.at >= wanted.since)
    if wanted.until is not None:
        found = found.where(AttemptRow.at < wanted.until)
    if wanted.statuses is not None:
        first, last = wanted.statuses[0], wanted.statuses[-1]
        found = found.where(AttemptRow.status.between(first, last))
    if wanted.has_no_status:
        found = found.where(AttemptRow.status.is_(None))
    if wanted.before is not None:
        found = found.where(AttemptRow.id < wanted.before)
    return found


def _webhook_id(text: str) -> str:
    return _storable(text, WEBHOOK_ID_CHARACTERS)


def _storable(text: str, characters: int) -> str:
    """Replaces what a database refuses: PostgreSQL takes no NUL, and neither database half a
    surrogate pair."""
    text = text[:characters]
    if not text.isascii():
        text = text.encode(errors="replace").decode()
    return text.replace("\0", "\ufffd") if "\0" in text else text
