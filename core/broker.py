"""The broker: the only door for whoever publishes, consumes or declares.

Everything happens in turns on one thread. A turn begins when bytes or calls come in; whatever
they put into queues is handed out when it ends (`turn`), and each peer with something to send is
written to once. A turn has a budget, so that nobody waits long for somebody else's burst: what
is left goes on in the next.
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
"""What one queue hands out before the next has its turn."""
CROWDED_MESSAGES = 65_536
"""Ready messages from which on a publisher is read every other turn, if there are consumers: it
must not run away from those who are reading. A queue that only grows slows nobody."""
TURN_MESSAGES = 8_000
TURN_MS = 5
"""A second connection's request waits no longer for its turn, be it for many messages or large."""

Share = tuple[Sequence[Queue], Sequence[int] | None]
"""Queues, and which messages of a batch they get (None for all)."""


class Outgoing(Protocol):
    """A peer that has something to be written."""

    def flush(self) -> None: ...


@dataclass(slots=True)
class Limits:
    """What clients are offered and held to."""

    frame_max: int = 131_072
    channel_max: int = 2047
    heartbeat_s: int = 60
    max_message_bytes: int = 16 * 1024 * 1024
    consumer_timeout_ms: int = 30 * 60 * 1000
    """How long a delivery may wait for its ack, where queue and consumer don't say; 0: for good."""
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
        """Those that are being deleted: nobody finds them, and not all is gone yet."""
        self.outgoing: list[Outgoing] = []
        self.connections: dict[Connection, None] = {}
        self.occupancy = Occupancy()
        self.on_work: Callable[[], None] = lambda: None
        """Called when a turn is due though no bytes came in: the server makes one soon."""
        self.on_vhost_deleted: Callable[[str], None] = lambda _: None
        """Called with the name, for who keeps something about it elsewhere."""
        self.on_deleted: Callable[[str, Kind, str], None] = lambda *_: None
        """Called with virtual host, kind and name of each exchange and queue that goes, for who
        wants it to be bound again when there is another one."""
        self.on_declared: Callable[[VirtualHost, Exchange | Queue], Iterator[None]] = _no_steps
        """Gives the steps that bind an exchange or queue which is made; it is declared when they
        have been taken: what they bind misses nothing that is published there."""
        self.crowded = False
        """A publish of this turn went to a queue whose consumers can't keep up; whoever drives
        the turns slows that publisher and clears the mark."""
        self.always_kept = 0
        self.disk_behind = False
        """As `crowded`: a publish found more waiting for the disk than may."""
        self._active: deque[Queue] = deque()
        self.pager = Pager(self)
        self._republisher = Republisher(self)
        self.slices = Slices(lambda: self.on_work())
        self._waiting: list[Callable[[], None]] = []
        self._kept: dict[int, list[Callable[[], None]]] = {}
        """What waits for a commit, by its number."""
        self._store_timer: Timer | None = None
        self._turning = False
        self.vhosts["/"] = VirtualHost("/", self)
        self.clock_steps = ClockSteps(self)
        self.consumer_timeouts = ConsumerTimeouts(self)
        self.consumer_timeouts.start()
        self.store.on_commit(self._committed)

    # -- what outlives the process

    def restore(self) -> bool:
        """Takes over what the store has kept, virtual hosts, users, queues and all; from now on
        changes of users are kept too.

        False if the store is new: then `set_up` is next. What can't be used of it is set aside.
        Raises `ConfigError` naming a definition that must not be, see `definitions/restore.py`.
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
        """Gives a new store the virtual host `/` and an administrator with all rights in it.

        Takes as long as a login. Gives the commit number to wait for.
        """
        with self.store.together():
            self.vhosts["/"].keeper.keep_vhost()
            self.users.add(user, password, ("administrator",))
            self.users.set_permissions(user, "/", ".*", ".*", ".*")
        return self.store.barrier()

    # -- virtual hosts

    def add_vhost(self, name: str) -> VirtualHost:
        """A new one, which will be there after a restart; there must be none of that name."""
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
        """Those of a user that was removed, also on their way in."""

        def end(connection: Connection) -> None:
            if connection.user is user:
                connection.force_removed()

        self.slices.start(for_each(tuple(self.connections), end))
        self.on_work()

    # -- publishing

    def publish(self, batch: Batch, shares: Sequence[Share]) -> int:
        """Puts the messages of a batch into queues, and into the store if they are to last.

        Gives the commit number to wait for before it is confirmed, 0 for none.
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
            # Those who are not durable may need it when the log has let go of it.
            batch.location = None
        if self.store.behind_bytes > self.store.behind_max_bytes:
            self.disk_behind = True
        return commit

    def offer(
        self, batch: Batch, queues: Sequence[Queue], *, is_sure: bool = False
    ) -> tuple[bool, int]:
        """As `publish` for one message and queues that may refuse it.

        Gives whether all took it, and the commit number. A queue that refuses (overflow
        `reject-publish`) keeps nothing; the others keep theirs. One that `is_sure` is not
        refused, nor dropped as a repetition: it was accepted before.
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
            # What was dropped is as lasting as what it repeats.
            commit = max(commit, self.store.barrier())
        self.counters.published += 1
        return len(entries) == len(new), commit

    def _offer(self, batch: Batch, entries: list[tuple[Queue, QueueEntry]]) -> int:
        """Puts one message into the queues that take it; gives the commit number."""
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
        """Begins a turn: takes the time and runs what is due."""
        self.now_ms = self.clock.now_ms()
        next_ms = self.timers.next_ms
        if next_ms is not None and next_ms <= self.now_ms:
            self.timers.run_due(self.now_ms)

    def turn(self) -> bool:
        """Hands out what waits, within the budget; True if there is more to do."""
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
        """Lets the store write, and has a turn when it wants to be asked again."""
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
        """Hands out what this queue can now, so that its counts are what a client expects.

        Only this one: with all of them a declare beside 4,000 busy queues took 0.3 s.
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
        """Runs `action` when that commit is true, or refused: at once if it is."""
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
        """Commits up to this one are true or refused."""
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
                # One who is wrong must not cost the others their confirms.
                logger.exception("internal error while a commit was told")
        if self._kept:
            self.store.request()
        self.on_work()


def _no_steps(vhost: VirtualHost, made: Exchange | Queue) -> Iterator[None]:
    return iter(())


def _nothing() -> None:
    """A turn follows each look at the timers; the store needs no more."""
