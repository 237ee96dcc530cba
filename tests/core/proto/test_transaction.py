"""Transactions: what a commit does together, what it waits for, and what a rollback undoes.

The rules of the class as such are in `tests/conformance/test_s7_tx.py`, beside RabbitMQ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from warrenmq.core.message.batch import Batch, MessageRange, QueueEntry
from warrenmq.core.proto import buffered_publishes, transaction
from warrenmq.core.store.port import ManySettled, QueueIdentity

PERSISTENT = {"delivery_mode": 2}
OUT_MAX_BYTES = 524_288


class Many:
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


@pytest.fixture(params=[True, False], ids=["fast", "cold"])
def client(request: pytest.FixtureRequest, store: Store) -> Client:
    """Its channel 1 has transactions; `q` is durable, `t` transient."""
    client = Client(make_broker(store), fast=request.param)
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


def test_publishes_and_acks_are_one_group(client: Client, store: Store) -> None:
    filled(client, store, 3)
    store.alone.clear()
    client.feed(row(4) + method(1, "Basic.Ack", delivery_tag=2, multiple=True) + row(1))
    assert (store.groups, store.alone) == ([], [])
    client.send("Tx.Commit")
    assert (store.groups, store.alone) == ([["append 5", "settle 1", "settle 1"]], [])


def test_a_rollback_writes_nothing(client: Client, store: Store) -> None:
    filled(client, store, 1)
    store.alone.clear()
    client.feed(row(4) + method(1, "Basic.Ack", delivery_tag=1))
    client.call("Tx.Rollback")
    assert (store.groups, store.alone) == ([], [])


def test_kinds_of_messages_are_batches_of_their_own(client: Client, store: Store) -> None:
    client.declare("short", durable=True, arguments={"x-max-length": 9, "x-overflow":
                                                     "reject-publish"})  # fmt: skip
    large = publish(1, bytes(70_000), PERSISTENT, routing_key="q")
    priority = publish(1, b"p", {"delivery_mode": 2, "priority": 1}, routing_key="q")
    client.feed(row(2) + row(1, "t") + large + row(2) + priority + row(2, "short") + row(3, "t"))
    client.send("Tx.Commit")
    assert store.groups == [
        ["append 3", "append 1", "append 2", "append 1", "append 1", "append 1"]
    ]


def test_batches_end_at_what_a_read_brings(
    client: Client, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buffered_publishes, "BATCH_BYTES", 200)
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


def test_acks_alone_wait_too(client: Client, store: Store) -> None:
    filled(client, store, 1)
    client.send("Basic.Ack", delivery_tag=1)
    assert client.send("Tx.Commit") == []
    assert names(synced(client, store)) == ["Tx.CommitOk"]


@pytest.mark.parametrize("queue", ["t", "nobody", None])
def test_what_leaves_nothing_on_disk_does_not_wait(
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


def test_later_work_belongs_to_the_next_transaction(client: Client, store: Store) -> None:
    filled(client, store, 2)
    client.feed(row(1) + method(1, "Tx.Commit") + row(2))
    client.send("Basic.Ack", delivery_tag=1)
    assert client.messages("q") == 1
    assert names(synced(client, store)) == ["Tx.CommitOk"]
    client.call("Tx.Rollback")
    assert client.messages("q") == 1
    client.send("Basic.Ack", delivery_tag=1)
    client.send("Tx.Commit")
    assert names(synced(client, store)) == ["Tx.CommitOk"]


def test_commits_in_a_row_are_answered_in_order(client: Client, store: Store) -> None:
    """The second has nothing to wait for, but stands behind the first."""
    client.feed(row(1) + method(1, "Tx.Commit"))
    assert client.feed(row(1, "t") + method(1, "Tx.Commit") + method(1, "Tx.Rollback")) == []
    assert client.messages("t") == 1
    assert names(synced(client, store)) == ["Tx.CommitOk", "Tx.CommitOk", "Tx.RollbackOk"]


def test_a_commit_of_the_next_sync_waits_longer(client: Client, store: Store) -> None:
    client.feed(row(1) + method(1, "Tx.Commit"))
    first = store.barrier()
    client.feed(row(1) + method(1, "Tx.Commit") + method(1, "Basic.Qos"))
    store.committed = first
    client.broker._committed()
    take_turns(client.broker)
    assert names(client.come()) == ["Tx.CommitOk"]
    assert names(synced(client, store)) == ["Tx.CommitOk", "Basic.QosOk"]


def test_commits_of_a_channel_are_told_once(client: Client, store: Store) -> None:
    client.feed((row(1) + method(1, "Tx.Commit")) * 20)
    assert len(client.broker._waiting) == 1
    assert names(synced(client, store)) == ["Tx.CommitOk"] * 20


# -- answers behind it


def test_no_answer_passes_a_commit_ok(client: Client, store: Store) -> None:
    client.call("Channel.Open", 2)
    client.publish(b"there", channel=2, routing_key="t")
    client.feed(row(1) + method(1, "Tx.Commit"))
    assert client.send("Basic.Get", queue="t") == []
    assert client.send("Basic.Get", queue="q", no_ack=True) == []
    assert client.send("Queue.Declare", queue="new") == []
    assert names(client.send("Basic.Qos", 2)) == ["Basic.QosOk"]
    assert names(synced(client, store)) == [
        "Tx.CommitOk", "Basic.GetOk", "Basic.GetOk", "Queue.DeclareOk",
    ]  # fmt: skip
    assert names(client.send("Basic.Qos")) == ["Basic.QosOk"]


def test_a_return_stands_behind_the_commit_before_it(client: Client, store: Store) -> None:
    client.feed(row(1) + method(1, "Tx.Commit"))
    lost = publish(1, b"lost", mandatory=True, routing_key="nobody")
    assert client.feed(lost + method(1, "Tx.Commit")) == []
    first, back, second = synced(client, store)
    assert (first.name, back.body, second.name) == ("Tx.CommitOk", b"lost", "Tx.CommitOk")


def test_deliveries_go_on_meanwhile(client: Client, store: Store) -> None:
    client.consume("t", no_ack=True)
    client.call("Channel.Open", 2)
    client.feed(row(1) + method(1, "Tx.Commit"))
    assert bodies(client.publish(b"now", channel=2, routing_key="t")) == [b"now"]
    assert names(synced(client, store)) == ["Tx.CommitOk"]


def test_deliveries_stand_behind_answers(client: Client, store: Store) -> None:
    """A consume-ok comes before the first delivery, tags go up."""
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


def test_who_asks_on_behind_a_commit_is_not_heard(store: Store) -> None:
    """Answers that wait are bounded like those that are not read."""
    client = Client(make_broker(store))
    client.declare("q", durable=True)
    client.call("Channel.Open", 2)
    client.publish(bytes(100_000), channel=2, routing_key="q")
    client.call("Tx.Select")
    client.feed(publish(1, b"", PERSISTENT, routing_key="q") + method(1, "Tx.Commit"))
    get_and_return = method(1, "Basic.Get", queue="q") + method(1, "Basic.Recover", requeue=True)
    client.connection.receive(get_and_return * 100)
    take_turns(client.broker)
    assert client.connection.unfinished
    assert OUT_MAX_BYTES < client.connection.waiting_reply_bytes < OUT_MAX_BYTES + 200_000
    replies = synced(client, store)
    assert client.connection.waiting_reply_bytes == 0
    client.receive(b"")
    replies += client.come()
    assert names(replies) == ["Tx.CommitOk"] + ["Basic.GetOk", "Basic.RecoverOk"] * 100


@pytest.mark.parametrize("end", ["Channel.Close", "error", "Connection.Close", "lost"])
def test_an_end_meanwhile(client: Client, store: Store, end: str) -> None:
    """The answer is lost, the commit is not."""
    client.feed(row(1) + method(1, "Tx.Commit"))
    client.send("Basic.Qos")
    if end == "error":
        assert names(client.send("Basic.Get", queue="absent")) == ["Channel.Close"]
    elif end == "lost":
        client.connection.lost()
    else:
        assert names(client.send(end)) == [f"{end}Ok"]
    assert client.connection.waiting_reply_bytes == 0
    assert synced(client, store) == []
    assert client.messages("q") == 1


# -- refusals


def test_a_full_disk_closes_the_channel(client: Client, store: Store) -> None:
    client.feed(row(1) + method(1, "Tx.Commit") + method(1, "Basic.Qos") + row(1))
    (close,) = refused(client, store)
    assert (close.name, close["reply_code"]) == ("Channel.Close", 506)
    assert (close["class_id"], close["method_id"]) == (90, 20)
    assert close["reply_text"].startswith("RESOURCE_ERROR - transaction not durable: the disk")
    assert client.connection.waiting_reply_bytes == 0
    assert client.broker.memory.resident_bytes < 2_000
    client.feed(method(1, "Channel.CloseOk") + method(1, "Channel.Open"))
    assert names(client.send("Basic.Qos")) == ["Basic.QosOk"]


def test_what_was_kept_before_the_disk_was_full_is_told(client: Client, store: Store) -> None:
    client.feed(row(1) + method(1, "Tx.Commit"))
    kept = store.barrier()
    client.feed(row(1) + method(1, "Tx.Commit"))
    store.committed = kept
    assert names(refused(client, store)) == ["Tx.CommitOk", "Channel.Close"]


def test_a_queue_that_refuses_is_told_when_the_rest_is_on_disk(
    client: Client, store: Store
) -> None:
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


def test_a_transaction_has_a_limit(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_acks_of_nothing_are_not_kept(client: Client) -> None:
    client.feed(method(1, "Basic.Ack", delivery_tag=0, multiple=True) * 100)
    current = client.connection.channels[1].transaction
    assert current is not None
    assert not current._settlements


def test_prefetch_of_the_channel_counts_until_the_commit(client: Client, store: Store) -> None:
    client.call("Channel.Open", 2)
    client.feed(row(4, "t", channel=2))
    client.call("Basic.Qos", prefetch_count=2, global_=True)
    assert bodies(client.consume("t")) == [b"0", b"1"]
    assert client.feed(method(1, "Basic.Ack", delivery_tag=1) * 1) == []
    client.call("Basic.Qos", prefetch_count=2, global_=True)
    client.call("Tx.Rollback")
    assert client.send("Basic.Ack", delivery_tag=2, multiple=True) == []
    assert bodies(client.send("Tx.Commit")) == [b"2", b"3"]


# -- the message itself


@pytest.mark.parametrize("fast", [True, False])
def test_time_begins_with_the_commit(fast: bool) -> None:
    """A message that waited in a transaction has all its time to live, and is the youngest."""
    clock = ManualClock()
    client = Client(make_broker(clock=clock), fast=fast)
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


def test_keys_of_a_passing_address_stay_apart(client: Client, store: Store) -> None:
    """More keys than a connection remembers: their address is aimed anew for each message."""
    keys = [f"k{number}" for number in range(1_100)]
    client.call("Queue.Bind", queue="t", exchange="amq.topic", routing_key="#")
    client.feed(b"".join(publish(1, b"x", exchange="amq.topic", routing_key=key) for key in keys))
    client.send("Tx.Commit")
    delivered = client.consume("t", no_ack=True)
    assert [reply["routing_key"] for reply in delivered] == keys


def test_copies_and_blind_copies(client: Client, store: Store) -> None:
    client.declare("blind")
    headers = {"headers": {"CC": ["q"], "BCC": ["blind"], "a": 1}}
    client.publish(b"x", headers, routing_key="t")
    client.send("Tx.Commit")
    for queue in ("t", "q", "blind"):
        reply = client.call("Basic.Get", queue=queue, no_ack=True)
        assert reply.headers == {"CC": ["q"], "a": 1}


def test_a_blind_copy_s_dead_letter_knows_its_keys(client: Client, store: Store) -> None:
    client.declare("blind")
    client.declare("dying", arguments={"x-dead-letter-exchange": "amq.direct"})
    client.call("Queue.Bind", queue="blind", exchange="amq.direct", routing_key="blind")
    client.publish(b"x", {"headers": {"BCC": ["blind"]}}, routing_key="dying")
    client.send("Tx.Commit")
    assert (client.messages("blind"), client.messages("dying")) == (1, 1)
    client.call("Basic.Get", queue="dying")
    client.send("Basic.Reject", delivery_tag=1)
    client.send("Tx.Commit")
    assert client.messages("blind") == 2


def test_each_message_is_mandatory_or_not(client: Client, store: Store) -> None:
    client.call("Channel.Open", 2)
    for number in range(4):
        client.publish(b"%d" % number, routing_key="t", mandatory=number % 2 == 0)
    client.call("Queue.Delete", 2, queue="t")
    replies = client.send("Tx.Commit")
    assert [reply.body for reply in replies] == [b"0", b"2", b""]


def test_the_same_publish_before_and_after_select(store: Store) -> None:
    client = Client(make_broker(store))
    client.declare("t")
    client.publish(b"x", routing_key="t")
    client.feed(method(1, "Tx.Select") + publish(1, b"x", routing_key="t"))
    assert client.messages("t") == 1
    client.send("Tx.Commit")
    assert client.messages("t") == 2


# -- against a model


@dataclass
class Model:
    """One queue, one channel with transactions: the rules in their plainest form."""

    ready: list[bytes] = field(default_factory=list)
    unacked: dict[int, bytes] = field(default_factory=dict)
    published: list[bytes] = field(default_factory=list)
    settled: dict[int, bytes] = field(default_factory=dict)
    given_back: list[bytes] = field(default_factory=list)
    next_tag: int = 1

    def get(self) -> bytes | None:
        if not self.ready:
            return None
        body = self.unacked[self.next_tag] = self.ready.pop(0)
        self.next_tag += 1
        return body

    def settle(self, tag: int, multiple: bool, requeue: bool) -> None:
        tags = [other for other in self.unacked if other <= tag] if multiple else [tag]
        for other in tags:
            self.settled[other] = self.unacked.pop(other)
            if requeue:
                self.given_back.append(self.settled[other])

    def commit(self) -> None:
        self.ready = sorted(self.ready + self.published + self.given_back)
        self._begin()

    def rollback(self) -> None:
        self.unacked = dict(sorted({**self.unacked, **self.settled}.items()))
        self._begin()

    def _begin(self) -> None:
        self.published, self.settled, self.given_back = [], {}, []


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.integers(1, 20), st.booleans()),
        st.tuples(st.just("get"), st.integers(1, 5), st.booleans()),
        st.tuples(st.just("ack"), st.integers(0, 9), st.booleans()),
        st.tuples(st.just("nack"), st.integers(0, 9), st.booleans()),
        st.tuples(st.just("requeue"), st.integers(0, 9), st.booleans()),
        st.tuples(st.just("commit"), st.just(0), st.booleans()),
        st.tuples(st.just("rollback"), st.just(0), st.booleans()),
    ),
    max_size=40,
)


@given(steps=STEPS, fast=st.booleans())
def test_against_a_model(steps: list[tuple[str, int, bool]], fast: bool) -> None:
    store, model = Store(), Model()
    client = Client(make_broker(store), fast=fast)
    client.declare("q", durable=True)
    synced(client, store)
    client.call("Tx.Select")
    number = 0
    for name, count, flag in steps:
        if name == "publish":
            sent = [b"%06d" % (number + at) for at in range(count)]
            number += count
            model.published += sent
            properties = PERSISTENT if flag else None
            rows = (publish(1, body, properties, routing_key="q") for body in sent)
            assert client.feed(b"".join(rows)) == []
        elif name == "get":
            for _ in range(count):
                reply = client.call("Basic.Get", queue="q")
                assert (reply.body if reply.name == "Basic.GetOk" else None) == model.get()
        elif name in ("ack", "nack", "requeue"):
            if count < len(model.unacked):
                tag = list(model.unacked)[count]
                model.settle(tag, flag, name == "requeue")
                fields = {} if name == "ack" else {"requeue": name == "requeue"}
                wire = "Basic.Ack" if name == "ack" else "Basic.Nack"
                assert client.send(wire, delivery_tag=tag, multiple=flag, **fields) == []
        elif name == "commit":
            model.commit()
            replies = client.send("Tx.Commit")
            assert names(replies + synced(client, store)) == ["Tx.CommitOk"]
        else:
            model.rollback()
            assert client.call("Tx.Rollback").name == "Tx.RollbackOk"
        assert client.messages("q") == len(model.ready)
    client.call("Channel.Close")
    model.rollback()
    reader = Client(client.broker)
    expected = sorted([*model.ready, *model.unacked.values()])
    assert bodies(reader.consume("q", no_ack=True)) == expected
