"""Reading callback URLs: scheme, host and port, without asking the network.

The rules are stricter than RFC 3986, because two readers of a URL must not disagree about its host.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from ..errors import CallbackRefused
from .addresses import Address, parse_address
from .own import DEFAULT_PORTS

MAX_CALLBACK_LENGTH = 2_048
"""The length that browsers and proxies accept; it also bounds the rows of tables."""
_MAX_HOST_LENGTH = 253  # RFC 1035 2.3.4
_FIELD = "hub.callback"
_NO_USER = "no user or password in a URL; those for a callback go into hub.basic_auth"
_PRINTABLE = re.compile(r"[!-~]+")
_BACKSLASH_LIKE = re.compile(r'[\\<>"`{}|^]')
_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?")
_LABEL = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")
# With a number as its last label a host is an IPv4 address, as in 127.1 and 0x7f000001.
_NUMBER = re.compile(r"[0-9]+|0[xX][0-9a-fA-F]*")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The scheme, host and port of a URL; `literal` is the address where the host is one.

    A host with a final dot, which stands for the root of all names (RFC 3986 3.2.2), is the one
    without; only the Host field has it as it is written.
    """

    scheme: str
    host: str
    port: int
    literal: Address | None
    final_dot: str = ""


def read_callback(url: str) -> Endpoint:
    """Returns where the URL leads. Raises `CallbackRefused` for what is no plain HTTP URL."""
    if not url:
        raise refused(url, "is empty")
    if len(url) > MAX_CALLBACK_LENGTH:
        limit = f"{MAX_CALLBACK_LENGTH} characters"
        raise refused(url, f"is {len(url)} characters long", limit)
    if not _PRINTABLE.fullmatch(url) or _BACKSLASH_LIKE.search(url):
        raise refused(url, "has characters that a URL must percent-encode")
    split = _split(url)
    if split.scheme not in DEFAULT_PORTS:
        # A host and its port look like a scheme and a path.
        is_host = not split.scheme or split.path[:1].isdigit()
        advice = "has no scheme: write http:// or https:// before it"
        raise refused(url, advice if is_host else f"has the scheme '{split.scheme}'", "http, https")
    if "@" in split.netloc:
        raise CallbackRefused("carries user information", field=_FIELD, limit=_NO_USER)
    if "#" in url:
        raise refused(url, "has a fragment")
    host, literal = _read_host(url, split)
    final_dot = "." if (split.hostname or "").endswith(".") else ""
    return Endpoint(split.scheme, host, _read_port(url, split), literal, final_dot)


def _split(url: str) -> SplitResult:
    try:
        split = urlsplit(url)
        _ = split.port  # parsed on access
    except ValueError as error:
        raise refused(url, f"can't be read: {error}") from error
    return split


def _read_host(url: str, split: SplitResult) -> tuple[str, Address | None]:
    host = split.hostname
    if host is None or not _AUTHORITY.fullmatch(split.netloc):
        raise refused(url, "has no valid host and port")
    host = host.removesuffix(".")
    labels = host.split(".")
    if "[" in split.netloc or _NUMBER.fullmatch(labels[-1]):
        return host, _read_address(url, host)
    if len(host) > _MAX_HOST_LENGTH or not all(_LABEL.fullmatch(label) for label in labels):
        raise refused(url, f"has no valid host name ('{host}')")
    return host, None


def _read_address(url: str, host: str) -> Address:
    try:
        return parse_address(host)
    except ValueError as error:
        raise refused(url, f"has no plain address: {error}") from error


def _read_port(url: str, split: SplitResult) -> int:
    port = split.port if split.port is not None else DEFAULT_PORTS[split.scheme]
    if not 0 < port < 65_536:
        raise refused(url, f"has the port {port}", "1 to 65535")
    return port


def refused(value: str, reason: str, limit: str | None = None) -> CallbackRefused:
    """Returns the error for a refused URL or host."""
    return CallbackRefused(reason, field=_FIELD, value=value, limit=limit)
