"""Measures the file operations of a broker, and the speed of the disk without one."""

from __future__ import annotations

import os
import time
from pathlib import Path

from . import frames
from .brokers import Broker, SocketBytes
from .client import Client
from .frames import NO_PROPERTIES, Message
from .measure import percentile

PROBE_BYTES = 1 << 20
PROBE_QUEUE = "bench-probe"
BLOCK_BYTES = 512
ROUNDS = 40


def directory_bytes(directory: Path) -> int:
    """Returns the space that the files take on the disk, which differs from their lengths."""
    total = 0
    for folder, _, files in os.walk(directory):
        for name in files:
            try:
                total += os.stat(os.path.join(folder, name)).st_blocks * BLOCK_BYTES
            except FileNotFoundError:
                continue  # It was deleted between the listing and the look.
    return total


class DiskSync:
    """The disk's own time for one write at a file's end with fdatasync, beside the broker's data.

    Half of it is taken when the object is made, half when `median_s` is asked for, so that both
    ends of the run between are seen: other users of a shared disk come and go.
    """

    def __init__(self, broker: Broker, size_bytes: int) -> None:
        self._path = broker.data.parent / "bench-sync-probe"
        self._data = bytes(size_bytes)
        self._times_s = self._measure()

    def _measure(self) -> list[float]:
        times_s: list[float] = []
        with self._path.open("wb", buffering=0) as file:
            for _ in range(ROUNDS):
                start = time.monotonic()
                file.write(self._data)
                os.fdatasync(file.fileno())
                times_s.append(time.monotonic() - start)
        self._path.unlink()
        return times_s

    def median_s(self) -> float:
        self._times_s += self._measure()
        return percentile(self._times_s, 50)


def _probe_sockets(broker: Broker) -> SocketBytes:
    """Sends one large transient message there and back, and looks whether it was counted."""
    client = Client(broker.address)
    client.declare_queue(PROBE_QUEUE)
    before = broker.meter.files()
    body = bytes(PROBE_BYTES)
    client.socket.sendall(Message("", PROBE_QUEUE, body).published())
    client.get(PROBE_QUEUE, len(frames.content(1, body, NO_PROPERTIES)))
    after = broker.meter.files()
    client.delete_queue(PROBE_QUEUE)
    client.close()
    return SocketBytes(
        after.read - before.read >= PROBE_BYTES, after.written - before.written >= PROBE_BYTES
    )


class FileBytes:
    """Bytes that the broker read from and wrote to files since the object was made.

    They are `rchar` and `wchar` of /proc/PID/io: what was given to the system calls, whether or
    not it reached the disk. These count a socket's bytes too where it is used with read() and
    write(), and not where it is used with recv() and send(). A probe finds out which, and the
    caller says how many bytes went over sockets, to be taken off. Memory maps are not counted.
    """

    def __init__(self, broker: Broker) -> None:
        if broker.sockets is None:
            broker.sockets = _probe_sockets(broker)
        self._broker, self._sockets = broker, broker.sockets
        self._before = broker.meter.files()

    def written(self, to_clients: int) -> int:
        total = self._broker.meter.files().written - self._before.written
        return total - (to_clients if self._sockets.writes_counted else 0)

    def read(self, from_clients: int) -> int:
        total = self._broker.meter.files().read - self._before.read
        return total - (from_clients if self._sockets.reads_counted else 0)
