"""The SQL database: opened, brought to the newest schema, and handed out as sessions."""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_sessionmaker

from ...core.errors import ConfigError
from ..errors import DatabaseUnavailable, StorageFailed
from . import sqlite
from .database_url import read_url
from .migrate import revision_of, upgrade
from .schema import HEAD

if TYPE_CHECKING:
    from .postgresql import Server

TAKE_AGAIN_S = 1.0
OUTAGES = (DatabaseUnavailable, PoolTimeout, OSError)

log = logging.getLogger(__name__)


class Database:
    """A commit is durable when it returns; the tables are this Warren's alone meanwhile."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.engine, self._server = _make_engine(url)
        self._outages = (*OUTAGES, *(self._server.outages if self._server else ()))
        self._sessions = async_sessionmaker(self.engine, expire_on_commit=False)
        self._keeper: asyncio.Task[None] | None = None
        self._reported = ""

    async def open(self) -> None:
        """Migrates if need be.

        Raises `ConfigError` for a schema newer than this program, and for a database that
        can't be reached, is another Warren's, or refuses the migration.
        """
        try:
            await self._migrate()
        except self._outages as error:
            raise ConfigError(f"database: {_words(error)}") from error
        except DBAPIError as error:
            raise ConfigError(f"the hub's database: {_reason(error)}") from error
        if self._server is not None:
            self._keeper = asyncio.create_task(self._keep(self._server))

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[AsyncSession]:
        """A session whose transaction commits at the end of the block.

        Raises `StorageFailed` where the database does not do what it should.
        """
        try:
            async with self._sessions.begin() as session:
                yield session
        except self._outages as error:
            if self._is_news(_words(error)):
                log.error("the hub's database can't be reached: %s", _words(error))
            raise StorageFailed("can't be reached now", field="database") from error
        except DBAPIError as error:
            if error.connection_invalidated:
                if self._is_news(_reason(error)):
                    log.error("the hub's database has closed the connection: %s", _reason(error))
                raise StorageFailed("has closed the connection", field="database") from error
            if self._is_news(_reason(error)):
                log.exception("the hub's database failed")
            raise StorageFailed(_reason(error), field="database") from error
        self._reported = ""

    def _is_news(self, reason: str) -> bool:
        """Whether the last failure was another one: some try again each second."""
        reported, self._reported = self._reported, reason
        return reported != reason

    async def close(self) -> None:
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        await self.engine.dispose()

    async def _migrate(self) -> None:
        async with self.engine.connect() as connection:
            revision = await connection.run_sync(revision_of)
        if revision == HEAD:
            return
        if revision is not None and revision > HEAD:
            raise ConfigError(f"the hub's database has schema {revision}, newer than {HEAD}")
        if self._server is None:  # else another session than the one that holds the lock
            await asyncio.to_thread(_upgrade_file, self._url)
            return
        await asyncio.to_thread(importlib.import_module, "alembic.command")
        async with self.engine.begin() as connection:
            await connection.run_sync(upgrade)

    async def _keep(self, server: Server) -> None:
        """Takes a lost database again as soon as it is there, before another Warren can."""
        reported = ""
        while True:
            await server.lost.wait()
            server.lost.clear()
            try:
                async with self.engine.connect():
                    log.warning("the hub's database is connected again")
                    reported = ""
            except (*self._outages, DBAPIError) as error:
                if reported != (reported := _words(error)):
                    log.error("the hub's database is lost: %s", reported)
                server.lost.set()
                await asyncio.sleep(TAKE_AGAIN_S)


def _make_engine(url: str) -> tuple[AsyncEngine, Server | None]:
    if url.startswith("sqlite"):
        return sqlite.make_engine(url), None
    from .postgresql import Server

    server = Server(read_url(url))
    return server.make_engine(), server


def _upgrade_file(url: str) -> None:
    """In a thread: the steps take a tenth of a second."""
    engine = sqlite.make_blocking_engine(url)
    with engine.begin() as connection:
        upgrade(connection)


def _words(error: BaseException) -> str:
    """The first line: what follows may show the values of a row."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def _reason(error: DBAPIError) -> str:
    """What the driver itself says."""
    return _words(error if error.orig is None else error.orig.__cause__ or error.orig)
