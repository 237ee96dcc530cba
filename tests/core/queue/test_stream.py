"""Streams over a durable store: offsets, confirms, and restarts."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.core.life import PERSISTENT, Life, numbered
from tests.core.queue.reading import Reading, declare, fill, stream
from warrenmq.core.message.queue_entry import PagedOut


@pytest.fixture
def life(life: Life) -> Life:
    declare(life)
    return life


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("form", ["timestamp", "interval"])
def test_a_start_by_time(life: Life, form: str, again: bool) -> None:
    for body in numbered(5):
        life.publish(body, "s")
        life.clock.advance(60_000)
    if again:
        life.restart()
    # Published 5, 4, 3, 2 and 1 minutes ago.
    start: object = "150s"
    if form == "timestamp":
        start = datetime.fromtimestamp(life.clock.wall_s() - 150, UTC)
    assert Reading(life, start).offsets() == [3, 4]
    assert Reading(life, "1h").offsets() == [0, 1, 2, 3, 4]
    assert Reading(life, "1s").offsets() == []


@pytest.mark.parametrize("method", ["Basic.Reject", "Basic.Nack"])
def test_rejected_messages_are_not_redelivered(life: Life, method: str) -> None:
    fill(life, numbered(3))
    reading = Reading(life, "first", prefetch=1)
    reading.more()
    reading.seen += reading.client.send(method, delivery_tag=1, requeue=True)
    assert reading.offsets() == [0, 1]
    assert life.queue("s").unacked_count == 1


def test_confirm_of_a_transient_message_waits_for_the_disk(life: Life) -> None:
    life.confirm()
    life.start()
    life.client.publish(b"one", {}, routing_key="s")
    assert not [reply for reply in life.client.come() if reply.name == "Basic.Ack"]
    life.wait(lambda: any(reply.name == "Basic.Ack" for reply in life.client.come()))


def test_readers_get_only_messages_on_disk(life: Life) -> None:
    life.start()
    reading = Reading(life, "first")
    life.client.publish(b"one", PERSISTENT, routing_key="s")
    assert stream(life).log.committed == 0
    assert not [reply for reply in reading.client.come() if reply.name == "Basic.Deliver"]
    life.wait(lambda: stream(life).log.committed == 1)
    life.wait(lambda: any(reply.name == "Basic.Deliver" for reply in reading.client.come()))


def test_paged_out_messages_are_read_without_paging_in(life: Life) -> None:
    fill(life, numbered(300))
    life.write()
    life.page_out("s")
    pieces = [piece.content for piece in stream(life).log.chunks]
    assert any(isinstance(messages, PagedOut) and messages.count > 200 for messages in pieces)
    fill(life, numbered(10, 300))
    for start in (0, 7, 299, 305):
        reading = Reading(life, start)
        assert reading.bodies() == numbered(310)[start:]
        assert reading.offsets() == list(range(start, 310))
    assert stream(life).ready_count == 310


@pytest.mark.parametrize("again", [False, True])
def test_age_limit_drops_the_oldest(tmp_path: Path, again: bool) -> None:
    life = Life(tmp_path / "log")
    declare(life, max_age="1m")
    for body in numbered(4):
        life.publish(body, "s")
        life.clock.advance(40_000)
    if again:
        life.restart()
    life.turns(30, each_ms=2_000)
    assert Reading(life, "first").offsets()[-1] == 3
    # What came last stays, and after a restart that is all that one segment holds.
    assert stream(life).log.first == (2 if again else 3)
    life.abandon()


def test_a_reader_skips_dropped_messages(tmp_path: Path) -> None:
    life = Life(tmp_path / "log")
    declare(life, max_length_bytes=2_000)
    fill(life, numbered(10))
    reading = Reading(life, "first", prefetch=1)
    reading.more()
    fill(life, numbered(100, 10))
    reading.ack()
    assert reading.offsets() == [0, stream(life).log.first]
    life.abandon()
