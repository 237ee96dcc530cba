"""Opens the hub's database at its first use."""

from __future__ import annotations

import asyncio
import importlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.errors import ConfigError
from ..keys.seal import Sealer
from ..lazy import Lazy
from .schema import DATABASE_NAME, has_rows
from .snapshot import DatabaseSnapshot

if TYPE_CHECKING:
    from ..subscriptions.repository import Repository
    from .database import Database
    from .postgresql import LockWaiter


class Storage:
    """Opens the hub's database. SQLite in the data directory, or the PostgreSQL of the URL, which
    is opened at the start, when the `waiter` has the lock.

    Each part of the hub has its own repository on `database()`. Modules that import SQLAlchemy are
    imported only if `is_empty` is false or something is stored.
    """

    def __init__(
        self,
        data_directory: Path,
        database_url: str | None,
        sealer: Sealer,
        waiter: LockWaiter | None = None,
    ) -> None:
        self._waiter = waiter
        self._path = data_directory / DATABASE_NAME
        self._url = database_url
        self.sealer = sealer
        self._database: Lazy[Database] = Lazy(self._opened)
        self._opening: asyncio.Task[Database] | None = None
        self._repository: Repository | None = None

    def is_empty(self) -> bool:
        """Returns whether nothing is stored; never true with PostgreSQL."""
        return self._url is None and not has_rows(self._path)

    @property
    def is_server(self) -> bool:
        """Whether the database is PostgreSQL."""
        return self._url is not None

    def snapshot(self) -> DatabaseSnapshot | None:
        """Returns what is stored at this moment; None without a file, as with PostgreSQL. Raises
        `sqlite3.Error`."""
        has_file = self._url is None and self._path.exists()
        return DatabaseSnapshot(self._path) if has_file else None

    async def wait_while_opening(self) -> None:
        """Returns when the database is not being opened, which locks its file for the migration."""
        if self._opening is not None:
            await asyncio.wait({self._opening})

    async def database(self) -> Database:
        """Opens the database at the first call. Raises `ConfigError`."""
        return await self._database.get()

    async def repository(self) -> Repository:
        """Returns the repository of subscriptions, the same one each time."""
        database = await self.database()
        if self._repository is None:
            from ..subscriptions.repository import Repository

            self._repository = Repository(database, self.sealer)
        return self._repository

    async def close(self) -> None:
        """Closes the database when all changes are stored, also one that is being opened."""
        if self._repository is not None:
            await self._repository.close()
        await self.wait_while_opening()
        if self._opening is not None and self._opening.exception() is None:
            await self._opening.result().close()

    async def _opened(self) -> Database:
        # Not cancelled with the caller: the connection's thread would outlive the event loop.
        if self._opening is None or (self._opening.done() and self._opening.exception()):
            self._opening = asyncio.create_task(self._open())
        return await asyncio.shield(self._opening)

    async def _open(self) -> Database:
        # In a thread: half a second of imports would block the event loop.
        for module in ("database", "tables", *(["postgresql"] if self._url else [])):
            await asyncio.to_thread(importlib.import_module, f"{__package__}.{module}")
        from .database import Database

        database = Database(self._url or self._make_file(), self._waiter)
        try:
            await database.open()
        except BaseException:
            await database.close()
            raise
        return database

    def _make_file(self) -> str:
        """Raises `ConfigError` for a file that can't be opened: where its driver fails to open it,
        the driver's thread may outlive the event loop."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            # For its owner: it shows who subscribes to what.
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
        except OSError as error:
            raise ConfigError(f"the hub's database {self._path}: {error.strerror}") from error
        return f"sqlite+aiosqlite:///{self._path}"
