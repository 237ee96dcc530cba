"""Messages: published to exchanges, got from queues, looked at, moved and purged."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final

from starlette.responses import Response

from ....core.auth.authorization import to_publish
from ....core.local.getter import PulledMessage, PullRequest
from ....core.local.peek import Peeked, peek
from ....core.queue.queue import Queue
from ....hub.engine.move import MoveTarget, move
from ....hub.engine.port import PublishOutcome
from ...documents import rabbitmq, requests
from ...problems import Problem, low_on_disk, refused_by_queue
from ...requests.properties import short_string
from .body import Body
from .call import Call, answer
from .filters import Filters
from .lists import bare_list
from .message_json import PayloadForm, message_json, read_payload, read_properties
from .required_tags import MANAGEMENT
from .route import GONE, Operation, Routes

DEFAULT_EXCHANGE: Final = "amq.default"
"""The name of the default exchange in paths."""
MAX_COUNT: Final = 10_000
MAX_LOOKED: Final = 250
"""Messages that one request is shown, in one step of some milliseconds; `from` goes on."""
MAX_BYTES: Final = 32 * 1024 * 1024
"""The limit of bodies in one response; further messages are left out."""
MAX_MOVED: Final = 1_000_000
LOOK_QUERY = ("from", "count", "encoding", "truncate")
"""Query parameters of `look`."""


# -- publishing


async def publish(call: Call) -> Response:
    """Publishes one message; `routed` says whether it reached a queue."""
    vhost, path_name = call.names
    exchange = "" if path_name == DEFAULT_EXCHANGE else path_name
    body = await call.body(max_bytes=MAX_BYTES)
    key = short_string("routing_key", body.text("routing_key"))
    properties = read_properties(body.table("properties"))
    payload = read_payload(body.text("payload"), body.text("payload_encoding"))
    call.own_vhost(vhost)
    outcome = await call.context.engine.publish(
        call.user, vhost, exchange, key, properties, payload
    )
    if outcome is PublishOutcome.NOT_DURABLE:
        raise low_on_disk()
    if outcome is PublishOutcome.REJECTED:
        raise refused_by_queue()
    return answer({"routed": outcome is PublishOutcome.ROUTED})


# -- getting


async def get(call: Call) -> Response:
    """Gets messages from the front of a queue, and settles them as `ackmode` says. LavinMQ's pages
    send `ack_mode`, and `get` to acknowledge."""
    body = await call.body()
    count = _count(body.integer("count"))
    mode = body.text("ack_mode" if "ack_mode" in body else "ackmode")
    form = payload_form(body)
    if mode not in _SETTLE:
        raise Problem(400, f"ackmode is '{mode[:80]}', it can be {', '.join(_SETTLE)}")
    getter, found = await _got(call, count)
    settled = asyncio.Event()
    _SETTLE[mode](getter, settled.set)
    await settled.wait()
    return await bare_list(
        found, lambda one: {**message_json(one.message, form), "message_count": one.left}
    )


_SETTLE: dict[str, Callable[[PullRequest, Callable[[], None]], None]] = {
    "ack_requeue_true": partial(PullRequest.requeue, failed=False),
    "ack_requeue_false": PullRequest.acknowledge,
    "get": PullRequest.acknowledge,
    "reject_requeue_true": partial(PullRequest.requeue, failed=True),
    "reject_requeue_false": PullRequest.reject,
}


async def _got(call: Call, count: int) -> tuple[PullRequest, list[PulledMessage]]:
    """Returns what was got; if the request is cancelled, the messages go back to their places."""
    arrived: asyncio.Future[list[PulledMessage]] = asyncio.get_running_loop().create_future()

    def done(found: list[PulledMessage]) -> None:
        if arrived.cancelled():
            getter.give_back()
        else:
            arrived.set_result(found)

    getter = PullRequest(call.broker, _emptied(call), count, MAX_BYTES, done)
    getter.start()
    return getter, await arrived


def _count(count: int) -> int:
    if not 0 <= count <= MAX_COUNT:
        raise Problem(400, f"count is {count}, it has to be 0 to {MAX_COUNT}")
    return count


def payload_form(body: Body) -> PayloadForm:
    """Returns how a body asks for payloads. Raises `Problem` 400."""
    encoding = body.text("encoding") if "encoding" in body else "auto"
    truncate = body.integer("truncate") if body.has("truncate") else None
    return _form(encoding, truncate)


def _form(encoding: str, truncate: int | None) -> PayloadForm:
    if encoding not in ("auto", "base64"):
        raise Problem(400, f"encoding is '{encoding[:80]}', it can be auto or base64")
    if truncate is not None and truncate < 0:
        raise Problem(400, f"truncate is {truncate}, it has to be a number of bytes")
    return PayloadForm(encoding == "base64", truncate)


def readable(call: Call) -> Queue:
    """Returns the queue in the path. Raises `ChannelError` 403 or 404."""
    vhost, name = call.names
    host = call.own_vhost(vhost)
    call.user.require(vhost, "read", "queue", name)
    return host.queue(name)


def _emptied(call: Call) -> Queue:
    """Returns the queue in the path, from which messages are taken. Raises as `readable`, and
    `Problem` 400 for a stream."""
    queue = readable(call)
    if queue.kind == "stream":
        raise Problem(
            400,
            f"queue '{queue.name}' in vhost '{queue.vhost}' is a stream, from which nothing is "
            "taken: GET /api/warren/queues/VHOST/NAME/messages shows its messages",
        )
    return queue


# -- looking


async def look(call: Call) -> Response:
    """Shows ready messages without consuming them: from the `first` on, the `last` ones, or from a
    position, for a stream from an offset on."""
    filters = Filters(dict(call.request.query_params), LOOK_QUERY)
    count = filters.number("count", 1, MAX_LOOKED) or 1
    form = _form(filters.text("encoding") or "auto", filters.number("truncate", 0, MAX_BYTES))
    queue = readable(call)
    found = await peeked(call, queue, _start(filters, count), count)
    return answer(
        {
            "messages": [
                {"position": one.position, **message_json(one.message, form)} for one in found
            ],
            "ready": queue.ready_count,
        }
    )


async def peeked(call: Call, queue: Queue, start: int, count: int) -> Peeked:
    """Returns so many messages from a position on, from the end if it is negative."""
    arrived: asyncio.Future[Peeked] = asyncio.get_running_loop().create_future()
    call.broker.tick()
    peek(call.broker, queue, start, count, MAX_BYTES, partial(_set, arrived))
    call.broker.on_work()
    return await arrived


def _set(arrived: asyncio.Future[Peeked], found: Peeked) -> None:
    if not arrived.cancelled():
        arrived.set_result(found)


def _start(filters: Filters, count: int) -> int:
    word = filters.text("from") or "first"
    if word in ("first", "last"):
        return 0 if word == "first" else -count
    if not (word.isascii() and word.isdigit() and len(word) <= 18):
        raise Problem(400, f"'from' is '{word[:80]}', it can be first, last or a position")
    return int(word)


# -- purging and moving


async def purge(call: Call) -> Response:
    """Removes all ready messages."""
    queue = _emptied(call)
    call.broker.tick()
    purged = asyncio.Event()
    queue.purge(purged.set)
    call.broker.on_work()
    await purged.wait()
    return await call.done()


async def act(call: Call) -> Response:
    """Accepts the actions of mirrored queues, for which nothing has to be done here."""
    vhost, name = call.names
    call.own_vhost(vhost).queue(name)
    action = (await call.body()).text("action")
    if action not in ("sync", "cancel_sync"):
        raise Problem(400, f"action is '{action[:80]}', it can be sync or cancel_sync")
    return Response(status_code=204)


async def move_all(call: Call) -> Response:
    """Moves ready messages to a queue, or publishes them to an exchange, in order. Each has left
    its queue once its copy is confirmed; one that no queue takes stays, and ends the move."""
    vhost, name = call.names
    body = await call.body()
    target = _target(body)
    limit = body.integer("count", MAX_MOVED)
    if not 1 <= limit <= MAX_MOVED:
        raise Problem(400, f"count is {limit}, it has to be 1 to {MAX_MOVED}")
    _emptied(call)
    _require_target(call, vhost, target)
    call.broker.alarms.require_none()
    moved = await move(call.context.engine, call.user, vhost, name, target, limit)
    return answer({"moved": moved.count, "left": moved.left, "reason": moved.reason})


def _require_target(call: Call, vhost: str, target: MoveTarget) -> None:
    """Raises `ChannelError` if there is no such target, or if the user may not publish there at
    all: then not even a queue without messages is moved."""
    host = call.own_vhost(vhost)
    if target.queue is not None:
        to_publish(call.user, vhost, "queue", target.queue)
        host.queue(target.queue)
    else:
        to_publish(call.user, vhost, "exchange", target.exchange)
        host.publishable(target.exchange)


def _target(body: Body) -> MoveTarget:
    if ("queue" in body) == ("exchange" in body):
        raise Problem(400, "the body needs either the key 'queue' or the key 'exchange'")
    if "queue" in body:
        return MoveTarget(queue=body.text("queue"))
    key = short_string("routing_key", body.text("routing_key")) if "routing_key" in body else None
    return MoveTarget(exchange=body.text("exchange"), routing_key=key)


ROUTES: Routes = {
    "/exchanges/{vhost}/{exchange}/publish": {
        "POST": Operation(publish, MANAGEMENT, {200: rabbitmq.Routed}, requests.Publish)
    },
    "/queues/{vhost}/{queue}/get": {
        "POST": Operation(get, MANAGEMENT, {200: list[rabbitmq.GotMessage]}, requests.Get)
    },
    "/queues/{vhost}/{queue}/contents": {"DELETE": Operation(purge, MANAGEMENT, GONE)},
    "/queues/{vhost}/{queue}/actions": {
        "POST": Operation(act, MANAGEMENT, GONE, requests.QueueAction)
    },
    "/warren/queues/{vhost}/{queue}/messages": {
        "GET": Operation(look, MANAGEMENT, {200: rabbitmq.PeekedMessages}, query=LOOK_QUERY)
    },
    "/warren/queues/{vhost}/{queue}/move": {
        "POST": Operation(move_all, MANAGEMENT, {200: rabbitmq.MovedMessages}, requests.Move)
    },
}
