"""Many messages at once from inside the process."""

from __future__ import annotations

import pytest

from tests.support.users import guest_users
from warrenmq.core.broker import Broker
from warrenmq.core.message.model import Message, Properties, Table
from warrenmq.core.publish.local import LocalSession
from warrenmq.core.publish.local_batch import BATCH_BYTES, MAX_FRAMED_BYTES, LocalBatch, portions

PROPERTIES = Properties(content_type="text/plain", delivery_mode=2, headers={"a": "b"})
LONG = b"l" * (MAX_FRAMED_BYTES + 1)


def run(broker: Broker, bodies: list[bytes], queue: str | None = None) -> LocalBatch:
    host = broker.vhosts["/"]
    batch = LocalBatch(broker, host, broker.users.existing("guest"))
    found = None if queue is None else host.queues[queue]
    return batch.run_all("" if queue else "amq.fanout", "key", PROPERTIES, bodies, found)


def messages(broker: Broker, queue: str) -> list[Message]:
    found: list[Message] = []
    session = LocalSession(
        broker,
        broker.vhosts["/"].queues[queue],
        prefetch=0,
        on_delivery=lambda delivery: found.append(delivery.message),
        on_cancel=lambda: None,
    )
    while broker.turn():
        pass
    session.close()
    return found


@pytest.fixture
def broker() -> Broker:
    broker = Broker(guest_users())
    host = broker.vhosts["/"]
    for name in ("in", "also"):
        queue = host.declare_queue(name)
        host.bind(host.exchanges["amq.fanout"], queue, "", {})
    return broker


BATCHES = {
    "one": [b"1"],
    "empty bodies": [b"", b"1", b""],
    "long ones": [b"1", LONG, LONG, b"2", b"3", LONG],
    "several blocks": [bytes([65 + place]) * (BATCH_BYTES // 3) for place in range(10)],
    "many": [str(place).encode() for place in range(5_000)],
}


@pytest.mark.parametrize("name", BATCHES)
@pytest.mark.parametrize("queue", [None, "in"])
def test_all_arrive_in_order_as_they_were(broker: Broker, name: str, queue: str | None) -> None:
    done = run(broker, BATCHES[name], queue)
    assert (done.unrouted_count, done.rejected_count) == (0, 0)
    found = messages(broker, "in")
    assert [one.body for one in found] == BATCHES[name]
    assert {(one.exchange, one.routing_key) for one in found} == {
        ("" if queue else "amq.fanout", "key")
    }
    assert all(one.properties == PROPERTIES for one in found)
    assert len(messages(broker, "also")) == (0 if queue else len(BATCHES[name]))


def test_portions_are_bounded_and_leave_nothing_out() -> None:
    for bodies in BATCHES.values():
        cut = list(portions(bodies))
        assert [body for part in cut for body in part] == bodies
        assert all(len(part) == 1 or sum(map(len, part)) <= BATCH_BYTES for part in cut)


def test_a_commit_covers_all(broker: Broker) -> None:
    done = run(broker, BATCHES["long ones"])
    assert done.commit >= broker.store.barrier() - 1


def test_nobody_wants_them() -> None:
    broker = Broker(guest_users())
    done = run(broker, [b"1", b"2"])
    assert (done.unrouted_count, done.rejected_count) == (2, 0)


def test_a_queue_that_refuses_takes_what_it_may(broker: Broker) -> None:
    arguments: Table = {"x-max-length": 2, "x-overflow": "reject-publish"}
    broker.vhosts["/"].declare_queue("small", arguments=arguments)
    done = run(broker, [b"1", b"2", b"3"], "small")
    assert (done.unrouted_count, done.rejected_count) == (0, 1)
    assert [one.body for one in messages(broker, "small")] == [b"1", b"2"]
