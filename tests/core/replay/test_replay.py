"""Replays to new bindings of persistent exchanges: order, completeness, interruptions."""

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
    """Binds, and returns the reply once it comes."""
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


def history(life: Life) -> RetainedQueue:
    queue = life.broker.vhosts["/"].exchanges["x"].inner
    assert isinstance(queue, RetainedQueue)
    return queue


def test_the_count_is_exact(life: Life) -> None:
    declare(life, persist_messages=5)
    life.client.feed(b"".join(publish(1, body, PERSISTENT, exchange="x") for body in numbered(100)))
    assert replayed(life, **{"from": 0}) == numbered(5, 95)
    fill(life, numbered(20, 100))
    assert replayed(life, **{"from": 0}) == numbered(5, 115)
    assert history(life).log.end - history(life).log.first < 100, "what is not kept goes"


@pytest.mark.parametrize("again", [False, True])
def test_the_age_limit_is_exact(life: Life, again: bool) -> None:
    declare(life, persist_ms=10_000)
    for body in TEN:
        fill(life, [body])
        life.clock.advance(2_000)
    if again:
        life.restart()
    assert replayed(life, **{"from": 0}) == TEN[5:]


def test_new_messages_follow_replayed_ones(life: Life) -> None:
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


def test_a_repeated_binding_replays_nothing(life: Life) -> None:
    declare(life, persist_messages=10)
    fill(life, TEN)
    life.declare("q")
    bind(life, "q", tail=1)
    bind(life, "q", tail=1)
    assert life.bodies("q") == TEN[-1:]
    life.write()
    life.crash()
    assert life.bodies("q") == []


def test_full_queue_refuses_replayed_messages(life: Life) -> None:
    declare(life, persist_messages=10)
    fill(life, TEN)
    life.declare("q", arguments={"x-max-length": 4, "x-overflow": "reject-publish"})
    assert bind(life, "q", **{"from": 0}).name == "Queue.BindOk"
    assert life.bodies("q") == TEN[:4]


# -- under way: what was kept is on disk only, so that reading takes turns


def method(name: str, **fields: Any) -> bytes:
    """A frame on channel 1."""
    return frames.frame(frames.METHOD, 1, frames.method(name, **fields))


def binding(name: str, queue: Any = "q", key: Any = "", **arguments: Any) -> bytes:
    table = {f"x-{place}": value for place, value in arguments.items()}
    return method(name, queue=queue, exchange="x", routing_key=key, arguments=table)


@pytest.fixture
def stored(life: Life) -> Life:
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


def test_binding_takes_effect_while_publishing_continues() -> None:
    store = ManualStore()
    store.paging = False
    client = persistent(store, TEN)
    store.commit()
    client.publish(b"new", PERSISTENT, exchange="x")
    assert store.progress.committed < store.barrier()
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


def test_replies_keep_their_order(stored: Life) -> None:
    unread(
        stored,
        binding("Queue.Bind", key="k", **FROM),
        frames.publish_frames(1, b"new", PERSISTENT, exchange="x", routing_key="k"),
        binding("Queue.Bind", key="other"),
        method("Queue.Declare", queue="q", passive=True),
    )
    assert answers(stored) == ["Queue.BindOk", "Queue.BindOk", "Queue.DeclareOk"]
    assert stored.bodies() == [*TEN, b"new"]


def test_returns_and_confirms_do_not_wait_for_a_binding(stored: Life) -> None:
    stored.confirm()
    unread(
        stored,
        binding("Queue.Bind", key="k", **FROM),
        frames.publish_frames(1, b"lost", PERSISTENT, routing_key="nowhere", mandatory=True),
    )
    assert answers(stored) == ["Basic.Return", "Basic.Ack", "Queue.BindOk"]


@pytest.mark.parametrize("times", [2, 3])
def test_a_repeated_binding_during_its_replay(stored: Life, times: int) -> None:
    bind = binding("Queue.Bind", key="k", **FROM)
    unread(stored, bind * times)
    assert answers(stored) == ["Queue.BindOk"] * times
    fill(stored, [b"new"], key="k")
    assert stored.bodies() == [*TEN, b"new"]


def test_unbind_during_a_replay(stored: Life) -> None:
    unread(stored, binding("Queue.Bind", key="k", **FROM), binding("Queue.Unbind", key="k", **FROM))
    assert answers(stored) == ["Queue.BindOk", "Queue.UnbindOk"]
    fill(stored, [b"new"], key="k")
    assert stored.bodies() == []
    assert not stored.broker.vhosts["/"].exchanges["x"].binding_count
    assert not history(stored).replays
    assert replayed(stored, "k", **FROM) == [*TEN, b"new"]


def test_two_replays_to_a_queue_follow_each_other(stored: Life) -> None:
    fill(stored, [b"a.b"], key="a.b")
    stored.write()
    stored.crash()
    unread(
        stored,
        binding("Queue.Bind", key="#.b", **FROM),
        binding("Queue.Bind", key="a.#", tail=5),
        frames.publish_frames(1, b"new", PERSISTENT, exchange="x", routing_key="a.x.b"),
    )
    assert answers(stored) == ["Queue.BindOk", "Queue.BindOk"]
    fill(stored, [b"last"], key="a.b")
    assert stored.bodies() == [b"a.b", b"new", b"a.b", b"new", b"last"]


def test_messages_routed_by_another_binding_are_not_duplicated(stored: Life) -> None:
    bind(stored, key="*.b")
    unread(stored, binding("Queue.Bind", key="#", **FROM))
    fill_now(stored, [b"both"], "a.b")
    fill_now(stored, [b"one"], "a")
    assert answers(stored) == ["Queue.BindOk"]
    fill(stored, [b"late"], key="a.b")
    assert sorted(stored.bodies()) == sorted([*TEN, b"both", b"one", b"late"])


def test_messages_after_another_unbind_are_replayed(stored: Life) -> None:
    bind(stored, key="*.b")
    unread(stored, binding("Queue.Bind", key="#", **FROM))
    fill_now(stored, [b"both"], "a.b")
    unread(stored, binding("Queue.Unbind", key="*.b"))
    fill_now(stored, [b"mine"], "a.b")
    unread(stored, binding("Queue.Bind", key="a.*"))
    fill_now(stored, [b"both again"], "a.b")
    assert answers(stored)[0] == "Queue.BindOk"
    bodies = stored.bodies()
    assert sorted(bodies) == sorted([*TEN, b"both", b"mine", b"both again"])


def fill_now(life: Life, bodies: list[bytes], key: str) -> None:
    """Published by another client, without a turn."""
    for body in bodies:
        unread(life, frames.publish_frames(1, body, PERSISTENT, exchange="x", routing_key=key))


@pytest.mark.parametrize("what", ["queue", "exchange", "channel", "connection"])
def test_deletions_during_a_replay(stored: Life, what: str) -> None:
    other = stored.connect()
    unread(stored, binding("Queue.Bind", key="k", **FROM))
    if what == "queue":
        other.send("Queue.Delete", queue="q")
        assert answers(stored) == ["Queue.BindOk"]
    elif what == "exchange":
        other.send("Exchange.Delete", exchange="x")
        assert answers(stored) == ["Queue.BindOk"]
        assert not stored.broker.vhosts["/"].inner_queues
        assert stored.broker.persisting_queues == 0
    elif what == "channel":
        unread(stored, method("Channel.Close", reply_code=200))
        assert answers(stored) == ["Channel.CloseOk"]
    else:
        stored.client.connection.lost()
        stored.turns(10)
    vhost = stored.broker.vhosts["/"]
    bound = bool(vhost.queues["q"].bound) if "q" in vhost.queues else False
    assert bound is (what in ("channel", "connection")), "a binding outlives who asked for it"


def test_a_virtual_host_is_deleted_during_a_replay(life: Life) -> None:
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
    for _ in life.broker.vhosts["v"].deletion.delete_all():
        pass
    life.turns(5)
    assert "Queue.BindOk" in [reply.name for reply in client.come()]
    assert (life.broker.persisting_queues, len(life.broker.vhosts["v"].inner_queues)) == (0, 0)


def test_a_crash_during_a_replay_leaves_no_binding(stored: Life) -> None:
    unread(stored, binding("Queue.Bind", key="k", **FROM))
    stored.store.flush()
    stored.crash()
    assert not stored.broker.vhosts["/"].exchanges["x"].binding_count
    assert replayed(stored, "k", **FROM) == TEN


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
    held = history(life)
    counts = [0] * 4
    while held.dispatch(400):
        now = [queue.ready_count for queue in queues]
        assert all(after - before <= 100 for before, after in zip(counts, now, strict=True))
        counts = now
    assert [queue.ready_count for queue in queues] == [5_000] * 4


def test_a_replay_waits_for_the_end_of_an_alarm(stored: Life) -> None:
    stored.broker.alarms.bounds = Bounds(memory=1)
    stored.broker.alarms.measure(Reading(other_bytes=100))
    unread(stored, binding("Queue.Bind", key="k", **FROM))
    assert answers(stored) == []
    assert stored.queue("q").ready_count == 0
    stored.broker.alarms.bounds = Bounds()
    assert answers(stored) == ["Queue.BindOk"]
    assert stored.bodies() == TEN


def test_a_replay_waits_for_the_disk() -> None:
    store = ManualStore()
    store.paging = False
    client = persistent(store, TEN)
    store.commit()
    store.progress.behind_bytes = store.progress.behind_max_bytes + 1
    assert not client.send("Queue.Bind", queue="q", exchange="x", arguments={"x-from": 0})
    store.commit()
    take_turns(client.broker)
    assert not client.come()
    store.progress.behind_bytes = store.progress.behind_max_bytes
    store.commit()
    take_turns(client.broker)
    assert [reply.name for reply in client.come()] == ["Queue.BindOk"]
    assert client.broker.vhosts["/"].queues["q"].ready_count == 10


def test_retention_during_a_replay(life: Life) -> None:
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


def test_damage_leaves_offsets_unchanged(life: Life) -> None:
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


def test_cc_and_bcc_keys_match(life: Life) -> None:
    declare(life, "direct", persist_messages=10)
    fill(life, [b"cc"], key="a", headers={"CC": ["b"]})
    fill(life, [b"bcc"], key="a", headers={"BCC": ["b"]})
    fill(life, [b"not"], key="a")
    assert replayed(life, "b", **FROM) == [b"cc", b"bcc"]
    life.crash()
    assert replayed(life, "b", **FROM) == [b"cc", b"bcc"]
