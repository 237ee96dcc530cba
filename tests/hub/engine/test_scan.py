"""Looking through a queue: nothing is lost, nothing moves, whatever comes in between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import pytest

from tests.support.amqp import Client, make_broker, publish
from tests.support.manual_store import ManualStore
from warrenmq.core.errors import ChannelError
from warrenmq.core.message.batch import BatchLocation
from warrenmq.core.message.model import Table
from warrenmq.core.server.listener import Listener
from warrenmq.core.store.memory import MemoryStore
from warrenmq.hub.engine import scan as scan_module
from warrenmq.hub.engine.embedded import EmbeddedEngine
from warrenmq.hub.engine.port import Properties, QueueSpec, UnackedMessage

from ..support import until

Look = Callable[[Sequence[UnackedMessage]], Awaitable[bool]]
WAIT_S = 60.0


class House:
    """An engine with the queue `q`."""

    def __init__(self, store: MemoryStore | None = None) -> None:
        self.broker = make_broker(store)
        self.listener = Listener(self.broker)
        self.engine = EmbeddedEngine(self.broker)

    async def start(self) -> None:
        await self.listener.start([])
        await self.engine.declare_queue("/", QueueSpec("q"))

    async def publish(self, *bodies: bytes) -> None:
        for body in bodies:
            await self.engine.publish(None, "/", "", "q", Properties(headers={"n": 1}), body)

    async def scan(self, look: Look, limit: int = 1000) -> bool:
        async with asyncio.timeout(WAIT_S):
            return await self.engine.scan("/", "q", look, limit=limit)

    def rest(self) -> list[tuple[bytes, bool]]:
        """Gets what is in the queue: bodies, and whether they were delivered before."""
        client = Client(self.broker)
        found = []
        while (reply := client.call("Basic.Get", queue="q", no_ack=True)).name == "Basic.GetOk":
            found.append((reply.body, reply.fields["redelivered"]))
        return found


class Looker:
    """Acks some bodies, or stops at one, and remembers what it was shown."""

    def __init__(self, *acked: bytes, stops_at: bytes | None = None) -> None:
        self.acked = acked
        self.stops_at = stops_at
        self.pieces: list[list[bytes]] = []

    @property
    def shown(self) -> list[bytes]:
        return [body for piece in self.pieces for body in piece]

    async def __call__(self, piece: Sequence[UnackedMessage]) -> bool:
        self.pieces.append([one.message.body for one in piece])
        for one in piece:
            if one.message.body in self.acked:
                one.ack()
        return self.stops_at not in self.pieces[-1]


@pytest.fixture
async def house() -> AsyncIterator[House]:
    house = House()
    await house.start()
    yield house
    await house.listener.stop()


async def test_messages_of_one_batch(house: House) -> None:
    """Their messages share a block."""
    frames = (publish(1, b"%d" % number, routing_key="q") for number in range(10))
    Client(house.broker).feed(b"".join(frames))
    assert await house.scan(Looker(b"0", b"4", b"5", b"9"))
    assert [int(body) for body, _ in house.rest()] == [1, 2, 3, 6, 7, 8]


async def test_the_limit_and_the_end(house: House) -> None:
    await house.publish(b"1", b"2", b"3")
    assert not await house.scan(look := Looker(), limit=2)
    assert look.shown == [b"1", b"2"]
    assert await house.scan(Looker(), limit=3)
    assert not await house.scan(Looker(b"1", stops_at=b"1"))
    assert [body for body, _ in house.rest()] == [b"2", b"3"]
    assert await house.scan(Looker())


async def test_a_failing_look_loses_nothing(house: House) -> None:
    await house.publish(b"1", b"2", b"3")

    async def look(piece: Sequence[UnackedMessage]) -> bool:
        piece[1].ack()
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        await house.scan(look)
    assert [body for body, _ in house.rest()] == [b"1", b"3"]


async def test_an_ack_after_the_look_has_no_effect(house: House) -> None:
    await house.publish(b"1")
    kept: list[UnackedMessage] = []

    async def look(piece: Sequence[UnackedMessage]) -> bool:
        kept.extend(piece)
        return True

    await house.scan(look)
    kept[0].ack()
    assert house.rest() == [(b"1", False)]


async def test_scans_do_not_count_as_deliveries(house: House) -> None:
    await house.engine.delete_queue("/", "q")
    arguments: Table = {"x-queue-type": "quorum", "x-delivery-limit": 1}
    await house.engine.declare_queue("/", QueueSpec("q", arguments=arguments))
    await house.publish(b"1")
    for _ in range(5):
        assert await house.scan(look := Looker())
        assert look.shown == [b"1"]


async def test_the_queue_is_deleted_meanwhile(house: House) -> None:
    await house.publish(b"1", b"2")

    async def look(piece: Sequence[UnackedMessage]) -> bool:
        await house.engine.delete_queue("/", "q")
        piece[0].ack()
        return True

    assert await house.scan(look)
    with pytest.raises(ChannelError):
        await house.scan(Looker())


async def test_paged_out_messages_are_read() -> None:
    store = ManualStore()
    house = House(store)
    await house.start()
    for body in (b"1", b"2", b"3"):
        published = asyncio.ensure_future(
            house.engine.publish(None, "/", "", "q", Properties(delivery_mode=2), body)
        )
        await asyncio.sleep(0)
        store.commit()
        await published
    scan = asyncio.ensure_future(house.scan(look := Looker(b"2")))
    while not scan.done():
        store.arrive()
        store.commit()
        await asyncio.sleep(0)
    assert look.shown == [b"1", b"2", b"3"]
    info = await house.engine.queue("/", "q")
    assert info is not None and info.messages_ready == 2
    await house.listener.stop()


async def test_scanned_messages_are_paged_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan_module, "RESIDENT_BYTES", 20_000)
    monkeypatch.setattr(scan_module, "CHUNK_BYTES", 5_000)
    store = ManualStore()
    store.paging = False
    house = House(store)
    await house.start()
    for _ in range(20):
        published = asyncio.ensure_future(
            house.engine.publish(None, "/", "", "q", Properties(delivery_mode=2), bytes(5_000))
        )
        await asyncio.sleep(0)
        store.commit()
        await published
    for block in store.batches.written:
        block.location = BatchLocation()
    resident = []

    async def look(piece: Sequence[UnackedMessage]) -> bool:
        resident.append(sum(block.resident for block in store.batches.written))
        return True

    scan = asyncio.ensure_future(house.scan(look))
    while not scan.done():
        store.commit()
        await asyncio.sleep(0)
    assert min(resident) < 10
    await house.listener.stop()


@pytest.mark.parametrize("is_read", [False, True])
async def test_messages_return_in_slices(
    house: House, monkeypatch: pytest.MonkeyPatch, is_read: bool
) -> None:
    monkeypatch.setattr(scan_module, "SLICE", 10)
    bodies = [b"%d" % number for number in range(25)]
    await house.publish(*bodies)
    got: list[UnackedMessage] = []

    async def gone() -> None:
        raise AssertionError

    async def look(piece: Sequence[UnackedMessage]) -> bool:
        if is_read:
            await house.engine.consume("/", "q", prefetch=0, on_delivery=got.append, on_cancel=gone)
        return True

    async def stir() -> None:
        """Others' work, which makes the broker hand out whatever it can."""
        while True:
            house.broker.on_work()
            await asyncio.sleep(0)

    stirring = asyncio.ensure_future(stir())
    assert await house.scan(look)
    stirring.cancel()
    if is_read:
        await until(lambda: len(got) == 25, "all messages")
        assert [one.message.body for one in got] == bodies
    else:
        assert house.rest() == [(body, False) for body in bodies]


async def test_a_cancelled_scan_returns_messages(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan_module, "SLICE", 1)
    bodies = [b"%d" % number for number in range(25)]
    await house.publish(*bodies)
    scan: asyncio.Task[bool] = asyncio.ensure_future(house.scan(Looker()))
    queue = house.broker.vhosts["/"].queues["q"]
    counts = [queue.ready_count]
    async with asyncio.timeout(WAIT_S):
        while not counts[-1] or counts[-1] == 25:  # taken, then put back one by one
            await asyncio.sleep(0)
            counts.append(queue.ready_count)
    assert 0 in counts
    scan.cancel()
    with pytest.raises(asyncio.CancelledError):
        await scan
    assert house.rest() == [(body, False) for body in bodies]
