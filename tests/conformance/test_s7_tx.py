"""amqp.md section 7: transactions (class 90).

RabbitMQ puts the messages of a commit into their queues before it says commit-ok, and what a
passive declare or a get finds behind it is the whole transaction.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.process import wait_until

from . import frames
from .raw import TIMEOUT_S, Channel, Client


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


def deliveries_and_commit_ok(channel: Channel, count: int) -> list[bytes]:
    """Waits for both, in whatever order they come; gives the bodies."""
    bodies: list[bytes] = []
    committed = False
    while not committed or len(bodies) < count:
        method = channel.client.receive(channel.number)
        if isinstance(method, frames.method_type("Tx.CommitOk")):
            committed = True
        else:
            assert isinstance(method, frames.method_type("Basic.Deliver")), method
            bodies.append(channel.rest_of(method).body)
    return bodies


def come_back(channel: Channel, queue: str, count: int) -> None:
    """RabbitMQ gives back what was outstanding some time after the channel's end."""
    wait_until(lambda: channel.ready(queue) == count, TIMEOUT_S, f"{count} messages in {queue}")


# -- modes


def test_select_is_sticky(tx: Channel, other: Channel, name: str) -> None:
    other.declare(name)
    tx.publish(b"a", routing_key=name)
    tx.call("Tx.Select")
    assert other.ready(name) == 0
    commit(tx)
    assert other.ready(name) == 1


def test_a_transaction_follows_the_other(tx: Channel, other: Channel, name: str) -> None:
    other.declare(name)
    for number in range(3):
        tx.publish(b"%d" % number, routing_key=name)
        commit(tx)
        assert other.drain(name) == [b"%d" % number]


@pytest.mark.parametrize("method", ["Tx.Commit", "Tx.Rollback"])
def test_without_select(channel: Channel, method: str) -> None:
    channel.send(method)
    channel.refused(406, "PRECONDITION_FAILED - channel is not transactional", method)


def test_confirms_in_a_transaction(tx: Channel) -> None:
    tx.send("Confirm.Select")
    text = "PRECONDITION_FAILED - cannot switch from tx to confirm mode"
    tx.refused(406, text, "Confirm.Select")


def test_transactions_with_confirms(channel: Channel) -> None:
    channel.call("Confirm.Select")
    channel.send("Tx.Select")
    text = "PRECONDITION_FAILED - cannot switch from confirm to tx mode"
    channel.refused(406, text, "Tx.Select")


def test_a_mode_is_of_its_channel(tx: Channel, name: str) -> None:
    plain = tx.client.channel(2)
    plain.declare(name)
    plain.put(name, b"at once")
    tx.publish(b"later", routing_key=name)
    nothing_comes(tx)
    assert plain.drain(name) == [b"at once"]


def test_a_new_channel_has_no_mode(tx: Channel, name: str) -> None:
    tx.close()
    tx.open()
    tx.declare(name)
    tx.put(name, b"at once")
    tx.send("Tx.Commit")
    tx.refused(406)


@pytest.mark.parametrize("method", ["Tx.Commit", "Tx.Rollback"])
def test_empty_transaction(tx: Channel, method: str) -> None:
    for _ in range(3):
        tx.call(method)


# -- publishes


@pytest.mark.parametrize("delivery_mode", [1, 2])
@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("size", [0, 16, 300_000])
def test_nothing_is_there_before_the_commit(
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


def test_rollback_forgets_publishes(tx: Channel, other: Channel, name: str) -> None:
    other.declare(name)
    tx.publish(b"no", routing_key=name)
    rollback(tx)
    tx.publish(b"yes", routing_key=name)
    commit(tx)
    assert other.drain(name) == [b"yes"]


def test_order_is_kept(tx: Channel, other: Channel, name: str) -> None:
    """Among kinds of messages, sizes and queues, in one write."""
    keys = [name, f"{name}.two"]
    for key in keys:
        other.declare(key)
    cases = [(keys[number % 3 == 0], 1 + number % 2, b"%d" % number) for number in range(60)]
    cases += [(name, 2, b"x" * 200_000), (name, 2, b"last")]
    tx.client.send(
        b"".join(
            frames.publish_frames(1, body, {"delivery_mode": mode}, routing_key=key)
            for key, mode, body in cases
        )
    )
    commit(tx)
    for queue in keys:
        assert other.drain(queue) == [body for key, _, body in cases if key == queue]


def test_properties_are_kept(tx: Channel, other: Channel, name: str) -> None:
    other.declare(name)
    properties = {"content_type": "a/b", "headers": {"n": 1}, "priority": 3, "message_id": "m"}
    tx.publish(b"body", properties, routing_key=name)
    commit(tx)
    message = other.taken(name)
    assert (message.body, message.method.routing_key) == (b"body", name)
    given = {key: value for key, value in dict(message.properties).items() if value}
    assert given == properties


def test_committed_to_several_queues(tx: Channel, other: Channel, name: str) -> None:
    other.call("Exchange.Declare", exchange=name, exchange_type="fanout")
    queues = [f"{name}.{number}" for number in range(3)]
    for queue in queues:
        other.declare(queue)
        other.call("Queue.Bind", queue=queue, exchange=name)
    tx.publish(b"to all", exchange=name)
    tx.publish(b"to one", routing_key=queues[0])
    commit(tx)
    assert [other.drain(queue) for queue in queues] == [
        [b"to all", b"to one"], [b"to all"], [b"to all"],
    ]  # fmt: skip


def test_committed_to_the_channel_s_own_consumer(tx: Channel, name: str) -> None:
    tx.declare(name)
    tx.consume(name, no_ack=True)
    tx.publish(b"a", routing_key=name)
    nothing_comes(tx)
    tx.send("Tx.Commit")
    assert deliveries_and_commit_ok(tx, 1) == [b"a"]


@pytest.mark.parametrize("end", ["channel", "connection", "socket"])
def test_the_end_rolls_back(tx: Channel, other: Channel, name: str, end: str) -> None:
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


def test_routed_when_published(tx: Channel, other: Channel, name: str) -> None:
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
def test_queue_that_ended_before_the_commit(
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
    commit(tx)
    assert other.drain(queues[1]) == [b"a", b"b"]
    if again:
        assert other.drain(queues[0]) == [b"a", b"b"]


def test_mandatory_is_returned_by_the_commit(tx: Channel, other: Channel, name: str) -> None:
    other.declare(name)
    for key in (name, f"{name}.no", name):
        tx.publish(key.encode(), routing_key=key, mandatory=True)
    nothing_comes(tx)
    tx.send("Tx.Commit")
    returned = tx.content("Basic.Return")
    assert (returned.method.reply_code, returned.body) == (312, f"{name}.no".encode())
    tx.expect("Tx.CommitOk")
    assert other.ready(name) == 2


def test_mandatory_is_returned_when_its_queue_has_ended(
    tx: Channel, other: Channel, name: str
) -> None:
    other.declare(name)
    tx.publish(b"a", routing_key=name, mandatory=True)
    nothing_comes(tx)
    other.call("Queue.Delete", queue=name)
    tx.send("Tx.Commit")
    assert tx.content("Basic.Return").body == b"a"
    tx.expect("Tx.CommitOk")


def test_mandatory_rolled_back_is_not_returned(tx: Channel, name: str) -> None:
    tx.publish(b"a", routing_key=name, mandatory=True)
    rollback(tx)
    commit(tx)


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
def test_a_queue_that_refuses(tx: Channel, other: Channel, name: str, overflow: str) -> None:
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


def test_acks_count_with_the_commit(tx: Channel, other: Channel, name: str) -> None:
    other.filled(name, 3)
    for _ in range(3):
        tx.taken(name, no_ack=False)
    tx.send("Basic.Ack", delivery_tag=2, multiple=True)
    commit(tx)
    tx.close()
    come_back(other, name, 1)
    assert other.drain(name) == [b"2"]


def test_rollback_keeps_tags_outstanding(tx: Channel, other: Channel, name: str) -> None:
    other.filled(name, 3)
    for _ in range(3):
        tx.taken(name, no_ack=False)
    tx.send("Basic.Ack", delivery_tag=2)
    tx.send("Basic.Reject", delivery_tag=3)
    rollback(tx)
    assert other.ready(name) == 0
    tx.send("Basic.Ack", delivery_tag=3, multiple=True)
    commit(tx)
    tx.close()
    assert other.ready(name) == 0


@pytest.mark.parametrize("method", ["Basic.Ack", "Basic.Nack", "Basic.Reject"])
def test_acked_twice_in_a_transaction(tx: Channel, other: Channel, name: str, method: str) -> None:
    other.filled(name, 1)
    tx.taken(name, no_ack=False)
    tx.send("Basic.Ack", delivery_tag=1)
    tx.send(method, delivery_tag=1)
    tx.refused(406, "PRECONDITION_FAILED - unknown delivery tag 1", method)
    come_back(other, name, 1)
    assert other.drain(name) == [b"0"]


def test_acked_twice_over_a_commit(tx: Channel, other: Channel, name: str) -> None:
    other.filled(name, 1)
    tx.taken(name, no_ack=False)
    tx.send("Basic.Ack", delivery_tag=1)
    commit(tx)
    tx.send("Basic.Ack", delivery_tag=1)
    tx.refused(406, "PRECONDITION_FAILED - unknown delivery tag 1", "Basic.Ack")


def test_acked_again_after_a_rollback(tx: Channel, other: Channel, name: str) -> None:
    other.filled(name, 1)
    tx.taken(name, no_ack=False)
    for _ in range(3):
        tx.send("Basic.Ack", delivery_tag=1)
        rollback(tx)
    tx.send("Basic.Ack", delivery_tag=1)
    commit(tx)
    tx.close()
    assert other.ready(name) == 0


@pytest.mark.parametrize("requeue", [False, True])
def test_rejects_count_with_the_commit(
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


def test_recover_leaves_what_was_acked(tx: Channel, other: Channel, name: str) -> None:
    other.filled(name, 2)
    for _ in range(2):
        tx.taken(name, no_ack=False)
    tx.send("Basic.Ack", delivery_tag=1)
    tx.call("Basic.Recover", requeue=True)
    come_back(other, name, 1)
    assert other.drain(name) == [b"1"]
    commit(tx)
    tx.close()
    assert other.ready(name) == 0


def test_prefetch_counts_until_the_commit(tx: Channel, other: Channel, name: str) -> None:
    other.filled(name, 2)
    tx.call("Basic.Qos", prefetch_count=1)
    tx.consume(name)
    assert tx.content().body == b"0"
    tx.send("Basic.Ack", delivery_tag=1)
    assert tx.ready(name) == 1
    tx.send("Tx.Commit")
    assert deliveries_and_commit_ok(tx, 1) == [b"1"]


def test_moved_from_queue_to_queue(tx: Channel, other: Channel, name: str) -> None:
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
def test_answers_stand_behind_the_commit(tx: Channel, name: str) -> None:
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
