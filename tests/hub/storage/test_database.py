from __future__ import annotations

import stat
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect

from warrenmq.core.errors import ConfigError
from warrenmq.hub.keys.seal import Sealer
from warrenmq.hub.storage import sqlite
from warrenmq.hub.storage.database import Database
from warrenmq.hub.storage.migrate import MIGRATIONS, downgrade, upgrade
from warrenmq.hub.storage.schema import DATABASE_NAME, HEAD, has_rows
from warrenmq.hub.storage.storage import Storage
from warrenmq.hub.storage.tables import Base


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / DATABASE_NAME


def url(path: Path) -> str:
    return f"sqlite+aiosqlite:///{path}"


@pytest.fixture
def either(path: Path, either_database: str | None) -> str:
    """The URL of an empty database, of each kind in turn."""
    return either_database or url(path)


@asynccontextmanager
async def opened(address: str) -> AsyncIterator[Database]:
    database = Database(address)
    try:
        await database.open()
        yield database
    finally:
        await database.close()


def output_of(program: str) -> str:
    """What a new interpreter prints that runs the program."""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    return done.stdout.strip()


def test_the_newest_revision_is_the_one_the_program_knows() -> None:
    assert ScriptDirectory(str(MIGRATIONS)).get_current_head() == HEAD


async def test_a_file_is_migrated_in_a_thread(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []

    def step(connection: Connection) -> None:
        threads.append(threading.current_thread())
        upgrade(connection)

    engine = sqlite.make_blocking_engine(url(path))
    with engine.begin() as connection:
        upgrade(connection, "0021")
    monkeypatch.setattr("warrenmq.hub.storage.database.upgrade", step)
    async with opened(url(path)) as database:
        assert "subscriptions" in await tables(database)
    assert len(threads) == 1 and threads[0] is not threading.main_thread()


def _differences(connection: Connection) -> list[object]:
    return list(compare_metadata(MigrationContext.configure(connection), Base.metadata))


async def tables(database: Database) -> set[str]:
    async with database.engine.connect() as connection:
        return set(await connection.run_sync(lambda sync: inspect(sync).get_table_names()))


def _shape(connection: Connection) -> dict[str, object]:
    """Returns columns, keys and indexes of each table, but the order of columns."""
    found, shape = inspect(connection), dict[str, object]()
    for name in found.get_table_names():
        columns = ({**one, "type": str(one["type"])} for one in found.get_columns(name))
        indexes = (
            {**one, "dialect_options": {k: str(v) for k, v in one["dialect_options"].items()}}
            for one in found.get_indexes(name)
        )
        shape[name] = (
            sorted(columns, key=lambda column: str(column["name"])),
            sorted(indexes, key=lambda index: str(index["name"])),
            found.get_pk_constraint(name)["constrained_columns"],
            sorted(map(str, found.get_unique_constraints(name))),
            sorted(map(str, found.get_foreign_keys(name))),
            sorted(map(str, found.get_check_constraints(name))),
        )
    return shape


async def test_migrations_go_back(either: str) -> None:
    """And forth, to the same tables as those of a new database."""
    async with opened(either) as database:
        async with database.engine.begin() as connection:
            new = await connection.run_sync(_shape)
            await connection.run_sync(downgrade, "base")
        assert await tables(database) == {"alembic_version"}
        async with database.engine.begin() as connection:
            await connection.run_sync(upgrade)
            assert await connection.run_sync(_shape) == new
            assert await connection.run_sync(_differences) == []


async def test_a_migration_that_fails_leaves_nothing(either: str) -> None:
    database = Database(either)
    async with database.engine.begin() as connection:
        await connection.exec_driver_sql("CREATE TABLE subscriptions (other text)")
    with pytest.raises(ConfigError, match="already exists"):
        await database.open()
    assert await tables(database) == {"subscriptions"}
    await database.close()


async def test_a_newer_schema_is_refused_unchanged(either: str) -> None:
    async with opened(either) as database, database.engine.begin() as connection:
        await connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    database = Database(either)
    with pytest.raises(ConfigError, match="9999"):
        await database.open()
    assert await tables(database) == {"alembic_version", *Base.metadata.tables}
    await database.close()


async def test_commits_are_durable_in_a_write_ahead_log(path: Path) -> None:
    async with opened(url(path)) as database, database.engine.connect() as connection:
        journal = await connection.exec_driver_sql("PRAGMA journal_mode")
        synchronous = await connection.exec_driver_sql("PRAGMA synchronous")
        assert (journal.scalar(), synchronous.scalar()) == ("wal", 2)


async def test_the_file_is_the_owners_alone(tmp_path: Path, path: Path, sealer: Sealer) -> None:
    storage = Storage(tmp_path, None, sealer)
    assert storage.is_empty()
    await storage.repository()
    await storage.close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert storage.is_empty() and not has_rows(path)


def test_a_file_that_is_not_a_database_is_refused(
    tmp_path: Path, path: Path, sealer: Sealer
) -> None:
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
from tests.support.settings import hub_settings

async def main():
    engine = EmbeddedEngine(Broker(Users()))
    hub = Hub(engine, hub_settings(), pathlib.Path({str(tmp_path)!r}))
    await hub.start()
    await hub.stop()

asyncio.run(main())
SLOW = ("sqlalchemy", "alembic", "asyncpg", "aiohttp", "httpx")
print([name for name in SLOW if name in sys.modules])
"""
    assert output_of(program) == "[]"


@pytest.mark.parametrize("is_new", [True, False])
async def test_a_new_or_current_schema_is_opened_without_alembic(
    tmp_path: Path, either_database: str | None, sealer: Sealer, is_new: bool
) -> None:
    if not is_new:
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
    assert output_of(program) == ("[]" if either_database is None else "['asyncpg']")
