"""Sliced work on exchanges and queues, by name.

While it goes on nobody declares or deletes anything of that name: what is declared has all that it
is to have when that is answered, and what a deletion takes away is never of a later one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .errors import WarrenError

Told = Callable[[], None]
Wait = Callable[[Told], None]
"""Calls what it is given at once, or when something is over."""


class NameBusy(WarrenError):
    """Sliced work goes on under a name: what was asked for is asked again when `wait` calls."""

    def __init__(self, kind: str, name: str, wait: Wait) -> None:
        super().__init__(f"{kind} '{name}' is being declared or deleted")
        self.wait = wait


class _Work:
    """How much work goes on under a name, and who waits for its end."""

    __slots__ = ("count", "waiting")

    def __init__(self) -> None:
        self.count = 0
        self.waiting: list[Told] = []


class BusyNames:
    """The names of a virtual host that are busy, and who waits for each."""

    def __init__(self) -> None:
        self._work: dict[tuple[str, str], _Work] = {}

    def __bool__(self) -> bool:
        return bool(self._work)

    @contextmanager
    def busy(self, kind: str, name: str) -> Iterator[None]:
        """The name is busy inside of it: a deletion may begin while what is made is being bound."""
        work = self._work.setdefault((kind, name), _Work())
        work.count += 1
        try:
            yield
        finally:
            work.count -= 1
            if not work.count:
                del self._work[kind, name]
                for told in work.waiting:
                    told()

    def is_busy(self, kind: str, name: str) -> bool:
        return (kind, name) in self._work

    def require_free(self, kind: str, name: str) -> None:
        """Raises `NameBusy`."""
        if self.is_busy(kind, name):
            raise NameBusy(kind, name, self.wait_for(kind, name))

    def wait_for(self, kind: str, name: str) -> Wait:
        def wait(told: Told) -> None:
            work = self._work.get((kind, name))
            if work is None:
                told()
            else:
                work.waiting.append(told)

        return wait
