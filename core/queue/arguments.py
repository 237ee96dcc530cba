"""What a queue's `x-` arguments ask for, checked when it is declared.

A plain queue has no `Rules` at all, so it pays for none. Known arguments whose feature is not
built are refused, since ignoring one would break what its owner relies on; unknown ones are kept
and compared on redeclaration, for old clients send strays.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from ..equivalence import resource, type_name
from ..errors import ChannelError, precondition_failed
from ..model import FieldValue, Table

logger = logging.getLogger(__name__)

MAX_TTL_MS = 315_360_000_000
"""Ten years, RabbitMQ's bound."""
_LENGTH_MAX = 2**63 - 1
_OVERFLOWS = ("drop-head", "reject-publish", "reject-publish-dlx")
_IGNORED = frozenset(
    {"x-queue-leader-locator", "x-queue-master-locator", "x-quorum-initial-group-size"}
)
_NOT_BUILT = frozenset(
    {
        "x-max-priority", "x-single-active-consumer", "x-delivery-limit", "x-consumer-timeout",
        "x-message-deduplication", "x-cache-size", "x-cache-ttl", "x-deduplication-header",
        "x-max-age", "x-stream-max-segment-size-bytes", "x-stream-filter-size-bytes",
        "x-delayed-retry-type", "x-delayed-retry-min", "x-delayed-retry-max",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rules:
    """Everything that makes a queue more than plain."""

    message_ttl_ms: int | None = None
    expires_ms: int | None = None
    max_length: int | None = None
    max_length_bytes: int | None = None
    overflow: str = "drop-head"
    dead_letter_exchange: str | None = None
    dead_letter_routing_key: str | None = None

    @property
    def limited(self) -> bool:
        return self.max_length is not None or self.max_length_bytes is not None

    @property
    def looks_at_each(self) -> bool:
        """Whether what is in the queue must be known message by message, also after a restart."""
        return self.message_ttl_ms is not None or self.max_length_bytes is not None

    @property
    def rejects(self) -> bool:
        return self.limited and self.overflow != "drop-head"


PLAIN = Rules()


def read_rules(name: str, vhost: str, arguments: Table) -> Rules | None:
    """Gives None for a plain queue. Raises `ChannelError` 406 naming argument and queue."""
    if not arguments:
        return None
    reader = _Arguments(name, vhost, arguments)
    reader.refuse_unbuilt()
    rules = Rules(
        message_ttl_ms=reader.integer("x-message-ttl", 0, MAX_TTL_MS),
        expires_ms=reader.integer("x-expires", 1, MAX_TTL_MS),
        max_length=reader.integer("x-max-length", 0, _LENGTH_MAX),
        max_length_bytes=reader.integer("x-max-length-bytes", 0, _LENGTH_MAX),
        overflow=reader.choice("x-overflow", _OVERFLOWS) or "drop-head",
        dead_letter_exchange=reader.text("x-dead-letter-exchange"),
        dead_letter_routing_key=reader.text("x-dead-letter-routing-key"),
    )
    reader.choice("x-queue-mode", ("default", "lazy"))
    reader.integer("x-queue-version", 1, 2)
    reader.choice("x-dead-letter-strategy", ("at-most-once", "at-least-once"))
    if rules.dead_letter_routing_key is not None and rules.dead_letter_exchange is None:
        raise reader.invalid(
            "x-dead-letter-routing-key", "needs an x-dead-letter-exchange beside it"
        )
    reader.warn_unknown()
    return None if rules == PLAIN else rules


class _Arguments:
    _known = frozenset(
        {
            "x-message-ttl", "x-expires", "x-max-length", "x-max-length-bytes", "x-overflow",
            "x-dead-letter-exchange", "x-dead-letter-routing-key", "x-dead-letter-strategy",
            "x-queue-mode", "x-queue-version", "x-queue-type",
        }
    )  # fmt: skip

    def __init__(self, name: str, vhost: str, arguments: Table) -> None:
        self.where = resource("queue", name, vhost)
        self.arguments = arguments

    def invalid(self, argument: str, why: str) -> ChannelError:
        return precondition_failed(f"invalid arg '{argument}' for {self.where}: {why}")

    def refuse_unbuilt(self) -> None:
        for argument in _NOT_BUILT & self.arguments.keys():
            raise self.invalid(argument, "this argument is not supported")
        kind = self.arguments.get("x-queue-type", "classic")
        if kind != "classic":
            raise self.invalid("x-queue-type", f"queue type {kind!r} is not supported")

    def warn_unknown(self) -> None:
        for argument in self.arguments.keys() - self._known - _IGNORED:
            logger.warning("%s: unknown argument %r is kept and ignored", self.where, argument)

    def integer(self, argument: str, low: int, high: int) -> int | None:
        if argument not in self.arguments:
            return None
        value: FieldValue = self.arguments[argument]
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.invalid(argument, f"{type_name(value)} given, a whole number is needed")
        if not low <= value <= high:
            raise self.invalid(argument, f"{value} is out of range {low} to {high}")
        return value

    def text(self, argument: str) -> str | None:
        if argument not in self.arguments:
            return None
        value = self.arguments[argument]
        if not isinstance(value, str):
            raise self.invalid(argument, f"{type_name(value)} given, a string is needed")
        if len(value.encode()) > 255:
            raise self.invalid(argument, f"{len(value.encode())} bytes given, 255 at most")
        return value

    def choice(self, argument: str, allowed: tuple[str, ...]) -> str | None:
        value = self.text(argument)
        if value is not None and value not in allowed:
            raise self.invalid(argument, f"{value!r} is not one of {', '.join(allowed)}")
        return value
