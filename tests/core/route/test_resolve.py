"""Routes over several exchanges: alternates, loops, and what invalidates a route."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.route.support import FakeQueue, exchange, unbind_each
from warrenmq.core.message.model import Table
from warrenmq.core.route.exchange import Exchange
from warrenmq.core.route.registry import exchange_types
from warrenmq.core.route.resolve import resolve
from warrenmq.core.route.route import Destination, Route


class World:
    """Exchanges by name, with queues beside them."""

    def __init__(self, *exchanges: Exchange) -> None:
        self.exchanges = {exchange.name: exchange for exchange in exchanges}

    def resolve(self, name: str, *keys: str, headers: Table | None = None) -> Route:
        return resolve(
            self.exchanges[name], keys or ("k",), headers, exchange_by_name=self.exchanges.get
        )


@pytest.fixture
def queue() -> FakeQueue:
    return FakeQueue("q")


def chain(*names: str) -> World:
    """Exchanges without bindings, each the alternate of the one before."""
    following = [*names[1:], "missing"]
    return World(
        *(
            exchange("direct", name, alternate_exchange=alternate)
            for name, alternate in zip(names, following, strict=True)
        )
    )


def test_a_missing_alternate_is_logged_once(
    caplog: pytest.LogCaptureFixture, queue: FakeQueue
) -> None:
    world = chain("a", "b")
    world.resolve("a")
    world.resolve("b", "other")
    assert [record.getMessage() for record in caplog.records] == [
        "alternate exchange 'missing' of exchange 'b' in vhost '/' does not exist: unroutable "
        "messages are dropped"
    ]
    world.exchanges["b"].bind(queue, "k", {})
    world.resolve("a")
    world.exchanges["b"].alternate = "gone"
    world.resolve("a", "other")
    assert len(caplog.records) == 2


def test_a_random_choice_makes_a_route_valid_for_one_message(queue: FakeQueue) -> None:
    world = World(
        exchange("direct", "d", alternate_exchange="f"),
        exchange("fanout", "f"),
        exchange("x-random", "r"),
    )
    assert not world.resolve("d").each_message
    world.exchanges["f"].bind(world.exchanges["r"], "", {})
    assert world.resolve("d").each_message
    world.exchanges["r"].bind(queue, "", {})
    assert world.resolve("r").each_message
    world.exchanges["d"].bind(queue, "k", {})
    assert not world.resolve("d").each_message


def test_a_change_of_any_exchange_on_the_way_ends_the_route(queue: FakeQueue) -> None:
    one, two, alternate = (
        exchange("fanout", "1"),
        exchange("fanout", "2", alternate_exchange="3"),
        exchange("fanout", "3"),
    )
    one.bind(two, "", {})
    world = World(one, two, alternate)
    for changing in (one, two, alternate):
        deaths: list[Exchange] = []
        route = world.resolve("1")
        route.on_dead = [partial(deaths.append, changing)]
        assert not route.dead
        changing.bind(queue, "", {})
        assert deaths == [changing]
        assert not any(passed.routes for passed in (one, two, alternate))
        changing.unbind(queue, "", {})


def test_every_way_to_lose_a_binding_ends_the_route(queue: FakeQueue) -> None:
    fanout, lost = exchange("fanout", "f"), list[str]()
    for lose in (
        lambda: fanout.unbind(queue, "k", {}),
        lambda: unbind_each(fanout, queue),
        lambda: fanout.end(),
    ):
        fanout.bind(queue, "k", {})
        route = World(fanout).resolve("f")
        route.on_dead = [partial(lost.append, "one")]
        lose()
        assert route.dead
    assert lost == ["one"] * 3


def test_a_call_that_changes_nothing_ends_no_route(queue: FakeQueue) -> None:
    fanout = exchange("fanout", "f")
    fanout.bind(queue, "", {})
    route = World(fanout).resolve("f")
    fanout.bind(queue, "", {})
    fanout.unbind(queue, "other", {})
    unbind_each(fanout, FakeQueue("r"))
    assert not route.dead


def test_a_deleted_exchange_routes_nothing_while_it_has_bindings(queue: FakeQueue) -> None:
    fanout, alternate = exchange("fanout", "f"), exchange("fanout", "alternate")
    source = exchange("fanout", "source", alternate_exchange="alternate")
    fanout.bind(queue, "", {})
    source.bind(fanout, "", {})
    alternate.bind(FakeQueue("missed"), "", {})
    world = World(fanout, source, alternate)
    route = world.resolve("source")
    assert route.queues == (queue,)
    fanout.end()
    assert route.dead
    assert [found.name for found in world.resolve("source").queues] == ["missed"]


def test_an_unwatched_route_is_not_registered(queue: FakeQueue) -> None:
    fanout, onward = exchange("fanout", "f"), exchange("direct", "d")
    fanout.bind(queue, "", {})
    for source in (fanout, onward):
        resolve(source, ("k",), None, exchange_by_name=lambda _: None, watched=False)
        assert source.routes is None


QUEUES = [FakeQueue(f"q{number}") for number in range(4)]
TYPES = ["direct", "fanout", "topic", "headers", "x-modulus-hash"]
TABLES: list[Table] = [{}, {"a": 1}, {"x-match": "any", "a": 1}, {"x-match": "any"}]
SIZE = 5


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """A few exchanges with random bindings, loops and alternates, some of them missing."""
    exchanges = []
    for number in range(SIZE):
        alternate = draw(st.none() | st.integers(0, SIZE))
        arguments = {} if alternate is None else {"alternate_exchange": str(alternate)}
        exchanges.append(exchange(draw(st.sampled_from(TYPES)), str(number), **arguments))
    targets: list[Destination] = [*QUEUES, *exchanges]
    ends = st.tuples(
        st.sampled_from(exchanges),
        st.sampled_from(targets),
        st.sampled_from(["k", "#", "a.k", "other"]),
        st.sampled_from(TABLES),
    )
    for source, target, key, arguments_table in draw(st.lists(ends, max_size=12)):
        source.bind(target, key, arguments_table)
    return World(*exchanges)


def naive(world: World, keys: Sequence[str], headers: Table | None) -> tuple[set[str], set[str]]:
    """Names of the queues reached from exchange 0 and of the exchanges passed, by fixpoint."""
    passed, reached = {"0"}, set[Destination]()
    while True:
        before = len(passed)
        for current in [world.exchanges[name] for name in sorted(passed)]:
            own = keys[:1] if current.one_key else keys
            found = {one for key in own for one in current.match(key, headers)}
            reached |= found
            if not found and current.alternate in world.exchanges:
                passed.add(current.alternate)
        passed |= {one.name for one in reached if isinstance(one, Exchange)}
        if len(passed) == before:
            return {one.name for one in reached if not isinstance(one, Exchange)}, passed


@given(
    worlds(),
    st.lists(st.sampled_from(["k", "a.k", "z"]), min_size=1, max_size=3),
    st.sampled_from([None, {"a": 1}]),
)
def test_random_worlds_against_a_naive_search(
    world: World, keys: list[str], headers: Table | None
) -> None:
    queues, passed = naive(world, keys, headers)
    route = world.resolve("0", *keys, headers=headers)
    names = [queue.name for queue in route.queues]
    assert len(names) == len(set(names))
    assert set(names) == queues
    holders = {one.name for one in world.exchanges.values() if one.routes}
    assert holders == passed
    assert route.uses_key == any(world.exchanges[name].uses_key for name in passed)
    assert route.uses_headers == any(world.exchanges[name].uses_headers for name in passed)
    route.release()
    assert not any(one.routes for one in world.exchanges.values())


@pytest.mark.parametrize("type_name", sorted(exchange_types.keys() - {"x-delayed-message"}))
def test_a_deleted_queue_gets_nothing_while_it_is_bound(type_name: str) -> None:
    """One that chooses among its destinations chooses another."""
    source, deleted, queue = exchange(type_name, "s"), FakeQueue("deleted"), FakeQueue("q")
    source.bind(deleted, "1", {})
    source.bind(queue, "1", {})
    world = World(source)
    world.resolve("s", "1")
    deleted.deleted = True
    source.changed()
    for _ in range(20):
        assert world.resolve("s", "1").queues == (queue,)
        assert world.resolve("s", "1", "1").queues == (queue,)
