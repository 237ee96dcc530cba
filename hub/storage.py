"""Where subscriptions are stored, opened when the first one is."""

from __future__ import annotations

import asyncio
import importlib
from pathlib import Path
from typing import TYPE_CHECKING

from .lazy import Lazy
from .schema import DATABASE_NAME, has_subscriptions

if TYPE_CHECKING:
    from .repository import Repository


class Storage:
    """SQLite in the data directory, or the PostgreSQL of the URL, which is opened at the start."""

    def __init__(self, data_directory: Path, database_url: str | None) -> None:
        self._path = data_directory / DATABASE_NAME
        self._url = database_url
        self._repository: Lazy[Repository] = Lazy(self._open)

    def is_empty(self) -> bool:
        """Told without importing SQLAlchemy, where the database is the data directory's."""
        return self._url is None and not has_subscriptions(self._path)

    async def repository(self) -> Repository:
        """Raises `ConfigError` where the database can't be opened."""
        return await self._repository.get()

    async def close(self) -> None:
        if self._repository.made is not None:
            await self._repository.made.close()

    async def _open(self) -> Repository:
        # In a thread: the broker must not stand still for half a second of imports.
        for module in ("repository", *(["postgresql"] if self._url else [])):
            await asyncio.to_thread(importlib.import_module, f"{__package__}.{module}")
        from .database import Database
        from .repository import Repository

        database = Database(self._url or self._make_file())
        try:
            await database.open()
        except BaseException:
            await database.close()
            raise
        return Repository(database)

    def _make_file(self) -> str:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.touch(mode=0o600)  # it holds subscribers' secrets
        return f"sqlite+aiosqlite:///{self._path}"
