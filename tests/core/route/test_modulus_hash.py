"""x-modulus-hash (amqp.md section 4): the key's hash modulo the number of bindings."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.core.route.support import FakeQueue, exchange
from warrenmq.core.route.exchange import Exchange
from warrenmq.core.route.hashing import hash_of


def shards(*names: str) -> Exchange:
    made = exchange("x-modulus-hash")
    for name in names:
        made.bind(FakeQueue(name), "", {})
    return made


def place(source: Exchange, key: str) -> str:
    (found,) = source.match(key, None)
    return found.name


def test_hash_modulo_the_number_of_bindings() -> None:
    source = shards("a", "b", "c")
    for number in range(100):
        key = f"key-{number}"
        assert place(source, key) == "abc"[hash_of(key.encode()) % 3]


def test_mapping_does_not_depend_on_the_order_of_binding() -> None:
    keys = [f"key-{number}" for number in range(100)]
    source = shards("a", "b", "c")
    before = [place(source, key) for key in keys]
    assert [place(shards("c", "b", "a"), key) for key in keys] == before
    queue = next(iter(source.destinations))
    source.unbind(queue, "", {})
    assert [place(source, key) for key in keys] != before
    source.bind(queue, "", {})
    assert [place(source, key) for key in keys] == before


def test_each_binding_gets_a_share() -> None:
    source = shards("a", "b")
    source.bind(next(iter(source.destinations)), "again", {})
    counts = Counter(place(source, f"key-{number}") for number in range(3_000))
    assert counts["a"] == pytest.approx(2_000, rel=0.1)
