"""Showing messages of a queue without changing it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.core.life import TRANSIENT, Life, numbered, segments_of
from warrenmq.core.local.peek import PeekedMessage, peek
from warrenmq.core.message.queue_entry import MessageRange
from warrenmq.core.store import read_size

pytestmark = segments_of(8 * 1024)


def look(
    life: Life, start: int, count: int, queue: str = "q", max_bytes: int = 2**20
) -> list[PeekedMessage]:
    found: list[list[PeekedMessage]] = []
    peek(life.broker, life.queue(queue), start, count, max_bytes, found.append)
    for _ in range(100):
        if found:
            break
        life.turns(1)
    (messages,) = found
    return messages


def shown(life: Life, start: int, count: int, queue: str = "q") -> list[tuple[int, bytes]]:
    return [(one.position, one.message.body) for one in look(life, start, count, queue)]


def expected(*positions: int, offset: int = 0) -> list[tuple[int, bytes]]:
    return [(at, b"%06d" % (at + offset)) for at in positions]


def resident(life: Life) -> list[tuple[int, bool]]:
    """Count and residence of each range."""
    return [
        (part.count, isinstance(part, MessageRange) and part.entry.batch.resident)
        for part in life.classic("q").backlog
    ]


def fill(life: Life, count: int, first: int = 0) -> None:
    life.publish_together(numbered(count // 2, first))
    for body in numbered(count - count // 2, first + count // 2):
        life.publish(body)
    life.write()


def places(life: Life) -> Iterator[str]:
    """The queue with its messages in memory, evicted, paged out, half of them, and recovered."""
    yield "in memory"
    for part in life.classic("q").backlog:
        if isinstance(part, MessageRange):
            life.store.batches.evict(part.entry.batch)
    yield "evicted"
    life.page_out()
    yield "paged out"
    fill(life, 10, first=40)
    yield "half of it paged out"
    life.restart()
    yield "recovered"


def test_peek_is_the_same_wherever_messages_are(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_size, "CHUNK_RECORDS", 7)
    fill(life, 40)
    for place in places(life):
        before, last = resident(life), life.queue("q").ready_count - 1
        assert shown(life, 0, 3) == expected(0, 1, 2), place
        assert shown(life, 18, 4) == expected(18, 19, 20, 21), place
        assert shown(life, -3, 3) == expected(last - 2, last - 1, last), place
        assert shown(life, last, 5) == expected(last), place
        assert shown(life, 0, 100) == expected(*range(last + 1)), place
        assert resident(life) == before, place
    assert life.drain() == [(body, False) for body in numbered(50)]


def test_settled_messages_between_others_are_not_shown(life: Life) -> None:
    """A start finds them in one range with the others."""
    fill(life, 20)
    client = life.connect()
    client.consume("q", "tag")
    for tag in (3, 4, 13, 15):
        client.send("Basic.Ack", delivery_tag=tag)
    life.write()
    life.restart()
    left = [number for number in range(20) if number not in (2, 3, 12, 14)]
    for start, count in ((0, 100), (0, 3), (2, 2), (9, 3), (-4, 4)):
        numbers = left[start:][:count]
        assert [body for _, body in shown(life, start, count)] == [b"%06d" % at for at in numbers]
    assert all(one.message.redelivered for one in look(life, 0, 10))


def test_the_highest_priority_is_first(life: Life) -> None:
    life.declare("p", arguments={"x-max-priority": 5})
    for number, priority in enumerate((1, 3, 2)):
        life.publish(b"%06d" % number, "p", properties={"priority": priority})
    assert [body for _, body in shown(life, 0, 2, "p")] == [b"000001", b"000002"]


def test_peek_is_bounded_in_bytes(life: Life) -> None:
    life.publish_together(numbered(10))
    assert len(look(life, 0, 10, max_bytes=13)) == 3


def test_transient_messages_are_shown(life: Life) -> None:
    life.publish_together(numbered(4), properties=TRANSIENT)
    assert shown(life, 1, 2) == expected(1, 2)


def test_streams_are_read_by_offset(life: Life) -> None:
    life.declare("p", arguments={"x-queue-type": "stream"})
    life.publish_together(numbered(20), "p")
    life.write()
    for _ in range(2):
        assert shown(life, 0, 2, "p") == expected(0, 1)
        assert shown(life, 15, 2, "p") == expected(15, 16)
        assert shown(life, -2, 2, "p") == expected(18, 19)
        assert shown(life, 25, 2, "p") == []
        life.restart()
