"""Adds the header `x-offset`: the offset of a message in the log of a persistent exchange.

Messages have it both when they are published and when they are replayed later.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..queue.retained import RetainedQueue
from ..replay.replay import OFFSET_HEADER
from ..wire.splice import with_number

if TYPE_CHECKING:
    from ..queue.queue import Queue


def with_offset(queues: Sequence[Queue], properties: bytes) -> bytes:
    """Adds the header if one of the queues is the log of a persistent exchange.

    A message in the logs of several exchanges has none: its offsets differ.
    """
    logs = [queue for queue in queues if queue.adds_offsets]
    if len(logs) != 1 or not isinstance(logs[0], RetainedQueue):
        return properties
    return with_number(properties, OFFSET_HEADER, logs[0].log.end)
