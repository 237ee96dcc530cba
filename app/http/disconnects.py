"""Notifies a handler that waits for something else that its client has disconnected.

Awaiting `receive` beside it would take a second task for each of thousands of clients that wait.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from starlette.types import Scope

from ..access.local_requests import CYCLE, is_gone

_GONE: Final = "gone"
"""Key in the extension `CYCLE`: what to call."""


def when_gone(scope: Scope, call: Callable[[], object]) -> None:
    """Calls `call` once when the client disconnects before its response is complete; at once if it
    has disconnected already."""
    if is_gone(scope):
        call()
        return
    extension = scope.get("extensions", {}).get(CYCLE)
    if extension is not None:
        extension[_GONE] = call


def forget_gone(extensions: dict[str, Any]) -> None:
    """Removes the call of `when_gone`: the response is complete. What it would have called may hold
    that response, and the scope lives until the connection ends."""
    extensions.get(CYCLE, {}).pop(_GONE, None)


def tell_gone(extensions: dict[str, Any]) -> None:
    """Makes the call of `when_gone`; `extensions` are those of the scope."""
    call = extensions.get(CYCLE, {}).pop(_GONE, None)
    if call is not None:
        call()
