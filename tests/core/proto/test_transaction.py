"""Transactions: groups of the log, waiting for the disk, and limits.

The rules of the class as such are in `tests/conformance/test_s7_tx.py`, beside RabbitMQ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pytest

from tests.support.amqp import (
    Client,
    Reply,
    bodies,
    make_broker,
    method,
    names,
    publish,
    take_turns,
)
from tests.support.manual_store import ManualStore
from warrenmq.core.clock import ManualClock
from warrenmq.core.message.batch import Batch
from warrenmq.core.message.queue_entry import MessageRange, QueueEntry
from warrenmq.core.proto import transaction
from warrenmq.core.publish import buffered_batch
from warrenmq.core.store.port import ManySettled, QueueIdentity

PERSISTENT = {"delivery_mode": 2}
OUT_MAX_BYTES = 524_288


class Many(ManySettled):
    """Notes how many were logged together."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self._note = note
        self._noted = 0

    def note(self, queue_id: int, messages: MessageRange) -> None:
        self._noted += messages.count

    def forget(self, queue_id: int) -> None:
        """Nothing of it was noted by name."""

    def log(self) -> None:
        self._note(f"settle {self._noted}")

    def count(self, messages: MessageRange) -> None:
        """It was noted."""

    def end(self) -> None:
        """No checkpoint waits."""


class Store(ManualStore):
    """Notes what is written, and whether as part of a group."""

    def __init__(self) -> None:
        super().__init__()
        self.paging = False
        self.groups: list[list[str]] = []
        self.alone: list[str] = []
        self._group: list[str] | None = None

    @contextmanager
    def together(self) -> Iterator[None]:
        self._group = []
        yield
        self.groups.append(self._group)
        self._group = None

    def append(
        self,
        batch: Batch,
        entries: Sequence[tuple[QueueIdentity, QueueEntry]],
        offsets: Sequence[tuple[int, int]] = (),
    ) -> int:
        self.note(f"append {batch.count}")
        return super().append(batch, entries, offsets)

    def settle(self, queue: QueueIdentity, messages: MessageRange) -> None:
        self.note(f"settle {messages.count}")

    def many_settled(self) -> ManySettled:
        return Many(self.note)

    def note(self, what: str) -> None:
        (self.alone if self._group is None else self._group).append(what)


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def client(store: Store) -> Client:
    """Its channel 1 has transactions; `q` is durable, `t` transient."""
    client = Client(make_broker(store))
    client.declare("q", durable=True)
    client.declare("t")
    synced(client, store)
    client.call("Tx.Select")
    return client


def synced(client: Client, store: ManualStore) -> list[Reply]:
    """What comes when the disk has caught up."""
    store.commit()
    take_turns(client.broker)
    return client.come()


def refused(client: Client, store: ManualStore) -> list[Reply]:
    store.refuse()
    take_turns(client.broker)
    return client.come()


def filled(client: Client, store: ManualStore, count: int, queue: str = "q") -> None:
    """Messages "0", "1", ... in the queue, all outstanding at channel 1."""
    client.call("Channel.Open", 9)
    for number in range(count):
        client.publish(b"%d" % number, PERSISTENT, channel=9, routing_key=queue)
    synced(client, store)
    client.call("Channel.Close", 9)
    for _ in range(count):
        assert client.call("Basic.Get", queue=queue).name == "Basic.GetOk"


def row(count: int, queue: str = "q", first: int = 0, channel: int = 1) -> bytes:
    numbers = range(first, first + count)
    return b"".join(publish(channel, b"%d" % n, PERSISTENT, routing_key=queue) for n in numbers)


# -- what the store is given


def test_a_commit_is_one_group_of_the_log(client: Client, store: Store) -> None:
    filled(client, store, 3)
    store.alone.clear()
    client.feed(row(4) + method(1, "Basic.Ack", delivery_tag=2, multiple=True) + row(1))
    assert (store.groups, store.alone) == ([], [])
    client.send("Tx.Commit")
    assert (store.groups, store.alone) == ([["append 5", "settle 1", "settle 1"]], [])


def test_messages_are_batched_by_attributes(client: Client, store: Store) -> None:
    client.declare("short", durable=True, arguments={"x-max-length": 9, "x-overflow":
                                                     "reject-publish"})  # fmt: skip
    large = publish(1, bytes(70_000), PERSISTENT, routing_key="q")
    priority = publish(1, b"p", {"delivery_mode": 2, "priority": 1}, routing_key="q")
    client.feed(row(2) + row(1, "t") + large + row(2) + priority + row(2, "short") + row(3, "t"))
    client.send("Tx.Commit")
    assert store.groups == [
        ["append 3", "append 1", "append 2", "append 1", "append 1", "append 1"]
    ]


def test_batches_have_a_maximum_size(
    client: Client, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buffered_batch, "BATCH_BYTES", 200)
    client.feed(row(10))
    client.send("Tx.Commit")
    (group,) = store.groups
    assert len(group) > 2
    assert sum(int(append.split()[1]) for append in group) == 10


# -- commit-ok


def test_commit_ok_waits_for_the_disk(client: Client, store: Store) -> None:
    client.feed(row(1))
    assert client.send("Tx.Commit") == []
    assert client.messages("q") == 1
    assert names(synced(client, store)) == ["Tx.CommitOk"]
    assert synced(client, store) == []


@pytest.mark.parametrize("queue", ["t", "nobody", None])
def test_a_commit_without_durable_changes_does_not_wait(
    client: Client, store: Store, queue: str | None
) -> None:
    if queue is not None:
        client.publish(b"", PERSISTENT, routing_key=queue)
    if queue == "t":
        client.publish(b"", routing_key="q")
        assert client.call("Basic.Get", queue="t").name == "Basic.GetEmpty"
    assert names(client.send("Tx.Commit")) == ["Tx.CommitOk"]


def test_many_commits_wait_for_one_sync(client: Client, store: Store) -> None:
    others = [Client(client.broker) for _ in range(5)]
    for other in others:
        other.call("Tx.Select")
        other.feed(row(1))
        assert other.send("Tx.Commit") == []
    store.commit()
    take_turns(client.broker)
    assert [names(other.come()) for other in others] == [["Tx.CommitOk"]] * 5


def test_a_second_commit_waits_for_its_own_sync(client: Client, store: Store) -> None:
    client.feed(row(1) + method(1, "Tx.Commit"))
    first = store.barrier()
    client.feed(row(1) + method(1, "Tx.Commit") + method(1, "Basic.Qos"))
    store.progress.committed = first
    client.broker.commits.run()
    take_turns(client.broker)
    assert names(client.come()) == ["Tx.CommitOk"]
    assert names(synced(client, store)) == ["Tx.CommitOk", "Basic.QosOk"]


def test_commits_of_a_channel_wait_with_one_callback(client: Client, store: Store) -> None:
    client.feed((row(1) + method(1, "Tx.Commit")) * 20)
    assert client.broker.commits.next_count == 1
    assert names(synced(client, store)) == ["Tx.CommitOk"] * 20


# -- answers behind it


def test_deliveries_wait_for_earlier_replies(client: Client, store: Store) -> None:
    client.call("Channel.Open", 2)
    client.feed(row(1) + method(1, "Tx.Commit"))
    for number in range(3):
        client.publish(b"%d" % number, channel=2, routing_key="t")
    assert client.send("Basic.Get", queue="t") == []
    assert client.send("Basic.Consume", queue="t") == []
    replies = synced(client, store)
    assert names(replies) == [
        "Tx.CommitOk", "Basic.GetOk", "Basic.ConsumeOk", "Basic.Deliver", "Basic.Deliver",
    ]  # fmt: skip
    assert [replies[at]["delivery_tag"] for at in (1, 3, 4)] == [1, 2, 3]
    assert bodies(client.publish(b"3", channel=2, routing_key="t")) == [b"3"]


def test_waiting_replies_are_bounded(store: Store) -> None:
    client = Client(make_broker(store))
    client.declare("q", durable=True)
    client.call("Channel.Open", 2)
    client.publish(bytes(100_000), channel=2, routing_key="q")
    client.call("Tx.Select")
    client.feed(publish(1, b"", PERSISTENT, routing_key="q") + method(1, "Tx.Commit"))
    get_and_return = method(1, "Basic.Get", queue="q") + method(1, "Basic.Recover", requeue=True)
    client.connection.receive(get_and_return * 100)
    take_turns(client.broker)
    assert client.connection.pending.unfinished
    assert OUT_MAX_BYTES < client.connection.output.waiting_reply_bytes < OUT_MAX_BYTES + 200_000
    replies = synced(client, store)
    assert client.connection.output.waiting_reply_bytes == 0
    client.receive(b"")
    replies += client.come()
    assert names(replies) == ["Tx.CommitOk"] + ["Basic.GetOk", "Basic.RecoverOk"] * 100


# -- refusals


def test_a_full_disk_closes_the_channel(client: Client, store: Store) -> None:
    client.feed(row(1) + method(1, "Tx.Commit") + method(1, "Basic.Qos") + row(1))
    (close,) = refused(client, store)
    assert (close.name, close["reply_code"]) == ("Channel.Close", 506)
    assert (close["class_id"], close["method_id"]) == (90, 20)
    assert close["reply_text"].startswith("RESOURCE_ERROR - transaction not durable: the disk")
    assert client.connection.output.waiting_reply_bytes == 0
    assert client.broker.memory.resident_bytes < 2_000
    client.feed(method(1, "Channel.CloseOk") + method(1, "Channel.Open"))
    assert names(client.send("Basic.Qos")) == ["Basic.QosOk"]


def test_commits_before_the_disk_was_full_are_confirmed(client: Client, store: Store) -> None:
    client.feed(row(1) + method(1, "Tx.Commit"))
    kept = store.barrier()
    client.feed(row(1) + method(1, "Tx.Commit"))
    store.progress.committed = kept
    assert names(refused(client, store)) == ["Tx.CommitOk", "Channel.Close"]


def test_a_partial_commit_is_reported_when_it_is_durable(client: Client, store: Store) -> None:
    arguments = {"x-max-length": 0, "x-overflow": "reject-publish"}
    client.send("Queue.Declare", queue="short", arguments=arguments)
    synced(client, store)
    client.feed(row(1) + row(1, "short") + row(1))
    assert client.send("Tx.Commit") == []
    assert client.messages("q") == 2
    (close,) = synced(client, store)
    assert close["reply_text"] == "PRECONDITION_FAILED - partial tx completion"
    assert (close["class_id"], close["method_id"]) == (90, 20)


# -- bounds


def test_a_transaction_above_the_limit_closes_its_channel(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction, "TRANSACTION_MAX_BYTES", 10_000)
    body = publish(1, bytes(3_000), routing_key="t")
    assert client.feed(body * 3) == []
    assert client.broker.memory.resident_bytes > 9_000
    (close,) = client.feed(body)
    assert (close["reply_code"], close["class_id"], close["method_id"]) == (406, 60, 40)
    assert close["reply_text"].startswith("PRECONDITION_FAILED - transaction on channel 1 would")
    assert "its limit of 10000" in close["reply_text"]
    assert client.broker.memory.resident_bytes == 0
    assert client.messages("t") == 0


@pytest.mark.parametrize("end", ["Tx.Commit", "Tx.Rollback"])
def test_the_limit_is_of_one_transaction(
    client: Client, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    monkeypatch.setattr(transaction, "TRANSACTION_MAX_BYTES", 10_000)
    for _ in range(5):
        assert client.publish(bytes(9_000), routing_key="nobody") == []
        client.call(end)
    assert client.broker.memory.resident_bytes == 0


# -- the message itself


def test_time_to_live_counts_from_the_commit() -> None:
    clock = ManualClock()
    client = Client(make_broker(clock=clock))
    client.declare("old", arguments={"x-message-ttl": 1_000})
    client.call("Tx.Select")
    client.publish(b"in", routing_key="old")
    clock.advance(900)
    client.call("Channel.Open", 2)
    client.publish(b"before", channel=2, routing_key="old")
    client.send("Tx.Commit")
    clock.advance(900)
    replies = [client.call("Basic.Get", queue="old", no_ack=True) for _ in range(2)]
    assert bodies(replies) == [b"before", b"in"]
