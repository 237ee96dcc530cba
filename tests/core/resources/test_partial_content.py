"""Partially received content: owners, waiting for room, and ending it."""

from __future__ import annotations

from functools import partial

import pytest

from warrenmq.core.resources.partial_content import (
    ENDED_AT_ONCE,
    PART_BYTES,
    PartialContent,
    PartialContents,
)


@pytest.fixture
def unfinished() -> PartialContents:
    unfinished = PartialContents()
    unfinished.owner_max_bytes = 100
    return unfinished


@pytest.fixture
def ended() -> list[str]:
    return []


def begin(
    unfinished: PartialContents, ended: list[str], owner: str, size_bytes: int = 0
) -> PartialContent:
    part = unfinished.begin(owner, lambda _: ended.append(owner))
    part.grow(size_bytes)
    return part


def test_bytes_count_until_the_end(unfinished: PartialContents, ended: list[str]) -> None:
    part = begin(unfinished, ended, "alice", 70)
    other = begin(unfinished, ended, "bob", 30)
    assert unfinished.bytes == 100 + 2 * PART_BYTES
    part.close()
    part.close()
    part.grow(50)
    assert unfinished.bytes == 30 + PART_BYTES
    other.close()
    assert (unfinished.bytes, ended) == (0, [])


def test_room_is_that_of_one_owner(unfinished: PartialContents, ended: list[str]) -> None:
    first, second, other = (begin(unfinished, ended, name) for name in ("alice", "alice", "bob"))
    assert first.claim(60)
    assert not second.claim(41)
    assert second.claim(40)
    assert other.claim(100)


def test_one_that_is_alone_always_has_room(unfinished: PartialContents, ended: list[str]) -> None:
    assert begin(unfinished, ended, "alice").claim(1_000)


def test_waiting_content_continues_in_order(unfinished: PartialContents, ended: list[str]) -> None:
    first = begin(unfinished, ended, "alice")
    assert first.claim(80)
    went_on: list[int] = []
    waiting = [begin(unfinished, ended, "alice") for _ in range(3)]
    for part, size_bytes in zip(waiting, (90, 10, 20), strict=True):
        # Nobody overtakes: else the largest would wait for good.
        assert not part.claim(size_bytes, partial(went_on.append, size_bytes))
    first.close()
    assert went_on == [90, 10]
    waiting[0].close()
    assert went_on == [90, 10, 20]


def test_closed_content_waits_no_more(unfinished: PartialContents, ended: list[str]) -> None:
    first, second = (begin(unfinished, ended, "alice") for _ in range(2))
    assert first.claim(80)
    assert not second.claim(80, lambda: ended.append("went on"))
    second.close()
    first.close()
    assert ended == []


def test_oldest_content_of_the_largest_owner_is_ended_first(
    unfinished: PartialContents, ended: list[str]
) -> None:
    parts = [begin(unfinished, ended, name, 50_000) for name in ("alice", "bob", "bob", "bob")]
    unfinished.shrink(110_000)
    assert ended == ["bob", "bob"]
    assert [part.bytes > 0 and unfinished.bytes > 0 for part in parts]
    parts[3].close()
    unfinished.shrink(0)
    assert ended == ["bob", "bob", "alice"]


def test_one_call_ends_a_bounded_number(unfinished: PartialContents, ended: list[str]) -> None:
    for _ in range(2 * ENDED_AT_ONCE):
        begin(unfinished, ended, "alice")
    unfinished.shrink(0)
    assert len(ended) == ENDED_AT_ONCE
    unfinished.shrink(0)
    assert unfinished.bytes == 0
