"""A broker on a durable store in this process, which can be stopped, killed and opened again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from queue import Empty, SimpleQueue
from shutil import copytree
from time import monotonic
from typing import Any

import pytest

from tests.support.amqp import Client, Reply, make_broker, publish, take_turns
from warrenmq.core.clock import ManualClock
from warrenmq.core.queue.classic import ClassicQueue
from warrenmq.core.queue.queue import Queue
from warrenmq.core.store.disk import RealDisk, RealFile
from warrenmq.core.store.durable import DurableStore
from warrenmq.core.store.record import Record, scan

PERSISTENT: Mapping[str, object] = {"delivery_mode": 2}
TRANSIENT: Mapping[str, object] = {}
PATIENCE_S = 30
BEAT_S = 0.001


class QuickFile(RealFile):
    """A file without syncs: killing the process loses nothing that was written."""

    def sync(self) -> None:
        """Does nothing; the writer counts the call."""


class QuickDisk(RealDisk):
    """A real directory without syncs."""

    def create(self, name: str) -> RealFile:
        return QuickFile(self._open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL))

    def open(self, name: str) -> RealFile:
        return QuickFile(self._open(name, os.O_RDWR))

    def sync_directory(self) -> None:
        """Does nothing, as for files."""


class Life:
    """Broker after broker on one directory; `client` is a client of the present one.

    Without threads: what is handed over to the writer is written at once, and reads arrive in
    the next turn.
    """

    def __init__(self, directory: Path, *, segment_bytes: int = 2**26) -> None:
        self.directory = directory
        self.segment_bytes = segment_bytes
        self.clock = ManualClock()
        self._posted: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self.open()

    def open(self) -> None:
        self.disk = QuickDisk(self.directory)
        self.clock.restart()
        self.store = DurableStore(self.disk, clock=self.clock, segment_bytes=self.segment_bytes)
        self.broker = make_broker(self.store, self.clock)
        self.before_restore()
        if not self.broker.restore():
            self.broker.vhosts["/"].storage.save_vhost()
        self.client = self.connect()

    def before_restore(self) -> None:
        """Does nothing; overridden to change the store before the broker is restored."""

    def connect(self) -> Client:
        return Client(self.broker)

    def stop(self) -> None:
        """Stops the broker in order, as `warren serve` does."""
        queues = self.broker.vhosts["/"].queues.values()
        self.broker.slices.finish()
        self.broker.clock_steps.check()
        durable = [held.highest_delivered for held in queues if held.durable]
        self.store.stop({key: number for held in durable for key, number in held.items()})

    def abandon(self) -> None:
        """Ends the process: nothing more is written, and its files are closed."""
        self.store.writer.stop()
        self.store.paging.close()

    def restart(self) -> Client:
        self.stop()
        self.open()
        return self.client

    def crash(self) -> Client:
        self.abandon()
        self.open()
        return self.client

    def start(self) -> None:
        """Starts the threads that write and read; see `wait`."""
        self.store.start(self._posted.put)

    def wait(self, reached: Callable[[], bool]) -> None:
        """Takes turns until a condition holds: one when a thread reports something, or when the
        broker requests one, for which the clock is advanced."""
        until_s = monotonic() + PATIENCE_S
        while not reached():
            assert monotonic() < until_s, "waited in vain"
            take_turns(self.broker)
            due_ms = self.broker.timers.next_ms
            try:
                self._posted.get(timeout=PATIENCE_S if due_ms is None else BEAT_S)()
            except Empty:
                self.clock.advance(max(1, (due_ms or 0) - self.clock.now_ms()))

    # -- time

    def turns(self, count: int = 3, *, each_ms: int = 0) -> None:
        for _ in range(count):
            self.clock.advance(each_ms)
            take_turns(self.broker)

    def write(self) -> None:
        """Writes everything, though nobody waits for it, and makes checkpoints."""
        self.turns(12, each_ms=10)

    # -- queues

    def queue(self, name: str) -> Queue:
        found = self.broker.vhosts["/"].queues[name]
        assert isinstance(found, Queue)
        return found

    def classic(self, name: str) -> ClassicQueue:
        found = self.queue(name)
        assert isinstance(found, ClassicQueue)
        return found

    def declare(self, name: str, **fields: Any) -> None:
        self.client.declare(name, durable=True, **fields)

    def purge(self, name: str = "q") -> int:
        """Purges a queue; returns the number of messages once that is durable."""
        replies = self.client.send("Queue.Purge", queue=name)
        self.turns()
        (answer,) = replies or self.client.come()
        return int(answer["message_count"])

    def confirm(self) -> None:
        assert self.client.call("Confirm.Select").name == "Confirm.SelectOk"

    def publish(
        self,
        body: bytes,
        queue: str = "q",
        properties: Mapping[str, object] = PERSISTENT,
        **fields: Any,
    ) -> list[Reply]:
        """Publishes a message; returns the replies, confirms included."""
        found = self.client.publish(body, properties, routing_key=queue, **fields)
        self.turns()
        return found + self.client.come()

    def publish_together(
        self,
        bodies: list[bytes],
        queue: str = "q",
        properties: Mapping[str, object] = PERSISTENT,
        *,
        exchange: str = "",
    ) -> list[Reply]:
        """Publishes messages in one read; returns the replies to it."""
        return self.client.feed(
            b"".join(
                publish(1, body, properties, exchange=exchange, routing_key=queue)
                for body in bodies
            )
        )

    def get(self, queue: str = "q", *, ack: bool = True) -> Reply | None:
        """Returns the next message of a queue, None if it is empty."""
        found = _got(self.client.send("Basic.Get", queue=queue, no_ack=ack))
        for _ in range(20):
            if found:
                break
            self.turns(1)
            found = _got(self.client.come())
        (reply,) = found
        return reply if reply.name == "Basic.GetOk" else None

    def drain(self, queue: str = "q") -> list[tuple[bytes, bool]]:
        """Removes all messages of a queue; returns their bodies and redelivered flags."""
        tag = f"drain-{queue}"
        client = self.connect()
        found = client.consume(queue, tag, no_ack=True)
        while self.queue(queue).ready_count:
            self.turns(1)
            found += client.come()
        self.turns(1)
        found += client.come()
        client.send("Connection.Close", reply_code=200)
        return [
            (reply.body, reply["redelivered"]) for reply in found if reply.name == "Basic.Deliver"
        ]

    def bodies(self, queue: str = "q") -> list[bytes]:
        return [body for body, _ in self.drain(queue)]

    def page_out(self, queue: str = "q", head_bytes: int = 0, *, transient: bool = False) -> None:
        for _ in self.queue(queue).page_out(head_bytes, transient=transient):
            pass

    # -- the directory

    def files(self, suffix: str = ".log") -> list[str]:
        return [name for name in self.disk.names() if name.endswith(suffix)]

    @property
    def disk_bytes(self) -> int:
        return sum(path.stat().st_size for path in self.directory.iterdir())


def _got(replies: list[Reply]) -> list[Reply]:
    return [reply for reply in replies if reply.name in ("Basic.GetOk", "Basic.GetEmpty")]


def segments_of(size: int) -> pytest.MarkDecorator:
    """Sets the segment size of the store of the fixture `life`."""
    return pytest.mark.parametrize("life", [size], indirect=True, ids=str)


def torn_lives(life: Life, directory: Path, act: Callable[[], None]) -> Iterator[Life]:
    """Runs `act` and ends the life; yields lives whose log is cut within what `act` wrote."""
    path = life.directory / life.files()[-1]
    before = _log_end(path)
    act()
    life.write()
    life.abandon()
    end = _log_end(path)
    for size in (*range(before, end, 7), end):
        copy = copytree(life.directory, directory / f"torn-{size}")
        os.truncate(copy / path.name, size)
        torn = Life(copy)
        yield torn
        torn.abandon()


def _log_end(path: Path) -> int:
    scanned = scan(int(path.stem), memoryview(path.read_bytes()))
    return max(found.end for found in scanned if isinstance(found, Record))


def acks(replies: list[Reply]) -> list[tuple[int, bool]]:
    return [
        (reply["delivery_tag"], reply["multiple"]) for reply in replies if reply.name == "Basic.Ack"
    ]


def numbered(count: int, first: int = 0, size: int = 6) -> list[bytes]:
    return [b"%0*d" % (size, number) for number in range(first, first + count)]
