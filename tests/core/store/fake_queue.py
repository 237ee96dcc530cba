"""A queue that only keeps messages, for the tests of the store."""

from __future__ import annotations

from functools import partial

from warrenmq.core.message.queue_entry import MessageRange, PagedOut
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
        """Reads one chunk of each paged-out range."""
        for paged_out in [held for held in self.backlog if isinstance(held, PagedOut)]:
            store.page_in.request(paged_out, partial(self.backlog.replace, paged_out))
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
