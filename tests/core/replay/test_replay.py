"""Persistent exchanges: what a new binding gets of the past, and that it misses nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance import frames
from tests.core.life import PERSISTENT, Life, numbered
from tests.support.amqp import Client, Reply, make_broker, publish, take_turns
from tests.support.manual_store import ManualStore
from warrenmq.core.queue.retained import RetainedQueue
from warrenmq.core.resources.alarms import Bounds, Reading

TEN = numbered(10, 1)


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    life = Life(tmp_path / "log")
    yield life
    life.abandon()


def declare(life: Life, kind: str = "fanout", **arguments: Any) -> None:
    table = {f"x-{name.replace('_', '-')}": value for name, value in arguments.items()}
    reply = life.client.call(
        "Exchange.Declare", exchange="x", exchange_type=kind, durable=True, arguments=table
    )
    assert reply.name == "Exchange.DeclareOk", reply


def fill(life: Life, bodies: list[bytes], key: str = "", headers: Any = None) -> None:
    properties = PERSISTENT if headers is None else {**PERSISTENT, "headers": headers}
    for body in bodies:
        life.client.publish(body, properties, exchange="x", routing_key=key)
    life.turns()


def bind(life: Life, queue: Any = "q", key: Any = "", **arguments: Any) -> Reply:
    """Gives the answer, however long it takes."""
    table = {f"x-{name}": value for name, value in arguments.items()}
    replies = life.client.send(
        "Queue.Bind", queue=queue, exchange="x", routing_key=key, arguments=table
    )
    for _ in range(50):
        if replies:
            break
        life.turns(1)
        replies = life.client.come()
    (reply,) = replies
    return reply


def replayed(life: Life, key: Any = "", **arguments: Any) -> list[bytes]:
    """What a new queue gets at once."""
    name = f"q{len(life.broker.vhosts['/'].queues)}"
    life.declare(name)
    assert bind(life, name, key, **arguments).name == "Queue.BindOk"
    return life.bodies(name)


def kept(life: Life) -> RetainedQueue:
    queue = life.broker.vhosts["/"].exchanges["x"].inner
    assert isinstance(queue, RetainedQueue)
    return queue


@pytest.mark.parametrize(
    ("arguments", "numbers"),
    [
        ({"head": 3}, [1, 2, 3]),
        ({"head": -3}, [1, 2, 3, 4, 5, 6, 7]),
        ({"tail": 3}, [8, 9, 10]),
        ({"tail": -3}, [4, 5, 6, 7, 8, 9, 10]),
        ({"head": 0}, []),
        ({"tail": 0}, []),
        ({"head": 10}, list(range(1, 11))),
        ({"head": 11}, list(range(1, 11))),
        ({"head": -10}, []),
        ({"head": -11}, []),
        ({"tail": 10}, list(range(1, 11))),
        ({"tail": 11}, list(range(1, 11))),
        ({"tail": -10}, []),
        ({"tail": -11}, []),
        ({}, []),
    ],
)
@pytest.mark.parametrize("cold", [False, True])
def test_the_ten_message_table_of_head_and_tail(
    life: Life, arguments: dict[str, int], numbers: list[int], cold: bool
) -> None:
    declare(life, persist_messages=10)
    fill(life, TEN)
    if cold:
        life.crash()
    assert [int(body) for body in replayed(life, **arguments)] == numbers


def test_a_consumer_logs_its_offset_and_binds_again_from_there(life: Life) -> None:
    declare(life, persist_messages=100)
    life.declare("first")
    bind(life, "first")
    fill(life, TEN)
    seen = [life.get("first") for _ in range(4)]
    logged = [reply.headers["x-offset"] for reply in seen if reply is not None]
    assert logged == [0, 1, 2, 3]
    life.client.call("Queue.Delete", queue="first")
    fill(life, numbered(2, 11))
    life.crash()
    # The last one that was logged comes again; one more, and it does not.
    assert [int(body) for body in replayed(life, **{"from": logged[-1]})] == list(range(4, 13))
    assert [int(body) for body in replayed(life, **{"from": logged[-1] + 1})] == list(range(5, 13))


@pytest.mark.parametrize("offset", [0, 99, 2**40])
def test_from_0_or_an_unknown_offset_is_everything(life: Life, offset: int) -> None:
    declare(life, persist_messages=10)
    fill(life, TEN)
    assert replayed(life, **{"from": offset}) == TEN


def test_from_the_end_is_nothing(life: Life) -> None:
    declare(life, persist_messages=10)
    fill(life, TEN)
    assert replayed(life, **{"from": 10}) == []


def test_an_offset_that_was_dropped_is_everything_that_is_left(life: Life) -> None:
    declare(life, persist_messages=3)
    fill(life, TEN)
    assert replayed(life, **{"from": 2}) == TEN[7:]


def test_copies_carry_their_offset_and_nothing_else_changes(life: Life) -> None:
    declare(life, persist_messages=10)
    fill(life, [b"one", b"two"], key="k", headers={"a": 1})
    life.declare("q")
    bind(life, "q", tail=1)
    reply = life.get("q")
    assert reply is not None and reply.properties is not None
    assert (reply.body, reply["exchange"], reply["routing_key"]) == (b"two", "x", "k")
    assert reply.headers == {"a": 1, "x-offset": 1}
    assert reply.properties.delivery_mode == 2


def test_what_is_kept_without_any_binding(life: Life) -> None:
    """And as it is kept, it has been routed: nobody is told otherwise."""
    declare(life, persist_messages=10)
    replies = life.client.publish(b"one", PERSISTENT, exchange="x", mandatory=True)
    assert not [reply for reply in replies if reply.name == "Basic.Return"]
    assert replayed(life, tail=5) == [b"one"]


def test_the_count_is_exact(life: Life) -> None:
    declare(life, persist_messages=5)
    life.client.feed(b"".join(publish(1, body, PERSISTENT, exchange="x") for body in numbered(100)))
    assert replayed(life, **{"from": 0}) == numbered(5, 95)
    fill(life, numbered(20, 100))
    assert replayed(life, **{"from": 0}) == numbered(5, 115)
    assert kept(life).log.end - kept(life).log.first < 100, "what is not kept goes"


@pytest.mark.parametrize("again", [False, True])
def test_the_time_is_exact(life: Life, again: bool) -> None:
    declare(life, persist_ms=10_000)
    for body in TEN:
        fill(life, [body])
        life.clock.advance(2_000)
    if again:
        life.restart()
    assert replayed(life, **{"from": 0}) == TEN[5:]


def test_only_what_the_binding_would_have_got(life: Life) -> None:
    declare(life, "topic", persist_messages=100)
    for body in TEN:
        fill(life, [body], key=f"k.{int(body) % 2}")
    odd = [body for body in TEN if int(body) % 2]
    assert replayed(life, key="k.1", **{"from": 0}) == odd
    assert replayed(life, key="k.1", tail=2) == odd[-2:]
    assert replayed(life, key="k.1", tail=-2) == odd[2:]
    assert replayed(life, key="k.1", head=2) == odd[:2]
    assert replayed(life, key="k.1", head=-2) == odd[:-2]
    assert replayed(life, key="none.*", tail=2) == []


def test_headers_decide_too(life: Life) -> None:
    declare(life, "headers", persist_messages=100)
    for body in TEN:
        fill(life, [body], headers={"n": int(body) % 3})
    life.declare("q")
    arguments = {"n": 1, "x-tail": 2}
    life.client.call("Queue.Bind", queue="q", exchange="x", arguments=arguments)
    assert life.bodies("q") == [TEN[6], TEN[9]]


def test_what_is_published_while_old_ones_are_read_comes_after_them(life: Life) -> None:
    declare(life, persist_messages=10_000)
    fill(life, numbered(3_000))
    life.crash()
    life.start()
    life.declare("q")
    client = life.client
    found = client.send("Queue.Bind", queue="q", exchange="x", arguments={"x-from": 0})
    assert not found, "the binding waits for the disk"
    fill(life, numbered(5, 3_000))
    life.wait(lambda: any(reply.name == "Queue.BindOk" for reply in client.come()))
    fill(life, numbered(5, 3_005))
    queue = life.queue("q")
    assert queue.ready_count == 3_010
    reader = life.connect()
    seen = reader.consume("q", "c", no_ack=True)
    life.wait(lambda: not queue.ready_count)
    seen += reader.come()
    bodies = [reply.body for reply in seen if reply.name == "Basic.Deliver"]
    assert bodies == numbered(3_010)


def test_a_second_bind_of_the_same_brings_nothing(life: Life) -> None:
    declare(life, persist_messages=10)
    fill(life, TEN)
    life.declare("q")
    bind(life, "q", tail=1)
    bind(life, "q", tail=1)
    assert life.bodies("q") == TEN[-1:]
    life.write()
    life.crash()
    assert life.bodies("q") == []


def test_bindings_of_a_restarted_server_bring_nothing(life: Life) -> None:
    declare(life, persist_messages=10)
    fill(life, TEN)
    life.declare("q")
    bind(life, "q", tail=3)
    life.bodies("q")
    life.restart()
    assert life.queue("q").ready_count == 0
    fill(life, [b"new"])
    assert life.bodies("q") == [b"new"]


def test_a_deleted_exchange_takes_what_it_kept_with_it(life: Life) -> None:
    declare(life, persist_messages=10)
    fill(life, TEN)
    life.client.call("Exchange.Delete", exchange="x")
    life.write()
    assert not life.broker.vhosts["/"].inner_queues
    life.crash()
    declare(life, persist_messages=10)
    assert replayed(life, **{"from": 0}) == []


def test_a_queue_that_refuses(life: Life) -> None:
    declare(life, persist_messages=10)
    fill(life, TEN)
    life.declare("q", arguments={"x-max-length": 4, "x-overflow": "reject-publish"})
    assert bind(life, "q", **{"from": 0}).name == "Queue.BindOk"
    assert life.bodies("q") == TEN[:4]


def test_no_binding_to_an_exchange(life: Life) -> None:
    declare(life, persist_messages=10)
    reply = life.client.call("Exchange.Bind", destination="amq.fanout", source="x")
    assert (reply.name, reply["reply_code"]) == ("Channel.Close", 403)
    assert "exchange 'x' in vhost '/' keeps messages" in reply["reply_text"]


def test_another_exchange_may_feed_it(life: Life) -> None:
    declare(life, persist_messages=10)
    assert (
        life.client.call("Exchange.Bind", destination="x", source="amq.fanout").name
        == "Exchange.BindOk"
    )
    life.client.publish(b"one", PERSISTENT, exchange="amq.fanout")
    assert replayed(life, tail=1) == [b"one"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"x-persist-messages": 0}, "0 is out of range"),
        ({"x-persist-messages": -1}, "-1 is out of range"),
        ({"x-persist-messages": "5"}, "a whole number is needed"),
        ({"x-persist-ms": 0}, "0 is out of range"),
        ({"x-persist-ms": 1.5}, "a whole number is needed"),
    ],
)
def test_bad_arguments_of_the_exchange(life: Life, arguments: dict[str, Any], text: str) -> None:
    reply = life.client.call(
        "Exchange.Declare", exchange="x", exchange_type="fanout", arguments=arguments
    )
    assert (reply.name, reply["reply_code"]) == ("Channel.Close", 406)
    assert text in reply["reply_text"]
    assert "for exchange 'x' in vhost '/'" in reply["reply_text"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"head": 1, "tail": 1}, "x-head and x-tail of one binding exclude each other"),
        ({"head": "1"}, "invalid x-head '1': a whole number is needed"),
        ({"from": -1}, "invalid x-from '-1': an offset is 0 or more"),
    ],
)
def test_bad_arguments_of_the_binding(life: Life, arguments: dict[str, Any], text: str) -> None:
    declare(life, persist_messages=10)
    life.declare("q")
    reply = bind(life, "q", **arguments)
    assert (reply.name, reply["reply_code"]) == ("Channel.Close", 406)
    assert text in reply["reply_text"]


def test_not_together_with_delays(life: Life) -> None:
    reply = life.client.call(
        "Exchange.Declare", exchange="x", exchange_type="x-delayed-message",
        arguments={"x-delayed-type": "fanout", "x-persist-messages": 1},
    )  # fmt: skip
    assert (reply.name, reply["reply_code"]) == ("Channel.Close", 406)


def test_transient_exchanges_keep_for_as_long_as_they_live(life: Life) -> None:
    life.client.call(
        "Exchange.Declare", exchange="x", exchange_type="fanout",
        arguments={"x-persist-messages": 5},
    )  # fmt: skip
    fill(life, TEN)
    assert replayed(life, tail=2) == TEN[-2:]
    life.write()
    life.crash()
    assert not life.broker.vhosts["/"].inner_queues


class TestRecentHistory:
    """x-recent-history."""

    @pytest.mark.parametrize("again", [False, True])
    def test_each_new_binding_gets_the_last_messages(self, life: Life, again: bool) -> None:
        declare(life, "x-recent-history", recent_history_length=3)
        fill(life, TEN)
        if again:
            life.crash()
        assert replayed(life, key="any") == TEN[-3:]

    def test_20_unless_told(self, life: Life) -> None:
        declare(life, "x-recent-history")
        fill(life, numbered(30))
        assert replayed(life) == numbered(20, 10)

    def test_what_is_not_to_be_stored(self, life: Life) -> None:
        declare(life, "x-recent-history")
        fill(life, [b"one"])
        fill(life, [b"two"], headers={"x-recent-history-no-store": True})
        fill(life, [b"three"], headers={"x-recent-history-no-store": False})
        assert replayed(life) == [b"one", b"three"]

    def test_copies_are_as_they_were(self, life: Life) -> None:
        declare(life, "x-recent-history")
        fill(life, [b"one"], headers={"a": 1})
        life.declare("q")
        bind(life)
        reply = life.get()
        assert reply is not None
        assert reply.headers == {"a": 1}

    @pytest.mark.parametrize("length", [0, -1, "5", True])
    def test_bad_lengths_are_refused(self, life: Life, length: object) -> None:
        reply = life.client.call(
            "Exchange.Declare", exchange="x", exchange_type="x-recent-history",
            arguments={"x-recent-history-length": length},
        )  # fmt: skip
        assert (reply.name, reply["reply_code"]) == ("Channel.Close", 406)


# -- under way: what was kept is on disk only, so that reading takes turns


def method(name: str, **fields: Any) -> bytes:
    """A frame on channel 1."""
    return frames.frame(frames.METHOD, 1, frames.method(name, **fields))


def binding(name: str, queue: Any = "q", key: Any = "", **arguments: Any) -> bytes:
    table = {f"x-{place}": value for place, value in arguments.items()}
    return method(name, queue=queue, exchange="x", routing_key=key, arguments=table)


@pytest.fixture
def cold(life: Life) -> Life:
    """Ten messages, of which nothing is in memory, and a queue."""
    declare(life, "topic", persist_messages=100)
    fill(life, TEN, key="k")
    life.declare("q")
    life.write()
    life.crash()
    return life


def unread(life: Life, *sent: bytes) -> None:
    """Sends it in one read, and takes no turn."""
    life.broker.tick()
    life.client.connection.receive(b"".join(sent))


def answers(life: Life) -> list[str]:
    life.turns(10)
    return [reply.name for reply in life.client.come()]


FROM = {"from": 0}


def test_a_binding_comes_into_force_while_publishing_goes_on() -> None:
    """There is always something that is not on disk yet."""
    store = ManualStore()
    store.paging = False
    client = persistent(store, TEN)
    store.commit()
    client.publish(b"new", PERSISTENT, exchange="x")
    assert store.committed < store.barrier()
    reply = client.call("Queue.Bind", queue="q", exchange="x", arguments={"x-from": 0})
    assert reply.name == "Queue.BindOk"
    assert client.broker.vhosts["/"].queues["q"].ready_count == 11


def persistent(store: ManualStore, bodies: list[bytes]) -> Client:
    """A client of a broker with these messages in an exchange, and a queue."""
    client = Client(make_broker(store))
    arguments = {"x-persist-messages": 100}
    client.call(
        "Exchange.Declare", exchange="x", exchange_type="fanout", durable=True, arguments=arguments
    )
    client.declare("q", durable=True)
    for body in bodies:
        client.publish(body, PERSISTENT, exchange="x")
    return client


def test_answers_come_in_order(cold: Life) -> None:
    unread(
        cold,
        binding("Queue.Bind", key="k", **FROM),
        frames.publish_frames(1, b"new", PERSISTENT, exchange="x", routing_key="k"),
        binding("Queue.Bind", key="other"),
        method("Queue.Declare", queue="q", passive=True),
    )
    assert answers(cold) == ["Queue.BindOk", "Queue.BindOk", "Queue.DeclareOk"]
    assert cold.bodies() == [*TEN, b"new"]


def test_a_client_that_does_not_wait_is_not_told(cold: Life) -> None:
    unread(
        cold,
        method(
            "Queue.Bind", queue="q", exchange="x", routing_key="k", nowait=True,
            arguments={"x-from": 0},
        ),
        method("Queue.Declare", queue="q", passive=True),
    )  # fmt: skip
    assert answers(cold) == ["Queue.DeclareOk"]
    assert cold.bodies() == TEN


def test_returns_and_confirms_do_not_wait_for_a_binding(cold: Life) -> None:
    cold.confirm()
    unread(
        cold,
        binding("Queue.Bind", key="k", **FROM),
        frames.publish_frames(1, b"lost", PERSISTENT, routing_key="nowhere", mandatory=True),
    )
    assert answers(cold) == ["Basic.Return", "Basic.Ack", "Queue.BindOk"]


@pytest.mark.parametrize("times", [2, 3])
def test_the_same_binding_again_while_it_is_on_its_way(cold: Life, times: int) -> None:
    bind = binding("Queue.Bind", key="k", **FROM)
    unread(cold, bind * times)
    assert answers(cold) == ["Queue.BindOk"] * times
    fill(cold, [b"new"], key="k")
    assert cold.bodies() == [*TEN, b"new"]


def test_a_binding_that_is_taken_back_while_it_is_on_its_way(cold: Life) -> None:
    unread(cold, binding("Queue.Bind", key="k", **FROM), binding("Queue.Unbind", key="k", **FROM))
    assert answers(cold) == ["Queue.BindOk", "Queue.UnbindOk"]
    fill(cold, [b"new"], key="k")
    assert cold.bodies() == []
    assert not cold.broker.vhosts["/"].exchanges["x"].binding_count
    assert not kept(cold).replays
    assert replayed(cold, "k", **FROM) == [*TEN, b"new"]


def test_another_binding_that_is_taken_back_changes_nothing(cold: Life) -> None:
    unread(
        cold, binding("Queue.Bind", key="k", **FROM), binding("Queue.Unbind", key="other", **FROM)
    )
    assert answers(cold) == ["Queue.BindOk", "Queue.UnbindOk"]
    assert cold.bodies() == TEN


def test_two_bindings_of_a_queue_come_one_after_the_other(cold: Life) -> None:
    """The second as if it had been asked for when the first was in force."""
    fill(cold, [b"a.b"], key="a.b")
    cold.write()
    cold.crash()
    unread(
        cold,
        binding("Queue.Bind", key="#.b", **FROM),
        binding("Queue.Bind", key="a.#", tail=5),
        frames.publish_frames(1, b"new", PERSISTENT, exchange="x", routing_key="a.x.b"),
    )
    assert answers(cold) == ["Queue.BindOk", "Queue.BindOk"]
    fill(cold, [b"last"], key="a.b")
    assert cold.bodies() == [b"a.b", b"new", b"a.b", b"new", b"last"]


def test_what_another_binding_brings_meanwhile_comes_once(cold: Life) -> None:
    bind(cold, key="*.b")
    unread(cold, binding("Queue.Bind", key="#", **FROM))
    fill_now(cold, [b"both"], "a.b")
    fill_now(cold, [b"one"], "a")
    assert answers(cold) == ["Queue.BindOk"]
    fill(cold, [b"late"], key="a.b")
    assert sorted(cold.bodies()) == sorted([*TEN, b"both", b"one", b"late"])


def test_what_another_binding_no_longer_brings_is_not_missed(cold: Life) -> None:
    bind(cold, key="*.b")
    unread(cold, binding("Queue.Bind", key="#", **FROM))
    fill_now(cold, [b"both"], "a.b")
    unread(cold, binding("Queue.Unbind", key="*.b"))
    fill_now(cold, [b"mine"], "a.b")
    unread(cold, binding("Queue.Bind", key="a.*"))
    fill_now(cold, [b"both again"], "a.b")
    assert answers(cold)[0] == "Queue.BindOk"
    bodies = cold.bodies()
    assert sorted(bodies) == sorted([*TEN, b"both", b"mine", b"both again"])


def fill_now(life: Life, bodies: list[bytes], key: str) -> None:
    """Published by another client, without a turn."""
    for body in bodies:
        unread(life, frames.publish_frames(1, body, PERSISTENT, exchange="x", routing_key=key))


@pytest.mark.parametrize("what", ["queue", "exchange", "channel", "connection"])
def test_an_end_while_it_is_on_its_way(cold: Life, what: str) -> None:
    other = cold.connect()
    unread(cold, binding("Queue.Bind", key="k", **FROM))
    if what == "queue":
        other.send("Queue.Delete", queue="q")
        assert answers(cold) == ["Queue.BindOk"]
    elif what == "exchange":
        other.send("Exchange.Delete", exchange="x")
        assert answers(cold) == ["Queue.BindOk"]
        assert not cold.broker.vhosts["/"].inner_queues
        assert cold.broker.always_kept == 0
    elif what == "channel":
        unread(cold, method("Channel.Close", reply_code=200))
        assert answers(cold) == ["Channel.CloseOk"]
    else:
        cold.client.connection.lost()
        cold.turns(10)
    vhost = cold.broker.vhosts["/"]
    bound = bool(vhost.queues["q"].bound) if "q" in vhost.queues else False
    assert bound is (what in ("channel", "connection")), "a binding outlives who asked for it"


def test_a_virtual_host_ends_while_it_is_on_its_way(life: Life) -> None:
    life.broker.add_vhost("v")
    life.broker.users.set_permissions("guest", "v", ".*", ".*", ".*")
    client = Client(life.broker, vhost="v")
    arguments = {"x-persist-messages": 10}
    client.call(
        "Exchange.Declare", exchange="x", exchange_type="fanout", durable=True, arguments=arguments
    )
    client.declare("q", durable=True)
    for body in TEN:
        client.publish(body, PERSISTENT, exchange="x")
    life.write()
    (held,) = life.broker.vhosts["v"].inner_queues.values()
    list(held.page_out(0, transient=False))
    life.broker.tick()
    client.connection.receive(binding("Queue.Bind", **FROM))
    for _ in life.broker.vhosts["v"].clear():
        pass
    life.turns(5)
    assert "Queue.BindOk" in [reply.name for reply in client.come()]
    assert (life.broker.always_kept, len(life.broker.vhosts["v"].inner_queues)) == (0, 0)


def test_a_crash_on_the_way_leaves_no_binding(cold: Life) -> None:
    unread(cold, binding("Queue.Bind", key="k", **FROM))
    cold.store.flush()
    cold.crash()
    assert not cold.broker.vhosts["/"].exchanges["x"].binding_count
    assert replayed(cold, "k", **FROM) == TEN


# -- what it must not do to others


def test_a_turn_replays_a_part(life: Life) -> None:
    declare(life, persist_messages=100_000)
    for _ in range(10):
        life.client.feed(frames.publish_frames(1, b"x", PERSISTENT, exchange="x") * 1_000)
    for name in ("a", "b", "c", "d"):
        life.declare(name)
    for name in ("a", "b", "c", "d"):
        unread(life, binding("Queue.Bind", name, tail=5_000))
    queues = [life.queue(name) for name in ("a", "b", "c", "d")]
    held = kept(life)
    counts = [0] * 4
    while held.dispatch(400):
        now = [queue.ready_count for queue in queues]
        assert all(after - before <= 100 for before, after in zip(counts, now, strict=True))
        counts = now
    assert [queue.ready_count for queue in queues] == [5_000] * 4


def test_it_waits_for_the_end_of_an_alarm_as_publishers_do(cold: Life) -> None:
    cold.broker.alarms.bounds = Bounds(memory=1)
    cold.broker.alarms.measure(Reading(other_bytes=100))
    unread(cold, binding("Queue.Bind", key="k", **FROM))
    assert answers(cold) == []
    assert cold.queue("q").ready_count == 0
    cold.broker.alarms.bounds = Bounds()
    assert answers(cold) == ["Queue.BindOk"]
    assert cold.bodies() == TEN


def test_it_waits_for_the_disk_as_publishers_do() -> None:
    store = ManualStore()
    store.paging = False
    client = persistent(store, TEN)
    store.commit()
    store.behind_bytes = store.behind_max_bytes + 1
    assert not client.send("Queue.Bind", queue="q", exchange="x", arguments={"x-from": 0})
    store.commit()
    take_turns(client.broker)
    assert not client.come()
    store.behind_bytes = store.behind_max_bytes
    store.commit()
    take_turns(client.broker)
    assert [reply.name for reply in client.come()] == ["Queue.BindOk"]
    assert client.broker.vhosts["/"].queues["q"].ready_count == 10


def test_retention_while_it_is_on_its_way(life: Life) -> None:
    declare(life, persist_messages=10)
    fill(life, TEN)
    life.declare("q")
    life.write()
    life.crash()
    unread(life, binding("Queue.Bind", **FROM))
    for body in numbered(40, 11):
        unread(life, frames.publish_frames(1, body, PERSISTENT, exchange="x"))
    assert answers(life) == ["Queue.BindOk"]
    bodies = [int(body) for body in life.bodies()]
    assert bodies == list(range(bodies[0], 51))


def test_damage_costs_what_is_damaged_and_no_offset(life: Life) -> None:
    declare(life, persist_messages=10)
    fill(life, TEN)
    life.stop()
    for name in life.files():
        path = life.directory / name
        path.write_bytes(path.read_bytes().replace(b"000003", b"x00003"))
    life.open()
    fill(life, [b"new"])
    assert replayed(life, **{"from": 1}) == [*TEN[1:2], *TEN[3:], b"new"]
    life.declare("q")
    bind(life, "q", tail=1)
    reply = life.get("q")
    assert reply is not None and reply.headers["x-offset"] == 10


# -- what messages are like


def test_large_messages_are_cut_for_each_reader(life: Life) -> None:
    declare(life, persist_messages=10)
    bodies = [b"%d" % number * 500_000 for number in range(3)]
    fill(life, bodies)
    life.declare("q")
    bind(life, "q", **FROM)
    reader = Client(life.broker, frame_max=4_096)
    found = [reply for reply in reader.consume("q", no_ack=True) if reply.name == "Basic.Deliver"]
    assert [reply.body for reply in found] == bodies
    life.crash()
    assert replayed(life, **FROM) == bodies


def test_copies_to_other_keys_count(life: Life) -> None:
    declare(life, "direct", persist_messages=10)
    fill(life, [b"cc"], key="a", headers={"CC": ["b"]})
    fill(life, [b"bcc"], key="a", headers={"BCC": ["b"]})
    fill(life, [b"not"], key="a")
    assert replayed(life, "b", **FROM) == [b"cc", b"bcc"]
    life.crash()
    assert replayed(life, "b", **FROM) == [b"cc", b"bcc"]


def test_what_expires_expires_in_the_queue(life: Life) -> None:
    """The exchange keeps it; its copy has all of its time again."""
    declare(life, persist_messages=10)
    life.client.publish(b"one", {**PERSISTENT, "expiration": "5000"}, exchange="x")
    life.clock.advance(60_000)
    life.turns()
    life.declare("q")
    bind(life, "q", **FROM)
    life.turns(1, each_ms=4_000)
    assert life.queue("q").ready_count == 1
    life.turns(2, each_ms=4_000)
    assert life.queue("q").ready_count == 0


def test_a_stream_may_be_bound(life: Life) -> None:
    declare(life, persist_messages=10)
    fill(life, TEN)
    life.declare("s", arguments={"x-queue-type": "stream"})
    assert bind(life, "s", tail=3).name == "Queue.BindOk"
    assert life.queue("s").ready_count == 3


def test_an_alternate_gets_what_finds_no_queue(life: Life) -> None:
    """Keeping a message is no route for it; nor is it unroutable."""
    life.client.call(
        "Exchange.Declare", exchange="x", exchange_type="direct", durable=True,
        arguments={"x-persist-messages": 5, "alternate-exchange": "amq.fanout"},
    )  # fmt: skip
    life.declare("q")
    life.client.call("Queue.Bind", queue="q", exchange="amq.fanout")
    fill(life, [b"one"], key="k")
    assert life.bodies("q") == [b"one"]
    assert replayed(life, "k", **FROM) == [b"one"]


def test_it_is_said_once_how_much_recent_history_keeps(life: Life) -> None:
    reply = life.client.call(
        "Exchange.Declare", exchange="x", exchange_type="x-recent-history",
        arguments={"x-persist-messages": 5},
    )  # fmt: skip
    assert (reply.name, reply["reply_code"]) == ("Channel.Close", 406)
    assert "x-persist-messages" in reply["reply_text"]
