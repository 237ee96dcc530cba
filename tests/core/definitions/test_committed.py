"""The series of committed transactions: restoring them, and dropping the oldest of a user."""

from __future__ import annotations

from itertools import count

import pytest

from warrenmq.core.broker import Broker
from warrenmq.core.definitions import committed
from warrenmq.core.definitions.committed import CommittedTransaction

from .support import NotingStore, new_broker, restarted

TIMES_MS = count()


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committed, "SERIES_MAX", 3)


def commit(broker: Broker, *series: str) -> None:
    """Commits a transaction of each series, one behind the other."""
    for name in series:
        last = CommittedTransaction(5, 3, next(TIMES_MS))
        broker.vhosts["/"].committed.store(name.encode(), last)


def known(broker: Broker, store: NotingStore, *series: str) -> list[str]:
    """Returns which of these are remembered: by this process and by the next one."""
    found, after = (
        [name for name in series if one.vhosts["/"].committed.last(name.encode()) is not None]
        for one in (broker, restarted(store)[0])
    )
    assert found == after
    return found


def test_series_with_the_oldest_commit_is_dropped() -> None:
    broker, store = new_broker()
    commit(broker, "other\0z", "user\0a", "user\0b", "user\0c", "user\0a", "user\0d")
    series = ("other\0z", "user\0a", "user\0b", "user\0c", "user\0d")
    assert known(broker, store, *series) == ["other\0z", "user\0a", "user\0c", "user\0d"]
    broker, store = restarted(store)
    commit(broker, "user\0e")
    assert known(broker, store, *series, "user\0e") == [
        "other\0z", "user\0a", "user\0d", "user\0e"
    ]  # fmt: skip


def test_a_series_that_is_dropped_makes_room() -> None:
    broker, store = new_broker()
    for number in range(9):
        commit(broker, f"user\0write-{number}", "user\0named")
        broker.vhosts["/"].committed.drop(b"user\0write-%d" % number)
    commit(broker, "user\0a", "user\0b")
    assert known(broker, store, "user\0named", "user\0write-8") == ["user\0named"]
