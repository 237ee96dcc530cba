"""What is read by offset: streams and persistent exchanges, whose readers rely on the numbers.

A reader of a stream goes on behind the last offset that it has seen, over kills. Between two
lives all of it is read again: what was confirmed is there, once, in the order of its publisher,
and each offset says what it has always said.
"""

from __future__ import annotations

import select
import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tests.bench import frames
from tests.bench.client import BASIC, QUEUE, Client
from tests.conformance import frames as tables

from .clients import connected
from .journal import CONFIRMED, Journal
from .site import Site, Worker
from .wire import Frames, check_method, read_body, settle

STREAM_OFFSET, KEPT_OFFSET = "x-stream-offset", "x-offset"
READ_BYTES = 1 << 18
PREFETCH = 2_000
IDLE_S = 0.1
STUCK_S = 30.0
_DELIVER = 60


class Read(NamedTuple):
    """A message by its offset."""

    offset: int
    publisher: int
    number: int


class Reading:
    """A consumer of one queue; each delivery has a number among its headers under `name`."""

    def __init__(self, client: Client, queue: str, name: str, **arguments: object) -> None:
        self._client = client
        client.call(BASIC, 10, struct.pack(">IHB", 0, PREFETCH, 0))
        given = tables.table({key.replace("_", "-"): value for key, value in arguments.items()})
        names = frames.short(queue) + frames.short("c")
        client.call(BASIC, 20, b"\x00\x00" + names + b"\x00" + given)
        self._name = frames.short(name) + b"l"
        self._frames = Frames(client.buffered)
        client.buffered.clear()
        self._offset, self._missing = -1, 0
        self._body = b""
        self._tag = self._whole = 0

    def more(self, timeout_s: float) -> list[Read]:
        """What comes next, which is acknowledged; nothing if nothing comes for so long."""
        found = self._take(b"")
        while not found and select.select([self._client.socket], [], [], timeout_s)[0]:
            data = self._client.socket.recv(READ_BYTES)
            if not data:
                raise ConnectionResetError("closed by the broker")
            found = self._take(data)
        if found:
            self._client.socket.sendall(settle(self._whole, multiple=True))
        return found

    def _take(self, data: bytes) -> list[Read]:
        found = []
        for kind, payload in self._frames.feed(data):
            if kind == frames.METHOD:
                if check_method(payload) == (BASIC, _DELIVER):
                    (self._tag,) = struct.unpack_from(">Q", payload, 5 + payload[4])
            elif kind == frames.HEADER:
                (self._missing,) = struct.unpack_from(">Q", payload, 4)
                at = payload.index(self._name) + len(self._name)
                (self._offset,) = struct.unpack_from(">q", payload, at)
                self._body = b""
            elif kind == frames.BODY:
                self._body += payload
                if len(self._body) == self._missing:
                    found.append(Read(self._offset, *(read_body(self._body) or (-1, -1))))
                    self._whole = self._tag
        return found


class Offsets:
    """What each offset has said so far, and what has to be there."""

    def __init__(self, name: str, journal: Journal) -> None:
        self.name = name
        self.journal = journal
        self.faults: list[str] = []
        self._said: dict[int, Read] = {}

    @property
    def following(self) -> int:
        """The offset behind all that were seen."""
        return max(self._said, default=-1) + 1

    def fault(self, what: str) -> None:
        self.faults.append(f"{self.name}: {what}")

    def saw(self, read: Sequence[Read]) -> None:
        """These were delivered."""
        for one in read:
            before = self._said.setdefault(one.offset, one)
            if before != one:
                self.fault(f"offset {one.offset} was {before}, now it is {one}")

    def audit(self, read: Sequence[Read], first: int = 0) -> None:
        """All that there is from the offset `first` on."""
        offsets = [one.offset for one in read]
        if offsets != list(range(first, first + len(read))):
            self.fault(f"offsets from {first} on have gaps or repeats: {_gaps(offsets, first)}")
        missing = [at for at in self._said if at >= first + len(read)]
        if missing:
            self.fault(f"{len(missing)} offsets that were seen are gone, from {min(missing)} on")
        self.saw(read)
        numbers = [one.number for one in read]
        if numbers != sorted(set(numbers)):
            self.fault("a message is there twice, or before one that was published earlier")
        self._confirmed(set(numbers), min(numbers) - 1 if first and numbers else -1)

    def _confirmed(self, there: set[int], above: int) -> None:
        fates = self.journal.fates[: self.journal.attempted]
        lost = [
            number
            for number, fate in enumerate(fates)
            if fate == CONFIRMED and number > above and number not in there
        ]
        if lost:
            self.fault(f"{len(lost)} confirmed messages are lost, the first is {lost[0]}")


def _gaps(offsets: Sequence[int], first: int) -> list[tuple[int, int]]:
    """The first places where an offset is not the one that was to come."""
    wrong = [(at, found) for at, found in enumerate(offsets, first) if at != found]
    return wrong[:3]


class Following(Worker):
    """Reads a stream from where it was in the life before."""

    def __init__(self, site: Site, offsets: Offsets) -> None:
        super().__init__(site, f"reader of {offsets.name}")
        self._offsets = offsets

    def session(self) -> None:
        offsets = self._offsets
        with connected(self.site.amqp) as client:
            start = offsets.following
            reading = Reading(client, offsets.name, STREAM_OFFSET, x_stream_offset=start)
            while not self.stopping.is_set():
                read = reading.more(IDLE_S)
                if read and read[0].offset < start:
                    offsets.fault(f"asked for {start}, got {read[0].offset}")
                offsets.saw(read)


def read_stream(site: Site, name: str) -> list[Read]:
    """All of it."""
    with connected(site.amqp) as client:
        count = client.declare_queue(name, passive=True)
        return _so_many(Reading(client, name, STREAM_OFFSET, x_stream_offset="first"), count)


def read_exchange(site: Site, exchange: str, offset: int = 0) -> list[Read]:
    """What a new binding gets of all that was kept."""
    queue = f"{exchange}.audit"
    with connected(site.amqp) as client:
        client.declare_queue(queue, durable=True)
        bind(client, queue, exchange, {"x-from": offset})
        count = client.declare_queue(queue, passive=True)
        found = _so_many(Reading(client, queue, KEPT_OFFSET), count)
    with connected(site.amqp) as client:
        client.delete_queue(queue)
    return found


def _so_many(reading: Reading, count: int) -> list[Read]:
    found: list[Read] = []
    while len(found) < count and (more := reading.more(STUCK_S)):
        found += more
    return found


def bind(client: Client, queue: str, exchange: str, arguments: Mapping[str, object]) -> None:
    names = frames.short(queue) + frames.short(exchange) + frames.short("")
    client.call(QUEUE, 20, b"\x00\x00" + names + b"\x00" + tables.table(arguments))
