"""The bindings of a virtual host, made at once or behind a replay of stored messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ..errors import access_refused
from ..message.equivalence import resource
from ..message.model import Table
from ..queue.queue import Queue
from ..replay.replay import Replay, replays_of
from ..route.binding import Binding
from ..route.exchange import Exchange
from ..route.persistence import ReplayRequest, read_replay_request
from ..route.route import Destination

if TYPE_CHECKING:
    from ..context import BrokerContext
    from .virtual_host import VirtualHost


class Bindings:
    """Adds and removes the bindings of one virtual host."""

    def __init__(self, vhost: VirtualHost, broker: BrokerContext) -> None:
        self._vhost = vhost
        self._broker = broker

    def add(
        self,
        source: Exchange,
        destination: Destination,
        routing_key: str,
        arguments: Table,
        done: Callable[[], None] = lambda: None,
    ) -> None:
        """Adds a binding; a repeated one is no error.

        `done` runs when the binding is active: at once, or when the queue has got the messages it
        requests from a persistent exchange. Raises `ChannelError` 406 for bad arguments, 403 for
        binding an exchange to a persistent one.
        """
        request = _replay_request(source, destination, arguments)
        is_new = not source.has_binding(destination, routing_key, arguments)
        if request is None or not is_new or not isinstance(destination, Queue):
            self.attach(source, destination, routing_key, arguments)
            done()
            return
        source.check(routing_key, arguments)
        self._replay(
            source, destination, Binding(destination, routing_key, arguments), request, done
        )

    def _replay(
        self,
        source: Exchange,
        queue: Queue,
        binding: Binding,
        request: ReplayRequest,
        done: Callable[[], None],
    ) -> None:
        if source.storage is not None:
            source.storage.binding_key(source, binding)
        for replay in replays_of(source, queue):
            if replay.binding == binding:
                replay.on_done.append(done)
                return

        def attach() -> None:
            if not (source.deleted or queue.deleted):
                self.attach(source, queue, binding.routing_key, binding.arguments)

        replay = Replay(self._broker, source, binding, request, attach)
        replay.on_done.append(done)
        replay.start()

    def attach(
        self, source: Exchange, destination: Destination, routing_key: str, arguments: Table
    ) -> None:
        """Adds a binding without a replay."""
        if source.bind(destination, routing_key, arguments):
            for replay in replays_of(source, destination):
                replay.bound(Binding(destination, routing_key, arguments))
        if isinstance(destination, Queue):
            if destination.bound is None:
                destination.bound = {}
            destination.bound[source] = None

    def remove(
        self, source: Exchange, destination: Destination, routing_key: str, arguments: Table
    ) -> None:
        """Removes a binding, also one whose replay goes on; an absent one is no error."""
        binding = Binding(destination, routing_key, arguments)
        for replay in replays_of(source, destination):
            if replay.binding == binding:
                replay.end(in_force=False)
            else:
                replay.unbound(binding)
        if not source.unbind(destination, routing_key, arguments):
            self._vhost.storage.delete_lost_binding(source, binding)
            return
        if destination not in source.destinations:
            _forget_source(destination, source)
        self._vhost.deletion.delete_if_unused(source)


def remove_all(source: Exchange, destination: Destination) -> Iterator[None]:
    """Removes the bindings from a source to a destination that is deleted, one in each step."""
    for binding in tuple(source.bindings_to(destination)):
        source.unbind(destination, binding.routing_key, binding.arguments)
        yield
    _forget_source(destination, source)


def _forget_source(destination: Destination, source: Exchange) -> None:
    if isinstance(destination, Queue) and destination.bound is not None:
        destination.bound.pop(source, None)


def _replay_request(
    source: Exchange, destination: Destination, arguments: Table
) -> ReplayRequest | None:
    """Returns the stored messages that a binding requests of a persistent exchange, None for none.

    Raises `ChannelError` 403 or 406.
    """
    persistence = source.persistence
    if persistence is None:
        return None
    if isinstance(destination, Exchange):
        raise access_refused(
            f"{resource('exchange', source.name, source.vhost)} stores messages, so it can't be "
            "bound to an exchange"
        )
    request = read_replay_request(arguments)
    if request is None and persistence.replays_by_default:
        return ReplayRequest(since=0)
    return request
