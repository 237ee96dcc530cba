"""Where publishers wait while the disk is behind (`BEHIND_BYTES`)."""

from __future__ import annotations

from collections.abc import Callable

from ..alarms import BEHIND_BYTES
from ..broker import Broker

OPENS_BYTES = BEHIND_BYTES // 2


class DiskGate:
    """Lets all go on together when the store has caught up by half."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._waiting: list[Callable[[], None]] = []
        self._listens = False

    def wait(self, go_on: Callable[[], None]) -> None:
        """`go_on` is called once, in a later turn."""
        self._waiting.append(go_on)
        self._listen()

    def _listen(self) -> None:
        if not self._listens:
            self._listens = True
            self._broker.on_commit(self._look)

    def _look(self) -> None:
        self._listens = False
        if self._broker.store.behind_bytes > OPENS_BYTES:
            self._listen()
            return
        waiting, self._waiting = self._waiting, []
        for go_on in waiting:
            go_on()
