"""Facts outlive a restart and their owners nothing; none of them keeps a server from starting."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.amqp import Client
from warrenmq.core.auth import Users
from warrenmq.core.broker import Broker
from warrenmq.core.definitions.facts import (
    DeduplicationIds,
    DeliveryCounts,
    Facts,
    Seen,
    exchange_owner,
    queue_owner,
)
from warrenmq.core.definitions.keys import FACTS, Kind, is_fact
from warrenmq.core.definitions.kinds import VERSION

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
def test_delivery_counts_come_back(counts: dict[int, int], queue_id: int) -> None:
    store = NotingStore()
    kept = DeliveryCounts(Facts(store), queue_id)
    for sequence, count in counts.items():
        kept.keep(sequence, 1)
        kept.keep(sequence, count)
    assert kept.load() == DeliveryCounts(again(store), queue_id).load() == counts


@given(st.dictionaries(st.binary(max_size=20), st.builds(Seen, NUMBERS, NUMBERS), max_size=5))
def test_ids_come_back_in_their_order(ids: dict[bytes, Seen]) -> None:
    store = NotingStore()
    owner = exchange_owner("/", "news")
    kept = DeduplicationIds(Facts(store), owner)
    for identity, seen in ids.items():
        kept.keep(identity, seen)
    found = DeduplicationIds(again(store), owner).load()
    assert list(found.items()) == list(ids.items())


def test_each_owner_has_its_own(store: NotingStore, facts: Facts) -> None:
    owners = [
        queue_owner(5), queue_owner(6), exchange_owner("a", "bc"), exchange_owner("ab", "c"),
        exchange_owner("", "abc"),
    ]  # fmt: skip
    for number, owner in enumerate(owners):
        DeduplicationIds(facts, owner).keep(b"id", Seen(number, 0))
    DeliveryCounts(facts, 5).keep(1, 2)
    for found in (facts, again(store)):
        loaded = [DeduplicationIds(found, owner).load() for owner in owners]
        assert loaded == [{b"id": Seen(number, 0)} for number in range(len(owners))]
        assert DeliveryCounts(found, 5).load() == {1: 2}


def test_what_is_dropped_stays_away(store: NotingStore, facts: Facts) -> None:
    counts = DeliveryCounts(facts, 5)
    counts.keep(1, 1)
    counts.keep(2, 1)
    assert counts.drop(1)
    assert counts.load() == DeliveryCounts(again(store), 5).load() == {2: 1}
    written = len(store.writes)
    assert counts.drop(1) == counts.drop(3) == 0
    assert len(store.writes) == written
    counts.drop(2)
    assert store.definitions == {}


def test_all_of_an_owner_end_with_it(store: NotingStore, facts: Facts) -> None:
    ids = DeduplicationIds(facts, queue_owner(5))
    ids.keep(b"a", Seen(1, 0))
    DeliveryCounts(facts, 5).keep(1, 1)
    DeliveryCounts(facts, 6).keep(1, 1)
    facts.end(queue_owner(5))
    facts.end(queue_owner(7))
    assert ids.load() == {}
    assert DeliveryCounts(facts, 5).load() == {}
    assert DeliveryCounts(again(store), 6).load() == {1: 1}
    assert len(store.definitions) == 1


def test_only_kinds_of_facts_are_kept(facts: Facts) -> None:
    with pytest.raises(ValueError, match="QUEUE is no kind of facts"):
        facts.keep(Kind.QUEUE, queue_owner(1), b"", b"")


@given(st.sampled_from(sorted(FACTS)), st.binary(max_size=30), st.binary(max_size=30))
def test_no_start_fails_because_of_a_fact(kind: Kind, key: bytes, value: bytes) -> None:
    store = made()
    store.definitions[bytes((kind,)) + key] = value
    started = Broker(Users(), store=NotingStore(store.definitions))
    assert started.restore()
    for owner in (queue_owner(0), exchange_owner("/", "x"), key[2:]):
        DeduplicationIds(started.facts, owner).load()
    DeliveryCounts(started.facts, 0).load()


def test_a_damaged_fact_is_left_out(store: NotingStore, facts: Facts) -> None:
    DeliveryCounts(facts, 5).keep(1, 2)
    (key,) = store.definitions
    store.definitions |= {
        key[:-1]: VERSION + bytes(8),
        key[:-8] + bytes(8): VERSION + bytes(7),
        key[:-8] + b"\1" + bytes(7): b"\7" + bytes(8),
    }
    assert DeliveryCounts(again(store), 5).load() == {1: 2}


# -- in a broker


def owned(broker: Broker) -> list[bytes]:
    """Facts about a durable queue and a durable exchange; gives their owners."""
    vhost = broker.vhosts["/"]
    client = Client(broker)
    client.declare("mail", durable=True)
    client.call("Exchange.Declare", exchange="news", exchange_type="fanout", durable=True)
    owners = [queue_owner(vhost.queues["mail"].id), exchange_owner("/", "news")]
    for owner in owners:
        DeduplicationIds(broker.facts, owner).keep(b"id", Seen(1, 0))
    return owners


def test_a_broker_has_them_again() -> None:
    broker, store = new_broker()
    owners = owned(broker)
    found, _ = restarted(store)
    assert [DeduplicationIds(found.facts, owner).load() for owner in owners] == [
        {b"id": Seen(1, 0)}
    ] * 2


def test_they_go_with_their_queue_and_exchange() -> None:
    broker, store = new_broker()
    owners = owned(broker)
    client = Client(broker)
    client.call("Queue.Delete", queue="mail")
    client.call("Exchange.Delete", exchange="news")
    assert [key for key in store.definitions if is_fact(key)] == []
    assert [DeduplicationIds(broker.facts, owner).load() for owner in owners] == [{}, {}]


@pytest.mark.parametrize("is_damaged", [False, True])
def test_what_nobody_owns_is_ended_at_a_start(is_damaged: bool) -> None:
    """Unless something that was kept could not be read: the owner may be among that."""
    broker, store = new_broker()
    owned(broker)
    before = len(store.definitions)
    DeliveryCounts(broker.facts, 99).keep(1, 1)
    next_store = NotingStore(store.definitions)
    next_store.is_damaged = is_damaged
    Broker(Users(), store=next_store).restore()
    assert len(next_store.definitions) == before + is_damaged
