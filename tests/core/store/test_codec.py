"""Blocks and their shares: what a record of messages holds is what was published."""

from __future__ import annotations

from array import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.messages import Sent, scattered, strided, whole
from warrenmq.core.block import Block, Run, WholeBlock, envelope
from warrenmq.core.store.codec import (
    decode_messages,
    encode_messages,
    numbers,
    octets,
    read_offsets,
    read_shares,
)
from warrenmq.core.wire.properties import intern_traits

from .fake_queue import FakeQueue

WALL_MS = 1_700_000_000_123
traits = st.builds(
    intern_traits, st.just(True), st.integers(0, 255), st.none() | st.just("60000"), st.just(False)
)
names = st.sampled_from(["", "x", "logs.all", "n" * 120])


@st.composite
def blocks(draw: st.DrawFn) -> Block:
    sequence, kind = draw(st.integers(0, 2**63)), draw(traits)
    exchange, key = draw(names), draw(names)
    body = draw(st.binary(max_size=20))
    if draw(st.booleans()):
        return WholeBlock(
            envelope(exchange, key), b"\x10\x00\x02", body, sequence, kind, 0,
            tuple(draw(st.lists(names, max_size=3))),
        )  # fmt: skip
    count = draw(st.integers(1, 6))
    before = draw(st.binary(max_size=9))
    if draw(st.booleans()):
        alike = [Sent(bytes((at,)) * len(body), exchange, key) for at in range(count)]
        return strided(alike, sequence=sequence, traits=kind, before=before)
    sent = [Sent(body[at:], exchange, key) for at in range(count)]
    return scattered(sent, sequence=sequence, traits=kind, before=before)


def encoded(block: Block, runs: list[tuple[FakeQueue, Run]], **flags: Any) -> memoryview:
    return memoryview(b"".join(encode_messages(block, runs, WALL_MS, **flags)))


@given(blocks(), st.booleans())
def test_a_block_comes_back(block: Block, redelivered: bool) -> None:
    body = encoded(block, [], redelivered=redelivered)
    messages = decode_messages(body, block.sequence, 1_000 - WALL_MS)
    read = messages.block
    assert (read.sequence, read.count, read.traits) == (block.sequence, block.count, block.traits)
    assert read.arrived_ms == 1_000
    assert messages.record.arrived_wall_ms == WALL_MS
    assert messages.redelivered is redelivered
    assert read.blind_keys == block.blind_keys
    for at in range(block.count):
        assert read.envelope(at) == block.envelope(at)
        assert read.properties(at) == block.properties(at)
        assert read.body(at) == block.body(at)
        assert read.body_bytes(at) == block.body_bytes(at)


@given(blocks())
def test_a_block_can_be_restored_from_what_it_was_written_as(block: Block) -> None:
    bodies = [block.body(at) for at in range(block.count)]
    read = decode_messages(encoded(block, []), block.sequence, 0).block
    block.evict()
    block.restore(read)
    assert [block.body(at) for at in range(block.count)] == bodies


@st.composite
def shared(draw: st.DrawFn) -> tuple[Block, list[tuple[FakeQueue, Run]]]:
    block = draw(blocks())
    indices = st.sets(st.integers(0, block.count - 1), min_size=1).map(sorted)
    runs: list[tuple[FakeQueue, Run]] = []
    for queue_id in draw(st.lists(st.integers(1, 2**62), unique=True, max_size=5)):
        queue = FakeQueue(queue_id)
        queue.is_read = draw(st.booleans())
        alike = draw(st.booleans())
        chosen = runs[-1][1].selection if runs and alike else draw(st.none() | indices)
        runs.append((queue, Run(block, chosen)))
    return block, runs


@given(shared())
def test_every_queue_finds_its_share(held: tuple[Block, list[tuple[FakeQueue, Run]]]) -> None:
    block, runs = held
    body = encoded(block, runs)
    messages = decode_messages(body, block.sequence, 0)
    for queue, run in runs:
        selection = None if run.selection is None else array("I", run.selection)
        assert messages.of(queue.id) == (selection, queue.is_read)
    assert messages.of(0) is None
    count, special, shares = read_shares(body)
    assert (count, special) == (block.count, block.traits.special)
    assert shares == messages.shares


@given(shared(), st.lists(st.tuples(st.integers(1, 2**62), st.integers(0, 2**62)), max_size=3))
def test_numbers_of_queues_that_number_their_messages(
    held: tuple[Block, list[tuple[FakeQueue, Run]]], offsets: list[tuple[int, int]]
) -> None:
    block, runs = held
    body = memoryview(b"".join(encode_messages(block, runs, WALL_MS, offsets=offsets)))
    assert list(read_offsets(body)) == offsets
    messages = decode_messages(body, block.sequence, 0)
    assert [messages.block.body(at) for at in range(block.count)] == [
        block.body(at) for at in range(block.count)
    ]
    assert messages.block.blind_keys == block.blind_keys
    assert read_shares(body)[2] == messages.shares
    assert [messages.of(queue.id) is not None for queue, _ in runs] == [True] * len(runs)


def test_queues_with_one_selection_share_it() -> None:
    block = strided([Sent(b"a"), Sent(b"b")])
    chosen = array("I", [1])
    runs = [(FakeQueue(number), Run(block, chosen)) for number in (1, 2, 3)]
    assert len(decode_messages(encoded(block, runs), 1, 0).shares) == 1


def test_bytes_of_others_are_not_written() -> None:
    block = strided([Sent(b"mine")], before=b"theirs" * 100)
    assert len(encoded(block, [])) < 300


@given(st.lists(st.integers(0, 2**32 - 1)))
def test_numbers_are_little_endian(values: list[int]) -> None:
    raw = octets(array("I", values))
    assert raw == b"".join(value.to_bytes(4, "little") for value in values)
    assert numbers("I", raw) == array("I", values)


@pytest.mark.parametrize("value", [0, 1, 2**64 - 1])
def test_large_numbers(value: int) -> None:
    assert numbers("Q", octets(array("Q", [value]))) == array("Q", [value])


def test_a_whole_message_may_be_empty() -> None:
    block = whole(Sent(b""))
    assert decode_messages(encoded(block, []), 1, 0).block.body(0) == b""


def test_a_message_may_have_many_and_long_blind_keys() -> None:
    keys = tuple(str(number) * 90 for number in range(300))
    block = WholeBlock(
        envelope("x", "k"), b"\0\0", b"", 1, intern_traits(True, 0, None, False), 0, keys
    )
    assert decode_messages(encoded(block, []), 1, 0).block.blind_keys == keys


def test_more_than_65536_queues_may_have_shares_of_their_own() -> None:
    block = strided([Sent(b"a"), Sent(b"b")])
    runs = [(FakeQueue(number), Run(block, [number % 2])) for number in range(66_000)]
    assert len(decode_messages(encoded(block, runs), 1, 0).shares) == len(runs)
