"""What a publisher attempted and what became of it: one octet a message, indexed by its number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

UNKNOWN, CONFIRMED, NACKED, WITHDRAWN = range(4)
"""What a publisher knows of a message. A withdrawn one was rolled back and must not come."""
GROWTH = 65_536


@dataclass(frozen=True)
class Route:
    """To `queue` go the numbers whose remainder by `every` is one of `rests`.

    With `may_vanish` a confirmed message may be lost: it was not persistent. What is `moved` came
    by way of another queue: a move that a crash undid is done again, and makes another copy.
    """

    queue: str
    every: int = 1
    rests: tuple[int, ...] = (0,)
    may_vanish: bool = False
    moved: bool = False

    def takes(self, number: int) -> bool:
        return number % self.every in self.rests


@dataclass
class Journal:
    """Messages of one publisher, numbered from 0 in the order in which they were sent."""

    publisher: int
    name: str
    routes: Sequence[Route]
    attempted: int = 0
    fates: bytearray = field(default_factory=bytearray)
    lives: list[int] = field(default_factory=list)
    """How many had been attempted when the server's first, second ... life ended."""
    groups: list[tuple[int, int]] = field(default_factory=list)
    """First and last of each transaction with an unknown end: all of it is kept, or nothing."""
    retried: set[int] = field(default_factory=set)
    answered_twice: int = 0

    def attempt(self, count: int) -> int:
        """Notes that `count` messages are about to be sent; gives the first number."""
        first = self.attempted
        missing = first + count - len(self.fates)
        if missing > 0:
            self.fates.extend(bytes(max(missing, GROWTH)))
        self.attempted += count
        return first

    def settle(self, first: int, last: int, fate: int) -> None:
        """Notes the broker's answer for all numbers from `first` to `last`."""
        count = last + 1 - first
        unanswered = self.fates.count(UNKNOWN, first, last + 1)
        self.answered_twice += count - unanswered
        self.fates[first : last + 1] = bytes((fate,)) * count

    def retry(self, number: int) -> None:
        """Notes that a message of unknown fate is sent again."""
        self.retried.add(number)

    def count(self, fate: int) -> int:
        return self.fates.count(fate, 0, self.attempted)

    def life_of(self, number: int) -> int:
        """In which life of the server it was attempted, from 1 on."""
        return 1 + sum(1 for end in self.lives if end <= number)

    def begin_of(self, life: int) -> int:
        """The first number that was attempted in that life."""
        return self.lives[life - 2] if life > 1 else 0

    def end_life(self) -> None:
        self.lives.append(self.attempted)
