"""A new binding of a persistent exchange gets what the exchange has kept, then what is new.

The queue first gets what the binding asks for of the past, then all that was published meanwhile;
with the last of it the binding comes into force and is told of. So order holds, nothing is missed
and nothing comes twice, however long reading takes. What other bindings have brought to the queue
meanwhile is left out; another replay to the same queue begins when this one has ended.

A replay publishes: it waits while there is an alarm, or too much waits for the disk.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from ..message.batch import Batch, MessageRange, ScatteredBatch
from ..queue.cursor import Cursor
from ..queue.header_rewriting import with_header
from ..queue.queue import Queue
from ..queue.retained import RetainedQueue
from ..queue.stream import at_most
from .matcher import Matcher
from .passes import FOREVER, Pass, passes

if TYPE_CHECKING:
    from ..broker import Share
    from ..resources.alarms import Alarms
    from ..route.binding import Binding
    from ..route.exchange import Exchange
    from ..route.persistence import ReplayRequest
    from ..store.port import Store

OFFSET_HEADER = b"x-offset"
AT_ONCE = 200
"""Messages that are replayed as soon as they are asked for: then the answer is, too."""


class Publishing(Protocol):
    """What it needs of the broker."""

    store: Store
    alarms: Alarms
    now_ms: int

    def publish(self, batch: Batch, shares: Sequence[Share]) -> int: ...
    def offer(self, batch: Batch, queues: Sequence[Queue]) -> tuple[bool, int]: ...
    def on_commit(self, callback: Callable[[], None]) -> None: ...


class _OtherBinding:
    """A binding of the same queue that is in force, and so brings it what is published at offsets
    from `start` to `stop - 1`."""

    def __init__(self, binding: Binding, match: Matcher, start: int) -> None:
        self.binding = binding
        self.match = match
        self.start = start
        self.stop = FOREVER


class Replay:
    """One binding on its way; `attach` puts it into force, then those in `told` are told."""

    def __init__(
        self,
        broker: Publishing,
        source: Exchange,
        binding: Binding,
        wanted: ReplayRequest,
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
        self._wanted = wanted
        self._attach = attach
        self._others: list[_OtherBinding] = []
        self._passes: Iterator[Pass] | None = None

    # -- beginning and end

    def start(self) -> None:
        """Begins, or stands behind another one of its queue."""
        replays = self._history.replays
        is_first = not any(other.queue is self.queue for other in replays)
        replays.append(self)
        if is_first:
            self._begin()
            self.step(AT_ONCE)

    def _begin(self) -> None:
        """What is kept now is the past."""
        kept = self._history
        self._passes = passes(self._wanted, kept.first, kept.log.end, kept.oldest_ms())
        for binding in self._source.bindings_to(self.queue):
            self.bound(binding)
        self._begin_pass(next(self._passes))
        kept.wake_up()

    def _begin_pass(self, then: Pass) -> None:
        self._pass = then
        kept = self._history
        self._cursor = Cursor(kept.log, self._broker.store, then.start, kept.wake_up, early=True)

    def end(self, *, in_force: bool = True) -> None:
        """The binding is in force from now on, unless it was taken back meanwhile."""
        self.has_more = False
        replays = self._history.replays
        replays.remove(self)
        self._broker.alarms.forget(self)
        if in_force:
            self._attach()
        for told in self.on_done:
            told()
        following = next((other for other in replays if other.queue is self.queue), None)
        if isinstance(following, Replay) and not self.queue.deleted and not self._history.deleted:
            following._begin()

    # -- what others bring

    def bound(self, binding: Binding) -> None:
        """Another binding of the queue is in force from now on."""
        if self._passes is not None:
            match = Matcher(self._source, binding)
            self._others.append(_OtherBinding(binding, match, self._history.log.end))

    def unbound(self, binding: Binding) -> None:
        """It was taken back."""
        for other in self._others:
            if other.binding == binding and other.stop == FOREVER:
                other.stop = self._history.log.end

    # -- on its way

    def step(self, limit: int) -> int:
        """Looks at about so many messages; gives how many that were. It `has_more` then, or waits
        for something."""
        looked = 0
        while looked < limit and self._goes_on():
            messages = self._cursor.next()
            if messages is not None:
                looked += self._take(at_most(messages, limit - looked))
            elif self._cursor.is_reading:
                break
        self.has_more = looked >= limit
        return looked

    def _goes_on(self) -> bool:
        """Takes up the next pass when one is done; False at the end, and while it has to wait."""
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
        if broker.store.behind_bytes > broker.store.behind_max_bytes:
            broker.on_commit(self._history.wake_up)
            return True
        return False

    def unblock(self) -> None:
        """The alarm is over."""
        self._history.wake_up()

    def _take(self, messages: MessageRange) -> int:
        """Notes, or hands on, what matches of the front of a range; gives how many it looked at."""
        now, cursor = self._pass, self._cursor
        offset = cursor.offset
        others, stop = self._delivered_by_others(offset) if now.is_last else ([], now.stop)
        count = min(messages.count, stop - offset)
        if count <= 0:
            return 1  # What could not be read reaches behind the end of the pass.
        cursor.offset += count
        if now.oldest_ms is not None and messages.entry.batch.arrived_ms < now.oldest_ms:
            return count
        for part in self._match.parts(
            MessageRange(messages.entry, messages.low, messages.low + count), others
        ):
            self._process(part, offset + part.low - messages.low)
        return count

    def _delivered_by_others(self, offset: int) -> tuple[list[Matcher], int]:
        """What other bindings have brought at this offset, and up to which one that holds."""
        others = [other for other in self._others if other.start <= offset < other.stop]
        edges = [edge for other in self._others for edge in (other.start, other.stop)]
        stop = min((edge for edge in edges if edge > offset), default=FOREVER)
        return [other.match for other in others], stop

    def _process(self, part: MessageRange, offset: int) -> None:
        now = self._pass
        if now.offsets is not None:
            now.offsets.extend(range(offset, offset + part.count))
            return
        skipped = min(now.skip, part.count)
        now.skip -= skipped
        high = min(part.high, part.low + skipped + now.left)
        part = MessageRange(part.entry, part.low + skipped, high)
        now.left -= part.count
        if part.count:
            self._publish(part, offset + skipped)

    def _publish(self, messages: MessageRange, offset: int) -> None:
        persistence = self._history.limits
        marks = persistence is not None and persistence.adds_offsets
        numbers = range(offset, offset + messages.count) if marks else [None] * messages.count
        shown = with_header(messages, OFFSET_HEADER, numbers)
        batch = shown.entry.batch
        rules = self.queue.rules
        if rules is None or not rules.checks_publishes:
            self._broker.publish(self._as_new_messages(batch), [((self.queue,), None)])
            return
        for index in range(batch.count):
            self._broker.offer(self._as_new_messages(batch, index), (self.queue,))

    def _as_new_messages(self, batch: Batch, index: int | None = None) -> Batch:
        """As messages of their own, which they are from now on."""
        assert isinstance(batch, ScatteredBatch)
        chosen = slice(None) if index is None else slice(index, index + 1)
        starts: array[int] = batch.starts[chosen]
        store, now_ms = self._broker.store, self._broker.now_ms
        return ScatteredBatch(
            batch.data, store.reserve(len(starts)), batch.attributes, now_ms,
            starts, batch.contents[chosen], batch.ends[chosen],
        )  # fmt: skip


def replays_of(source: Exchange, queue: object) -> list[Replay]:
    """Those under way from an exchange to a queue."""
    kept = source.inner
    found = kept.replays if isinstance(kept, RetainedQueue) else ()
    return [one for one in found if isinstance(one, Replay) and one.queue is queue]
