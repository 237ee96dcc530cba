"""The web origins that may connect to this server (RFC 6454 7).

Without this check any web page could log in as `guest`, whose password is public.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address
from urllib.parse import urlsplit

ANY_ORIGIN = "*"
_USUAL_PORTS = {"http": ":80", "https": ":443"}


class AllowedOrigins:
    """The server's own origins and those of a setting (`websocket_origins`, `cors_origins`)."""

    def __init__(self, own_urls: Iterable[str], allowed: str = "") -> None:
        self._allowed = {_origin(one.strip()) for one in allowed.split(",")} - {""}
        self._allowed |= {_origin(url) for url in own_urls}

    def allow(self, origin: str, host: str) -> bool:
        """Returns whether the origin may connect; `host` is the request's Host field.

        An origin equal to the Host field is allowed if it is an IP address. A name is not enough:
        DNS rebinding can make it resolve to this server.
        """
        origin = origin.lower()
        if origin in self._allowed or ANY_ORIGIN in self._allowed:
            return True
        _, separator, authority = origin.partition("://")
        return bool(separator) and authority == host.lower() and _is_address(authority)


def _origin(url: str) -> str:
    """Returns scheme, host and port as a browser sends them, without the scheme's default port.

    Anything that is not a URL is returned unchanged.
    """
    parts = urlsplit(url)
    if not parts.netloc:
        return url
    authority = parts.netloc.removesuffix(_USUAL_PORTS.get(parts.scheme.lower(), "")) or ""
    return f"{parts.scheme}://{authority}".lower()


def _is_address(authority: str) -> bool:
    """Returns whether the host is an IP address, as in `127.0.0.1:15672` or `[::1]`."""
    try:
        ip_address(urlsplit(f"//{authority}").hostname or "")
    except ValueError:
        return False
    return True
