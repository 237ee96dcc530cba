"""Verifies intents with callbacks, then adds or removes their subscriptions.

Requests were checked when they came; conditions that may have changed since are checked again.
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
from ..owner_rights import SubscriberRights, refusal
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
from .subscription import Subscription, SubscriptionStatus, identity_of_request
from .websub import is_external, is_of_topics, normal_url, other_exchange

if TYPE_CHECKING:
    from ..verification.verify import Verifier


class VerifiedIntents:
    """Verifies intents and carries them out. `verifier` makes the client that verifies intents, at
    its first use."""

    def __init__(
        self,
        store: SubscriptionStore,
        attacher: Attacher,
        denials: Denials,
        topics: Topics,
        rights: SubscriberRights,
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
        """Carries out a request that was accepted earlier."""
        intent = read_intent(mode, request, self._settings)
        if request.topic_url:
            self.require_owner(request)  # before anonymous requests reach its callback
        if mode == "unsubscribe":
            await self.unsubscribe(request, intent, None)
            return
        if is_of_topics(request):
            await self._topics.declare()
        await self._subscribe_verified(request, intent)
        if is_of_topics(request):
            await self._leave_other(request)

    async def _leave_other(self, request: SubscribeRequest) -> None:
        """Unbinds the other kind of content, if it was bound to that. The request stays stored
        until this is done."""
        active = self._store.find(identity_of_request(request))
        if active is not None:
            await self._attacher.leave(active, other_exchange(request.source))

    async def _validate(self, request: SubscribeRequest, intent: Intent) -> None:
        """Checks that the publisher offers the topic; else raises `TopicDenied` and notifies the
        callback (WebSub 5.2). A denied renewal leaves the subscription as it was, without a
        notice."""
        if not self._settings.hub_check_topics:
            return
        reason = await self._topics.check(normal_url(request.topic_url))
        if reason is None:
            return
        self._deny(request, intent, reason)
        raise TopicDenied(reason, field="hub.topic", value=request.topic_url)

    async def _subscribe_verified(self, request: SubscribeRequest, intent: Intent) -> None:
        """Subscribes, and notifies a callback that has agreed if a limit or a permission prevents
        it: the subscriber was answered 202."""
        try:
            await self.subscribe(request, intent, None)
        except ChannelError as error:
            self._deny(request, intent, error.explanation)
            raise
        except TooManySubscriptions as error:
            self._deny(request, intent, error.reason)
            raise

    def _deny(self, request: SubscribeRequest, intent: Intent, reason: str) -> None:
        """Notifies the callback (WebSub 5.2), unless it is subscribed."""
        if self._store.find(identity_of_request(request)) is None:
            denied = replace(self.subscription_from(request, intent, None), reason=reason)
            self._denials.announce(denied, _no_row)

    async def subscribe(
        self, request: SubscribeRequest, intent: Intent, sink: Resource | None
    ) -> None:
        asked_at = self._clock.wall_s()
        if sink is None and intent.is_verified:
            asked_at = await self._verify("subscribe", request, intent)
        if is_external(request):
            # After the callback has agreed: anonymous clients could have any URL fetched.
            await self._validate(request, intent)
        self.require_owner(request)  # checked again: it may have changed meanwhile
        self.require_room(request)
        requested = self.subscription_from(request, intent, sink, asked_at)
        reason = refusal(self._rights, requested)
        if reason is not None:
            raise access_refused(reason)
        if not is_external(request) or self._has_content(requested.identity):
            await self._store.put(requested)
            return
        async with self._topics.first_content(normal_url(request.topic_url), requested.identity):
            await self._store.put(requested)

    def _has_content(self, identity: str) -> bool:
        """Whether it was bound before, so its topic's content was or will be sent."""
        active = self._store.find(identity)
        return (
            active is not None and active.subscription.status is not SubscriptionStatus.UNVERIFIED
        )

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
        """Raises `NotOwner` for another user who is no administrator."""
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
            self._store.anonymous.require_room(anonymous_client)

    async def _verify(self, mode: Mode, request: SubscribeRequest, intent: Intent) -> float:
        """Returns the wall time at which the callback was requested, in seconds."""
        verifier = await self._verifier()
        requester = Requester(request.client or f"user {request.user}", bool(request.client))
        ago_s = await verifier.verify(
            mode, intent, requester=requester, is_patient=not intent.is_sync
        )
        return self._clock.wall_s() - ago_s

    def subscription_from(
        self,
        request: SubscribeRequest,
        intent: Intent,
        sink: Resource | None,
        asked_at: float | None = None,
    ) -> Subscription:
        """Returns the requested subscription. Its lease counts from the verification request
        (WebSub 5.3.1), without one from now."""
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
            # A renewal by another user does not change the owner.
            owner=request.user if active is None else active.subscription.owner,
            keys=self._keys(active, intent),
            sink=sink,
            topic_url=request.topic_url,
            base_url=request.base_url,
            options=options,
        )

    def _keys(self, active: ActiveSubscription | None, intent: Intent) -> Keys:
        """Returns the keys: a new secret keeps the previous one for a while; without one both are
        removed."""
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


async def _no_row(_: Subscription) -> None:
    """Does nothing: a denied subscription has no row to delete."""
