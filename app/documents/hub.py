"""The documents of topics, subscriptions at other hubs, capabilities, tokens and tunnels."""

from __future__ import annotations

from typing import TypedDict

from .common import Letter, Paged, Time


class Topic(TypedDict):
    url: str
    key: str
    subscribers: int
    content_type: str
    checked_at: Time | None
    changed_at: Time | None
    due_at: Time | None
    failures: int
    error: str
    notice: str


class TopicPage(Paged):
    items: list[Topic]
    item_count: int
    total_count: int


class Sink(TypedDict):
    type: Letter
    name: str


class Upstream(TypedDict):
    vhost: str
    name: str
    owner: str
    url: str
    hub: str | None
    sink: Sink
    routing_key: str | None
    lease_seconds: int
    signed: bool
    status: str
    reason: str
    hub_url: str | None
    self: str | None
    expires_at: Time | None
    renew_at: Time | None


class EnrolledTunnel(TypedDict):
    """The label of a tunnelled application. `expires_in_s` is 0 for a label whose lease has ended;
    `requests` counts those that were passed to the application since the server's start."""

    label: str
    url: str
    owner: str
    waiting_polls: int
    queued: int
    in_flight: int
    lease_s: int
    expires_in_s: float
    requests: int
    since: Time | None


class BlockedLabel(TypedDict):
    """A label that an administrator has taken from its owner."""

    label: str
    owner: str
    until: Time | None


class EnrolledTunnels(TypedDict):
    tunnels: list[EnrolledTunnel]
    blocked: list[BlockedLabel]


class Capability(TypedDict):
    id: str
    vhost: str
    type: Letter
    name: str
    routing_key: str | None
    owner: str
    note: str
    made_at: Time
    expires_at: Time | None


class Scope(TypedDict, total=False):
    """The scope of a token: one of `read` and `write`, with `x/NAME` or `q/NAME`, `tunnel`, with a
    label, or `manage`, with `read` or `write` and a `path` below `/api`."""

    read: str
    write: str
    vhost: str
    tunnel: str
    manage: str
    path: str


class Token(TypedDict):
    id: str
    name: str
    owner: str
    scopes: list[Scope]
    made_at: Time
    expires_at: Time
    last_used_at: Time | None


class MadeToken(Token):
    token: str


class MadeCapability(TypedDict):
    id: str
    url: str
