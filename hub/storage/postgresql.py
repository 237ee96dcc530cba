"""PostgreSQL as the hub uses it: one session, with a lock against a second Warren.

A Warren delivers the subscriptions of its database, so two Warrens on one would deliver twice. Each
session takes an advisory lock first, and the pool has one session: nothing is read, migrated or
written without the lock. A second Warren is refused, or waits with `LockWaiter`.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Protocol

import asyncpg
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from ..errors import DatabaseInUse, DatabaseUnavailable
from .database_url import DatabaseUrl

CONNECT_TIMEOUT_S = 10.0
ANSWER_TIMEOUT_S = 10.0
LOCK_WAIT_S = 3
"""The session of a Warren that was just killed exists for a moment longer."""
LOCK = 0x57617272
ENCODING = "UTF8"

_SESSION = {
    # Commits are on disk when they return, whatever the server's or the user's default is.
    "synchronous_commit": "on",
    "lock_timeout": f"{LOCK_WAIT_S}s",
    # An idle session has to keep its lock, and the server has to notice a lost peer.
    "idle_session_timeout": "0",
    "tcp_keepalives_idle": "3",
    "tcp_keepalives_interval": "1",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "6s",
}
# Older servers do not have all of them; remote_apply waits for more than `on`.
_SET = """
SELECT set_config(name, value, false)
FROM unnest($1::text[], $2::text[]) AS wanted (name, value) JOIN pg_settings USING (name)
WHERE NOT (name = 'synchronous_commit' AND setting = 'remote_apply')
"""
# By schema: two Warrens may share a database if each has its own search_path.
_KEYS = "($1, hashtext(coalesce(current_schema(), '')))"
_LOCK = f"SELECT pg_advisory_lock{_KEYS}"
_TRY_LOCK = f"SELECT pg_try_advisory_lock{_KEYS}"
_FAILURES = (
    OSError,
    ValueError,
    TypeError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
)

log = logging.getLogger(__name__)


class LockWaiter(Protocol):
    """How a Warren waits until another one does not use the database any more."""

    @property
    def waits(self) -> bool:
        """Whether it waits at all: not once it has had the lock."""

    async def wait(self, session: asyncpg.Connection) -> None:
        """Waits a moment while another one has the lock. Raises `ConfigError` or
        `DatabaseUnavailable` to end the waiting."""

    async def is_replaced(self, session: asyncpg.Connection) -> bool:
        """Returns whether another one has had the lock since: it may still be held by a session of
        this Warren's own, whose end the server has not noticed."""

    def lost(self) -> None:
        """Another one has taken the lock meanwhile, because the session with it has ended."""


class Server:
    """Opens sessions; `lost` is set when one has ended, for any reason."""

    outages = (asyncpg.InternalClientError,)
    """Errors of the driver, not wrapped by SQLAlchemy, when a session ends during an operation."""

    def __init__(self, url: DatabaseUrl, waiter: LockWaiter | None = None) -> None:
        self._url = url
        self.waiter = waiter
        self.lost = asyncio.Event()

    def make_engine(self) -> AsyncEngine:
        """Returns an engine with one session."""
        return create_async_engine(
            "postgresql+asyncpg://",
            async_creator=self.connect,
            pool_size=1,
            max_overflow=0,
            pool_timeout=ANSWER_TIMEOUT_S,
            pool_pre_ping=True,
            hide_parameters=True,
        )

    async def connect(self) -> asyncpg.Connection:
        """Opens a session with the lock. Raises `DatabaseUnavailable`, without the password."""
        try:
            session = await asyncpg.connect(
                self._url.dsn,
                timeout=CONNECT_TIMEOUT_S,
                command_timeout=ANSWER_TIMEOUT_S,
                target_session_attrs="read-write",
                server_settings={"application_name": "warren"},
            )
        except _FAILURES as error:
            raise DatabaseUnavailable(f"{self._url}: {self._reason(error)}") from None
        try:
            await self._prepare(session)
        except BaseException:
            session.terminate()
            raise
        session.add_termination_listener(self._ended)
        return session

    async def _prepare(self, session: asyncpg.Connection) -> None:
        encoding = session.get_settings().server_encoding
        if encoding != ENCODING:
            raise DatabaseUnavailable(f"{self._url}: its encoding is {encoding}, not {ENCODING}")
        try:
            await session.execute(_SET, list(_SESSION), list(_SESSION.values()))
            await self._lock(session)
            if await session.fetchval("SHOW fsync") == "off":
                log.warning("%s has fsync off: a crash may lose subscriptions", self._url)
        except asyncpg.LockNotAvailableError:
            raise DatabaseInUse(f"{self._url}: in use by another Warren") from None
        except _FAILURES as error:
            raise DatabaseUnavailable(f"{self._url}: {self._reason(error)}") from None

    async def _lock(self, session: asyncpg.Connection) -> None:
        if self.waiter is None or not self.waiter.waits:
            await self._lock_soon(session)
            return
        while not await session.fetchval(_TRY_LOCK, LOCK):
            await self.waiter.wait(session)

    async def _lock_soon(self, session: asyncpg.Connection) -> None:
        try:
            await session.execute(_LOCK, LOCK)
        except asyncpg.LockNotAvailableError:
            if self.waiter is None or await self.waiter.is_replaced(session):
                raise
            text = f"{self._url}: the session that was lost still has the lock"
            raise DatabaseUnavailable(text) from None

    def _reason(self, error: Exception) -> str:
        if isinstance(error, TimeoutError):
            return f"no answer within {CONNECT_TIMEOUT_S:g} s"
        if isinstance(error, (ValueError, TypeError)) and not isinstance(error, OSError):
            # The text may have a part of the password, misread as another part of the URL.
            return "the driver can't read the URL's parameters"
        return " ".join(str(error).split()) or type(error).__name__

    def _ended(self, _session: Any) -> None:
        self.lost.set()
