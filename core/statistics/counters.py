"""Counters: integers that only grow, added to once for each batch, never for each message.

The rates of counters are those of the samples that the `Sampler` takes of them.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

if TYPE_CHECKING:
    from .rates import Samples

Values: TypeAlias = "array[int]"
"""The values of a counter's fields at one time."""
Read: TypeAlias = Callable[[Any], "tuple[int, ...]"]


class Counters:
    """The base of all counters; `FIELDS` are the names of the integers, in the order of samples."""

    __slots__ = ("active_ms", "is_active", "samples")

    FIELDS: ClassVar[tuple[str, ...]] = ()
    GAUGES: ClassVar[tuple[str, ...]] = ()
    """The last of `FIELDS` that are looked up when a sample is taken, and not counted."""
    _read: ClassVar[Read]
    """Returns the values of all `FIELDS`."""

    def __init__(self) -> None:
        self.is_active = False
        """Whether it was counted since the last sample."""
        self.active_ms = 0
        """When it was counted last, up to an interval before; monotonic."""
        self.samples: Samples | None = None
        """The last two samples; None when nothing was counted for a while."""
        for field in self.FIELDS[: len(self.FIELDS) - len(self.GAUGES)]:
            setattr(self, field, 0)

    def values(self) -> Values:
        """Returns the values in the order of `FIELDS`."""
        return array("Q", type(self)._read(self))


class MessageCounters(Counters):
    """Message counters of a queue, channel, virtual host or the whole server.

    Exchanges count `publish_in` and `publish_out` alone: messages that came, and copies that went
    into queues. `deliver` and `get` count deliveries that are to be acknowledged. Of
    `publish_confirm`, the publishes on channels with confirms, and `confirm`, their acks, a server
    that keeps up has as many.
    """

    FIELDS: ClassVar[tuple[str, ...]] = (
        "publish", "publish_confirm", "confirm", "return_unroutable", "drop_unroutable",
        "deliver", "deliver_no_ack", "get", "get_no_ack", "get_empty", "redeliver",
        "ack", "reject", "publish_in", "publish_out",
    )  # fmt: skip
    __slots__ = FIELDS
    _read: ClassVar[Read] = attrgetter(*FIELDS)

    publish: int
    publish_confirm: int
    confirm: int
    return_unroutable: int
    drop_unroutable: int
    deliver: int
    deliver_no_ack: int
    get: int
    get_no_ack: int
    get_empty: int
    redeliver: int
    ack: int
    reject: int
    publish_in: int
    publish_out: int

    @property
    def deliver_get(self) -> int:
        """All deliveries, with and without ack, to consumers and by basic.get."""
        return self.deliver + self.deliver_no_ack + self.get + self.get_no_ack


class QueueCounters(MessageCounters):
    """The counters of a queue; its samples have the lengths of the queue too."""

    __slots__ = ("_queue",)

    GAUGES = ("messages_ready", "messages_unacknowledged")
    FIELDS = (*MessageCounters.FIELDS, *GAUGES)
    _read: ClassVar[Read] = attrgetter(*FIELDS)

    def __init__(self, queue: CountedQueue) -> None:
        super().__init__()
        self._queue: CountedQueue | None = queue

    def end(self) -> None:
        """Lets go of a deleted queue: its samples may be kept for ten minutes more."""
        self._queue = None

    @property
    def messages_ready(self) -> int:
        return 0 if self._queue is None else self._queue.ready_count

    @property
    def messages_unacknowledged(self) -> int:
        return 0 if self._queue is None else self._queue.unacked_count


class TrafficCounters(Counters):
    """The octets of connections, and how often they were read and written."""

    FIELDS = ("received_bytes", "reads", "sent_bytes", "writes")
    __slots__ = FIELDS
    _read: ClassVar[Read] = attrgetter(*FIELDS)

    received_bytes: int
    reads: int
    sent_bytes: int
    writes: int


class ChurnCounters(Counters):
    """Counters of connections, channels and queues opened and closed, and of logins."""

    FIELDS = (
        "connection_created", "connection_closed", "channel_created", "channel_closed",
        "queue_declared", "queue_created", "queue_deleted", "login_succeeded", "login_failed",
    )  # fmt: skip
    __slots__ = FIELDS
    _read: ClassVar[Read] = attrgetter(*FIELDS)

    connection_created: int
    connection_closed: int
    channel_created: int
    channel_closed: int
    queue_declared: int
    queue_created: int
    queue_deleted: int
    login_succeeded: int
    login_failed: int


class Counted(Protocol):
    """A queue, exchange, channel or virtual host; it has counters from its first message on."""

    counters: MessageCounters | None


class CountedQueue(Counted, Protocol):
    """A queue, with the name of its virtual host; counted until it is deleted."""

    vhost: str
    deleted: bool
    unacked_count: int

    @property
    def ready_count(self) -> int: ...


class CountedName:
    """Something counted that has no object: a virtual host by its name, the default exchange."""

    __slots__ = ("counters",)

    def __init__(self) -> None:
        self.counters: MessageCounters | None = None
