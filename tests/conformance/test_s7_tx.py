"""amqp.md section 7: transactions (class 90).

RabbitMQ puts the messages of a commit into their queues before it says commit-ok, and what a
passive declare or a get finds behind it is the whole transaction.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.process import wait_until

from .raw import TIMEOUT_S, Channel, Client

pytestmark = pytest.mark.promise


@pytest.fixture
def tx(client: Client) -> Channel:
    channel = client.channel()
    channel.call("Tx.Select")
    return channel


def commit(channel: Channel) -> None:
    channel.call("Tx.Commit")


def rollback(channel: Channel) -> None:
    channel.call("Tx.Rollback")


def nothing_comes(channel: Channel) -> None:
    """What the channel was sent before stands in front of this answer."""
    channel.call("Basic.Qos")


def come_back(channel: Channel, queue: str, count: int) -> None:
    """RabbitMQ gives back what was outstanding some time after the channel's end."""
    wait_until(lambda: channel.ready(queue) == count, TIMEOUT_S, f"{count} messages in {queue}")


# -- modes


def test_each_commit_begins_another_transaction(tx: Channel, other: Channel, name: str) -> None:
    """A second select changes nothing; a transaction may be empty; rolled back is forgotten."""
    other.declare(name)
    for number in range(3):
        tx.publish(b"%d" % number, routing_key=name)
        tx.call("Tx.Select")
        assert other.ready(name) == 0
        commit(tx)
        assert other.drain(name) == [b"%d" % number]
        tx.publish(b"no", routing_key=name)
        tx.publish(b"no", routing_key=f"{name}.no", mandatory=True)
        rollback(tx)
        rollback(tx)
        commit(tx)


def test_modes_exclude_each_other(client: Client) -> None:
    for number, methods in enumerate((("Tx.Select", "Confirm.Select"),
                                      ("Confirm.Select", "Tx.Select")), 1):  # fmt: skip
        channel = client.channel(number)
        channel.call(methods[0])
        channel.send(methods[1])
        modes = [method.split(".")[0].lower() for method in methods]
        text = f"PRECONDITION_FAILED - cannot switch from {modes[0]} to {modes[1]} mode"
        channel.refused(406, text, methods[1])


def test_a_mode_belongs_to_its_channel(tx: Channel, name: str) -> None:
    plain = tx.client.channel(2)
    plain.declare(name)
    plain.put(name, b"at once")
    tx.publish(b"later", routing_key=name)
    nothing_comes(tx)
    assert plain.drain(name) == [b"at once"]
    tx.close()
    tx.open()
    tx.put(name, b"a new channel")
    tx.send("Tx.Commit")
    tx.refused(406)


@pytest.mark.parametrize("method", ["Tx.Commit", "Tx.Rollback"])
def test_commit_and_rollback_without_select_are_refused(channel: Channel, method: str) -> None:
    channel.send(method)
    channel.refused(406, "PRECONDITION_FAILED - channel is not transactional", method)


# -- publishes


@pytest.mark.parametrize("delivery_mode", [1, 2])
@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("size", [0, 16, 300_000])
def test_nothing_is_enqueued_before_the_commit(
    tx: Channel, other: Channel, name: str, delivery_mode: int, durable: bool, size: int
) -> None:
    other.declare(name, durable=durable)
    bodies = [(b"%d" % number).ljust(size, b"x") for number in range(5)]
    for body in bodies:
        tx.publish(body, {"delivery_mode": delivery_mode}, routing_key=name)
    nothing_comes(tx)
    assert other.ready(name) == 0
    commit(tx)
    assert other.drain(name) == bodies
    other.call("Queue.Delete", queue=name)


@pytest.mark.parametrize("end", ["channel", "connection", "socket"])
def test_closing_rolls_back(tx: Channel, other: Channel, name: str, end: str) -> None:
    other.declare(name)
    other.put(name, b"outstanding")
    tx.taken(name, no_ack=False)
    tx.publish(b"no", routing_key=name)
    tx.send("Basic.Ack", delivery_tag=1)
    if end == "channel":
        tx.close()
    elif end == "connection":
        tx.client.close()
    else:
        nothing_comes(tx)
        tx.client.socket.close()
    come_back(other, name, 1)
    back = other.taken(name)
    assert (back.body, back.method.redelivered) == (b"outstanding", True)
    assert other.get(name) is None


# -- routes


def test_messages_are_routed_when_published(tx: Channel, other: Channel, name: str) -> None:
    """Bindings that change before the commit come too late."""
    binding: dict[str, Any] = {"exchange": "amq.direct", "routing_key": name}
    for queue in (f"{name}.1", f"{name}.2"):
        other.declare(queue)
    other.call("Queue.Bind", queue=f"{name}.1", **binding)
    tx.publish(b"a", **binding)
    nothing_comes(tx)
    other.call("Queue.Unbind", queue=f"{name}.1", **binding)
    other.call("Queue.Bind", queue=f"{name}.2", **binding)
    commit(tx)
    assert (other.drain(f"{name}.1"), other.drain(f"{name}.2")) == ([b"a"], [])


@pytest.mark.parametrize("again", [False, True])
def test_queue_is_deleted_before_the_commit(
    tx: Channel, other: Channel, name: str, again: bool
) -> None:
    other.call("Exchange.Declare", exchange=name, exchange_type="fanout")
    queues = [f"{name}.1", f"{name}.2"]
    for queue in queues:
        other.declare(queue)
        other.call("Queue.Bind", queue=queue, exchange=name)
    for body in (b"a", b"b"):
        tx.publish(body, exchange=name)
    nothing_comes(tx)
    other.call("Queue.Delete", queue=queues[0])
    if again:
        other.declare(queues[0])
    tx.publish(b"c", routing_key=queues[1])
    commit(tx)
    assert other.drain(queues[1]) == [b"a", b"b", b"c"]
    if again:
        assert other.drain(queues[0]) == [b"a", b"b"]


def test_mandatory_is_returned_by_the_commit(tx: Channel, other: Channel, name: str) -> None:
    """Also if its queue was deleted meanwhile."""
    gone = f"{name}.gone"
    for queue in (name, gone):
        other.declare(queue)
    keys = (name, gone, name, f"{name}.no", gone)
    for key in keys:
        tx.publish(key.encode(), {"message_id": key}, routing_key=key, mandatory=True)
        tx.publish(b"not returned", routing_key=f"{name}.no")
    nothing_comes(tx)
    other.call("Queue.Delete", queue=gone)
    tx.send("Tx.Commit")
    for key in keys:
        if key != name:
            returned = tx.content("Basic.Return")
            assert (returned.method.reply_code, returned.body) == (312, key.encode())
            assert returned.properties.message_id == key
    tx.expect("Tx.CommitOk")
    assert other.ready(name) == 2


@pytest.mark.differs("refuses immediate with 540")
def test_immediate_is_decided_by_the_commit(tx: Channel, other: Channel, name: str) -> None:
    other.declare(name)
    tx.publish(b"to the consumer", routing_key=name, immediate=True)
    nothing_comes(tx)
    tag = other.consume(name, no_ack=True)
    commit(tx)
    assert other.content().body == b"to the consumer"
    other.call("Basic.Cancel", consumer_tag=tag)
    tx.publish(b"to nobody", routing_key=name, immediate=True)
    tx.send("Tx.Commit")
    assert tx.content("Basic.Return").method.reply_code == 313
    tx.expect("Tx.CommitOk")


@pytest.mark.parametrize(
    ("code", "exchange", "properties"),
    [
        (404, "absent", {}),
        (406, "", {"expiration": "soon"}),
        (406, "", {"user_id": "somebody"}),
    ],
)
def test_errors_are_raised_when_published(
    tx: Channel, other: Channel, name: str, code: int, exchange: str,
    properties: dict[str, object],
) -> None:  # fmt: skip
    other.declare(name)
    tx.publish(b"good", routing_key=name)
    tx.publish(b"bad", properties, exchange=exchange, routing_key=name)
    tx.refused(code, culprit="Basic.Publish")
    assert other.ready(name) == 0


@pytest.mark.parametrize("overflow", ["reject-publish", "reject-publish-dlx"])
def test_rejected_publish_makes_a_partial_commit(
    tx: Channel, other: Channel, name: str, overflow: str
) -> None:
    """All the rest of the transaction counts."""
    full = f"{name}.full"
    other.declare(full, arguments={"x-max-length": 1, "x-overflow": overflow})
    other.declare(name)
    other.put(name, b"acked")
    tx.taken(name, no_ack=False)
    for key in (full, name, full, name):
        tx.publish(key.encode(), routing_key=key)
    tx.send("Basic.Ack", delivery_tag=1)
    tx.send("Tx.Commit")
    tx.refused(406, "PRECONDITION_FAILED - partial tx completion", "Tx.Commit")
    assert other.drain(name) == [name.encode()] * 2
    assert other.drain(full) == [full.encode()]


# -- acks


def test_acks_take_effect_at_the_commit(tx: Channel, other: Channel, name: str) -> None:
    """A rollback leaves the tags unacknowledged."""
    other.filled(name, 4)
    for _ in range(4):
        tx.taken(name, no_ack=False)
    for _ in range(3):
        tx.send("Basic.Ack", delivery_tag=2)
        tx.send("Basic.Reject", delivery_tag=3)
        rollback(tx)
    assert other.ready(name) == 0
    tx.send("Basic.Ack", delivery_tag=3, multiple=True)
    commit(tx)
    tx.close()
    come_back(other, name, 1)
    assert other.drain(name) == [b"3"]


@pytest.mark.parametrize("method", ["Basic.Ack", "Basic.Nack", "Basic.Reject"])
def test_settling_twice_is_refused(tx: Channel, other: Channel, name: str, method: str) -> None:
    other.filled(name, 1)
    tx.taken(name, no_ack=False)
    tx.send("Basic.Ack", delivery_tag=1)
    tx.send(method, delivery_tag=1)
    tx.refused(406, "PRECONDITION_FAILED - unknown delivery tag 1", method)
    come_back(other, name, 1)
    tx.open()
    tx.call("Tx.Select")
    tx.taken(name, no_ack=False)
    tx.send("Basic.Ack", delivery_tag=1)
    commit(tx)
    tx.send(method, delivery_tag=1)
    tx.refused(406, "PRECONDITION_FAILED - unknown delivery tag 1", method)


@pytest.mark.parametrize("requeue", [False, True])
def test_rejects_take_effect_at_the_commit(
    tx: Channel, other: Channel, name: str, requeue: bool
) -> None:
    other.declare(f"{name}.dead")
    dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": f"{name}.dead"}
    other.declare(name, arguments=dead)
    other.put(name, b"a", b"b")
    for _ in range(2):
        tx.taken(name, no_ack=False)
    tx.send("Basic.Nack", delivery_tag=1, requeue=requeue)
    tx.send("Basic.Reject", delivery_tag=2, requeue=requeue)
    nothing_comes(tx)
    assert (other.ready(name), other.ready(f"{name}.dead")) == (0, 0)
    commit(tx)
    target = name if requeue else f"{name}.dead"
    come_back(other, target, 2)
    assert other.drain(target) == [b"a", b"b"]


def test_consume_publish_ack_commit_moves_messages(tx: Channel, other: Channel, name: str) -> None:
    """Consume, publish, ack, commit: the pattern that transactions are for."""
    bodies = other.filled(name, 10)
    other.declare(f"{name}.done")
    tx.consume(name)
    for number, body in enumerate(bodies, 1):
        assert tx.content().body == body
        tx.publish(body, routing_key=f"{name}.done")
        tx.send("Basic.Ack", delivery_tag=number)
    nothing_comes(tx)
    assert other.ready(f"{name}.done") == 0
    commit(tx)
    tx.client.close()
    assert other.drain(f"{name}.done") == bodies
    assert other.ready(name) == 0


@pytest.mark.differs("closes the connection with 504 when a method comes before commit-ok")
def test_replies_follow_the_commit_in_order(tx: Channel, name: str) -> None:
    """A client that does not wait gets its answers in the order of its methods."""
    tx.declare(name, durable=True)
    for _ in range(3):
        tx.publish(b"a", {"delivery_mode": 2}, routing_key=name)
        tx.send("Tx.Commit")
        tx.send("Tx.Rollback")
        tx.send("Basic.Qos")
    for _ in range(3):
        for answer in ("Tx.CommitOk", "Tx.RollbackOk", "Basic.QosOk"):
            tx.expect(answer)
    tx.call("Queue.Delete", queue=name)
