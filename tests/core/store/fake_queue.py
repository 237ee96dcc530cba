"""A queue that only holds: what the store's tests need of one."""

from __future__ import annotations

from functools import partial

from tests.core.messages import Sent
from warrenmq.core.message.batch import MessageRange, PagedOut
from warrenmq.core.queue.backlog import Backlog
from warrenmq.core.store.port import Store


class FakeQueue:
    """Ready messages in `backlog`, delivered ones in `taken`."""

    durable = True
    has_consumers = False

    def __init__(self, queue_id: int) -> None:
        self.id = queue_id
        self.backlog = HoldingBacklog()
        self.taken: list[MessageRange] = []

    def forget_backlog(self) -> None:
        self.backlog = HoldingBacklog()

    def page_in_all(self, store: Store) -> None:
        """One chunk of each paged-out range, wherever it stands."""
        for paged_out in [held for held in self.backlog if isinstance(held, PagedOut)]:
            store.page_in(paged_out, partial(self.backlog.replace, paged_out))
            store.turned()


class HoldingBacklog(Backlog):
    """A backlog that can be looked through."""

    __slots__ = ()

    def put(self, messages: MessageRange) -> None:
        self._ready.append(messages)
        self.count += messages.count

    def replace(self, paged_out: PagedOut, ranges: list[MessageRange]) -> None:
        at = self._ready.index(paged_out)
        if not paged_out.count:
            del self._ready[at]
        self.count -= paged_out.lost
        paged_out.lost = 0
        for place, messages in enumerate(ranges):
            self._ready.insert(at + place, messages)


def frames_of(body: bytes) -> tuple[int, int, bytes]:
    """Offsets of method and header frame, and the frames of one message."""
    sent = Sent(body)
    method = sent.publish_frame(1)
    return 0, len(method), method + sent.content(1)
