"""Free loopback ports that stay free."""

from __future__ import annotations

import random
import socket

# Below the ports that systems hand to outgoing connections (Linux from 32768, macOS from
# 49152), so that a client of the same test can't take a port between two starts of a server.
FIRST_PORT, LAST_PORT = 20_000, 32_000
ATTEMPTS = 200


def free_port() -> int:
    """Gives a port that nothing listens on at 127.0.0.1; raises `OSError` when none is found."""
    for _ in range(ATTEMPTS):
        port = random.randint(FIRST_PORT, LAST_PORT)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError(f"no free port between {FIRST_PORT} and {LAST_PORT}")


def accepts(port: int) -> bool:
    """Tells whether something listens on the port at 127.0.0.1."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0
