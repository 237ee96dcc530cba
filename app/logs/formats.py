"""The formats of log lines: one line an event, for people or as JSON.

A line for people ends with the ids of the request that it is about, as `request=ID trace=ID`.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Final

import msgspec

from ..configuration.types import LogFormat
from .request_context import current_ids

TEXT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"
PACKAGE: Final = "warrenmq."
FIELDS: Final = "fields"
"""Key of the `extra` of a log call with the fields that an event has beside its message."""
_CONTROLS: Final = {
    code: f"\\x{code:02x}" for code in (*range(0x20), 0x7F, *range(0x80, 0xA0), 0x2028, 0x2029)
}


def formatter(log_format: LogFormat) -> logging.Formatter:
    return JsonFormatter() if log_format == "json" else OneLineFormatter(TEXT)


def area_of(logger: str) -> str:
    """Returns the area of a logger, such as `hub.delivery.events`."""
    return logger.removeprefix(PACKAGE)


class OneLineFormatter(logging.Formatter):
    """Escapes control characters in log messages, so that a name chosen by a client can't forge
    log lines or send terminal escapes. Tracebacks keep their lines."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = record.message.translate(_CONTROLS)
        line = super().formatMessage(record)
        ids = current_ids()
        if ids is None:
            return line
        return f"{line} request={ids.request}" + (f" trace={ids.trace}" if ids.trace else "")


class JsonFormatter(logging.Formatter):
    """An object on a line: `time`, `level`, `area`, `message`; `request_id` and `trace_id` of the
    request, `error` with the traceback, and the fields of the event, if there are such."""

    def format(self, record: logging.LogRecord) -> str:
        ids = current_ids()
        event: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "area": area_of(record.name),
            "message": record.getMessage(),
            "request_id": "" if ids is None else ids.request,
            "trace_id": "" if ids is None else ids.trace,
            "error": self.formatException(record.exc_info) if record.exc_info else "",
        }
        found = {name: value for name, value in event.items() if value or name == "message"}
        found |= getattr(record, FIELDS, {})
        return msgspec.json.encode({name: _sound(value) for name, value in found.items()}).decode()


def _sound(value: object) -> object:
    """Returns a text without halves of characters, which JSON can't have: names that clients send
    may have them."""
    if not isinstance(value, str):
        return value
    return value.encode(errors="backslashreplace").decode()
