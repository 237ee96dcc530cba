"""Runs are kept over a restart, and not without end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.hub.support import until
from warrenmq.core.clock import ManualClock
from warrenmq.hub.keys.seal import Sealer
from warrenmq.hub.owner_rights import AllowAll
from warrenmq.hub.runs.run import RunReport, RunState
from warrenmq.hub.runs.runs import Runs
from warrenmq.hub.storage.storage import Storage
from warrenmq.hub.tasks import Tasks

DONE = RunReport(RunState.DONE, 2**62, 2**62, "ü", 2**62)
Open = Callable[..., Any]


class NobodyElse(AllowAll):
    """The only user left is `tony`."""

    def owner_refusal(self, owner: str) -> str | None:
        return None if owner == "tony" else "was deleted"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def reopen(
    tmp_path: Path, either_database: str | None, sealer: Sealer, clock: ManualClock
) -> AsyncIterator[Open]:
    opened: list[Storage] = []

    async def start(rights: AllowAll | None = None) -> Runs:
        for storage in opened:
            await storage.close()
        opened[:] = [Storage(tmp_path, either_database, sealer)]
        found = Runs(opened[0], clock, Tasks(), rights or AllowAll())
        await found.start()
        return found

    yield start
    for storage in opened:
        await storage.close()


async def names(runs: Runs) -> list[str]:
    return [run.name for run in await runs.all()]


async def test_runs_survive_a_restart(reopen: Open) -> None:
    runs = await reopen()
    assert await runs.put("archive", "a", "v/ü", "tony", DONE, "a stream")
    before = await runs.all()
    runs = await reopen()
    assert await runs.all() == before
    assert (before[0].report, before[0].stream) == (DONE, "a stream")
    assert not await runs.put("archive", "a", "v/ü", "tony", DONE)


async def test_the_last_of_each_user_are_kept(
    reopen: Open, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warrenmq.hub.runs.runs.RUNS_OF_OWNER", 3)
    runs = await reopen()
    await runs.put("archive", "of-another", "/", "guest", DONE)
    for number in range(5):
        clock.advance(1_000)
        await runs.put("archive", str(number), "/", "tony", DONE)
    assert await names(runs) == ["4", "3", "2", "of-another"]


async def test_runs_of_deleted_users_and_virtual_hosts_are_deleted(reopen: Open) -> None:
    runs = await reopen()
    for name, vhost, owner in (
        ("a", "gone", "tony"), ("b", "/", "gone"), ("c", "/", "guest"), ("d", "/", "tony"),
    ):  # fmt: skip
        await runs.put("archive", name, vhost, owner, DONE)
    runs.forget_vhost("gone")
    runs.forget_owner("gone")

    async def are_gone() -> bool:
        return {*await names(runs)} == {"c", "d"}

    await until(are_gone, "deletion of runs")
    assert await names(await reopen(NobodyElse())) == ["d"]
