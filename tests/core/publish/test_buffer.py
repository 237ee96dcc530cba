"""Messages published together: each queue gets its own, in order."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.support.amqp import Client, make_broker
from warrenmq.core.message.envelope import envelope
from warrenmq.core.message.model import Properties
from warrenmq.core.publish.buffer import PublishBuffer
from warrenmq.core.queue.queue import Queue
from warrenmq.core.republish.republished_message import RepublishedMessage
from warrenmq.core.wire import properties as wire

QUEUES = ("a", "b", "refusing", "blind")
COPIES = st.lists(
    st.tuples(
        st.sets(st.sampled_from(QUEUES[:3]), min_size=1),
        st.sampled_from([b"", b"small", bytes(70_000), bytes(30_000)]),
        st.sampled_from([0, 5]),
        st.sampled_from([None, "60000"]),
        st.booleans(),
    ),
    max_size=30,
)


@given(COPIES, st.sets(st.integers(0, 30)))
def test_each_queue_gets_its_messages_in_order(
    row: list[tuple[set[str], bytes, int, str | None, bool]], flushes: set[int]
) -> None:
    client = Client(make_broker())
    for name in QUEUES:
        limited = {"x-max-length": 1_000, "x-overflow": "reject-publish"}
        client.declare(name, arguments=limited if name == "refusing" else {})
    named: dict[str, Queue] = client.broker.vhosts["/"].queues
    buffer = PublishBuffer(client.broker)
    for number, (names, body, priority, expiration, blind) in enumerate(row):
        properties = Properties(message_id=str(number), priority=priority, expiration=expiration)
        raw = wire.encode(properties)
        attributes = wire.intern_attributes(False, priority, expiration, False)
        queues = tuple(named[name] for name in sorted(names))
        bcc_keys = ("blind",) if blind else ()
        buffer.add(RepublishedMessage(envelope("x", "k"), raw, body, attributes, queues, bcc_keys))
        if number in flushes:
            buffer.publish_all()
    buffer.publish_all()
    for name in QUEUES:
        expected = [
            (str(number), body, priority, expiration)
            for number, (names, body, priority, expiration, _) in enumerate(row)
            if name in names
        ]
        assert _taken(client, name) == expected


def test_messages_of_different_attributes_are_different_batches() -> None:
    client = Client(make_broker())
    client.declare("a", arguments={"x-max-priority": 9})
    queues = (client.broker.vhosts["/"].queues["a"],)
    buffer = PublishBuffer(client.broker)
    for number, priority in enumerate((0, 0, 5, 5, 3, 0)):
        raw = wire.encode(Properties(message_id=str(number), priority=priority))
        attributes = wire.intern_attributes(False, priority, None, False)
        buffer.add(RepublishedMessage(envelope("x", "k"), raw, b"", attributes, queues))
    buffer.publish_all()
    assert [taken[0] for taken in _taken(client, "a")] == ["2", "3", "4", "0", "1", "5"]


def test_deleted_queues_get_no_copies() -> None:
    """Two messages with the same queue left are still in publish order."""
    client = Client(make_broker())
    for name in ("a", "gone", "other"):
        client.declare(name)
    named = client.broker.vhosts["/"].queues
    buffer = PublishBuffer(client.broker)
    sets = [("a", "gone"), ("a",), ("a", "gone"), ("gone",), ("a", "other")]
    for number, names in enumerate(sets):
        raw = wire.encode(Properties(message_id=str(number)))
        queues = tuple(named[name] for name in names)
        buffer.add(RepublishedMessage(envelope("x", "k"), raw, b"", wire.PLAIN, queues))
    large = tuple(named[name] for name in ("a", "gone"))
    buffer.add(RepublishedMessage(envelope("x", "k"), b"\0\0", bytes(70_000), wire.PLAIN, large))
    client.call("Queue.Delete", queue="gone")
    buffer.publish_all()
    assert [taken[0] for taken in _taken(client, "a")] == ["0", "1", "2", "4", None]
    assert [taken[0] for taken in _taken(client, "other")] == ["4"]


def _taken(client: Client, queue: str) -> list[tuple[Any, ...]]:
    found = []
    while (reply := client.call("Basic.Get", queue=queue, no_ack=True)).name == "Basic.GetOk":
        assert (reply["exchange"], reply["routing_key"]) == ("x", "k")
        given = reply.properties
        assert given is not None
        found.append((given.message_id, reply.body, given.priority, given.expiration))
    return found
