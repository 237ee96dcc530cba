"""Where the content of external topics is published: two exchanges, the topic's URL as the key.

A subscription to an external topic is thereby one to an exchange, and an AMQP client can bind
a queue to a feed by its URL.
"""

from __future__ import annotations

import hashlib

VHOST = "/"
CONTENT = "hub.topics"
"""Direct exchange: the topic's whole content, each time it has changed."""
ENTRIES = "hub.entries"
"""Direct exchange: of feeds only what is new or changed, all else as in `CONTENT`."""
MAX_KEY_BYTES = 255


def topic_key(url: str) -> str:
    """The URL, or where it is longer than a routing key may be, its digest."""
    if len(url.encode()) <= MAX_KEY_BYTES:
        return url
    return "sha256:" + hashlib.sha256(url.encode()).hexdigest()
