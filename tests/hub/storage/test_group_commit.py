from __future__ import annotations

import asyncio

import pytest

from warrenmq.hub.storage.group_commit import MAX_AT_ONCE, GroupCommit


class Log:
    """Takes all numbers that are not negative."""

    def __init__(self) -> None:
        self.groups: list[list[int]] = []

    async def commit(self, numbers: list[int]) -> None:
        await asyncio.sleep(0)
        if min(numbers) < 0:
            raise ValueError(f"{min(numbers)} of {len(numbers)}")
        self.groups.append(numbers)


async def test_what_waits_is_one_commit() -> None:
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


async def test_who_does_not_wait_any_more_is_committed_all_the_same() -> None:
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
