"""Hostile clients: endless frames, sockets that are not read; and figures from /proc."""

from __future__ import annotations

import select
import socket
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.conformance import frames, raw
from tests.support.process import wait_until
from tests.support.server import WarrenServer

MIB = 1024 * 1024
FRAME_MAX = 131_072
STALLED_S = 0.3
"""A socket that takes nothing for so long belongs to a server that has stopped to read."""


def method(name: str, channel: int = 1, **fields: object) -> bytes:
    return frames.frame(frames.METHOD, channel, frames.method(name, **fields))


def publish(body: bytes = b"", channel: int = 1, **fields: object) -> bytes:
    head = frames.frame(frames.METHOD, channel, frames.method("Basic.Publish", **fields))
    header = frames.frame(frames.HEADER, channel, frames.content_header(len(body)))
    return head + header + frames.body_frames(channel, body, FRAME_MAX)


def memory_bytes(server: WarrenServer) -> int:
    """The resident memory of the process (Linux)."""
    return _status_bytes(server, "VmRSS:")


def peak_bytes(server: WarrenServer) -> int:
    """The peak of its memory since `forget_peak`."""
    return _status_bytes(server, "VmHWM:")


def forget_peak(server: WarrenServer) -> int:
    """Counts the peak from now on; returns where it begins."""
    server.rest()
    Path(f"/proc/{server.pid}/clear_refs").write_text("5")
    return peak_bytes(server)


def _status_bytes(server: WarrenServer, name: str) -> int:
    for line in Path(f"/proc/{server.pid}/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"no {name}")


def open_files(server: WarrenServer) -> int:
    return len(list(Path(f"/proc/{server.pid}/fd").iterdir()))


def open_sockets(server: WarrenServer) -> int:
    """Files of the store come and go on their own, sockets only with their connections."""
    return sum(_is_socket(path) for path in Path(f"/proc/{server.pid}/fd").iterdir())


def _is_socket(path: Path) -> bool:
    try:
        return str(path.readlink()).startswith("socket:")
    except FileNotFoundError:  # closed since it was listed
        return False


def push(connection: socket.socket, data: bytes, limit_bytes: int) -> int:
    """Sends `data` over and over, reading nothing, until the limit, or until nothing goes any
    more; returns how many bytes went, whole copies only if the limit is a multiple."""
    connection.setblocking(False)
    sent = 0
    while sent < limit_bytes:
        if not select.select([], [connection], [], STALLED_S)[1]:
            break
        at = sent % len(data)
        sent += connection.send(data[at : min(len(data), at + limit_bytes - sent)])
    connection.settimeout(raw.TIMEOUT_S)
    return sent


def reset(connection: socket.socket) -> None:
    """Ends it with RST instead of FIN."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def deaf(port: int) -> raw.Client:
    """A connection that is open and whose receive buffer is the smallest that there is."""
    client = raw.Client(port)
    client.socket.close()
    client.socket = socket.socket()
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    client.socket.settimeout(raw.TIMEOUT_S)
    client.socket.connect((raw.HOST, port))
    client.start()
    client.log_in()
    client.tune()
    client.open()
    return client


def batches(
    make: Callable[[int], bytes], first: int, count: int, size: int = 500
) -> Iterator[bytes]:
    """The bytes of `make(first)`, `make(first + 1)` and so on, some of them together."""
    for start in range(first, first + count, size):
        yield b"".join(make(number) for number in range(start, min(start + size, first + count)))


def assert_serves(server: WarrenServer) -> None:
    """A client that comes now is served as if nothing had happened, and the log is clean."""
    with raw.connect(server.amqp_port) as client:
        channel = client.channel()
        queue = str(channel.declare(exclusive=True).queue)
        channel.put(queue, b"still here")
        assert channel.taken(queue).body == b"still here"
    assert "Traceback" not in server.output()


def wait_for_sockets(server: WarrenServer, count: int) -> None:
    """Waits until no more than `count` sockets are open: every connection has been closed."""
    wait_until(lambda: open_sockets(server) <= count, 10.0, f"{count} open sockets")
