"""Who has a turn next."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack

import pytest

from warrenmq.hub.request_limiter import HUB, Requester, RequestLimiter

ALICE = Requester("user alice")
BOB = Requester("user bob")
ANONYMOUS = Requester("192.0.2.1", is_anonymous=True)


class Line:
    """Those who wait for turns, which each keeps until it is told to go."""

    def __init__(self, limiter: RequestLimiter) -> None:
        self._limiter = limiter
        self._gates: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self.served: list[str] = []

    async def enter(self, name: str, targets: Sequence[str], requester: Requester = HUB) -> None:
        self._gates[name] = asyncio.Event()
        self.tasks[name] = asyncio.create_task(self._wait(name, targets, requester))
        await settle()

    async def leave(self, *names: str) -> None:
        for name in names:
            self._gates[name].set()
            await settle()

    async def _wait(self, name: str, targets: Sequence[str], requester: Requester) -> None:
        async with self._limiter.take(targets, requester):
            self.served.append(name)
            await self._gates[name].wait()


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_clients_take_turns_and_so_do_their_targets() -> None:
    line = Line(RequestLimiter(1, 1))
    await line.enter("first", ["a"])
    for number in range(3):
        await line.enter(f"alice {number}", ["b" if number < 2 else "c"], ALICE)
    await line.enter("bob", ["d"], BOB)
    await line.leave("first", "alice 0", "bob", "alice 2", "alice 1")
    assert line.served == ["first", "alice 0", "bob", "alice 2", "alice 1"]


async def test_a_target_at_its_limit_does_not_delay_others() -> None:
    line = Line(RequestLimiter(10, 2))
    for number in range(4):
        await line.enter(f"{number}.evil", ["evil.example", "192.0.2.9"], ANONYMOUS)
    await line.enter("other domain, same address", ["also.example", "192.0.2.9"], ANONYMOUS)
    await line.enter("honest", ["good.example", "192.0.2.10"], ANONYMOUS)
    assert line.served == ["0.evil", "1.evil", "honest"]
    await line.leave("0.evil", "1.evil", "2.evil")
    assert line.served[3:] == ["other domain, same address", "2.evil", "3.evil"]


async def test_waiting_for_two_targets_delays_neither() -> None:
    line = Line(RequestLimiter(10, 1))
    await line.enter("x", ["x"])
    await line.enter("y", ["y"])
    await line.enter("both", ["x", "y"])
    await line.enter("only x", ["x"])
    await line.leave("x")
    assert line.served == ["x", "y", "only x"]
    await line.leave("only x", "y")
    assert line.served == ["x", "y", "only x", "both"]


async def test_anonymous_clients_leave_turns_to_users() -> None:
    line = Line(RequestLimiter(4, 4, reserved=1))
    for number in range(6):
        await line.enter(f"anonymous {number}", [f"{number}.example"], ANONYMOUS)
    assert len(line.served) == 3
    await line.enter("alice", ["a.example"], ALICE)
    await line.enter("bob", ["b.example"], BOB)
    assert line.served[3:] == ["alice"]
    await line.leave("anonymous 0", "anonymous 1")
    assert line.served[4:] == ["anonymous 3", "bob"]


async def test_a_cancelled_wait_frees_its_place() -> None:
    limiter = RequestLimiter(1, 1)
    line = Line(limiter)
    await line.enter("first", ["a"])
    for name in ("waits for a", "waits for all"):
        await line.enter(name, ["a" if name.endswith(" a") else "b"])
        line.tasks[name].cancel()
    await line.leave("first")
    await line.enter("granted", ["a"])
    line.tasks["granted"].cancel()
    with pytest.raises(asyncio.CancelledError):
        await line.tasks["granted"]
    async with AsyncExitStack() as stack, asyncio.timeout(5):
        await stack.enter_async_context(limiter.take(["a"]))
    assert line.served == ["first", "granted"]


async def test_a_turn_given_to_who_gives_up_at_once_goes_to_the_next() -> None:
    line = Line(RequestLimiter(1, 1))
    for name in ("first", "second", "third"):
        await line.enter(name, [name])
    line.tasks["first"].cancel()
    await asyncio.sleep(0)  # the second has its turn, and does not know yet
    line.tasks["second"].cancel()
    await settle()
    assert line.served == ["first", "third"] or line.served == ["first", "second", "third"]
