from __future__ import annotations

import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect

from warrenmq.core.errors import ConfigError
from warrenmq.hub.errors import StorageFailed
from warrenmq.hub.keys.seal import Sealer
from warrenmq.hub.requests import Resource
from warrenmq.hub.storage.database import Database
from warrenmq.hub.storage.migrate import MIGRATIONS, downgrade, upgrade
from warrenmq.hub.storage.schema import DATABASE_NAME, HEAD, has_rows
from warrenmq.hub.storage.storage import Storage
from warrenmq.hub.storage.tables import Base
from warrenmq.hub.subscriptions.repository import Repository
from warrenmq.hub.subscriptions.subscription import Subscription


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / DATABASE_NAME


def url(path: Path) -> str:
    return f"sqlite+aiosqlite:///{path}"


@pytest.fixture
def either(path: Path, either_database: str | None) -> str:
    """The URL of an empty database, of each kind in turn."""
    return either_database or url(path)


def test_the_newest_revision_is_the_one_the_program_knows() -> None:
    assert ScriptDirectory(str(MIGRATIONS)).get_current_head() == HEAD


async def test_the_migrations_make_the_tables_of_the_models(either: str) -> None:
    database = Database(either)
    await database.open()
    async with database.engine.connect() as connection:
        assert await connection.run_sync(_differences) == []
    await database.close()


async def test_a_file_is_migrated_in_a_thread(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []

    def step(connection: Connection) -> None:
        threads.append(threading.current_thread())
        upgrade(connection)

    monkeypatch.setattr("warrenmq.hub.storage.database.upgrade", step)
    database = Database(url(path))
    await database.open()
    assert "subscriptions" in await tables(database)
    await database.close()
    assert len(threads) == 1 and threads[0] is not threading.main_thread()


def _differences(connection: Connection) -> list[object]:
    return list(compare_metadata(MigrationContext.configure(connection), Base.metadata))


async def tables(database: Database) -> set[str]:
    async with database.engine.connect() as connection:
        return set(await connection.run_sync(lambda sync: inspect(sync).get_table_names()))


async def test_migrations_go_back(either: str) -> None:
    database = Database(either)
    await database.open()
    async with database.engine.begin() as connection:
        await connection.run_sync(downgrade, "base")
    assert await tables(database) == {"alembic_version"}
    await database.close()


async def test_a_migration_that_fails_leaves_nothing(either: str) -> None:
    database = Database(either)
    async with database.engine.begin() as connection:
        await connection.exec_driver_sql("CREATE TABLE subscriptions (other text)")
    with pytest.raises(ConfigError, match="already exists"):
        await database.open()
    assert await tables(database) == {"subscriptions"}
    await database.close()


async def test_a_newer_schema_is_refused_and_left_alone(either: str) -> None:
    database = Database(either)
    await database.open()
    async with database.engine.begin() as connection:
        await connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    await database.close()
    database = Database(either)
    with pytest.raises(ConfigError, match="9999"):
        await database.open()
    assert await tables(database) == {"alembic_version", *Base.metadata.tables}
    await database.close()


async def test_commits_are_durable_in_a_write_ahead_log(path: Path) -> None:
    database = Database(url(path))
    await database.open()
    async with database.engine.connect() as connection:
        journal = await connection.exec_driver_sql("PRAGMA journal_mode")
        synchronous = await connection.exec_driver_sql("PRAGMA synchronous")
        assert (journal.scalar(), synchronous.scalar()) == ("wal", 2)
    await database.close()


async def test_the_file_is_the_owners_alone(tmp_path: Path, path: Path, sealer: Sealer) -> None:
    storage = Storage(tmp_path, None, sealer)
    assert storage.is_empty()
    await storage.repository()
    await storage.close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert storage.is_empty() and not has_rows(path)


def test_a_file_that_is_no_database_is_told(tmp_path: Path, path: Path, sealer: Sealer) -> None:
    path.write_bytes(b"no database" * 1000)
    with pytest.raises(ConfigError, match="not a database"):
        Storage(tmp_path, None, sealer).is_empty()


def test_a_hub_with_nothing_stored_starts_without_the_slow_imports(tmp_path: Path) -> None:
    program = f"""
import asyncio, pathlib, sys
from warrenmq.core.auth import Users
from warrenmq.core.broker import Broker
from warrenmq.hub.engine.embedded import EmbeddedEngine
from warrenmq.hub.service import Hub
from warrenmq.hub.settings import HubSettings

async def main():
    engine = EmbeddedEngine(Broker(Users()))
    hub = Hub(engine, HubSettings(), pathlib.Path({str(tmp_path)!r}))
    await hub.start()
    await hub.stop()

asyncio.run(main())
SLOW = ("sqlalchemy", "alembic", "asyncpg", "aiohttp", "httpx")
print([name for name in SLOW if name in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout.strip() == "[]"


async def test_a_current_schema_is_opened_without_alembic(
    tmp_path: Path, either_database: str | None, sealer: Sealer
) -> None:
    storage = Storage(tmp_path, either_database, sealer)
    await storage.repository()
    await storage.close()
    program = f"""
import asyncio, pathlib, sys
from warrenmq.hub.keys.seal import Sealer
from warrenmq.hub.storage.storage import Storage

async def main():
    directory = pathlib.Path({str(tmp_path)!r})
    storage = Storage(directory, {either_database!r}, Sealer(directory / 'hub.key'))
    assert storage.is_empty() is {either_database is None}
    await storage.repository()
    await storage.close()

asyncio.run(main())
print([name for name in ("alembic", "asyncpg") if name in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True
    )
    expected = [] if either_database is None else ["asyncpg"]
    assert done.stdout.strip() == str(expected)


async def test_a_database_that_takes_nothing_more(path: Path, sealer: Sealer) -> None:
    database = Database(url(path))
    await database.open()
    async with database.engine.connect() as connection:
        await connection.exec_driver_sql("PRAGMA max_page_count = 1")
    repository = Repository(database, sealer)
    subscription = Subscription(
        id="1",
        source=Resource("/", "x", "news"),
        topic="#",
        callback="http://a.b/" + "c" * 100_000,
        lease_seconds=60,
        expires_at=0.0,
        owner="guest",
    )
    with pytest.raises(StorageFailed, match="full") as caught:
        await repository.add(subscription)
    assert caught.value.status == 503
    assert await repository.all() == []
    await database.close()
