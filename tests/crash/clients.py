"""Connections that are closed whatever happens to the server."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from tests.bench.client import Address, Client


@contextlib.contextmanager
def connected(address: Address) -> Iterator[Client]:
    """A client with a channel; it leaves politely unless an exception ends it."""
    client = connect(address)
    try:
        yield client
        client.close()
    finally:
        client.socket.close()


def connect(address: Address) -> Client:
    """A client with a channel. Raises `OSError` or `BenchError`, with the socket closed."""
    client = Client(address, shake=False)
    try:
        for send, expected in client.steps:
            client.socket.sendall(send)
            client.take_step(expected)
    except BaseException:
        client.socket.close()
        raise
    return client
