"""Routing: which queues a message goes to, by exchanges, bindings and alternates.

`registry` makes exchanges, `exchange` holds bindings, `resolve` walks from an exchange to the
queues and gives a `Route`. The imports below put each exchange type into the registry: a new
type is one more module here.
"""

from . import direct, fanout, headers, topic

__all__ = ["direct", "fanout", "headers", "topic"]
