"""The ids that a queue has seen, against a plain model; time and disk are the test's own."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warrenmq.core.clock import ManualClock
from warrenmq.core.definitions.facts import Facts, queue_owner
from warrenmq.core.errors import ChannelError
from warrenmq.core.message.batch import SingleMessage, envelope
from warrenmq.core.message.deduplication import CACHE_TTL_MAX_MS, Deduplication
from warrenmq.core.message.model import FieldValue, Properties, Table
from warrenmq.core.queue.deduplication import SeenIds
from warrenmq.core.store.memory import MemoryStore
from warrenmq.core.wire import properties as wire

OWNER = queue_owner(5)


@dataclass
class House:
    """What lasts of it is in `store`."""

    clock: ManualClock = field(default_factory=ManualClock)
    store: MemoryStore = field(default_factory=MemoryStore)

    def __post_init__(self) -> None:
        self.facts = Facts(self.store)
        self.facts.collect()

    @property
    def now_ms(self) -> int:
        return self.clock.now_ms()

    def ids(self, size: int = 3, ttl_ms: int | None = None, *, durable: bool = True) -> SeenIds:
        return SeenIds(Deduplication(size, ttl_ms, "id"), self, OWNER if durable else None)

    def restarted(self) -> House:
        self.clock.restart()
        return House(self.clock, self.store)


def message(value: FieldValue, *, persistent: bool = True, **headers: FieldValue) -> SingleMessage:
    table: Table = {"id": value, **{name.replace("_", "-"): one for name, one in headers.items()}}
    raw = wire.encode(Properties(headers=table, delivery_mode=2 if persistent else None))
    attributes = wire.read_attributes(raw, 0, len(raw))
    return SingleMessage(envelope("", "q"), raw, b"", 1, attributes, 0)


def offer(ids: SeenIds, batch: SingleMessage) -> bool:
    """Whether it was taken in."""
    if ids.has_seen(batch):
        return False
    ids.remember(batch)
    return True


def test_what_came_before_is_dropped() -> None:
    ids = House().ids()
    assert [offer(ids, message(value)) for value in ("a", "b", "a", 5, 5.0)] == [
        True, True, False, True, False,
    ]  # fmt: skip


def test_without_an_id_nothing_is_dropped() -> None:
    ids = House().ids()
    assert all(offer(ids, message(None)) for _ in range(3))
    assert len(ids) == 0


def test_it_remembers_so_many() -> None:
    ids = House().ids(size=3)
    assert all(offer(ids, message(number)) for number in range(10))
    assert len(ids) == 3
    assert [offer(ids, message(number)) for number in (7, 8, 9)] == [False] * 3
    assert offer(ids, message(6)), (
        "the oldest goes first, and one that is dropped stays where it is"
    )
    assert [offer(ids, message(number)) for number in (8, 9, 6)] == [False] * 3
    assert offer(ids, message(7))


def test_it_remembers_for_so_long() -> None:
    house = House()
    ids = house.ids(ttl_ms=100)
    offer(ids, message("a"))
    house.clock.advance(60)
    assert not offer(ids, message("a")), "this does not renew it"
    house.clock.advance(39)
    assert not offer(ids, message("a"))
    house.clock.advance(1)
    assert offer(ids, message("a"))
    assert not offer(ids, message("a"))


def test_a_message_may_ask_for_another_time() -> None:
    house = House()
    ids = house.ids(ttl_ms=100)
    offer(ids, message("short", x_cache_ttl=10))
    offer(ids, message("long", x_cache_ttl=1_000))
    offer(ids, message("none", x_cache_ttl=0))
    assert offer(ids, message("none"))
    house.clock.advance(10)
    assert [offer(ids, message(value)) for value in ("short", "long")] == [True, False]
    house.clock.advance(500)
    assert not offer(ids, message("long"))


@pytest.mark.parametrize("value", ["5", -1, CACHE_TTL_MAX_MS + 1, True, 1.5, []])
def test_a_time_that_is_none(value: FieldValue) -> None:
    """Publishers are told; for a dead letter it is as if it said nothing."""
    house = House()
    ids = house.ids(ttl_ms=100)
    with pytest.raises(ChannelError, match="invalid header 'x-cache-ttl'"):
        ids.check(message("a", x_cache_ttl=value).properties(0))
    assert offer(ids, message("a", x_cache_ttl=value))
    house.clock.advance(99)
    assert not offer(ids, message("a"))
    house.clock.advance(1)
    assert offer(ids, message("a"))


def test_good_times_are_no_error() -> None:
    ids = House().ids()
    for value in (None, 0, 5, CACHE_TTL_MAX_MS):
        ids.check(message("a", x_cache_ttl=value).properties(0))


# -- what lasts


def test_it_remembers_over_a_restart() -> None:
    house = House()
    ids = house.ids(ttl_ms=1_000)
    for value in ("a", "b"):
        offer(ids, message(value))
    house.clock.advance(400)
    ids = house.restarted().ids(ttl_ms=1_000)
    house.clock.advance(599)
    assert not offer(ids, message("a"))
    house.clock.advance(1)
    assert offer(ids, message("a"))


def test_the_oldest_is_the_oldest_again() -> None:
    house = House()
    ids = house.ids(size=3)
    for value in ("a", "b", "c"):
        offer(ids, message(value))
    offer(ids, message("d"))
    ids = house.restarted().ids(size=3)
    assert len(ids) == 3
    offer(ids, message("e"))
    assert [offer(ids, message(value)) for value in ("c", "d", "e")] == [False] * 3
    assert offer(ids, message("b"))


@pytest.mark.parametrize(("set_by_s", "left_ms"), [(-86_400, 1_000), (0.4, 600), (86_400, 0)])
def test_a_clock_that_was_set(set_by_s: float, left_ms: int) -> None:
    """At least no time is left and at most all of it."""
    house = House()
    offer(house.ids(ttl_ms=1_000), message("a"))
    house.clock.step(set_by_s)
    ids = house.restarted().ids(ttl_ms=1_000)
    if left_ms:
        house.clock.advance(left_ms - 2)
        assert not offer(ids, message("a"))
    house.clock.advance(4)
    assert offer(ids, message("a"))


def test_what_is_not_persistent_or_not_durable_is_forgotten() -> None:
    house = House()
    ids = house.ids()
    offer(ids, message("transient", persistent=False))
    offer(ids, message("kept"))
    passing = house.ids(durable=False)
    assert offer(passing, message("kept")), "another queue"
    ids = house.restarted().ids()
    assert offer(ids, message("transient"))
    assert not offer(ids, message("kept"))


def test_no_more_is_kept_than_it_remembers() -> None:
    house = House()
    ids = house.ids(size=5, ttl_ms=50)
    for number in range(100):
        offer(ids, message(number))
        assert len(house.store.definitions) <= 5
    house.clock.advance(50)
    offer(ids, message("last"))
    assert len(house.store.definitions) == len(ids) == 1


# -- any mixture


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("offer"), st.integers(0, 6), st.none() | st.integers(0, 60)),
        st.tuples(st.just("wait"), st.integers(1, 40), st.none()),
        st.tuples(st.just("restart"), st.just(0), st.none()),
    ),
    max_size=40,
)


@given(st.integers(1, 4), st.none() | st.integers(0, 50), STEPS)
def test_as_a_model_has_it(
    size: int, ttl_ms: int | None, steps: list[tuple[str, int, int | None]]
) -> None:
    house = House()
    ids = house.ids(size, ttl_ms)
    model: dict[int, float] = {}
    for action, number, own_ms in steps:
        if action == "wait":
            house.clock.advance(number)
        elif action == "restart":
            house = house.restarted()
            ids = house.ids(size, ttl_ms)
        else:
            now_ms = house.now_ms
            seen = model.get(number, 0) > now_ms
            batch = message(number, x_cache_ttl=own_ms)
            assert offer(ids, batch) is not seen
            wanted_ms = ttl_ms if own_ms is None else own_ms
            if not seen and wanted_ms != 0:
                model.pop(number, None)
                while model and (len(model) >= size or next(iter(model.values())) <= now_ms):
                    del model[next(iter(model))]
                model[number] = float("inf") if wanted_ms is None else now_ms + wanted_ms
