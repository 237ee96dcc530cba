"""The callbacks that wait for commits of the store."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .store.port import Store

logger = logging.getLogger(__name__)


class Commits:
    """Calls back when the store has committed.

    `request_turn` is called when a commit is requested, since only a turn lets the store write, and
    `committed` after each commit, when all callbacks have run.
    """

    def __init__(
        self, store: Store, request_turn: Callable[[], None], committed: Callable[[], None]
    ) -> None:
        self._store = store
        self._request_turn = request_turn
        self._committed = committed
        self._next: list[Callable[[], None]] = []
        """Callbacks that wait for the next commit, whatever its number."""
        self._numbered: dict[int, list[Callable[[], None]]] = {}
        store.progress.on_change(self.run)

    @property
    def next_count(self) -> int:
        """The number of callbacks that wait for the next commit."""
        return len(self._next)

    def on_next(self, callback: Callable[[], None]) -> None:
        """Requests a commit and runs `callback` once, when it is done."""
        self._next.append(callback)
        self._request()

    def when_decided(self, commit: int, action: Callable[[], None]) -> None:
        """Runs `action` when that commit is durable or has failed; at once if it is."""
        if commit <= self._decided:
            action()
            return
        waiting = self._numbered.get(commit)
        if waiting is not None:
            waiting.append(action)
            return
        self._numbered[commit] = [action]
        self._request()

    def _request(self) -> None:
        self._store.request()
        self._request_turn()

    @property
    def _decided(self) -> int:
        """The last commit number that is durable or has failed."""
        progress = self._store.progress
        return max(progress.committed, progress.refused)

    def run(self) -> None:
        """Runs the callbacks of the commits that are decided."""
        waiting, self._next = self._next, []
        decided = self._decided
        for commit in sorted(number for number in self._numbered if number <= decided):
            waiting += self._numbered.pop(commit)
        for callback in waiting:
            try:
                callback()
            except Exception:
                # A failing callback must not cost the others their confirms.
                logger.exception("internal error in a callback after a commit")
        if self._numbered:
            self._store.request()
        self._committed()
