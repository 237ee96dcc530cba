"""Who is behind a host: the domain that somebody has registered, or the network of an address.

Names below a registered domain cost nothing, and so do addresses of one IPv6 network.
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
"""What one customer of a network has at least."""


async def load() -> None:
    """Reads the list of public suffixes, once; it takes some 100 ms, for a thread."""
    if not _suffixes.cache_info().currsize:
        await asyncio.to_thread(_suffixes)


@lru_cache(10_000)
def owner_of(host: str) -> str:
    """The same text for all hosts of one owner. A public suffix itself is its own."""
    try:
        return network_of(parse_address(host))
    except ValueError:
        return _suffixes().privatesuffix(host) or host.lower().rstrip(".")


def network_of(address: Address) -> str:
    if isinstance(address, IPv6Address):
        return str(IPv6Network((address, _PREFIX_V6), strict=False))
    return str(address)


@cache
def _suffixes() -> PublicSuffixList:
    from publicsuffixlist import PublicSuffixList

    return PublicSuffixList()
