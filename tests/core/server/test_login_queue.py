"""The bounds of waiting logins."""

from __future__ import annotations

import pytest

from warrenmq.core.server import login_queue as waiting_room
from warrenmq.core.server.login_queue import ATTEMPT_BYTES, LoginQueue, TooManyAttempts


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> LoginQueue:
    monkeypatch.setattr(waiting_room, "MAX_BYTES", 5 * ATTEMPT_BYTES)
    monkeypatch.setattr(waiting_room, "ADDRESS_MAX_BYTES", 3 * ATTEMPT_BYTES)
    return LoginQueue()


def test_limit_of_an_address(room: LoginQueue) -> None:
    leave, *_ = (room.enter("a", 0) for _ in range(3))
    with pytest.raises(TooManyAttempts):
        room.enter("a", 0)
    room.enter("b", 0)
    leave()
    room.enter("a", 0)


def test_limit_of_all(room: LoginQueue) -> None:
    for address in ("a", "a", "b", "b"):
        room.enter(address, 0)
    leave = room.enter("c", 0)
    with pytest.raises(TooManyAttempts):
        room.enter("d", 0)
    leave()
    room.enter("d", 0)


def test_passwords_count_by_length(room: LoginQueue) -> None:
    with pytest.raises(TooManyAttempts):
        room.enter("a", 2 * ATTEMPT_BYTES + 1)
    room.enter("a", 2 * ATTEMPT_BYTES)


def test_ended_logins_are_not_counted(room: LoginQueue) -> None:
    for _ in range(100):
        room.enter("a", 0)()
    for address in ("a", "a", "a", "b", "b"):
        room.enter(address, 0)
