"""Subscribes to changes of feeds beside polling: by WebSub at the hub that a feed names, or by RSS
cloud.

What is pushed only announces a change: the feed is polled then. While push works a feed is polled
once a day; if such a poll finds entries that nothing had announced, push counts as broken, and the
feed is polled as without it until an announcement comes.
"""

from __future__ import annotations

import logging

from msgspec.structs import replace

from ...core.clock import Clock
from ...core.counted import counted
from ...core.errors import WarrenError
from ..guard.own import is_own
from ..settings import HubSettings
from ..upstream.upstream import Upstream, UpstreamLeases, UpstreamRequest, UpstreamStatus
from ..upstream.upstreams import Upstreams
from ..upstream.validation import DEFAULT_LEASE_S
from .cloud import PROTOCOLS, CloudClient, CloudFailed
from .feed import EXCHANGE, Feed, PushState, PushStatus
from .source import FetchedFeed

CLOUD_RENEWAL_S = 12 * 3_600
"""A registration holds for 25 hours; it is renewed by the first poll after this time."""
MIN_RENEWAL_S = 300
"""A hub that grants shorter leases gets no more requests than the server of a busy feed."""
_STATES = {
    UpstreamStatus.ACTIVE: PushState.ACTIVE,
    UpstreamStatus.FAILED: PushState.FAILED,
    UpstreamStatus.DENIED: PushState.FAILED,
}

log = logging.getLogger(__name__)


def upstream_name(feed: Feed) -> str:
    """Returns the name of a feed's subscription among the upstreams of its virtual host."""
    return f"feed:{feed.name}"


class Push:
    """Subscribes feeds at their hubs and clouds, and follows whether that works."""

    def __init__(
        self, upstreams: Upstreams, cloud: CloudClient, settings: HubSettings, clock: Clock
    ) -> None:
        self._upstreams = upstreams
        self._cloud = cloud
        self._base_urls = settings.base_urls
        self._clock = clock

    async def after_poll(
        self, feed: Feed, fetched: FetchedFeed, changes: int, *, is_scheduled: bool
    ) -> Feed:
        """Returns the feed with the state of push after a poll, subscribed if it names a hub or
        cloud."""
        status = _offered(feed, fetched) if fetched.read is not None else feed.status.push
        if not self._base_urls or (status.hub_url and is_own(status.hub_url, self._base_urls)):
            status = PushStatus()
        if is_scheduled and changes and status.state is PushState.ACTIVE:
            found = counted(changes, "entry that was", "entries that were")
            reason = f"a poll found {found} not announced"
            log.warning("push of feed '%s' is broken: %s", feed.name, reason)
            status = replace(status, state=PushState.BROKEN, reason=reason)
        feed = replace(feed, status=replace(feed.status, push=status))
        if status.hub_url:
            status = await self._subscribed(feed, status)
        elif status.cloud is not None:
            await self._leave(feed)
            status = await self._registered(feed, status)
        else:
            await self._leave(feed)
        return replace(feed, status=replace(feed.status, push=status))

    def current(self, feed: Feed) -> Feed:
        """Returns the feed with the state that its subscription has now."""
        status = feed.status.push
        found = self._own(feed) if status.hub_url else None
        if found is None or found.request.hub != status.hub_url:
            return feed
        now = _at_hub(status, found)
        return feed if now == status else replace(feed, status=replace(feed.status, push=now))

    def announced(self, feed: Feed) -> Feed:
        """Returns the feed after an announcement: push works."""
        status = replace(
            feed.status.push, state=PushState.ACTIVE, reason="", received_at=self._clock.wall_s()
        )
        return replace(feed, status=replace(feed.status, push=status))

    async def leave(self, feed: Feed) -> None:
        """Ends the subscription of a removed feed; a failure is logged."""
        try:
            await self._leave(feed)
        except WarrenError as error:
            log.warning("feed '%s': unsubscribing from its hub failed: %s", feed.name, error)

    async def _subscribed(self, feed: Feed, status: PushStatus) -> PushStatus:
        found = self._own(feed)
        wanted = UpstreamRequest(
            url=status.topic_url, kind="x", sink=EXCHANGE, base_url=self._base_urls[0],
            lease_seconds=DEFAULT_LEASE_S, hub=status.hub_url, routing_key=feed.name,
            min_renewal_s=MIN_RENEWAL_S,
        )  # fmt: skip
        if found is None or found.request != wanted:
            try:
                name = upstream_name(feed)
                await self._upstreams.put(feed.vhost, name, feed.owner, wanted, UpstreamLeases())
            except WarrenError as error:
                return replace(status, state=PushState.FAILED, reason=str(error))
            return replace(status, state=PushState.PENDING, reason="")
        return _at_hub(status, found)

    async def _registered(self, feed: Feed, status: PushStatus) -> PushStatus:
        assert status.cloud is not None
        now_s = self._clock.wall_s()
        if now_s < status.renew_at:
            return status
        try:
            await self._cloud.register(feed, status.cloud)
        except CloudFailed as error:
            return replace(status, state=PushState.FAILED, reason=str(error))
        state = PushState.BROKEN if status.state is PushState.BROKEN else PushState.ACTIVE
        return replace(status, state=state, renew_at=now_s + CLOUD_RENEWAL_S)

    async def _leave(self, feed: Feed) -> None:
        if self._own(feed) is not None:
            await self._upstreams.remove(feed.vhost, upstream_name(feed))

    def _own(self, feed: Feed) -> Upstream | None:
        found = self._upstreams.get(feed.vhost, upstream_name(feed))
        return found if found is not None and is_of_feed(found) else None


def is_of_feed(upstream: Upstream) -> bool:
    """Returns whether the hub has made it for a feed: nobody else may publish to that exchange."""
    return (upstream.request.kind, upstream.request.sink) == ("x", EXCHANGE)


def _at_hub(status: PushStatus, upstream: Upstream) -> PushStatus:
    """Returns the state by the subscription; what is broken stays so until something is pushed."""
    if status.state is PushState.BROKEN:
        return status
    state, current = _STATES.get(upstream.status, PushState.PENDING), upstream.leases.current
    if state is PushState.ACTIVE and current is not None and current.expires_at < upstream.renew_at:
        # Nothing is announced between its leases, so the feed is polled as without push.
        reason = f"its hub's leases end before they are renewed, after {MIN_RENEWAL_S} s at least"
        return replace(status, state=PushState.FAILED, reason=reason)
    return replace(status, state=state, reason=upstream.reason)


def _offered(feed: Feed, fetched: FetchedFeed) -> PushStatus:
    """Returns what the document offers, with the state so far where that is the same."""
    assert fetched.read is not None
    hub_url = feed.request.hub or next(iter(fetched.links.hubs), "")
    if hub_url:
        topic_url = fetched.links.self_url or feed.url
        offered = PushStatus(hub_url=hub_url, topic_url=topic_url)
    elif (cloud := fetched.read.cloud) is not None and cloud.protocol in PROTOCOLS:
        offered = PushStatus(cloud=cloud)
    else:
        return PushStatus()
    old = feed.status.push
    is_same = (old.hub_url, old.topic_url, old.cloud) == (
        offered.hub_url, offered.topic_url, offered.cloud,
    )  # fmt: skip
    return old if is_same else offered
