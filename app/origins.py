"""Which web pages may speak to this server with what everybody knows, the password of `guest`.

A browser says for which page it asks, in the field Origin (RFC 6454 7).
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address
from urllib.parse import urlsplit

ANY_ORIGIN = "*"
_USUAL_PORTS = {"http": ":80", "https": ":443"}


class Origins:
    """Our own pages, those of the setting, and programs that are no page."""

    def __init__(self, own_urls: Iterable[str], allowed: str = "") -> None:
        self._allowed = {_origin(one.strip()) for one in allowed.split(",")} - {""}
        self._allowed |= {_origin(url) for url in own_urls}

    def allow(self, origin: str, host: str) -> bool:
        """`host` is the request's Host field.

        A page that came from the very address that it connects to is ours, but not if that is a
        name: names can be made to lead here for the second request.
        """
        origin = origin.lower()
        if origin in self._allowed or ANY_ORIGIN in self._allowed:
            return True
        _, separator, authority = origin.partition("://")
        return bool(separator) and authority == host.lower() and _is_address(authority)


def _origin(url: str) -> str:
    """Scheme, host and port as a browser sends them: without the port that the scheme has anyway.

    What is no URL stays as it is.
    """
    parts = urlsplit(url)
    if not parts.netloc:
        return url
    authority = parts.netloc.removesuffix(_USUAL_PORTS.get(parts.scheme.lower(), "")) or ""
    return f"{parts.scheme}://{authority}".lower()


def _is_address(authority: str) -> bool:
    """`127.0.0.1:15672`, `[::1]`."""
    try:
        ip_address(urlsplit(f"//{authority}").hostname or "")
    except ValueError:
        return False
    return True
