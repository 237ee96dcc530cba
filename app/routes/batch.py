"""Many messages in one request: `POST /endpoint/x/NAME?hub.mode=batch`.

`application/x-ndjson`: each line is a JSON text and becomes a message of its own.
`application/cloudevents-batch+json`: each event of the array becomes a message in structured
form; without `hub.topic` its `type` is the routing key (CloudEvents HTTP binding 3.3).

All other parameters hold for each message. The answer comes when all are confirmed; nothing is
published of a batch that can't be read whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Literal

import msgspec

from ...core.message.model import Properties
from ...hub.engine.port import BatchOutcome, Engine, Portion
from ..problems import Problem, busy, low_on_disk

MAX_MESSAGES = 20_000
"""More would hold up the event loop for longer than other clients should notice (0.1 s)."""
LINES_PER_MESSAGE = 4
"""Empty ones are skipped; sixteen megabytes of lines are counted much faster than parsed."""
EVENT = "application/cloudevents+json"
JSON = "application/json"


class _Event(msgspec.Struct):
    """What a CloudEvent must have; the rest of it is not looked at."""

    id: str
    source: str
    type: str
    specversion: Literal["1.0"]


def read_batch(properties: Properties, routing_key: str | None, body: bytes) -> list[Portion]:
    """The messages, with these properties but for the content type, which tells the form.

    Raises `Problem` 415 for another form, 400 for a bad message, naming it, 413 for too many.
    """
    media_type = (properties.content_type or "").partition(";")[0].strip().lower()
    read = _READERS.get(media_type)
    if read is None:
        limit = ", ".join(_READERS)
        raise Problem(415, f"a batch of '{media_type[:80]}' is not known, but {limit}")
    try:
        body.decode()  # what stands in strings is not looked at by the parser
        return read(properties, routing_key, body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Problem(400, f"the batch can't be read: {error}; nothing was published") from error


async def publish_batch(
    engine: Engine, vhost: str, exchange: str, queue: str | None, portions: Sequence[Portion]
) -> BatchOutcome:
    """Raises `Problem` 507 or 503 as for a single message; what is not counted in it is in its
    queues."""
    outcome = await engine.publish_batch(vhost, exchange, portions, queue=queue)
    if not outcome.is_kept:
        raise low_on_disk()
    if outcome.rejected:
        raise busy(f"queues that are full have refused {outcome.rejected} messages of the batch")
    return outcome


def _read_lines(properties: Properties, routing_key: str | None, body: bytes) -> list[Portion]:
    line_count = body.count(b"\n")
    most = LINES_PER_MESSAGE * MAX_MESSAGES
    if line_count > most:
        raise Problem(413, f"the batch has {line_count} lines, at most {most} are taken")
    found = _LINES.decode_lines(body)
    _check_count(len(found))
    lines = replace(properties, content_type=JSON)
    return [Portion(routing_key or "", lines, list(map(bytes, found)))]


def _read_events(properties: Properties, routing_key: str | None, body: bytes) -> list[Portion]:
    # First what is short if it is right: millions of numbers, say, end at the first of them.
    attributes = _ATTRIBUTES.decode(body)
    _check_count(len(attributes))
    keys = [_key(place, event) for place, event in enumerate(attributes)]
    if routing_key is not None:
        keys = [routing_key] * len(keys)
    events = replace(properties, content_type=EVENT)
    pairs = zip(keys, map(bytes, _EVENTS.decode(body)), strict=True)
    return [
        Portion(key, events, [event for _, event in group])
        for key, group in groupby(pairs, lambda pair: pair[0])
    ]


def _key(place: int, event: _Event) -> str:
    kind = event.type
    if not 0 < len(kind.encode()) <= 255:
        raise Problem(400, f"event {place}: its type has {len(kind.encode())} bytes, not 1 to 255")
    return kind


def _check_count(count: int) -> None:
    if count > MAX_MESSAGES:
        raise Problem(413, f"the batch has {count} messages, at most {MAX_MESSAGES} are taken")


_LINES = msgspec.json.Decoder(msgspec.Raw)
_EVENTS = msgspec.json.Decoder(list[msgspec.Raw])
_ATTRIBUTES = msgspec.json.Decoder(list[_Event])
_READERS: dict[str, Callable[[Properties, str | None, bytes], list[Portion]]] = {
    "application/x-ndjson": _read_lines,
    "application/ndjson": _read_lines,
    "application/jsonl": _read_lines,
    "application/cloudevents-batch+json": _read_events,
}
