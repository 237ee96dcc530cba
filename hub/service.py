"""The hub: creates its parts, and starts and stops them.

Routes use the parts: `hub.subscriptions.subscribe(...)`, `hub.topics.ping(...)`. Everything runs
in one event loop, in tasks that the hub owns and `stop` ends. The module is long since it is the
list of all parts, to be read whole.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

from ..core.clock import Clock, SystemClock
from ..core.errors import ConfigError, WarrenError
from .attempts.log import AttemptLog
from .attempts.published import PublishedAttempts
from .attempts.recall import restore_failures
from .audit.log import AuditLog
from .capabilities.capabilities import Capabilities
from .client_factories import make_fetcher, make_relay, make_sender, make_verifier
from .deadletter.dead_letters import DeadLetters
from .delivery.direct_posts import DirectPosts
from .delivery.dispatcher import Dispatcher
from .delivery.internal_headers import InternalHeaders
from .delivery.order import StrictOrder
from .delivery.relay import Relay
from .delivery.retry_queues import RetryQueues
from .delivery.suspensions import Suspensions
from .engine.port import Engine
from .errors import StorageFailed
from .feeds.feed import Feed
from .feeds.feeds import Feeds
from .feeds.items import ItemStore
from .guard.callbacks import CallbackGuard
from .guard.guard import Guard
from .keys.key_file import load_key
from .keys.seal import Sealer
from .keys.shortcuts import Shortcuts
from .keys.tokens import ShortcutTokens
from .lazy import Lazy
from .live.live import Live
from .outputs.documents import Documents
from .outputs.output import OutputKey
from .outputs.outputs import Outputs
from .outputs.publications import Publications
from .outputs.pushes import DocumentPushes
from .outputs.readers import DocumentReaders
from .outputs.subscribers import DocumentSubscribers
from .owner_rights import AllowAll, SubscriberRights
from .peers.peers import Peers
from .processes.starter import ProcessStarter
from .resend.resends import Resends
from .resend.waiting import PendingRetries
from .results.results import Results
from .runs.runs import Runs
from .sender.port import Sender
from .settings import HubSettings
from .storage.storage import Storage
from .streams.archives import ArchiveRegistry
from .streams.streams import Streams
from .subscriptions.attach import Attacher
from .subscriptions.content_budget import ContentBudget
from .subscriptions.denial import Denials
from .subscriptions.expiry import SubscriptionExpiry
from .subscriptions.failed_callbacks import FailedCallbacks
from .subscriptions.recovery import SubscriptionRecovery
from .subscriptions.store import SubscriptionStore
from .subscriptions.subscription import SubscriptionStatus
from .subscriptions.subscriptions import Subscriptions
from .tasks import Tasks
from .tokens.tokens import AccessTokens
from .topics.distributor import Recipient
from .topics.document_key import DocumentKey
from .topics.topics import Topics
from .transactions.staging import Staging
from .transactions.transactions import Transactions
from .tunnels.client import CallbackSender, TunnelClient
from .tunnels.tunnels import Tunnels
from .upstream.upstreams import Upstreams
from .workers.pool import Workers

KEY_NAME = "hub.key"
STAGED_NAME = "transactions"

log = logging.getLogger(__name__)


def key_path(setting: str, data_directory: Path) -> Path:
    """Returns the file with the hub's key, where the setting names none too."""
    return Path(setting) if setting else data_directory / KEY_NAME


def _place(key: OutputKey) -> DocumentKey:
    return DocumentKey(*key)


class Hub:
    """The hub: creates its parts, and starts and stops them. `make_sender` builds the sender at the
    first delivery; `rights` are the owners' permissions. A `starter` that is given stays open."""

    def __init__(
        self,
        engine: Engine,
        settings: HubSettings,
        data_directory: Path,
        *,
        starter: ProcessStarter | None = None,
        database_url: str | None = None,
        clock: Clock | None = None,
        rights: SubscriberRights | None = None,
        peers: Peers | None = None,
        make_sender: Callable[[HubSettings, Guard], Awaitable[Sender]] = make_sender,
    ) -> None:
        self.settings = self._settings = settings
        self.engine = engine
        clock = self.clock = clock or SystemClock()
        rights = rights or AllowAll()
        guard = self._guard = Guard(settings)
        self._owns_starter = starter is None
        self._starter = starter or ProcessStarter()
        key_file = self._key_file = key_path(settings.key_file, data_directory)
        self.peers = peers
        """Only of a hub that shares its database."""
        self._tasks = Tasks()
        self.storage = Storage(data_directory, database_url, Sealer(key_file), peers)
        self.tunnels = Tunnels(
            self.storage, settings.tunnels, clock, self._tasks, rights,
            lambda is_there: self._failed_callbacks.host_gone(is_there),
        )  # fmt: skip
        local = TunnelClient(self.tunnels)
        self.relay = Lazy(lambda: make_relay(settings, guard))
        """Sends requests of applications to listed hosts."""

        async def make_senders() -> Sender:
            return CallbackSender(await make_sender(settings, guard), local, settings)

        self._sender = Lazy(make_senders)
        self._verifier = Lazy(lambda: make_verifier(settings, guard, local))
        self._workers = Workers(self._starter, settings.workers)
        self._published_attempts = (
            PublishedAttempts(engine, clock) if settings.publish_attempts else None
        )
        self.attempts = AttemptLog(self.storage, settings, clock, self._published_attempts)
        engine.on_short = self.attempts.hurry
        self.audit = AuditLog(self.storage, settings, clock)
        self.internal_headers = InternalHeaders(key_file)
        retry_queues = RetryQueues(engine, clock, self.internal_headers)
        self._order = StrictOrder(self.storage, clock)
        self._suspensions = Suspensions(
            lambda active: self.attacher.suspend(active),
            lambda active: self.attacher.resume(active),
        )
        content_budget = ContentBudget(
            lambda key: self.subscription_store.anonymous.of(key),
            settings.anonymous_bytes_per_hour,
            clock,
        )
        self.dispatcher = Dispatcher(
            self._sender, self.attempts, engine.ack, retry_queues, self._order, self._suspensions,
            settings, clock, content_budget,
            lambda active: self._failed_callbacks.callback_gone(active),
            lambda active, reason: self._failed_callbacks.attempts_exhausted(active, reason),
        )  # fmt: skip
        self._relay = Relay(engine, retry_queues, settings, rights)
        attacher = Attacher(engine, settings, self.dispatcher.offer, self._relay.offer)
        self.attacher = attacher
        self._rights = rights
        self._denials = Denials(self._verifier.get, self._tasks)
        self.subscription_store = SubscriptionStore(
            self.storage, attacher, self._denials, clock, rights, settings, self._tasks,
            lambda key: self.topics.resumed(key),
        )  # fmt: skip
        self._failed_callbacks = FailedCallbacks(self.subscription_store)
        self.expiry = SubscriptionExpiry(self.subscription_store, rights)
        self.shortcuts = Shortcuts(
            ShortcutTokens(key_file, settings.token_lifetime_s, clock), settings.base_urls
        )
        self.topics = Topics(
            self.storage, engine, guard, settings, clock, make_fetcher, self._workers,
            self._recipient, content_budget, self.subscription_store.paused.of,
        )  # fmt: skip
        self.subscriptions = Subscriptions(
            self.subscription_store, self.expiry, attacher, self.shortcuts,
            CallbackGuard(guard, local.has),
            self._verifier.get, settings, clock, self._tasks, storage=self.storage,
            topics=self.topics, denials=self._denials, rights=rights,
        )  # fmt: skip
        self.dead_letters = DeadLetters(
            engine, self.subscription_store.by_id, self.internal_headers
        )
        self.direct_posts = DirectPosts(self._sender, self.attempts, settings, clock)
        self.resends = Resends(
            self.attempts, self.subscription_store, self.dead_letters,
            PendingRetries(engine, retry_queues), self.direct_posts, self._tasks,
        )  # fmt: skip
        self.streams = Streams(engine, self._starter, settings.archives)
        self.archives = ArchiveRegistry(engine)
        self.upstreams = Upstreams(self.storage, guard, self._workers, rights, settings, clock)
        self.items = ItemStore(self.storage, settings.feed_items_kept, clock)
        self.feeds = Feeds(
            self.storage, engine, guard, settings, clock, make_fetcher, self._workers, self.topics,
            self.upstreams, rights, self.items,
        )  # fmt: skip
        self.capabilities = Capabilities(self.storage, clock, self._tasks, rights)
        self.live = Live(engine, self.internal_headers.message_id, self._tasks)
        self.tokens = AccessTokens(self.storage, clock, self._tasks, rights)
        self.runs = Runs(self.storage, clock, self._tasks, rights)
        self.outputs = Outputs(
            self.storage, engine, self._workers, rights, clock, self.feeds,
            lambda key: self.pushes.changed(_place(key)),
            lambda key: self.pushes.readers_changed(_place(key)),
        )  # fmt: skip
        self.results = Results(self.storage, engine)
        self.publications = Publications(self.feeds, self.outputs, self.items)
        self.readers = DocumentReaders(self.feeds, self.outputs)
        self.documents = Documents(self.publications, self._workers, clock)
        self.pushes = DocumentPushes(
            self.documents,
            self.topics,
            DocumentSubscribers(self.subscription_store, self.readers, self.publications.has),
            settings.base_urls[0] if settings.base_urls else "",
        )
        self.feeds.watch(self._feed_changed)
        self.feeds.registrar.name_taken = lambda *place: (
            self.outputs.get(OutputKey(*place)) is not None
        )
        self.topics.polled = self.feeds.take_ping
        self.transactions = Transactions(
            engine,
            Staging(
                data_directory / STAGED_NAME, settings.max_staged_bytes,
                settings.staged_lifetime_s, clock,
            ),
            settings.max_transaction_bytes,
        )  # fmt: skip

    async def start(self) -> None:
        """Restores what is stored; deliveries begin. Raises `ConfigError` for a database that can't
        be used."""
        try:
            if self._published_attempts is not None:
                await self._published_attempts.start()
            await self._load()
            await self.attempts.start()
            await self.topics.start()
            await self.upstreams.start()
            await self.feeds.start()
            await self.capabilities.start()
            await self.tokens.start()
            await self.runs.start()
            await self.tunnels.start()
            await self.subscriptions.start()
            await self.outputs.start()
            await self.results.start()
            self.pushes.start()
            await self.transactions.start()
            self.live.start()
        except StorageFailed as error:
            raise ConfigError(f"the hub's {error}") from error
        self._tasks.own(self.expiry.watch_leases())
        self._tasks.own(self.expiry.watch_owners())
        self._tasks.own(self.attacher.sources.watch())
        self._tasks.own(self.transactions.watch())
        self._tasks.own(self.tokens.watch())

    def reachable(self) -> None:
        """Begins requests to other hubs; called once, when HTTP requests are answered."""
        self.upstreams.begin()
        self._tasks.own(self._prepare())

    async def _prepare(self) -> None:
        """Imports and opens what the next subscribe needs, so that it need not wait.

        With nothing stored, the first one does that: a server that is only a broker needs 40 MB
        less. A moment later, so that a server that is stopped soon makes no key.
        """
        await asyncio.sleep(self._settings.prepare_after_s)
        try:
            await asyncio.to_thread(load_key, self._key_file)
            if await asyncio.to_thread(self.storage.is_empty):
                return
            await self.storage.repository()
            await self._verifier.get()
            await self._sender.get()
        except (WarrenError, OSError) as error:
            log.warning("preparing for the next subscription failed: %s", error)

    async def stop(self) -> None:
        """Ends consuming and lets deliveries in flight finish, up to `drain_s`."""
        self.live.stop()
        self.tunnels.stop()
        self._denials.stop()
        await self._tasks.stop()
        await self.feeds.stop()
        await self.pushes.stop()
        await self.outputs.stop()
        await self.results.stop()
        await self.topics.stop()
        await self.upstreams.stop()
        await self._workers.stop()
        if self._owns_starter:
            self._starter.close()
        await self._suspensions.stop()
        for active in self.subscription_store.all():
            await active.state.cancel()
        await self.dispatcher.drain(self._settings.drain_s)
        await self._relay.drain(self._settings.drain_s)
        await self._tasks.stop()  # such as ends by the last deliveries
        await self.attempts.stop()
        await self.audit.stop()
        if self._sender.made is not None:
            await self._sender.made.close()
        if self._verifier.made is not None:
            await self._verifier.made.close()
        if self.relay.made is not None:
            self.relay.made.close()
        await self._guard.close()
        if self.peers is not None:
            await self.peers.leave(self.storage)
        await self.storage.close()

    def forget_vhost(self, vhost: str) -> None:
        """Ends what belongs to a deleted virtual host."""
        self.subscriptions.forget_vhost(vhost)
        self.upstreams.forget_vhost(vhost)
        self.feeds.forget_vhost(vhost)
        self.capabilities.forget_vhost(vhost)
        self.tokens.forget_vhost(vhost)
        self.runs.forget_vhost(vhost)
        self.results.forget_vhost(vhost)
        self.outputs.forget_vhost(vhost)

    def forget_owner(self, owner: str) -> None:
        """Ends what belongs to a deleted user; subscriptions watch their owners."""
        self.upstreams.forget_owner(owner)
        self.feeds.forget_owner(owner)
        self.capabilities.forget_owner(owner)
        self.tokens.forget_owner(owner)
        self.runs.forget_owner(owner)
        self.tunnels.forget_owner(owner)
        self.outputs.forget_owner(owner)

    def _feed_changed(self, feed: Feed) -> None:
        place = DocumentKey(feed.vhost, feed.name)
        self.pushes.changed(place)
        is_there = self.publications.has(place)
        if not (is_there and self.readers.is_public(place)):
            self.pushes.readers_changed(place)
        if not is_there:
            self._tasks.own(self.outputs.note_removed(OutputKey(*place)))

    def _recipient(self, identity: str) -> Recipient | None:
        active = self.subscription_store.find(identity)
        if active is None or active.subscription.status is SubscriptionStatus.UNVERIFIED:
            return None
        return Recipient(active.subscription.queue, active.subscription.source.name)

    async def _load(self) -> None:
        if not self.storage.is_empty():
            await self._order.load()
            now = self.clock.wall_s()
            parts = (self.subscription_store, self.attacher, self._denials, self._rights)
            await SubscriptionRecovery(*parts, now).run(await self.storage.repository())
            self._order.adopt(self.subscription_store.all())
            await restore_failures(self.attempts, self.subscription_store.by_id)
