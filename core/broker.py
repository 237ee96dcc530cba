"""The broker: virtual hosts, users, the store, publishing, and the turns that drive them.

Everything happens in turns on one thread. A turn begins when bytes or calls come in; messages that
they put into queues are dispatched when it ends (`turn`), and each connection with output writes
once. A turn has a budget, so that nobody waits long for a burst of others: the rest is done in
the next turn.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from .auth import Kind, User, Users
from .clock import Clock, SystemClock
from .definitions.clock_steps import ClockSteps
from .definitions.facts import Facts
from .definitions.restore import end_orphans, restore
from .definitions.set_aside import SetAside
from .definitions.writer import UserWriter
from .errors import ConnectionFault
from .message.batch import Batch, MemoryUsage, MessageRange, QueueEntry
from .proto.consumer_timeout import ConsumerTimeouts
from .queue.queue import Queue
from .republish.republisher import Republisher, RepublishGroup
from .resources.alarms import Alarms
from .resources.limits import Occupancy
from .resources.pager import Pager
from .route.exchange import Exchange
from .slices import Slices, for_each
from .store.memory import MemoryStore
from .store.port import ManySettled, Store
from .timers import Timer, Timers
from .vhost import VirtualHost

if TYPE_CHECKING:
    from .proto.connection import Connection

logger = logging.getLogger(__name__)

DISPATCH_MESSAGES = 2_000
"""Messages that one queue dispatches before the next queue has its turn."""
CROWDED_MESSAGES = 65_536
"""Ready messages of a queue with consumers above which its publishers are read every other turn
only, so that the consumers keep up. Queues without consumers slow nobody."""
TURN_MESSAGES = 8_000
TURN_MS = 5
"""Bounds of one turn, in messages and time: no request of another connection waits longer."""

Share = tuple[Sequence[Queue], Sequence[int] | None]
"""Queues, and which messages of a batch they get (None for all)."""


class Outgoing(Protocol):
    """A connection with output to write at the end of the turn."""

    def flush(self) -> None: ...


@dataclass(slots=True)
class Limits:
    """Limits that clients are offered in tune, and others that they have to respect."""

    frame_max: int = 131_072
    channel_max: int = 2047
    heartbeat_s: int = 60
    max_message_bytes: int = 16 * 1024 * 1024
    consumer_timeout_ms: int = 30 * 60 * 1000
    """How long a delivery may wait for its ack, unless queue or consumer set it; 0: no limit."""
    strict_arguments: bool = False
    """Whether unknown `x-` arguments are refused."""


@dataclass(slots=True)
class Counters:
    """Totals since the start."""

    published: int = 0
    delivered: int = 0
    acknowledged: int = 0
    unrouted: int = 0


class Broker:
    """Virtual hosts, users, the store, and the turn."""

    def __init__(
        self,
        users: Users,
        *,
        store: Store | None = None,
        clock: Clock | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.users = users
        users.on_removed = self._end_connections
        self.clock: Clock = clock or SystemClock()
        self.store: Store = store or MemoryStore()
        self.facts = Facts(self.store)
        self.set_aside = SetAside(self.store)
        self.limits = limits or Limits()
        self.timers = Timers()
        self.counters = Counters()
        self.memory = self.store.memory = MemoryUsage()
        self.alarms = Alarms(self.memory, cache=self.store.cache)
        self.now_ms = self.clock.now_ms()
        self.vhosts: dict[str, VirtualHost] = {}
        self.ending: dict[str, VirtualHost] = {}
        """Virtual hosts that are being deleted in slices; `vhosts` has them no more."""
        self.outgoing: list[Outgoing] = []
        self.connections: dict[Connection, None] = {}
        self.occupancy = Occupancy()
        self.on_work: Callable[[], None] = lambda: None
        """Called when a turn is due though no bytes came in; the server runs one soon."""
        self.on_vhost_deleted: Callable[[str], None] = lambda _: None
        """Called with the name of each deleted virtual host; the hub deletes its own state."""
        self.on_deleted: Callable[[str, Kind, str], None] = lambda *_: None
        """Called with virtual host, kind and name of each deleted exchange and queue, for the hub,
        which binds again when it is declared anew."""
        self.on_declared: Callable[[VirtualHost, Exchange | Queue], Iterator[None]] = _no_steps
        """Returns the steps that bind a new exchange or queue; its declaration is answered after
        them, so that these bindings miss no message."""
        self.crowded = False
        """Whether a publish of this turn went to a queue whose consumers can't keep up; the server
        slows that publisher and resets it."""
        self.always_kept = 0
        self.disk_behind = False
        """As `crowded`: whether a publish found too many bytes waiting for the disk."""
        self._active: deque[Queue] = deque()
        self.pager = Pager(self)
        self._republisher = Republisher(self)
        self.slices = Slices(lambda: self.on_work())
        self._waiting: list[Callable[[], None]] = []
        self._kept: dict[int, list[Callable[[], None]]] = {}
        """Callbacks that wait for a commit, by its number."""
        self._store_timer: Timer | None = None
        self._turning = False
        self.vhosts["/"] = VirtualHost("/", self)
        self.clock_steps = ClockSteps(self)
        self.consumer_timeouts = ConsumerTimeouts(self)
        self.consumer_timeouts.start()
        self.store.on_commit(self._committed)

    # -- what outlives the process

    def restore(self) -> bool:
        """Restores virtual hosts, users, queues and all else from the store; later changes of
        users are stored too.

        False if the store is new: call `set_up` then. Unusable definitions are set aside. Raises
        `ConfigError` naming an invalid definition, see `definitions/restore.py`.
        """
        known = bool(self.store.definitions)
        if known:
            self.clock_steps.restore()
            restore(self)
        self.users.keeper = UserWriter(self.set_aside, self.vhosts)
        self.store.restored()
        if known:
            end_orphans(self)
        return known

    def set_up(self, user: str, password: str) -> int:
        """Creates the virtual host `/` and an administrator with all rights in a new store.

        Takes as long as a login. Returns the commit number to wait for.
        """
        with self.store.together():
            self.vhosts["/"].keeper.keep_vhost()
            self.users.add(user, password, ("administrator",))
            self.users.set_permissions(user, "/", ".*", ".*", ".*")
        return self.store.barrier()

    # -- virtual hosts

    def add_vhost(self, name: str) -> VirtualHost:
        """Creates a durable virtual host; there must be none of that name."""
        vhost = VirtualHost(name, self)
        vhost.keeper.keep_vhost()
        self.vhosts[name] = vhost
        return vhost

    def vhost(self, name: str) -> VirtualHost:
        """Raises `ConnectionFault` 530 for an unknown one (AMQP 0-9-1 1.4.2.7)."""
        vhost = self.vhosts.get(name)
        if vhost is None:
            raise ConnectionFault(530, f"vhost {name} not found")
        return vhost

    # -- users

    def _end_connections(self, user: User) -> None:
        """Closes the connections of a removed user, in slices."""

        def end(connection: Connection) -> None:
            if connection.user is user:
                connection.force_removed()

        self.slices.start(for_each(tuple(self.connections), end))
        self.on_work()

    # -- publishing

    def publish(self, batch: Batch, shares: Sequence[Share]) -> int:
        """Puts the messages of a batch into queues, and into the store if they are persistent.

        Returns the commit number to wait for before they are confirmed, 0 for none.
        """
        commit = 0
        entries = [
            (queue, QueueEntry(batch, selection))
            for queues, selection in shares
            for queue in queues
        ]
        if batch.attributes.persistent or self.always_kept:
            commit = self._keep(batch, entries)
        batch.charge(self.memory)
        if len(entries) > 1:
            batch.is_shared = True
        for queue, entry in entries:
            queue.enqueue(entry)
            if queue.ring is not None and queue.ready_count > CROWDED_MESSAGES:
                self.crowded |= queue.counts_as_backlog
        self.counters.published += batch.count
        return commit

    def _keep(self, batch: Batch, entries: list[tuple[Queue, QueueEntry]]) -> int:
        durable = [(queue, entry) for queue, entry in entries if queue.durable]
        if not batch.attributes.persistent:
            durable = [(queue, entry) for queue, entry in durable if queue.persists_all]
        if not durable:
            return 0
        offsets: Sequence[tuple[int, int]] = ()
        if self.always_kept:
            offsets = [(queue.id, queue.next_offset) for queue, _ in durable if queue.persists_all]
        commit = self.store.append(batch, durable, offsets)
        self.alarms.spend_disk(batch.size_bytes)
        if len(durable) < len(entries):
            # Transient queues may need the batch after the log has dropped it.
            batch.location = None
        if self.store.behind_bytes > self.store.behind_max_bytes:
            self.disk_behind = True
        return commit

    def offer(
        self, batch: Batch, queues: Sequence[Queue], *, is_sure: bool = False
    ) -> tuple[bool, int]:
        """As `publish` for one message and queues that may refuse it.

        Returns whether all accepted it, and the commit number. A queue that refuses (overflow
        `reject-publish`) stores nothing; the others store theirs. A message that `is_sure` was
        accepted before: it is neither refused nor dropped as a duplicate.
        """
        for queue in queues:
            if queue.rules is not None and queue.rules.checks_publishes:
                queue.dispatch(DISPATCH_MESSAGES)
        new = [
            queue
            for queue in queues
            if is_sure or queue.seen is None or not queue.seen.has_seen(batch)
        ]
        entries = [(queue, QueueEntry(batch, None)) for queue in new]
        entries = [
            (queue, entry) for queue, entry in entries if is_sure or not queue.refuses(entry)
        ]
        commit = self._offer(batch, entries)
        if len(new) < len(queues) and batch.attributes.persistent:
            # A dropped duplicate is as durable as the message it repeats.
            commit = max(commit, self.store.barrier())
        self.counters.published += 1
        return len(entries) == len(new), commit

    def _offer(self, batch: Batch, entries: list[tuple[Queue, QueueEntry]]) -> int:
        """Puts one message into the queues that accept it; returns the commit number."""
        remembering = [queue.seen for queue, _ in entries if queue.seen is not None]
        with self.store.together() if remembering else nullcontext():
            persistent = batch.attributes.persistent or self.always_kept
            commit = self._keep(batch, entries) if persistent else 0
            for seen in remembering:
                seen.remember(batch)
        batch.charge(self.memory)
        for queue, entry in entries:
            queue.enqueue(entry)
        return commit

    # -- context of a queue

    def wake(self, queue: Queue) -> None:
        if not queue.active:
            queue.active = True
            self._active.append(queue)

    def dead_letter(self, queue: Queue, messages: MessageRange, reason: str) -> None:
        self._republisher.add(queue, messages, reason)

    def gather(self, ready: Callable[[], None], many: ManySettled | None = None) -> RepublishGroup:
        """See `Republisher.gather`."""
        return self._republisher.gather(ready, many)

    def dead_letter_as(
        self, queue: Queue, messages: MessageRange, reason: str, shown: Batch
    ) -> None:
        self._republisher.add(queue, messages, reason, shown)

    def note_timeout(self, timeout_ms: int | None) -> None:
        self.consumer_timeouts.note(timeout_ms)

    def drop_queue(self, queue: Queue) -> None:
        vhost = self.vhosts.get(queue.vhost) or self.ending[queue.vhost]
        vhost.drop_queue(queue)

    # -- the turn

    def tick(self) -> None:
        """Begins a turn: reads the clock and runs the timers that are due."""
        self.now_ms = self.clock.now_ms()
        next_ms = self.timers.next_ms
        if next_ms is not None and next_ms <= self.now_ms:
            self.timers.run_due(self.now_ms)

    def turn(self) -> bool:
        """Dispatches ready messages, within the budget; True if there is more to do."""
        self._turning = True
        try:
            return self._turn()
        finally:
            self._turning = False

    def _turn(self) -> bool:
        active = self._active
        budget = TURN_MESSAGES
        until_ms = self.clock.now_ms() + TURN_MS
        while active and budget > 0:
            queue = active.popleft()
            queue.active = False
            before = self.counters.delivered
            if queue.dispatch(DISPATCH_MESSAGES):
                self.wake(queue)
            budget -= 1 + self.counters.delivered - before
            if self.clock.now_ms() >= until_ms:
                break
        self._flush()
        more = self.slices.busy and self.slices.run()
        if self._republisher.busy:
            self._republisher.run()
        self._flush()
        self._write()
        if self.store.is_short is not self.alarms.store_is_short:
            self.alarms.store_is_short = self.store.is_short
            self._flush()
        if self.alarms.is_due:
            self.alarms.look()
            self._flush()
        return (
            more or self.slices.busy or bool(active) or self._republisher.busy or self.pager.is_busy
        )

    def _write(self) -> None:
        """Lets the store write, and schedules a turn for its next write."""
        after_ms = self.store.turned()
        self.pager.relieve()
        if after_ms is None:
            return
        timer, at_ms = self._store_timer, self.now_ms + after_ms
        if timer is None or timer.action is None or timer.at_ms > at_ms:
            if timer is not None:
                timer.cancel()
            self._store_timer = self.timers.at(at_ms, _nothing)

    def settle(self, queue: Queue) -> None:
        """Dispatches what this queue can now, so that its counts are what a client expects.

        Only this queue: with all of them a declare beside 4,000 busy queues took 0.3 s.
        """
        if queue.active:
            queue.dispatch(DISPATCH_MESSAGES)

    def _flush(self) -> None:
        while self.outgoing:
            peers, self.outgoing = self.outgoing, []
            for peer in peers:
                peer.flush()

    # -- waiting for the store

    def on_commit(self, callback: Callable[[], None]) -> None:
        """`callback` runs once, at the next commit, which this asks for."""
        self._waiting.append(callback)
        self.store.request()
        if not self._turning:
            self.on_work()

    def when_kept(self, commit: int, action: Callable[[], None]) -> None:
        """Runs `action` when that commit is durable or has failed; at once if it is."""
        if commit <= self._decided:
            action()
            return
        waiting = self._kept.get(commit)
        if waiting is not None:
            waiting.append(action)
            return
        self._kept[commit] = [action]
        self.store.request()
        if not self._turning:
            self.on_work()

    @property
    def _decided(self) -> int:
        """The last commit number that is durable or has failed."""
        return max(self.store.committed, self.store.refused)

    def _committed(self) -> None:
        waiting, self._waiting = self._waiting, []
        decided = self._decided
        for commit in sorted(number for number in self._kept if number <= decided):
            waiting += self._kept.pop(commit)
        for callback in waiting:
            try:
                callback()
            except Exception:
                # A failing callback must not cost the others their confirms.
                logger.exception("internal error in a callback after a commit")
        if self._kept:
            self.store.request()
        self.on_work()


def _no_steps(vhost: VirtualHost, made: Exchange | Queue) -> Iterator[None]:
    return iter(())


def _nothing() -> None:
    """Does nothing: the turn that runs the timer lets the store write."""
