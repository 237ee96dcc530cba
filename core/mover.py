"""Dead letters: messages that a queue lets go of move to its dead-letter exchange.

A dead letter is a new message with its history in the headers `x-death` and friends; only those
headers are touched, all others stay byte for byte as they came. Rewriting one costs some 50 us,
so a turn moves a bounded number and the rest waits in line.
"""

from __future__ import annotations

import logging
from collections import deque
from functools import partial
from typing import TYPE_CHECKING

from .block import Span, WholeBlock, envelope, split_envelope
from .queue.queue import Queue
from .vhost import DEFAULT_EXCHANGE
from .wire import properties as wire
from .wire.death import add_death, would_cycle

if TYPE_CHECKING:
    from .broker import Broker

logger = logging.getLogger(__name__)

MOVES_PER_TURN = 20
"""About 2 ms: a turn follows every read, and all of them come before somebody's answer."""


class Mover:
    """The line of spans on their way to a dead-letter exchange."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._line: deque[tuple[Queue, Span, str]] = deque()
        self._waiting = False

    @property
    def busy(self) -> bool:
        return bool(self._line) and not self._waiting

    def add(self, queue: Queue, span: Span, reason: str) -> None:
        """Takes over messages that are in no queue any more."""
        rules = queue.rules
        if rules is None or rules.dead_letter_exchange is None:
            if queue.durable and not queue.deleted:
                self._broker.store.settle(queue, span)
            return
        self._line.append((queue, span, reason))

    def run(self) -> None:
        """Moves at most `MOVES_PER_TURN` messages: copies and settlements are kept together."""
        with self._broker.store.together():
            self._run()

    def _run(self) -> None:
        line = self._line
        for _ in range(MOVES_PER_TURN):
            if not self.busy:
                return
            queue, span, reason = line[0]
            if not span.run.block.resident:
                self._waiting = True
                self._broker.store.fetch(span.run.block, partial(self._arrived, span))
                return
            one = Span(span.run, span.low, span.low + 1)
            span.low += 1
            if span.low == span.high:
                line.popleft()
            self._move(queue, one, reason)

    def _arrived(self, span: Span) -> None:
        """What could not be read is left out; the store has said so, and still has it."""
        self._waiting = False
        if not span.run.block.resident:
            self._line.popleft()
        self._broker.on_work()

    def _move(self, queue: Queue, one: Span, reason: str) -> None:
        """Moves one message. Whatever is wrong with it, it must not stop the broker's turn."""
        try:
            self._publish(queue, one, reason)
        except Exception:
            logger.exception(
                "a dead letter (%s) of queue '%s' in vhost '%s' could not be moved and is dropped",
                reason,
                queue.name,
                queue.vhost,
            )
        if queue.durable and not queue.deleted:
            self._broker.store.settle(queue, one)

    def _publish(self, queue: Queue, one: Span, reason: str) -> None:
        rules = queue.rules
        assert rules is not None
        assert rules.dead_letter_exchange is not None
        vhost = self._broker.vhosts[queue.vhost]
        exchange = vhost.exchanges.get(rules.dead_letter_exchange)
        if exchange is None and rules.dead_letter_exchange != DEFAULT_EXCHANGE:
            return
        block, index = one.run.block, one.run.index(one.low)
        from_exchange, key = split_envelope(block.envelope(index))
        own_key = rules.dead_letter_routing_key
        raw, copies, headers = add_death(
            block.properties(index),
            queue=queue.name,
            reason=reason,
            exchange=from_exchange,
            routing_key=key,
            time_s=int(self._broker.clock.wall_s()),
            keep_keys=own_key is None,
        )
        blind = block.blind_keys if own_key is None else ()
        new_key = key if own_key is None else own_key
        route = vhost.route(exchange, [new_key, *copies, *blind], headers, watched=False)
        targets = [
            target
            for target in route.queues
            if isinstance(target, Queue) and not would_cycle(headers, target.name, reason)
        ]
        if targets:
            moved = WholeBlock(
                envelope(rules.dead_letter_exchange, new_key),
                raw,
                block.body(index),
                self._broker.store.reserve(1),
                # The list was checked when it was published, and grew by what we added: it may
                # be over a limit that is meant for publishers.
                wire.intern_traits(block.traits.persistent, block.traits.priority, None, False),
                self._broker.now_ms,
                blind,
            )
            self._broker.offer(moved, targets)
