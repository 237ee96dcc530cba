"""Subscribing and unsubscribing: who is asked, in which order, and what is kept of it.

Routes check who asks and what they may do; everything else is checked here, for `/subscribe` and
`/hub` alike. What is not awaited is stored first (`verifications.py`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any

from ...core.clock import Clock
from ...core.errors import access_refused
from ..errors import BadRequest, CallbackRefused, SourceMissing
from ..guard import domains
from ..guard.guard import Guard
from ..guard.lookups import Purpose
from ..guard.own import is_own
from ..keys.shortcuts import Shortcuts
from ..owner_rights import Rights
from ..requests import Mode, Resource, SubscribeRequest, SubscribeResult
from ..settings import HubSettings
from ..storage.storage import Storage
from ..tasks import Tasks
from ..topics.topics import Topics
from ..verification.verifications import Verifications
from .attach import Attacher
from .denial import Denials
from .expiry import Expiry
from .intent import Intent, read_intent
from .operations import Operations
from .store import SubscriptionStore
from .subscription import Subscription, identity_of, identity_of_request
from .verified_intents import VerifiedIntents, not_subscribed
from .websub import is_external

if TYPE_CHECKING:
    from ..verification.verify import Verifier


class Subscriptions(Operations):
    """`verifier` makes the client that asks callbacks, at its first use."""

    def __init__(
        self,
        store: SubscriptionStore,
        expiry: Expiry,
        attacher: Attacher,
        shortcuts: Shortcuts,
        guard: Guard,
        verifier: Callable[[], Awaitable[Verifier]],
        settings: HubSettings,
        clock: Clock,
        tasks: Tasks,
        *,
        storage: Storage,
        topics: Topics,
        denials: Denials,
        rights: Rights,
    ) -> None:
        super().__init__(store, topics, settings, tasks)
        self._expiry = expiry
        self._attacher = attacher
        self._shortcuts = shortcuts
        self._guard = guard
        self._verified_intents = VerifiedIntents(
            store, attacher, denials, topics, rights, verifier, settings, clock
        )
        self._verifications = Verifications(
            storage, settings, clock, tasks, self._verified_intents.carry_out
        )

    async def start(self) -> None:
        """Goes on with what was accepted and not verified."""
        await self._verifications.start()

    async def subscribe(self, request: SubscribeRequest) -> SubscribeResult:
        """Verified and stored when it returns; at `/hub` and with `hub.verify=async` about to be,
        which not even a crash prevents.

        Raises the errors of `hub.errors`, and `ChannelError` where the engine refuses.
        """
        intent = read_intent("subscribe", request, self._settings)
        sink = self._sink(request, "subscribe")
        if not is_external(request):  # those exchanges are made for the first who agrees
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
            # Else the first to look at its addresses would be a delivery, which nobody waits for.
            endpoint = self._guard.check(intent.callback)
            await self._guard.resolve(endpoint.host, endpoint.port, Purpose.VERIFY)
        if self._is_awaited(intent, sink):
            return await self._finish(
                self._verified_intents.subscribe(request, intent, sink), intent
            )
        return await self._accept("subscribe", request, intent)

    async def unsubscribe(self, request: SubscribeRequest) -> SubscribeResult:
        """Over when it returns; at `/hub` and with `hub.verify=async` about to be.

        `/hub` answers alike for what was never subscribed or is another's, and asks nobody:
        anonymous clients can't find out who subscribes to what, nor have others' callbacks asked
        in this way.
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
        """Ends a subscription without asking its callback (DELETE); raises `NotSubscribed`."""
        active = self._store.find(identity_of(source, topic, callback))
        if active is None:
            raise not_subscribed(source, callback)
        await self.end(active)
        return active.subscription

    async def put_inactive(self, request: SubscribeRequest) -> SubscribeResult:
        """Keeps it without asking its callback: it becomes active when it is subscribed.

        Raises as `subscribe`, and `BadRequest` for a token, which binds at once or not at all.
        """
        intent = read_intent("subscribe", request, self._settings)
        if self._sink(request, "subscribe") is not None:
            raise BadRequest("can't be kept inactive", field="hub.verify_token")
        if not is_external(request):
            await self._require(request.source)
            await self._attacher.sources.require_consumable(request.source)
        self._check_callback(request, intent)
        self._verified_intents.require_owner(request)
        wanted = self._verified_intents.made_of(request, intent, None)
        await self._carry(self._store.put_inactive(wanted))
        return SubscribeResult(verified=False, lease_seconds=intent.lease_seconds)

    def forget_vhost(self, vhost: str) -> None:
        """A virtual host was deleted, and with it whatever anybody was allowed there: one that is
        made later under its name must not be read by subscriptions to this one."""
        self._tasks.own(self._expiry.end_in(vhost))

    def _sink(self, request: SubscribeRequest, use: Mode) -> Resource | None:
        """None at `/hub`, where a token is only for the callback to see."""
        return None if request.topic_url else self._shortcuts.sink(request, use)

    async def _require(self, resource: Resource) -> None:
        if resource.kind == "x" and not resource.name:
            raise access_refused("the default exchange can't be bound")
        if not await self._attacher.sources.exists(resource):
            raise SourceMissing(f"no {resource}", field="resource", value=resource.name)

    def _require_owner(self, request: SubscribeRequest) -> None:
        """Who comes to `/hub` without credentials is refused later, and in silence: the answer
        must not tell that somebody subscribes."""
        is_anonymous = request.user in ("", self._settings.hub_user)
        if not (request.topic_url and is_anonymous):
            self._verified_intents.require_owner(request)

    def _check_callback(self, request: SubscribeRequest, intent: Intent) -> None:
        self._guard.check(intent.callback)
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
        await self._carry(work)
        return SubscribeResult(verified=True, lease_seconds=intent.lease_seconds)

    async def _accept(
        self, mode: Mode, request: SubscribeRequest, intent: Intent
    ) -> SubscribeResult:
        await self._carry(self._verifications.accept(mode, request))
        return SubscribeResult(verified=False, lease_seconds=intent.lease_seconds)
