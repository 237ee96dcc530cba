"""Subscribing and unsubscribing, by `/subscribe` and `/hub` alike.

Routes check the user and the permissions; everything else is checked here. A request that is
accepted and not awaited is stored first (`verifications.py`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any

from ...core.clock import Clock
from ...core.errors import access_refused
from ..errors import BadRequest, CallbackRefused, SourceMissing
from ..guard import domains
from ..guard.callbacks import CallbackGuard
from ..guard.lookups import Purpose
from ..guard.own import is_own
from ..keys.shortcuts import Shortcuts
from ..owner_rights import SubscriberRights
from ..requests import Mode, Resource, SubscribeRequest, SubscribeResult
from ..settings import HubSettings
from ..storage.storage import Storage
from ..tasks import Tasks
from ..topics.topics import Topics
from ..verification.verifications import Verifications
from .attach import Attacher
from .denial import Denials
from .expiry import REMOVED, SubscriptionExpiry
from .intent import Intent, read_intent
from .store import SubscriptionStore
from .subscription import Subscription, identity_of, identity_of_request
from .verified_intents import VerifiedIntents, not_subscribed
from .websub import is_external

if TYPE_CHECKING:
    from ..verification.verify import Verifier


class Subscriptions:
    """Subscribes and unsubscribes. `verifier` makes the client that verifies intents, at its first
    use."""

    def __init__(
        self,
        store: SubscriptionStore,
        expiry: SubscriptionExpiry,
        attacher: Attacher,
        shortcuts: Shortcuts,
        callbacks: CallbackGuard,
        verifier: Callable[[], Awaitable[Verifier]],
        settings: HubSettings,
        clock: Clock,
        tasks: Tasks,
        *,
        storage: Storage,
        topics: Topics,
        denials: Denials,
        rights: SubscriberRights,
    ) -> None:
        self._store = store
        self._settings = settings
        self._tasks = tasks
        self._expiry = expiry
        self._attacher = attacher
        self._shortcuts = shortcuts
        self._callbacks = callbacks
        self._verified_intents = VerifiedIntents(
            store, attacher, denials, topics, rights, verifier, settings, clock
        )
        self._verifications = Verifications(
            storage, settings, clock, tasks, self._verified_intents.carry_out
        )

    async def start(self) -> None:
        """Continues with requests that were accepted and not verified."""
        await self._verifications.start()

    async def subscribe(self, request: SubscribeRequest) -> SubscribeResult:
        """Verifies and stores a subscription; at `/hub` and with `hub.verify=async` later, also
        after a crash.

        Raises the errors of `hub.errors`, and `ChannelError` if the engine refuses.
        """
        intent = read_intent("subscribe", request, self._settings)
        sink = self._sink(request, "subscribe")
        if not is_external(request):  # its exchanges are declared after the verification
            await self._require(request.source)
            await self._attacher.sources.require_consumable(request.source)
        if sink is not None:
            await self._require(sink)
        else:
            self._check_callback(request, intent)
        self._require_owner(request)
        if request.client:
            await domains.load()
            self._verified_intents.require_room(request)
        if sink is None and not intent.is_verified:
            # Else a refused address would show only in a failed delivery.
            endpoint = self._callbacks.check(intent.callback)
            await self._callbacks.resolve(endpoint, Purpose.VERIFY)
        if self._is_awaited(intent, sink):
            return await self._finish(
                self._verified_intents.subscribe(request, intent, sink), intent
            )
        return await self._accept("subscribe", request, intent)

    async def unsubscribe(self, request: SubscribeRequest) -> SubscribeResult:
        """Ends a subscription; at `/hub` and with `hub.verify=async` later.

        `/hub` gives the same answer for unknown subscriptions and those of another user, and
        verifies neither: anonymous clients can't find out who subscribes to what, nor have
        callbacks of others requested.
        """
        intent = read_intent("unsubscribe", request, self._settings)
        sink = self._sink(request, "unsubscribe")
        is_known = self._store.find(identity_of_request(request)) is not None
        if not is_known and not self._verifications.concern(request):
            return self._nothing_to_end(request, intent)
        if sink is None:
            self._check_callback(request, intent)
        self._require_owner(request)
        if self._is_awaited(intent, sink):
            return await self._finish(
                self._verified_intents.unsubscribe(request, intent, sink), intent
            )
        return await self._accept("unsubscribe", request, intent)

    async def remove(self, source: Resource, topic: str, callback: str) -> Subscription:
        """Ends a subscription without verification (DELETE); raises `NotSubscribed`."""
        active = self._store.find(identity_of(source, topic, callback))
        if active is None:
            raise not_subscribed(source, callback)
        await self._store.end(active, REMOVED)
        return active.subscription

    async def put_inactive(self, request: SubscribeRequest) -> SubscribeResult:
        """Stores a subscription without verification: it becomes active when it is subscribed.

        Raises as `subscribe`, and `BadRequest` for a token.
        """
        intent = read_intent("subscribe", request, self._settings)
        if self._sink(request, "subscribe") is not None:
            raise BadRequest("can't be kept inactive", field="hub.verify_token")
        if not is_external(request):
            await self._require(request.source)
            await self._attacher.sources.require_consumable(request.source)
        self._check_callback(request, intent)
        self._verified_intents.require_owner(request)
        wanted = self._verified_intents.subscription_from(request, intent, None)
        await self._tasks.complete(self._store.put_inactive(wanted))
        return SubscribeResult(verified=False, lease_seconds=intent.lease_seconds)

    def forget_vhost(self, vhost: str) -> None:
        """Ends all subscriptions in a deleted virtual host: they must not read one that is created
        later with its name."""
        self._tasks.own(self._expiry.end_in(vhost))

    def _sink(self, request: SubscribeRequest, use: Mode) -> Resource | None:
        """Returns the resource that a token binds, None without one and at `/hub`."""
        return None if request.topic_url else self._shortcuts.sink(request, use)

    async def _require(self, resource: Resource) -> None:
        if resource.kind == "x" and not resource.name:
            raise access_refused("the default exchange can't be bound")
        if not await self._attacher.sources.exists(resource):
            raise SourceMissing(f"no {resource}", field="resource", value=resource.name)

    def _require_owner(self, request: SubscribeRequest) -> None:
        """Raises `NotOwner`. Anonymous clients are refused later, without an answer that would
        disclose the subscription."""
        is_anonymous = request.user in ("", self._settings.hub_user)
        if not (request.topic_url and is_anonymous):
            self._verified_intents.require_owner(request)

    def _check_callback(self, request: SubscribeRequest, intent: Intent) -> None:
        self._callbacks.check(intent.callback)
        if is_own(intent.callback, [request.base_url]):
            reason = "is this hub's own address; a token binds it instead"
            raise CallbackRefused(reason, field="hub.callback", value=intent.callback)

    def _nothing_to_end(self, request: SubscribeRequest, intent: Intent) -> SubscribeResult:
        if not request.topic_url:
            raise not_subscribed(request.source, intent.callback)
        return SubscribeResult(verified=False, lease_seconds=intent.lease_seconds)

    def _is_awaited(self, intent: Intent, sink: Resource | None) -> bool:
        return intent.is_sync or sink is not None

    async def _finish(self, work: Coroutine[Any, Any, None], intent: Intent) -> SubscribeResult:
        await self._tasks.complete(work)
        return SubscribeResult(verified=True, lease_seconds=intent.lease_seconds)

    async def _accept(
        self, mode: Mode, request: SubscribeRequest, intent: Intent
    ) -> SubscribeResult:
        await self._tasks.complete(self._verifications.accept(mode, request))
        return SubscribeResult(verified=False, lease_seconds=intent.lease_seconds)
