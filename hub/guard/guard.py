"""The guard between subscribers' URLs and the network the hub stands in (SSRF).

A callback is read strictly (`read_callback`), its name resolved once, all of its addresses
vetted, and the vetted ones dialled: a name that answers differently the second time, or has
one inner address among outer ones, gets nowhere. Verification and delivery share this guard.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from ..errors import CallbackRefused
from ..settings import HubSettings
from .address_cache import AddressCache
from .addresses import Address, embedded, is_in, is_public, is_this_machine, parse_address
from .failures import NoAddress
from .lookups import Lookups, Purpose
from .own import DEFAULT_PORTS, is_own

MAX_ADDRESSES = 64
"""Of one name: each is vetted, and each may be dialled."""
MAX_CALLBACK_LENGTH = 2_048  # what browsers and proxies carry; also bounds the table's rows
_MAX_HOST_LENGTH = 253  # RFC 1035 2.3.4
_FIELD = "hub.callback"
_TOKEN = "hub.verify_token from hub.mode=generate_token at that address"
_PUBLIC = "public addresses, and networks of the setting allow_networks"
_REACHED = (
    "public addresses, those in networks of the setting allow_networks, and with the setting dev "
    "those of this machine"
)
_LOOPBACK = "public addresses, and with the setting dev those of this machine"
_DENIED = "no address in a network of the setting deny_networks"
NOT_REACHED = "does not resolve to addresses that requests are sent to"
_NO_USER = "no user or password in a URL; those for a callback go into hub.basic_auth"
_PRINTABLE = re.compile(r"[!-~]+")
_BACKSLASH_LIKE = re.compile(r'[\\<>"`{}|^]')
_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?")
_LABEL = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")
# A last label that is a number makes a host an IPv4 address in disguise (127.1, 0x7f000001).
_NUMBER = re.compile(r"[0-9]+|0[xX][0-9a-fA-F]*")


log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a callback is dialled: a name, or an address that stands in the URL itself."""

    scheme: str
    host: str
    port: int
    literal: Address | None


class Guard:
    """Says which callbacks may be sent to; refuses with `CallbackRefused` and the reason."""

    def __init__(self, settings: HubSettings) -> None:
        self._settings = settings
        self._own_ports = {_port_of(base) for base in settings.base_urls}
        answers = AddressCache()
        self._lookups = {
            purpose: Lookups(purpose, settings.dns_servers, answers, settings.resolve_timeout_s)
            for purpose in Purpose
        }

    def check(self, url: str) -> Endpoint:
        """What can be told without asking the network; also the address of a literal."""
        endpoint = read_callback(url)
        if is_own(url, self._settings.base_urls):
            reason = "is this hub's own address; a token binds it instead"
            raise _refused(url, reason, _TOKEN)
        if endpoint.literal is not None:
            self.vet(endpoint.host, endpoint.port, [endpoint.literal])
        elif not self._settings.allow_loopback:
            self._check_port(endpoint.host, endpoint.port)
        return endpoint

    async def resolve(self, host: str, port: int, purpose: Purpose) -> list[Address]:
        """All addresses of the host, every one vetted; never empty.

        Raises `CallbackRefused`, and `NotResolved` where this hub can't ask for them now.
        """
        try:
            addresses = await self._lookups[purpose].of(host)
            if len(addresses) > MAX_ADDRESSES:
                reason, limit = f"has {len(addresses)} addresses", f"{MAX_ADDRESSES} addresses"
                raise _refused(host, reason, limit)
            self.vet(host, port, addresses)
        except (NoAddress, CallbackRefused) as error:
            # The same for all: an anonymous client must not learn which names there are in here,
            # nor what they lead to.
            log.info("no request is sent to %s: %s", host, error)
            raise _refused(host, NOT_REACHED, _REACHED) from error
        return addresses

    async def close(self) -> None:
        """Ends the lookups that are under way."""
        for lookups in self._lookups.values():
            await lookups.close()

    def vet(self, host: str, port: int, addresses: list[Address]) -> None:
        translated = (embedded(address, self._settings.nat64_prefixes) for address in addresses)
        for address in [*addresses, *filter(None, translated)]:
            if self._is_free_loopback(address):
                if port in self._own_ports:
                    raise _refused(host, "is this hub's own address")
                continue
            self._check_port(host, port)
            if not is_public(address) and not self._is_listed(address):
                reason = f"has the address {address}, which is not public"
                raise _refused(host, reason, _LOOPBACK if address.is_loopback else _PUBLIC)
            if is_in(address, self._settings.denied_networks):
                raise _refused(host, f"has the address {address}", _DENIED)
            if port in self._settings.own_ports and is_this_machine(address):
                raise _refused(host, "is this hub's own address")

    def _is_free_loopback(self, address: Address) -> bool:
        return self._settings.allow_loopback and address.is_loopback

    def _is_listed(self, address: Address) -> bool:
        # A wide network may hold addresses that mean this machine in most systems.
        is_outside = not (address.is_loopback or address.is_unspecified)
        return is_outside and is_in(address, self._settings.allowed_networks)

    def _check_port(self, host: str, port: int) -> None:
        allowed = self._settings.callback_ports
        if allowed is not None and port not in allowed:
            limit = "ports " + ", ".join(map(str, sorted(allowed))) + " (setting callback_ports)"
            raise _refused(f"{host}:{port}", f"port {port} is not allowed", limit)


def read_callback(url: str) -> Endpoint:
    """Reads a callback URL more strictly than RFC 3986, for two readers must not disagree."""
    if len(url) > MAX_CALLBACK_LENGTH:
        limit = f"{MAX_CALLBACK_LENGTH} characters"
        raise _refused(url, f"is {len(url)} characters long", limit)
    if not _PRINTABLE.fullmatch(url) or _BACKSLASH_LIKE.search(url):
        raise _refused(url, "has characters that a URL must percent-encode")
    split = _split(url)
    if split.scheme not in DEFAULT_PORTS:
        # A host and its port look like a scheme and a path.
        is_host = not split.scheme or split.path[:1].isdigit()
        reason = "has no scheme" if is_host else f"has the scheme '{split.scheme}'"
        raise _refused(url, reason, "http, https")
    if "@" in split.netloc:
        raise CallbackRefused("carries user information", field=_FIELD, limit=_NO_USER)
    if "#" in url:
        raise _refused(url, "has a fragment")
    host, literal = _read_host(url, split)
    return Endpoint(split.scheme, host, _read_port(url, split), literal)


def _split(url: str) -> SplitResult:
    try:
        split = urlsplit(url)
        _ = split.port  # parsed on access
    except ValueError as error:
        raise _refused(url, f"can't be read: {error}") from error
    return split


def _read_host(url: str, split: SplitResult) -> tuple[str, Address | None]:
    host = split.hostname
    if host is None or not _AUTHORITY.fullmatch(split.netloc):
        raise _refused(url, "has no valid host and port")
    labels = host.split(".")
    if "[" in split.netloc or _NUMBER.fullmatch(labels[-1]):
        return host, _read_address(url, host)
    if len(host) > _MAX_HOST_LENGTH or not all(_LABEL.fullmatch(label) for label in labels):
        raise _refused(url, f"has no valid host name ('{host}')")
    return host, None


def _read_address(url: str, host: str) -> Address:
    try:
        return parse_address(host)
    except ValueError as error:
        raise _refused(url, f"has no plain address: {error}") from error


def _read_port(url: str, split: SplitResult) -> int:
    port = split.port if split.port is not None else DEFAULT_PORTS[split.scheme]
    if not 0 < port < 65_536:
        raise _refused(url, f"has the port {port}", "1 to 65535")
    return port


def _port_of(url: str) -> int:
    split = urlsplit(url)
    return split.port or DEFAULT_PORTS[split.scheme]


def _refused(value: str, reason: str, limit: str | None = None) -> CallbackRefused:
    return CallbackRefused(reason, field=_FIELD, value=value, limit=limit)
