"""The broker: virtual hosts, users, the store, publishing, and the turns that drive them.

Everything happens in turns on one thread. A turn begins when bytes or calls come in; messages that
they put into queues are dispatched when it ends (`turn`), and each connection with output writes
once. A turn has a budget, so that nobody waits long for a burst of others: the rest is done in
the next turn.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from .auth import ADMINISTRATOR, User, Users
from .clock import Clock, SystemClock
from .commits import Commits
from .consumer_timeouts import ConsumerTimeouts
from .context import BrokerContext, BrokerLimits, ClientConnection, Outgoing
from .definitions.clock_steps import ClockSteps
from .definitions.facts import Facts
from .definitions.restore import end_orphans, restore
from .definitions.set_aside import UnappliedDefinitions
from .definitions.user_writer import UserWriter
from .errors import ConnectionFault
from .message.batch import Batch
from .message.queue_entry import MessageRange, QueueEntry
from .parameters import ServerParameters
from .publish.shares import Share
from .queue.queue import Queue
from .republish.group import RepublishGroup
from .republish.republisher import Republisher
from .resources.alarms import Alarms
from .resources.occupancy import Occupancy
from .resources.pager import Pager
from .route.exchange import Exchange
from .slices import Slices, for_each
from .statistics.statistics import Statistics
from .store.memory import MemoryStore
from .store.port import ManySettled, Store
from .timers import Timers
from .turn import DISPATCH_MESSAGES, Turn
from .vhost import VirtualHost

CONSUMERS_BEHIND_MESSAGES: Final = 65_536
"""Ready messages of a queue with consumers above which its publishers are read every other turn
only, so that the consumers keep up. Queues without consumers slow nobody."""


class Broker(BrokerContext):
    """Owns virtual hosts, users and the store, publishes batches, and runs turns."""

    def __init__(
        self,
        users: Users,
        *,
        store: Store | None = None,
        clock: Clock | None = None,
        limits: BrokerLimits | None = None,
        node_name: str = "warren",
    ) -> None:
        self.users = users
        users.on_removed = self._end_connections
        self.clock: Clock = clock or SystemClock()
        self.store: Store = store or MemoryStore()
        self.facts = Facts(self.store)
        self.set_aside = UnappliedDefinitions(self.store, self._request_turn)
        self.global_parameters = ServerParameters(self.set_aside, node_name)
        self.limits = limits or BrokerLimits()
        self.timers = Timers()
        self.memory = self.store.memory
        self.alarms = Alarms(self.memory, cache=self.store.cache)
        self.now_ms = self.clock.now_ms()
        self.vhosts: dict[str, VirtualHost] = {}
        self.ending: dict[str, VirtualHost] = {}
        """Virtual hosts that are being deleted in slices; `vhosts` has them no more."""
        self.outgoing: list[Outgoing] = []
        self.connections: dict[ClientConnection, None] = {}
        self.occupancy = Occupancy()
        self.on_work = lambda: None
        self.on_vhost_deleted: Callable[[str], None] = lambda _: None
        """Called with the name of each deleted virtual host; the hub deletes its own state."""
        self.on_deleted = lambda *_: None
        self.on_declared = _no_steps
        self.consumers_behind = False
        """Whether a publish went to a queue whose consumers can't keep up; the server resets it
        before each read, and slows the publisher after it."""
        self.persisting_queues = 0
        self.disk_behind = False
        """As `consumers_behind`: whether a publish found too many bytes waiting for the disk."""
        self.active: deque[Queue] = deque()
        self.pager = Pager(self, self.vhosts)
        self._republisher = Republisher(self, self.vhosts)
        self.slices = Slices(self.clock, lambda: self.on_work())
        self.statistics = Statistics(self)
        self._turn = Turn(self, self._republisher, self.pager)
        self.commits = Commits(self.store, self._request_turn, lambda: self.on_work())
        self.vhosts["/"] = VirtualHost("/", self)
        self.clock_steps = ClockSteps(self)
        self.consumer_timeouts = ConsumerTimeouts(self)
        self.consumer_timeouts.start()

    # -- the start

    def restore(self) -> bool:
        """Restores virtual hosts, users, queues and all else from the store; later changes of
        users are stored too.

        False if the store is new: call `set_up` then. Unusable definitions are set aside. Raises
        `ConfigError` naming an invalid definition, see `definitions/restore.py`.
        """
        known = bool(self.store.definitions)
        if known:
            self.clock_steps.restore()
            restore(self, self.vhosts, self.users, self.global_parameters)
        self.users.storage = UserWriter(self.set_aside, self.vhosts)
        self.store.recovered.complete()
        if known:
            end_orphans(self, self.vhosts)
        return known

    def set_up(self, administrator: str = "", password_hash: str = "") -> int:
        """Creates the virtual host `/` in a new store, and an administrator if one is named.

        Returns the commit number to wait for.
        """
        with self.store.together():
            self.vhosts["/"].storage.save_vhost()
            if administrator:
                self.add_administrator(administrator, password_hash)
        return self.store.barrier()

    # -- virtual hosts

    def add_vhost(self, name: str) -> VirtualHost:
        """Creates a durable virtual host; there must be none of that name."""
        vhost = VirtualHost(name, self)
        vhost.storage.save_vhost()
        self.vhosts[name] = vhost
        return vhost

    def vhost(self, name: str) -> VirtualHost:
        """Returns a virtual host. Raises `ConnectionFault` 530 for an unknown one (AMQP 0-9-1
        1.4.2.7)."""
        vhost = self.vhosts.get(name)
        if vhost is None:
            raise ConnectionFault(530, f"vhost {name} not found")
        return vhost

    # -- users

    def add_administrator(self, name: str, password_hash: str) -> int:
        """Adds an administrator with all permissions in the virtual host `/`, if there is one.

        Returns the commit number to wait for. Raises as `Users.add_hashed`.
        """
        with self.store.together():
            self.users.add_hashed(name, password_hash, (ADMINISTRATOR,))
            if "/" in self.vhosts:
                self.users.set_permissions(name, "/", ".*", ".*", ".*")
        return self.store.barrier()

    def _end_connections(self, user: User) -> None:
        """Closes the connections of a removed user, in slices."""

        def end(connection: ClientConnection) -> None:
            if connection.user is user:
                connection.force(user.ending)

        self.slices.start(for_each(tuple(self.connections), end))
        self.on_work()

    # -- publishing

    def publish(self, batch: Batch, shares: Sequence[Share]) -> int:
        commit = 0
        entries = [
            (queue, QueueEntry(batch, selection))
            for queues, selection in shares
            for queue in queues
        ]
        if batch.attributes.persistent or self.persisting_queues:
            commit = self._append(batch, entries)
        batch.charge(self.memory)
        self.statistics.message_bytes.observe(batch.size_bytes / batch.count, batch.count)
        if len(entries) > 1:
            batch.is_shared = True
        for queue, entry in entries:
            self.statistics.enqueued(queue, entry.count)
            queue.enqueue(entry)
            if queue.ring is not None and queue.ready_count > CONSUMERS_BEHIND_MESSAGES:
                self.consumers_behind |= queue.counts_as_backlog
        return commit

    def _append(self, batch: Batch, entries: list[tuple[Queue, QueueEntry]]) -> int:
        durable = [(queue, entry) for queue, entry in entries if queue.durable]
        if not batch.attributes.persistent:
            durable = [(queue, entry) for queue, entry in durable if queue.persists_all]
        if not durable:
            return 0
        offsets: Sequence[tuple[int, int]] = ()
        if self.persisting_queues:
            offsets = [(queue.id, queue.next_offset) for queue, _ in durable if queue.persists_all]
        commit = self.store.append(batch, durable, offsets)
        self.alarms.count_written(batch.size_bytes)
        if len(durable) < len(entries):
            # Transient queues may need the batch after the log has dropped it.
            batch.location = None
        progress = self.store.progress
        if progress.behind_bytes > progress.behind_max_bytes:
            self.disk_behind = True
        return commit

    def publish_checked(
        self, batch: Batch, queues: Sequence[Queue], *, is_accepted: bool = False
    ) -> tuple[bool, int]:
        for queue in queues:
            if queue.rules is not None and queue.rules.checks_publishes:
                queue.dispatch(DISPATCH_MESSAGES)
        new = accepting = queues
        if not is_accepted:
            new = [one for one in queues if one.seen is None or not one.seen.has_seen(batch)]
            accepting = [one for one in new if one.rules is None or not one.refuses(batch)]
        remembering = [one.seen for one in accepting if one.seen is not None]
        if remembering:
            with self.store.together():
                commit = self.publish(batch, ((accepting, None),))
                for seen in remembering:
                    seen.remember(batch)
        else:
            commit = self.publish(batch, ((accepting, None),))
        if len(new) < len(queues) and batch.attributes.persistent:
            # A dropped duplicate is as durable as the message it repeats.
            commit = max(commit, self.store.barrier())
        return len(accepting) == len(new), commit

    # -- context of a queue

    def wake(self, queue: Queue) -> None:
        if not queue.active:
            queue.active = True
            self.active.append(queue)

    def dead_letter(self, queue: Queue, messages: MessageRange, reason: str) -> None:
        self._republisher.add(queue, messages, reason)

    def gather(self, ready: Callable[[], None], many: ManySettled | None = None) -> RepublishGroup:
        """Returns an empty group of dead letters, see `Republisher.gather`."""
        return self._republisher.gather(ready, many)

    def dead_letter_as(
        self, queue: Queue, messages: MessageRange, reason: str, content: Batch
    ) -> None:
        self._republisher.add(queue, messages, reason, content)

    def note_timeout(self, timeout_ms: int | None) -> None:
        self.consumer_timeouts.note(timeout_ms)

    def delete_queue(self, queue: Queue) -> None:
        vhost = self.vhosts.get(queue.vhost) or self.ending[queue.vhost]
        vhost.deletion.delete_queue(queue)

    # -- the turn

    def tick(self) -> None:
        """Begins a turn: reads the clock and runs the timers that are due."""
        self.now_ms = self.clock.now_ms()
        next_ms = self.timers.next_ms
        if next_ms is not None and next_ms <= self.now_ms:
            self.timers.run_due(self.now_ms)

    def turn(self, *, runs_slices: bool = True) -> bool:
        """Dispatches ready messages, within the budget; True if there is more to do."""
        return self._turn.run(runs_slices=runs_slices)

    def _request_turn(self) -> None:
        """Requests a turn, unless one is running."""
        if not self._turn.is_running:
            self.on_work()

    def dispatch_now(self, queue: Queue) -> None:
        # Only this queue: with all of them a declare beside 4,000 busy queues took 0.3 s.
        if queue.active:
            queue.dispatch(DISPATCH_MESSAGES)


def _no_steps(vhost: str, made: Exchange | Queue) -> Iterator[None]:
    return iter(())
