"""The SQL database: opened, brought to the newest schema, and handed out as sessions."""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, event, inspect, make_url, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import (
    AsyncEngine,
    AsyncSession,
    async_sessionmaker,
    create_async_engine,
)

from ..core.errors import ConfigError
from .errors import StorageFailed
from .schema import HEAD

if TYPE_CHECKING:
    from alembic.config import Config

MIGRATIONS = Path(__file__).resolve().parent.parent / "migrations"
BUSY_TIMEOUT_MS = 10_000

log = logging.getLogger(__name__)


class Database:
    """SQLite commits are durable when they return: write-ahead log, synchronous=FULL."""

    def __init__(self, url: str) -> None:
        self.engine = _make_engine(url)
        self._sessions = async_sessionmaker(self.engine, expire_on_commit=False)

    async def open(self) -> None:
        """Migrates if need be; raises `ConfigError` for a schema newer than this program."""
        async with self.engine.connect() as connection:
            revision = await connection.run_sync(_revision)
        if revision == HEAD:
            return
        if revision is not None and revision > HEAD:
            raise ConfigError(f"the hub's database has schema {revision}, newer than {HEAD}")
        await asyncio.to_thread(importlib.import_module, "alembic.command")
        async with self.engine.begin() as connection:
            await connection.run_sync(upgrade)

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[AsyncSession]:
        """A session whose transaction commits at the end of the block.

        Raises `StorageFailed` where the database does not do what it should.
        """
        try:
            async with self._sessions.begin() as session:
                yield session
        except DBAPIError as error:
            log.exception("the hub's database failed")
            raise StorageFailed(str(error.orig), field="database") from error

    async def close(self) -> None:
        await self.engine.dispose()


def upgrade(connection: Connection, revision: str = "head") -> None:
    """Runs the migrations up to a revision, inside the connection's transaction."""
    from alembic import command

    command.upgrade(_config(connection), revision)


def downgrade(connection: Connection, revision: str) -> None:
    """Takes the migrations after a revision back, inside the connection's transaction."""
    from alembic import command

    command.downgrade(_config(connection), revision)


def _config(connection: Connection) -> Config:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def _revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    revision = connection.scalar(text("SELECT version_num FROM alembic_version"))
    return None if revision is None else str(revision)


def _make_engine(url: str) -> AsyncEngine:
    if make_url(url).get_backend_name() != "sqlite":
        return create_async_engine(url)
    # One connection: SQLite has one writer, and waiting in the pool is fair.
    engine = create_async_engine(url, pool_size=1, max_overflow=0)
    event.listen(engine.sync_engine, "connect", _prepare_sqlite)
    event.listen(engine.sync_engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: Any, _record: object) -> None:
    # The driver begins no transaction before DDL; `_begin_sqlite` does, so that a migration
    # happens whole or not at all.
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in (
        "journal_mode=WAL",
        "synchronous=FULL",
        "foreign_keys=ON",
        f"busy_timeout={BUSY_TIMEOUT_MS}",
    ):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN")
