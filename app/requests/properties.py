"""Reads routing key and basic properties from a publish request.

Each property is the query parameter `amqp.NAME`; it takes precedence over the header `X-Amqp-NAME`
(with dashes), and that over the standard header with the same meaning (`Content-Type`,
`Content-Encoding`). Message headers are given one by one as `X-Amqp-Header-NAME: value` or together
as RabbitHub's `x-rabbithub-msg_header: k=v,k2=v2`; the attributes of a CloudEvent as `ce-NAME`; the
trace context as `traceparent` and `tracestate`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from ...core.message.model import PROPERTY_NAMES, FieldValue, Properties, Table
from ...hub.delivery.envelope import HOPS
from ...hub.trace_context import NAMES, trace_context
from ..problems import Problem
from .cloud_event import PREFIX as EVENT_PREFIX
from .cloud_event import is_event, read_event
from .parameters import refuse_unknown

TRANSIENT, PERSISTENT = 1, 2
MAX_SHORT_STRING_BYTES = 255
MAX_TIMESTAMP = 253_402_300_799  # the last second of the year 9999
MAX_QUERY_FIELDS = 100
MAX_HOPS_VALUE = 2**31 - 2  # so that one more is an AMQP integer
CONTROL = frozenset(chr(code) for code in (*range(32), 127)) - {"\t"}

ENCODINGS = frozenset(
    {"aes128gcm", "br", "compress", "deflate", "exi", "gzip", "identity", "x-compress", "x-gzip",
     "zstd"}
)  # fmt: skip
"""Registered content codings; the body is stored as received."""

RABBITHUB_HEADERS = b"x-rabbithub-msg_header"
HEADER_PREFIX = b"x-amqp-header-"
PROPERTY_PREFIX = b"x-amqp-"
PREFIXES = (PROPERTY_PREFIX, EVENT_PREFIX)
HOPS_HEADER = b"x-hub-hops"
TRACE_HEADERS = frozenset(name.encode() for name in NAMES)
PLAIN_HEADERS = {b"content-type": "content_type", b"content-encoding": "content_encoding"}
FLAGS = {"true": True, "1": True, "false": False, "0": False}

BATCH = "batch"

RawHeaders = Iterable[tuple[bytes, bytes]]


class Publish(NamedTuple):
    """The parameters of a publish request, without body and target."""

    routing_key: str
    properties: Properties
    mandatory: bool
    is_batch: bool
    has_topic: bool
    """Whether `hub.topic` was given."""


def read(
    query_string: bytes,
    headers: RawHeaders,
    correlation_id_header: str = "",
    max_hops: int = sys.maxsize,
) -> Publish:
    """Reads the parameters.

    Raises `Problem` 400 for a bad value, 415 for an unknown or repeated content encoding, 508 for
    a message that has passed more hubs than `max_hops`.
    """
    query = parse_query(query_string)
    refuse_unknown(query, KNOWN)
    is_batch = query.get("hub.mode") == BATCH
    if "hub.mode" in query and not is_batch:
        raise Problem(400, f"hub.mode '{query['hub.mode']}' is not an operation of POST here")
    values = _from_headers(headers, correlation_id_header, max_hops, is_batch)
    values |= _from_query(query)
    values.setdefault("delivery_mode", _delivery_mode(query.get("hub.persistmsg", "1")))
    return Publish(
        short_string("hub.topic", query.get("hub.topic", "")),
        Properties(**values),
        flag("amqp.mandatory", query.get("amqp.mandatory", "false")),
        is_batch,
        "hub.topic" in query,
    )


def parse_query(query_string: bytes) -> dict[str, str]:
    """Returns the first value of each name. Raises as `parse_fields`."""
    return dict(reversed(parse_fields(query_string)))


def parse_fields(query_string: bytes) -> list[tuple[str, str]]:
    """Returns names and values. Raises `Problem` 400 if the query is not UTF-8 or has too many
    fields."""
    try:
        return parse_qsl(
            query_string.decode(),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=MAX_QUERY_FIELDS,
        )
    except (UnicodeDecodeError, ValueError) as error:
        raise Problem(400, f"invalid query string: {error}") from error


def flag(name: str, value: str) -> bool:
    """Parses a boolean. Raises `Problem` 400 unless the value is true, false, 1 or 0."""
    try:
        return FLAGS[value]
    except KeyError:
        raise Problem(400, f"{name} is '{value[:80]}', neither true nor false") from None


def short_string(name: str, value: str) -> str:
    """Returns the value. Raises `Problem` 400 if it exceeds the 255 bytes of AMQP's short
    string."""
    size = len(value.encode())
    if size > MAX_SHORT_STRING_BYTES:
        raise Problem(400, f"{name} has {size} bytes, at most {MAX_SHORT_STRING_BYTES}")
    return value


def _delivery_mode(value: str) -> int:
    return PERSISTENT if flag("hub.persistmsg", value) else TRANSIENT


def _from_query(query: dict[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in query.items():
        if not name.startswith("amqp.") or name == "amqp.mandatory":
            continue
        key = name.removeprefix("amqp.")
        found[key] = _READERS[key](name, value)
    return found


def _from_headers(
    headers: RawHeaders, correlation_id_header: str, max_hops: int, is_batch: bool
) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    event: dict[str, str] = {}
    explicit: dict[str, Any] = {}
    table: Table = {}
    trace: dict[str, str] = {}
    hops = 0
    correlation = correlation_id_header.lower().encode()
    for name, raw in headers:
        if name == HOPS_HEADER:
            hops = max(hops, _hops(text(name, raw), max_hops))
        elif name in PLAIN_HEADERS:
            _put_plain(plain, PLAIN_HEADERS[name], text(name, raw))
        elif name in TRACE_HEADERS:
            # Several states are one; several parents are none.
            before = f"{trace[name.decode()]}," if name.decode() in trace else ""
            trace[name.decode()] = before + raw.decode("latin-1")
        elif name == RABBITHUB_HEADERS:
            table |= _rabbithub_headers(text(name, raw))
        elif name.startswith(HEADER_PREFIX):
            table[short_string(name.decode(), name[len(HEADER_PREFIX) :].decode())] = text(
                name, raw
            )
        elif name.startswith(PROPERTY_PREFIX):
            _put_property(explicit, name, raw)
        elif name.startswith(EVENT_PREFIX):
            _put_attribute(event, name, raw)
        elif name == correlation:
            plain["correlation_id"] = _string(correlation_id_header, text(name, raw))
    if is_event(event):
        if is_batch:
            raise Problem(400, "ce-specversion: events of a batch carry their attributes inside it")
        table |= read_event(event)
    if hops:
        table[HOPS] = hops
    table = {**trace_context(trace), **table}
    if table:
        plain["headers"] = table
    return plain | explicit


def _hops(value: str, max_hops: int) -> int:
    """Returns the number of hubs that the message has passed, this one included.

    Raises `Problem` 508 above `max_hops`, which ends a loop if every hub in it forwards the number.
    """
    hops = _integer(0, MAX_HOPS_VALUE)("X-Hub-Hops", value) + 1
    if hops > max_hops:
        raise Problem(
            508,
            f"the message has passed {hops - 1} hubs and max_hops is {max_hops}: "
            "hubs that subscribe to each other form a loop",
            title="Loop Detected",
            members={"field": "X-Hub-Hops", "value": str(hops - 1), "limit": str(max_hops)},
        )
    return hops


def _put_plain(values: dict[str, Any], name: str, value: str) -> None:
    if name == "content_encoding":
        # Nested encodings, in one field or two, could expand a small body into a huge one.
        if name in values or value.strip().lower() not in ENCODINGS:
            raise Problem(415, f"content encoding '{value[:80]}' is unknown or not the only one")
    elif name in values:
        raise Problem(400, "the request has two Content-Type fields")
    values[name] = _string(name, value)


def _put_property(values: dict[str, Any], name: bytes, raw: bytes) -> None:
    """Stores a property. Unknown names with this prefix, such as the headers of a forwarded
    delivery, are ignored."""
    key = name[len(PROPERTY_PREFIX) :].decode().replace("-", "_")
    reader = _READERS.get(key)
    if reader is not None:
        values[key] = reader(name.decode(), text(name, raw))


def _put_attribute(values: dict[str, str], name: bytes, raw: bytes) -> None:
    key = name[len(EVENT_PREFIX) :].decode()
    if key in values:
        raise Problem(400, f"the request has two {name.decode()[:80]} fields")
    values[key] = text(name, raw)


def _rabbithub_headers(value: str) -> Table:
    table: Table = {}
    for pair in filter(None, "".join(value.split()).split(",")):
        key, equals, content = pair.partition("=")
        if not equals or not key:
            raise Problem(400, f"{RABBITHUB_HEADERS.decode()}: '{pair[:80]}' is not name=value")
        table[short_string(RABBITHUB_HEADERS.decode(), key)] = content
    return table


def text(name: bytes, raw: bytes) -> str:
    """Decodes a header value as UTF-8. Raises `Problem` 400 if it is not."""
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise Problem(400, f"header {name.decode()} is not UTF-8") from error


def _string(name: str, value: str) -> str:
    # Properties become HTTP headers of a delivery, where a line end would start another header.
    if not CONTROL.isdisjoint(value):
        raise Problem(400, f"{name} must not contain control characters")
    return short_string(name, value)


def _integer(low: int, high: int) -> Callable[[str, str], int]:
    def read_integer(name: str, value: str) -> int:
        if not (value.isascii() and value.isdigit() and len(value) <= 20):
            raise Problem(400, f"{name} is '{value[:80]}', not a decimal number")
        if not low <= int(value) <= high:
            raise Problem(400, f"{name} is {value}, not from {low} to {high}")
        return int(value)

    return read_integer


def _headers(name: str, value: str) -> dict[str, FieldValue]:
    raise Problem(400, f"{name} is not a parameter: send X-Amqp-Header-NAME: value")


_READERS: dict[str, Callable[[str, str], Any]] = {
    **dict.fromkeys(PROPERTY_NAMES, _string),
    "headers": _headers,
    "delivery_mode": _integer(TRANSIENT, PERSISTENT),
    "priority": _integer(0, 255),
    "timestamp": _integer(0, MAX_TIMESTAMP),
}
_PARAMETERS = ("hub.topic", "hub.persistmsg", "hub.mode", "amqp.mandatory")
KNOWN = frozenset((*_PARAMETERS, *(f"amqp.{key}" for key in _READERS)))
"""The reserved parameters of a publish request."""
