"""Routing: which queues a message goes to, by exchanges, bindings and alternates.

`registry` creates exchanges, `exchange` holds bindings, `resolve` follows them from an exchange to
the queues and returns a `Route`. The imports below register each exchange type: a new type is one
more module here.
"""

from . import (
    at_random,
    consistent_hash,
    delayed,
    direct,
    fanout,
    headers,
    modulus_hash,
    recent_history,
    topic,
)

__all__ = [
    "at_random",
    "consistent_hash",
    "delayed",
    "direct",
    "fanout",
    "headers",
    "modulus_hash",
    "recent_history",
    "topic",
]
