"""What is written is found again, in either database; what is old goes in small steps."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import event, select

from warrenmq.hub.attempts.attempt import (
    RESPONSE_CHARACTERS,
    AttemptFilter,
    AttemptOutcome,
    StoredAttempt,
)
from warrenmq.hub.attempts.table import WEBHOOK_ID_CHARACTERS, AttemptTable
from warrenmq.hub.keys.seal import Sealer
from warrenmq.hub.storage.storage import Storage
from warrenmq.hub.storage.tables import AttemptRow

from .support import attempt


@pytest.fixture
async def table(storage: Storage, sealer: Sealer) -> AttemptTable:
    return AttemptTable(await storage.database(), sealer)


async def ids(table: AttemptTable, **wanted: Any) -> list[int]:
    return [kept.id for kept in await table.find(AttemptFilter(**wanted))]


async def test_a_batch_is_few_statements(storage: Storage, sealer: Sealer) -> None:
    """The driver waits for the interpreter at each."""
    database = await storage.database()
    statements: list[str] = []
    event.listen(
        database.engine.sync_engine,
        "before_cursor_execute",
        lambda _connection, _cursor, statement, *_: statements.append(statement),
    )
    table = AttemptTable(database, sealer)
    batch = [attempt(number=number) for number in range(1, 203)]
    await table.add(batch)
    assert sum(one.startswith("INSERT") for one in statements) == 3 + 1 + 2
    found = await table.find(AttemptFilter(limit=1_000))
    assert [kept.attempt for kept in reversed(found)] == batch


async def test_any_values_can_be_stored(table: AttemptTable) -> None:
    """A row that a database refuses would hold up every other."""
    id = "\0\ud800" + "x" * 10_000
    await table.add([attempt(webhook_id=id, number=2**63, response="\0\udfffü" * 1_000)])
    [kept] = await table.find(AttemptFilter(webhook_id=id))
    assert kept.attempt.webhook_id == "\ufffd?" + "x" * (WEBHOOK_ID_CHARACTERS - 2)
    assert kept.attempt.number == 2**31 - 1
    assert kept.attempt.response.startswith("\ufffd?ü")
    assert len(kept.attempt.response) == RESPONSE_CHARACTERS


async def test_urls_are_sealed(table: AttemptTable, storage: Storage) -> None:
    urls = ["http://a.b/hook?token=secret", "", "http://a.b/hook?token=secret\ud800"]
    await table.add(attempt(callback=url, body="no\0\udfff") for url in urls)
    found = [kept.attempt for kept in await table.find(AttemptFilter())]
    assert [one.callback for one in reversed(found)] == [urls[0], "", f"{urls[0]}?"]
    assert {one.body for one in found} == {"no\ufffd?"}
    async with (await storage.database()).begin() as session:
        rows = (await session.execute(select(AttemptRow.callback))).scalars().all()
    assert not any("secret" in row for row in rows)


async def test_attempts_are_found_by_all_conditions(table: AttemptTable) -> None:
    first, second = "1" * 32, "2" * 32
    await table.add(
        attempt(subscription_id=whose, webhook_id=f"msg_{number}", outcome=outcome)
        for whose, number, outcome in [
            (first, 1, AttemptOutcome.RETRIED),
            (first, 1, AttemptOutcome.DELIVERED),
            (second, 1, AttemptOutcome.DEAD),
            (second, 2, AttemptOutcome.GONE),
            (first, 3, AttemptOutcome.RETRIED),
        ]
    )
    assert await ids(table) == [5, 4, 3, 2, 1]
    assert await ids(table, subscription_ids=[first]) == [5, 2, 1]
    assert await ids(table, subscription_ids=[first, second]) == [5, 4, 3, 2, 1]
    assert await ids(table, subscription_ids=[]) == []
    assert await ids(table, subscription_ids=["\0"]) == []  # which PostgreSQL would not look for
    assert await ids(table, webhook_id="msg_1") == [3, 2, 1]
    assert await ids(table, outcome=AttemptOutcome.DELIVERED) == [2]
    assert await ids(table, outcome=AttemptOutcome.RETRIED) == [5, 1]
    assert await ids(table, outcome=AttemptOutcome.RETRIED, subscription_ids=[first], before=5) == [
        1
    ]
    assert await ids(table, limit=2) == [5, 4]
    assert await ids(table, limit=2, before=4) == [3, 2]
    assert await ids(table, limit=2, before=2) == [1]


async def test_subscriptions_whose_last_attempt_failed_are_found(table: AttemptTable) -> None:
    first, second = (
        attempt(subscription_id=whose * 32, status=status, outcome=AttemptOutcome.RETRIED)
        for whose, status in [("1", 500), ("2", 502)]
    )
    await table.add([attempt(subscription_id="3" * 32), first, attempt(), second, first])
    assert await table.last_failures() == {
        "1" * 32: StoredAttempt(5, first),
        "2" * 32: StoredAttempt(4, second),
    }
    await table.add([attempt(subscription_id="2" * 32)])
    assert await table.last_failures() == {"1" * 32: StoredAttempt(5, first)}


async def test_the_oldest_go_by_age(table: AttemptTable) -> None:
    await table.add(attempt(at=float(second)) for second in range(10))
    assert await table.drop_oldest(4.0, keep_rows=100, limit=3) == 3
    assert await table.drop_oldest(4.0, keep_rows=100, limit=3) == 1
    assert await table.drop_oldest(4.0, keep_rows=100, limit=3) == 0
    assert await ids(table) == [10, 9, 8, 7, 6, 5]
