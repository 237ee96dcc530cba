"""Warren: an HTTP-first pubsub hub over an AMQP 0-9-1 core.

The packages `app`, `core` and `hub` stand inside this one when Warren is installed. `Warren` is a
server for test suites and for programs that bring their own (docs/testing.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warrenmq.core import VERSION as __version__

if TYPE_CHECKING:
    from warrenmq.app.testing.server import Warren

__all__ = ["Warren", "__version__"]


def __getattr__(name: str) -> Any:
    """Imports `Warren` when it is used."""
    if name == "Warren":
        from warrenmq.app.testing.server import Warren

        return Warren
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
