"""The errors of the relay, each with its HTTP status."""

from __future__ import annotations

from ..errors import HubError


class NotRelayed(HubError):
    """A request is not sent to another server, or has no answer from it."""

    status = 503
    title = "Not relayed"


class RelayFull(HubError):
    """Too many requests are under way."""

    status = 503
    title = "Relay full"
    retry_after_s = 1
