"""Getting messages inside this process, from disk too; settling them or giving them back."""

from __future__ import annotations

import pytest

from tests.core.life import Life, numbered, segments_of
from tests.support.steps import count_steps
from warrenmq.core.local.getter import PulledMessage, PullRequest

pytestmark = segments_of(8 * 1024)


def got(life: Life, count: int, max_bytes: int = 2**20) -> tuple[PullRequest, list[PulledMessage]]:
    found: list[list[PulledMessage]] = []
    getter = PullRequest(life.broker, life.queue("q"), count, max_bytes, found.append)
    getter.start()
    for _ in range(100):
        if found:
            break
        life.turns(1)
    (messages,) = found
    return getter, messages


def bodies(found: list[PulledMessage]) -> list[bytes]:
    return [one.message.body for one in found]


def test_messages_on_disk_are_read(life: Life) -> None:
    life.publish_together(numbered(30))
    life.write()
    life.page_out()
    getter, found = got(life, 20)
    assert bodies(found) == numbered(20)
    assert [one.left for one in found] == list(range(29, 9, -1))
    getter.acknowledge()
    life.restart()
    assert life.bodies() == numbered(10, 20)


def test_give_back_leaves_no_redelivered_flag(life: Life) -> None:
    life.publish_together(numbered(5))
    getter, found = got(life, 3)
    assert life.queue("q").unacked_count == 3
    getter.give_back()
    assert life.queue("q").unacked_count == 0
    assert life.drain() == [(body, False) for body in numbered(5)]
    assert bodies(found) == numbered(3)


def test_get_is_bounded_in_bytes(life: Life) -> None:
    life.publish_together(numbered(10))
    getter, found = got(life, 10, max_bytes=13)
    assert len(found) == 3
    getter.requeue(failed=False)
    assert [flag for _, flag in life.drain()] == [True] * 3 + [False] * 7


def test_gets_are_counted(life: Life) -> None:
    life.publish_together(numbered(3))
    got(life, 2)[0].requeue(failed=False)
    got(life, 3)[0].acknowledge()
    got(life, 1)[0].acknowledge()
    counted = life.queue("q").counters
    assert counted is not None
    assert (counted.get, counted.get_no_ack, counted.get_empty, counted.redeliver) == (2, 3, 1, 2)


def test_many_are_got_and_settled_in_slices(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    count_steps(monkeypatch)
    life.publish_together(numbered(1_000))
    found: list[list[PulledMessage]] = []
    getter = PullRequest(life.broker, life.queue("q"), 1_000, 2**20, found.append)
    getter.start()
    assert not found and life.queue("q").ready_count > 0
    while not found:
        life.turns(1)
    settled: list[str] = []
    getter.requeue(lambda: settled.append("settled"), failed=False)
    assert not settled and life.queue("q").unacked_count > 0
    while not settled:
        life.turns(1)
    assert life.drain() == [(body, True) for body in numbered(1_000)]
