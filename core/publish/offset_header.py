"""`x-offset`: where a message stands among those that a persistent exchange keeps.

Its copies carry it, those that bindings get as it comes as well as those that are replayed later.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..queue.retained import RetainedQueue
from ..replay.replay import OFFSET_HEADER
from ..wire.splice import with_number

if TYPE_CHECKING:
    from ..queue.queue import Queue


def marked(queues: Sequence[Queue], properties: bytes) -> bytes:
    """The property list of a message that goes into these queues next.

    One that several such exchanges keep at once has none: the offsets of one are wrong in another.
    """
    kept = [queue for queue in queues if queue.adds_offsets]
    if len(kept) != 1 or not isinstance(kept[0], RetainedQueue):
        return properties
    return with_number(properties, OFFSET_HEADER, kept[0].log.end)
