"""Where the hub stores what is not a message, opened when the first thing is."""

from __future__ import annotations

import asyncio
import importlib
from pathlib import Path
from typing import TYPE_CHECKING

from ..keys.seal import Sealer
from ..lazy import Lazy
from .schema import DATABASE_NAME, has_rows

if TYPE_CHECKING:
    from ..subscriptions.repository import Repository
    from .database import Database


class Storage:
    """SQLite in the data directory, or the PostgreSQL of the URL, which is opened at the start.

    Each part of the hub has a repository of its own on `database()`; a module that imports
    SQLAlchemy is itself imported only where `is_empty` is false or something is stored.
    """

    def __init__(self, data_directory: Path, database_url: str | None, sealer: Sealer) -> None:
        self._path = data_directory / DATABASE_NAME
        self._url = database_url
        self.sealer = sealer
        self._database: Lazy[Database] = Lazy(self._open)
        self._repository: Repository | None = None

    def is_empty(self) -> bool:
        """Told without importing SQLAlchemy, where the database is the data directory's."""
        return self._url is None and not has_rows(self._path)

    async def database(self) -> Database:
        """Raises `ConfigError` where the database can't be opened."""
        return await self._database.get()

    async def repository(self) -> Repository:
        """That of the subscriptions, one for all."""
        database = await self.database()
        if self._repository is None:
            from ..subscriptions.repository import Repository

            self._repository = Repository(database, self.sealer)
        return self._repository

    async def close(self) -> None:
        if self._repository is not None:
            await self._repository.close()
        if self._database.made is not None:
            await self._database.made.close()

    async def _open(self) -> Database:
        # In a thread: the broker must not stand still for half a second of imports.
        for module in ("database", "tables", *(["postgresql"] if self._url else [])):
            await asyncio.to_thread(importlib.import_module, f"{__package__}.{module}")
        from .database import Database

        database = Database(self._url or self._make_file())
        try:
            await database.open()
        except BaseException:
            await database.close()
            raise
        return database

    def _make_file(self) -> str:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.touch(mode=0o600)  # it tells who subscribes to what
        return f"sqlite+aiosqlite:///{self._path}"
