"""Bounds the memory of logins that wait for their password check.

Open sockets are no bound, because HTTP clients may hang up while their password waits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ..errors import WarrenError

ATTEMPT_BYTES: Final = 3_072
"""Estimated memory of a waiting login, beside its name and password."""
MAX_BYTES: Final = 67_108_864
ADDRESS_MAX_BYTES: Final = 33_554_432
"""Bounds for all waiting logins and for one address: some 10,000 clients that reconnect at once."""


class TooManyAttempts(WarrenError):
    """The password was not checked: too many logins wait, in all or from that address."""

    def __init__(self) -> None:
        super().__init__("too many logins wait for their passwords to be checked")


class LoginQueue:
    """Counts the bytes of waiting logins, in all and by address."""

    def __init__(self) -> None:
        self._bytes = 0
        self._of: dict[str, int] = {}

    def enter(self, address: str, size: int) -> Callable[[], None]:
        """Counts a login; returns a function to call once it is done. Raises `TooManyAttempts`."""
        size += ATTEMPT_BYTES
        address_bytes = self._of.get(address, 0) + size
        if address_bytes > ADDRESS_MAX_BYTES or self._bytes + size > MAX_BYTES:
            raise TooManyAttempts
        self._bytes += size
        self._of[address] = address_bytes
        return lambda: self._leave(address, size)

    def _leave(self, address: str, size: int) -> None:
        self._bytes -= size
        self._of[address] -= size
        if not self._of[address]:
            del self._of[address]
