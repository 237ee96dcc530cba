"""The last uses of tokens: counted in memory, stored some minutes later in one transaction."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

Store = Callable[[Mapping[str, float]], Awaitable[None]]


class TokenUses:
    """The last uses of tokens by their ids, in seconds of wall time."""

    def __init__(self) -> None:
        self._at: dict[str, float] = {}
        self._changed: set[str] = set()

    def load(self, token_id: str, at_s: float | None) -> None:
        """Takes what is stored."""
        if at_s is not None:
            self._at[token_id] = at_s

    def note(self, token_id: str, now_s: float) -> None:
        self._at[token_id] = now_s
        self._changed.add(token_id)

    def last(self, token_id: str) -> float | None:
        return self._at.get(token_id)

    def forget(self, token_id: str) -> None:
        self._at.pop(token_id, None)
        self._changed.discard(token_id)

    async def store(self, store: Store) -> None:
        """Stores what has changed since the last time; after an error, the next time."""
        changed, self._changed = self._changed, set()
        try:
            if changed:
                await store({one: self._at[one] for one in changed if one in self._at})
        except BaseException:
            self._changed |= changed
            raise
