"""The exchanges of the cluster as they were a moment ago, and those who watch them come and go."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, Final

from ....core.errors import ChannelError, not_found
from ...requests import Kind
from ..port import BindingSpec, ExchangeSpec
from .management import Management

COLUMNS: Final = "name,vhost,type,durable,auto_delete,internal,arguments"
Place = tuple[str, str]
"""Virtual host and name."""

log = logging.getLogger(__name__)


class Exchanges:
    """Knows all exchanges. `bind` makes a binding."""

    def __init__(
        self, management: Management, bind: Callable[[str, BindingSpec], Awaitable[None]]
    ) -> None:
        self._management = management
        self._bind = bind
        self.known: dict[Place, ExchangeSpec] = {}
        self._on_deleted: list[Callable[[str, Kind, str], Iterator[None]]] = []
        self._on_declared: list[Callable[[str, Kind, str], Iterator[BindingSpec]]] = []

    def watch_deleted(self, deleted: Callable[[str, Kind, str], Iterator[None]]) -> None:
        self._on_deleted.append(deleted)

    def watch_declared(self, declared: Callable[[str, Kind, str], Iterator[BindingSpec]]) -> None:
        self._on_declared.append(declared)

    async def find(self, vhost: str, name: str) -> ExchangeSpec | None:
        """Returns an exchange as it is now."""
        found = await self._management.get("exchanges", vhost, name, columns=COLUMNS)
        if found is None:
            self.known.pop((vhost, name), None)
            return None
        spec = self.known[vhost, name] = _spec(found)
        return spec

    async def require(self, vhost: str, name: str) -> ExchangeSpec:
        """Returns an exchange as it was a moment ago, to publish there. Raises `ChannelError`
        404."""
        found = self.known.get((vhost, name)) or await self.find(vhost, name)
        if found is None:
            raise not_found(f"no exchange '{name}' in vhost '{vhost}'")
        return found

    async def refresh(self) -> None:
        """Reads all exchanges, and tells who watches what has changed."""
        found = await self._management.list("exchanges", columns=COLUMNS)
        now = {(one["vhost"], one["name"]): _spec(one) for one in found}
        before, self.known = self.known, now
        for place in before.keys() - now.keys():
            # The list may be some seconds old.
            if await self.find(*place) is None:
                self.deleted(*place)
        if before:
            for place in now.keys() - before.keys():
                await self.declared(*place)

    def deleted(self, vhost: str, name: str) -> None:
        self.known.pop((vhost, name), None)
        for watcher in self._on_deleted:
            for _ in watcher(vhost, "x", name):
                pass

    async def declared(self, vhost: str, name: str) -> None:
        """Makes the bindings of those who have waited for the exchange."""
        for watcher in self._on_declared:
            for binding in watcher(vhost, "x", name):
                try:
                    await self._bind(vhost, binding)
                except ChannelError as error:
                    log.info("rebinding failed: %s", error)


def _spec(found: Mapping[str, Any]) -> ExchangeSpec:
    return ExchangeSpec(
        found["name"],
        found["type"],
        found["durable"],
        found["auto_delete"],
        found["internal"],
        dict(found["arguments"]),
    )
