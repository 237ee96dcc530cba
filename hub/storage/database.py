"""The SQL database: opening, migration and sessions."""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_sessionmaker

from ...core.errors import ConfigError
from ..errors import DatabaseDown, DatabaseInUse, DatabaseUnavailable, StorageFailed
from . import sqlite
from .database_url import read_url
from .migrate import create, revision_of, upgrade
from .schema import HEAD, refuse_newer

if TYPE_CHECKING:
    from .postgresql import LockWaiter, Server

RECONNECT_S = 1.0
OUTAGES = (DatabaseUnavailable, PoolTimeout, OSError)

log = logging.getLogger(__name__)


class Database:
    """The open SQL database. Commits are durable when they return; no other Warren uses the tables
    meanwhile."""

    def __init__(self, url: str, waiter: LockWaiter | None = None) -> None:
        self._url = url
        self.engine, self._server = _make_engine(url, waiter)
        self._outages = (*OUTAGES, *(self._server.outages if self._server else ()))
        self._sessions = async_sessionmaker(self.engine, expire_on_commit=False)
        self._reconnecting: asyncio.Task[None] | None = None
        self._reported = ""

    async def open(self) -> None:
        """Connects, makes the tables of a new database, and migrates an older schema.

        Raises `ConfigError` for a schema newer than this program, and for a database that can't
        be reached, is used by another Warren, or refuses the migration.
        """
        try:
            await self._migrate()
        except self._outages as error:
            raise DatabaseDown(f"database: {_first_line(error)}") from error
        except DBAPIError as error:
            raise ConfigError(f"the hub's database: {_reason(error)}") from error
        if self._server is not None:
            self._reconnecting = asyncio.create_task(self._reconnect(self._server))

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[AsyncSession]:
        """Opens a session; its transaction commits at the end of the block.

        Raises `StorageFailed` for every failure of the database.
        """
        try:
            async with self._sessions.begin() as session:
                yield session
        except self._outages as error:
            if self._is_new(_first_line(error)):
                log.error("the hub's database can't be reached: %s", _first_line(error))
            raise StorageFailed("can't be reached now", field="database") from error
        except DBAPIError as error:
            if error.connection_invalidated:
                if self._is_new(_reason(error)):
                    log.error("the hub's database has closed the connection: %s", _reason(error))
                raise StorageFailed("has closed the connection", field="database") from error
            if self._is_new(_reason(error)):
                log.exception("the hub's database failed")
            raise StorageFailed(_reason(error), field="database") from error
        self._reported = ""

    def _is_new(self, reason: str) -> bool:
        """Returns whether the last failure was a different one: some callers retry each second."""
        reported, self._reported = self._reported, reason
        return reported != reason

    async def close(self) -> None:
        """Closes all sessions."""
        if self._reconnecting is not None:
            self._reconnecting.cancel()
            await asyncio.gather(self._reconnecting, return_exceptions=True)
        await self.engine.dispose()

    async def _migrate(self) -> None:
        async with self.engine.connect() as connection:
            revision = await connection.run_sync(revision_of)
        if revision == HEAD:
            return
        change: Callable[[Connection], None] = create
        if revision is not None:
            refuse_newer(revision)
            await asyncio.to_thread(importlib.import_module, "alembic.command")
            change = upgrade
        if self._server is None:  # on a server another session would not have the lock
            await asyncio.to_thread(_change_file, self._url, change)
            return
        async with self.engine.begin() as connection:
            await connection.run_sync(change)

    async def _reconnect(self, server: Server) -> None:
        """Connects to a lost database again as soon as possible, before another Warren does."""
        reported = ""
        while True:
            await server.lost.wait()
            server.lost.clear()
            try:
                async with self.engine.connect():
                    log.warning("reconnected to the hub's database")
                    reported = ""
            except (*self._outages, DBAPIError) as error:
                if reported != (reported := _first_line(error)):
                    log.error("lost the connection to the hub's database: %s", reported)
                if server.waiter is not None and isinstance(error, DatabaseInUse):
                    server.waiter.lost()
                    return
                server.lost.set()
                await asyncio.sleep(RECONNECT_S)


def _make_engine(url: str, waiter: LockWaiter | None) -> tuple[AsyncEngine, Server | None]:
    if url.startswith("sqlite"):
        return sqlite.make_engine(url), None
    from .postgresql import Server

    server = Server(read_url(url), waiter)
    return server.make_engine(), server


def _change_file(url: str, change: Callable[[Connection], None]) -> None:
    """Changes the schema of a file; called in a thread, because it takes up to a tenth of a
    second."""
    engine = sqlite.make_blocking_engine(url)
    with engine.begin() as connection:
        change(connection)


def _first_line(error: BaseException) -> str:
    """Returns the first line of the text: others may have values of a row."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def _reason(error: DBAPIError) -> str:
    """Returns the driver's own text."""
    return _first_line(error if error.orig is None else error.orig.__cause__ or error.orig)
