"""Many requests at once on one connection, whose answers have one size."""

from __future__ import annotations

import time

from .client import BenchError, Client

IN_FLIGHT = 1_000
READ_BYTES = 1 << 18


def pipeline(client: Client, requests: list[bytes], answer: int, limit_s: float) -> int:
    """Sends requests with at most 1,000 unanswered; gives how many were answered in time.

    `answer` is the size of each answer. Raises `BenchError` when the broker closes.
    """
    deadline = time.monotonic() + limit_s
    sent = received = 0
    while received < len(requests) * answer and time.monotonic() < deadline:
        free = IN_FLIGHT - (sent - received // answer)
        if free > IN_FLIGHT // 2 and sent < len(requests):
            client.socket.sendall(b"".join(requests[sent : sent + free]))
            sent = min(sent + free, len(requests))
        data = client.socket.recv(READ_BYTES)
        if not data:
            raise BenchError(f"the broker closed the connection after {received // answer}")
        received += len(data)
        _check_end(data)
    # What was sent and is not answered yet would come in the middle of the next answer.
    while received < sent * answer:
        received += len(data := client.socket.recv(READ_BYTES))
        if not data:
            raise BenchError(f"the broker closed the connection after {received // answer}")
    return received // answer


def _check_end(data: bytes) -> None:
    if b"\x00\x14\x00\x28" in data or b"\x00\x0a\x00\x32" in data:
        raise BenchError(f"closed: {data[-200:]!r}")
