"""The Host field of a request: a name or address, maybe with a port (RFC 9110 7.2)."""

from __future__ import annotations

import re
from functools import lru_cache

_HOST = re.compile(rb"([A-Za-z0-9._~-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?")


@lru_cache(1024)
def is_host(value: bytes) -> bool:
    """Returns whether the value of a Host field is well formed."""
    return _HOST.fullmatch(value) is not None
