"""WebSocket messages of a client, whose bytes count as unfinished until they are complete."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ...core.resources.partial_content import PartialContent, PartialContents
from ...core.wire.websocket import Ending
from ...core.wire.websocket_messages import InboundMessages

TRY_AGAIN_LATER: Final = 1013
"""The close code of a server that is short of something (registered with IANA)."""


class PartialMessages(InboundMessages):
    """Counts them for `owner`, as `read_body` does bodies. `end` is called when memory is short.

    `close` is to be called when the connection is lost.
    """

    def __init__(
        self, max_bytes: int, unfinished: PartialContents, owner: str, end: Callable[[Ending], None]
    ) -> None:
        super().__init__(max_bytes)
        self._unfinished = unfinished
        self._owner = owner
        self._end = end
        self._part: PartialContent | None = None

    def receive_messages(self, data: bytes) -> list[bytes]:
        found = super().receive_messages(data)
        if found or self.ended is not None:
            self.close()
        if self.incomplete_bytes and self.ended is None:
            self._count()
        return found

    def close(self) -> None:
        """Ends the counting."""
        if self._part is not None:
            self._part.close()
            self._part = None

    def _count(self) -> None:
        if self._part is None:
            self._part = self._unfinished.begin(self._owner, self._give_up)
        more = self.incomplete_bytes - self._part.claimed_bytes
        if self._part.claim(more):
            self._part.grow(more)
        else:
            self.close()
            self.ended = _refused("too many bytes of incomplete messages from this user")

    def _give_up(self, reason: str) -> None:
        self._part = None
        self.ended = _refused(reason)
        self._end(self.ended)


def _refused(reason: str) -> Ending:
    return Ending(TRY_AGAIN_LATER, reason, by_client=False)
