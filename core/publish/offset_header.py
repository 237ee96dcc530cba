"""Adds the header `x-offset`: the offset of a message in the log of a persistent exchange.

Both the copies routed on publish and those replayed later carry it.
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
    """Adds the header if one of the queues is the log of a persistent exchange.

    A message in the logs of several exchanges gets none: its offsets differ.
    """
    kept = [queue for queue in queues if queue.adds_offsets]
    if len(kept) != 1 or not isinstance(kept[0], RetainedQueue):
        return properties
    return with_number(properties, OFFSET_HEADER, kept[0].log.end)
