from __future__ import annotations

import sqlite3
from pathlib import Path

from warrenmq.hub.keys.seal import Sealer
from warrenmq.hub.storage.schema import DATABASE_NAME
from warrenmq.hub.storage.storage import Storage


def rows(path: Path) -> list[int]:
    connection = sqlite3.connect(path)
    found = [number for (number,) in connection.execute("SELECT number FROM numbers")]
    connection.close()
    return found


async def test_a_snapshot_has_the_rows_of_its_moment(tmp_path: Path) -> None:
    writer = sqlite3.connect(tmp_path / DATABASE_NAME, isolation_level=None)
    writer.execute("PRAGMA journal_mode=WAL")
    writer.execute("CREATE TABLE numbers (number)")
    writer.execute("INSERT INTO numbers VALUES (1)")
    snapshot = Storage(tmp_path, None, Sealer(tmp_path / "key")).snapshot()
    assert snapshot is not None
    writer.execute("INSERT INTO numbers VALUES (2)")
    snapshot.write(tmp_path / "copy")
    snapshot.close()
    assert rows(tmp_path / "copy") == [1]
    assert rows(tmp_path / DATABASE_NAME) == [1, 2]
    writer.close()


async def test_there_is_none_without_a_file(tmp_path: Path) -> None:
    assert Storage(tmp_path, None, Sealer(tmp_path / "key")).snapshot() is None
