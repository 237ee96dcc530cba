"""A registered feed as it is stored: what its owner asked for, and the outcome of its last poll.

Times are wall time in seconds, 0 for never.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Literal

import msgspec

from ...core.auth.reserved import FEEDS_EXCHANGE
from ..formats.read_feed import Cloud, PollHints
from .rate import Rates

EXCHANGE: Final = FEEDS_EXCHANGE
"""Topic exchange of each virtual host with feeds: a message for each new or changed entry, with
the feed's name as its routing key."""


FeedVisibility = Literal["public", "private"]
"""Who may read the feed's documents: everybody, or its owner and administrators."""


class FeedState(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"
    """Paused by its owner; it is not polled."""
    GONE = "gone"
    """Its server answered 410; it is not polled until somebody asks for it."""


class PushState(StrEnum):
    NONE = "none"
    """The feed names no way to push that this hub can use."""
    PENDING = "pending"
    """Push was requested, and is not confirmed yet."""
    ACTIVE = "active"
    BROKEN = "broken"
    """A poll found entries that no push had announced."""
    FAILED = "failed"
    """Push was refused; polling goes on as without it."""


class PushStatus(msgspec.Struct, frozen=True, omit_defaults=True):
    """The state of push beside polling: how the feed's server announces changes."""

    state: PushState = PushState.NONE
    hub_url: str = ""
    """The hub of WebSub; empty for none."""
    topic_url: str = ""
    """The feed's own URL, which is subscribed to there."""
    cloud: Cloud | None = None
    reason: str = ""
    received_at: float = 0.0
    renew_at: float = 0.0
    """When RSS cloud is registered with again."""


class FeedRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """The part of a feed that its owner asked for."""

    first: int = 0
    """How many of the entries that the first poll finds are published, the newest ones."""
    min_interval_s: int = 0
    """0 for the setting."""
    selector: str = ""
    """The part of a page or of data that is watched; empty for a feed (`formats.reading.read`)."""
    hub: str = ""
    """A WebSub hub to subscribe at, for feeds that name none."""
    visibility: FeedVisibility = "public"
    folder: str = ""
    """The titles of the folders around an imported feed, with slashes between them."""


class FeedStatus(msgspec.Struct, frozen=True, omit_defaults=True):
    """The results of the polls so far."""

    title: str = ""
    home_page_url: str = ""
    format: str = ""
    etag: str = ""
    last_modified: str = ""
    digest: str = ""
    """The digest of the last body."""
    checked_at: float = 0.0
    succeeded_at: float = 0.0
    changed_at: float = 0.0
    registered_at: float = 0.0
    failures: int = 0
    """Consecutive ones."""
    error: str = ""
    local_failure: str = ""
    """Why this server could not store or publish what the last poll has found."""
    local_failures: int = 0
    """Consecutive ones."""
    notices: tuple[str, ...] = ()
    """Faults of the feed, which was read nevertheless."""
    rates: Rates = Rates()
    interval_s: float = 0.0
    hints: PollHints | None = None
    entries: int = 0
    """Entries of the last document."""
    published: int = 0
    """Messages so far."""
    is_unpublished: bool = False
    """Whether the entries of poll `Feed.number` may have no messages yet, for an engine whose log
    does not tell."""
    push: PushStatus = PushStatus()


class Feed(msgspec.Struct, frozen=True, kw_only=True):
    """A registered feed."""

    id: str
    name: str
    vhost: str
    owner: str
    url: str
    request: FeedRequest = FeedRequest()
    state: FeedState = FeedState.ACTIVE
    number: int = 0
    """The number of the last poll that found a change."""
    next_at: float = 0.0
    status: FeedStatus = FeedStatus()

    @property
    def series(self) -> str:
        """The series of its transactions; no user's, since the id is random (`Transactions`)."""
        return f"{self.id}\0feed"
