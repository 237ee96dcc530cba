"""Warren: an HTTP-first pubsub hub over an AMQP 0-9-1 core.

The packages `app`, `core` and `hub` stand inside this one when Warren is installed.
"""

from __future__ import annotations

from warrenmq.core import VERSION as __version__

__all__ = ["__version__"]
