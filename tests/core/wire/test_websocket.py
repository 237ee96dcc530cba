"""WebSocket frames of a server (RFC 6455 5)."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conformance import frames
from tests.support.websocket import client_frame
from warrenmq.core.wire import websocket
from warrenmq.core.wire.websocket import Ending, Inbound, frame, messages, unmasked

BINARY, TEXT, CONTINUATION, CLOSE, PING, PONG = 2, 1, 0, 8, 9, 10


def whole(*sent: bytes) -> tuple[bytes, Inbound]:
    """What comes of one read."""
    inbound = Inbound()
    return inbound.receive(b"".join(sent)), inbound


def test_a_message_is_unmasked() -> None:
    # The example of RFC 6455 5.7, as binary.
    received, _ = whole(bytes.fromhex("8285 37fa213d 7f9f4d5158"))
    assert received == b"Hello"


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65_535, 65_536, 200_001])
def test_lengths(size: int) -> None:
    body = bytes(range(256)) * (size // 256) + bytes(size % 256)
    received, inbound = whole(client_frame(BINARY, body), client_frame(BINARY, b"next"))
    assert received == body + b"next"
    assert inbound.ended is None


@given(st.binary(max_size=50), st.binary(min_size=4, max_size=4))
def test_unmasking(data: bytes, mask: bytes) -> None:
    expected = bytes(octet ^ mask[at % 4] for at, octet in enumerate(data))
    assert unmasked(data, mask) == expected


@given(
    st.lists(st.binary(max_size=300), max_size=6),
    st.lists(st.integers(0, 2_000), max_size=12),
    st.booleans(),
)
def test_reads_cut_anywhere(bodies: list[bytes], cuts: list[int], fragmented: bool) -> None:
    last = len(bodies) - 1
    sent = b"".join(
        client_frame(
            CONTINUATION if fragmented and at else BINARY,
            body, final=not fragmented or at == last,
        )
        + client_frame(PING, b"in between")
        for at, body in enumerate(bodies)
    )  # fmt: skip
    inbound, received = Inbound(), b""
    places = sorted({0, *(min(cut, len(sent)) for cut in cuts), len(sent)})
    for low, high in pairwise(places):
        received += inbound.receive(sent[low:high])
    assert received == b"".join(bodies)
    assert inbound.ended is None


def test_payload_is_returned_before_the_message_is_complete() -> None:
    inbound = Inbound()
    sent = client_frame(BINARY, b"abcdef")
    assert inbound.receive(sent[:-2]) == b"abcd"
    assert inbound.receive(sent[-2:]) == b"ef"


def test_frames_per_call_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket, "_FRAMES_AT_ONCE", 3)
    inbound = Inbound()
    received = [inbound.receive(b"".join(client_frame(BINARY, b"%d" % n) for n in range(8)))]
    while inbound.unfinished:
        received.append(inbound.receive(b""))
    assert received == [b"012", b"345", b"67"]


def test_pongs_are_ignored() -> None:
    received, inbound = whole(client_frame(PONG, b"x"), client_frame(BINARY, b"y"))
    assert (received, inbound.ended, inbound.ping) == (b"y", None, None)


# -- the end


@pytest.mark.parametrize(
    ("payload", "code"),
    [(b"", 0), (b"\x03\xe8", 1000), (b"\x03\xe9bye", 1001), (b"\x0f\xa0", 4000)],
)
def test_a_close_frame_ends_the_connection(payload: bytes, code: int) -> None:
    received, inbound = whole(client_frame(CLOSE, payload), client_frame(BINARY, b"late"))
    assert received == b""
    assert inbound.ended == Ending(code, "", by_client=True)


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        (b"\x03", 1002), (b"\x00\x00", 1002), (b"\x03\xe7", 1002), (b"\x03\xed", 1002),
        (b"\x03\xee", 1002), (b"\x03\xf7", 1002), (b"\x0b\xb7", 1002), (b"\x13\x88", 1002),
        (b"\x03\xe8\xff", 1007),
    ],
)  # fmt: skip
def test_invalid_close_frames(payload: bytes, code: int) -> None:
    _, inbound = whole(client_frame(CLOSE, payload))
    assert inbound.ended is not None
    assert (inbound.ended.code, inbound.ended.by_client) == (code, False)


BROKEN = {
    "text": (client_frame(TEXT, b"AMQP"), 1003),
    "not masked": (frame(BINARY, b"AMQP"), 1002),
    "reserved bit": (bytes((0xC2,)) + client_frame(BINARY, b"x")[1:], 1002),
    "unknown data opcode": (client_frame(3, b"x"), 1002),
    "unknown control opcode": (client_frame(11, b"x"), 1002),
    "continuation of nothing": (client_frame(CONTINUATION, b"x"), 1002),
    "message in a message": (client_frame(BINARY, b"", final=False) + client_frame(BINARY), 1002),
    "ping in parts": (client_frame(PING, b"x", final=False), 1002),
    "long ping": (client_frame(PING, bytes(126)), 1002),
    "length of 64 bits": (b"\x82\xff" + b"\xff" * 8 + b"mask", 1002),
}


@pytest.mark.parametrize(("sent", "code"), BROKEN.values(), ids=BROKEN.keys())
def test_protocol_errors(sent: bytes, code: int) -> None:
    received, inbound = whole(client_frame(BINARY, b"before"), sent, client_frame(BINARY, b"after"))
    assert received == b"before"[: len(received)]
    assert inbound.ended is not None
    assert (inbound.ended.code, inbound.ended.by_client) == (code, False)
    assert inbound.ended.reason


@given(st.binary(max_size=200), st.binary(max_size=50))
def test_noise(noise: bytes, body: bytes) -> None:
    inbound = Inbound()
    inbound.receive(noise)
    inbound.receive(client_frame(BINARY, body))
    if inbound.ended is not None:
        assert inbound.receive(client_frame(BINARY, body)) == b""


# -- what goes out


def test_messages() -> None:
    first, second, large = (
        frames.heartbeat(),
        frames.frame(frames.METHOD, 1, bytes(200)),
        frames.frame(frames.BODY, 1, bytes(70_000)),
    )
    assert messages(first + second + large) == (
        b"\x82\x08" + first
        + b"\x82\x7e" + len(second).to_bytes(2, "big") + second
        + b"\x82\x7f" + len(large).to_bytes(8, "big") + large
    )  # fmt: skip
