from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pamqp import body, commands, frame, header, heartbeat

from warrenmq.core.wire import frames

CHANNELS = st.integers(0, 65535)
TAGS = st.integers(0, 2**63 - 1)


@given(CHANNELS, TAGS, st.booleans())
def test_acks_and_nacks_are_pamqps(channel: int, tag: int, multiple: bool) -> None:
    ack = frame.marshal(commands.Basic.Ack(tag, multiple), channel)
    nack = frame.marshal(commands.Basic.Nack(tag, multiple, False), channel)
    assert frames.ack_frame(channel, tag, multiple) == ack
    assert frames.nack_frame(channel, tag, multiple) == nack
    assert len(ack) == frames.ACK_FRAME_BYTES


@given(st.binary(max_size=100), st.integers(9, 60))
def test_a_body_is_cut_into_frames_that_fit_and_are_full(raw: bytes, frame_max: int) -> None:
    cut = frames.body_frames(3, raw, frame_max)
    pieces = [piece[7:-1] for piece in cut]
    assert cut == [frame.marshal(body.ContentBody(piece), 3) for piece in pieces]
    assert b"".join(pieces) == raw
    assert all(len(piece) == frame_max for piece in cut[:-1])
    assert all(8 < len(piece) <= frame_max for piece in cut[-1:])


def test_constants() -> None:
    assert frame.marshal(heartbeat.Heartbeat(), 0) == frames.HEARTBEAT_FRAME
    assert header.ProtocolHeader().marshal() == frames.PROTOCOL_HEADER
    for octets, method in (
        (frames.PUBLISH, commands.Basic.Publish),
        (frames.DELIVER, commands.Basic.Deliver),
        (frames.ACK, commands.Basic.Ack),
    ):
        assert octets == method.index.to_bytes(4, "big")


def test_a_short_string_holds_255_bytes() -> None:
    assert len(frames.short_string("x" * 255)) == 256
    with pytest.raises(ValueError, match="256"):
        frames.short_string("x" * 256)
