"""Consumers: each acks in its own way, and tells the checker before it does."""

from __future__ import annotations

import random
import select
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tests.bench import frames
from tests.bench.client import Client

from .checker import Arrival
from .clients import connected
from .site import Site, Worker
from .wire import (
    BASIC,
    CANCEL_OK,
    COMMIT,
    SELECT,
    TX,
    Deliveries,
    Delivery,
    read_body,
    refuse,
    settle,
)

READ_BYTES = 1 << 18
IDLE_S = 0.1
HELD_MAX = 100
TAG = "c"


class Held(NamedTuple):
    """A delivery that has to be settled."""

    tag: int
    publisher: int
    number: int
    redelivered: bool


class Settlement(NamedTuple):
    """What to send, what is consumed by it, and what stays held."""

    frames: bytes
    consumed: Sequence[Held]
    held: Sequence[Held]


Style = Callable[[Sequence[Held], random.Random], Settlement]


def in_ranges(held: Sequence[Held], chance: random.Random) -> Settlement:
    """All at once, or all but some of the last."""
    keep = chance.choice((0, 0, 1, 7))
    done = held[: max(1, len(held) - keep)]
    return Settlement(settle(done[-1].tag, multiple=True), done, held[len(done) :])


def odd_ones(held: Sequence[Held], chance: random.Random) -> Settlement:
    """Odd tags one by one, even ones later, in any order."""
    done = [one for one in held if one.tag & 1 or len(held) > HELD_MAX]
    chance.shuffle(done)
    kept = {one.tag for one in held} - {one.tag for one in done}
    return Settlement(
        b"".join(settle(one.tag) for one in done), done, [one for one in held if one.tag in kept]
    )


def returning(held: Sequence[Held], chance: random.Random) -> Settlement:
    """Some go back to the queue the first time that they come, the others are acked."""
    back = [one for one in held if not one.redelivered and chance.random() < 0.05]
    tags = {one.tag for one in back}
    rest = [one for one in held if one.tag not in tags]
    data = b"".join(refuse(one.tag, requeue=True) for one in back)
    return Settlement(data + (settle(rest[-1].tag, multiple=True) if rest else b""), rest, ())


def rejecting(every: int, rest: int) -> Style:
    """Numbers with that remainder become dead letters, the others are acked one by one."""

    def style(held: Sequence[Held], chance: random.Random) -> Settlement:
        data = b"".join(
            refuse(one.tag, requeue=False) if one.number % every == rest else settle(one.tag)
            for one in held
        )
        return Settlement(data, held, ())

    return style


class Consumer(Worker):
    """Reads one queue. With `naps` it stays away for that share of the server's lives; if it is
    `transacted`, it commits what it settles."""

    def __init__(
        self,
        site: Site,
        queue: str,
        index: int,
        style: Style,
        *,
        prefetches: Sequence[int] = (0,),
        naps: float = 0.0,
        transacted: bool = False,
    ) -> None:
        super().__init__(site, f"consumer {index} of {queue}")
        self.queue = queue
        self._index = index
        self._style = style
        self._prefetches = prefetches
        self._naps = naps
        self._transacted = transacted
        self._commits = 0
        self._random = random.Random(index)
        self._held: list[Held] = []

    def session(self) -> None:
        self._held.clear()
        if self._random.random() < self._naps:
            self._sleep()
            return
        with connected(self.site.amqp) as client:
            self._commits = 0
            if self._transacted:
                client.call(TX, SELECT)
            prefetch = self._random.choice(self._prefetches)
            client.consume(self.queue, TAG, no_ack=False, prefetch=prefetch)
            reader = Deliveries(client.buffered)
            client.buffered.clear()
            self._read(client, reader)
            self._leave(client, reader)

    def _sleep(self) -> None:
        while self.alive and not self.site.calm.is_set() and not self.stopping.is_set():
            self.stopping.wait(IDLE_S)

    def _read(self, client: Client, reader: Deliveries) -> None:
        self._take(client, reader.feed(b""))
        while not self.stopping.is_set():
            if select.select([client.socket], [], [], IDLE_S)[0]:
                self._take(client, reader.feed(self._receive(client)))
            else:
                self._settle_all(client)

    def _receive(self, client: Client) -> bytes:
        data = client.socket.recv(READ_BYTES)
        if not data:
            raise ConnectionResetError("closed by the broker")
        return data

    def _take(self, client: Client, deliveries: Sequence[Delivery]) -> None:
        if not deliveries:
            return
        arrivals: deque[Arrival] = deque()
        for tag, redelivered, body in deliveries:
            publisher, number = self._identify(body)
            arrivals.append(Arrival(publisher, number, redelivered))
            self._held.append(Held(tag, publisher, number, redelivered))
        self.site.checker.delivered(self.queue, self._index, arrivals, self.life)
        style = in_order if self.site.calm.is_set() and self._style is returning else self._style
        self._settle(client, style(self._held, self._random))

    def _identify(self, body: bytes) -> tuple[int, int]:
        found = read_body(body)
        if found is None or not body.endswith(self.site.fillers.get(found[0], b"\0")):
            self.site.checker.breaks("damaged", f"{self.queue}: {body[:64].hex()}")
            return found or (-1, -1)
        return found

    def _settle(self, client: Client, settlement: Settlement) -> None:
        consumed = [(one.publisher, one.number) for one in settlement.consumed]
        self.site.checker.consumed(self.queue, consumed)
        self._held = list(settlement.held)
        client.socket.sendall(settlement.frames)
        if self._transacted:
            self._commits += 1
            client.socket.sendall(frames.method(1, TX, COMMIT))

    def _settle_all(self, client: Client) -> None:
        if self._held:
            self._settle(client, in_order(self._held, self._random))

    def _leave(self, client: Client, reader: Deliveries) -> None:
        """Cancels, settles what came until then, and closes."""
        cancel = frames.short(TAG) + b"\x00"
        client.socket.sendall(frames.method(1, BASIC, CANCEL_OK - 1, cancel))
        while (BASIC, CANCEL_OK) not in reader.others:
            self._take(client, reader.feed(self._receive(client)))
        self._settle_all(client)
        while reader.others.count((TX, COMMIT + 1)) < self._commits:
            reader.feed(self._receive(client))
        client.close_channel()


def in_order(held: Sequence[Held], chance: random.Random) -> Settlement:
    """All of them with one ack."""
    return Settlement(settle(held[-1].tag, multiple=True), list(held), ())
