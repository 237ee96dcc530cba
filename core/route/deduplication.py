"""Reads the deduplication arguments, which an exchange of any type may have (LavinMQ)."""

from __future__ import annotations

from ..message.deduplication import (
    CACHE_SIZE,
    CACHE_SIZE_MAX,
    CACHE_TTL_MAX_MS,
    DEDUPLICATES,
    HEADER,
    SIZE,
    TTL,
    Deduplication,
)
from ..message.equivalence import type_name
from .arguments import ExchangeArguments


def read_deduplication(arguments: ExchangeArguments) -> Deduplication | None:
    """Returns the settings, None for no deduplication. Raises `ChannelError` 406."""
    enabled = arguments.table.get(DEDUPLICATES, False)
    if not isinstance(enabled, bool):
        raise arguments.invalid(DEDUPLICATES, f"{type_name(enabled)} given, a boolean is needed")
    size = arguments.integer(SIZE, 1, CACHE_SIZE_MAX)
    ttl_ms = arguments.integer(TTL, 0, CACHE_TTL_MAX_MS)
    header = arguments.text(HEADER)
    if header == "":
        raise arguments.invalid(HEADER, "the name of a header is needed")
    if not enabled:
        return None
    return Deduplication(CACHE_SIZE if size is None else size, ttl_ms, header or HEADER)
