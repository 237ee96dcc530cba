"""Paths that LavinMQ has beside those of RabbitMQ, for its clients.

The log: `/livelog`, `/logs`. Queues: `unacked`, `stream`, `restart`. Consumers are cancelled by
their connection, channel and tag.
"""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

from starlette.responses import PlainTextResponse, Response

from ....core.errors import not_found
from ....core.local.peek import PeekedMessage
from ....core.proto.channel import Channel
from ....core.proto.connections import connections_of
from ...documents import objects, rabbitmq, requests
from ...logs.tail import LINES_MAX
from ...problems import Problem
from ...responses.time_slice import TimeSlice
from . import definitions
from .call import NO_STORE, Call
from .connections import connection_of, require_closing
from .consumer_json import channel_name
from .event_stream import SSE
from .lists import ListSpec, bare_list, list_of, listing
from .log import QUERY, followed
from .message_json import message_json
from .messages import MAX_LOOKED, payload_form, peeked, readable
from .required_tags import ADMINISTRATOR, MANAGEMENT
from .route import GONE, Operation, Routes
from .unacknowledged import since_ms

GOT: Final = "Basic get"
"""In place of the tag of a consumer."""


# -- the log


async def live_log(call: Call) -> Response:
    """Sends the last lines of the log, then each further one, as events: `data` is level, area and
    message. `/api/warren/log` has more of each line."""
    return followed(call, LINES_MAX, _live_line)


def _live_line(line: str) -> str:
    return json.dumps(_parts(line)[1:])


async def log_file(call: Call) -> Response:
    """Returns the last lines of the log as a text file."""
    tail = call.context.node.log
    lines = [_parts(line) for _, line in tail.lines_after(tail.newest(LINES_MAX))]
    text = "".join(
        f"{time} [{level.upper()}] {area} - {said}\n" for time, level, area, said in lines
    )
    headers = {**NO_STORE, "Content-Disposition": "attachment; filename=logs.txt"}
    return PlainTextResponse(text, headers=headers)


def _parts(line: str) -> tuple[str, str, str, str]:
    """Returns time, level, area and message of a line; one that was cut has its text alone."""
    try:
        found = json.loads(line)
    except ValueError:
        return "", "", "", line
    return found["time"], found["level"], found["area"], found["message"]


# -- queues


class _Unacked(NamedTuple):
    channel: Channel
    tag: int
    consumer_tag: str


async def list_unacked(call: Call) -> Response:
    """Lists messages of a queue that channels hold unacknowledged, each by its delivery tag;
    `unacked_for_seconds` is up to some ten seconds less than the truth.
    `/api/warren/queues/{vhost}/{queue}/unacknowledged` has a line for each holder."""
    vhost, name = call.names
    host = call.visible_vhost(vhost)
    queue = host.queues.get(name) or host.queue(name)
    rows, time_slice = list[_Unacked](), TimeSlice()
    for connection in connections_of(call.broker):
        for channel in tuple(connection.channels.values()):
            if queue not in channel.deliveries.sources:
                continue
            for tag, consumer, source in channel.deliveries.unacked.outstanding():
                if source is queue:
                    rows.append(_Unacked(channel, tag, GOT if consumer is None else consumer.tag))
                await time_slice.yield_if_over()
    now_ms = call.broker.clock.now_ms()

    def described(row: _Unacked) -> dict[str, Any]:
        delivered_ms = since_ms(row.channel, row.tag)
        return {
            "delivery_tag": row.tag,
            "consumer_tag": row.consumer_tag,
            "unacked_for_seconds": 0 if delivered_ms is None else (now_ms - delivered_ms) // 1_000,
            "channel_name": channel_name(row.channel),
        }

    kind = ListSpec[_Unacked](lambda row: str(row.tag), lambda row: row.tag, described)
    return await listing(call, rows, kind)


async def read_stream(call: Call) -> Response:
    """Returns messages of a stream from an `offset` on, which may be `first`, `last` or `next`;
    the stream does not change. Use `/stream` or `/streams` to follow a stream."""
    body = await call.body()
    queue = readable(call)
    if queue.kind != "stream":
        raise Problem(400, f"queue '{queue.name}' in vhost '{queue.vhost}' is no stream")
    count = min(max(body.integer("count", 1), 0), MAX_LOOKED)
    offset = str(body.anything("offset")) if body.has("offset") else "first"
    start = _start(offset, count)
    found = await peeked(call, queue, start, count) if count and start is not None else []
    form = payload_form(body)

    def described(one: PeekedMessage) -> dict[str, Any]:
        return {**message_json(one.message, form), "message_count": queue.ready_count}

    return await bare_list(found, described)


def _start(offset: str, count: int) -> int | None:
    """Returns where to begin, None behind the end. Raises `Problem` 400."""
    words = {"first": 0, "last": -count, "next": None}
    if offset in words:
        return words[offset]
    if not (offset.isascii() and offset.isdigit() and len(offset) <= 18):
        raise Problem(400, f"offset is '{offset[:80]}', it can be first, last, next or a number")
    return int(offset)


async def restart(call: Call) -> Response:
    """Refuses: queues close by no error here, so there is none to be restarted."""
    vhost, name = call.names
    queue = call.own_vhost(vhost).queue(name, call.context.engine)
    raise Problem(400, f"queue '{queue.name}' was not restarted: it is not closed")


# -- consumers


async def cancel(call: Call) -> Response:
    """Cancels a consumer, and notifies its client with `basic.cancel` if the client supports it.
    Messages that were delivered to it may still be acknowledged."""
    vhost, name, number, tag = call.names
    connection = connection_of(call, name)
    require_closing(call, connection)
    channel = connection.channels.get(int(number)) if number.isdecimal() else None
    consumer = None if channel is None else channel.consumers.get(tag)
    if channel is None or consumer is None or connection.vhost.name != vhost:
        raise not_found(
            f"no consumer '{tag}' on channel {number[:20]} of '{name}' in vhost '{vhost}'"
        )
    channel.cancelled(consumer)
    consumer.queue.remove_consumer(consumer)
    call.broker.on_work()
    return await call.done()


ROUTES: Routes = {
    "/livelog": {"GET": Operation(live_log, ADMINISTRATOR, {200: (SSE,)}, query=QUERY)},
    "/logs": {"GET": Operation(log_file, ADMINISTRATOR, {200: ("text/plain",)})},
    "/queues/{vhost}/{queue}/unacked": {
        "GET": list_of(list_unacked, MANAGEMENT, objects.UnackedMessage)
    },
    "/queues/{vhost}/{queue}/stream": {
        "POST": Operation(
            read_stream, MANAGEMENT, {200: list[rabbitmq.GotMessage]}, requests.StreamRead
        )
    },
    "/queues/{vhost}/{queue}/restart": {"PUT": Operation(restart, MANAGEMENT, {})},
    "/consumers/{vhost}/{connection}/{channel}/{tag}": {
        "DELETE": Operation(cancel, MANAGEMENT, GONE)
    },
    "/definitions/upload": {
        "POST": Operation(
            definitions.add, ADMINISTRATOR, definitions.IMPORTED, requests.Definitions
        )
    },
}
