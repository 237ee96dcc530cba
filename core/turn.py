"""The end of a turn: dispatches queues, lets the store write, and flushes connections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .timers import Timer

if TYPE_CHECKING:
    from .context import BrokerContext
    from .republish.republisher import Republisher
    from .resources.pager import Pager

DISPATCH_MESSAGES: Final = 2_000
"""Messages that one queue dispatches before the next queue has its turn."""
TURN_MESSAGES: Final = 8_000
TURN_MS: Final = 5
"""Bounds of one turn, in messages and time: no request of another connection waits longer."""


class Turn:
    """Ends the turns of one broker; `is_running` meanwhile."""

    def __init__(self, broker: BrokerContext, republisher: Republisher, pager: Pager) -> None:
        self._broker = broker
        self._republisher = republisher
        self._pager = pager
        self._store_timer: Timer | None = None
        self.is_running = False

    def run(self, *, runs_slices: bool) -> bool:
        """Dispatches ready messages, within the budget; True if there is more to do."""
        self.is_running = True
        try:
            return self._run(runs_slices)
        finally:
            self.is_running = False

    def _run(self, runs_slices: bool) -> bool:
        broker, republisher = self._broker, self._republisher
        self._dispatch()
        self._flush()
        if runs_slices and broker.slices.busy:
            broker.slices.run()
        if republisher.busy:
            republisher.run()
        self._flush()
        self._write()
        self._update_alarms()
        return broker.slices.busy or bool(broker.active) or republisher.busy or self._pager.is_busy

    def _dispatch(self) -> None:
        broker = self._broker
        active, delivered = broker.active, broker.statistics.total
        budget = TURN_MESSAGES
        until_ms = broker.clock.now_ms() + TURN_MS
        while active and budget > 0:
            queue = active.popleft()
            queue.active = False
            before = delivered.deliver_get
            if queue.dispatch(DISPATCH_MESSAGES):
                broker.wake(queue)
            budget -= 1 + delivered.deliver_get - before
            if broker.clock.now_ms() >= until_ms:
                break

    def _write(self) -> None:
        """Lets the store write, and schedules a turn for its next write."""
        broker = self._broker
        after_ms = broker.store.turned()
        self._pager.page_out_slice()
        if after_ms is None:
            return
        timer, at_ms = self._store_timer, broker.now_ms + after_ms
        if timer is None or timer.action is None or timer.at_ms > at_ms:
            if timer is not None:
                timer.cancel()
            self._store_timer = broker.timers.at(at_ms, _nothing)

    def _update_alarms(self) -> None:
        broker = self._broker
        alarms = broker.alarms
        if broker.store.is_short is not alarms.store_is_short:
            alarms.store_is_short = broker.store.is_short
            self._flush()
        if alarms.is_due:
            alarms.update()
            self._flush()

    def _flush(self) -> None:
        broker = self._broker
        while broker.outgoing:
            peers, broker.outgoing = broker.outgoing, []
            for peer in peers:
                peer.flush()


def _nothing() -> None:
    """Does nothing: the turn that runs the timer lets the store write."""
