"""Keeps what this process knows of the cluster up to date: virtual hosts, users, exchanges, alarms.

The broker of this process has no messages, listeners or store here: it is the register of virtual
hosts and users by which requests are authorized.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, Final

from ....core.broker import Broker
from ....core.errors import ChannelError, LowOnDisk, LowOnMemory, Shortage
from ....core.vhosts import delete_vhost, put_vhost
from ..errors import EngineUnavailable
from ..port import ExchangeSpec
from .exchanges import Exchanges
from .management import Management
from .users import UserCopies

REFRESH_S: Final = 2.0

log = logging.getLogger(__name__)


class Mirror:
    """`user` is the name of the hub's own user."""

    def __init__(
        self, management: Management, broker: Broker, exchanges: Exchanges, user: str
    ) -> None:
        self._management = management
        self._broker = broker
        self._exchanges = exchanges
        self._user = user
        self._users = UserCopies(broker.users, user)
        self._task: asyncio.Task[None] | None = None
        self._topic_exchanges: dict[str, set[str]] = {}
        self.is_current = False
        """Whether the last refresh has succeeded."""
        self.shortage: Shortage | None = None
        """The alarm for which publishers have to wait."""

    async def start(self) -> None:
        """Refreshes now, then every few seconds until `stop`. Raises `EngineUnavailable`."""
        await self.refresh()
        self._task = asyncio.create_task(self._watch())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def refresh(self) -> None:
        found = self._management.list
        permissions = await found("permissions")
        self._put_vhosts([one["vhost"] for one in permissions if one["user"] == self._user])
        self._users.update(await found("users"), permissions, await found("topic-permissions"))
        await self._exchanges.refresh()
        self._put_topic_exchanges()
        nodes = await found("nodes", columns="name,mem_alarm,disk_free_alarm")
        self.shortage = _shortage(nodes)
        self.is_current = True

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(REFRESH_S)
            try:
                await self.refresh()
            except EngineUnavailable as error:
                if self.is_current:
                    log.warning("users and exchanges are as they were: %s", error)
                self.is_current = False
            except Exception:
                self.is_current = False
                log.exception("internal error while RabbitMQ's users were read")

    def _put_vhosts(self, names: Sequence[str]) -> None:
        """The hub serves the virtual hosts in which its user has permissions."""
        for name in names:
            if name not in self._broker.vhosts and name not in self._broker.ending:
                put_vhost(self._broker, name, {})
        for name in self._broker.vhosts.keys() - set(names):
            delete_vhost(self._broker, name)

    def _put_topic_exchanges(self) -> None:
        """Declares topic exchanges here too, for those who check routing keys."""
        wanted: dict[str, set[str]] = {name: set() for name in self._broker.vhosts}
        for (vhost, name), spec in self._exchanges.known.items():
            if vhost in wanted and name and not name.startswith("amq.") and _is_topic(spec):
                wanted[vhost].add(name)
        for vhost, names in wanted.items():
            host, there = self._broker.vhosts[vhost], self._topic_exchanges.get(vhost, set())
            try:
                for name in names - there:
                    host.declare_exchange(
                        name,
                        "topic",
                        durable=False,
                        auto_delete=False,
                        internal=False,
                        arguments={},
                    )
                for name in there - names:
                    host.delete_exchange(name)
            except ChannelError as error:
                log.warning("vhost '%s': %s", vhost, error)
        self._topic_exchanges = wanted


def _is_topic(spec: ExchangeSpec) -> bool:
    return "topic" in (spec.type, spec.arguments.get("x-delayed-type"))


def _shortage(nodes: Sequence[Any]) -> Shortage | None:
    for node in nodes:
        if node.get("mem_alarm"):
            return LowOnMemory(f"RabbitMQ's node {node['name']} is low on memory")
        if node.get("disk_free_alarm"):
            return LowOnDisk(f"RabbitMQ's node {node['name']} is low on disk")
    return None
