"""Pauses publishers while too many bytes wait for the disk."""

from __future__ import annotations

from collections.abc import Callable

from ..broker import Broker


class WriteBackpressure:
    """The paused publishers; all resume when half of the allowed bytes are left."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._waiting: list[Callable[[], None]] = []
        self._listens = False

    def wait(self, go_on: Callable[[], None]) -> None:
        """Calls `go_on` once, in a later turn."""
        self._waiting.append(go_on)
        self._listen()

    def _listen(self) -> None:
        if not self._listens:
            self._listens = True
            self._broker.commits.on_next(self._look)

    def _look(self) -> None:
        self._listens = False
        store = self._broker.store
        if store.progress.behind_bytes > store.progress.behind_max_bytes // 2:
            self._listen()
            return
        waiting, self._waiting = self._waiting, []
        for go_on in waiting:
            go_on()
