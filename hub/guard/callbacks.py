"""Resolves callbacks: to addresses that the guard admits, or to a place in this process.

For the latter nothing is resolved or dialled, so the guard needs no exception for them.
"""

from __future__ import annotations

from collections.abc import Callable

from .addresses import Address
from .callback_url import Endpoint, read_callback
from .guard import Guard
from .lookups import Purpose


class CallbackGuard:
    """Checks callbacks and resolves their hosts. `is_local` says whether requests to a host never
    leave this process."""

    def __init__(self, guard: Guard, is_local: Callable[[str], bool] = lambda host: False) -> None:
        self._guard = guard
        self.is_local = is_local

    def check(self, url: str) -> Endpoint:
        """Returns the endpoint of a callback. Raises `CallbackRefused`; no name is looked up."""
        endpoint = read_callback(url)
        return endpoint if self.is_local(endpoint.host) else self._guard.check(url)

    async def resolve(self, endpoint: Endpoint, purpose: Purpose) -> list[Address]:
        """Returns the addresses that would be dialled, none for a local callback.

        Raises as `Guard.resolve`.
        """
        if self.is_local(endpoint.host):
            return []
        return await self._guard.resolve(endpoint.host, endpoint.port, purpose)
