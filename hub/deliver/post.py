"""A message as the POST that delivers it (rabbithub.md section 4, http_contract 15-17)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote

from ...core.model import Message
from ..intent import append_query
from ..signature import sign
from ..subscription import Subscription
from .envelope import Envelope

DEFAULT_CONTENT_TYPE = "application/octet-stream"
_PRINTABLE = re.compile(r"[ -~]*")
_VERBATIM = "!\"#$&'()*+,-./:;<=>?@[\\]^_`{|}~ "
_HEADER_TEXT = re.compile(r"[^\x00-\x1f\x7f]+")


@dataclass(frozen=True, slots=True)
class Post:
    url: str
    headers: dict[str, str]
    body: bytes


def make_post(
    subscription: Subscription,
    envelope: Envelope,
    message: Message,
    *,
    now_s: float,
    signature_method: str,
) -> Post:
    """`now_s` is wall time: the timestamp is that of the attempt."""
    headers = {
        "Content-Type": _content_type(message),
        "X-AMQP-Routing-Key": header_value(envelope.routing_key),
        "X-AMQP-Redelivered": _redelivered(envelope, message),
        "webhook-id": header_value(envelope.message_id),
        "webhook-timestamp": str(int(now_s)),
    }
    if envelope.exchange:
        headers["X-AMQP-Exchange"] = header_value(envelope.exchange)
    if subscription.source.kind == "q":
        headers["X-AMQP-Queue"] = header_value(subscription.source.name)
    if subscription.secret is not None:
        headers["X-Hub-Signature"] = sign(signature_method, subscription.secret, message.body)
    url = append_query(subscription.callback, ("hub.topic", envelope.routing_key))
    return Post(url, headers, message.body)


def header_value(text: str) -> str:
    """Printable ASCII as it is; anything else as UTF-8, percent-encoded."""
    if _PRINTABLE.fullmatch(text):
        return text
    return quote(text, safe=_VERBATIM, errors="surrogateescape")


def _content_type(message: Message) -> str:
    # A publisher over AMQP can put anything there: what would break the head is no type.
    stored = message.properties.content_type
    return stored if stored and _HEADER_TEXT.fullmatch(stored) else DEFAULT_CONTENT_TYPE


def _redelivered(envelope: Envelope, message: Message) -> str:
    return "true" if message.redelivered or envelope.failures else "false"
