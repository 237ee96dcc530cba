"""Makes references absolute."""

from __future__ import annotations

from urllib.parse import urldefrag, urljoin, urlsplit

from ..guard.callback_url import MAX_CALLBACK_LENGTH

_SCHEMES = ("https", "http")


def resolve(url: str, base: str, reference: str) -> str | None:
    """Returns an HTTP URL without fragment, None for one that is no URL or too long for a
    request."""
    if not reference:
        return None
    try:
        target = urldefrag(urljoin(urljoin(url, base), reference)).url
        split = urlsplit(target)
    except ValueError:
        return None
    is_usable = split.scheme in _SCHEMES and split.hostname and len(target) <= MAX_CALLBACK_LENGTH
    return target if is_usable else None
