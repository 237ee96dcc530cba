"""Facts: restored after a restart, deleted with their owner, ignored when damaged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.amqp import Client
from warrenmq.core.auth import Users
from warrenmq.core.broker import Broker
from warrenmq.core.clock import ManualClock
from warrenmq.core.definitions.facts import (
    DeduplicationIds,
    DeliveryCounts,
    Facts,
    SeenId,
    exchange_owner,
    queue_owner,
)
from warrenmq.core.definitions.fields import VERSION
from warrenmq.core.definitions.keys import FACTS, DefinitionKind, is_fact

from .support import NotingStore, made, new_broker, restarted

NUMBERS = st.integers(0, 2**64 - 1)


@pytest.fixture
def store() -> NotingStore:
    return NotingStore()


@pytest.fixture
def facts(store: NotingStore) -> Facts:
    return Facts(store)


def again(store: NotingStore) -> Facts:
    """As the next start reads them."""
    facts = Facts(NotingStore(store.definitions))
    facts.collect()
    return facts


@given(st.dictionaries(NUMBERS, NUMBERS, max_size=5), NUMBERS)
def test_delivery_counts_are_restored(counts: dict[int, int], queue_id: int) -> None:
    store = NotingStore()
    kept = DeliveryCounts(Facts(store), queue_id)
    for sequence, count in counts.items():
        kept.store(sequence, 1)
        kept.store(sequence, count)
    assert kept.load() == DeliveryCounts(again(store), queue_id).load() == counts


@given(st.dictionaries(st.binary(max_size=20), st.builds(SeenId, NUMBERS, NUMBERS), max_size=5))
def test_ids_are_restored_in_order(ids: dict[bytes, SeenId]) -> None:
    store = NotingStore()
    owner = exchange_owner("/", "news")
    kept = DeduplicationIds(Facts(store), owner)
    for identity, seen in ids.items():
        kept.store(identity, seen)
    found = DeduplicationIds(again(store), owner).load()
    assert list(found.items()) == list(ids.items())


def test_facts_are_stored_by_owner(store: NotingStore, facts: Facts) -> None:
    owners = [
        queue_owner(5), queue_owner(6), exchange_owner("a", "bc"), exchange_owner("ab", "c"),
        exchange_owner("", "abc"),
    ]  # fmt: skip
    for number, owner in enumerate(owners):
        DeduplicationIds(facts, owner).store(b"id", SeenId(number, 0))
    DeliveryCounts(facts, 5).store(1, 2)
    for found in (facts, again(store)):
        loaded = [DeduplicationIds(found, owner).load() for owner in owners]
        assert loaded == [{b"id": SeenId(number, 0)} for number in range(len(owners))]
        assert DeliveryCounts(found, 5).load() == {1: 2}


def test_end_deletes_all_facts_of_an_owner(store: NotingStore, facts: Facts) -> None:
    ids = DeduplicationIds(facts, queue_owner(5))
    ids.store(b"a", SeenId(1, 0))
    DeliveryCounts(facts, 5).store(1, 1)
    DeliveryCounts(facts, 6).store(1, 1)
    facts.end(queue_owner(5))
    facts.end(queue_owner(7))
    assert ids.load() == {}
    assert DeliveryCounts(facts, 5).load() == {}
    assert DeliveryCounts(again(store), 6).load() == {1: 1}
    assert len(store.definitions) == 1


@given(st.sampled_from(sorted(FACTS)), st.binary(max_size=30), st.binary(max_size=30))
def test_any_bytes_of_a_fact_permit_a_start(kind: DefinitionKind, key: bytes, value: bytes) -> None:
    store = made()
    store.definitions[bytes((kind,)) + key] = value
    started = Broker(Users(), store=NotingStore(store.definitions), clock=ManualClock())
    assert started.restore()
    for owner in (queue_owner(0), exchange_owner("/", "x"), key[2:]):
        DeduplicationIds(started.facts, owner).load()
    DeliveryCounts(started.facts, 0).load()


def test_a_damaged_fact_is_ignored(store: NotingStore, facts: Facts) -> None:
    DeliveryCounts(facts, 5).store(1, 2)
    (key,) = store.definitions
    store.definitions |= {
        key[:-1]: VERSION + bytes(8),
        key[:-8] + bytes(8): VERSION + bytes(7),
        key[:-8] + b"\1" + bytes(7): b"\7" + bytes(8),
    }
    assert DeliveryCounts(again(store), 5).load() == {1: 2}


# -- in a broker


def owned(broker: Broker) -> list[bytes]:
    """Stores facts about a durable queue and a durable exchange; returns their owners."""
    vhost = broker.vhosts["/"]
    client = Client(broker)
    client.declare("mail", durable=True)
    client.call("Exchange.Declare", exchange="news", exchange_type="fanout", durable=True)
    owners = [queue_owner(vhost.queues["mail"].id), exchange_owner("/", "news")]
    for owner in owners:
        DeduplicationIds(broker.facts, owner).store(b"id", SeenId(1, 0))
    return owners


def test_facts_are_restored() -> None:
    broker, store = new_broker()
    owners = owned(broker)
    found, _ = restarted(store)
    assert [DeduplicationIds(found.facts, owner).load() for owner in owners] == [
        {b"id": SeenId(1, 0)}
    ] * 2


def test_facts_are_deleted_with_their_owner() -> None:
    broker, store = new_broker()
    owners = owned(broker)
    client = Client(broker)
    client.call("Queue.Delete", queue="mail")
    client.call("Exchange.Delete", exchange="news")
    assert [key for key in store.definitions if is_fact(key)] == []
    assert [DeduplicationIds(broker.facts, owner).load() for owner in owners] == [{}, {}]


@pytest.mark.parametrize("is_damaged", [False, True])
def test_facts_without_an_owner_are_deleted_at_the_start(is_damaged: bool) -> None:
    """Unless something stored could not be read: the owner may be among it."""
    broker, store = new_broker()
    owned(broker)
    before = len(store.definitions)
    DeliveryCounts(broker.facts, 99).store(1, 1)
    next_store = NotingStore(store.definitions)
    next_store.recovered.is_damaged = is_damaged
    Broker(Users(), store=next_store, clock=ManualClock()).restore()
    assert len(next_store.definitions) == before + is_damaged
