"""The options of the command line."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from .results import Unusable


@dataclass(frozen=True, slots=True)
class Options:
    hub: str
    listen: str = "127.0.0.1:0"
    """HOST:PORT of the server that plays publisher and subscribers; port 0 is any free one."""
    public_url: str = ""
    """URL at which the hub reaches that server; empty for the address it is bound to."""
    only: frozenset[int] = frozenset()
    """Numbers of checks; none means all."""
    slow: bool = False
    """Whether to wait for leases to end."""
    patience_s: float = 30.0
    """How long to wait for what a hub has to do, a second attempt included."""
    grace_s: float = 2.0
    """How long to wait for what a hub must not do, once it has done what others need."""
    settle_s: float = 1.0
    """Pause after the response to a verification, in which the hub stores the subscription."""
    short_lease_s: int = 10
    """The lease requested by checks that wait for its end."""
    longest_lease_s: int = 120
    """The end of a longer lease is not waited for."""
    user: str = ""
    password: str = ""
    parallel: int = 20
    """Checks at a time."""

    def check(self) -> None:
        """Raises `Unusable` for options that can't work."""
        split = _split("--hub", self.hub)
        host, _, port = self.listen.rpartition(":")
        if not host or not port.isdigit() or int(port) > 65_535:
            raise Unusable(f"--listen {self.listen}: give HOST:PORT, like 127.0.0.1:8000")
        if self.public_url:
            _split("--public-url", self.public_url)
        elif is_loopback(host.strip("[]")) and not is_loopback(split):
            raise Unusable(
                f"the hub at {split} can't reach this program on {host}: give --listen and "
                "--public-url, the address at which it can"
            )


def is_loopback(host: str) -> bool:
    """Returns whether the text is a loopback address or `localhost`; names are not resolved."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _split(option: str, url: str) -> str:
    """Returns the host of an HTTP URL; raises `Unusable` for any other text."""
    try:
        split = urlsplit(url)
        host = split.hostname
    except ValueError:
        host = None
    if host is None or split.scheme not in ("http", "https"):
        raise Unusable(f"{option} {url}: give an http or https URL")
    return host
