"""The exchanges for the content of external topics, with the topic's URL as the routing key.

A subscription to an external topic is thereby one to an exchange, and an AMQP client can bind
a queue to a feed by its URL.
"""

from __future__ import annotations

import hashlib

VHOST = "/"
CONTENT = "hub.topics"
"""Direct exchange: the topic's whole content, each time it has changed."""
ENTRIES = "hub.entries"
"""Direct exchange: of feeds the new and changed entries alone, else as `CONTENT`."""
MAX_KEY_BYTES = 255


def topic_key(url: str) -> str:
    """Returns the URL, or its digest if it is too long for a routing key."""
    if len(url.encode()) <= MAX_KEY_BYTES:
        return url
    return "sha256:" + hashlib.sha256(url.encode()).hexdigest()
