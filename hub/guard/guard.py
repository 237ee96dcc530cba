"""The guard against requests to internal addresses (server-side request forgery).

A callback's URL is read strictly, its name is resolved once, all of its addresses are vetted, and
those are dialled. So neither a name whose answers change nor one with an internal address among
public ones leads into the hub's network. All requests of the hub pass this guard.
"""

from __future__ import annotations

import logging
from urllib.parse import urlsplit

from ..errors import CallbackRefused
from ..settings import HubSettings
from .address_cache import AddressCache
from .addresses import Address, embedded, is_in, is_public, is_this_machine
from .callback_url import Endpoint, read_callback, refused
from .failures import NoAddress
from .lookups import Lookups, Purpose
from .own import DEFAULT_PORTS, is_own

MAX_ADDRESSES = 64
"""The most addresses of a name: each is vetted, and each may be dialled."""
_TOKEN = "hub.verify_token from hub.mode=generate_token at that address"
_PUBLIC = "public addresses, and networks of the setting allow_networks"
_REACHED = (
    "public addresses, those in networks of the setting allow_networks, and with the setting dev "
    "those of this machine"
)
_LOOPBACK = "public addresses, and with the setting dev those of this machine"
_DENIED = "no address in a network of the setting deny_networks"
NOT_REACHED = "does not resolve to addresses that requests are sent to"

log = logging.getLogger(__name__)


class Guard:
    """Decides by settings which URLs and addresses requests are sent to."""

    def __init__(self, settings: HubSettings) -> None:
        self._settings = settings
        self._own_ports = {_port_of(base) for base in settings.base_urls}
        answers = AddressCache()
        self._lookups = {
            purpose: Lookups(purpose, settings.dns_servers, answers, settings.resolve_timeout_s)
            for purpose in Purpose
        }

    def check(self, url: str) -> Endpoint:
        """Returns the endpoint of a URL. Raises `CallbackRefused`; no name is looked up."""
        endpoint = read_callback(url)
        if is_own(url, self._settings.base_urls):
            reason = "is this hub's own address; a token binds it instead"
            raise refused(url, reason, _TOKEN)
        if endpoint.literal is not None:
            self.vet(endpoint.host, endpoint.port, [endpoint.literal])
        elif not self._settings.allow_loopback:
            self._check_port(endpoint.host, endpoint.port)
        return endpoint

    async def resolve(self, host: str, port: int, purpose: Purpose) -> list[Address]:
        """Returns all addresses of the host, at least one, all vetted.

        Raises `CallbackRefused`, and `NotResolved` if names can't be looked up now.
        """
        try:
            addresses = await self._lookups[purpose].of(host)
            if len(addresses) > MAX_ADDRESSES:
                reason, limit = f"has {len(addresses)} addresses", f"{MAX_ADDRESSES} addresses"
                raise refused(host, reason, limit)
            self.vet(host, port, addresses)
        except (NoAddress, CallbackRefused) as error:
            # One text for all: anonymous clients must not learn which internal names exist, nor
            # their addresses.
            log.info("no request is sent to %s: %s", host, error)
            raise refused(host, NOT_REACHED, _REACHED) from error
        return addresses

    async def close(self) -> None:
        """Ends the lookups that are under way."""
        for lookups in self._lookups.values():
            await lookups.close()

    def vet(self, host: str, port: int, addresses: list[Address]) -> None:
        """Raises `CallbackRefused` unless requests may be sent to all addresses at this port."""
        translated = (embedded(address, self._settings.nat64_prefixes) for address in addresses)
        for address in [*addresses, *filter(None, translated)]:
            if self._is_free_loopback(address):
                if port in self._own_ports:
                    raise refused(host, "is this hub's own address")
                continue
            self._check_port(host, port)
            if not is_public(address) and not self._is_listed(address):
                reason = f"has the address {address}, which is not public"
                raise refused(host, reason, _LOOPBACK if address.is_loopback else _PUBLIC)
            if is_in(address, self._settings.denied_networks):
                raise refused(host, f"has the address {address}", _DENIED)
            if port in self._settings.own_ports and is_this_machine(address):
                raise refused(host, "is this hub's own address")

    def _is_free_loopback(self, address: Address) -> bool:
        return self._settings.allow_loopback and address.is_loopback

    def _is_listed(self, address: Address) -> bool:
        # Listed networks may be wide; loopback and unspecified addresses are this machine.
        is_outside = not (address.is_loopback or address.is_unspecified)
        return is_outside and is_in(address, self._settings.allowed_networks)

    def _check_port(self, host: str, port: int) -> None:
        allowed = self._settings.callback_ports
        if allowed is not None and port not in allowed:
            limit = "ports " + ", ".join(map(str, sorted(allowed))) + " (setting callback_ports)"
            raise refused(f"{host}:{port}", f"port {port} is not allowed", limit)


def _port_of(url: str) -> int:
    split = urlsplit(url)
    return split.port or DEFAULT_PORTS[split.scheme]
