"""Verifies intents with callbacks, then adds or removes their subscriptions.

Everything of the request was checked when it came; what may have changed since is asked again.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from ...core.clock import Clock
from ...core.errors import ChannelError, access_refused
from ..errors import NotOwner, NotSubscribed, TooManySubscriptions, TopicDenied
from ..owner_rights import Rights, refusal
from ..request_limiter import Requester
from ..requests import Mode, Resource, SubscribeRequest
from ..settings import HubSettings
from ..topics.topics import Topics
from .active import ActiveSubscription
from .anonymous import anonymous_client_of
from .attach import Attacher
from .denial import Denials
from .intent import Intent, read_intent
from .options import NO_KEYS, Keys
from .store import SubscriptionStore
from .subscription import Status, Subscription, identity_of_request
from .websub import is_external, normal_url, other_exchange

if TYPE_CHECKING:
    from ..verification.verify import Verifier


class VerifiedIntents:
    """`verifier` makes the client that asks callbacks, at its first use."""

    def __init__(
        self,
        store: SubscriptionStore,
        attacher: Attacher,
        denials: Denials,
        topics: Topics,
        rights: Rights,
        verifier: Callable[[], Awaitable[Verifier]],
        settings: HubSettings,
        clock: Clock,
    ) -> None:
        self._store = store
        self._attacher = attacher
        self._denials = denials
        self._topics = topics
        self._rights = rights
        self._verifier = verifier
        self._settings = settings
        self._clock = clock

    async def carry_out(self, mode: Mode, request: SubscribeRequest) -> None:
        """What was accepted, now that it has its turn."""
        intent = read_intent(mode, request, self._settings)
        if request.topic_url:
            self.require_owner(request)  # before anonymous clients have others' callbacks verified
        if mode == "unsubscribe":
            await self.unsubscribe(request, intent, None)
            return
        if not is_external(request):
            await self._subscribe_verified(request, intent)
            return
        await self._topics.declare()
        await self._subscribe_verified(request, intent)
        await self._leave_other(request)

    async def _leave_other(self, request: SubscribeRequest) -> None:
        """It may have had the other content before. The request is kept until this is done."""
        active = self._store.find(identity_of_request(request))
        if active is not None:
            await self._attacher.leave(active, other_exchange(request.source))

    async def _validate(self, request: SubscribeRequest, intent: Intent) -> None:
        """Raises `TopicDenied`, of which the callback is told (WebSub 5.2).

        A renewal that is denied leaves the subscription as it was, and nobody is told.
        """
        if not self._settings.hub_check_topics:
            return
        reason = await self._topics.check(normal_url(request.topic_url))
        if reason is None:
            return
        self._deny(request, intent, reason)
        raise TopicDenied(reason, field="hub.topic", value=request.topic_url)

    async def _subscribe_verified(self, request: SubscribeRequest, intent: Intent) -> None:
        """A callback that has agreed in vain, a limit or a right being in the way, is told: it
        has been answered 202, and would wait for ever."""
        try:
            await self.subscribe(request, intent, None)
        except ChannelError as error:
            self._deny(request, intent, error.explanation)
            raise
        except TooManySubscriptions as error:
            self._deny(request, intent, error.reason)
            raise

    def _deny(self, request: SubscribeRequest, intent: Intent, reason: str) -> None:
        """Tells the callback (WebSub 5.2), unless it is subscribed, and stays so."""
        if self._store.find(identity_of_request(request)) is None:
            denied = replace(self.made_of(request, intent, None), reason=reason)
            self._denials.announce(denied, _nothing)

    async def subscribe(
        self, request: SubscribeRequest, intent: Intent, sink: Resource | None
    ) -> None:
        asked_at = self._clock.wall_s()
        if sink is None and intent.is_verified:
            asked_at = await self._verify("subscribe", request, intent)
        if is_external(request):
            # Not before the callback has agreed: anonymous clients could have anything fetched.
            await self._validate(request, intent)
        self.require_owner(request)  # somebody may have been faster, and rights may be gone
        self.require_room(request)
        requested = self.made_of(request, intent, sink, asked_at)
        reason = refusal(self._rights, requested)
        if reason is not None:
            raise access_refused(reason)
        if not is_external(request) or self._has_content(requested.identity):
            await self._store.put(requested)
            return
        async with self._topics.first_content(normal_url(request.topic_url), requested.identity):
            await self._store.put(requested)

    def _has_content(self, identity: str) -> bool:
        """Whether it was bound before, and has been sent its topic's content or will be."""
        active = self._store.find(identity)
        return active is not None and active.subscription.status is not Status.UNVERIFIED

    async def unsubscribe(
        self, request: SubscribeRequest, intent: Intent, sink: Resource | None
    ) -> None:
        active = self._store.find(identity_of_request(request))
        if active is None:
            raise not_subscribed(request.source, intent.callback)
        if sink is None and intent.is_verified:
            await self._verify("unsubscribe", request, intent)
        self.require_owner(request)
        await self._store.end(active)

    def require_owner(self, request: SubscribeRequest) -> None:
        """Raises `NotOwner` for who is none and no administrator."""
        active = self._store.find(identity_of_request(request))
        if active is None or active.subscription.owner in ("", request.user):
            return
        if not request.is_administrator:
            reason = "this subscription is another user's; its owner or an administrator changes it"
            raise NotOwner(reason, field="hub.callback", value=request.callback)

    def require_room(self, request: SubscribeRequest) -> None:
        """Raises `TooManySubscriptions` for an anonymous client above its limit."""
        anonymous_client = anonymous_client_of(request)
        if anonymous_client is not None and self._store.find(identity_of_request(request)) is None:
            self._store.index.anonymous.require_room(anonymous_client)

    async def _verify(self, mode: Mode, request: SubscribeRequest, intent: Intent) -> float:
        """When the callback was asked that has agreed."""
        verifier = await self._verifier()
        requester = Requester(request.client or f"user {request.user}", bool(request.client))
        ago_s = await verifier.verify(
            mode, intent, requester=requester, is_patient=not intent.is_sync
        )
        return self._clock.wall_s() - ago_s

    def made_of(
        self,
        request: SubscribeRequest,
        intent: Intent,
        sink: Resource | None,
        asked_at: float | None = None,
    ) -> Subscription:
        """The subscription that is asked for. Its lease counts from the question (WebSub 5.3.1),
        where nobody is asked from now."""
        begin = self._clock.wall_s() if asked_at is None else asked_at
        active = self._store.find(identity_of_request(request))
        anonymous_client = (
            anonymous_client_of(request)
            if active is None
            else active.subscription.options.anonymous_client
        )
        options = intent.options
        if anonymous_client is not None:
            options = msgspec.structs.replace(options, anonymous_client=anonymous_client)
        return Subscription(
            id=uuid.uuid4().hex,
            source=request.source,
            topic=intent.topic,
            callback=intent.callback,
            lease_seconds=intent.lease_seconds,
            expires_at=begin + intent.lease_seconds,
            # Who renews another's, or what came without credentials, does not take it over.
            owner=request.user if active is None else active.subscription.owner,
            keys=self._keys(active, intent),
            sink=sink,
            topic_url=request.topic_url,
            base_url=request.base_url,
            options=options,
        )

    def _keys(self, active: ActiveSubscription | None, intent: Intent) -> Keys:
        """A new secret leaves the one before it for a while; without one both are gone."""
        before = NO_KEYS if active is None else active.subscription.keys
        previous, until = None, 0.0
        if intent.secret is None or before.secret is None:
            pass
        elif intent.secret == before.secret:
            previous, until = before.previous, before.previous_until
        elif self._settings.secret_overlap_s:
            previous = before.secret
            until = self._clock.wall_s() + self._settings.secret_overlap_s
        return Keys(intent.secret, previous, until, intent.basic_auth)


def not_subscribed(source: Resource, callback: str) -> NotSubscribed:
    reason = f"no subscription to {source} with this topic and callback"
    return NotSubscribed(reason, field="hub.callback", value=callback)


async def _nothing(_: Subscription) -> None:
    """A subscription that never was leaves no row to delete."""
