"""Producers and consumers, each in a process of its own.

All messages are of one size. A producer writes ready-made frames; a consumer knows the size of a
delivery from the first one, and by the tag of the last in each read how many have come.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any, Final

from pamqp import commands

from .connection import (
    FRAME_HEAD_BYTES,
    BrokerAddress,
    BrokerError,
    Connection,
    published,
)

CHUNK_BYTES: Final = 64 * 1024
POLL_S: Final = 0.1
_METHOD: Final = struct.Struct(">BHIHH")
_TAG_AND_FLAG: Final = struct.Struct(">QB")
_END: Final = b"\xce"
_BASIC, _DELIVER, _ACK, _NACK = 60, 60, 80, 120


@dataclass(frozen=True, slots=True)
class Load:
    """The parameters of a measurement. `confirms` is how many messages may be unconfirmed, 0 for no
    confirms; `prefetch` how many unacknowledged, 0 for consuming without acks."""

    address: BrokerAddress
    queues: tuple[str, ...]
    producers: int
    consumers: int
    size: int
    seconds: float
    persistent: bool
    confirms: int
    prefetch: int
    exchange: str = ""
    keys: int = 0
    """How many routing keys a producer uses in turn, at a topic exchange; 0 to publish to queues
    by the default exchange."""

    def key(self, queue: str, number: int) -> str:
        """Returns the routing key of a message for a queue; all are of the same length."""
        return f"{queue}.{number:06}" if self.keys else queue


def produce(load: Load, number: int, start: Any, report: Callable[[Any], None]) -> None:
    """Publishes for the time of the load; reports how many messages and how long it took."""
    try:
        report(_produce(load, load.queues[number % len(load.queues)], start))
    except (BrokerError, OSError) as error:
        report(str(error))
        start.abort()


def _produce(load: Load, queue: str, start: Any) -> tuple[int, float]:
    connection = Connection(load.address)
    if load.confirms:
        connection.call(commands.Confirm.Select(), commands.Confirm.SelectOk)
    per_chunk, chunks = _chunks(load, queue)
    window = _Window()
    start.wait()
    began_s = time.monotonic()
    sent = 0
    while time.monotonic() - began_s < load.seconds:
        connection.socket.sendall(next(chunks))
        sent += per_chunk
        while load.confirms and sent - window.confirmed > load.confirms - per_chunk:
            window.take(connection.read())
    while load.confirms and window.confirmed < sent:
        window.take(connection.read())
    # The answer says that the broker has read all.
    connection.call(commands.Channel.Close(200, "", 0, 0), commands.Channel.CloseOk)
    took_s = time.monotonic() - began_s
    connection.close()
    return sent, took_s


def _chunks(load: Load, queue: str) -> tuple[int, Iterator[bytes]]:
    """Returns how many messages a write has, and the writes without an end."""
    body = bytes(load.size)
    messages = [
        published(load.exchange, load.key(queue, number), body, persistent=load.persistent)
        for number in range(max(1, load.keys))
    ]
    per_chunk = max(1, CHUNK_BYTES // len(messages[0]))
    if load.confirms:
        per_chunk = min(per_chunk, max(1, load.confirms // 2))
    in_turn = cycle(messages)
    found = [b"".join(islice(in_turn, per_chunk)) for _ in range(-(-len(messages) // per_chunk))]
    return per_chunk, cycle(found)


class _Window:
    """Counts confirms."""

    def __init__(self) -> None:
        self.confirmed = 0
        self._all_up_to = 0
        self._single: set[int] = set()
        self._unread = b""

    def take(self, data: bytes) -> None:
        """Raises `BrokerError` for a nack."""
        data = self._unread + data
        at = 0
        while len(data) - at >= FRAME_HEAD_BYTES:
            end = at + FRAME_HEAD_BYTES + int.from_bytes(data[at + 3 : at + 7], "big") + 1
            if end > len(data):
                break
            self._take_frame(data[at:end])
            at = end
        self._unread = data[at:]

    def _take_frame(self, raw: bytes) -> None:
        kind, _, _, class_id, method_id = _METHOD.unpack_from(raw)
        if (kind, class_id) != (1, _BASIC) or method_id not in (_ACK, _NACK):
            raise BrokerError(f"a confirm was expected, method {class_id}.{method_id} came")
        if method_id == _NACK:
            raise BrokerError("the broker refuses messages: it is short of memory or disk")
        tag, is_multiple = _TAG_AND_FLAG.unpack_from(raw, _METHOD.size)
        if is_multiple:
            self._all_up_to = max(self._all_up_to, tag)
            self._single = {one for one in self._single if one > tag}
        else:
            self._single.add(tag)
            while self._all_up_to + 1 in self._single:
                self._all_up_to += 1
                self._single.discard(self._all_up_to)
        self.confirmed = self._all_up_to + len(self._single)


def consume(
    load: Load, number: int, start: Any, report: Callable[[Any], None], counts: Any, stop: Any
) -> None:
    """Consumes until `stop` is set; `counts[number]` is how many messages have come. Reports only
    what went wrong."""
    try:
        connection = Connection(load.address)
        if load.prefetch:
            qos = commands.Basic.Qos(prefetch_count=load.prefetch)
            connection.call(qos, commands.Basic.QosOk)
        queue = load.queues[number % len(load.queues)]
        request = commands.Basic.Consume(queue=queue, no_ack=not load.prefetch)
        connection.call(request, commands.Basic.ConsumeOk)
        connection.socket.settimeout(POLL_S)
        start.wait()
        _read_deliveries(load, connection, number, counts, stop)
        connection.close()
    except (BrokerError, OSError) as error:
        report(str(error))
        start.abort()


def _read_deliveries(
    load: Load, connection: Connection, number: int, counts: Any, stop: Any
) -> None:
    unread, size, count = bytes(connection.unread), 0, 0
    while not stop.is_set():
        try:
            unread += connection.read()
        except TimeoutError:
            continue
        size = size or _delivery_bytes(unread, 3 if load.size else 2)
        if not size or len(unread) < size:
            continue
        complete = len(unread) // size
        count += complete
        _check_tag(unread[(complete - 1) * size :], count)
        unread = unread[complete * size :]
        if load.prefetch:
            connection.send(commands.Basic.Ack(count, True))
        counts[number] = count


def _delivery_bytes(data: bytes, frames: int) -> int:
    """Returns the size of the delivery at the beginning; 0 if it is not complete."""
    at = 0
    for _ in range(frames):
        if len(data) - at < FRAME_HEAD_BYTES:
            return 0
        at += FRAME_HEAD_BYTES + int.from_bytes(data[at + 3 : at + 7], "big") + 1
    return at if at <= len(data) else 0


def _check_tag(delivery: bytes, expected: int) -> None:
    """Raises `BrokerError` unless this is the delivery with that tag."""
    kind, _, _, class_id, method_id = _METHOD.unpack_from(delivery)
    tag_at = _METHOD.size + 1 + delivery[_METHOD.size]
    (tag,) = struct.unpack_from(">Q", delivery, tag_at)
    if (kind, class_id, method_id, tag) != (1, _BASIC, _DELIVER, expected):
        raise BrokerError(f"delivery {expected} was expected, something else came")
