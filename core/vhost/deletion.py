"""Deletes exchanges and queues in slices, with their bindings and consumers.

What is deleted can't be found at once; its name is busy until the last step.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

from ..queue.consumer import Consumer
from ..queue.queue import Queue
from ..route.exchange import Exchange
from ..slices import drain, for_each
from .bindings import remove_all

if TYPE_CHECKING:
    from ..context import BrokerContext
    from .virtual_host import VirtualHost


class Deletion:
    """Deletes what is in one virtual host."""

    def __init__(self, vhost: VirtualHost, broker: BrokerContext) -> None:
        self._vhost = vhost
        self._broker = broker

    def delete_exchange(self, exchange: Exchange) -> None:
        """Deletes an exchange, and auto-delete ones that lose their last binding by it."""
        self._broker.slices.start(self._end_exchange(exchange))

    def delete_if_unused(self, exchange: Exchange) -> None:
        """Deletes an auto-delete exchange without bindings; a deleted one is no error."""
        if exchange.auto_delete and not exchange.binding_count:
            self.delete_exchange(exchange)

    def _end_exchange(self, exchange: Exchange) -> Iterator[None]:
        """Deletes an exchange, and the auto-delete ones that lose their last binding by it.

        With a worklist, not recursion: chains can be thousands long.
        """
        removed: list[Exchange] = []
        vhost = self._vhost
        with ExitStack() as busy:

            def remove(exchange: Exchange) -> None:
                if vhost.exchanges.get(exchange.name) is exchange:
                    busy.enter_context(vhost.busy_names.busy("exchange", exchange.name))
                    self._take_away(exchange)
                    removed.append(exchange)

            remove(exchange)
            while removed:
                deleted = removed.pop()
                for destination in tuple(deleted.destinations):
                    yield from remove_all(deleted, destination)
                for source in deleted.incoming:
                    yield from remove_all(source, deleted)
                    if source.auto_delete and not source.binding_count:
                        remove(source)
                if isinstance(deleted.inner, Queue):
                    self.delete_queue(deleted.inner)
                vhost.storage.delete_exchange(deleted)

    def _take_away(self, exchange: Exchange) -> None:
        """Removes an exchange, so that it can't be found and routes nothing."""
        vhost = self._vhost
        del vhost.exchanges[exchange.name]
        exchange.end()
        vhost.alternates.remove(exchange)
        vhost.policies.forget(exchange)
        vhost.alternates.invalidate(exchange.name)
        self._broker.on_deleted(vhost.name, "exchange", exchange.name)

    def delete_queue(self, queue: Queue) -> int:
        """Deletes a queue and its messages at once; it can't be found and gets no messages.

        Bindings are removed and consumers cancelled in slices. Returns the number of messages
        that were ready.
        """
        if queue.deleted:
            return 0
        vhost, slices = self._vhost, self._broker.slices
        queue.deleted = True
        for queues in (vhost.queues, vhost.inner_queues):
            if queues.get(queue.name) is queue:
                del queues[queue.name]
                self._broker.statistics.churned().queue_deleted += 1
        vhost.policies.forget(queue)
        queue.invalidate_routes()
        self._broker.statistics.forget_queue(queue)
        ready = queue.ready_count
        queue.purge()
        if queue.durable:
            slices.start(self._broker.store.drop(queue))
        slices.start(self._end_queue(queue))
        return ready

    def _end_queue(self, queue: Queue) -> Iterator[None]:
        """Removes bindings and consumers, one a step; the definition goes after the bindings."""
        vhost = self._vhost
        with vhost.busy_names.busy("queue", queue.name):
            for exchange in tuple(queue.bound or ()):
                yield from remove_all(exchange, queue)
                if exchange.auto_delete and not exchange.binding_count:
                    yield from self._end_exchange(exchange)
            vhost.storage.delete_queue(queue)
            yield from for_each(queue.detach_consumers(), _cancel)
            self._broker.on_deleted(vhost.name, "queue", queue.name)

    def delete_all(self) -> Iterator[None]:
        """Deletes everything in the virtual host, bindings first, in steps for `Slices`."""
        vhost = self._vhost
        # Drained, so that they are freed one by one.
        queues = deque((*vhost.replies.values(), *vhost.queues.values()))
        vhost.replies.clear()
        yield from for_each(drain(queues), self.delete_queue)
        for exchange in tuple(vhost.exchanges.values()):
            yield from self._end_exchange(exchange)
        while vhost.busy_names:
            yield  # until other sliced deletions are done
        yield from for_each(tuple(vhost.inner_queues.values()), self.delete_queue)
        vhost.policies.clear_all()


def _cancel(consumer: Consumer) -> None:
    consumer.session.cancelled(consumer)
