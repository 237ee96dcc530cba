"""The origins that requests are sent to, each checked by the guard once."""

from __future__ import annotations

import re
from typing import Final

from ..guard.callback_url import Endpoint
from ..guard.guard import Guard
from ..guard.own import DEFAULT_PORTS
from .port import SendError

MAX_ORIGINS: Final = 10_000
"""The number of origins in memory; about 3 MB."""
_ORIGIN: Final = re.compile(r"https?://[^/?#]*", re.IGNORECASE)
_PATH: Final = re.compile(r"[!-~]+")


class Origin:
    """A scheme, host and port (RFC 6454 4)."""

    __slots__ = ("host", "host_field", "is_tls", "port")

    def __init__(self, endpoint: Endpoint) -> None:
        host, port = endpoint.host, endpoint.port
        self.host = host
        self.port = port
        self.is_tls = endpoint.scheme == "https"
        written = f"[{host}]" if ":" in host else host + endpoint.final_dot
        is_usual = port == DEFAULT_PORTS[endpoint.scheme]
        self.host_field = written if is_usual else f"{written}:{port}"


class Origins:
    """Splits URLs into origin and path, with the same `Origin` for the same text."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._by_text: dict[str, Origin] = {}

    def split(self, url: str) -> tuple[Origin, str]:
        """Returns the origin, and the path with the query.

        The guard checks a new origin alone: callers with paths from others check whole URLs.
        Raises `CallbackRefused`, and `SendError` for a path with characters to be encoded.
        """
        match = _ORIGIN.match(url)
        text = match[0] if match else ""
        origin = self._by_text.get(text)
        if origin is None:
            origin = self._add(text)
        path = url[len(text) :]
        if not path.startswith("/"):
            path = f"/{path}"
        if not _PATH.fullmatch(path):
            raise SendError("the URL has characters that must be percent-encoded")
        return origin, path

    def _add(self, text: str) -> Origin:
        endpoint = self._guard.check(f"{text}/")
        if len(self._by_text) >= MAX_ORIGINS:
            self._by_text.clear()
        origin = Origin(endpoint)
        self._by_text[text] = origin
        return origin
