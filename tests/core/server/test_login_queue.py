"""How much may wait."""

from __future__ import annotations

import pytest

from warrenmq.core.server import login_queue as waiting_room
from warrenmq.core.server.login_queue import ATTEMPT_BYTES, LoginQueue, TooManyAttempts


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> LoginQueue:
    monkeypatch.setattr(waiting_room, "MAX_BYTES", 5 * ATTEMPT_BYTES)
    monkeypatch.setattr(waiting_room, "ADDRESS_MAX_BYTES", 3 * ATTEMPT_BYTES)
    return LoginQueue()


def test_of_one_address(room: LoginQueue) -> None:
    leave, *_ = (room.enter("a", 0) for _ in range(3))
    with pytest.raises(TooManyAttempts):
        room.enter("a", 0)
    room.enter("b", 0)
    leave()
    room.enter("a", 0)


def test_altogether(room: LoginQueue) -> None:
    for address in ("a", "a", "b", "b"):
        room.enter(address, 0)
    leave = room.enter("c", 0)
    with pytest.raises(TooManyAttempts):
        room.enter("d", 0)
    leave()
    room.enter("d", 0)


def test_long_passwords_weigh_more(room: LoginQueue) -> None:
    with pytest.raises(TooManyAttempts):
        room.enter("a", 2 * ATTEMPT_BYTES + 1)
    room.enter("a", 2 * ATTEMPT_BYTES)


def test_whoever_left_is_forgotten(room: LoginQueue) -> None:
    for _ in range(100):
        room.enter("a", 0)()
    assert room._of == {}
    assert room._bytes == 0
