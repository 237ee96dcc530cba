"""The TLS context that all clients of the hub share."""

from __future__ import annotations

import ssl
from functools import cache


@cache
def client_tls() -> ssl.SSLContext:
    """Returns a context that trusts the system's authorities. The first call reads their
    certificates, which takes 20 ms: it is to be made outside the event loop."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context
