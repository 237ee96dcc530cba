"""Routing: which queues a message goes to, by exchanges, bindings and alternates.

`registry` makes exchanges, `exchange` holds bindings, `resolve` walks from an exchange to the
queues and gives a `Route`. The imports below put each exchange type into the registry: a new
type is one more module here.
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
