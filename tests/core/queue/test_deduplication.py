"""Seen message ids against a model, on a manual clock."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warrenmq.core.clock import ManualClock
from warrenmq.core.definitions.facts import Facts, queue_owner
from warrenmq.core.errors import ChannelError
from warrenmq.core.message.batch import SingleMessage
from warrenmq.core.message.deduplication import CACHE_TTL_MAX_MS, Deduplication
from warrenmq.core.message.envelope import envelope
from warrenmq.core.message.model import FieldValue, Properties, Table
from warrenmq.core.queue.deduplication import SeenIds
from warrenmq.core.store.memory import MemoryStore
from warrenmq.core.wire import properties as wire

OWNER = queue_owner(5)


@dataclass
class FakeBroker:
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

    def restarted(self) -> FakeBroker:
        self.clock.restart()
        return FakeBroker(self.clock, self.store)


@pytest.fixture
def context() -> FakeBroker:
    return FakeBroker()


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


@pytest.mark.parametrize("value", ["5", -1, CACHE_TTL_MAX_MS + 1, True, 1.5, []])
def test_an_invalid_cache_ttl(context: FakeBroker, value: FieldValue) -> None:
    ids = context.ids(ttl_ms=100)
    with pytest.raises(ChannelError, match="invalid header 'x-cache-ttl'"):
        ids.check(message("a", x_cache_ttl=value).properties(0))
    assert offer(ids, message("a", x_cache_ttl=value))
    context.clock.advance(99)
    assert not offer(ids, message("a"))
    context.clock.advance(1)
    assert offer(ids, message("a"))


# -- what lasts


@pytest.mark.parametrize(("set_by_s", "left_ms"), [(-86_400, 1_000), (0.4, 600), (86_400, 0)])
def test_the_wall_clock_was_set(context: FakeBroker, set_by_s: float, left_ms: int) -> None:
    offer(context.ids(ttl_ms=1_000), message("a"))
    context.clock.step(set_by_s)
    ids = context.restarted().ids(ttl_ms=1_000)
    if left_ms:
        context.clock.advance(left_ms - 2)
        assert not offer(ids, message("a"))
    context.clock.advance(4)
    assert offer(ids, message("a"))


def test_facts_are_bounded_by_the_cache(context: FakeBroker) -> None:
    ids = context.ids(size=5, ttl_ms=50)
    for number in range(100):
        offer(ids, message(number))
        assert len(context.store.definitions) <= 5
    context.clock.advance(50)
    offer(ids, message("last"))
    assert len(context.store.definitions) == len(ids) == 1


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
def test_seen_ids_agree_with_a_model(
    size: int, ttl_ms: int | None, steps: list[tuple[str, int, int | None]]
) -> None:
    context = FakeBroker()
    ids = context.ids(size, ttl_ms)
    model: dict[int, float] = {}
    for action, number, own_ms in steps:
        if action == "wait":
            context.clock.advance(number)
        elif action == "restart":
            context = context.restarted()
            ids = context.ids(size, ttl_ms)
        else:
            now_ms = context.now_ms
            seen = model.get(number, 0) > now_ms
            batch = message(number, x_cache_ttl=own_ms)
            assert offer(ids, batch) is not seen
            wanted_ms = ttl_ms if own_ms is None else own_ms
            if not seen and wanted_ms != 0:
                model.pop(number, None)
                while model and (len(model) >= size or next(iter(model.values())) <= now_ms):
                    del model[next(iter(model))]
                model[number] = float("inf") if wanted_ms is None else now_ms + wanted_ms
