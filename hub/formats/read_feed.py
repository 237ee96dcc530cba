"""The result of reading a document."""

from __future__ import annotations

from typing import Literal

import msgspec

from ...core.errors import WarrenError
from .model import FeedHead, Item

MAX_ITEMS = 1_000
"""Items read of one document, the first ones; later ones are ignored, with a notice."""

MORE_ITEMS = f"it has more than {MAX_ITEMS:,} items, the first ones are read"
MAX_LISTED = 100
"""Authors, tags and attachments read of an item, each; also of a feed's head."""
MAX_SELECTOR_CHARACTERS = 500

SourceFormat = Literal["atom", "rss", "rdf", "cdf", "json", "page", "data"]
"""`page` and `data` are documents that are no feeds, read with a selector."""


class FeedRefused(WarrenError):
    """The document breaks a rule, and is not read."""


class ReadItem(msgspec.Struct, omit_defaults=True):
    """An item; its `id` is the source's, or what stands for it (see `identity.py`)."""

    item: Item
    digest: str
    """The digest of the normalised content: it differs when titles, texts or links do, not with
    dates."""
    repeated_id: str = ""
    """The id that it has in common with others of the document; empty if it has its own."""


class PollHints(msgspec.Struct, omit_defaults=True):
    """The wishes of a feed about when it is fetched; times are GMT."""

    ttl_s: int | None = None
    """The `ttl` of RSS: how long it may be cached."""
    skip_hours: tuple[int, ...] = ()
    """From 0 to 23."""
    skip_days: tuple[int, ...] = ()
    """From 0, Monday, to 6."""
    update_interval_s: int | None = None
    """The interval of `sy:updatePeriod` and `sy:updateFrequency`."""


class Cloud(msgspec.Struct):
    """The server at which the feed can be subscribed to by RSS cloud (RSS 2.0, `cloud`)."""

    domain: str
    port: int
    path: str
    procedure: str
    protocol: str
    """`xml-rpc`, `soap` or `http-post`."""


class ReadFeed(msgspec.Struct, tag=True, omit_defaults=True):
    """A feed that was read."""

    format: SourceFormat
    version: str
    """The format in words, such as `RSS 2.0`."""
    head: FeedHead
    items: list[ReadItem]
    hints: PollHints
    self_url: str = ""
    hub_urls: tuple[str, ...] = ()
    """The hubs inside the document; Link fields of the answer are read by `hub/links`."""
    cloud: Cloud | None = None
    notices: tuple[str, ...] = ()
    """Faults of the feed, which was read nevertheless, in words for its user."""
    is_whole: bool = True
    """Whether the document has come to its end."""


class Candidate(msgspec.Struct):
    """A feed that a page names in its head."""

    url: str
    title: str
    media_type: str


class ReadFailure(msgspec.Struct, tag=True):
    """The reason why a document is no feed, and the feeds that it names."""

    reason: str
    candidates: tuple[Candidate, ...] = ()
