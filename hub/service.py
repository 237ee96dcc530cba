"""The hub: its parts, made of each other, started in order and stopped together.

Routes use the parts: `hub.subscriptions.subscribe(...)`, `hub.topics.ping(...)`. Everything runs
in one event loop, in tasks that the hub owns and `stop` ends.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

from ..core.clock import Clock, SystemClock
from ..core.errors import ConfigError, WarrenError
from .attempts.log import AttemptLog
from .attempts.recall import recall_failures
from .capabilities.capabilities import Capabilities
from .client_factories import make_fetcher, make_sender, make_verifier
from .deadletter.dead_letters import DeadLetters
from .delivery.dispatcher import Dispatcher
from .delivery.internal_headers import InternalHeaders
from .delivery.order import StrictOrder
from .delivery.relay import Relay
from .delivery.retry_queues import RetryQueues
from .delivery.suspensions import Suspensions
from .engine.port import Engine
from .errors import StorageFailed
from .guard.guard import Guard
from .keys.key_file import load_key
from .keys.seal import Sealer
from .keys.shortcuts import Shortcuts
from .keys.tokens import Tokens
from .lazy import Lazy
from .owner_rights import EverybodyMay, Rights
from .sender.port import Sender
from .settings import HubSettings
from .storage.storage import Storage
from .subscriptions.active import ActiveSubscription
from .subscriptions.attach import Attacher
from .subscriptions.content_budget import ContentBudget
from .subscriptions.denial import Denials
from .subscriptions.expiry import Expiry
from .subscriptions.recovery import SubscriptionRecovery
from .subscriptions.store import SubscriptionStore
from .subscriptions.subscription import Status
from .subscriptions.subscriptions import Subscriptions
from .tasks import Tasks
from .topics.distributor import Recipient
from .topics.topics import Topics
from .upstream.upstreams import Upstreams
from .workers.pool import Workers

KEY_NAME = "hub.key"

log = logging.getLogger(__name__)


class Hub:
    """`make_sender` builds the sender at the first delivery; `rights` knows what owners may."""

    def __init__(
        self,
        engine: Engine,
        settings: HubSettings,
        data_directory: Path,
        *,
        database_url: str | None = None,
        clock: Clock | None = None,
        rights: Rights | None = None,
        make_sender: Callable[[HubSettings, Guard], Awaitable[Sender]] = make_sender,
    ) -> None:
        self.settings = self._settings = settings
        clock = clock or SystemClock()
        rights = rights or EverybodyMay()
        guard = self._guard = Guard(settings)
        key_file = Path(settings.key_file) if settings.key_file else data_directory / KEY_NAME
        self._key_file = key_file
        self._tasks = Tasks()
        self._storage = Storage(data_directory, database_url, Sealer(key_file))
        self._sender = Lazy(lambda: make_sender(settings, guard))
        self._verifier = Lazy(lambda: make_verifier(settings, guard))
        self._workers = Workers(settings.workers)
        self.attempts = AttemptLog(self._storage, settings, clock)
        self.internal_headers = InternalHeaders(key_file)
        retry_queues = RetryQueues(engine, clock, self.internal_headers)
        self._order = StrictOrder(self._storage, clock)
        self._suspensions = Suspensions(
            lambda active: self._attacher.suspend(active),
            lambda active: self._attacher.resume(active),
        )
        content_budget = ContentBudget(
            lambda key: self._store.index.anonymous.of(key),
            settings.anonymous_bytes_per_hour,
            clock,
        )
        self._dispatcher = Dispatcher(
            self._sender, self.attempts, engine.ack, retry_queues, self._order, self._suspensions,
            settings, clock, content_budget, self._on_callback_gone, self._on_attempts_exhausted,
        )  # fmt: skip
        self._relay = Relay(engine, retry_queues, settings, rights)
        attacher = Attacher(engine, settings, self._dispatcher.offer, self._relay.offer)
        self._attacher = attacher
        self._clock, self._rights = clock, rights
        self._denials = Denials(self._verifier.get, self._tasks)
        self._store = SubscriptionStore(
            self._storage, attacher, self._denials, clock, rights, settings.max_per_anonymous_client
        )
        self._expiry = Expiry(self._store, rights)
        self.shortcuts = Shortcuts(
            Tokens(key_file, settings.token_lifetime_s, clock), settings.base_urls
        )
        self.topics = Topics(
            self._storage, engine, guard, settings, clock, make_fetcher, self._workers,
            self._recipient, content_budget, self._store.index.paused.of,
        )  # fmt: skip
        self.subscriptions = Subscriptions(
            self._store, self._expiry, attacher, self.shortcuts, guard, self._verifier.get,
            settings, clock, self._tasks, storage=self._storage, topics=self.topics,
            denials=self._denials, rights=rights,
        )  # fmt: skip
        self.dead_letters = DeadLetters(engine, self._store.by_id, self.internal_headers)
        self.upstreams = Upstreams(self._storage, guard, self._workers, rights, settings, clock)
        self.capabilities = Capabilities(self._storage, clock, self._tasks, rights)

    async def start(self) -> None:
        """Resumes what is stored; returns when deliveries can flow.

        Raises `ConfigError` for a database that can't be used.
        """
        try:
            await self._load()
            await self.attempts.start()
            await self.topics.start()
            await self.upstreams.start()
            await self.capabilities.start()
            await self.subscriptions.start()
        except StorageFailed as error:
            raise ConfigError(f"the hub's {error}") from error
        self._tasks.own(self._expiry.watch_leases())
        self._tasks.own(self._expiry.watch_owners())
        self._tasks.own(self._attacher.sources.watch())

    def reachable(self) -> None:
        """To be called once, when HTTP requests are answered: other hubs are asked from now on."""
        self.upstreams.begin()
        self._tasks.own(self._prepare())

    async def _prepare(self) -> None:
        """Imports and opens what the first subscribe needs, which it would wait for otherwise.

        A moment later, so that a server which is stopped soon has not made a database.
        """
        await asyncio.sleep(self._settings.prepare_after_s)
        try:
            await asyncio.to_thread(load_key, self._key_file)
            await self._storage.repository()
            await self._verifier.get()
            await self._sender.get()
        except (WarrenError, OSError) as error:
            log.warning("subscribing is not prepared: %s", error)

    async def stop(self) -> None:
        """Ends consuming and lets deliveries in flight finish, up to `drain_s`."""
        self._denials.stop()
        await self._tasks.stop()
        await self.topics.stop()
        await self.upstreams.stop()
        await self._workers.stop()
        await self._suspensions.stop()
        for active in self._store.all():
            await active.cancel()
        await self._dispatcher.drain(self._settings.drain_s)
        await self._relay.drain(self._settings.drain_s)
        await self.attempts.stop()
        if self._sender.made is not None:
            await self._sender.made.close()
        if self._verifier.made is not None:
            await self._verifier.made.close()
        await self._guard.close()
        await self._storage.close()

    def forget_vhost(self, vhost: str) -> None:
        """A virtual host was deleted, and with it whatever anybody was allowed there: one that is
        made later under its name is another."""
        self.subscriptions.forget_vhost(vhost)
        self.upstreams.forget_vhost(vhost)
        self.capabilities.forget_vhost(vhost)

    def forget_owner(self, owner: str) -> None:
        """A user was deleted, and with it what stood on that user's rights. Subscriptions notice
        by themselves."""
        self.upstreams.forget_owner(owner)
        self.capabilities.forget_owner(owner)

    def _recipient(self, identity: str) -> Recipient | None:
        active = self._store.find(identity)
        if active is None or active.subscription.status is Status.UNVERIFIED:
            return None
        return Recipient(active.subscription.queue, active.subscription.source.name)

    async def _load(self) -> None:
        if not self._storage.is_empty():
            await self._order.load()
            now = self._clock.wall_s()
            parts = (self._store, self._attacher, self._denials, self._rights)
            await SubscriptionRecovery(*parts, now).run(await self._storage.repository())
            self._order.adopt(self._store.all())
            await recall_failures(self.attempts, self._store.by_id)

    async def _on_callback_gone(self, active: ActiveSubscription) -> None:
        found = active.subscription
        log.warning("subscription %s ends: its callback at %s is gone (410)", found.id, found.host)
        await self._store.end(active)

    async def _on_attempts_exhausted(self, active: ActiveSubscription, reason: str) -> None:
        log.warning("subscription %s is paused: %s", active.subscription.id, reason)
        try:
            await self._store.pause(active, reason)
        except WarrenError as error:
            log.error("subscription %s can't be paused: %s", active.subscription.id, error)
