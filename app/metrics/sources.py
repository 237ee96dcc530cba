"""The source of the server's metrics, and portions of its objects."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, TypeVar

from ...core.broker import Broker
from ...core.server.loop_monitor import LoopMonitor
from ...hub.service import Hub
from ..node import Node

AT_ONCE: Final = 1_000
"""Objects between two rounds of the event loop: a queue takes less than a microsecond."""

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class ScrapedServer:
    """The parts that are measured."""

    broker: Broker
    hub: Hub
    monitor: LoopMonitor
    node: Node


async def portions(items: Iterable[Item]) -> AsyncIterator[Sequence[Item]]:
    """Yields the items as they are now, some at a time; others have their turn between."""
    iterator = iter(tuple(items))
    while portion := tuple(islice(iterator, AT_ONCE)):
        yield portion
        await asyncio.sleep(0)
