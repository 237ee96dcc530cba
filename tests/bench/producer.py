"""Publishers: ready-made frames, written in large chunks until the time or the count is up."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from .client import Address, Client
from .frames import Stream
from .window import Window
from .worker import Control
from .writer import CHUNK_BYTES, Writer

WAIT_S = 0.000_2


@dataclass(frozen=True)
class Load:
    """The amount to publish: at most `limit` messages, for at most `seconds`.

    With `window` the channel is in confirm mode and at most that many are unconfirmed. With
    `ahead` the producer stays at most that many messages ahead of the consumers.
    """

    seconds: float
    limit: int = 1 << 62
    window: int = 0
    ahead: int = 0
    channel: int = 1


@dataclass
class Sent:
    """The published messages, and the time until the broker had them all."""

    count: int
    seconds: float
    confirm_times_s: list[float] = field(default_factory=list)
    confirm_bytes: int = 0


Progress = Callable[[], int]


def publish(
    control: Control, address: Address, stream: Stream, load: Load, consumed: Progress
) -> Sent:
    """Publishes the given amount; counts end with a round trip, so that the broker has them all."""
    client = Client(address, load.channel)
    if load.window:
        client.select_confirms()
    control.ready()
    start = time.monotonic()
    if load.window:
        sent = _publish_confirmed(client, stream, load)
    else:
        sent = Sent(_publish_freely(client, stream, load, consumed), 0.0)
    client.close_channel()
    sent.seconds = time.monotonic() - start
    client.close()
    return sent


def _publish_freely(client: Client, stream: Stream, load: Load, consumed: Progress) -> int:
    writer = Writer(client, stream)
    chunk = max(1, CHUNK_BYTES // stream.size)
    if load.ahead:
        chunk = min(chunk, max(1, load.ahead // 4))
    deadline, count = time.monotonic() + load.seconds, 0
    while count < load.limit and time.monotonic() < deadline:
        if load.ahead and count - consumed() > load.ahead - chunk:
            time.sleep(WAIT_S)
            continue
        count += writer.write(min(chunk, load.limit - count))
    return count


def _publish_confirmed(client: Client, stream: Stream, load: Load) -> Sent:
    window = Window(client, stream, load.window, load.limit, load.seconds)
    window.refill()
    while window.is_open:
        window.receive()
        window.refill()
    return Sent(window.count, 0.0, window.times_s, window.confirms.bytes)
