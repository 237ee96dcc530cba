"""Snapshots of a running server: its files as they were at one moment, for `warren backup`.

A snapshot is a folder in the data directory. Files that are never changed once they are written
(those of the log, the hub's key, staged rows) are hard links, so it takes little time and space;
the hub's SQLite database is a copy. Snapshots end with the process: a start may change the log's
last files.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import secrets
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from ..core import VERSION
from ..core.broker import Broker
from ..core.store.disk import FULL
from ..core.store.durable import DurableStore
from ..core.store.offline import LOG
from ..hub.service import KEY_NAME, STAGED_NAME
from ..hub.storage.schema import DATABASE_NAME
from ..hub.storage.snapshot import DatabaseSnapshot
from ..hub.storage.storage import Storage
from .problems import Problem, low_on_disk

logger = logging.getLogger(__name__)

FOLDER: Final = "snapshots"
MAX_SNAPSHOTS: Final = 3
"""What the server has removed from its log still takes space in them."""
LINK_ATTEMPTS: Final = 3
NO_DATABASE, SQLITE, POSTGRESQL = "none", "sqlite", "postgresql"
_NO_LINKS: Final = frozenset((errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK, errno.EXDEV))


@dataclass(frozen=True, slots=True)
class ServerSnapshot:
    """A snapshot; `made_at` is wall time in seconds, `database` where the hub's database is."""

    id: str
    made_at: float
    version: str
    database: str
    directory: str

    def document(self) -> dict[str, Any]:
        return asdict(self)


class Snapshots:
    """Makes and removes the snapshots of one server; `store` is None where a cluster has the
    messages."""

    def __init__(
        self, directory: Path, broker: Broker, store: DurableStore | None, storage: Storage
    ) -> None:
        self._directory = directory
        self._broker = broker
        self._store = store
        self._storage = storage
        self._made: dict[str, ServerSnapshot] = {}
        self._making = asyncio.Lock()

    def all(self) -> list[ServerSnapshot]:
        return list(self._made.values())

    def get(self, snapshot_id: str) -> ServerSnapshot | None:
        return self._made.get(snapshot_id)

    async def make(self) -> ServerSnapshot:
        """Makes a snapshot of all that is confirmed by now. Raises `Problem` 409 if there are many,
        501 on a file system without hard links, 503 and 507 if database or disk don't permit it."""
        async with self._making:
            if len(self._made) >= MAX_SNAPSHOTS:
                raise Problem(
                    409, f"there are {len(self._made)} snapshots, at most {MAX_SNAPSHOTS} are kept:"
                    " delete one, as DELETE /api/warren/snapshots/ID",
                )  # fmt: skip
            made_id = secrets.token_hex(8)
            folder = self._directory / FOLDER / made_id
            try:
                await self._write(folder)
            except BaseException as error:
                await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
                raise _problem(error) from error
            database = SQLITE if (folder / DATABASE_NAME).exists() else NO_DATABASE
            made = ServerSnapshot(
                made_id, time.time(), VERSION,
                POSTGRESQL if self._storage.is_server else database, str(folder),
            )  # fmt: skip
            self._made[made_id] = made
            return made

    async def remove(self, snapshot: ServerSnapshot) -> None:
        """Removes a snapshot; raises `Problem` 409 if its folder can't be removed, and it stays in
        the list then."""
        try:
            await asyncio.to_thread(shutil.rmtree, snapshot.directory)
        except FileNotFoundError:
            logger.warning("snapshot %s: %s was removed already", snapshot.id, snapshot.directory)
        except OSError as error:
            raise Problem(
                409, f"{error.filename} can't be removed: {error.strerror}; remove it by hand"
            ) from error
        self._made.pop(snapshot.id, None)

    async def _write(self, folder: Path) -> None:
        await self._storage.wait_while_opening()
        # Database and log are cut in the same iteration of the event loop: a crash at this moment
        # would have left both so.
        database = self._storage.snapshot()
        try:
            if self._store is None:
                await asyncio.to_thread(self._link_others, folder)
            else:
                with self._store.cut() as cut:
                    await self._committed(self._store)
                    await asyncio.to_thread(self._link_all, folder, cut.names)
            if database is not None:
                await asyncio.to_thread(_copy, database, folder / DATABASE_NAME)
        finally:
            if database is not None:
                database.close()

    async def _committed(self, store: DurableStore) -> None:
        """Returns when the store has written all up to now. Raises `Problem` 507."""
        commit, decided = store.barrier(), asyncio.Event()
        self._broker.commits.when_decided(commit, decided.set)
        await decided.wait()
        if commit > store.progress.committed:
            raise low_on_disk()

    def _link_all(self, folder: Path, names: Callable[[], Iterable[str]]) -> None:
        log = folder / LOG
        for attempt in range(LINK_ATTEMPTS):
            log.mkdir(mode=0o700, parents=True)
            try:
                for name in names():
                    os.link(self._directory / LOG / name, log / name)
                break
            except FileNotFoundError:  # A checkpoint that was under way has removed it.
                if attempt == LINK_ATTEMPTS - 1:
                    raise
                shutil.rmtree(log)
        self._link_others(folder)

    def _link_others(self, folder: Path) -> None:
        """Links the key, and staged rows."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        staged = (self._directory / STAGED_NAME).glob("*/*")
        for path in (self._directory / KEY_NAME, *staged):
            _link(path, folder / path.relative_to(self._directory))


def clear(directory: Path) -> None:
    """Removes the snapshots that an earlier process has left. What can't be removed is no reason
    not to start."""
    folder = directory / FOLDER
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        return  # There were none.
    except OSError as error:
        logger.warning("%s of an earlier process can't be removed: %s", folder, error)


def _link(path: Path, target: Path) -> None:
    """Links a file unless it is gone: the key is made with the first secret, and staged rows end
    with their transaction, which the next attempt stages again."""
    target.parent.mkdir(mode=0o700, exist_ok=True)
    with suppress(FileNotFoundError):
        os.link(path, target)


def _copy(database: DatabaseSnapshot, target: Path) -> None:
    target.touch(mode=0o600)  # it shows who subscribes to what
    database.write(target)


def _problem(error: BaseException) -> BaseException:
    """Returns the problem that a client is told."""
    if isinstance(error, sqlite3.Error):
        return Problem(503, f"the hub's database can't be read now: {error}; try again")
    if isinstance(error, OSError) and error.errno in FULL:
        return low_on_disk()
    if isinstance(error, OSError) and error.errno in _NO_LINKS:
        return Problem(
            501, f"the data directory's file system has no hard links ({error.strerror}): stop the "
            "server and copy the directory",
        )  # fmt: skip
    return error
