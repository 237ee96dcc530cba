"""Items as they are stored, and what is stored for them."""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec

Kind = Literal["new", "updated"]
MAX_DIGESTS = 1_000
"""The digests of a collection, kept for change detection: as many as a document may have items."""

OWN_IDS = "urn:warren:item:"
"""What the ids of an output's items begin with whose id is that of an item of another origin."""


class NewItem(msgspec.Struct, frozen=True):
    """An item to store; `body` is JSON, as `formats.model.encode_item` returns it."""

    item_id: str
    digest: str
    body: bytes
    kind: Kind = "new"
    origin: str = ""
    """Of an output's item: a digest of where its message was published."""


class KnownItem(NamedTuple):
    """What is stored of each item of an output, as long as it is known."""

    digest: str
    origin: str


class StoredItem(msgspec.Struct, frozen=True):
    """An item of a collection."""

    number: int
    """Its place: it rises with each item that is stored, also with a changed one."""
    item_id: str
    digest: str
    body: bytes
    kind: Kind
    at: float
    """When it was stored; wall time in seconds."""


def feed_collection(name: str) -> str:
    """Returns the collection of a feed's items."""
    return f"f:{name}"


def output_collection(name: str) -> str:
    """Returns the collection of an output's items."""
    return f"o:{name}"
