"""Opens the connections for all requests of the hub.

A host is resolved once, all of its addresses are vetted, and only those are dialled. The next one
is tried when an address fails or is slow (RFC 8305 5), so an unreachable one of several costs
neither the request nor its time.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable, Sequence

from .addresses import Address
from .guard import Guard
from .lookups import Purpose

STAGGER_S = 0.25
"""How long a connect may take before the next address is tried too."""


class Dialler:
    """Connects to hosts; `connect_timeout_s` is the limit for all addresses of one together."""

    def __init__(self, guard: Guard, connect_timeout_s: float, purpose: Purpose) -> None:
        self._guard = guard
        self._connect_timeout_s = connect_timeout_s
        self._purpose = purpose

    async def connect(self, host: str, port: int) -> socket.socket:
        """Returns a connected, non-blocking socket.

        Raises `CallbackRefused` if the guard refuses the host, `NotResolved` if names can't be
        looked up now, and `OSError` (or its subclass `TimeoutError`) if no address accepts.
        """
        addresses = await self._guard.resolve(host, port, self._purpose)
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                return await _connect_first(addresses, port)
        except TimeoutError as error:
            limit = f"{self._connect_timeout_s:g} s"
            raise TimeoutError(f"no connection to {host}:{port} within {limit}") from error


async def _connect_first(addresses: Sequence[Address], port: int) -> socket.socket:
    if len(addresses) == 1:
        return await _connect(addresses[0], port)
    tasks: list[asyncio.Task[socket.socket]] = []
    winner: asyncio.Task[socket.socket] | None = None
    try:
        winner = await _race(addresses, port, tasks)
        return winner.result()
    finally:
        await _discard(task for task in tasks if task is not winner)


async def _race(
    addresses: Sequence[Address], port: int, tasks: list[asyncio.Task[socket.socket]]
) -> asyncio.Task[socket.socket]:
    """Returns the first task that succeeds, else the last; adds all started ones to `tasks`."""
    running: set[asyncio.Task[socket.socket]] = set()
    failed = None
    for position, address in enumerate(addresses, 1):
        tasks.append(asyncio.create_task(_connect(address, port)))
        running.add(tasks[-1])
        is_last = position == len(addresses)
        while running:
            wait_s = None if is_last else STAGGER_S
            done, running = await asyncio.wait(
                running, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED
            )
            for task in done:
                if task.exception() is None:
                    return task
                failed = task
            if not is_last:
                break
    assert failed is not None  # the guard returns at least one address
    return failed


async def _discard(tasks: Iterable[asyncio.Task[socket.socket]]) -> None:
    """Cancels tasks, and closes the connections that some have opened."""
    ended = list(tasks)
    for task in ended:
        task.cancel()
    for result in await asyncio.gather(*ended, return_exceptions=True):
        if isinstance(result, socket.socket):
            result.close()


async def _connect(address: Address, port: int) -> socket.socket:
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    connecting = socket.socket(family, socket.SOCK_STREAM)
    try:
        connecting.setblocking(False)
        connecting.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.get_running_loop().sock_connect(connecting, (str(address), port))
    except BaseException:
        connecting.close()
        raise
    return connecting
