"""Ends connections whose clients are gone without a word, as after a power failure."""

from __future__ import annotations

import asyncio
import socket
from typing import Final

ACKNOWLEDGED_S: Final = 60


def end_without_acknowledgement(transport: asyncio.BaseTransport) -> None:
    """Has the system end a connection when what was sent is not acknowledged within
    `ACKNOWLEDGED_S`; by itself TCP tries again for a quarter of an hour. Only Linux can."""
    found = transport.get_extra_info("socket")
    option = getattr(socket, "TCP_USER_TIMEOUT", None)
    if found is not None and option is not None:
        found.setsockopt(socket.IPPROTO_TCP, option, ACKNOWLEDGED_S * 1_000)
