"""SQLite as the hub uses it: commits are durable when they return, DDL is transactional."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Engine, event, make_url
from sqlalchemy import create_engine as create_blocking_engine
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import AsyncAdaptedQueuePool, NullPool

BUSY_TIMEOUT_MS = 10_000


def make_engine(url: str) -> AsyncEngine:
    """Returns an engine with one connection: SQLite has one writer, and the pool is fair."""
    engine = create_async_engine(
        url, poolclass=AsyncAdaptedQueuePool, pool_size=1, max_overflow=0, hide_parameters=True
    )
    event.listen(engine.sync_engine, "connect", _prepare)
    event.listen(engine.sync_engine, "begin", _begin)
    return engine


def make_blocking_engine(url: str) -> Engine:
    """Returns an engine for a thread, on the same file."""
    engine = create_blocking_engine(
        make_url(url).set(drivername="sqlite"), poolclass=NullPool, hide_parameters=True
    )
    event.listen(engine, "connect", _prepare)
    event.listen(engine, "begin", _begin)
    return engine


def _prepare(connection: Any, _record: object) -> None:
    # The driver begins no transaction before DDL; `_begin` does, so that migrations are atomic.
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


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN")
