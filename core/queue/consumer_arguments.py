"""Reads the arguments of a consumer."""

from __future__ import annotations

from ..errors import precondition_failed
from ..message.equivalence import type_name, value_text
from ..message.model import Table
from .arguments import MAX_TTL_MS


def read_timeout(arguments: Table) -> int | None:
    """Returns a consumer's `x-consumer-timeout` in milliseconds. Raises `ChannelError` 406."""
    value = arguments.get("x-consumer-timeout")
    if value is None and "x-consumer-timeout" not in arguments:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_TTL_MS:
        raise precondition_failed(
            f"invalid x-consumer-timeout '{value_text(value)}': milliseconds from 0 (none) to "
            f"{MAX_TTL_MS} are needed"
        )
    return value


def read_priority(arguments: Table) -> int:
    """A consumer's `x-priority`, 0 if there is none. Raises `ChannelError` 406 for no integer."""
    value = arguments.get("x-priority", 0)
    if isinstance(value, bool) or not isinstance(value, int):
        raise precondition_failed(
            f"invalid arg 'x-priority' for consumer: {type_name(value)} given, an integer is needed"
        )
    return value
