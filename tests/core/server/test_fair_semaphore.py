from __future__ import annotations

import asyncio

import pytest

from warrenmq.core.server.fair_semaphore import FairSemaphore


class Visitors:
    """Tasks that stay in their turn until `go` is called."""

    def __init__(self, at_once: int) -> None:
        self.semaphore = FairSemaphore(at_once)
        self.inside: list[str] = []
        self.entered: list[str] = []
        self._leave: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def come(self, *names: str) -> None:
        """The part of a name before the dot is the address."""
        for name in names:
            self._leave[name] = asyncio.Event()
            self.tasks[name] = asyncio.create_task(self._stay(name))
        await self.settled()

    async def go(self, name: str) -> None:
        self._leave[name].set()
        await self.settled()

    async def settled(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)

    async def _stay(self, name: str) -> None:
        async with self.semaphore.turn(name.partition(".")[0]):
            self.inside.append(name)
            self.entered.append(name)
            await self._leave[name].wait()
            self.inside.remove(name)


async def test_at_once() -> None:
    visitors = Visitors(2)
    await visitors.come("a.1", "b.1", "c.1")
    assert visitors.inside == ["a.1", "b.1"]
    await visitors.go("b.1")
    assert visitors.inside == ["a.1", "c.1"]
    await visitors.go("a.1")
    await visitors.go("c.1")
    await visitors.come("d.1", "e.1", "f.1")
    assert visitors.inside == ["d.1", "e.1"]
    for name in ("d.1", "e.1", "f.1"):
        await visitors.go(name)


async def test_addresses_take_turns() -> None:
    visitors = Visitors(1)
    crowd = [f"crowd.{number}" for number in range(6)]
    await visitors.come(*crowd, "tony.1", "evan.1", "tony.2")
    while visitors.inside:
        await visitors.go(visitors.inside[0])
    assert visitors.entered == [
        "crowd.0", "crowd.1", "tony.1", "evan.1", "crowd.2", "tony.2", *crowd[3:],
    ]  # fmt: skip


async def test_a_cancelled_waiter_takes_no_turn() -> None:
    visitors = Visitors(1)
    await visitors.come("a.1", "b.1", "c.1")
    visitors.tasks["b.1"].cancel()
    await visitors.go("a.1")
    assert visitors.entered == ["a.1", "c.1"]
    await visitors.go("c.1")


async def test_a_waiter_cancelled_at_its_turn_passes_it_on() -> None:
    semaphore, entered = FairSemaphore(1), []

    async def come(name: str) -> None:
        async with semaphore.turn(name):
            entered.append(name)

    async with semaphore.turn("a"):
        called, behind = asyncio.create_task(come("b")), asyncio.create_task(come("c"))
        await asyncio.sleep(0)
    called.cancel()
    await behind
    assert entered == ["c"]


async def test_an_error_ends_the_turn() -> None:
    semaphore = FairSemaphore(1)
    for _ in range(2):
        with pytest.raises(ValueError, match="x"):
            async with semaphore.turn("a"):
                raise ValueError("x")
