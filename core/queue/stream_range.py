"""Cuts what a cursor has read to what a consumer gets: a limit, its credit, its filter."""

from __future__ import annotations

from collections.abc import Iterator

from ..message.queue_entry import MessageRange
from .queue import DISPATCH_BYTES
from .stream_spec import StreamFilter


def at_most(messages: MessageRange, limit: int) -> MessageRange:
    """Returns the first messages of a range, at most `limit` and about `DISPATCH_BYTES`."""
    batch = messages.entry.batch
    if batch.size_bytes > DISPATCH_BYTES:
        limit = min(limit, max(1, DISPATCH_BYTES * batch.count // batch.size_bytes))
    return (
        messages
        if messages.count <= limit
        else MessageRange(messages.entry, messages.low, messages.low + limit)
    )


def matching(
    messages: MessageRange, message_filter: StreamFilter | None, credit: int
) -> tuple[int, MessageRange]:
    """Returns how many messages of a range were read, and the first consecutive ones that match
    the filter, at most `credit`; an empty range if none does."""
    if message_filter is None:
        high = min(messages.high, messages.low + credit)
        return high - messages.low, MessageRange(messages.entry, messages.low, high)
    matches = _matches(messages, message_filter)
    low = next((at for at, is_match in matches if is_match), messages.high)
    high = (
        next((at for at, is_match in matches if not is_match), messages.high)
        if low < messages.high
        else low
    )
    high = min(high, low + credit)
    return high - messages.low, MessageRange(messages.entry, low, high)


def _matches(messages: MessageRange, message_filter: StreamFilter) -> Iterator[tuple[int, bool]]:
    entry = messages.entry
    for at in range(messages.low, messages.high):
        yield at, message_filter.wants(entry.batch.properties(entry.index(at)))
