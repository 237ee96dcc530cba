"""The shares of a batch: its queues with the messages that each of them gets."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Final, TypeAlias

from ..queue.queue import Queue

Share: TypeAlias = tuple[Sequence[Queue], Sequence[int] | None]
"""Queues, and which messages of a batch they get (None for all)."""
Shares: TypeAlias = "dict[tuple[Queue, ...], array[int]]"
"""The messages of a batch by the queues that they are for, in publish order."""

FRAMED_MAX_BYTES: Final = 65_536
"""Larger messages, properties included, are cut into frames for each consumer, so they are in no
batch unless they were published in one."""


def takes_batch(queues: Iterable[Queue]) -> bool:
    """Whether none of the queues has to look at each message: to refuse it, to drop it as a
    duplicate, or to give it an offset."""
    for queue in queues:
        rules = queue.rules
        if rules is not None and (rules.checks_publishes or queue.adds_offsets):
            return False
    return True


def in_order(shares: Shares) -> list[Share]:
    """Returns the shares of a batch, each queue in only one, so that its messages stay in order."""
    if len(shares) == 1:
        return [(queues, None) for queues in shares if queues]
    named = [queue for queues in shares for queue in queues]
    if len(named) == len(set(named)):
        return [(queues, taken) for queues, taken in shares.items() if queues]
    by_queue: dict[Queue, list[array[int]]] = {}
    for queues, taken in shares.items():
        for queue in queues:
            by_queue.setdefault(queue, []).append(taken)
    return [
        ((queue,), array("I", sorted(chain.from_iterable(parts))))
        for queue, parts in by_queue.items()
    ]
