"""Attempts are durable before their messages are settled, whatever the database does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.hub.support import until
from tests.support.settings import hub_settings
from warrenmq.core.clock import ManualClock
from warrenmq.hub.attempts import log as log_module
from warrenmq.hub.attempts.attempt import Attempt, AttemptFilter
from warrenmq.hub.attempts.log import AttemptLog
from warrenmq.hub.attempts.table import AttemptTable
from warrenmq.hub.keys.seal import Sealer
from warrenmq.hub.storage.schema import DATABASE_NAME
from warrenmq.hub.storage.storage import Storage

from .support import attempt


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "GATHER_S", 0.01)
    monkeypatch.setattr(log_module, "TRY_AGAIN_S", 0.05)


class Office:
    """A log, and the attempts that it has called settled, in order."""

    def __init__(self, storage: Storage, **settings: Any) -> None:
        self.storage = storage
        self.clock = ManualClock()
        self.log = AttemptLog(storage, hub_settings(**settings), self.clock)
        self.settled: list[Attempt] = []

    def record(self, **changed: Any) -> Attempt:
        one = attempt(**changed)
        self.log.record(one, self.settled.extend, one)
        return one

    async def settle(self, count: int) -> None:
        await until(lambda: len(self.settled) == count, f"{count} settled attempts")

    async def written(self) -> list[Attempt]:
        """The oldest first."""
        found = await self.log.find(AttemptFilter(limit=100_000))
        return [kept.attempt for kept in reversed(found)]


@pytest.fixture
async def office(storage: Storage) -> AsyncIterator[Office]:
    office = Office(storage)
    await office.log.start()
    yield office
    await office.log.stop()


async def test_attempts_are_settled_in_order_once_they_are_written(office: Office) -> None:
    recorded = [office.record(number=number) for number in range(1, 6)]
    assert office.settled == [] and office.log.pending_count == 5
    await office.settle(5)
    assert office.settled == recorded == await office.written()
    assert office.log.pending_count == 0
    later = office.record(number=6)
    await office.settle(6)
    assert await office.written() == [*recorded, later]


async def test_a_batch_is_settled_in_slices(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others have their turn between two, however many were written together."""
    monkeypatch.setattr(log_module, "SETTLED_AT_ONCE", 20)
    loop, rounds, pieces = asyncio.get_running_loop(), 0, list[tuple[int, int]]()

    def next_round() -> None:
        nonlocal rounds
        rounds += 1

    def settle(numbers: Sequence[int]) -> None:
        pieces.append((rounds, len(numbers)))
        loop.call_soon(next_round)

    for number in range(50):
        office.log.record(attempt(), settle, number)
    await until(lambda: sum(count for _, count in pieces) == 50, "all")
    assert pieces == [(0, 20), (1, 20), (2, 10)]


async def test_stopping_writes_pending_attempts(storage: Storage, tmp_path: Path) -> None:
    await storage.database()  # to open it may take longer than a stop
    office = Office(storage)
    await office.log.start()
    recorded = [office.record(number=number) for number in range(1, 4)]
    await office.log.stop()
    assert office.settled == recorded == await office.written()


async def test_a_failing_database_loses_nothing(
    tmp_path: Path, sealer: Sealer, caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    tried, add = asyncio.Event(), AttemptTable.add

    async def noted(table: AttemptTable, attempts: Any) -> None:
        tried.set()
        await add(table, attempts)

    monkeypatch.setattr(AttemptTable, "add", noted)
    storage = Storage(tmp_path, None, sealer)
    office = Office(storage)
    database = await storage.database()
    async with database.engine.connect() as connection:
        await connection.exec_driver_sql("PRAGMA max_page_count = 1")
    recorded = [office.record(response="x" * 500) for _ in range(1_000)]
    await until(lambda: "attempts and their acks are waiting" in caplog.text, "warning")
    recorded.append(office.record(number=2))
    for _ in range(3):
        tried.clear()
        await tried.wait()
    assert office.settled == [] and office.log.pending_count == 1_001
    assert caplog.text.count("attempts and their acks are waiting") == 1
    assert caplog.text.count("the hub's database failed") == 1
    async with database.engine.connect() as connection:
        await connection.exec_driver_sql("PRAGMA max_page_count = 1000000")
    await office.settle(1_001)
    assert office.settled == recorded == await office.written()
    await office.log.stop()
    await storage.close()


async def test_an_unexpected_error_loses_nothing(
    office: Office, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = [office.record()]
    await office.settle(1)
    with monkeypatch.context() as patch:
        failed = asyncio.Event()

        async def fail(_: AttemptTable, attempts: Any) -> None:
            failed.set()
            raise RuntimeError("unforeseen")

        patch.setattr(AttemptTable, "add", fail)
        recorded.append(office.record(number=2))
        await failed.wait()
    await office.settle(2)
    assert await office.written() == recorded
    assert "RuntimeError: unforeseen" in caplog.text


async def test_a_stop_without_a_database(
    tmp_path: Path, sealer: Sealer, caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(log_module, "STOP_WITHIN_S", 0.1)
    (tmp_path / DATABASE_NAME).mkdir()
    office = Office(Storage(tmp_path, None, sealer))
    office.record()
    await until(lambda: "1 attempts and their acks are waiting" in caplog.text, "warning")
    await office.log.stop()
    await office.storage.close()
    assert office.settled == []
    assert "Is a directory" in caplog.text and "1 attempts were not stored" in caplog.text


@pytest.mark.parametrize("limit", [{"max_attempt_rows": 10}, {"attempt_retention_s": 100}])
async def test_old_attempts_are_deleted(
    storage: Storage, limit: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, rows in [("CLEAN_AFTER", 10), ("CLEANING_AFTER", 10), ("CLEAN", 20)]:
        monkeypatch.setattr(log_module, f"{name}_ROWS", rows)
    office = Office(storage, **limit)
    for number in range(100):
        office.record(number=number, at=office.clock.wall_s() - (200 if number < 90 else 0))
    await office.settle(100)

    async def only_new_ones() -> bool:
        return [one.number for one in await office.written()] == [*range(90, 100)]

    await until(only_new_ones, "end of the old attempts")
    await office.log.stop()


async def test_old_attempts_are_deleted_when_idle(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "CLEAN_S", 0.05)
    office = Office(storage, attempt_retention_s=100)
    office.record(at=office.clock.wall_s())
    await office.settle(1)
    office.clock.advance(101_000)

    async def is_empty() -> bool:
        return await office.written() == []

    await until(is_empty, "end of the old attempt")
    await office.log.stop()
