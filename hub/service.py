"""The hub as the HTTP routes see it: subscribe, unsubscribe, and tokens for its own resources.

Routes check who asks and what they may do; the hub checks everything else, asks the callback
for its intent, and keeps the subscription until its lease ends. Everything runs in one event
loop, in tasks that the hub owns and `stop` ends.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

from ..core.clock import Clock, SystemClock
from ..core.errors import ConfigError, WarrenError, access_refused
from .attach import Attacher
from .book import Book
from .deliver.courier import Courier
from .deliver.parking import Parking
from .deliver.relay import Relay
from .engine.port import Engine
from .errors import (
    BadRequest,
    CallbackRefused,
    NotSubscribed,
    SourceMissing,
    StorageFailed,
    TokenRefused,
)
from .guard import Guard
from .intent import Intent, read_intent
from .lazy import Lazy
from .live import Live
from .makers import make_sender, make_verifier
from .own import endpoint_of, is_own
from .requests import Resource, SubscribeRequest, SubscribeResult
from .sender.port import Sender
from .settings import HubSettings
from .storage import Storage
from .subscription import Subscription, identity_of
from .tokens import USES, Grant, Tokens

KEY_NAME = "hub.key"

log = logging.getLogger(__name__)


class Hub:
    """`make_sender` builds the sender at the first delivery."""

    def __init__(
        self,
        engine: Engine,
        settings: HubSettings,
        data_directory: Path,
        *,
        database_url: str | None = None,
        clock: Clock | None = None,
        make_sender: Callable[[HubSettings, Guard], Awaitable[Sender]] = make_sender,
    ) -> None:
        self._settings = settings
        self._clock = clock or SystemClock()
        self._guard = Guard(settings)
        self._tokens = Tokens(data_directory / KEY_NAME, settings.token_lifetime_s, self._clock)
        self._sender = Lazy(lambda: make_sender(settings, self._guard))
        self._verifier = Lazy(lambda: make_verifier(settings, self._guard))
        parking = Parking(engine, self._clock)
        self._courier = Courier(self._sender.get, parking, settings, self._clock, self._on_gone)
        self._relay = Relay(engine, parking, settings)
        self._attacher = Attacher(engine, settings, self._courier.offer, self._relay.offer)
        self._storage = Storage(data_directory, database_url)
        self._book = Book(self._storage, self._attacher, self._clock)
        self._tasks: set[asyncio.Task[Any]] = set()

    async def start(self) -> None:
        """Resumes what is stored; returns when deliveries can flow.

        Raises `ConfigError` for a database that can't be used.
        """
        try:
            await self._book.load()
        except StorageFailed as error:
            raise ConfigError(f"the hub's {error}") from error
        self._own(self._book.watch_leases())
        self._own(self._attacher.watch())

    async def stop(self) -> None:
        """Ends consuming and lets deliveries in flight finish, up to `drain_s`."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for live in self._book.all():
            await live.cancel()
        await self._courier.drain(self._settings.drain_s)
        await self._relay.drain(self._settings.drain_s)
        if self._sender.made is not None:
            await self._sender.made.close()
        if self._verifier.made is not None:
            await self._verifier.made.close()
        await self._storage.close()

    async def subscribe(self, request: SubscribeRequest) -> SubscribeResult:
        """Verified and stored when it returns, or with `hub.verify=async` about to be.

        Raises the errors of `hub.errors`, and `ChannelError` where the engine refuses.
        """
        intent = read_intent(request, self._settings)
        sink = self.shortcut_sink(request, "subscribe")
        await self._require(request.source)
        if sink is not None:
            await self._require(sink)
        else:
            self._check_callback(request, intent)
        work = self._subscribe(request, intent, sink)
        return await self._finish(work, intent, sink)

    async def unsubscribe(self, request: SubscribeRequest) -> SubscribeResult:
        """Over when it returns, or with `hub.verify=async` about to be."""
        intent = read_intent(request, self._settings)
        sink = self.shortcut_sink(request, "unsubscribe")
        live = self._find(request.source, intent.topic, intent.callback)
        if sink is None:
            self._check_callback(request, intent)
        return await self._finish(self._unsubscribe(live, intent, sink), intent, sink)

    async def remove(self, source: Resource, topic: str, callback: str) -> Subscription:
        """Ends a subscription without asking its callback (DELETE); raises `NotSubscribed`."""
        live = self._find(source, topic, callback)
        await asyncio.shield(self._own(self._book.end(live)))
        return live.subscription

    def forget_vhost(self, vhost: str) -> None:
        """A virtual host was deleted, and with it whatever anybody was allowed there: one that is
        made later under its name must not be read by subscriptions to this one."""
        self._own(self._book.end_in(vhost))

    def subscriptions(self) -> list[Subscription]:
        return [live.subscription for live in self._book.all()]

    def generate_token(self, resource: Resource, intended_use: str | None) -> str:
        """A token for the resource's own endpoint URL, valid for `token_lifetime_s`.

        `intended_use` is `subscribe` or `unsubscribe`, else `BadRequest`. The caller has
        checked that the resource exists and that the user may write to it.
        """
        if intended_use not in USES:
            limit = ", ".join(USES)
            reason = "is no use of a token" if intended_use else "is required"
            raise BadRequest(reason, field="hub.intended_use", value=intended_use, limit=limit)
        return self._tokens.issue(intended_use, resource)

    def check_token(self, token: str | None, resource: Resource, use: str) -> Grant:
        """For GET `/endpoint` with `hub.mode=subscribe` or `unsubscribe`.

        Raises `TokenRefused` unless the token was made for this resource and use.
        """
        grant = self._tokens.read(token) if token is not None else None
        if grant is None:
            raise TokenRefused("is no token of this hub", field="hub.verify_token")
        if grant.use != use or grant.resource != resource:
            reason = f"was made to {grant.use} {grant.resource}"
            raise TokenRefused(reason, field="hub.verify_token", limit=f"{use} {resource}")
        return grant

    def shortcut_sink(self, request: SubscribeRequest, use: str) -> Resource | None:
        """The resource that the request's token binds in place of a callback, or None when it
        carries no token of this hub. The route checks that the user may write to it.

        Raises `TokenRefused` when the callback is not that resource's own endpoint URL.
        """
        token = request.verify_token
        grant = self._tokens.read(token) if token is not None else None
        if grant is None:
            return None
        bases = (*self._settings.base_urls, request.base_url)
        if grant.use != use:
            reason = f"is a shortcut token for another hub.mode ('{grant.use}')"
            raise TokenRefused(reason, field="hub.verify_token", limit=use)
        if request.callback is None or endpoint_of(request.callback, bases) != grant.resource:
            reason = "is a shortcut token, and hub.callback is not its resource's endpoint URL"
            raise TokenRefused(reason, field="hub.verify_token", limit=str(grant.resource))
        if grant.resource == request.source:
            raise BadRequest("is the source itself", field="hub.callback", value=request.callback)
        return grant.resource

    async def _require(self, resource: Resource) -> None:
        if resource.kind == "x" and not resource.name:
            raise access_refused("the default exchange can't be bound")
        if not await self._attacher.exists(resource):
            raise SourceMissing(f"no {resource}", field="resource", value=resource.name)

    def _check_callback(self, request: SubscribeRequest, intent: Intent) -> None:
        self._guard.check(intent.callback)
        if is_own(intent.callback, [request.base_url]):
            reason = "is this hub's own address; a token binds it instead"
            raise CallbackRefused(reason, field="hub.callback", value=intent.callback)

    def _find(self, source: Resource, topic: str, callback: str) -> Live:
        live = self._book.find(identity_of(source, topic, callback))
        if live is None:
            reason = f"no subscription to {source} with this topic and callback"
            raise NotSubscribed(reason, field="hub.callback", value=callback)
        return live

    async def _finish(
        self, work: Coroutine[Any, Any, None], intent: Intent, sink: Resource | None
    ) -> SubscribeResult:
        # Shielded: a client that hangs up does not stop what was begun for it.
        is_awaited = intent.is_sync or sink is not None
        task = self._own(work if is_awaited else _logged(work, intent))
        if is_awaited:
            await asyncio.shield(task)
        return SubscribeResult(verified=is_awaited, lease_seconds=intent.lease_seconds)

    async def _subscribe(
        self, request: SubscribeRequest, intent: Intent, sink: Resource | None
    ) -> None:
        asked_at = self._clock.wall_s()  # the lease counts from here (WebSub 5.3.1)
        if sink is None:
            await self._verify("subscribe", intent)
        await self._book.put(
            Subscription(
                id=uuid.uuid4().hex,
                source=request.source,
                topic=intent.topic,
                callback=intent.callback,
                lease_seconds=intent.lease_seconds,
                expires_at=asked_at + intent.lease_seconds,
                owner=request.user,
                secret=intent.secret,
                sink=sink,
            )
        )

    async def _unsubscribe(self, live: Live, intent: Intent, sink: Resource | None) -> None:
        if sink is None:
            await self._verify("unsubscribe", intent)
        await self._book.end(live)

    async def _verify(self, mode: str, intent: Intent) -> None:
        verifier = await self._verifier.get()
        await verifier.verify(mode, intent)

    async def _on_gone(self, live: Live) -> None:
        log.info("the callback of subscription %s is gone (410)", live.subscription.id)
        await self._book.end(live)

    def _own(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, WarrenError):
            log.error("a task of the hub failed", exc_info=error)


async def _logged(work: Coroutine[Any, Any, None], intent: Intent) -> None:
    """Nobody waits for an asynchronous verification: the log is where its failure shows."""
    try:
        await work
    except WarrenError as error:
        log.warning("no subscription of topic '%s': %s", intent.topic, error)
