"""Tables of legal moves: which state follows a state after an event."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TypeVar

State = TypeVar("State", bound=Enum)
Event = TypeVar("Event", bound=Enum)


class IllegalMove(RuntimeError):
    """An event happened in a state that does not allow it: an error in this program."""


def after(moves: Mapping[tuple[State, Event], State], state: State, event: Event) -> State:
    """Returns the state that follows. Raises `IllegalMove` if the table has no such move."""
    following = moves.get((state, event))
    if following is None:
        raise IllegalMove(f"event {event.name} is illegal in state {state.name}")
    return following
