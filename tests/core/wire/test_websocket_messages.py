"""Whole WebSocket messages of a bounded size, from reads cut anywhere."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.websocket import client_frame
from warrenmq.core.wire.websocket import Ending
from warrenmq.core.wire.websocket_messages import FRAMES_AT_ONCE, InboundMessages

CONTINUATION, TEXT, BINARY, CLOSE, PING = 0, 1, 2, 8, 9
MAX_BYTES = 500


def fragmented(body: bytes) -> bytes:
    """A message in two frames with a ping between."""
    half = len(body) // 2
    return (
        client_frame(TEXT, body[:half], final=False)
        + client_frame(PING, b"between")
        + client_frame(CONTINUATION, body[half:])
    )


@given(
    st.lists(st.tuples(st.binary(max_size=MAX_BYTES), st.booleans()), max_size=6),
    st.lists(st.integers(0, 4_000), max_size=12),
)
def test_reads_cut_anywhere(messages: list[tuple[bytes, bool]], cuts: list[int]) -> None:
    sent = b"".join(
        fragmented(body) if is_cut else client_frame(BINARY, body) for body, is_cut in messages
    )
    inbound, found = InboundMessages(MAX_BYTES), list[bytes]()
    places = sorted({0, len(sent), *(cut for cut in cuts if cut < len(sent))})
    for start, end in pairwise(places):
        found += inbound.receive_messages(sent[start:end])
    assert found == [body for body, _ in messages]
    assert inbound.ended is None


@pytest.mark.parametrize(
    "sent",
    [
        client_frame(TEXT, bytes(MAX_BYTES + 1)),
        client_frame(TEXT, bytes(MAX_BYTES), final=False) + client_frame(CONTINUATION, b"x"),
        client_frame(TEXT, bytes(MAX_BYTES + 1))[:14],  # as soon as it is announced
    ],
)
def test_a_message_above_the_limit(sent: bytes) -> None:
    inbound = InboundMessages(MAX_BYTES)
    assert inbound.receive_messages(client_frame(TEXT, b"before") + sent) == [b"before"]
    assert inbound.ended is not None
    assert (inbound.ended.code, inbound.ended.by_client) == (1009, False)


def ending(sent: bytes) -> Ending | None:
    """How one read ends the input."""
    inbound = InboundMessages(MAX_BYTES)
    inbound.receive_messages(sent)
    return inbound.ended


def test_too_many_frames_at_once() -> None:
    first = client_frame(TEXT, b"", final=False)
    following = client_frame(CONTINUATION, b"", final=False)
    assert ending(first + following * (FRAMES_AT_ONCE - 1)) is None
    found = ending(first + following * FRAMES_AT_ONCE)
    assert found is not None and found.code == 1008


def test_tiny_frames_of_a_long_message_take_little_memory() -> None:
    inbound = InboundMessages(1_000_000)
    inbound.receive_messages(client_frame(TEXT, b"xy", final=False))
    following = client_frame(CONTINUATION, b"xy", final=False) * 5_000
    tracemalloc.start()
    for _ in range(4):
        inbound.receive_messages(following)
    used_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used_bytes < 150_000
    assert inbound.receive_messages(client_frame(CONTINUATION, b"")) == [b"xy" * 20_001]


def test_input_after_a_close_frame_is_ignored() -> None:
    inbound = InboundMessages(MAX_BYTES)
    sent = client_frame(TEXT, b"a") + client_frame(CLOSE, b"\x03\xe8") + client_frame(TEXT, b"b")
    assert inbound.receive_messages(sent) == [b"a"]
    assert inbound.ended is not None and inbound.ended.by_client
