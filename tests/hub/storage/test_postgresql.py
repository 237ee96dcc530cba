"""What only PostgreSQL has: a server that goes away, other Warrens, defaults of its own."""

from __future__ import annotations

import asyncio
import gc
import logging
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import text

from tests.support.ports import free_port
from tests.support.postgresql import PASSWORD, QUOTED_PASSWORD, PostgreSQLServer
from warrenmq.core.errors import ConfigError
from warrenmq.hub.errors import StorageFailed
from warrenmq.hub.keys.seal import Sealer
from warrenmq.hub.storage import database as database_module
from warrenmq.hub.storage import postgresql as postgresql_module
from warrenmq.hub.storage.database import Database
from warrenmq.hub.storage.storage import Storage
from warrenmq.hub.subscriptions.options import Keys
from warrenmq.hub.subscriptions.repository import Repository

from ..subscriptions.test_repository import PLAIN
from ..support import until


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_module, "TAKE_AGAIN_S", 0.02)


@pytest.fixture
async def database(postgresql_url: str) -> AsyncIterator[Database]:
    async with opened(postgresql_url) as database:
        yield database


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Database]:
    database = Database(url)
    try:
        await database.open()
        yield database
    finally:
        await database.close()


async def refusal(url: str) -> str:
    with pytest.raises(ConfigError) as caught:
        async with opened(url):
            pass
    assert PASSWORD not in str(caught.value) and QUOTED_PASSWORD not in str(caught.value)
    return str(caught.value)


async def shown(database: Database, setting: str) -> str:
    async with database.begin() as session:
        return str(await session.scalar(text(f"SHOW {setting}")))


def sessions(server: PostgreSQLServer, url: str) -> list[str]:
    """Process ids of Warren's sessions, told by the server."""
    name = url.rpartition("/")[2]
    found = server.sql(
        f"SELECT pid FROM pg_stat_activity WHERE datname = '{name}' AND application_name = 'warren'"
    )
    return found.split()


def locks(server: PostgreSQLServer, url: str) -> list[str]:
    name = url.rpartition("/")[2]
    found = server.sql(
        "SELECT pid FROM pg_locks JOIN pg_database ON pg_database.oid = database "
        f"WHERE locktype = 'advisory' AND granted AND datname = '{name}'"
    )
    return found.split()


@pytest.mark.parametrize(
    ("default", "expected"),
    [("off", "on"), ("local", "on"), ("on", "on"), ("remote_apply", "remote_apply")],
)
async def test_commits_are_on_disk_whatever_the_default_is(
    postgresql: PostgreSQLServer, postgresql_url: str, default: str, expected: str
) -> None:
    name = postgresql_url.rpartition("/")[2]
    postgresql.sql(f"ALTER DATABASE {name} SET synchronous_commit = {default}")
    postgresql.sql(f"ALTER DATABASE {name} SET idle_session_timeout = '1h'")
    async with opened(postgresql_url) as database:
        assert await shown(database, "synchronous_commit") == expected
        assert await shown(database, "idle_session_timeout") == "0"


async def test_another_schema_of_the_same_database_is_another_hub(
    postgresql: PostgreSQLServer, postgresql_url: str, database: Database, sealer: Sealer
) -> None:
    postgresql.sql("CREATE SCHEMA second", postgresql_url)
    async with opened(f"{postgresql_url}?search_path=second") as second:
        await Repository(second, sealer).add(PLAIN)
        assert await Repository(database, sealer).all() == []


async def test_a_second_warren_is_refused_until_the_first_ends(
    postgresql_url: str, monkeypatch: pytest.MonkeyPatch, sealer: Sealer
) -> None:
    async with opened(postgresql_url):
        monkeypatch.setitem(postgresql_module._SESSION, "lock_timeout", "50ms")
        assert "in use by another Warren" in await refusal(postgresql_url)
    async with opened(postgresql_url) as database:
        assert await Repository(database, sealer).all() == []


async def test_a_warren_waits_for_one_that_is_about_to_end(
    postgresql: PostgreSQLServer, postgresql_url: str
) -> None:
    async with opened(postgresql_url) as first:
        second = Database(postgresql_url)
        opening = asyncio.create_task(second.open())
        await until(lambda: len(sessions(postgresql, postgresql_url)) == 2, "second session")
        assert len(locks(postgresql, postgresql_url)) == 1
        await first.close()
        await opening
        await second.close()


async def test_a_start_that_fails_leaves_no_session(
    postgresql: PostgreSQLServer, postgresql_url: str, tmp_path: Path, sealer: Sealer
) -> None:
    async with opened(postgresql_url):
        postgresql.sql("UPDATE alembic_version SET version_num = '9999'", postgresql_url)
    with pytest.raises(ConfigError, match="9999"):
        await Storage(tmp_path, postgresql_url, sealer).repository()
    await until(lambda: sessions(postgresql, postgresql_url) == [], "end of the session")


async def test_an_ended_session_is_replaced_and_takes_the_lock(
    postgresql: PostgreSQLServer, postgresql_url: str, database: Database, sealer: Sealer
) -> None:
    repository = Repository(database, sealer)
    await repository.add(PLAIN)
    [pid] = locks(postgresql, postgresql_url)
    postgresql.sql(f"SELECT pg_terminate_backend({pid})")
    # Nothing is asked of it meanwhile: the lock must not stay free.
    await until(lambda: locks(postgresql, postgresql_url) not in ([], [pid]), "lock again")
    assert await repository.all() == [PLAIN]
    assert len(sessions(postgresql, postgresql_url)) == 1


async def test_what_another_has_taken_meanwhile_is_not_written(
    postgresql: PostgreSQLServer,
    postgresql_url: str,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    sealer: Sealer,
) -> None:
    monkeypatch.setitem(postgresql_module._SESSION, "lock_timeout", "5s")
    other = Database(postgresql_url)
    opening = asyncio.create_task(other.open())  # it is the next in the queue for the lock
    await until(lambda: len(sessions(postgresql, postgresql_url)) == 2, "second session")
    monkeypatch.setitem(postgresql_module._SESSION, "lock_timeout", "50ms")
    [pid] = locks(postgresql, postgresql_url)
    postgresql.sql(f"SELECT pg_terminate_backend({pid})")
    await opening
    with pytest.raises(StorageFailed) as caught:
        await Repository(database, sealer).add(PLAIN)
    assert caught.value.status == 503
    assert await Repository(other, sealer).all() == []
    assert "in use by another Warren" in caplog.text
    await other.close()
    await until(lambda: len(locks(postgresql, postgresql_url)) == 1, "lock again")
    await Repository(database, sealer).add(PLAIN)


async def test_a_server_that_is_killed_and_comes_back(
    postgresql: PostgreSQLServer,
    postgresql_url: str,
    database: Database,
    caplog: pytest.LogCaptureFixture,
    sealer: Sealer,
) -> None:
    repository = Repository(database, sealer)
    await repository.add(PLAIN)
    postgresql.kill()
    try:
        for _ in range(3):
            with pytest.raises(StorageFailed) as caught:
                await repository.delete(PLAIN.id)
            assert caught.value.status == 503
            assert str(postgresql.port) not in str(caught.value)
    finally:
        await asyncio.to_thread(postgresql.start)
    await until(lambda: len(locks(postgresql, postgresql_url)) == 1, "lock again")
    assert await repository.all() == [PLAIN]
    lost = [one for one in caplog.records if "is lost" in one.message]
    assert len({one.message for one in lost}) == len(lost)  # told once, not at each try
    assert PASSWORD not in caplog.text and QUOTED_PASSWORD not in caplog.text


async def test_a_server_that_does_not_answer(
    postgresql: PostgreSQLServer,
    postgresql_url: str,
    monkeypatch: pytest.MonkeyPatch,
    sealer: Sealer,
) -> None:
    monkeypatch.setattr(postgresql_module, "ANSWER_TIMEOUT_S", 0.5)
    monkeypatch.setattr(postgresql_module, "CONNECT_TIMEOUT_S", 0.5)
    async with opened(postgresql_url) as database:
        repository = Repository(database, sealer)
        await repository.add(PLAIN)
        postgresql.pause()
        try:
            for _ in range(2):
                async with asyncio.timeout(20):
                    with pytest.raises(StorageFailed):
                        await repository.all()
        finally:
            postgresql.resume()
        await until(lambda: len(locks(postgresql, postgresql_url)) == 1, "lock again")
        assert await repository.all() == [PLAIN]
    with warnings.catch_warnings():
        # An attempt that was cut off may leave its socket to the garbage collector.
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


async def test_what_the_database_refuses_is_told_without_values(
    database: Database, caplog: pytest.LogCaptureFixture, sealer: Sealer
) -> None:
    caplog.set_level(logging.DEBUG)
    repository = Repository(database, sealer)
    for owner in ("secret\0", "secret\ud800"):
        with pytest.raises(StorageFailed) as caught:
            await repository.add(replace(PLAIN, owner=owner, keys=Keys(secret="s3cret")))
        assert caught.value.status == 503
    assert "s3cret" not in caplog.text
    assert await repository.all() == []


async def test_who_can_not_be_reached_is_named(postgresql: PostgreSQLServer) -> None:
    port = free_port()
    text = await refusal(postgresql.url("hub").replace(str(postgresql.port), str(port)))
    assert f"'hub' at 127.0.0.1:{port}" in text
    assert "database 'hub'" in await refusal(postgresql.url("hub"))
    wrong = postgresql.url("hub").replace(QUOTED_PASSWORD, "mistyped")
    assert "password authentication failed" in (text := await refusal(wrong))
    assert "mistyped" not in text
    assert "parameters" in await refusal(postgresql.url("hub?sslmode=mistyped"))
    assert "unrecognized" in await refusal(postgresql.url("postgres?mistyped=1"))


async def test_a_database_that_can_not_hold_every_text_is_refused(
    postgresql: PostgreSQLServer,
) -> None:
    url = postgresql.create("ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    assert "its encoding is LATIN1, not UTF8" in await refusal(url)
    postgresql.drop(url)


async def test_a_user_who_may_not_make_tables_is_told(
    postgresql: PostgreSQLServer, postgresql_url: str
) -> None:
    postgresql.sql("REVOKE CREATE ON SCHEMA public FROM PUBLIC", postgresql_url)
    role = postgresql_url.rpartition("/")[2]
    postgresql.sql(f"CREATE ROLE {role} LOGIN PASSWORD 'reader'")
    url = postgresql_url.replace("warren:" + QUOTED_PASSWORD, f"{role}:reader")
    assert "permission denied for schema public" in await refusal(url)
    postgresql.sql(f"DROP ROLE {role}")


async def test_a_database_that_is_read_only_is_refused(
    postgresql: PostgreSQLServer, postgresql_url: str
) -> None:
    name = postgresql_url.rpartition("/")[2]
    postgresql.sql(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    assert f"'{name}' at" in await refusal(postgresql_url)
