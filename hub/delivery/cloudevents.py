"""Messages as CloudEvents 1.0 over HTTP: attributes in headers, or all in one JSON document.

A message that was published as an event has its attributes as headers, with the names of the AMQP
binding (3.1.3.1); any other gets attributes here.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from urllib.parse import quote

import msgspec

from ...core.message.model import FieldValue, Message
from .envelope import Envelope

STRUCTURED_TYPE = "application/cloudevents+json"
DEFAULT_TYPE = "warren.message"
VERSION = "1.0"
SPECVERSION = "specversion"
REQUIRED = ("id", "source", "type")
OWN = "cloudEvents:"
_OWN_TOO = "cloudEvents_"
"""For clients that can't write a colon (AMQP binding 3.1.3.1)."""
MAX_CHARACTERS = 4_096
"""The limit of an event's own attributes and their names: half of what servers accept for all
headers."""
_CONTENT = ("datacontenttype", "data", "data_base64")
_NAME = re.compile("[a-z0-9]+")
_PRINTABLE = "".join(map(chr, range(0x21, 0x7F))).replace('"', "").replace("%", "")
_JSON = re.compile(r"[\w.-]+/([\w.-]+\+)?json\s*(;.*)?", re.IGNORECASE)
_TEXT = re.compile(r"text/.*", re.IGNORECASE)


def own_attributes(message: Message) -> dict[str, str] | None:
    """Returns the attributes of a message that was published as an event; None for any other.

    Publishers over AMQP can write anything: invalid attributes are left out, and extensions above
    the limit.
    """
    table = message.properties.headers
    if not table or not (OWN + SPECVERSION in table or _OWN_TOO + SPECVERSION in table):
        return None
    attributes = {
        name[len(OWN) :]: _text(value)
        for name, value in table.items()
        if name.startswith((OWN, _OWN_TOO))
    }
    found = {name: attributes.pop(name, "") for name in (SPECVERSION, *REQUIRED)}
    room = MAX_CHARACTERS - characters(found)
    if found[SPECVERSION] != VERSION or not all(found.values()) or room < 0:
        return None
    for name, value in attributes.items():
        size = characters({name: value})
        if value and size <= room and _NAME.fullmatch(name) and name not in _CONTENT:
            found[name] = value
            room -= size
    return found


def attributes(
    source: str, envelope: Envelope, message: Message, arrived_at: float
) -> dict[str, str]:
    """Returns the context attributes of a message that is no event itself; those that would be
    empty are left out, as the format asks. `time` is the publisher's timestamp, or `arrived_at`,
    seconds since 1970, which stays the same over retries."""
    properties = message.properties
    found = {
        SPECVERSION: VERSION,
        "id": envelope.message_id,
        "source": source,
        "type": properties.type or DEFAULT_TYPE,
        "subject": envelope.routing_key,
    }
    time = _time(properties.timestamp, "seconds") if properties.timestamp is not None else None
    found["time"] = time or _time(arrived_at, "milliseconds") or ""
    return {name: value for name, value in found.items() if value}


def characters(attributes: dict[str, str]) -> int:
    """Returns how many characters names and values have in headers, where one may become twelve."""
    return sum(len(name) + len(_quoted(value)) for name, value in attributes.items())


def binary_headers(attributes: dict[str, str]) -> dict[str, str]:
    """Returns `ce-` headers (HTTP protocol binding 3.1.3.2)."""
    return {f"ce-{name}": _quoted(value) for name, value in attributes.items()}


def structured_body(attributes: dict[str, str], content_type: str, body: bytes) -> bytes:
    """Returns the JSON event format: JSON stays JSON, text is a string, all else is base64."""
    document: dict[str, object] = {name: _storable(value) for name, value in attributes.items()}
    document["datacontenttype"] = _storable(content_type)
    text = _text_of(body)
    if text is not None and _JSON.fullmatch(content_type) and _is_json(body):
        document["data"] = msgspec.Raw(body)
    elif text is not None and _TEXT.fullmatch(content_type):
        document["data"] = text
    else:
        document["data_base64"] = body  # msgspec writes bytes as base64
    return msgspec.json.encode(document)


def is_structured(content_type: str) -> bool:
    """Whether a message is a whole CloudEvent already."""
    return content_type.partition(";")[0].strip().lower() == STRUCTURED_TYPE


def _quoted(value: str) -> str:
    """Percent-encodes space, quote, percent and all that is not printable ASCII, as UTF-8."""
    return quote(value, safe=_PRINTABLE, errors="surrogateescape")


def _text(value: FieldValue) -> str:
    """Returns the canonical form of a value (CloudEvents 3.1.1), "" if it has none."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
    return ""


def _storable(value: str) -> str:
    """Replaces octets that are not UTF-8, which JSON can't contain."""
    return value if value.isascii() else value.encode(errors="replace").decode()


def _text_of(body: bytes) -> str | None:
    try:
        return body.decode()
    except UnicodeDecodeError:
        return None


def _is_json(body: bytes) -> bool:
    try:
        msgspec.json.decode(body, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):  # at some 1,000 levels
        return False
    return True


def _time(timestamp_s: float, unit: str) -> str | None:
    """Returns the time by RFC 3339, None if it is out of range: AMQP has 64 bits of seconds."""
    try:
        text = datetime.fromtimestamp(timestamp_s, UTC).isoformat(timespec=unit)
        return text.replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return None
