"""Moves the ready messages of a queue out of memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ..message.queue_entry import MessageRange, PagedOut

if TYPE_CHECKING:
    from ..store.port import Store
    from .backlog import Backlog
    from .backlog_queue import BacklogQueue


def average_bytes(backlog: Backlog) -> int:
    """Returns about the memory that a message takes, estimated from the newest entry."""
    newest = backlog.newest()
    if newest is None:
        return 64
    batch = newest.entry.batch
    return max(1, batch.size_bytes // batch.count)


def paged_out_count(backlog: Backlog) -> int:
    """Returns the number of messages of which nothing is in memory."""
    if not backlog.paged_out_ranges:
        return 0
    return sum(part.count for part in backlog if isinstance(part, PagedOut))


def page_out(
    queue: BacklogQueue,
    store: Store,
    head_bytes: int,
    *,
    transient: bool,
    enough: Callable[[], bool],
) -> Iterator[None]:
    """Pages out as `Queue.page_out`. Messages become paged-out ranges if none has to be known by
    itself; otherwise, and if they have a priority, their batches are only evicted."""
    backlog, plain, has_priorities = queue.backlog, queue.can_page_out, queue.has_priorities

    def page_out_range(messages: MessageRange, before: PagedOut | None) -> PagedOut | None:
        if enough():
            return None
        batch = messages.entry.batch
        is_ranked = has_priorities and batch.attributes.priority > 0
        paged_out = store.ranges.page_out(messages, before) if plain and not is_ranked else None
        if paged_out is None and batch.resident and (transient or batch.location is not None):
            store.batches.evict(batch)
        return paged_out

    keep = head_bytes // average_bytes(backlog)
    for _ in backlog.page_out(keep, page_out_range, plain=plain):
        yield
        if enough() or queue.backlog is not backlog or queue.can_page_out is not plain:
            return
