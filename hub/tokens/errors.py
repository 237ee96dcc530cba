"""The errors of requests about tokens."""

from __future__ import annotations

from ..errors import HubError


class TooManyTokens(HubError):
    """The user has as many valid tokens as one may have."""

    status = 429
    title = "Too many tokens"
