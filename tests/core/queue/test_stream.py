"""Streams over a durable store: what readers get, from where, and after restarts."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.core.life import PERSISTENT, TRANSIENT, Life, numbered
from tests.core.queue.reading import Reading, declare, fill, stream
from tests.support.amqp import publish
from warrenmq.core.message.batch import PagedOut


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    life = Life(tmp_path / "log")
    declare(life)
    yield life
    life.abandon()


def test_each_reader_gets_everything_with_its_offset(life: Life) -> None:
    fill(life, numbered(5))
    for _ in range(2):
        reading = Reading(life, "first")
        assert reading.bodies() == numbered(5)
        assert reading.offsets() == [0, 1, 2, 3, 4]
        assert not any(reply["redelivered"] for reply in reading.more())
    assert life.queue("s").ready_count == 5


@pytest.mark.parametrize(
    ("start", "offsets"),
    [
        ("first", [0, 1, 2, 3, 4]),
        ("last", [4]),
        ("next", []),
        (None, []),
        (0, [0, 1, 2, 3, 4]),
        (3, [3, 4]),
        (99, []),
        (-2, [3, 4]),
        (-99, [0, 1, 2, 3, 4]),
    ],
)
@pytest.mark.parametrize("again", [False, True])
def test_where_a_reader_begins(life: Life, start: object, offsets: list[int], again: bool) -> None:
    fill(life, numbered(5))
    if again:
        life.restart()
    reading = Reading(life, start)
    assert reading.offsets() == offsets
    fill(life, numbered(1, 5))
    last = [] if start == 99 else [5]
    assert reading.offsets() == offsets + last


def test_a_start_ahead_of_the_end_waits_for_it(life: Life) -> None:
    reading = Reading(life, 2)
    fill(life, numbered(4))
    assert reading.offsets() == [2, 3]


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


@pytest.mark.parametrize(
    "value", ["", "soon", "1d", "-1h", 1.5, True, [1], {"a": 1}, b"\xff\xfe", None]
)
def test_what_is_no_place_in_a_stream(life: Life, value: object) -> None:
    life.client.call("Basic.Qos", prefetch_count=1)
    reply = life.client.call("Basic.Consume", queue="s", arguments={"x-stream-offset": value})
    assert (reply.name, reply["reply_code"]) == ("Channel.Close", 406)
    assert "x-stream-offset" in reply["reply_text"]


def test_a_prefetch_is_needed(life: Life) -> None:
    reply = life.client.call("Basic.Consume", queue="s")
    assert (reply.name, reply["reply_code"]) == ("Channel.Close", 406)
    assert "consumer prefetch count is not set for stream queue 's'" in reply["reply_text"]


@pytest.mark.parametrize(
    ("method", "fields"),
    [
        ("Basic.Get", {}),
        ("Queue.Purge", {}),
        ("Basic.Consume", {"no_ack": True}),
    ],
)
def test_what_streams_do_not_have_ends_the_connection(
    life: Life, method: str, fields: dict[str, Any]
) -> None:
    life.client.call("Basic.Qos", prefetch_count=1)
    reply = life.client.call(method, queue="s", **fields)
    assert (reply.name, reply["reply_code"]) == ("Connection.Close", 540)


def test_an_ack_is_credit(life: Life) -> None:
    fill(life, numbered(5))
    reading = Reading(life, "first", prefetch=2)
    assert reading.offsets() == [0, 1]
    reading.ack()
    assert reading.offsets() == [0, 1, 2, 3]
    assert life.queue("s").ready_count == 5


@pytest.mark.parametrize("method", ["Basic.Reject", "Basic.Nack"])
def test_what_is_refused_does_not_come_again(life: Life, method: str) -> None:
    fill(life, numbered(3))
    reading = Reading(life, "first", prefetch=1)
    reading.more()
    reading.seen += reading.client.send(method, delivery_tag=1, requeue=True)
    assert reading.offsets() == [0, 1]
    assert life.queue("s").unacked_count == 1


def test_readers_at_their_own_pace(life: Life) -> None:
    slow, quick = Reading(life, "first", prefetch=1), Reading(life, "first")
    fill(life, numbered(4))
    assert quick.offsets() == [0, 1, 2, 3]
    assert slow.offsets() == [0]
    slow.ack()
    assert slow.offsets() == [0, 1]


def test_transient_messages_are_kept(life: Life) -> None:
    fill(life, numbered(3), properties=TRANSIENT)
    life.crash()
    assert Reading(life, "first").bodies() == numbered(3)


def test_offsets_go_on_after_a_crash(life: Life) -> None:
    fill(life, numbered(3))
    life.crash()
    fill(life, numbered(2, 3))
    reading = Reading(life, "first")
    assert reading.bodies() == numbered(5)
    assert reading.offsets() == [0, 1, 2, 3, 4]


def test_a_confirm_waits_for_the_disk_also_for_transient_ones(life: Life) -> None:
    life.confirm()
    life.start()
    life.client.publish(b"one", {}, routing_key="s")
    assert not [reply for reply in life.client.come() if reply.name == "Basic.Ack"]
    life.wait(lambda: any(reply.name == "Basic.Ack" for reply in life.client.come()))


def test_readers_see_only_what_is_on_disk(life: Life) -> None:
    life.start()
    reading = Reading(life, "first")
    life.client.publish(b"one", PERSISTENT, routing_key="s")
    assert stream(life).log.committed == 0
    assert not [reply for reply in reading.client.come() if reply.name == "Basic.Deliver"]
    life.wait(lambda: stream(life).log.committed == 1)
    life.wait(lambda: any(reply.name == "Basic.Deliver" for reply in reading.client.come()))


def test_paged_out_messages_are_read_where_they_are(life: Life) -> None:
    fill(life, numbered(300))
    life.write()
    life.page_out("s")
    pieces = [piece.content for piece in stream(life).log._chunks]
    assert any(isinstance(held, PagedOut) and held.count > 200 for held in pieces)
    fill(life, numbered(10, 300))
    for start in (0, 7, 299, 305):
        reading = Reading(life, start)
        assert reading.bodies() == numbered(310)[start:]
        assert reading.offsets() == list(range(start, 310))
    assert stream(life).ready_count == 310


def test_batches_and_single_ones_over_restart_and_paging(life: Life) -> None:
    life.client.feed(
        b"".join(publish(1, body, PERSISTENT, routing_key="s") for body in numbered(500))
    )
    life.write()
    life.page_out("s", 400)
    life.crash()
    fill(life, numbered(3, 500))
    reading = Reading(life, 123)
    assert reading.bodies() == numbered(503)[123:]


FILTERED = [b"a0", b"b1", b"-2", b"a3", b"b4", b"-5"]


def publish_filtered(life: Life) -> None:
    for body in FILTERED:
        value = body[:1].decode()
        headers = {} if value == "-" else {"x-stream-filter-value": value}
        life.publish(body, "s", {**PERSISTENT, "headers": headers})


@pytest.mark.parametrize(
    ("wanted", "unfiltered", "bodies"),
    [
        ("a", False, [b"a0", b"a3"]),
        (["a", "b"], False, [b"a0", b"b1", b"a3", b"b4"]),
        ("b", True, [b"b1", b"-2", b"b4", b"-5"]),
        ("c", False, []),
    ],
)
@pytest.mark.parametrize("again", [False, True])
def test_filters(
    life: Life, wanted: object, unfiltered: bool, bodies: list[bytes], again: bool
) -> None:
    publish_filtered(life)
    if again:
        life.crash()
    arguments = {"x-stream-filter": wanted, "x-stream-match-unfiltered": unfiltered}
    reading = Reading(life, "first", prefetch=1, **arguments)
    for _ in bodies:
        reading.ack()
    assert reading.bodies() == bodies
    assert reading.offsets() == [FILTERED.index(body) for body in bodies]


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("x-stream-filter", 5),
        ("x-stream-filter", []),
        ("x-stream-filter", ["a", 5]),
        ("x-stream-match-unfiltered", "yes"),
    ],
)
def test_bad_filters_are_refused(life: Life, argument: str, value: object) -> None:
    life.client.call("Basic.Qos", prefetch_count=1)
    reply = life.client.call("Basic.Consume", queue="s", arguments={argument: value})
    assert (reply.name, reply["reply_code"]) == ("Channel.Close", 406)
    assert argument in reply["reply_text"]


def test_a_header_of_the_publisher_gives_way(life: Life) -> None:
    life.publish(b"one", "s", {**PERSISTENT, "headers": {"x-stream-offset": "mine", "k": 1}})
    (reply,) = Reading(life, "first").more()
    assert reply.headers == {"k": 1, "x-stream-offset": 0}


def test_the_length_in_bytes_drops_the_oldest(tmp_path: Path) -> None:
    life = Life(tmp_path / "log")
    declare(life, max_length_bytes=2_000)
    fill(life, numbered(100))
    log = stream(life).log
    assert 1_000 < log.size_bytes <= 2_000
    first = log.first
    assert first > 50
    assert Reading(life, "first").offsets() == list(range(first, 100))
    life.crash()
    assert stream(life).log.first == first
    assert Reading(life, "first").bodies() == numbered(100)[first:]
    assert Reading(life, 0).offsets()[0] == first
    life.abandon()


@pytest.mark.parametrize("again", [False, True])
def test_the_age_drops_the_oldest(tmp_path: Path, again: bool) -> None:
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


def test_a_reader_of_what_was_dropped_goes_on_with_what_is_left(tmp_path: Path) -> None:
    life = Life(tmp_path / "log")
    declare(life, max_length_bytes=2_000)
    fill(life, numbered(10))
    reading = Reading(life, "first", prefetch=1)
    reading.more()
    fill(life, numbered(100, 10))
    reading.ack()
    assert reading.offsets() == [0, stream(life).log.first]
    life.abandon()


def test_nothing_of_a_deleted_stream_is_left(life: Life) -> None:
    fill(life, numbered(3))
    life.client.call("Queue.Delete", queue="s")
    declare(life)
    assert Reading(life, "first").offsets() == []
    assert life.broker.always_kept == 1
    life.write()
    life.crash()
    assert Reading(life, "first").offsets() == []


def test_a_reader_hears_of_the_end_of_its_stream(life: Life) -> None:
    reading = Reading(life, "first")
    life.client.call("Queue.Delete", queue="s")
    assert [reply.name for reply in reading.client.come()] == ["Basic.Cancel"]


def test_compaction_leaves_offsets_alone(tmp_path: Path) -> None:
    """A stream beside a queue whose messages are done with: the rest of their segments moves."""
    life = Life(tmp_path / "log", segment_bytes=65_536)
    declare(life)
    life.declare("q")
    for number in range(400):
        life.client.publish(b"%06d" % number * 40, PERSISTENT, routing_key="q")
        if number % 10 == 0:
            life.client.publish(b"%06d" % number, PERSISTENT, routing_key="s")
        life.turns(1, each_ms=5)
    life.write()
    life.page_out("s")
    life.drain("q")
    for _ in range(40):
        life.write()
    expected = [b"%06d" % number for number in range(0, 400, 10)]
    assert Reading(life, "first").bodies() == expected
    life.crash()
    reading = Reading(life, "first")
    assert reading.bodies() == expected
    assert reading.offsets() == list(range(40))
    life.abandon()
