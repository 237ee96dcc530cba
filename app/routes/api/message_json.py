"""Messages in JSON: as RabbitMQ's management API shows them, and as they are posted to it."""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Literal, NamedTuple

from ....core.message.model import PROPERTY_NAMES, Message, Properties
from ...definitions.values import table_from_json, table_to_json
from ...problems import Problem
from ...requests.properties import MAX_TIMESTAMP, short_string

_NUMBERS = {"delivery_mode": (1, 2), "priority": (0, 255), "timestamp": (0, MAX_TIMESTAMP)}
"""The least and greatest value of the properties that are numbers."""


class PayloadForm(NamedTuple):
    """The form of payloads: all in base64, or as text where they are UTF-8; cut after `truncate`
    bytes."""

    base64: bool = False
    truncate: int | None = None

    def shown(self, body: bytes) -> tuple[str, Literal["string", "base64"]]:
        """Returns the payload and its encoding."""
        cut = body if self.truncate is None else body[: self.truncate]
        if not self.base64:
            with suppress(UnicodeDecodeError):  # Then it is in base64.
                return cut.decode(), "string"
        return b64encode(cut).decode(), "base64"


def message_json(message: Message, form: PayloadForm) -> dict[str, Any]:
    payload, encoding = form.shown(message.body)
    return {
        "payload_bytes": len(message.body),
        "redelivered": message.redelivered,
        "exchange": message.exchange,
        "routing_key": message.routing_key,
        "properties": properties_json(message.properties),
        "payload": payload,
        "payload_encoding": encoding,
    }


def properties_json(properties: Properties) -> dict[str, Any]:
    """Returns the properties that the message has."""
    given = ((name, getattr(properties, name)) for name in PROPERTY_NAMES)
    found = {name: value for name, value in given if value is not None}
    if properties.headers is not None:
        found["headers"] = table_to_json(properties.headers)
    return found


# -- reading


def read_properties(given: Mapping[str, Any]) -> Properties:
    """Returns the properties; keys that are none are ignored, as in RabbitMQ.

    Raises `Problem` 400 naming the property.
    """
    found: dict[str, Any] = {}
    for name in PROPERTY_NAMES:
        value = given.get(name)
        if value is None:
            continue
        if name == "headers":
            found[name] = _headers(value)
        elif name in _NUMBERS:
            found[name] = _number(name, value)
        elif isinstance(value, str):
            found[name] = short_string(f"property '{name}'", value)
        else:
            raise Problem(400, f"property '{name}' has to be a string, not {repr(value)[:80]}")
    return Properties(**found)


def _headers(value: Any) -> Any:
    if not isinstance(value, dict):
        raise Problem(400, f"property 'headers' has to be an object, not {repr(value)[:80]}")
    try:
        return table_from_json(value)
    except ValueError as error:
        raise Problem(400, f"property 'headers': {error}") from error


def _number(name: str, value: Any) -> int:
    low, high = _NUMBERS[name]
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        value = int(value)
    if type(value) is not int or not low <= value <= high:
        raise Problem(400, f"property '{name}' is {repr(value)[:80]}, it has to be {low} to {high}")
    return value


def read_payload(payload: str, encoding: str) -> bytes:
    """Returns the payload as bytes; raises `Problem` 400 for an unknown encoding, or a payload that
    is not base64."""
    if encoding == "string":
        return payload.encode()
    if encoding != "base64":
        raise Problem(400, f"payload_encoding is '{encoding[:80]}', it can be string or base64")
    try:
        return b64decode(payload, validate=True)
    except (binascii.Error, ValueError) as error:
        raise Problem(400, f"the payload is not base64: {error}") from error
