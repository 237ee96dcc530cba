"""What a broker refuses, with code and text (amqp.md sections 1, 4, 5 and 6)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from .dialect import Dialect
from .routes import same_value

Text = str | re.Pattern[str]

NAMES = {
    403: "ACCESS_REFUSED",
    404: "NOT_FOUND",
    405: "RESOURCE_LOCKED",
    406: "PRECONDITION_FAILED",
    530: "NOT_ALLOWED",
    540: "NOT_IMPLEMENTED",
}
QUEUE_ARGUMENTS = [
    "x-expires", "x-message-ttl", "x-dead-letter-exchange", "x-dead-letter-routing-key",
    "x-max-length", "x-max-length-bytes", "x-max-priority", "x-overflow", "x-queue-mode",
    "x-single-active-consumer", "x-queue-type",
]  # fmt: skip


class Refused(Exception):
    """The answer is channel.close, or connection.close."""

    def __init__(self, code: int, text: Text, *, connection: bool = False) -> None:
        self.code, self.connection = code, connection
        if isinstance(text, str):
            self.text: Text = f"{NAMES[code]} - {text}"
        else:
            self.text = re.compile(f"{NAMES[code]} - (?:{text.pattern})", re.DOTALL)


def no_queue(name: str) -> Refused:
    return Refused(404, f"no queue '{name}' in vhost '/'")


def no_last_queue() -> Refused:
    return Refused(404, "no previously declared queue")


def no_exchange(name: str) -> Refused:
    return Refused(404, f"no exchange '{name}' in vhost '/'")


def missing(ends: Iterable[tuple[str, str]]) -> Refused:
    """Any of them may be named."""
    texts = [re.escape(f"no {kind} '{name}' in vhost '/'") for kind, name in ends]
    return Refused(404, re.compile("|".join(texts)))


def default_exchange() -> Refused:
    return Refused(403, "operation not permitted on the default exchange")


def reserved(kind: str, name: str) -> Refused:
    return Refused(403, f"{kind} name '{name}' contains reserved prefix 'amq.*'")


def system_exchange(name: str) -> Refused:
    return Refused(403, f"deletion of system exchange '{name}' in vhost '/' not allowed")


def internal(name: str) -> Refused:
    return Refused(403, f"cannot publish to internal exchange '{name}' in vhost '/'")


def in_use(kind: str, name: str) -> Refused:
    return Refused(406, f"{kind} '{name}' in vhost '/' in use")


def not_empty(name: str) -> Refused:
    return Refused(406, f"queue '{name}' in vhost '/' not empty")


def locked(name: str) -> Refused:
    return Refused(
        405,
        f"cannot obtain exclusive access to locked queue '{name}' in vhost '/'. It could be "
        "originally declared on another connection or the exclusive property value does not "
        "match that of the original declaration.",
    )


def exclusively_used(name: str) -> Refused:
    return Refused(403, f"queue '{name}' in vhost '/' in exclusive use")


def reused_tag(tag: str) -> Refused:
    return Refused(530, f"attempt to reuse consumer tag '{tag}'", connection=True)


def no_global_limit(name: str) -> Refused:
    text = f"queue '{name}' in vhost '/' does not support global qos"
    return Refused(540, text, connection=True)


def unknown_tag(tag: int) -> Refused:
    return Refused(406, f"unknown delivery tag {tag}")


def mode(text: str) -> Refused:
    return Refused(406, text)


def partial_commit() -> Refused:
    return Refused(406, "partial tx completion")


def bad_match() -> Refused:
    return Refused(406, re.compile(".*x-match.*"))


def check_weight(key: str) -> None:
    """Of a binding of a consistent hash exchange."""
    if not re.fullmatch("-?[0-9]+", key):
        raise Refused(406, re.compile(".*must be an integer.*"))
    if not 1 <= int(key) <= 10_000:
        raise Refused(406, re.compile(".*must be.*"))


def bad_keys(header: str) -> Refused:
    return Refused(406, re.compile(f".*{header}.*"))


def check_properties(properties: Mapping[str, Any]) -> None:
    """expiration is a decimal string; user_id is the login's."""
    expiration = properties.get("expiration")
    if expiration is not None and not re.fullmatch("[0-9]+", expiration):
        raise Refused(406, re.compile(f"invalid expiration '{re.escape(expiration)}': .*"))
    user = properties.get("user_id")
    if user not in (None, "guest"):
        raise Refused(406, f"user_id property set to '{user}' but authenticated user was 'guest'")


def check_same(kind: str, name: str, pairs: Iterable[tuple[str, Any, Any]]) -> None:
    for word, received, current in pairs:
        if received != current:
            one, other = (str(value).lower() for value in (received, current))
            raise Refused(
                406,
                f"inequivalent arg '{word}' for {kind} '{name}' in vhost '/': "
                f"received '{one}' but current is '{other}'",
            )


def check_arguments(
    kind: str,
    name: str,
    received: Mapping[str, Any],
    current: Mapping[str, Any],
    known: list[str],
    dialect: Dialect,
) -> None:
    """If several differ, any of them may be named."""
    wrong = [
        _inequivalent(kind, name, word, received.get(word), current.get(word))
        for word in known
        if not _same(received.get(word), current.get(word), dialect)
    ]
    if wrong:
        raise Refused(406, re.compile("|".join(dict.fromkeys(wrong))))


def _same(one: Any, other: Any, dialect: Dialect) -> bool:
    if one is None or other is None:
        return one is other
    by_value = dialect.numbers_by_value or type(one) is type(other)
    return same_value(one, other) and by_value


def _inequivalent(kind: str, name: str, word: str, received: Any, current: Any) -> str:
    one, other = "none" if received is None else None, "none" if current is None else None
    if one is None:
        one = f"'{show(received)}'" if current is not None else f"the value {typed(received)}"
    if other is None:
        other = f"'{show(current)}'" if received is not None else f"the value {typed(current)}"
    return re.escape(
        f"inequivalent arg '{word}' for {kind} '{name}' in vhost '/': "
        f"received {one} but current is {other}"
    )


def show(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def typed(value: Any) -> str:
    match value:
        case bool():
            kind = "bool"
        case int():
            kind = "signedint" if -(2**31) <= value < 2**31 else "long"
        case float():
            kind = "double"
        case _:
            kind = "longstr"
    return f"'{show(value)}' of type '{kind}'"


def check_queue_arguments(name: str, arguments: Mapping[str, Any]) -> None:
    """A value out of range, or of a wrong type."""
    if arguments.get("x-queue-type") == "quorum" and arguments.get("x-overflow") == OVERFLOWS[2]:
        raise _invalid("x-overflow", name)
    for word, value in arguments.items():
        if not _in_range(word, value, arguments):
            raise _invalid(word, name)


def _invalid(word: str, name: str) -> Refused:
    return Refused(
        406, re.compile(f"invalid arg '{word}' for queue '{re.escape(name)}' in vhost '/'.*")
    )


LONGEST_MS = 315_360_000_000
LEAST = {"x-message-ttl": 0, "x-expires": 1, "x-max-length": 0, "x-max-length-bytes": 0}
OVERFLOWS = ("drop-head", "reject-publish", "reject-publish-dlx")


def _in_range(word: str, value: Any, arguments: Mapping[str, Any]) -> bool:
    if word in LEAST:
        whole = isinstance(value, int) and not isinstance(value, bool)
        longest = LONGEST_MS if word in ("x-message-ttl", "x-expires") else 2**63
        return whole and LEAST[word] <= value <= longest
    if word == "x-overflow":
        return value in OVERFLOWS
    if word == "x-max-priority":
        return isinstance(value, int) and 0 <= value <= 255
    if word == "x-delivery-limit":
        return isinstance(value, int) and value >= -1
    if word == "x-single-active-consumer":
        return isinstance(value, bool)
    if word == "x-dead-letter-routing-key":
        return isinstance(value, str) and "x-dead-letter-exchange" in arguments
    return True
