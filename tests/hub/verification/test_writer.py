"""Who waits together is written together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import cast

import pytest

from warrenmq.hub.errors import StorageFailed
from warrenmq.hub.tasks import Tasks
from warrenmq.hub.verification.repository import PendingVerification, VerificationRepository
from warrenmq.hub.verification.writer import MAX_AT_ONCE, VerificationWriter

from ..support import NEWS, request


class Rows:
    """Notes each transaction, which takes a while."""

    def __init__(self) -> None:
        self.written: list[tuple[list[str], list[str]]] = []
        self.errors: list[Exception] = []
        self.begun, self.gate = asyncio.Event(), asyncio.Event()
        self.gate.set()

    async def change(
        self, added: Sequence[PendingVerification], over: Sequence[PendingVerification]
    ) -> None:
        self.begun.set()
        await self.gate.wait()
        await asyncio.sleep(0)
        if self.errors:
            raise self.errors.pop(0)
        self.written.append(([one.id for one in added], [one.id for one in over]))


class Bench:
    def __init__(self) -> None:
        self.rows = Rows()
        self.tasks = Tasks()
        self.writer = VerificationWriter(self._open, self.tasks)

    async def _open(self) -> VerificationRepository:
        return cast(VerificationRepository, self.rows)


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    bench = Bench()
    yield bench
    await bench.tasks.stop()


def pending(number: int) -> PendingVerification:
    return PendingVerification(str(number), "subscribe", request(NEWS, "http://a.b/"), 0.0)


async def test_all_that_wait_are_one_transaction(bench: Bench) -> None:
    adds = [bench.writer.add(pending(number)) for number in range(3)]
    await asyncio.gather(*adds, bench.writer.delete(pending(9)))
    assert bench.rows.written == [(["0", "1", "2"], ["9"])]


async def test_one_that_comes_later_is_in_the_next(bench: Bench) -> None:
    bench.rows.gate.clear()
    first = asyncio.create_task(bench.writer.add(pending(1)))
    await bench.rows.begun.wait()
    second = asyncio.create_task(bench.writer.add(pending(2)))
    await asyncio.sleep(0)  # it has said what it wants
    assert not first.done() and not second.done()
    bench.rows.gate.set()
    await asyncio.gather(first, second)
    assert bench.rows.written == [(["1"], []), (["2"], [])]


async def test_a_transaction_is_bounded(bench: Bench) -> None:
    await asyncio.gather(*(bench.writer.add(pending(number)) for number in range(MAX_AT_ONCE + 1)))
    assert [len(added) for added, _ in bench.rows.written] == [MAX_AT_ONCE, 1]


async def test_a_failure_is_told_to_those_of_the_transaction_alone(bench: Bench) -> None:
    bench.rows.errors = [StorageFailed("down", field="database")]
    adds = [bench.writer.add(pending(number)) for number in range(MAX_AT_ONCE + 1)]
    told = await asyncio.gather(*adds, return_exceptions=True)
    assert [type(one) for one in told] == [StorageFailed] * MAX_AT_ONCE + [type(None)]
    await bench.writer.add(pending(1))
    assert len(bench.rows.written) == 2


async def test_a_stop_leaves_nobody_waiting(bench: Bench) -> None:
    bench.rows.gate.clear()
    waiting = [asyncio.create_task(bench.writer.add(pending(number))) for number in range(2)]
    await bench.rows.begun.wait()
    waiting.append(asyncio.create_task(bench.writer.add(pending(2))))
    await asyncio.sleep(0)
    await bench.tasks.stop()
    told = await asyncio.gather(*waiting, return_exceptions=True)
    assert all(isinstance(one, asyncio.CancelledError) for one in told)
