"""Arguments in JSON: types that JSON does not have are written with a tag.

| type | in the file |
|---|---|
| void, boolean, integer, text, array, table | as JSON has them |
| double | a number with a point or an exponent; `{"$double": "nan"}`, `"inf"` or `"-inf"` |
| decimal | `{"$decimal": "1.20"}` |
| timestamp | `{"$timestamp": 1700000000}`, seconds since 1970 |
| text that is not UTF-8 | `{"$bytes": "/w=="}`, base64 |
| byte array | `{"$binary": "/w=="}`, base64 |
| table with a single key that begins with `$` | `{"$table": {"$key": 1}}` |
"""

from __future__ import annotations

import binascii
import json
import math
from base64 import b64decode, b64encode
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from ...core.definitions.fields import FieldReader, arguments
from ...core.message.model import FieldValue, Table, Timestamp

_MARK = "$"


def to_json(value: FieldValue) -> Any:
    """Returns a value for `json`; `from_json` is its inverse."""
    match value:
        case float() if not math.isfinite(value):
            return {"$double": str(value)}
        case Decimal():
            return {"$decimal": str(value)}
        case datetime():
            return {"$timestamp": int(value.timestamp())}
        case Timestamp():
            return {"$timestamp": int(value)}
        case bytes():
            return {"$bytes": b64encode(value).decode()}
        case bytearray():
            return {"$binary": b64encode(value).decode()}
        case list():
            return [to_json(item) for item in value]
        case dict():
            table = table_to_json(value)
            return {"$table": table} if _is_tagged(value) else table
        case bool():
            return value
        case int():
            return int(value)  # Some have a type of their own for the field that they came in.
        case _:
            return value


def table_to_json(table: Table) -> dict[str, Any]:
    """Returns a table of arguments, which needs no tag."""
    return {name: to_json(value) for name, value in table.items()}


def table_from_json(found: dict[str, Any]) -> Table:
    """Returns a table of arguments. Raises `ValueError` if AMQP can't encode it."""
    table = {name: from_json(value) for name, value in found.items()}
    return FieldReader(arguments(table)).arguments()


def json_text(value: Any) -> str:
    """Returns the value of a parameter as it is stored."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def from_json(found: Any) -> FieldValue:
    """Returns the value of JSON from `to_json`; raises `ValueError` for a tag that is unknown or
    does not fit its value."""
    if isinstance(found, list):
        return [from_json(item) for item in found]
    if isinstance(found, dict):
        return _tagged(found) if _is_tagged(found) else _table(found)
    if isinstance(found, float) and not math.isfinite(found):
        raise ValueError("a number is too large for a double")
    value: FieldValue = found
    return value


def _is_tagged(table: dict[str, Any]) -> bool:
    return len(table) == 1 and next(iter(table)).startswith(_MARK)


def _tagged(found: dict[str, Any]) -> FieldValue:
    ((tag, value),) = found.items()
    read = _TAGS.get(tag)
    if read is None:
        raise ValueError(f"unknown tag {tag!r}; a table with this one key is a $table")
    return read(value)


def _table(found: Any) -> Table:
    if not isinstance(found, dict):
        raise ValueError("$table needs an object")
    return {name: from_json(value) for name, value in found.items()}


def _double(found: Any) -> float:
    if found not in ("nan", "inf", "-inf"):
        raise ValueError('$double needs "nan", "inf" or "-inf"')
    return float(found)


def _decimal(found: Any) -> Decimal:
    try:
        return Decimal(found if isinstance(found, str) else "")
    except InvalidOperation as error:
        raise ValueError('$decimal needs digits in quotes, "1.20"') from error


def _timestamp(found: Any) -> datetime | Timestamp:
    if not isinstance(found, int) or isinstance(found, bool):
        raise ValueError("$timestamp needs whole seconds")
    if not -(2**63) <= found < 2**63:
        raise ValueError(f"$timestamp {found} is out of range: 64 bits with a sign")
    try:
        return datetime.fromtimestamp(found, UTC)
    except (OverflowError, OSError, ValueError):
        return Timestamp(found)


def _base64(found: Any) -> bytes:
    try:
        return b64decode(found if isinstance(found, str) else "=", validate=True)
    except binascii.Error as error:
        raise ValueError("$bytes and $binary need base64 in quotes") from error


_TAGS: dict[str, Callable[[Any], FieldValue]] = {
    "$double": _double,
    "$decimal": _decimal,
    "$timestamp": _timestamp,
    "$bytes": _base64,
    "$binary": lambda found: bytearray(_base64(found)),
    "$table": _table,
}
