"""Rules that come, change and go while a queue is in use: what they do to what is in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.life import PERSISTENT, TRANSIENT, Life, numbered
from tests.core.messages import Sent, scattered
from tests.support.amqp import Client, make_broker, publish, take_turns
from warrenmq.core.definitions.keys import Kind
from warrenmq.core.definitions.kinds import PolicyDefinition
from warrenmq.core.message.batch import MessageRange, PagedOut, QueueEntry
from warrenmq.core.queue.queue import Queue
from warrenmq.core.queue.rules import Deduplication, Rules

from .support import House, Session, add, ready, take
from .support import publish as enqueue

# -- lengths


def test_a_shorter_length_drops_the_oldest() -> None:
    house = House()
    queue = house.queue(max_length=10)
    enqueue(house, queue, 8)
    queue.apply(Rules(max_length=3))
    house.turn()
    assert (ready(queue), [number for number, _ in house.dead_letters]) == (
        [6, 7, 8],
        [1, 2, 3, 4, 5],
    )
    queue.apply(Rules(max_length=5))
    enqueue(house, queue, 4)
    assert ready(queue) == [8, 9, 10, 11, 12]
    queue.apply(None)
    enqueue(house, queue, 100)
    house.turn()
    assert queue.ready_count == 105


def test_consumers_have_their_share_first() -> None:
    house, session = House(), Session()
    queue = house.queue()
    enqueue(house, queue, 9)
    add(queue, session, prefetch=4)
    queue.apply(Rules(max_length=2))
    house.turn()
    assert (session.numbers(), ready(queue)) == ([1, 2, 3, 4], [8, 9])


def test_a_length_in_bytes_counts_what_is_there() -> None:
    house = House()
    queue = house.queue()
    enqueue(house, queue, 3, body_bytes=10)
    enqueue(house, queue, 3, body_bytes=20)
    held = list(take(queue, 1))
    queue.apply(Rules(max_length_bytes=70))
    assert queue.ready_bytes == 80
    house.turn()
    assert (ready(queue), queue.ready_bytes) == ([3, 4, 5, 6], 70)
    queue.requeue(held[0])
    house.turn()
    assert (ready(queue), queue.ready_bytes) == ([3, 4, 5, 6], 70)


@given(
    st.lists(st.tuples(st.sampled_from("tpagfbd"), st.integers(1, 4)), max_size=25),
    st.integers(0, 99),
)
def test_bytes_are_right_however_often_the_limit_comes_and_goes(
    steps: list[tuple[str, int]], limit: int
) -> None:
    """Publish, take, give back, acknowledge, page out; a limit in bytes, other rules, none."""
    house = House()
    queue = house.queue()
    held: list[MessageRange] = []
    for step, number in steps:
        match step:
            case "p":
                sent = [Sent(bytes(size)) for size in range(number)]
                batch = scattered(sent, sequence=house.store.reserve(number))
                queue.enqueue(QueueEntry(batch, None))
                batch.evict()
                batch.resident = True  # Sizes are asked of what is on disk, too.
            case "t":
                held += take(queue, number)
            case "g" if held:
                queue.requeue(held.pop())
            case "a" if held:
                queue.settle(held.pop(0))
            case "b":
                queue.apply(Rules(max_length_bytes=1_000 + limit))
            case "f":
                queue.apply(Rules(max_length=1_000))
            case "d":
                queue.apply(None)
    queue.apply(Rules(max_length_bytes=2_000))
    assert queue.ready_bytes == sum(
        messages.entry.batch.body_bytes(messages.entry.index(at))
        for messages in queue.backlog
        if isinstance(messages, MessageRange)
        for at in range(messages.low, messages.high)
    )


# -- times


def test_expiry_of_the_queue_comes_changes_and_goes() -> None:
    house = House()
    queue = house.queue()
    house.wait(5_000)
    queue.apply(Rules(expires_ms=1_000))
    house.wait(999)
    queue.apply(Rules(expires_ms=1_000, max_length=5))  # Its time goes on.
    house.wait(1)
    assert house.dropped == [queue]


@pytest.mark.parametrize(("later", "due_ms"), [(500, 1_400), (3_000, 3_900), (None, None)])
def test_another_expiry_counts_from_when_it_came(later: int | None, due_ms: int | None) -> None:
    house = House()
    queue = house.queue()
    queue.apply(Rules(expires_ms=1_000))
    house.wait(900)
    queue.apply(None if later is None else Rules(expires_ms=later))
    if due_ms is not None:
        house.wait(due_ms - 901)
        assert house.dropped == []
        house.wait(1)
        assert house.dropped == [queue]
    house.wait(100_000)
    assert len(house.dropped) == (due_ms is not None)
    assert house.timers.next_ms is None


def test_a_use_puts_off_an_expiry_that_came_later() -> None:
    house, session = House(), Session()
    queue = house.queue()
    consumer = add(queue, session)
    queue.apply(Rules(expires_ms=1_000))
    house.wait(5_000)
    queue.remove_consumer(consumer)
    house.wait(999)
    assert house.dropped == []
    house.wait(1)
    assert house.dropped == [queue]


# -- refusals, as publishers see them


@pytest.fixture
def client() -> Client:
    return Client(make_broker())


def queue_of(client: Client, name: str = "q") -> Queue:
    return client.broker.vhosts["/"].queues[name]


def confirming(client: Client, queue: str = "q", count: int = 1) -> list[str]:
    """What became of publishes, whose address the connection has remembered since the first."""
    client.feed(b"".join(publish(1, b"x", routing_key=queue) for _ in range(count)))
    take_turns(client.broker)
    found = client.replies + client.come()
    return [f"{reply.name}{' multiple' * reply['multiple']}" for reply in found]


@pytest.mark.parametrize("exchange", ["", "amq.direct", "amq.fanout", "amq.topic", "main"])
def test_a_publisher_sees_a_refusal_at_once(client: Client, exchange: str) -> None:
    """Its route was resolved before there was one: by the queue's name, a key among others, a
    binding, an exchange behind another, an alternate."""
    client.declare("q")
    client.declare("other")
    arguments = {"alternate-exchange": "amq.fanout"}
    client.call("Exchange.Declare", exchange="main", exchange_type="direct", arguments=arguments)
    client.call("Queue.Bind", queue="q", exchange="amq.fanout")
    client.call("Queue.Bind", queue="q", exchange="amq.direct", routing_key="q")
    client.call("Queue.Bind", queue="other", exchange="amq.direct", routing_key="other")
    client.call("Exchange.Bind", destination="amq.fanout", source="amq.topic", routing_key="q")
    client.call("Confirm.Select")
    client.publish(b"first", routing_key="other", exchange=exchange)
    client.call("Queue.Purge", queue="q")

    def outcome() -> list[str]:
        data = publish(1, b"x", routing_key="q", exchange=exchange)
        return [reply.name for reply in client.feed(data)]

    assert [outcome() for _ in range(3)] == [["Basic.Ack"]] * 3
    queue_of(client).apply(Rules(max_length=3, overflow="reject-publish"))
    assert [outcome() for _ in range(2)] == [["Basic.Nack"]] * 2
    queue_of(client).apply(Rules(max_length=4, overflow="reject-publish"))
    assert [outcome() for _ in range(2)] == [["Basic.Ack"], ["Basic.Nack"]]
    queue_of(client).apply(Rules(max_length=4))
    assert (outcome(), client.messages("q")) == (["Basic.Ack"], 4)
    queue_of(client).apply(None)
    assert (outcome(), client.messages("q")) == (["Basic.Ack"], 5)


def test_refused_ones_become_dead_letters_from_now_on(client: Client) -> None:
    client.declare("q")
    client.declare("dead")
    client.call("Confirm.Select")
    assert confirming(client, count=3) == ["Basic.Ack multiple"]
    queue_of(client).apply(
        Rules(
            max_length=3, overflow="reject-publish-dlx",
            dead_letter_exchange="", dead_letter_routing_key="dead",
        )
    )  # fmt: skip
    assert confirming(client) == ["Basic.Nack"]
    take_turns(client.broker)
    assert (client.messages("q"), client.messages("dead")) == (3, 1)


def test_a_drop_head_queue_that_looks_for_repeats_refuses_nobody() -> None:
    """Each publish is asked about, but not for its room."""
    house = House()
    queue = house.queue()
    queue.apply(Rules(max_length=1, deduplication=Deduplication(5, None, "x")))
    assert [enqueue(house, queue) for _ in range(3)] == [True] * 3


# -- dead letters


def test_dead_letters_go_where_they_did_when_they_died(client: Client) -> None:
    """The exchange comes, another one comes, it goes: with some still on their way."""
    for name in ("q", "old", "new"):
        client.declare(name)
    queue = queue_of(client)

    def dead_letters(to: str | None) -> Rules:
        exchange = None if to is None else ""
        return Rules(max_length=0, dead_letter_exchange=exchange, dead_letter_routing_key=to)

    queue.apply(dead_letters("old"))
    client.connection.receive(b"".join(publish(1, b"1", routing_key="q") for _ in range(300)))
    queue.dispatch(1_000)
    queue.apply(dead_letters("new"))
    client.connection.receive(publish(1, b"2", routing_key="q"))
    queue.dispatch(1_000)
    queue.apply(None)
    take_turns(client.broker)
    assert (client.messages("old"), client.messages("new")) == (300, 1)
    queue.apply(dead_letters(None))
    client.publish(b"3", routing_key="q")
    assert [client.messages(name) for name in ("q", "old", "new")] == [0, 300, 1]


# -- delivery limits


def returned(queue: Queue, times: int = 1) -> None:
    for _ in range(times):
        for messages in list(take(queue, 100)):
            queue.requeue(messages)


def test_a_delivery_limit_counts_from_when_it_came() -> None:
    house = House()
    queue = house.queue(durable=True)
    enqueue(house, queue, 2)
    returned(queue, 5)
    queue.apply(Rules(delivery_limit=2))
    returned(queue, 2)
    assert ready(queue) == [1, 2]
    queue.apply(Rules(delivery_limit=1))
    assert ready(queue) == [1, 2]  # It is asked when they come back.
    returned(queue)
    assert house.dead_letters == [(1, "delivery_limit"), (2, "delivery_limit")]


def test_a_delivery_limit_that_goes_leaves_nothing() -> None:
    house = House()
    queue = house.queue()
    queue.apply(Rules(delivery_limit=1))
    enqueue(house, queue)
    returned(queue)
    queue.apply(None)
    returned(queue, 5)
    (held,) = take(queue, 1)
    assert queue.with_headers(held) is held
    queue.requeue(held)
    queue.apply(Rules(delivery_limit=1))
    returned(queue)
    assert ready(queue) == [1]


# -- on disk


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    found = Life(tmp_path / "log")
    found.declare("q")
    yield found
    found.abandon()


def fill(life: Life, count: int, *, first: int = 0, transient: bool = False) -> list[bytes]:
    """Of different sizes, in reads of ten messages; written when this returns."""
    properties = TRANSIENT if transient else PERSISTENT
    some = [body * (1 + at % 3) for at, body in enumerate(numbered(count, first))]
    for at in range(0, count, 10):
        data = [publish(1, body, properties, routing_key="q") for body in some[at : at + 10]]
        life.client.feed(b"".join(data))
    life.write()
    life.client.come()
    return some


def went_out(life: Life, count: int = 300) -> list[bytes]:
    some = fill(life, count)
    life.page_out()
    assert life.queue("q").paged_out_count == count
    return some


def apply(life: Life, rules: Rules | None, *, turns: int = 30) -> None:
    life.queue("q").apply(rules)
    life.turns(turns)


def test_a_ttl_reads_what_is_paged_out_and_nothing_is_lost(life: Life) -> None:
    some = went_out(life)
    apply(life, Rules(message_ttl_ms=60_000))
    assert life.queue("q").paged_out_count == 0
    life.page_out()
    assert life.queue("q").paged_out_count == 0
    life.turns(1, each_ms=30_000)
    assert life.bodies() == some


def test_what_was_paged_out_expires_when_its_time_has_come(life: Life) -> None:
    went_out(life)
    life.clock.advance(10_000)
    late = fill(life, 10, first=300)
    life.page_out()
    apply(life, Rules(message_ttl_ms=15_000))
    assert life.client.messages("q") == 310
    life.turns(2, each_ms=2_500)
    assert life.client.messages("q") == 10
    life.write()
    life.crash()
    assert life.bodies() == late


def test_a_ttl_that_goes_leaves_a_queue_that_gets_paged_out_again(life: Life) -> None:
    some = went_out(life)
    apply(life, Rules(message_ttl_ms=60_000))
    apply(life, None)
    life.clock.advance(100_000)
    life.turns()
    assert life.client.messages("q") == len(some)
    apply(life, Rules(max_length=1_000))
    assert life.bodies() == some


@pytest.mark.parametrize("again", [Life.restart, Life.crash])
def test_a_shorter_length_drops_paged_out_ones(life: Life, again: Callable[[Life], object]) -> None:
    some = went_out(life)
    apply(life, Rules(max_length=25))
    assert life.client.messages("q") == 25
    life.write()
    again(life)
    assert life.bodies() == some[-25:]


def test_bytes_of_paged_out_ones_are_counted_when_they_are_read(life: Life) -> None:
    some = went_out(life)
    some += fill(life, 20, first=300)
    total = sum(map(len, some))
    apply(life, Rules(max_length_bytes=total))
    queue = life.classic("q")
    assert (queue.ready_count, queue.ready_bytes, queue.paged_out_count) == (320, total, 0)
    apply(life, Rules(max_length_bytes=500), turns=5)
    left, size = list[bytes](), 0
    for body in reversed(some):
        size += len(body)
        if size > 500:
            break
        left.insert(0, body)
    assert queue.ready_bytes == sum(map(len, left))
    assert life.bodies() == left


@pytest.mark.parametrize("transient", [False, True])
def test_bytes_of_what_is_on_disk_one_by_one(life: Life, transient: bool) -> None:
    """Their batches have left memory; their sizes can always be asked."""
    apply(life, Rules(message_ttl_ms=600_000))
    some = fill(life, 30, transient=transient)
    life.page_out(transient=True)
    life.turns()
    queue = life.classic("q")
    assert not any(
        isinstance(held, MessageRange) and held.entry.batch.resident for held in queue.backlog
    )
    apply(life, Rules(message_ttl_ms=600_000, max_length_bytes=10_000))
    assert queue.ready_bytes == sum(map(len, some))
    assert life.bodies() == some
    assert queue.ready_bytes == 0


@pytest.mark.parametrize("again", [lambda life: None, Life.crash], ids=["new", "recovered"])
def test_bytes_of_what_left_memory_with_another_queue(
    life: Life, again: Callable[[Life], object]
) -> None:
    life.declare("other")
    for name in ("q", "other"):
        life.client.call("Queue.Bind", queue=name, exchange="amq.fanout")
    some = [body * (1 + at % 3) for at, body in enumerate(numbered(30))]
    life.client.feed(b"".join(publish(1, body, PERSISTENT, exchange="amq.fanout") for body in some))
    life.write()
    again(life)
    assert life.get(ack=False) is not None
    life.queue("other").get(lambda: None)
    life.turns()
    life.page_out("other")
    assert life.queue("other").paged_out_count == 30
    (held,) = life.classic("q").backlog
    assert isinstance(held, MessageRange)
    assert not held.entry.batch.resident
    apply(life, Rules(max_length_bytes=10_000))
    assert life.classic("q").ready_bytes == sum(map(len, some[1:]))
    assert life.bodies() == some[1:]


def test_bytes_of_what_was_paged_out_while_it_was_out(life: Life) -> None:
    some = fill(life, 20)
    assert len(life.client.consume("q")) == 20
    for messages in life.client.connection.channels[1].unacked.ranges():
        life.store.evict(messages.entry.batch)
    apply(life, Rules(max_length_bytes=10_000))
    life.client.call("Basic.Cancel", consumer_tag="c")
    life.client.send("Basic.Nack", delivery_tag=0, multiple=True, requeue=True)
    assert life.classic("q").ready_bytes == sum(map(len, some))
    assert life.bodies() == some


def test_rules_that_come_while_a_range_is_read(life: Life) -> None:
    some = went_out(life)
    queue = life.classic("q")
    life.broker.tick()
    queue.get(lambda: None)
    assert queue.is_paging_in
    apply(life, Rules(max_length_bytes=1_000_000))
    assert (queue.paged_out_count, queue.ready_bytes) == (0, sum(map(len, some)))
    assert life.bodies() == some


@pytest.mark.parametrize("end", ["Queue.Purge", "Queue.Delete"])
def test_a_queue_that_is_emptied_while_it_is_read(life: Life, end: str) -> None:
    went_out(life)
    life.queue("q").apply(Rules(message_ttl_ms=60_000))
    assert life.client.call(end, queue="q")["message_count"] == 300
    life.turns(5)
    life.declare("q")
    late = fill(life, 5)
    assert life.bodies() == late
    life.write()
    life.crash()
    assert life.client.messages("q") == 0


def test_a_range_that_moves_while_it_is_read_is_read_where_it_is(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store's answer is nothing then, and nobody else would ask again."""
    some = went_out(life)
    queue = life.queue("q")
    page_in = life.store.page_in
    asked: list[PagedOut] = []

    def moved(
        paged_out: PagedOut, done: Callable[[Sequence[MessageRange]], None], **how: bool
    ) -> None:
        asked.append(paged_out)
        if len(asked) == 1:
            done(())
        else:
            page_in(paged_out, done, **how)

    monkeypatch.setattr(life.store, "page_in", moved)
    apply(life, Rules(message_ttl_ms=60_000))
    assert queue.paged_out_count == 0
    assert asked[0] is asked[1]
    assert life.bodies() == some


def test_counts_of_a_limit_that_went_are_not_kept(life: Life) -> None:
    life.queue("q").apply(Rules(delivery_limit=5))
    life.publish(b"a")
    reply = life.get(ack=False)
    assert reply is not None
    life.client.send("Basic.Reject", delivery_tag=1, requeue=True)
    life.write()
    assert [key for key in life.store.definitions if key[0] == Kind.DELIVERY_COUNT]
    apply(life, None)
    life.write()
    assert not [key for key in life.store.definitions if key[0] == Kind.DELIVERY_COUNT]


def test_a_policy_s_limit_counts_on_after_a_crash(life: Life) -> None:
    policy = PolicyDefinition("/", "p", "^q$", "queues", 0, {"delivery-limit": 5})
    life.broker.vhosts["/"].policies.set(policy)
    life.publish(b"a")
    seen = []
    for _ in range(3):
        reply = life.get(ack=False)
        assert reply is not None
        seen.append(reply.headers.get("x-delivery-count"))
        life.client.send("Basic.Reject", delivery_tag=reply["delivery_tag"], requeue=True)
        life.write()
        life.crash()
    assert seen == [None, 1, 2]
