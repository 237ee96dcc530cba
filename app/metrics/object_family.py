"""Metrics of single objects: each queue, channel, connection or exchange has a sample of each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from ...core.broker import Broker
from ...core.vhost import VirtualHost
from .exposition import Exposition, label_text, sample
from .family import Kind
from .sources import AT_ONCE, portions

Object = TypeVar("Object")


@dataclass(frozen=True, slots=True)
class ObjectFamily(Generic[Object]):
    """A family of metrics of single objects. Its name has no prefix."""

    name: str
    kind: Kind
    help: str
    read: Callable[[Object], float]


@dataclass(frozen=True, slots=True)
class ObjectGroup(Generic[Object]):
    """Families of objects of one kind; `objects` finds those of some virtual hosts, and
    `label_values` returns the values for `labels`."""

    objects: Callable[[Broker, Sequence[VirtualHost]], Iterable[Object]]
    labels: tuple[str, ...]
    label_values: Callable[[Object], tuple[str, ...]]
    families: tuple[ObjectFamily[Object], ...]

    async def lines(
        self, exposition: Exposition, prefix: str, broker: Broker, vhosts: Sequence[VirtualHost]
    ) -> AsyncIterator[str]:
        """Yields the families with their samples, some lines at a time."""
        labelled = [
            (label_text(self.labels, self.label_values(one)), one)
            async for found in portions(self.objects(broker, vhosts))
            for one in found
        ]
        for family in self.families if labelled else ():
            name, read = prefix + family.name, family.read
            yield exposition.head(name, family.kind, family.help)
            for first in range(0, len(labelled), AT_ONCE):
                some = labelled[first : first + AT_ONCE]
                yield "".join([sample(name, labels, read(one)) for labels, one in some])
                await asyncio.sleep(0)


AnyGroup = ObjectGroup[Any]


def once(groups: Iterable[AnyGroup]) -> Iterator[AnyGroup]:
    """Yields the groups, each without the families that an earlier one has."""
    seen: set[str] = set()
    for group in groups:
        families = tuple(family for family in group.families if family.name not in seen)
        seen.update(family.name for family in families)
        yield replace(group, families=families)
