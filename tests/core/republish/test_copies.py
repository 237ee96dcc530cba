"""Copies handed over together: what a queue gets is what was added, in its order."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.support.amqp import Client, make_broker
from warrenmq.core.message.batch import envelope
from warrenmq.core.message.model import Properties
from warrenmq.core.queue.queue import Queue
from warrenmq.core.republish.copies import Copy, CopyBatcher
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
def test_each_queue_gets_its_own_in_order(
    row: list[tuple[set[str], bytes, int, str | None, bool]], flushes: set[int]
) -> None:
    client = Client(make_broker())
    for name in QUEUES:
        limited = {"x-max-length": 1_000, "x-overflow": "reject-publish"}
        client.declare(name, arguments=limited if name == "refusing" else {})
    named: dict[str, Queue] = client.broker.vhosts["/"].queues
    copies = CopyBatcher(client.broker)
    for number, (names, body, priority, expiration, blind) in enumerate(row):
        properties = Properties(message_id=str(number), priority=priority, expiration=expiration)
        raw = wire.encode(properties)
        attributes = wire.intern_attributes(False, priority, expiration, False)
        queues = tuple(named[name] for name in sorted(names))
        bcc_keys = ("blind",) if blind else ()
        copies.add(Copy(envelope("x", "k"), raw, body, attributes, bcc_keys, queues))
        if number in flushes:
            copies.flush()
    copies.flush()
    for name in QUEUES:
        expected = [
            (str(number), body, priority, expiration)
            for number, (names, body, priority, expiration, _) in enumerate(row)
            if name in names
        ]
        assert _taken(client, name) == expected


def _taken(client: Client, queue: str) -> list[tuple[Any, ...]]:
    found = []
    while (reply := client.call("Basic.Get", queue=queue, no_ack=True)).name == "Basic.GetOk":
        assert (reply["exchange"], reply["routing_key"]) == ("x", "k")
        given = reply.properties
        assert given is not None
        found.append((given.message_id, reply.body, given.priority, given.expiration))
    return found
