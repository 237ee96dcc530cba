"""Callback URLs in the log of attempts: sealed, for many contain a secret."""

from __future__ import annotations

from ..keys.seal import Sealer

MAX_REMEMBERED = 10_000


class SealedUrls:
    """Seals and opens each URL of a subscription once, for all its attempts."""

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer
        self._sealed: dict[tuple[str, str], str] = {}
        self._opened: dict[tuple[str, str], str] = {}

    def seal(self, url: str, subscription_id: str) -> str:
        if not url:
            return ""
        found = self._sealed.get((subscription_id, url))
        if found is None:
            # A URL may contain half a surrogate pair, which can't be encoded.
            text = url.encode(errors="replace").decode()
            found = self._sealer.seal(text, subscription_id)
            _remember(self._sealed, (subscription_id, url), found)
        return found

    def open(self, sealed: str, subscription_id: str) -> str:
        """Returns "" for an old attempt without a URL."""
        if not sealed:
            return ""
        found = self._opened.get((subscription_id, sealed))
        if found is None:
            found = self._sealer.open(sealed, subscription_id)
            _remember(self._opened, (subscription_id, sealed), found)
        return found


def _remember(found: dict[tuple[str, str], str], key: tuple[str, str], value: str) -> None:
    if len(found) >= MAX_REMEMBERED:
        found.clear()
    found[key] = value
