"""This hub among those with the same database: it waits until it is the active one.

There is no election and no list of hubs. Whose session has the database's lock is active, and
PostgreSQL gives the lock to one that waits when that session has ended.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.errors import ConfigError
from ..errors import DatabaseDown, DatabaseUnavailable, StorageFailed
from ..keys.key_file import fingerprint

if TYPE_CHECKING:
    import asyncpg

    from ..storage.storage import Storage
    from .active_hub import ActiveHub

POLL_S = 0.5
AGAIN_S = 3.0
"""After the database was lost, the active hub goes first: it tries each second."""

log = logging.getLogger(__name__)


class Peers:
    """Implements `LockWaiter`. `on_lost` is called when another hub has taken over: this one then
    must end."""

    def __init__(self, key_file: Path, address: str, on_lost: Callable[[], None]) -> None:
        self.id = secrets.token_hex(8)
        self.waits = True
        self.waiting = asyncio.Event()
        """Set when it has to wait."""
        self.active: ActiveHub | None = None
        """The hub for which it waits, as soon as that is known."""
        self._address = address
        self._key_file = key_file
        self._on_lost = on_lost
        self._stopped = asyncio.Event()

    async def become_active(self, storage: Storage) -> ActiveHub | None:
        """Opens the database once no other hub uses it; returns the hub that was active before, if
        it has not stopped by itself.

        Raises `ConfigError` for a database that can't be used, or is that of hubs with another key,
        and `DatabaseDown` also after `stop`.
        """
        while True:
            try:
                database = await storage.database()
                break
            except DatabaseDown as error:
                if self._stopped.is_set() or not self.waiting.is_set():
                    raise
                log.warning("still a standby: %s", error)
                self.active = None
                await self._pause(AGAIN_S)
        self.waits = False
        from . import active_hub

        before = await active_hub.load(database)
        self._check_key(before)
        own = active_hub.ActiveHub(self.id, self._address, fingerprint(self._key_file))
        await active_hub.store(database, own)
        return before if before is not None and before.id else None

    async def leave(self, storage: Storage) -> None:
        """Says that this hub has stopped by itself, before it closes the database."""
        if self.waits:
            return
        from . import active_hub

        gone = active_hub.ActiveHub("", "", fingerprint(self._key_file))
        with suppress(StorageFailed):  # the next hub then closes connections that are not there
            await active_hub.store(await storage.database(), gone)

    def stop(self) -> None:
        """Ends the waiting."""
        self._stopped.set()

    async def wait(self, session: asyncpg.Connection) -> None:
        from . import active_hub

        self.active = await active_hub.read(session)
        self._check_key(self.active)
        self.waiting.set()
        await self._pause(POLL_S)
        if self._stopped.is_set():
            raise DatabaseUnavailable("the server is stopping")

    async def is_replaced(self, session: asyncpg.Connection) -> bool:
        from . import active_hub

        found = await active_hub.read(session)
        return found is not None and found.id != self.id

    def lost(self) -> None:
        self._on_lost()

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopped.wait(), seconds)

    def _check_key(self, other: ActiveHub | None) -> None:
        if other is None:
            return
        if not self._key_file.exists():
            raise ConfigError(
                f"there is no key at {self._key_file}: hubs with the same database need the same "
                "key, so copy the file from another one, or name it with --hub-key-file"
            )
        if fingerprint(self._key_file) != other.key_print:
            raise ConfigError(
                f"{self._key_file} is not the key of the hubs with this database: copy the file "
                "from another one, or name it with --hub-key-file"
            )
