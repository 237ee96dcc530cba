"""amqp.md section 5: valid and invalid arguments of queues.

Refused means 406 on the channel with a text that names the argument, the queue and the virtual
host, and no queue: nothing is made to fit, nothing is guessed.
"""

from __future__ import annotations

import struct
from typing import Any

import pytest

from . import frames
from .frames import Raw
from .raw import Channel

Fields = dict[str, Any]

TEN_YEARS_MS = 315_360_000_000
NO_INTEGERS: list[object] = ["5", 1.5, True, [], {}, None]
NO_TEXTS: list[object] = [5, True, [], {}, None]
NO_BOOLEANS: list[object] = ["true", 1, [], None]
MILLISECONDS: list[object] = [-1, TEN_YEARS_MS + 1, *NO_INTEGERS]
COUNT: list[object] = [-1, *NO_INTEGERS]

REFUSED: dict[str, dict[str, list[object]]] = {
    "classic": {
        "x-expires": [0, *MILLISECONDS],
        "x-message-ttl": MILLISECONDS,
        "x-max-length": COUNT,
        "x-max-length-bytes": COUNT,
        "x-overflow": ["explode", "", *NO_TEXTS],
        "x-dead-letter-exchange": NO_TEXTS,
        "x-dead-letter-routing-key": ["no exchange beside it", *NO_TEXTS],
        "x-dead-letter-strategy": ["sometimes", *NO_TEXTS],
        "x-max-priority": [256, *COUNT],
        "x-single-active-consumer": NO_BOOLEANS,
        "x-queue-mode": ["nonsense", *NO_TEXTS],
        "x-queue-version": [0, 3, *NO_INTEGERS],
        "x-queue-type": ["nonsense", "", *NO_TEXTS],
        "x-delivery-limit": [-2, *NO_INTEGERS],
        "x-consumer-timeout": MILLISECONDS,
        "x-message-deduplication": NO_BOOLEANS,
        "x-cache-size": [0, 1_000_000_000, *COUNT],
        "x-cache-ttl": MILLISECONDS,
        "x-deduplication-header": ["", *NO_TEXTS],
        "x-max-age": ["7D"],
        "x-stream-max-segment-size-bytes": [500_000],
        "x-stream-filter-size-bytes": [16],
        "x-archive": ["cold"],
    },
    "quorum": {
        "x-expires": [0, "5"],
        "x-message-ttl": [-1, "5"],
        "x-max-length": [-1, "5"],
        "x-delivery-limit": [-2, "5"],
        "x-max-priority": [5],
        "x-delayed-retry-type": ["sometimes", *NO_TEXTS],
        "x-delayed-retry-min": MILLISECONDS,
        "x-delayed-retry-max": MILLISECONDS,
        "x-max-age": ["7D"],
    },
    "stream": {
        "x-max-age": ["7", "D", "7d", "-1D", "1.5h", "1D2h", " 7D", "7D ", "", *NO_TEXTS],
        "x-max-length-bytes": COUNT,
        "x-stream-max-segment-size-bytes": [3_000_000_001, *COUNT],
        "x-archive": ["", "a\nb", *NO_TEXTS],
        "x-stream-filter-size-bytes": [0, 15, 256, *COUNT],
        "x-max-length": [5],
        "x-message-ttl": [1000],
        "x-expires": [1000],
        "x-dead-letter-exchange": ["d"],
        "x-max-priority": [5],
        "x-single-active-consumer": [True],
        "x-overflow": ["drop-head"],
    },
}
TAKEN: dict[str, dict[str, list[object]]] = {
    "classic": {
        "x-expires": [60_000, TEN_YEARS_MS],
        "x-message-ttl": [0, TEN_YEARS_MS],
        "x-max-length": [0, 1 << 40],
        "x-max-length-bytes": [0, 1 << 40],
        "x-overflow": ["drop-head", "reject-publish", "reject-publish-dlx"],
        "x-dead-letter-exchange": ["", "that.is.not.there"],
        "x-dead-letter-strategy": ["at-most-once", "at-least-once"],
        "x-max-priority": [0, 255],
        "x-single-active-consumer": [True, False],
        "x-queue-mode": ["default", "lazy"],
        "x-queue-version": [1, 2],
        "x-queue-type": ["classic"],
        "x-delivery-limit": [-1, 0, 1 << 40],
        "x-consumer-timeout": [0, 60_000],
        "x-message-deduplication": [True, False],
        "x-cache-size": [1, 128, 10_000],
        "x-cache-ttl": [0, 60_000],
        "x-deduplication-header": ["x-id"],
        "x-queue-leader-locator": ["client-local"],
        "x-queue-master-locator": ["min-masters"],
        "x-quorum-initial-group-size": [3],
        "x-anything": ["at all", 5, None, {"deep": ["list"]}],
    },
    "quorum": {
        "x-max-length": [0, 5],
        "x-overflow": ["drop-head", "reject-publish"],
        "x-delivery-limit": [-1, 0, 20],
        "x-single-active-consumer": [True],
        "x-dead-letter-strategy": ["at-most-once", "at-least-once"],
        "x-queue-leader-locator": ["balanced"],
        "x-quorum-initial-group-size": [1, 5],
        "x-delayed-retry-type": ["disabled", "all", "failed", "returned"],
    },
    "stream": {
        "x-max-age": ["1Y", "2M", "7D", "12h", "90m", "3600s", "0s"],
        "x-max-length-bytes": [0, 1 << 40],
        "x-stream-max-segment-size-bytes": [0, 500_000_000, 3_000_000_000],
        "x-stream-filter-size-bytes": [16, 255],
        "x-archive": ["cold"],
        "x-queue-leader-locator": ["least-leaders"],
        "x-initial-cluster-size": [3],
    },
}


def cases(table: dict[str, dict[str, list[object]]]) -> list[Any]:
    return [
        pytest.param(kind, argument, value, id=f"{kind} {argument} {value!r}")
        for kind, arguments in table.items()
        for argument, values in arguments.items()
        for value in values
    ]


def of_type(kind: str, argument: str, value: object) -> Fields:
    """The type is not asked for where it is the usual one."""
    return ({} if kind == "classic" else {"x-queue-type": kind}) | {argument: value}


@pytest.mark.differs("checks fewer, and has others")
@pytest.mark.parametrize(("kind", "argument", "value"), cases(REFUSED))
def test_invalid_argument_is_refused(
    channel: Channel, name: str, kind: str, argument: str, value: object
) -> None:
    arguments = of_type(kind, argument, value)
    channel.send("Queue.Declare", queue=name, durable=True, arguments=arguments)
    text = channel.refused(406, culprit="Queue.Declare")
    start = f"PRECONDITION_FAILED - invalid arg '{argument}' for queue '{name}' in vhost '/': "
    assert text.startswith(start), text
    assert len(text) > len(start)
    channel.open()
    channel.send("Queue.Declare", queue=name, passive=True)
    channel.refused(404)


@pytest.mark.differs("knows fewer")
@pytest.mark.parametrize(("kind", "argument", "value"), cases(TAKEN))
def test_valid_argument_is_accepted(
    channel: Channel, name: str, kind: str, argument: str, value: object
) -> None:
    arguments = of_type(kind, argument, value)
    for _ in range(2):
        channel.declare(name, durable=True, arguments=arguments)
    channel.call("Queue.Delete", queue=name)


KEPT = pytest.mark.parametrize("kind", ["quorum", "stream"])


@KEPT
@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({}, "non-durable"),
        ({"durable": True, "exclusive": True}, "exclusive-owner"),
        ({"durable": True, "auto_delete": True}, "auto-delete"),
    ],
)
def test_unsupported_property_is_refused(
    channel: Channel, name: str, kind: str, fields: Fields, wrong: str
) -> None:
    channel.send("Queue.Declare", queue=name, arguments={"x-queue-type": kind}, **fields)
    channel.refused(
        406,
        f"PRECONDITION_FAILED - invalid property '{wrong}' for queue '{name}' in vhost '/'",
        "Queue.Declare",
    )
    channel.open()
    channel.send("Queue.Declare", queue=name, passive=True)
    channel.refused(404)


@KEPT
def test_server_named_queue_is_refused(channel: Channel, kind: str) -> None:
    channel.send("Queue.Declare", queue="", durable=True, arguments={"x-queue-type": kind})
    channel.refused(
        406,
        f"PRECONDITION_FAILED - Cannot declare a server-named queue for type rabbit_{kind}_queue",
    )


WHOLE_NUMBERS = {
    "b": ">b", "B": ">B", "s": ">h", "u": ">H", "I": ">i", "i": ">I", "l": ">q", "L": ">q",
}  # fmt: skip


@pytest.mark.parametrize("tag", WHOLE_NUMBERS)
def test_every_integer_type_is_accepted(channel: Channel, name: str, tag: str) -> None:
    number = Raw(tag.encode() + struct.pack(WHOLE_NUMBERS[tag], 2))
    channel.declare(name, arguments={"x-max-length": number})
    channel.put(name, b"a", b"b", b"c")
    assert channel.drain(name) == [b"b", b"c"]
    channel.declare(name, arguments={"x-max-length": 2})


def test_one_of_several_invalid_arguments_is_named(channel: Channel, name: str) -> None:
    bad = {"x-max-length": -1, "x-message-ttl": "5", "x-overflow": "explode"}
    channel.send("Queue.Declare", queue=name, arguments=bad)
    text = channel.refused(406)
    assert any(f"invalid arg '{argument}' for queue" in text for argument in bad)


def test_error_for_a_long_value_still_has_its_start(channel: Channel, name: str) -> None:
    channel.send("Queue.Declare", queue=name, arguments={"x-overflow": "x" * 10_000})
    text = channel.refused(406)
    assert text.startswith(f"PRECONDITION_FAILED - invalid arg 'x-overflow' for queue '{name}'")
    assert len(text.encode()) <= 255


@pytest.mark.differs("takes the first")
def test_duplicate_key_is_refused(channel: Channel) -> None:
    table = b"".join(b"\x0cx-max-length" + b"b" + bytes([value]) for value in (1, 2))
    arguments = Raw(struct.pack(">I", len(table)) + table)
    channel.client.send(
        frames.frame(1, 1, frames.method("Queue.Declare", queue="never", arguments=arguments))
    )
    channel.client.closed(502)
