"""Publishes many messages in one request: `POST /endpoint/x/NAME?hub.mode=batch`.

`application/x-ndjson`: each line is a JSON text and becomes a message.
`application/cloudevents-batch+json`: each event of the array becomes a message in structured
mode; without `hub.topic` its `type` is the routing key (CloudEvents HTTP binding 3.3).

All other parameters apply to each message. The response is sent when all are confirmed. A batch
with any syntax error is refused as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Literal

import msgspec

from ...core.auth import User
from ...core.counted import counted
from ...core.message.model import Properties
from ...hub.engine.port import BatchOutcome, BatchPart, Engine
from ..problems import Problem, busy, low_on_disk

MAX_MESSAGES = 20_000
"""A larger batch would block the event loop for more than 0.1 s."""
LINES_PER_MESSAGE = 4
"""Limit of lines, since empty ones are skipped; counting lines is much faster than parsing."""
EVENT = "application/cloudevents+json"
JSON = "application/json"


class _Event(msgspec.Struct):
    """The required attributes of a CloudEvent; the others are not decoded."""

    id: str
    source: str
    type: str
    specversion: Literal["1.0"]


def read_batch(properties: Properties, routing_key: str | None, body: bytes) -> list[BatchPart]:
    """Returns the messages with these properties; the content type selects the batch format.

    Raises `Problem` 415 for an unknown format, 400 for a bad message, naming it, 413 for too many.
    """
    media_type = (properties.content_type or "").partition(";")[0].strip().lower()
    read = _READERS.get(media_type)
    if read is None:
        limit = ", ".join(_READERS)
        raise Problem(415, f"'{media_type[:80]}' is not a batch format; use {limit}")
    try:
        body.decode()  # the parser does not validate strings
        return read(properties, routing_key, body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Problem(400, f"the batch can't be read: {error}; nothing was published") from error


async def publish_batch(
    engine: Engine,
    user: User,
    vhost: str,
    exchange: str,
    queue: str | None,
    parts: Sequence[BatchPart],
) -> BatchOutcome:
    """Publishes a batch. Raises `Problem` 507 or 503 as for a single message; with 503 the other
    messages of the batch were published."""
    outcome = await engine.publish_batch(user, vhost, exchange, parts, queue=queue)
    if not outcome.is_durable:
        raise low_on_disk()
    if outcome.rejected:
        raise busy(f"full queues refused {counted(outcome.rejected, 'message')} of the batch")
    return outcome


def _read_lines(properties: Properties, routing_key: str | None, body: bytes) -> list[BatchPart]:
    line_count = body.count(b"\n")
    most = LINES_PER_MESSAGE * MAX_MESSAGES
    if line_count > most:
        raise Problem(413, f"the batch has {line_count} lines, at most {most} are taken")
    found = _LINES.decode_lines(body)
    _check_count(len(found))
    lines = replace(properties, content_type=JSON)
    return [BatchPart(routing_key or "", lines, list(map(bytes, found)))]


def _read_events(properties: Properties, routing_key: str | None, body: bytes) -> list[BatchPart]:
    # The cheap check comes first: it fails at the first element that is not an event.
    attributes = _ATTRIBUTES.decode(body)
    _check_count(len(attributes))
    keys = [_key(index, event) for index, event in enumerate(attributes)]
    if routing_key is not None:
        keys = [routing_key] * len(keys)
    events = replace(properties, content_type=EVENT)
    pairs = zip(keys, map(bytes, _EVENTS.decode(body)), strict=True)
    return [
        BatchPart(key, events, [event for _, event in group])
        for key, group in groupby(pairs, lambda pair: pair[0])
    ]


def _key(index: int, event: _Event) -> str:
    kind = event.type
    if not 0 < len(kind.encode()) <= 255:
        raise Problem(400, f"event {index}: its type has {len(kind.encode())} bytes, not 1 to 255")
    return kind


def _check_count(count: int) -> None:
    if count > MAX_MESSAGES:
        raise Problem(413, f"the batch has {count} messages, at most {MAX_MESSAGES} are taken")


_LINES = msgspec.json.Decoder(msgspec.Raw)
_EVENTS = msgspec.json.Decoder(list[msgspec.Raw])
_ATTRIBUTES = msgspec.json.Decoder(list[_Event])
_READERS: dict[str, Callable[[Properties, str | None, bytes], list[BatchPart]]] = {
    "application/x-ndjson": _read_lines,
    "application/ndjson": _read_lines,
    "application/jsonl": _read_lines,
    "application/cloudevents-batch+json": _read_events,
}
