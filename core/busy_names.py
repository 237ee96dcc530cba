"""Locks the names of exchanges and queues while sliced work on them goes on.

Meanwhile nothing of that name is declared or deleted: a declared object has all its bindings when
the client gets its reply, and a deletion never removes parts of a later object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .errors import WarrenError

Callback = Callable[[], None]
Wait = Callable[[Callback], None]
"""Calls the callback when something is over; at once if it is."""


class NameBusy(WarrenError):
    """Raised while sliced work on a name goes on; `wait`, then try the operation again."""

    def __init__(self, kind: str, name: str, wait: Wait) -> None:
        super().__init__(f"{kind} '{name}' is being declared or deleted")
        self.wait = wait


class _Work:
    """The number of tasks that use a name, and the callbacks for their end."""

    __slots__ = ("count", "waiting")

    def __init__(self) -> None:
        self.count = 0
        self.waiting: list[Callback] = []


class BusyNames:
    """The busy names of a virtual host, with the callbacks that wait for each."""

    def __init__(self) -> None:
        self._work: dict[tuple[str, str], _Work] = {}

    def __bool__(self) -> bool:
        return bool(self._work)

    @contextmanager
    def busy(self, kind: str, name: str) -> Iterator[None]:
        """Makes the name busy inside the context. Contexts of one name may overlap, such as a
        deletion that begins during a declaration."""
        work = self._work.setdefault((kind, name), _Work())
        work.count += 1
        try:
            yield
        finally:
            work.count -= 1
            if not work.count:
                del self._work[kind, name]
                for callback in work.waiting:
                    callback()

    def is_busy(self, kind: str, name: str) -> bool:
        return (kind, name) in self._work

    def require_free(self, kind: str, name: str) -> None:
        """Raises `NameBusy` if the name is busy."""
        if self.is_busy(kind, name):
            raise NameBusy(kind, name, self.wait_for(kind, name))

    def wait_for(self, kind: str, name: str) -> Wait:
        """Returns a function that calls back when the name is free."""

        def wait(callback: Callback) -> None:
            work = self._work.get((kind, name))
            if work is None:
                callback()
            else:
                work.waiting.append(callback)

        return wait
