"""Free loopback ports that stay free."""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from collections import deque
from pathlib import Path

# Below the ports that systems hand to outgoing connections (Linux from 32768, macOS from
# 49152), so that a client of the same test can't take a port between two starts of a server.
FIRST_PORT, LAST_PORT = 20_000, 32_000
ATTEMPTS = 200
RESERVED = 500
"""Far more ports than tests of one process use at a time."""

_reserved: deque[int] = deque()
# A byte for each port, locked by the process that has it reserved: another one that runs tests
# does not get a port whose server is being restarted just now.
_locks = os.open(Path(tempfile.gettempdir(), "warren-test-ports"), os.O_RDWR | os.O_CREAT)


def free_port() -> int:
    """Returns a port that nothing listens on at 127.0.0.1, reserved for this process.

    Raises `OSError` when none is found.
    """
    for _ in range(ATTEMPTS):
        port = random.randint(FIRST_PORT, LAST_PORT)
        if port not in _reserved and _reserve(port) and _is_free(port):
            return port
    raise OSError(f"no free port between {FIRST_PORT} and {LAST_PORT}")


def _reserve(port: int) -> bool:
    try:
        fcntl.lockf(_locks, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError:
        return False
    _reserved.append(port)
    if len(_reserved) > RESERVED:
        fcntl.lockf(_locks, fcntl.LOCK_UN, 1, _reserved.popleft())
    return True


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def accepts(port: int) -> bool:
    """Tells whether something listens on the port at 127.0.0.1."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0
