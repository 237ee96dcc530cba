"""How many may wait for their password to be checked: so many that their memory is bounded.

Open sockets are no bound, for whoever tries a password over HTTP may hang up at once.
"""

from __future__ import annotations

from collections.abc import Callable

from ..errors import WarrenError

ATTEMPT_BYTES = 3_072
"""What one that waits weighs, beside its name and password."""
MAX_BYTES = 67_108_864
ADDRESS_MAX_BYTES = 33_554_432
"""Of all that wait, and of one address: some 10,000 clients that come back together."""


class TooManyAttempts(WarrenError):
    """The password was not looked at: too many wait for that already, here or at that address."""

    def __init__(self) -> None:
        super().__init__("too many logins wait for their passwords to be checked")


class LoginQueue:
    """Counts bytes, altogether and by address; `address` says who belongs together."""

    def __init__(self) -> None:
        self._bytes = 0
        self._of: dict[str, int] = {}

    def enter(self, address: str, size: int) -> Callable[[], None]:
        """Gives what is to be called once, by who leaves. Raises `TooManyAttempts`."""
        size += ATTEMPT_BYTES
        here = self._of.get(address, 0) + size
        if here > ADDRESS_MAX_BYTES or self._bytes + size > MAX_BYTES:
            raise TooManyAttempts
        self._bytes += size
        self._of[address] = here
        return lambda: self._leave(address, size)

    def _leave(self, address: str, size: int) -> None:
        self._bytes -= size
        self._of[address] -= size
        if not self._of[address]:
            del self._of[address]
