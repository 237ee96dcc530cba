"""Makes items of the messages that an output collects."""

from __future__ import annotations

import base64
import hashlib
from datetime import UTC, datetime

import msgspec

from ..feeds.feed import EXCHANGE as FEEDS_EXCHANGE
from ..formats.model import Attachment, Item, decode_item

MAX_ATTACHED_BYTES = 32 * 1024
"""The limit of a message that is no text: larger ones are named, and not put into the item."""


class CollectedMessage(msgspec.Struct, array_like=True):
    """A message as it goes to the worker process."""

    id: str
    """The message's id, or a text made of its sequence number."""
    routing_key: str
    content_type: str
    body: bytes
    feed: str
    """The name of its source: of the feed, or of the exchange or stream."""
    at_s: float
    """When it was published, or arrived; wall time."""
    exchange: str = ""
    """The exchange to which it was published."""
    is_mark: bool = False
    """Whether it is about near-duplicates, and no item."""


def scope_of(exchange: str, routing_key: str) -> str:
    """Returns the scope in which ids are unique: the feed that a message is of, or the exchange to
    which it was published, also where a stream has kept it."""
    return routing_key if exchange in (FEEDS_EXCHANGE, "") else exchange


def item_of(message: CollectedMessage) -> Item:
    """Returns the item of a message: a JSON Feed item as it is, else one with the body as its
    content."""
    media_type = message.content_type.partition(";")[0].strip().lower()
    if media_type in ("", "application/json") or media_type.endswith("+json"):
        found = _json_item(message.body)
        if found is not None:
            return found
    item = Item(
        id=message.id,
        title=message.routing_key or message.feed,
        date_published=date_of(message.at_s),
    )
    text = _text(message, media_type)
    if text is None:
        return _attached(item, message, media_type)
    if media_type in ("text/html", "application/xhtml+xml"):
        return msgspec.structs.replace(item, content_html=text)
    return msgspec.structs.replace(item, content_text=text)


def digest_of(message: CollectedMessage, encoded: bytes) -> str:
    """Returns a digest of the item, without a date that only the arrival has given it."""
    date = b'"date_published":"%s"' % date_of(message.at_s).encode()
    return hashlib.sha256(encoded.replace(date, b'"date_published":""', 1)).hexdigest()


def _json_item(body: bytes) -> Item | None:
    try:
        item = decode_item(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    # An id alone makes no item: other JSON has one too.
    return item if item.id and item != Item(item.id) else None


def _text(message: CollectedMessage, media_type: str) -> str | None:
    """Returns the body as text, None for one that is no text by its type or its bytes."""
    is_text = media_type == "" or media_type.startswith("text/")
    is_text = is_text or media_type.endswith(("json", "xml", "yaml", "javascript"))
    if not is_text:
        return None
    charset = message.content_type.lower().partition("charset=")[2].strip(" \"'").partition(";")[0]
    for encoding in filter(None, (charset, "utf-8")):
        try:
            return message.body.decode(encoding)
        except (LookupError, ValueError):
            continue
    return None


def _attached(item: Item, message: CollectedMessage, media_type: str) -> Item:
    size, media_type = len(message.body), media_type or "application/octet-stream"
    text = f"{size} bytes of {media_type}"
    if size > MAX_ATTACHED_BYTES:
        return msgspec.structs.replace(item, content_text=text)
    url = f"data:{media_type};base64,{base64.b64encode(message.body).decode()}"
    attachment = Attachment(url=url, mime_type=media_type, size_in_bytes=size)
    return msgspec.structs.replace(item, content_text=text, attachments=[attachment])


def date_of(at_s: float) -> str:
    """Returns a wall time as RFC 3339, "" for one beyond the year 9999."""
    try:
        date = datetime.fromtimestamp(at_s, UTC)
    except (OverflowError, ValueError, OSError):
        return ""
    return date.isoformat(timespec="seconds").replace("+00:00", "Z")
