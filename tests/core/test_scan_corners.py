"""The fast and the slow path agree on unusual and corrupted input."""

from __future__ import annotations

import random
import struct

import pytest

from tests.conformance import frames
from tests.support.amqp import method

from .scan_sides import Sides, open_channel


def _ack(tag: int, multiple: bool = False) -> bytes:
    return method(1, "Basic.Ack", delivery_tag=tag, multiple=multiple)


def _pieces_of(declared: int, *bodies: bytes) -> bytes:
    """A publish like `PLAIN`, its body in these frames."""
    return (
        method(1, "Basic.Publish", routing_key="acked")
        + frames.frame(frames.HEADER, 1, frames.content_header(declared))
        + b"".join(frames.frame(frames.BODY, 1, body) for body in bodies)
    )


PLAIN = frames.publish_frames(1, b"plain", routing_key="acked")
KEPT = frames.publish_frames(1, b"kept", routing_key="kept")
GET = method(1, "Basic.Get", queue="kept")
CONTENT_ON_2 = frames.publish_frames(2, b"12345")[len(method(2, "Basic.Publish")) :]


def agree(stream: list[bytes], cuts: list[float]) -> None:
    sides = Sides()
    for data in stream:
        sides.feed(data, cuts)
    sides.commit()


CORNERS: dict[str, list[bytes]] = {
    "a multiple ack in a row of single ones": [KEPT * 6 + GET * 6, _ack(3) + _ack(4, True), GET],
    "a row of acks with a gap": [KEPT * 6 + GET * 6, _ack(1) + _ack(2) + _ack(4), GET],
    "a row of acks beyond what is known": [KEPT * 3 + GET * 3, b"".join(map(_ack, range(1, 6)))],
    "a row of acks, the first known": [KEPT * 3 + GET * 3, _ack(1), _ack(1) + _ack(2), GET],
    "an end octet where a whole body would end": [
        PLAIN + _pieces_of(11, b"abc", b"\xce7654321") + PLAIN
    ],
    "a body frame shorter than declared": [PLAIN + _pieces_of(5, b"123", b"45") + PLAIN],
    "an empty body frame": [PLAIN + _pieces_of(5, b"", b"12345") + PLAIN],
    "a second header": [
        PLAIN + _pieces_of(5) + frames.frame(frames.HEADER, 1, frames.content_header(5))
    ],
    "a body frame longer than declared": [PLAIN + _pieces_of(4, b"body!") + PLAIN],
    "the header on another channel": [
        PLAIN
        + method(1, "Basic.Publish", routing_key="acked")
        + frames.frame(frames.HEADER, 2, frames.content_header(5))
        + frames.frame(frames.BODY, 1, b"12345")
    ],
    "the content on another channel": [
        PLAIN + method(1, "Basic.Publish", routing_key="acked") + CONTENT_ON_2
    ],
    "a property list cut short": [
        PLAIN + frames.publish_frames(1, b"body", frames.Raw(b"\x10\x00"), routing_key="acked")
    ],
    "an empty message with a bad end octet": [
        PLAIN + frames.publish_frames(1, b"", routing_key="acked")[:-1] + b"\x00" + PLAIN
    ],
    "an ack with a bad end octet": [KEPT * 2 + GET * 2, _ack(1)[:-1] + b"\x00" + _ack(2)],
    "the body on another channel": [PLAIN + _pieces_of(5) + frames.frame(frames.BODY, 2, b"12345")],
    "an empty message at the end of a read": [frames.publish_frames(1, b"", routing_key="acked")],
    "many empty messages": [frames.publish_frames(1, b"", routing_key="acked") * 40],
    "a publish cut behind its method": [method(1, "Basic.Publish", routing_key="acked"), b""],
    "a malformed publish cut behind its method": [
        frames.frame(frames.METHOD, 1, struct.pack(">HHHB", 60, 40, 0, 9) + b"amq")
    ],
    "an ack on channel 0": [method(0, "Basic.Ack", delivery_tag=1)],
    "an ack on a channel above the maximum": [method(9999, "Basic.Ack", delivery_tag=1)],
    "a bad end octet in half a publish": [
        PLAIN + _pieces_of(5)[:-1] + b"\x00" + frames.frame(frames.BODY, 1, b"12345")[:9]
    ],
    "a close between publishes": [PLAIN * 30 + method(1, "Channel.Close") + PLAIN],
    "an error between publishes": [PLAIN * 30 + method(1, "Basic.Get", queue="none") + PLAIN * 30],
    "confirm.select between publishes": [PLAIN * 30 + method(1, "Confirm.Select") + PLAIN * 30],
    "an enormous size declared": [PLAIN + _pieces_of(1 << 63), _pieces_of(5, b"12345")],
    "an unknown class of content": [
        method(1, "Basic.Publish", routing_key="acked")
        + frames.frame(frames.HEADER, 1, frames.content_header(0, class_id=50))
    ],
    "an unknown class of content in half a publish": [
        method(1, "Basic.Publish", routing_key="acked")
        + frames.frame(frames.HEADER, 1, frames.content_header(5, class_id=44))
    ],
    "the same behind a publish that was fine": [
        PLAIN
        + method(1, "Basic.Publish", routing_key="acked")
        + frames.frame(frames.HEADER, 1, frames.content_header(5, class_id=44))
    ],
    "an error, then one without a method": [PLAIN + frames.frame(9, 1, b"")],
}


@pytest.mark.parametrize("stream", CORNERS.values(), ids=CORNERS)
@pytest.mark.parametrize("cuts", [[], [0.5], [0.1, 0.9], [share / 40 for share in range(40)]])
def test_fast_and_slow_path_agree_on_corner_cases(stream: list[bytes], cuts: list[float]) -> None:
    agree(stream, cuts)


STREAMS_PER_SEED = 40
SPOILED = [
    *(PLAIN, PLAIN * 30, KEPT, GET, _ack(1), _ack(2), _ack(3), frames.heartbeat()),
    _pieces_of(5, b"12", b"345"),
    frames.publish_frames(1, b"", {}, routing_key="acked"),
    frames.publish_frames(
        2, b"x" * 5000, {"headers": {"CC": ["kept"]}, "expiration": "1000"}, routing_key="read"
    ),
    frames.publish_frames(1, b"x", {"headers": {"kind": "a"}}, exchange="amq.headers"),
    method(1, "Queue.Declare", queue="new", arguments={"x-max-length": 5, "k": [1, {"a": None}]}),
    method(1, "Channel.Close") + open_channel(1),
    method(2, "Basic.Nack", delivery_tag=0, multiple=True, requeue=True),
    method(1, "Basic.Recover", requeue=True),
]


def spoiled(rng: random.Random) -> bytes:
    """A legal stream with a few octets changed, taken out or put in."""
    data = bytearray(b"".join(rng.choices(SPOILED, k=rng.randint(1, 12))))
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(data))
        match rng.randrange(4):
            case 0:
                data[at] ^= 1 << rng.randrange(8)
            case 1:
                del data[at + 1 : at + rng.randint(2, 8)]
            case 2:
                data[at:at] = rng.randbytes(rng.randint(1, 8))
            case _:
                data[at] = rng.choice([0, 1, 2, 3, 8, 0xCE, 0xFF])
    return bytes(data)


@pytest.mark.parametrize("seed", range(10))
def test_fast_and_slow_path_agree_on_corrupted_input(seed: int) -> None:
    """Neither raises, and both say the same."""
    rng = random.Random(seed)
    for _ in range(STREAMS_PER_SEED):
        cuts = [rng.random() for _ in range(rng.choice([0, 0, 1, 4]))]
        agree([spoiled(rng)], cuts)
