"""Finds the exchanges and queues of the core by name, and waits while a name is busy."""

from __future__ import annotations

import asyncio
from functools import partial

from ...core.broker import Broker
from ...core.errors import ChannelError
from ...core.queue.queue import Queue
from ...core.route.exchange import Exchange
from ...core.vhost import VirtualHost
from .port import BindingSpec

BindingEnds = tuple[Exchange, Exchange | Queue]


class Names:
    """The virtual hosts of a broker, for an `owner` of exclusive queues.

    Every method raises `ChannelError` 404 for a virtual host that does not exist.
    """

    def __init__(self, broker: Broker, owner: object) -> None:
        self._broker = broker
        self._owner = owner

    def vhost(self, name: str) -> VirtualHost:
        """Returns the virtual host, after the broker's clock was read for a new turn."""
        vhost = self.vhost_in_turn(name)
        self._broker.tick()
        return vhost

    def vhost_in_turn(self, name: str) -> VirtualHost:
        """Returns the virtual host within a turn, for which the clock was read already."""
        vhost = self._broker.vhosts.get(name)
        if vhost is None:
            raise ChannelError(404, f"no vhost '{name}'")
        return vhost

    async def free(self, vhost: str, kind: str, name: str) -> VirtualHost:
        """Returns the virtual host, in a new turn, when the name is not busy."""
        host = self.vhost(vhost)
        while host.busy_names.is_busy(kind, name):
            free: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            host.busy_names.wait_for(kind, name)(partial(set_done, free))
            self._broker.on_work()
            await free
            host = self.vhost(vhost)
        return host

    async def free_ends(self, vhost: str, binding: BindingSpec) -> VirtualHost:
        """Returns the virtual host, in a new turn, when neither end of a binding has a busy
        name."""
        destination = "queue" if binding.destination_is_queue else "exchange"
        await self.free(vhost, "exchange", binding.source)
        await self.free(vhost, destination, binding.destination)
        return self.vhost_in_turn(vhost)

    def ends(
        self, host: VirtualHost, binding: BindingSpec, made: Exchange | Queue | None = None
    ) -> BindingEnds:
        """Returns source and destination of a binding. `made` is an object that is being declared:
        an exchange can't be found by its name yet.

        Raises `ChannelError` for the default exchange, and for a name that does not exist.
        """

        def exchange(name: str) -> Exchange:
            if isinstance(made, Exchange) and made.name == name:
                return made
            return host.exchange(name)

        host.refuse_default(binding.source)
        if binding.destination_is_queue:
            return exchange(binding.source), host.queue(binding.destination, self._owner)
        return exchange(binding.source), exchange(binding.destination)


def set_done(future: asyncio.Future[None]) -> None:
    """Ends the waiting for the future, unless it was cancelled."""
    if not future.done():
        future.set_result(None)
