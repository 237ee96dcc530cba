"""Which schema a database has, told cheaply: importing SQLAlchemy takes 0.3 s and alembic 0.2,
and a server that has nothing stored, or nothing to migrate, must start without them."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from ...core.errors import ConfigError

HEAD = "0008"
"""The newest revision in `migrations/versions`; a test compares."""

DATABASE_NAME = "hub.sqlite3"


TABLES = ("subscriptions", "verifications", "topics", "upstreams", "capabilities")
"""What is worth opening the database for at the start; the log of attempts alone is not."""


def has_rows(path: Path) -> bool:
    """Whether the SQLite file holds anything to go on with; one that is not there does not.

    Raises `ConfigError` for a file that can't be read.
    """
    if not path.exists():
        return False
    try:
        return _has_rows(path)
    except sqlite3.Error as error:
        raise ConfigError(f"the hub's database {path} can't be read: {error}") from error


def _has_rows(path: Path) -> bool:
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    try:
        found = connection.execute("SELECT name FROM sqlite_master WHERE type='table'")
        names = {name for (name,) in found}
        return any(
            connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() is not None
            for table in TABLES
            if table in names
        )
    finally:
        connection.close()
