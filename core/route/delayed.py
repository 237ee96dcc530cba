"""Delayed exchanges: a message is routed after the delay in its header `x-delay`.

An exchange delays if it was declared as `x-delayed-message`, with the type by which it routes in
`x-delayed-type`, or while a policy with `delayed-message` is in force (LavinMQ). A delayed message
is routed to the exchange's delay queue (`core/queue/delay.py`), so that confirms, mandatory,
transactions and crashes work as for any other publish.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..errors import precondition_failed
from ..message.equivalence import resource, type_name, value_text
from ..message.model import FieldValue
from ..wire.delay import DELAY, read_delay_ms
from .exchange import Exchange
from .route import Destination

DELAYED: Final = "x-delayed-message"
DELAYED_TYPE: Final = "x-delayed-type"


def delay_queue(exchange: Exchange, headers: Mapping[str, FieldValue] | None) -> Destination | None:
    """Returns the inner queue in which a message waits, None for one that is routed at once.

    Raises `ChannelError` 406 if its `x-delay` is not a number of milliseconds.
    """
    if headers is None or DELAY not in headers:
        return None
    return exchange.inner if _waits(exchange, headers[DELAY]) else None


def _waits(exchange: Exchange, value: FieldValue) -> bool:
    try:
        return read_delay_ms(value) > 0
    except ValueError as error:
        raise precondition_failed(
            f"invalid header '{DELAY}' {value_text(value)!r} of type {type_name(value)} for "
            f"{resource('exchange', exchange.name, exchange.vhost)}: {error}"
        ) from None


def can_be_delayed(exchange: Exchange) -> bool:
    """Returns False for an exchange that stores messages for another reason."""
    return exchange.persistence is None


def set_delayed(exchange: Exchange, enabled: bool) -> bool:
    """Starts or stops delaying by policy; True if that changed the exchange, which then needs its
    inner queue (`VirtualHost.attach_inner_queue`).

    An exchange declared as a delayed one stays one; another routes messages at once when the
    policy is cleared, and those in its delay queue are released when they are due.
    """
    delays = enabled or exchange.type_name == DELAYED
    if delays == exchange.delays:
        return False
    exchange.delays = delays
    exchange.changed()
    return True
