"""A queue that only holds: what the store's tests need of one."""

from __future__ import annotations

from tests.core.messages import Sent
from warrenmq.core.block import Cold, Span
from warrenmq.core.queue.ready import Backlog
from warrenmq.core.store.port import Store


class FakeQueue:
    """Ready messages in `backlog`, delivered ones in `taken`."""

    durable = True
    is_read = False

    def __init__(self, queue_id: int) -> None:
        self.id = queue_id
        self.backlog = HoldingBacklog()
        self.taken: list[Span] = []

    def forget_backlog(self) -> None:
        self.backlog = HoldingBacklog()

    def thaw_all(self, store: Store) -> None:
        """One chunk of each cold stretch, wherever it stands."""
        for cold in [held for held in self.backlog if isinstance(held, Cold)]:
            store.thaw(cold, lambda spans, cold=cold: self.backlog.replace(cold, spans))  # type: ignore[misc]
            store.turned()


class HoldingBacklog(Backlog):
    """A backlog that can be looked through."""

    __slots__ = ()

    def put(self, span: Span) -> None:
        self._ready.append(span)
        self.count += span.count

    def replace(self, cold: Cold, spans: list[Span]) -> None:
        at = self._ready.index(cold)
        if not cold.count:
            del self._ready[at]
        self.count -= cold.lost
        cold.lost = 0
        for place, span in enumerate(spans):
            self._ready.insert(at + place, span)


def frames_of(body: bytes) -> tuple[int, int, bytes]:
    """Offsets of method and header frame, and the frames of one message."""
    sent = Sent(body)
    method = sent.publish_frame(1)
    return 0, len(method), method + sent.content(1)
