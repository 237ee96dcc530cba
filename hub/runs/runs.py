"""Stores reports of runs, and finds them again. Only the last runs of each user are kept."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from typing import TYPE_CHECKING

from ...core.clock import Clock
from ...core.errors import WarrenError
from ..errors import BadRequest, HubError
from ..keyed_locks import KeyedLocks
from ..owner_rights import SubscriberRights
from ..storage.storage import Storage
from ..tasks import Tasks
from .run import (
    MAX_COUNT,
    MAX_ERROR_BYTES,
    MAX_NAME_BYTES,
    MAX_STREAM_BYTES,
    Run,
    RunReport,
    RunState,
)

if TYPE_CHECKING:
    from .repository import RunRepository

LOST_AFTER_S = 600
"""A running job reports at least as often, also when it has nothing new to say."""
RUNS_OF_OWNER = 200
READ_S = 1.0

log = logging.getLogger(__name__)


class NotYourRun(HubError):
    """The run is another user's."""

    status = 403
    title = "Not the owner"


class Runs:
    """The runs in the database, which is opened when the first one is stored."""

    def __init__(
        self, storage: Storage, clock: Clock, tasks: Tasks, rights: SubscriberRights
    ) -> None:
        self._storage = storage
        self._clock = clock
        self._tasks = tasks
        self._rights = rights
        self._is_empty = True
        self._reading: asyncio.Task[None] | None = None
        self._read: list[Run] | None = None
        """What the last read for `all_soon` has found."""
        self._locks: KeyedLocks[tuple[str, str]] = KeyedLocks()

    async def start(self) -> None:
        """Deletes runs of users who were deleted."""
        self._is_empty = self._storage.is_empty()
        if not self._is_empty:
            owners = {run.owner for run in await self.all()}
            gone = [owner for owner in owners if self._rights.owner_refusal(owner)]
            if gone:
                await (await self._repository()).delete_of(owners=gone)

    async def put(
        self, job: str, name: str, vhost: str, owner: str, report: RunReport, stream: str = ""
    ) -> bool:
        """Stores a report, durably when it returns; True for the first one of a run, of which
        `vhost` and `stream` are kept.

        Raises `BadRequest`, `NotYourRun` and `StorageFailed`.
        """
        _check(job, name, stream, report)
        now_s = self._clock.wall_s()
        self._is_empty = False
        repository = await self._repository()
        async with self._locks.of((job, name)):
            found = await repository.get((job, name))
            if found is not None:
                self.require_owner(found, owner)
                vhost, stream = found.vhost, found.stream
            began_s = now_s if found is None else found.started_at
            run = Run(job, name, vhost, stream, owner, report, began_s, now_s)
            await repository.put(run, RUNS_OF_OWNER)
        return found is None

    async def get(self, job: str, name: str) -> Run | None:
        return None if self._is_empty else await (await self._repository()).get((job, name))

    async def all(self) -> list[Run]:
        """Returns all runs, those first that were updated last."""
        return [] if self._is_empty else await (await self._repository()).all()

    async def all_soon(self) -> list[Run] | None:
        """Returns all runs, as `all`; None if the database can't be read, or not within a second.

        A read that takes longer goes on, and the next call waits for it too.
        """
        if self._reading is None or self._reading.done():
            self._read = None
            self._reading = self._tasks.own(self._read_all())
        await asyncio.wait({self._reading}, timeout=READ_S)
        return self._read

    async def delete(self, run: Run) -> None:
        await (await self._repository()).delete((run.job, run.name))

    def is_lost(self, run: Run) -> bool:
        """Returns whether a report of the run is overdue: its process has probably ended."""
        silent_s = self._clock.wall_s() - run.updated_at
        return run.report.state is RunState.RUNNING and silent_s > LOST_AFTER_S

    def require_owner(self, run: Run, user: str) -> None:
        """Raises `NotYourRun` for another user's run."""
        if run.owner != user:
            raise NotYourRun(
                f"run '{run.name}' of job '{run.job}' belongs to another user than '{user}'; "
                "choose another name",
                field="run", value=run.name,
            )  # fmt: skip

    def forget_vhost(self, vhost: str) -> None:
        """Deletes the runs of a deleted virtual host, soon."""
        self._forget(vhost=vhost)

    def forget_owner(self, owner: str) -> None:
        """Deletes the runs of a deleted user, soon."""
        self._forget(owners=[owner])

    def _forget(self, *, vhost: str | None = None, owners: Collection[str] = ()) -> None:
        if not self._is_empty:
            self._tasks.own(self._delete_of(vhost, owners))

    async def _delete_of(self, vhost: str | None, owners: Collection[str]) -> None:
        try:
            await (await self._repository()).delete_of(vhost=vhost, owners=owners)
        except WarrenError as error:
            log.error("runs of %s can't be deleted: %s", vhost or ", ".join(owners), error)

    async def _read_all(self) -> None:
        self._read = await self.all()

    async def _repository(self) -> RunRepository:
        database = await self._storage.database()
        from .repository import RunRepository

        return RunRepository(database)


def _check(job: str, name: str, stream: str, report: RunReport) -> None:
    """Raises `BadRequest`."""
    for field, text, low, high in (
        ("job", job, 1, MAX_NAME_BYTES), ("run", name, 1, MAX_NAME_BYTES),
        ("stream", stream, 0, MAX_STREAM_BYTES),
    ):  # fmt: skip
        size = len(text.encode())
        if not low <= size <= high or not text.isprintable():
            raise BadRequest(
                f"is {size} bytes long, or not printable", field=field, value=text,
                limit=f"{low} to {high} bytes",
            )  # fmt: skip
    for field, count in (
        ("rows", report.rows), ("lag", report.lag), ("dropped", report.dropped),
    ):  # fmt: skip
        if count is not None and not 0 <= count <= MAX_COUNT:
            raise BadRequest(
                "is out of range", field=field, value=str(count), limit=f"0 to {MAX_COUNT}"
            )
    size = len(report.error.encode())
    if size > MAX_ERROR_BYTES or "\0" in report.error:
        raise BadRequest(
            f"is {size} bytes long or contains NUL", field="error", value=report.error,
            limit=f"{MAX_ERROR_BYTES} bytes",
        )  # fmt: skip
