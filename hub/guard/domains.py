"""The owner of a host: its registered domain, or the network of an address.

Limits are kept by owner, because names below a domain and addresses of an IPv6 network are free.
"""

from __future__ import annotations

import asyncio
from functools import cache, lru_cache
from ipaddress import IPv6Address, IPv6Network
from typing import TYPE_CHECKING

from .addresses import Address, parse_address

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList

_PREFIX_V6 = 64
"""The smallest network that a customer gets."""


async def load() -> None:
    """Reads the list of public suffixes once, in a thread: it takes some 100 ms."""
    if not _suffixes.cache_info().currsize:
        await asyncio.to_thread(_suffixes)


@lru_cache(10_000)
def owner_of(host: str) -> str:
    """Returns the same text for all hosts of an owner; a public suffix is its own owner."""
    host = host.removesuffix(".")
    try:
        return network_of(parse_address(host))
    except ValueError:
        return _suffixes().privatesuffix(host) or host.lower()


def network_of(address: Address) -> str:
    """Returns the IPv6 network of the address, or the IPv4 address itself."""
    if isinstance(address, IPv6Address):
        return str(IPv6Network((address, _PREFIX_V6), strict=False))
    return str(address)


@cache
def _suffixes() -> PublicSuffixList:
    from publicsuffixlist import PublicSuffixList

    return PublicSuffixList()
