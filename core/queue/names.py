"""Names that the server gives to queues, which clients can't choose."""

from __future__ import annotations

import secrets
from base64 import urlsafe_b64encode
from typing import Final

INNER_MARK: Final = "\n"
"""In the names of inner queues; names of clients must not have it."""


def inner_name(kind: str, exchange: str) -> str:
    return f"{kind}{INNER_MARK}{exchange}"


def server_name() -> str:
    """Returns a new queue name with 128 random bits, which nobody can guess."""
    return "amq.gen-" + urlsafe_b64encode(secrets.token_bytes(16)).rstrip(b"=").decode()
