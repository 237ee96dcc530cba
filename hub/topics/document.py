"""One version of a topic's content, compared with what was known before."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from ...core.errors import WarrenError
from .entries import Known

_MAX_TYPE_BYTES = 255  # AMQP's for a short string


class ContentRefused(WarrenError):
    """The content is not distributed, for the reason in the text."""


@dataclass(slots=True)
class TopicDocument:
    """One version of a topic's content, compared with what was known before."""

    content_type: str
    body: bytes
    digest: str
    known: Mapping[str, str]
    """The known digests with those of its entries; empty if it is no feed."""
    news: bytes | None
    """The feed with its new and changed entries alone, None without any; the whole content if it is
    no feed, or one whose entries can't be told apart."""
    notice: str = ""
    """A fault for its publisher to mend; empty without one."""


def check_content(content_type: str, body: bytes) -> None:
    """Raises `ContentRefused` for what no message can carry; all else is distributed whole."""
    if not body:
        raise ContentRefused("it is empty")
    if len(content_type.encode()) > _MAX_TYPE_BYTES:
        raise ContentRefused(f"its Content-Type is longer than {_MAX_TYPE_BYTES} bytes")


def whole_document(content_type: str, body: bytes, known: Known, unread: str = "") -> TopicDocument:
    """Returns the content whose news are all of it; `unread` is why a feed could not be read, of
    which the entries remain known."""
    digest = hashlib.sha256(content_type.encode() + b"\0" + body).hexdigest()
    if not unread:
        return TopicDocument(content_type, body, digest, {}, body)
    notice = f"its new entries can't be told, so subscribers to them get it whole: {unread}"
    return TopicDocument(content_type, body, digest, known, body, notice)
