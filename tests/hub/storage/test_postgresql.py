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
    monkeypatch.setattr(database_module, "RECONNECT_S", 0.02)


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


class Watched:
    """A database of the server, as the server sees it."""

    def __init__(self, server: PostgreSQLServer, url: str) -> None:
        self.server = server
        self.name = url.rpartition("/")[2]

    def sessions(self) -> list[str]:
        """Process ids of Warren's sessions."""
        mine = f"datname = '{self.name}' AND application_name = 'warren'"
        return self.server.sql(f"SELECT pid FROM pg_stat_activity WHERE {mine}").split()

    def locks(self) -> list[str]:
        """Process ids of the sessions with the lock."""
        joined = "pg_locks JOIN pg_database ON pg_database.oid = database"
        mine = f"locktype = 'advisory' AND granted AND datname = '{self.name}'"
        return self.server.sql(f"SELECT pid FROM {joined} WHERE {mine}").split()

    async def locked(self) -> None:
        await until(lambda: len(self.locks()) == 1, "lock again")

    def end_session(self) -> str:
        [pid] = self.locks()
        self.server.sql(f"SELECT pg_terminate_backend({pid})")
        return pid


@pytest.fixture
def watched(postgresql: PostgreSQLServer, postgresql_url: str) -> Watched:
    return Watched(postgresql, postgresql_url)


@pytest.mark.parametrize(
    ("default", "expected"),
    [("off", "on"), ("local", "on"), ("on", "on"), ("remote_apply", "remote_apply")],
)
async def test_commits_are_on_disk_with_any_default(
    watched: Watched, postgresql_url: str, default: str, expected: str
) -> None:
    for setting in (f"synchronous_commit = {default}", "idle_session_timeout = '1h'"):
        watched.server.sql(f"ALTER DATABASE {watched.name} SET {setting}")
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


async def test_a_start_waits_for_a_warren_that_ends(watched: Watched, postgresql_url: str) -> None:
    async with opened(postgresql_url) as first:
        second = Database(postgresql_url)
        opening = asyncio.create_task(second.open())
        await until(lambda: len(watched.sessions()) == 2, "second session")
        assert len(watched.locks()) == 1
        await first.close()
        await opening
        await second.close()


async def test_a_failed_start_leaves_no_session(
    watched: Watched, postgresql_url: str, tmp_path: Path, sealer: Sealer
) -> None:
    async with opened(postgresql_url):
        watched.server.sql("UPDATE alembic_version SET version_num = '9999'", postgresql_url)
    with pytest.raises(ConfigError, match="9999"):
        await Storage(tmp_path, postgresql_url, sealer).repository()
    await until(lambda: watched.sessions() == [], "end of the session")


async def test_an_ended_session_is_replaced_and_takes_the_lock(
    watched: Watched, database: Database, sealer: Sealer
) -> None:
    """At once, without any query."""
    repository = Repository(database, sealer)
    await repository.add(PLAIN)
    pid = watched.end_session()
    await until(lambda: watched.locks() not in ([], [pid]), "lock again")
    assert await repository.all() == [PLAIN]
    assert len(watched.sessions()) == 1


async def test_nothing_is_written_while_another_warren_has_the_lock(
    watched: Watched, postgresql_url: str, database: Database,
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, sealer: Sealer,
) -> None:  # fmt: skip
    monkeypatch.setitem(postgresql_module._SESSION, "lock_timeout", "60s")
    other = Database(postgresql_url)
    opening = asyncio.create_task(other.open())  # it is the next in the queue for the lock
    await until(lambda: len(watched.sessions()) == 2, "second session")
    monkeypatch.setitem(postgresql_module._SESSION, "lock_timeout", "50ms")
    watched.end_session()
    await opening
    with pytest.raises(StorageFailed) as caught:
        await Repository(database, sealer).add(PLAIN)
    assert caught.value.status == 503
    assert await Repository(other, sealer).all() == []
    assert "in use by another Warren" in caplog.text
    await other.close()
    await watched.locked()
    await Repository(database, sealer).add(PLAIN)


async def test_changes_fail_while_the_server_is_down_and_succeed_after(
    watched: Watched, database: Database, caplog: pytest.LogCaptureFixture, sealer: Sealer
) -> None:
    repository, postgresql = Repository(database, sealer), watched.server
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
    await watched.locked()
    assert await repository.all() == [PLAIN]
    lost = [one for one in caplog.records if "is lost" in one.message]
    assert len({one.message for one in lost}) == len(lost)  # logged once, not at each try
    assert PASSWORD not in caplog.text and QUOTED_PASSWORD not in caplog.text


async def test_a_server_that_does_not_answer(
    watched: Watched, postgresql_url: str, monkeypatch: pytest.MonkeyPatch, sealer: Sealer
) -> None:
    monkeypatch.setattr(postgresql_module, "ANSWER_TIMEOUT_S", 0.5)
    monkeypatch.setattr(postgresql_module, "CONNECT_TIMEOUT_S", 0.5)
    async with opened(postgresql_url) as database:
        repository = Repository(database, sealer)
        await repository.add(PLAIN)
        watched.server.pause()
        try:
            for _ in range(2):
                async with asyncio.timeout(20):
                    with pytest.raises(StorageFailed):
                        await repository.all()
        finally:
            watched.server.resume()
        await watched.locked()
        assert await repository.all() == [PLAIN]
    with warnings.catch_warnings():
        # An attempt that was cut off may leave its socket to the garbage collector.
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


async def test_refused_values_are_not_shown(
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


async def test_a_server_that_can_not_be_reached_is_named(postgresql: PostgreSQLServer) -> None:
    port = free_port()
    text = await refusal(postgresql.url("hub").replace(str(postgresql.port), str(port)))
    assert f"'hub' at 127.0.0.1:{port}" in text
    assert "database 'hub'" in await refusal(postgresql.url("hub"))
    wrong = postgresql.url("hub").replace(QUOTED_PASSWORD, "mistyped")
    assert "password authentication failed" in (text := await refusal(wrong))
    assert "mistyped" not in text
    assert "parameters" in await refusal(postgresql.url("hub?sslmode=mistyped"))
    assert "unrecognized" in await refusal(postgresql.url("postgres?mistyped=1"))


async def test_a_database_without_utf_8_is_refused(
    postgresql: PostgreSQLServer,
) -> None:
    url = postgresql.create("ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    assert "its encoding is LATIN1, not UTF8" in await refusal(url)
    postgresql.drop(url)


async def test_a_user_who_may_not_create_tables(
    postgresql: PostgreSQLServer, postgresql_url: str
) -> None:
    postgresql.sql("REVOKE CREATE ON SCHEMA public FROM PUBLIC", postgresql_url)
    role = postgresql_url.rpartition("/")[2]
    postgresql.sql(f"CREATE ROLE {role} LOGIN PASSWORD 'reader'")
    url = postgresql_url.replace("warren:" + QUOTED_PASSWORD, f"{role}:reader")
    assert "permission denied for schema public" in await refusal(url)
    postgresql.sql(f"DROP ROLE {role}")


async def test_a_read_only_database_is_refused(watched: Watched, postgresql_url: str) -> None:
    watched.server.sql(f"ALTER DATABASE {watched.name} SET default_transaction_read_only = on")
    assert f"'{watched.name}' at" in await refusal(postgresql_url)
