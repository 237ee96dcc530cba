"""The revision of the schema, and whether a file has rows, without slow imports.

Importing SQLAlchemy takes 0.3 s and alembic 0.2; a server with nothing stored, or nothing to
migrate, starts without them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from ...core.errors import ConfigError

HEAD = "0023"
"""The newest revision in `migrations/versions`; a test compares."""

DATABASE_NAME = "hub.sqlite3"
VERSIONS = "alembic_version"
"""The table with the revision that a database has."""


TABLES = (
    "subscriptions", "verifications", "topics", "upstreams", "capabilities", "pipeline_runs",
    "tunnels", "feeds", "feed_items", "feed_lists", "tokens", "outputs", "pipeline_results",
)  # fmt: skip
"""The tables for which the database is opened at the start; the logs are not among them."""


def refuse_newer(revision: str) -> None:
    """Raises `ConfigError` for the schema of a newer Warren."""
    if revision > HEAD:
        raise ConfigError(
            f"the hub's database has schema {revision}, this Warren knows up to {HEAD}; start the "
            "newer one that wrote it"
        )


def refuse_newer_file(path: Path) -> None:
    """Refuses an SQLite file as `refuse_newer`, without changing it. Raises `ConfigError`, also for
    a file that can't be read."""
    for revision in _query(path, _revisions):
        refuse_newer(revision)


def has_rows(path: Path) -> bool:
    """Returns whether the SQLite file exists and has rows in any of `TABLES`.

    Raises `ConfigError` for a file that can't be read.
    """
    return bool(_query(path, _tables_with_rows))


def _query(path: Path, ask: Callable[[sqlite3.Connection], list[str]]) -> list[str]:
    """Returns the answer of the file, nothing if it does not exist. Raises `ConfigError`."""
    if not path.exists():
        return []
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            return ask(connection)
    except sqlite3.Error as error:
        raise ConfigError(f"the hub's database {path} can't be read: {error}") from error


def _tables(connection: sqlite3.Connection) -> set[str]:
    found = connection.execute("SELECT name FROM sqlite_master WHERE type='table'")
    return {name for (name,) in found}


def _revisions(connection: sqlite3.Connection) -> list[str]:
    if VERSIONS not in _tables(connection):
        return []
    return [name for (name,) in connection.execute(f"SELECT version_num FROM {VERSIONS}")]


def _tables_with_rows(connection: sqlite3.Connection) -> list[str]:
    there = _tables(connection)
    return [
        table
        for table in TABLES
        if table in there and connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone()
    ]
