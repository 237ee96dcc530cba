"""Replays the stored messages of a persistent exchange to the queue of a new binding.

The queue first gets the stored messages that the binding asks for, then those published meanwhile;
with the last of them the binding comes into force and is confirmed. So the order is kept, and no
message is missed or duplicated, however long reading takes. Messages that other bindings have
routed to the queue meanwhile are skipped; another replay to the same queue starts when this one has
ended.

A replay publishes: it waits during an alarm, or while too many bytes wait for the disk.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from ..message.batch import Batch
from ..message.framed_batch import ScatteredBatch
from ..message.queue_entry import MessageRange
from ..publish.shares import Share, takes_batch
from ..queue.cursor import Cursor
from ..queue.header_rewriting import rewritten
from ..queue.queue import Queue
from ..queue.retained import RetainedQueue
from ..queue.stream_range import at_most
from .matcher import Matcher
from .passes import FOREVER, Pass, passes

if TYPE_CHECKING:
    from ..commits import Commits
    from ..resources.alarms import Alarms
    from ..route.binding import Binding
    from ..route.exchange import Exchange
    from ..route.persistence import ReplayRequest
    from ..store.port import Store

OFFSET_HEADER: Final = b"x-offset"
AT_ONCE: Final = 200
"""Messages that are replayed before the binding is confirmed, if there are no more."""


class Publishing(Protocol):
    """The part of the broker that replays use."""

    store: Store
    commits: Commits
    alarms: Alarms
    now_ms: int

    def publish(self, batch: Batch, shares: Sequence[Share]) -> int: ...
    def publish_checked(self, batch: Batch, queues: Sequence[Queue]) -> tuple[bool, int]: ...


class _OtherBinding:
    """Another binding of the queue, which routes to it the messages published at offsets `start` to
    `stop - 1`."""

    def __init__(self, binding: Binding, match: Matcher, start: int) -> None:
        self.binding = binding
        self.match = match
        self.start = start
        self.stop = FOREVER


class Replay:
    """The replay for one binding; `attach` puts it into force, then `on_done` is called."""

    def __init__(
        self,
        broker: Publishing,
        source: Exchange,
        binding: Binding,
        request: ReplayRequest,
        attach: Callable[[], None],
    ) -> None:
        assert isinstance(source.inner, RetainedQueue)
        assert isinstance(binding.destination, Queue)
        self.queue = binding.destination
        self.binding = binding
        self.on_done: list[Callable[[], None]] = []
        self.has_more = False
        self._broker = broker
        self._source = source
        self._history = source.inner
        self._match = Matcher(source, binding)
        self._request = request
        self._attach = attach
        self._others: list[_OtherBinding] = []
        self._passes: Iterator[Pass] | None = None

    # -- start and end

    def start(self) -> None:
        """Starts the replay, after another one of its queue if there is one."""
        replays = self._history.replays
        is_first = not any(other.queue is self.queue for other in replays)
        replays.append(self)
        if is_first:
            self._begin()
            self.step(AT_ONCE)

    def _begin(self) -> None:
        """Takes the messages stored now as the history, and starts the first scan."""
        history = self._history
        self._passes = passes(self._request, history.first, history.log.end, history.oldest_ms())
        for binding in self._source.bindings_to(self.queue):
            self.bound(binding)
        self._begin_pass(next(self._passes))
        history.wake_up()

    def _begin_pass(self, scan: Pass) -> None:
        self._pass = scan
        history = self._history
        store = self._broker.store
        self._cursor = Cursor(history.log, store, scan.start, history.wake_up, early=True)

    def end(self, *, in_force: bool = True) -> None:
        """Ends the replay; the binding comes into force unless it was removed meanwhile."""
        self.has_more = False
        replays = self._history.replays
        replays.remove(self)
        self._broker.alarms.forget(self)
        if in_force:
            self._attach()
        for callback in self.on_done:
            callback()
        following = next((other for other in replays if other.queue is self.queue), None)
        if isinstance(following, Replay) and not self.queue.deleted and not self._history.deleted:
            following._begin()

    # -- other bindings of the queue

    def bound(self, binding: Binding) -> None:
        """Notes that another binding of the queue is in force from now on."""
        if self._passes is not None:
            match = Matcher(self._source, binding)
            self._others.append(_OtherBinding(binding, match, self._history.log.end))

    def unbound(self, binding: Binding) -> None:
        """Notes that another binding of the queue was removed."""
        for other in self._others:
            if other.binding == binding and other.stop == FOREVER:
                other.stop = self._history.log.end

    # -- scanning

    def step(self, limit: int) -> int:
        """Scans about `limit` messages; returns how many. Afterwards it `has_more`, or waits."""
        scanned = 0
        while scanned < limit and self._can_scan():
            messages = self._cursor.next()
            if messages is not None:
                scanned += self._take(at_most(messages, limit - scanned))
            elif self._cursor.is_reading:
                break
        self.has_more = scanned >= limit
        return scanned

    def _can_scan(self) -> bool:
        """Starts the next scan when one is done; False at the end, and while it has to wait."""
        if self.queue.deleted or self._history.deleted:
            self.end(in_force=False)
            return False
        if self._passes is None or self._must_wait():
            return False
        while (
            self._cursor.offset >= min(self._pass.stop, self._history.log.end)
            or not self._pass.left
        ):
            if self._pass.is_last:
                self.end()
                return False
            self._begin_pass(next(self._passes))
        return True

    def _must_wait(self) -> bool:
        broker = self._broker
        if broker.alarms.any:
            broker.alarms.block(self)
            return True
        if broker.store.progress.behind_bytes > broker.store.progress.behind_max_bytes:
            broker.commits.on_next(self._history.wake_up)
            return True
        return False

    def unblock(self) -> None:
        """Continues when the alarm is cleared."""
        self._history.wake_up()

    def _take(self, messages: MessageRange) -> int:
        """Notes or publishes the matching messages at the front of a range; returns how many
        messages were scanned."""
        scan, cursor = self._pass, self._cursor
        offset = cursor.offset
        others, stop = self._delivered_by_others(offset) if scan.is_last else ([], scan.stop)
        count = min(messages.count, stop - offset)
        if count <= 0:
            return 1  # Unreadable messages reach beyond the end of the scan.
        cursor.offset += count
        if scan.oldest_ms is not None and messages.entry.batch.arrived_ms < scan.oldest_ms:
            return count
        for part in self._match.parts(
            MessageRange(messages.entry, messages.low, messages.low + count), others
        ):
            self._process(part, offset + part.low - messages.low)
        return count

    def _delivered_by_others(self, offset: int) -> tuple[list[Matcher], int]:
        """Returns the other bindings in force at this offset, and the offset up to which they
        are."""
        others = [other for other in self._others if other.start <= offset < other.stop]
        edges = [edge for other in self._others for edge in (other.start, other.stop)]
        stop = min((edge for edge in edges if edge > offset), default=FOREVER)
        return [other.match for other in others], stop

    def _process(self, part: MessageRange, offset: int) -> None:
        scan = self._pass
        if scan.offsets is not None:
            scan.offsets.extend(range(offset, offset + part.count))
            return
        skipped = min(scan.skip, part.count)
        scan.skip -= skipped
        high = min(part.high, part.low + skipped + scan.left)
        part = MessageRange(part.entry, part.low + skipped, high)
        scan.left -= part.count
        if part.count:
            self._publish(part, offset + skipped)

    def _publish(self, messages: MessageRange, offset: int) -> None:
        persistence = self._history.limits
        adds_offsets = persistence is not None and persistence.adds_offsets
        numbers = (
            range(offset, offset + messages.count) if adds_offsets else [None] * messages.count
        )
        batch = rewritten(messages, OFFSET_HEADER, numbers)
        if takes_batch((self.queue,)):
            self._broker.publish(self._as_new_messages(batch), [((self.queue,), None)])
            return
        for index in range(batch.count):
            self._broker.publish_checked(self._as_new_messages(batch, index), (self.queue,))

    def _as_new_messages(self, batch: ScatteredBatch, index: int | None = None) -> Batch:
        """Returns the batch, or one message of it, as new messages."""
        chosen = slice(None) if index is None else slice(index, index + 1)
        starts: array[int] = batch.starts[chosen]
        store, now_ms = self._broker.store, self._broker.now_ms
        return ScatteredBatch(
            batch.data, store.reserve(len(starts)), batch.attributes, now_ms,
            starts, batch.contents[chosen], batch.ends[chosen],
        )  # fmt: skip


def replays_of(source: Exchange, queue: object) -> list[Replay]:
    """Returns the replays in progress from an exchange to a queue."""
    history = source.inner
    found = history.replays if isinstance(history, RetainedQueue) else ()
    return [one for one in found if isinstance(one, Replay) and one.queue is queue]
