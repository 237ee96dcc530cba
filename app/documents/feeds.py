"""The documents of registered feeds."""

from __future__ import annotations

from typing import TypedDict

from .common import DocumentLinks, Paged, Time


class Push(TypedDict):
    """The state of push beside polling. `state` is none, pending, active, broken or failed."""

    state: str
    hub_url: str
    cloud: str
    reason: str
    received_at: Time | None


class Feed(TypedDict):
    """A registered feed. `state` is new, ok, failing, dead, paused or gone; `health` says it in
    words. `visibility` is public or private. `entries_a_week` is null while it is unknown,
    `next_poll_at` while the feed is not polled."""

    name: str
    vhost: str
    owner: str
    url: str
    title: str
    home_page_url: str
    format: str
    exchange: str
    routing_key: str
    state: str
    health: str
    registered_at: Time | None
    checked_at: Time | None
    succeeded_at: Time | None
    changed_at: Time | None
    next_poll_at: Time | None
    interval_s: int
    failures: int
    error: str
    notices: list[str]
    entries: int
    entries_a_week: float | None
    published: int
    first: int
    min_interval_s: int | None
    selector: str
    hub: str
    visibility: str
    folder: str
    push: Push
    documents: DocumentLinks


class FeedStatistics(TypedDict):
    """Statistics about all feeds that were found; `states` and `push` count them by state.
    `entries_a_week` is of those of which it is known."""

    feeds: int
    states: dict[str, int]
    push: dict[str, int]
    hosts: int
    entries_a_week: float
    published: int


class FeedPage(Paged):
    items: list[Feed]
    statistics: FeedStatistics
    item_count: int
    total_count: int


class RefusedFeed(TypedDict):
    url: str
    reason: str


class FeedImport(TypedDict):
    """An import of feeds. `state` is running, done or failed; `refused` has the first hundred."""

    id: str
    vhost: str
    owner: str
    state: str
    total: int
    done: int
    added: int
    known: int
    refused_count: int
    refused: list[RefusedFeed]
    error: str
    started_at: Time | None
    ended_at: Time | None
