"""Checks a queue's `x-` arguments when it is declared, and reads its rules from them.

Arguments of other queue types are refused, since ignoring one would break what its owner relies on.
Unknown ones are kept and not compared on redeclaration, since old clients send some (`strict`
refuses those too). Values are never clamped.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from typing import Final

from ..errors import ChannelError, precondition_failed
from ..message.deduplication import CACHE_SIZE, CACHE_SIZE_MAX, HEADER
from ..message.equivalence import resource, type_name, value_text
from ..message.model import FieldValue, Table
from .rules import PLAIN, Deduplication, RetryDelay, Rules

logger = logging.getLogger(__name__)

MAX_TTL_MS: Final = 315_360_000_000
"""Ten years, RabbitMQ's bound."""
QUORUM_PRIORITY: Final = 31
"""The highest priority of quorum queues (RabbitMQ 4.3)."""
QUORUM_DELIVERY_LIMIT: Final = 20
SEGMENT_BYTES_MAX: Final = 3_000_000_000
RETRY_MIN_MS, RETRY_MAX_MS = 1_000, 60_000
_LENGTH_MAX: Final = 2**63 - 1
_OVERFLOWS: Final = ("drop-head", "reject-publish", "reject-publish-dlx")
AT_LEAST_ONCE: Final = "at-least-once"
_STRATEGIES: Final = ("at-most-once", AT_LEAST_ONCE)
_RETRY_KINDS: Final = ("disabled", "all", "failed", "returned")
_AGE: Final = re.compile(r"([0-9]{1,12})([YMDhms])")
_AGE_UNIT_S: Final = {"Y": 31_536_000, "M": 2_592_000, "D": 86_400, "h": 3_600, "m": 60, "s": 1}

_PLACEMENT: Final = frozenset(
    {
        "x-queue-type", "x-queue-leader-locator", "x-queue-master-locator",
        "x-quorum-initial-group-size", "x-quorum-target-group-size", "x-initial-cluster-size",
    }
)  # fmt: skip
"""Placement of replicas, of which there is one: checked, without effect."""
_COMMON: Final = _PLACEMENT | {
    "x-message-ttl", "x-expires", "x-max-length", "x-max-length-bytes", "x-overflow",
    "x-dead-letter-exchange", "x-dead-letter-routing-key", "x-dead-letter-strategy",
    "x-queue-mode", "x-queue-version", "x-single-active-consumer", "x-delivery-limit",
    "x-consumer-timeout", "x-message-deduplication", "x-cache-size", "x-cache-ttl",
    "x-deduplication-header",
}  # fmt: skip
OF_TYPE: Final = {
    "classic": _COMMON | {"x-max-priority"},
    "quorum": _COMMON
    | {"x-delayed-retry-type", "x-delayed-retry-min", "x-delayed-retry-max",
       "x-max-in-memory-length", "x-max-in-memory-bytes"},
    "stream": _PLACEMENT
    | {"x-max-length-bytes", "x-max-age", "x-stream-max-segment-size-bytes",
       "x-stream-filter-size-bytes", "x-archive"},
}  # fmt: skip
KNOWN: Final = frozenset[str]().union(*OF_TYPE.values())

_READ_BEFORE_MAX: Final = 1_024
_read_before: dict[tuple[str, tuple[tuple[str, type, FieldValue], ...]], Rules | None] = {}
"""Rules by queue type and valid arguments: very many queues have the same ones, and share them. The
key has the types of the values, since equal ones may differ in it (1 and True)."""


@dataclass(frozen=True, slots=True)
class DeclaredArguments:
    """The properties of a queue declaration, without its arguments."""

    name: str
    vhost: str
    durable: bool = True
    exclusive: bool = False
    auto_delete: bool = False

    @property
    def where(self) -> str:
        return resource("queue", self.name, self.vhost)


def queue_type(declared: DeclaredArguments, arguments: Table) -> str:
    """Returns `classic`, `quorum` or `stream`. Raises `ChannelError` 406 for another type."""
    kind = arguments.get("x-queue-type", "classic")
    if not isinstance(kind, str) or kind not in OF_TYPE:
        raise precondition_failed(
            f"invalid arg 'x-queue-type' for {declared.where}: unknown queue type "
            f"'{value_text(kind)}'; supported: {', '.join(OF_TYPE)}"
        )
    return kind


def has_argument(kind: str, argument: str) -> bool:
    """Returns whether queues of this type accept the argument; unknown ones are accepted by all."""
    return argument in OF_TYPE[kind] or argument not in KNOWN


def read_rules(
    declared: DeclaredArguments, arguments: Table, *, strict: bool = False
) -> Rules | None:
    """Returns the rules of a queue, None for a plain classic queue.

    Raises `ChannelError` 406 naming argument and queue; with `strict` for unknown ones too.
    """
    kind = queue_type(declared, arguments)
    if kind == "classic" and not arguments:
        return None
    check_properties(declared, arguments)
    key = kind, tuple((name, value.__class__, value) for name, value in arguments.items())
    try:
        return _read_before[key]
    except (KeyError, TypeError):
        pass  # read for the first time, or with an array or a table, which can't be in a key
    reader = _Arguments(declared, arguments)
    reader.refuse_others(kind)
    reader.check_unknown(strict=strict)
    rules = _read(reader, kind)
    if arguments.keys() <= KNOWN and len(_read_before) < _READ_BEFORE_MAX:
        _read_before[key] = rules
    return rules


def _read(reader: _Arguments, kind: str) -> Rules | None:
    if kind == "stream":
        return _stream_rules(reader)
    rules = _rules(reader, quorum=kind == "quorum")
    return None if rules == PLAIN else rules


def check_properties(declared: DeclaredArguments, arguments: Table) -> None:
    """Checks that quorum queues and streams are durable, shared, permanent and named.

    Raises `ChannelError` 406 for others, and for an unknown type.
    """
    kind = queue_type(declared, arguments)
    if kind == "classic":
        return
    for wrong, is_wrong in (
        ("non-durable", not declared.durable),
        ("exclusive-owner", declared.exclusive),
        ("auto-delete", declared.auto_delete),
    ):
        if is_wrong:
            raise precondition_failed(f"invalid property '{wrong}' for {declared.where}")
    if not declared.name:
        raise precondition_failed(
            f"Cannot declare a server-named queue for type rabbit_{kind}_queue"
        )


def _rules(reader: _Arguments, *, quorum: bool) -> Rules:
    overflows = _OVERFLOWS[:2] if quorum else _OVERFLOWS
    limit = reader.integer("x-delivery-limit", -1, _LENGTH_MAX)
    rules = Rules(
        message_ttl_ms=reader.integer("x-message-ttl", 0, MAX_TTL_MS),
        expires_ms=reader.integer("x-expires", 1, MAX_TTL_MS),
        max_length=reader.integer("x-max-length", 0, _LENGTH_MAX),
        max_length_bytes=reader.integer("x-max-length-bytes", 0, _LENGTH_MAX),
        overflow=reader.choice("x-overflow", overflows) or "drop-head",
        dead_letter_exchange=reader.text("x-dead-letter-exchange"),
        dead_letter_routing_key=reader.text("x-dead-letter-routing-key"),
        at_least_once=reader.choice("x-dead-letter-strategy", _STRATEGIES) == AT_LEAST_ONCE,
        max_priority=QUORUM_PRIORITY if quorum else reader.integer("x-max-priority", 0, 255),
        single_active=reader.boolean("x-single-active-consumer"),
        delivery_limit=QUORUM_DELIVERY_LIMIT if quorum and limit is None else limit,
        retry_delay=_retry_delay(reader),
        consumer_timeout_ms=reader.integer("x-consumer-timeout", 0, MAX_TTL_MS),
        deduplication=_deduplication(reader),
    )
    reader.choice("x-queue-mode", ("default", "lazy"))
    reader.integer("x-queue-version", 1, 2)
    reader.integer("x-max-in-memory-length", 0, _LENGTH_MAX)
    reader.integer("x-max-in-memory-bytes", 0, _LENGTH_MAX)
    if rules.dead_letter_routing_key is not None and rules.dead_letter_exchange is None:
        raise reader.invalid(
            "x-dead-letter-routing-key", "needs an x-dead-letter-exchange beside it"
        )
    return rules


def _deduplication(reader: _Arguments) -> Deduplication | None:
    size = reader.integer("x-cache-size", 1, CACHE_SIZE_MAX)
    ttl_ms = reader.integer("x-cache-ttl", 0, MAX_TTL_MS)
    header = reader.text("x-deduplication-header")
    if header == "":
        raise reader.invalid("x-deduplication-header", "the name of a header is needed")
    if not reader.boolean("x-message-deduplication"):
        return None
    return Deduplication(size or CACHE_SIZE, ttl_ms, header or HEADER)


def _retry_delay(reader: _Arguments) -> RetryDelay | None:
    kind = reader.choice("x-delayed-retry-type", _RETRY_KINDS)
    min_ms = reader.integer("x-delayed-retry-min", 0, MAX_TTL_MS)
    max_ms = reader.integer("x-delayed-retry-max", 0, MAX_TTL_MS)
    if kind is None or kind == "disabled":
        return None
    first_ms = RETRY_MIN_MS if min_ms is None else min_ms
    last_ms = max(RETRY_MAX_MS, first_ms) if max_ms is None else max_ms
    if last_ms < first_ms:
        raise reader.invalid(
            "x-delayed-retry-max", f"{last_ms} is less than x-delayed-retry-min, {first_ms}"
        )
    return RetryDelay(kind, first_ms, last_ms)


def _stream_rules(reader: _Arguments) -> Rules:
    return Rules(
        max_length_bytes=reader.integer("x-max-length-bytes", 0, _LENGTH_MAX),
        max_age_ms=_max_age_ms(reader),
        segment_bytes=reader.integer("x-stream-max-segment-size-bytes", 0, SEGMENT_BYTES_MAX),
        filter_bytes=reader.integer("x-stream-filter-size-bytes", 16, 255),
        archive=reader.name("x-archive"),
    )


def _max_age_ms(reader: _Arguments) -> int | None:
    text = reader.text("x-max-age")
    if text is None:
        return None
    age_ms = read_age_ms(text)
    if age_ms is None:
        raise reader.invalid(
            "x-max-age", f"'{text}' is not a valid age (a number followed by Y, M, D, h, m or s)"
        )
    return age_ms


def read_age_ms(text: str) -> int | None:
    """Returns an age such as `7D` or `90m` in milliseconds, None for anything else."""
    found = _AGE.fullmatch(text)
    return None if found is None else int(found[1]) * _AGE_UNIT_S[found[2]] * 1000


class _Arguments:
    """Reads arguments by their types; each method raises `ChannelError` 406."""

    def __init__(self, declared: DeclaredArguments, arguments: Table) -> None:
        self.where = declared.where
        self.arguments = arguments

    def invalid(self, argument: str, why: str) -> ChannelError:
        return precondition_failed(f"invalid arg '{argument}' for {self.where}: {why}")

    def refuse_others(self, kind: str) -> None:
        for argument in sorted((KNOWN - OF_TYPE[kind]).intersection(self.arguments)):
            raise self.invalid(argument, f"{kind} queues don't support it")

    def check_unknown(self, *, strict: bool) -> None:
        for argument in sorted(self.arguments.keys() - KNOWN):
            if strict and argument.startswith("x-"):
                raise self.invalid(argument, "there is no such argument (strict-arguments is on)")
            logger.warning("%s: unknown argument %r is stored and ignored", self.where, argument)

    def integer(self, argument: str, low: int, high: int) -> int | None:
        if argument not in self.arguments:
            return None
        value: FieldValue = self.arguments[argument]
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.invalid(argument, f"{type_name(value)} given, a whole number is needed")
        if not low <= value <= high:
            raise self.invalid(argument, f"{value} is out of range {low} to {high}")
        return value

    def boolean(self, argument: str) -> bool:
        value = self.arguments.get(argument, False)
        if not isinstance(value, bool):
            raise self.invalid(argument, f"{type_name(value)} given, a boolean is needed")
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

    def name(self, argument: str) -> str | None:
        value = self.text(argument)
        if value is not None and (not value or "\r" in value or "\n" in value):
            raise self.invalid(
                argument, f"{value!r} is not a valid name (at least 1 byte, no line break)"
            )
        return value

    def choice(self, argument: str, allowed: tuple[str, ...]) -> str | None:
        value = self.text(argument)
        if value is not None and value not in allowed:
            raise self.invalid(argument, f"{value!r} is not one of {', '.join(allowed)}")
        return value
