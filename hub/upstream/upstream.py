"""A subscription of this hub at another one, and each step that it can take.

A step makes a new value of an old one and asks nobody; `registry.py` stores it before it counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

import msgspec

from ..requests import Kind, Resource

CALLBACK_PATH = "/hub/callback/"
"""Below this hub's base; a line's token follows."""
OVERLAP_S = 3_600.0
"""How long a renewed subscription is kept beside the new one, so that what its hub still holds
back for it gets here too."""
RENEW_FROM, RENEW_SPREAD = 0.7, 0.1
"""The part of a lease after which it is renewed, and how far that is spread (WebSub 5.1)."""


class Status(StrEnum):
    DISCOVERING = "discovering"
    """The topic is asked for its hub."""
    PENDING = "pending"
    """The hub is asked, and has not yet asked back."""
    ACTIVE = "active"
    FAILED = "failed"
    """Tried again later; `reason` says what is wrong."""
    DENIED = "denied"
    """The hub does not want it, or no more; it is not asked again until the owner does."""
    ENDING = "ending"
    """Removed by its owner; its hub is still to be told."""


class UpstreamRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """What its owner asked for; `base_url` is where other hubs reach this one."""

    url: str
    kind: Kind
    sink: str
    base_url: str
    lease_seconds: int
    hub: str = ""
    """Asked in place of the hub that the topic names, with `url` itself as the topic."""
    routing_key: str | None = None
    """None for the key that the other hub says (`X-AMQP-Routing-Key`)."""
    is_signed: bool = True


class UpstreamLease(msgspec.Struct, frozen=True, omit_defaults=True):
    """One subscription at a hub: of the callback's token, a new one at each renewal."""

    token: str
    hub_url: str
    topic: str
    secret: str | None = None
    expires_at: float = 0.0
    """Wall time in seconds; 0 until the hub has verified it."""
    leave_at: float = 0.0
    """When the hub is told that it is over; what comes before is taken."""


class UpstreamLeases(msgspec.Struct, frozen=True, omit_defaults=True):
    """Stored sealed, never shown."""

    pending: UpstreamLease | None = None
    current: UpstreamLease | None = None
    leaving: tuple[UpstreamLease, ...] = ()
    given_secret: str | None = None
    """The owner's choice; None has one made for each line."""
    authorization: str | None = None
    """`Basic ...` for a topic and a hub that want to know who asks."""

    def all(self) -> list[UpstreamLease]:
        first = (lease for lease in (self.pending, self.current) if lease is not None)
        return [*first, *self.leaving]


@dataclass(frozen=True, slots=True)
class Upstream:
    id: str
    vhost: str
    name: str
    owner: str
    request: UpstreamRequest
    leases: UpstreamLeases
    status: Status = Status.DISCOVERING
    reason: str = ""
    renew_at: float = 0.0
    """Wall time in seconds, in the past for what is to be done at once."""

    @property
    def sink(self) -> Resource:
        return Resource(self.vhost, self.request.kind, self.request.sink)

    def is_served(self, now_s: float) -> bool:
        """Whether its hub is bound to send content."""
        current = self.leases.current
        return current is not None and current.expires_at > now_s

    def callback(self, lease: UpstreamLease) -> str:
        return self.request.base_url + CALLBACK_PATH + lease.token

    def lease(self, token: str) -> UpstreamLease | None:
        return next((lease for lease in self.leases.all() if lease.token == token), None)


def discovering(upstream: Upstream, now_s: float) -> Upstream:
    """One that is served stays active meanwhile."""
    if upstream.is_served(now_s):
        return upstream
    return replace(upstream, status=Status.DISCOVERING, reason="")


def asking(upstream: Upstream, lease: UpstreamLease, now_s: float) -> Upstream:
    status = Status.ACTIVE if upstream.is_served(now_s) else Status.PENDING
    leases = msgspec.structs.replace(upstream.leases, pending=lease)
    return replace(upstream, status=status, reason="", leases=leases)


def confirmed(upstream: Upstream, now_s: float, lease_s: int, chance: float) -> Upstream:
    """The pending line takes the place of the current one; `chance` in [0, 1) spreads renewals."""
    pending, old = upstream.leases.pending, upstream.leases.current
    assert pending is not None
    leaving = upstream.leases.leaving
    if old is not None:
        overlap_s = min(OVERLAP_S, max(0.0, old.expires_at - now_s) / 2)
        leaving = (*leaving, msgspec.structs.replace(old, leave_at=now_s + overlap_s))
    current = msgspec.structs.replace(pending, expires_at=now_s + lease_s)
    leases = msgspec.structs.replace(
        upstream.leases, pending=None, current=current, leaving=leaving
    )
    renew_at = now_s + lease_s * (RENEW_FROM + RENEW_SPREAD * chance)
    return replace(upstream, status=Status.ACTIVE, reason="", leases=leases, renew_at=renew_at)


def failed(upstream: Upstream, now_s: float, reason: str) -> Upstream:
    """One that is still served says so, with what is wrong with its renewal."""
    status = Status.ACTIVE if upstream.is_served(now_s) else Status.FAILED
    return replace(upstream, status=status, reason=reason)


def refused(upstream: Upstream, reason: str) -> Upstream:
    """Its owner may not write what comes."""
    return replace(upstream, status=Status.FAILED, reason=reason)


def accepted(upstream: Upstream) -> Upstream:
    """Content is taken again."""
    return replace(upstream, status=Status.ACTIVE, reason="")


def denied(upstream: Upstream, token: str, reason: str) -> Upstream:
    """The hub has ended, or will not begin, what it knows by this token."""
    leases = without(upstream, token).leases
    if any(lease.token == token for lease in upstream.leases.leaving):
        return replace(upstream, leases=leases)
    return replace(upstream, status=Status.DENIED, reason=reason, leases=leases)


def without(upstream: Upstream, token: str) -> Upstream:
    """The line is over, whichever it is."""
    leases = upstream.leases
    remaining = msgspec.structs.replace(
        leases,
        pending=None if leases.pending and leases.pending.token == token else leases.pending,
        current=None if leases.current and leases.current.token == token else leases.current,
        leaving=tuple(lease for lease in leases.leaving if lease.token != token),
    )
    return replace(upstream, leases=remaining)


def ending(upstream: Upstream, now_s: float) -> Upstream:
    """What is pending is forgotten: its hub will ask back, and be told that nobody wants it."""
    return replace(upstream, status=Status.ENDING, reason="", leases=_leave(upstream.leases, now_s))


def changed(
    upstream: Upstream, owner: str, request: UpstreamRequest, leases: UpstreamLeases, now_s: float
) -> Upstream:
    """Asked for anew; what is served goes on meanwhile, unless it is another topic now."""
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
    return discovering(replace(new, status=Status.ACTIVE, reason=""), now_s)


def _leave(leases: UpstreamLeases, now_s: float) -> UpstreamLeases:
    leaving = [leases.current] if leases.current is not None else []
    over = [
        msgspec.structs.replace(lease, leave_at=min(lease.leave_at or now_s, now_s))
        for lease in (*leases.leaving, *leaving)
    ]
    return msgspec.structs.replace(leases, pending=None, current=None, leaving=tuple(over))
