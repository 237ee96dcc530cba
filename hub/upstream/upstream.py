"""A subscription of this hub at another hub, and the steps of its state.

A step is a function from one value to the next, without side effects; `registry.py` stores the
result before it takes effect.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

import msgspec

from ..requests import Kind, Resource

CALLBACK_PATH = "/hub/callback/"
"""The path below this hub's base URL; a lease's token follows."""
OVERLAP_S = 3_600.0
"""How long a renewed lease is kept beside the new one at most, for messages that its hub still
has to deliver."""
MAX_LEAVING = 10
"""Leases that are left at their hubs at a time. Of more, which a topic has that names another hub
each time, the oldest are forgotten: their hubs are answered with 410."""
RENEW_FROM, RENEW_SPREAD = 0.7, 0.1
"""The share of a lease after which it is renewed, and its random variation (WebSub 5.1)."""


class UpstreamStatus(StrEnum):
    DISCOVERING = "discovering"
    """The topic's hub is being looked up."""
    PENDING = "pending"
    """A request was sent, and the hub has not verified it yet."""
    ACTIVE = "active"
    FAILED = "failed"
    """The last request failed, for `reason`; it is tried again later."""
    DENIED = "denied"
    """The hub has refused or ended it; it is tried again at its owner's request alone."""
    ENDING = "ending"
    """Removed by its owner, but not unsubscribed at its hub yet."""


class UpstreamRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """The request of an owner; `base_url` is where other hubs reach this one."""

    url: str
    kind: Kind
    sink: str
    base_url: str
    lease_seconds: int
    hub: str = ""
    """A hub to use without discovery, with `url` as the topic; empty for the one it names."""
    routing_key: str | None = None
    """None for the key that comes with each message (`X-AMQP-Routing-Key`)."""
    is_signed: bool = True
    min_renewal_s: int = 0
    """How long a lease is not renewed, though it may end before."""


class UpstreamLease(msgspec.Struct, frozen=True, omit_defaults=True):
    """One subscription at a hub; each renewal has a new one, with a token for its callback."""

    token: str
    hub_url: str
    topic: str
    secret: str | None = None
    expires_at: float = 0.0
    """Wall time in seconds; 0 until the hub has verified it."""
    leave_at: float = 0.0
    """When it is unsubscribed; messages are taken until then. 0 for never."""


class UpstreamLeases(msgspec.Struct, frozen=True, omit_defaults=True):
    """The leases of an upstream, stored encrypted and never shown."""

    pending: UpstreamLease | None = None
    current: UpstreamLease | None = None
    leaving: tuple[UpstreamLease, ...] = ()
    given_secret: str | None = None
    """The secret that the owner has chosen; None for a random one for each lease."""
    authorization: str | None = None
    """`Basic ...`, for a topic and a hub that require credentials."""

    def all(self) -> list[UpstreamLease]:
        first = (lease for lease in (self.pending, self.current) if lease is not None)
        return [*first, *self.leaving]


@dataclass(frozen=True, slots=True)
class Upstream:
    """A subscription of this hub at another one, as it is stored."""

    id: str
    vhost: str
    name: str
    owner: str
    request: UpstreamRequest
    leases: UpstreamLeases
    status: UpstreamStatus = UpstreamStatus.DISCOVERING
    reason: str = ""
    renew_at: float = 0.0
    """Wall time in seconds; a past one means at once."""

    @property
    def sink(self) -> Resource:
        return Resource(self.vhost, self.request.kind, self.request.sink)

    def is_served(self, now_s: float) -> bool:
        """Returns whether it has a lease that has not ended."""
        current = self.leases.current
        return current is not None and current.expires_at > now_s

    def callback(self, lease: UpstreamLease) -> str:
        return self.request.base_url + CALLBACK_PATH + lease.token

    def lease(self, token: str) -> UpstreamLease | None:
        return next((lease for lease in self.leases.all() if lease.token == token), None)


def discovering(upstream: Upstream, now_s: float) -> Upstream:
    """Returns the upstream while its topic's hub is looked up; one with a lease stays active."""
    if upstream.is_served(now_s):
        return upstream
    return replace(upstream, status=UpstreamStatus.DISCOVERING, reason="")


def asking(upstream: Upstream, lease: UpstreamLease, now_s: float) -> Upstream:
    """Returns the upstream with the lease that is being requested."""
    status = UpstreamStatus.ACTIVE if upstream.is_served(now_s) else UpstreamStatus.PENDING
    leases = msgspec.structs.replace(upstream.leases, pending=lease)
    return replace(upstream, status=status, reason="", leases=leases)


def confirmed(upstream: Upstream, now_s: float, lease_s: int, chance: float) -> Upstream:
    """Returns the upstream with the pending lease in place of the current one; `chance` in [0, 1)
    varies the renewal."""
    pending, old = upstream.leases.pending, upstream.leases.current
    assert pending is not None
    leaving = upstream.leases.leaving
    if old is not None:
        overlap_s = min(OVERLAP_S, max(0.0, old.expires_at - now_s) / 2)
        leaving = (*leaving, msgspec.structs.replace(old, leave_at=now_s + overlap_s))
    current = msgspec.structs.replace(pending, expires_at=now_s + lease_s)
    leases = msgspec.structs.replace(
        upstream.leases, pending=None, current=current, leaving=leaving[-MAX_LEAVING:]
    )
    renewal_s = max(lease_s, upstream.request.min_renewal_s / RENEW_FROM)
    renew_at = now_s + renewal_s * (RENEW_FROM + RENEW_SPREAD * chance)
    return replace(
        upstream, status=UpstreamStatus.ACTIVE, reason="", leases=leases, renew_at=renew_at
    )


def failed(upstream: Upstream, now_s: float, reason: str) -> Upstream:
    """Returns the upstream after a request that failed; one with a lease stays active, with the
    reason."""
    status = UpstreamStatus.ACTIVE if upstream.is_served(now_s) else UpstreamStatus.FAILED
    return replace(upstream, status=status, reason=reason)


def refused(upstream: Upstream, reason: str) -> Upstream:
    """Returns the upstream whose owner may not write its content to the sink."""
    return replace(upstream, status=UpstreamStatus.FAILED, reason=reason)


def accepted(upstream: Upstream) -> Upstream:
    """Returns the upstream whose content can be written again."""
    return replace(upstream, status=UpstreamStatus.ACTIVE, reason="")


def denied(upstream: Upstream, token: str, reason: str) -> Upstream:
    """Returns the upstream after its hub has refused or ended the lease with this token."""
    leases = without(upstream, token).leases
    if any(lease.token == token for lease in upstream.leases.leaving):
        return replace(upstream, leases=leases)
    return replace(upstream, status=UpstreamStatus.DENIED, reason=reason, leases=leases)


def without(upstream: Upstream, token: str) -> Upstream:
    """Returns the upstream without the lease with this token, which has ended."""
    leases = upstream.leases
    remaining = msgspec.structs.replace(
        leases,
        pending=None if leases.pending and leases.pending.token == token else leases.pending,
        current=None if leases.current and leases.current.token == token else leases.current,
        leaving=tuple(lease for lease in leases.leaving if lease.token != token),
    )
    return replace(upstream, leases=remaining)


def ending(upstream: Upstream, now_s: float) -> Upstream:
    """Returns the upstream that its owner removes. A pending lease is dropped, so its verification
    will be refused."""
    return replace(
        upstream, status=UpstreamStatus.ENDING, reason="", leases=_leave(upstream.leases, now_s)
    )


def changed(
    upstream: Upstream, owner: str, request: UpstreamRequest, leases: UpstreamLeases, now_s: float
) -> Upstream:
    """Returns the upstream with the owner's new request; the lease is kept unless the topic or hub
    is another."""
    remaining = upstream.leases
    if (request.url, request.hub) != (upstream.request.url, upstream.request.hub):
        remaining = _leave(remaining, now_s)
    remaining = msgspec.structs.replace(
        remaining,
        pending=None,
        given_secret=leases.given_secret,
        authorization=leases.authorization,
    )
    new = replace(upstream, owner=owner, request=request, leases=remaining, renew_at=0.0)
    return discovering(replace(new, status=UpstreamStatus.ACTIVE, reason=""), now_s)


def _leave(leases: UpstreamLeases, now_s: float) -> UpstreamLeases:
    """Returns the leases with all of them to be left now, and none pending."""
    leaving = [leases.current] if leases.current is not None else []
    all_leaving = [
        msgspec.structs.replace(lease, leave_at=min(lease.leave_at or now_s, now_s))
        for lease in (*leases.leaving, *leaving)
    ][-MAX_LEAVING:]
    return msgspec.structs.replace(leases, pending=None, current=None, leaving=tuple(all_leaving))
