"""The probe, at a server that leaves one request unanswered for a while."""

from __future__ import annotations

import os
import socket
import threading
import time

from tests.bench.client import Address

from .probe import REQUEST, Probe

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
STALLED_S = 1.0


def serve(listener: socket.socket, late: threading.Event) -> None:
    """Answers the fifth request late, and all others at once."""
    connection, _ = listener.accept()
    with connection:
        asked = 0
        while connection.recv(len(REQUEST)):
            asked += 1
            if asked == 5:
                time.sleep(STALLED_S)
            connection.sendall(ANSWER)
            if asked == 10:
                late.set()


def test_a_late_answer_is_a_stall() -> None:
    late = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener, late))
        thread.start()
        probe = Probe(Address(*listener.getsockname()), os.getpid())
        assert late.wait(60.0)
        found = probe.stop()
        thread.join()
    assert found.answers >= 9
    assert found.max_ms >= STALLED_S * 1e3
    # What it waited for a processor is taken off, and that is never all of it.
    assert STALLED_S * 500 < found.stall_ms <= found.max_ms
