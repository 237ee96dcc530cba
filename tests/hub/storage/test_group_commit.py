from __future__ import annotations

import asyncio

import pytest

from warrenmq.hub.storage.group_commit import MAX_AT_ONCE, GroupCommit
from warrenmq.hub.tasks import Tasks


class Log:
    """Takes all numbers that are not negative."""

    def __init__(self) -> None:
        self.groups: list[list[int]] = []

    async def commit(self, numbers: list[int]) -> None:
        await asyncio.sleep(0)
        if min(numbers) < 0:
            raise ValueError(f"{min(numbers)} of {len(numbers)}")
        self.groups.append(numbers)


async def test_waiting_changes_are_one_commit() -> None:
    log = Log()
    group = GroupCommit(log.commit)
    numbers = list(range(MAX_AT_ONCE + 5))
    await asyncio.gather(*map(group.add, numbers))
    assert log.groups == [numbers[:MAX_AT_ONCE], numbers[MAX_AT_ONCE:]]


async def test_a_wrong_one_fails_alone() -> None:
    log = Log()
    group = GroupCommit(log.commit)
    results = await asyncio.gather(*map(group.add, (1, -2, 3)), return_exceptions=True)
    assert [str(one) for one in results] == ["None", "-2 of 1", "None"]
    assert log.groups == [[1], [3]]


async def test_a_change_whose_caller_was_cancelled_is_committed() -> None:
    log = Log()
    group = GroupCommit(log.commit)
    tasks = [asyncio.create_task(group.add(number)) for number in (1, 2)]
    await asyncio.sleep(0)
    tasks[0].cancel()
    with pytest.raises(asyncio.CancelledError):
        await tasks[0]
    await group.close()
    await tasks[1]
    assert log.groups == [[1, 2]]


async def test_without_retries_an_error_is_for_the_whole_group() -> None:
    log = Log()
    group = GroupCommit(log.commit, retries_alone=False)
    numbers = [-1, *range(MAX_AT_ONCE)]
    results = await asyncio.gather(*map(group.add, numbers), return_exceptions=True)
    assert [type(one) for one in results] == [ValueError] * MAX_AT_ONCE + [type(None)]
    assert log.groups == [[MAX_AT_ONCE - 1]]


async def test_a_cancelled_commit_ends_all_waiting_callers() -> None:
    tasks, begun = Tasks(), asyncio.Event()

    async def commit(numbers: list[int]) -> None:
        begun.set()
        await asyncio.Event().wait()

    group = GroupCommit(commit, start=tasks.own)
    waiting = [asyncio.create_task(group.add(1))]
    await begun.wait()
    waiting.append(asyncio.create_task(group.add(2)))
    await asyncio.sleep(0)
    await tasks.stop()
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(one) for one in results] == [asyncio.CancelledError] * 2
