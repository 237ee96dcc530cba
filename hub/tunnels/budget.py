"""The memory for requests without a reply and for replies that are not sent yet."""

from __future__ import annotations

from collections import Counter
from typing import Final

from .errors import TunnelFull

OWNER_SHARE: Final = 4
"""One account may take this part: nobody can use up what others need."""


class ByteBudget:
    """The bytes that all tunnels share; each has an account (`TunnelRegistration.account`)."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._taken_bytes = 0
        self._by_account: Counter[str] = Counter()

    def take(self, account: str, size: int) -> None:
        """Takes bytes; raises `TunnelFull` above a limit. The first bytes always fit."""
        share = self._max_bytes // OWNER_SHARE
        self._check(self._by_account[account], size, share, "the tunnels of its owner")
        self._check(self._taken_bytes, size, self._max_bytes, "all tunnels")
        self._taken_bytes += size
        self._by_account[account] += size

    def give_back(self, account: str, size: int) -> None:
        self._taken_bytes -= size
        self._by_account[account] -= size
        if not self._by_account[account]:
            del self._by_account[account]

    def _check(self, taken: int, size: int, limit: int, whose: str) -> None:
        if taken and taken + size > limit:
            reason = f"memory limit of {whose} reached"
            raise TunnelFull(reason, field="tunnels", limit=f"{limit} bytes")
