"""The hub's SQLite database as it was at one moment, while it is in use."""

from __future__ import annotations

import sqlite3
from pathlib import Path


class DatabaseSnapshot:
    """A copy of an SQLite file as it is when this is created; it can be used in another thread.

    Raises `sqlite3.Error` if the file can't be read, or is locked while it is migrated.
    """

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(
            f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=0, isolation_level=None,
            check_same_thread=False,
        )  # fmt: skip
        try:
            self._connection.execute("BEGIN")
            # The transaction has its view of the file from its first read on.
            self._connection.execute("SELECT 1 FROM sqlite_master").fetchone()
        except sqlite3.Error:
            self._connection.close()
            raise

    def write(self, target: Path) -> None:
        """Writes a file with the same contents. Raises `sqlite3.Error`."""
        copy = sqlite3.connect(target)
        try:
            self._connection.backup(copy)
        finally:
            copy.close()

    def close(self) -> None:
        self._connection.close()
