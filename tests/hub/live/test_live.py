"""Readers of a hub, with connections that the test fills and drains."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

from tests.hub.support import House
from warrenmq.hub.engine.port import ExchangeSpec, Numbered, Properties, QueueSpec
from warrenmq.hub.live import broadcast, live, recent
from warrenmq.hub.live.encoding import MessageEncoder
from warrenmq.hub.live.forms import EVENT_STREAM, JSON_ITEMS
from warrenmq.hub.live.reader import LiveReader
from warrenmq.hub.live.reasons import Reason
from warrenmq.hub.requests import Resource

NEWS = Resource("/", "x", "news")
WAIT_S = 60.0


class AlwaysPermitted:
    """A permit that never changes."""

    def refusal(self) -> Reason | None:
        return None

    def watch(self, changed: Callable[[], None]) -> None: ...
    def unwatch(self, changed: Callable[[], None]) -> None: ...


class Connection:
    """Keeps what is written; a stuck one counts it as unsent."""

    def __init__(self) -> None:
        self.written = b""
        self.unsent_bytes = 0
        self.is_closed = False

    def write(self, data: bytes) -> None:
        self.written += data

    def written_has(self, part: bytes) -> bool:
        return part in self.written

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_closed = True
        self.unsent_bytes = 0


async def reader(
    house: House, form: object = JSON_ITEMS, *, key: str = "#", cursor: str = ""
) -> tuple[LiveReader, Connection]:
    opened = house.hub.live.open(NEWS, (key,), form, AlwaysPermitted(), cursor)  # type: ignore[arg-type]
    found = await opened
    connection = Connection()
    found.begin(connection)
    return found, connection


async def publish(house: House, *bodies: bytes, key: str = "a") -> None:
    for body in bodies:
        await house.engine.publish(None, "/", "news", key, Properties(), body)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not condition():
            await asyncio.sleep(0)


async def test_each_of_very_many_gets_everything_in_order(house: House) -> None:
    """They are written to in several rounds of the loop, while more comes in."""
    connections = [(await reader(house))[1] for _ in range(broadcast.WRITES_AT_ONCE * 7 // 5)]
    await publish(house, b"one", b"two", b"three")
    await until(lambda: all(b"three" in one.written for one in connections))
    for one in connections:
        places = [one.written.index(body) for body in (b"one", b"two", b"three")]
        assert places == sorted(places)
        assert one.written.count(b'"id"') == 3


async def test_messages_stay_in_the_queue_while_no_reader_keeps_up(house: House) -> None:
    first, connection = await reader(house)
    first.full()
    await publish(house, b"waits")
    (queue,) = (one for one in house.broker.vhosts["/"].queues.values() if one.owner is not None)
    assert (queue.ready_count, connection.written) == (1, b"")
    first.drained()
    await until(lambda: b"waits" in connection.written)


async def test_a_stuck_reader_does_not_hold_up_others(house: House) -> None:
    stuck, connection = await reader(house)
    _, other = await reader(house)
    stuck.full()
    connection.unsent_bytes = 2 * 1024 * 1024
    await publish(house, b"x")
    await until(lambda: b'"x"' in other.written)
    assert b'"status":408' in connection.written
    assert connection.is_closed


async def test_the_slowest_reader_ends_if_unsent_bytes_exceed_the_limit(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that has not kept up for the longest time goes."""
    monkeypatch.setattr(live, "UNSENT_BYTES", 1_000)
    readers = [await reader(house) for _ in range(3)]
    for one, connection in readers:
        connection.unsent_bytes = 400
        one.full()
    await asyncio.sleep(0)
    assert [connection.is_closed for _, connection in readers] == [True, False, False]


async def test_what_is_unsent_counts_until_the_connection_is_closed(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who has been cut off may still read for a while."""
    monkeypatch.setattr(live, "UNSENT_BYTES", 1_000)
    (ended, unread), (slow, connection) = [await reader(house) for _ in range(2)]
    unread.unsent_bytes = 800
    ended.end(Reason.stopping())
    assert unread.unsent_bytes == 800
    connection.unsent_bytes = 400
    slow.full()
    await asyncio.sleep(0)
    assert (unread.unsent_bytes, connection.is_closed) == (0, False)


async def test_who_reads_nothing_for_long_is_cut_off(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "STALLED_S", 0)
    stuck, connection = await reader(house)
    stuck.full()
    await until(lambda: connection.is_closed)
    assert b'"status":408' in connection.written


async def test_a_quiet_reader_gets_signs_of_life(house: House) -> None:
    quiet, connection = await reader(house, EVENT_STREAM)
    quiet.keep_alive()
    assert connection.written == b""
    quiet.keep_alive()
    assert connection.written == b"3\r\n:\n\n\r\n"
    quiet.full()
    quiet.keep_alive()
    assert connection.written == b"3\r\n:\n\n\r\n"


async def test_the_queue_of_a_broadcast_without_readers_is_deleted(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broadcast, "LINGER_S", 0.01)
    queues = house.broker.vhosts["/"].queues
    before = len(queues)
    only, _ = await reader(house)
    assert len(queues) == before + 1
    only.lost()
    await until(lambda: len(queues) == before)


@pytest.mark.parametrize("name", ["news", "jobs", "log"])
async def test_readers_are_told_that_an_error_ended_them(
    house: House, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ValueError("not encodable")

    await house.engine.declare_queue("/", QueueSpec("jobs"))
    log = QueueSpec("log", arguments={"x-queue-type": "stream"})
    await house.engine.declare_queue("/", log)
    source = NEWS if name == "news" else Resource("/", "q", name)
    keys = ("#",) if name == "news" else ()
    opened = await house.hub.live.open(source, keys, JSON_ITEMS, AlwaysPermitted())
    connection = Connection()
    opened.begin(connection)
    monkeypatch.setattr(MessageEncoder, "encode", fail)
    exchange, key = ("news", "a") if name == "news" else ("", name)
    await house.engine.publish(None, "/", exchange, key, Properties(), b"x")
    await until(lambda: connection.is_closed)
    assert b"could not be read" in connection.written and b'"status":500' in connection.written


async def test_readers_are_told_that_their_queue_was_deleted(house: House) -> None:
    _, connection = await reader(house)
    host = house.broker.vhosts["/"]
    (queue,) = (one for one in host.queues.values() if one.owner is not None)
    await house.engine.delete_queue("/", queue.name)
    await until(lambda: connection.is_closed)
    detail = b"the queue of readers of exchange 'news' in vhost '/' was deleted"
    assert detail in connection.written


async def test_few_queues_stay_without_a_reader(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "IDLE_MAX", 3)
    queues = house.broker.vhosts["/"].queues
    before = len(queues)
    for number in range(10):
        await house.hub.live.open(NEWS, (f"key.{number}",), JSON_ITEMS, AlwaysPermitted())
    await until(lambda: len(queues) == before + 3)


async def test_what_is_kept_for_some_leaves_room_for_others(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recent, "TOTAL_BYTES", 10_000)
    busy, read = await reader(house, key="busy")
    seldom, _ = await reader(house, key="seldom")
    cursor = seldom.position()
    seldom.lost()
    await publish(house, *[b"x" * 500] * 50, key="busy")
    await until(lambda: read.written.count(b'"id"') == 50)
    await publish(house, b"kept" * 100, key="seldom")
    await until(lambda: seldom.position() != cursor)
    await publish(house, *[b"x" * 500] * 50, key="busy")
    await until(lambda: read.written.count(b'"id"') == 100)
    _, again = await reader(house, key="seldom", cursor=cursor)
    assert b"gap" not in again.written
    assert b"keptkept" in again.written
    busy.lost()


async def test_kept_messages_are_encoded_once_for_all(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded: list[int] = []
    plain = MessageEncoder.encode

    def encode(self: MessageEncoder, messages: Sequence[Numbered], cursors: Sequence[str]) -> Any:
        encoded.append(len(messages))
        return plain(self, messages, cursors)

    monkeypatch.setattr(MessageEncoder, "encode", encode)
    kept = Resource("/", "x", "kept")
    spec = ExchangeSpec("kept", "topic", arguments={"x-persist-messages": 10})
    await house.engine.declare_exchange("/", spec)
    connections = [Connection() for _ in range(5)]
    for number, connection in enumerate(connections):
        keys = ("b",) if number == 4 else ("a", "b")
        opened = await house.hub.live.open(kept, keys, JSON_ITEMS, AlwaysPermitted())
        opened.begin(connection)
    for key in ("a", "b"):
        await house.engine.publish(None, "/", "kept", key, Properties(), key.encode())
    for connection in connections:
        await until(partial(connection.written_has, b'"body":"b"'))
    got = [one.written.count(b'"body":"a"') for one in connections]
    assert got == [1, 1, 1, 1, 0]
    assert sum(encoded) == 3


async def test_a_server_that_stops_takes_no_reader(house: House) -> None:
    late = await house.hub.live.open(NEWS, ("#",), JSON_ITEMS, AlwaysPermitted())
    house.hub.live.stop()
    connection = Connection()
    late.begin(connection)
    assert connection.is_closed
    assert b'"status":503' in connection.written
