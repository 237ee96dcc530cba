"""The fast and the slow path agree on long mixtures of publishes and settlements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conformance import frames
from tests.support.amqp import method, publish, read, split
from warrenmq.core.route import at_random

from .scan_sides import Side, Sides, open_channel

ROW_BYTES_MAX = 300_000
COUNTS = (1, 2, 3, 15, 16, 17, 23, 24, 25, 26, 60, 300)
"""Around the numbers at which the fast path changes its ways."""
SMALL = (0, 1, 16, 97, 100)
SIZES = (*SMALL, *SMALL, 4_088, 4_089, 70_000, 131_064, 200_000)
UNIQUE = "another key for each message"
ADDRESSES = (
    ("", "acked"), ("", "acked"), ("", "read"), ("", "kept"), ("", "nobody"), ("amq.fanout", ""),
    ("amq.topic", "eu.fr"), ("amq.topic", UNIQUE), ("amq.headers", ""), ("", "durable"),
    ("", "short"), ("by-key", "eu.fr"), ("by-key", UNIQUE), ("by-id", UNIQUE), ("parts", UNIQUE),
    ("any", UNIQUE), ("amq.topic", "by.id"),
)  # fmt: skip
FAULTS = (
    publish(1, b"x", exchange="absent"),
    publish(1, b"x", {"user_id": "somebody"}, routing_key="acked"),
    publish(1, b"x", {"expiration": "-1"}, routing_key="acked"),
    publish(1, b"x", {"headers": {"CC": 7}}, routing_key="acked"),
    method(1, "Basic.Get", queue="absent"),
)
BROKEN_ADDRESSES = tuple(
    frames.frame(frames.METHOD, 1, payload) + publish(1, b"x")[len(method(1, "Basic.Publish")) :]
    for payload in (
        frames.method("Basic.Publish", exchange="amq.topic", routing_key="eu.0")[:size]
        for size in (4, 6, 7, 9, 16, 17, 18, 21)
    )
)
ENDS = (
    *BROKEN_ADDRESSES,
    publish(1, b"x", exchange="amq.topic", routing_key=b"eu.\xff"),
    frames.frame(9, 1, b""),
    publish(1, b"body", routing_key="acked")[:-1] + b"\x00",
    publish(1, b"body", frames.Raw(b"\x90\x00\x05text"), routing_key="acked"),
    publish(1, b"body", frames.Raw(b"\x00\x03"), routing_key="acked"),
    publish(1, b"", {"message_id": "x" * 80}, routing_key="acked")
    + publish(1, b"", {"message_id": b"\xff" * 80}, routing_key="acked"),
    publish(4, b"body", routing_key="acked"),
    method(1, "Basic.Publish", routing_key="acked") + method(1, "Basic.Publish"),
    frames.heartbeat(1),
)


Lists = Callable[[int], dict[str, Any]]
"""Properties of message number n."""


def fixed(properties: dict[str, Any]) -> Lists:
    return lambda number: properties


def celery_like(number: int) -> dict[str, Any]:
    return {
        "content_type": "application/json",
        "headers": {"id": f"{number:08x}", "retries": number % 2, "eta": None, "lang": "py"},
        "delivery_mode": 1,
        "correlation_id": f"{number:08x}",
        "reply_to": "somebody",
    }


LISTS: tuple[Lists, ...] = (
    fixed({}), fixed({}), fixed({"delivery_mode": 2}), fixed({"priority": 3, "app_id": "é"}),
    fixed({"headers": {"kind": "a"}}), fixed({"expiration": "5"}),
    fixed({"headers": {"CC": ["kept", "read"]}}), fixed({"headers": {"BCC": ["kept"], "n": 1}}),
    fixed({"user_id": "guest"}), celery_like,
    lambda number: {"message_id": f"{number:04}", "delivery_mode": 1 + number % 2},
    lambda number: {"message_id": f"{number:080}", "delivery_mode": 1 + number % 2},
    lambda number: {"headers": {"kind": "ab"[number % 2], "n": number}},
    lambda number: {"correlation_id": "ä" * (number % 3) + "x" * (6 - number % 3 * 2)},
    lambda number: {"expiration": str(1 + number % 7), "timestamp": number},
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """Messages whose address, list, size and channel each repeat in a cycle of their own."""

    count: int
    addresses: list[tuple[str, str]]
    lists: list[int]
    sizes: list[int]
    channels: tuple[int, ...]
    frame_max: int
    mandatory: bool

    def data(self) -> bytes:
        data = bytearray()
        for number in range(self.count):
            exchange, key = self.addresses[number % len(self.addresses)]
            size = self.sizes[number % len(self.sizes)]
            data += publish(
                self.channels[number % len(self.channels)],
                number.to_bytes(2, "big").rjust(size, b"\xce")[:size],
                LISTS[self.lists[number % len(self.lists)]](number),
                self.frame_max,
                exchange=exchange,
                routing_key=f"eu.{number}" if key == UNIQUE else key,
                mandatory=self.mandatory,
            )
            if len(data) > ROW_BYTES_MAX:
                break
        return bytes(data)


ROWS = st.builds(
    Row,
    st.sampled_from(COUNTS),
    st.lists(st.sampled_from(ADDRESSES), min_size=1, max_size=3),
    st.lists(st.integers(0, len(LISTS) - 1), min_size=1, max_size=2),
    st.lists(st.sampled_from(SIZES), min_size=1, max_size=2),
    st.sampled_from([(1,), (1,), (2,), (1, 2)]),
    st.sampled_from([131_072] * 4 + [4096]),
    st.sampled_from([False] * 4 + [True]),
)


ALIKE = st.builds(
    Row,
    st.sampled_from(COUNTS[3:]),
    st.sampled_from(ADDRESSES).map(lambda address: [address]),
    st.sampled_from([0, 0, 2, 3, 4, 5, 9, 10]).map(lambda number: [number]),
    st.sampled_from(SMALL).map(lambda size: [size]),
    st.sampled_from([(1,), (2,)]),
    st.just(131_072),
    st.just(False),
)
"""What the fast path counts without looking at each."""


@dataclass(frozen=True)
class Other:
    """Frames that are the same each time."""

    frames: bytes

    def data(self) -> bytes:
        return self.frames


def interleaved() -> bytes:
    """Contents of two channels, frame by frame in turn."""
    streams = [
        [
            data
            for *_, data in split(publish(channel, b"%d" % channel * 99, {}, 64, routing_key=key))
        ]
        for channel, key in ((1, "acked"), (2, "kept"))
    ]
    return b"".join(frame for pair in zip(*streams, strict=True) for frame in pair)


OTHERS = st.sampled_from(
    [
        frames.heartbeat(),
        interleaved(),
        method(1, "Channel.Flow", active=True),
        publish(1, b"x", immediate=True, routing_key="acked"),
        method(1, "Basic.Get", queue="kept", no_ack=True),
        method(2, "Basic.Get", queue="kept"),
        method(1, "Queue.Purge", queue="short"),
        publish(1, b"?", {"reply_to": "amq.rabbitmq.reply-to"}, routing_key="acked"),
        method(1, "Queue.Unbind", queue="read", exchange="amq.topic", routing_key="eu.#"),
        method(1, "Queue.Unbind", queue="acked", exchange="by-key", routing_key="10"),
        method(1, "Queue.Unbind", queue="kept", exchange="any", routing_key="10"),
        method(1, "Queue.Bind", queue="read", exchange="amq.topic", routing_key="eu.#"),
        method(1, "Confirm.Select"),
        method(2, "Confirm.Select"),
        method(2, "Channel.Close") + open_channel(2),
        method(1, "Channel.CloseOk")
        + method(1, "Channel.Close")
        + open_channel(1)
        + method(1, "Confirm.Select"),
        *FAULTS,
    ]
).map(Other)
STREAMS = st.lists(st.one_of(ROWS, ALIKE, OTHERS), min_size=1, max_size=5)
CUTS = st.lists(st.floats(0, 1), max_size=4)

Step = tuple[str, object]


VALUES: dict[str, st.SearchStrategy[object]] = {
    "publish": STREAMS,
    "settle": st.sampled_from(
        ["row", "evens", "backwards", "multiple", "twice", "requeue", "nack", "all"]
    ),
    "qos": st.integers(0, 40),
    "commit": st.none(),
    "wait": st.sampled_from([1, 5, 6]),
}
# Alternatives that are equal count once, so this is how to make one more likely.
STEPS = st.sampled_from(
    ["publish"] * 4 + ["settle"] * 3 + ["qos", "commit", "wait"],
).flatmap(lambda name: st.tuples(st.just(name), VALUES[name]))


def settle(tags: list[int], how: str) -> bytes:
    """Bytes that settle some of the outstanding tags, which are taken out of `tags`."""
    half = tags[: len(tags) // 2 + 1]
    chosen = {"evens": tags[::2], "backwards": half[::-1], "all": tags[-1:]}.get(how, half)
    if how in ("multiple", "all"):
        chosen = chosen[-1:]
        taken = [tag for tag in tags if tag <= (chosen or [0])[0]]
    else:
        taken = chosen
    if how == "requeue":
        data = b"".join(method(1, "Basic.Reject", delivery_tag=tag, requeue=True) for tag in chosen)
    elif how == "nack":
        data = b"".join(method(1, "Basic.Nack", delivery_tag=tag, requeue=False) for tag in chosen)
    elif how == "all":
        data = method(1, "Basic.Ack", multiple=True)
    else:
        data = b"".join(
            method(1, "Basic.Ack", delivery_tag=tag, multiple=how == "multiple") for tag in chosen
        )
    if how == "twice" and chosen:
        data += method(1, "Basic.Ack", delivery_tag=chosen[0])
        # That closes the channel: it starts anew, and so do its tags.
        data += method(1, "Channel.CloseOk") + open_channel(1)
        data += method(1, "Basic.Consume", queue="acked", consumer_tag="c")
        taken = list(tags)
    tags[:] = [tag for tag in tags if tag not in set(taken)]
    return data


class NoChance(Random):
    """Both sides have to choose alike, however often each asks."""

    def random(self) -> float:
        return 0.99


@pytest.fixture(autouse=True)
def _chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(at_random, "chance", NoChance())


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Refused streams are logged by the hundred."""
    caplog.set_level("ERROR")


@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large,
        HealthCheck.large_base_example,
    ],
)  # fmt: skip
@given(
    plan=st.lists(STEPS, min_size=2, max_size=8),
    cuts=CUTS,
    end=st.one_of(st.just(b""), st.sampled_from(ENDS)).map(Other),
    paging=st.booleans(),
    crowded=st.integers(0, 3).map(lambda number: number == 3),
)
def test_fast_and_slow_path_agree_on_long_mixtures(
    plan: list[Step], cuts: list[float], end: Other, paging: bool, crowded: bool
) -> None:
    sides = Sides(paging=paging, crowded=crowded)
    tags: list[int] = []

    def feed(data: bytes, client: int) -> None:
        for out in sides.feed(data, cuts, client):
            note(out)

    def note(out: list[bytes]) -> None:
        tags.extend(
            reply["delivery_tag"]
            for reply in read(out[1])
            if reply.body or reply.name == "Basic.Deliver"
        )

    for name, value in [*plan, ("commit", None), ("publish", [end])]:
        match name, value:
            case "publish", list():
                feed(b"".join(part.data() for part in value), 0)
            case "settle", str():
                feed(settle(tags, value), 1)
            case "qos", int():
                note(
                    sides.feed(method(1, "Basic.Qos", prefetch_count=value, global_=True), [], 1)[0]
                )
            case "wait", int():
                note(sides.act(partial(Side.wait, ms=value)))
            case _:
                sides.commit()
        assert sides.fast.counts() == sides.slow.counts()
