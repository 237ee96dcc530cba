"""The state of a subscription's delivery: whether its messages are delivered, and its queue
consumed.

Two machines run beside each other: a consumer that is being started can be neither cancelled nor
replaced until the engine answers, whatever happens to the subscription meanwhile. The state of
the callback is a third machine (`delivery/breaker.py`).
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from ..engine.port import Consumption
from ..transitions import after
from .subscription import SubscriptionStatus


class Phase(Enum):
    """The phase of a subscription's delivery. Messages are delivered in the phase `ACTIVE`
    alone."""

    UNVERIFIED = auto()
    """Its callback has not agreed: it has no queue yet."""
    ACTIVE = auto()
    SUSPENDED = auto()
    """Active, and its queue is not consumed until a time that `Suspensions` keeps."""
    PAUSED = auto()
    """By an operator, or after too many failures; its queue fills."""
    OVER = auto()


class DeliveryEvent(Enum):
    ACTIVATE = auto()
    """Its callback has agreed, or an operator has ended a pause."""
    PAUSE = auto()
    SUSPEND = auto()
    RESUME = auto()
    """The suspension is over, if there is one."""
    END = auto()


PHASES: Final = {
    (Phase.UNVERIFIED, DeliveryEvent.ACTIVATE): Phase.ACTIVE,
    (Phase.UNVERIFIED, DeliveryEvent.END): Phase.OVER,
    (Phase.ACTIVE, DeliveryEvent.PAUSE): Phase.PAUSED,
    (Phase.ACTIVE, DeliveryEvent.SUSPEND): Phase.SUSPENDED,
    (Phase.ACTIVE, DeliveryEvent.RESUME): Phase.ACTIVE,
    (Phase.ACTIVE, DeliveryEvent.END): Phase.OVER,
    (Phase.SUSPENDED, DeliveryEvent.PAUSE): Phase.PAUSED,
    (Phase.SUSPENDED, DeliveryEvent.SUSPEND): Phase.SUSPENDED,
    (Phase.SUSPENDED, DeliveryEvent.RESUME): Phase.ACTIVE,
    (Phase.SUSPENDED, DeliveryEvent.END): Phase.OVER,
    (Phase.PAUSED, DeliveryEvent.ACTIVATE): Phase.ACTIVE,
    # Deliveries that were in flight at the pause, or at the end, may fail after it.
    (Phase.PAUSED, DeliveryEvent.SUSPEND): Phase.PAUSED,
    (Phase.PAUSED, DeliveryEvent.RESUME): Phase.PAUSED,
    (Phase.PAUSED, DeliveryEvent.END): Phase.OVER,
    (Phase.OVER, DeliveryEvent.SUSPEND): Phase.OVER,
    (Phase.OVER, DeliveryEvent.RESUME): Phase.OVER,
    (Phase.OVER, DeliveryEvent.END): Phase.OVER,
}

_FIRST: Final = {
    SubscriptionStatus.PENDING: Phase.OVER,
    SubscriptionStatus.ACTIVE: Phase.ACTIVE,
    SubscriptionStatus.PAUSED: Phase.PAUSED,
    SubscriptionStatus.UNVERIFIED: Phase.UNVERIFIED,
    SubscriptionStatus.ENDING: Phase.OVER,
}
_STORED: Final = {
    SubscriptionStatus.ACTIVE: DeliveryEvent.ACTIVATE,
    SubscriptionStatus.PAUSED: DeliveryEvent.PAUSE,
}


class ConsumerState(Enum):
    NONE = auto()
    STARTING = auto()
    """The engine was asked for a consumer and has not answered."""
    RUNNING = auto()


class ConsumerEvent(Enum):
    START = auto()
    STARTED = auto()
    FAIL = auto()
    CANCEL = auto()


CONSUMERS: Final = {
    (ConsumerState.NONE, ConsumerEvent.START): ConsumerState.STARTING,
    (ConsumerState.NONE, ConsumerEvent.CANCEL): ConsumerState.NONE,
    (ConsumerState.STARTING, ConsumerEvent.STARTED): ConsumerState.RUNNING,
    (ConsumerState.STARTING, ConsumerEvent.FAIL): ConsumerState.NONE,
    (ConsumerState.STARTING, ConsumerEvent.CANCEL): ConsumerState.STARTING,
    (ConsumerState.RUNNING, ConsumerEvent.CANCEL): ConsumerState.NONE,
}

_ACTIVE: Final = Phase.ACTIVE


class DeliveryState:
    """The state of a subscription's delivery. Every change is an event that a table of moves
    allows; else `IllegalMove` is raised."""

    __slots__ = ("consumer_state", "consumption", "missing_source", "phase")

    def __init__(self, status: SubscriptionStatus) -> None:
        self.phase = _FIRST[status]
        self.consumer_state = ConsumerState.NONE
        self.consumption: Consumption | None = None
        self.missing_source = ""
        """Why it is not bound: its source is missing; empty while it is bound."""

    @property
    def is_over(self) -> bool:
        return self.phase is Phase.OVER

    def takes(self) -> bool:
        """Returns whether messages are to be delivered now."""
        return self.phase is _ACTIVE

    def store(self, status: SubscriptionStatus) -> None:
        """Notes that another status was stored for the subscription."""
        self._move(_STORED[status])

    def suspend(self) -> None:
        self._move(DeliveryEvent.SUSPEND)

    def resume(self) -> None:
        self._move(DeliveryEvent.RESUME)

    def end(self) -> None:
        self._move(DeliveryEvent.END)

    def wait_for_source(self, reason: str) -> None:
        self.missing_source = reason

    def follow_source(self) -> None:
        self.missing_source = ""

    def start_consuming(self) -> bool:
        """Begins the start of a consumer, which `consume` or `fail_to_consume` ends. Returns False
        if there is one already, or is to be none."""
        if self.consumer_state is not ConsumerState.NONE or not self.takes():
            return False
        self._move_consumer(ConsumerEvent.START)
        return True

    def consume(self, consumption: Consumption) -> None:
        self._move_consumer(ConsumerEvent.STARTED)
        self.consumption = consumption

    def fail_to_consume(self) -> None:
        self._move_consumer(ConsumerEvent.FAIL)

    async def cancel(self) -> None:
        """Cancels its consumer, for good where it is over; deliveries in flight stay valid."""
        self._move_consumer(ConsumerEvent.CANCEL)
        consumption, self.consumption = self.consumption, None
        if consumption is not None:
            await (consumption.end() if self.is_over else consumption.cancel())

    def _move(self, event: DeliveryEvent) -> None:
        self.phase = after(PHASES, self.phase, event)

    def _move_consumer(self, event: ConsumerEvent) -> None:
        self.consumer_state = after(CONSUMERS, self.consumer_state, event)
