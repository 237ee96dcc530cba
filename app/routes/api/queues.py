"""Queues: `/queues`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from starlette.responses import Response

from ....core.auth.authorization import to_declare, to_delete, to_pause
from ....core.auth.reserved import is_reserved
from ....core.broker import Broker
from ....core.queue.default_type import with_default_type
from ....core.queue.queue import Queue
from ....core.queue.size import message_bytes
from ....core.vhost import VirtualHost
from ....hub.engine.port import QueueSpec
from ...documents import objects, requests
from ...overview.history import DELIVERIES
from ...overview.trouble import TROUBLES, Trouble, trouble_of, troubles_of
from ...requests.properties import short_string
from ...responses.time_slice import TimeSlice
from .body import Body
from .call import Call, answer
from .declared import arguments_of, check_new_name
from .filters import Filters
from .lists import ListSpec, filtered, gathered, list_of, listing
from .own_objects import WITHOUT_HUB, shown_in, subscription_of
from .queue_json import idle_since_ms, oldest_age_s, queue_json, single_queue_json
from .required_tags import MANAGEMENT, sees
from .route import GONE, SET, Operation, Routes
from .view import STATISTICS_QUERY, View

TROUBLE: Final = "trouble"


async def list_all(call: Call) -> Response:
    """Lists the queues of all virtual hosts that the user sees."""
    vhosts = [one for one in call.broker.vhosts.values() if sees(call.user, one.name)]
    return await _listed(call, vhosts)


async def list_in_vhost(call: Call) -> Response:
    """Lists the queues of a virtual host."""
    return await _listed(call, [call.visible_vhost(*call.names)])


async def _listed(call: Call, vhosts: Iterable[VirtualHost]) -> Response:
    by_name = {vhost.name: vhost for vhost in vhosts}
    is_shown = shown_in(call)
    rows = await gathered(
        queue
        for vhost in by_name.values()
        for queue in tuple(vhost.queues.values())
        if is_shown(queue.name)
    )
    given = {TROUBLE: call.request.query_params.get(TROUBLE)}
    trouble = Filters(given, (TROUBLE,)).word(TROUBLE, TROUBLES)
    if trouble is not None:
        rows = await filtered(rows, lambda one: trouble in _troubles(call.broker, one), TimeSlice())
    view, node = View.of(call.request.query_params, call.broker), call.context.node
    sampler = call.broker.statistics.sampler

    def rate(queue: Queue, *fields: str) -> float:
        counters = queue.counters
        return 0.0 if counters is None else sum(sampler.rate(counters, one) for one in fields)

    def describe(queue: Queue) -> dict[str, Any]:
        found = queue_json(queue, by_name[queue.vhost], view, node)
        return {**found, **subscription_of(call, queue.name)}

    kind = ListSpec[Queue](
        lambda queue: queue.name,
        lambda queue: (queue.vhost, queue.name),
        describe,
        {
            "name": lambda queue: queue.name,
            "vhost": lambda queue: queue.vhost,
            "type": lambda queue: queue.kind,
            "messages": lambda queue: queue.ready_count + queue.unacked_count,
            "messages_ready": lambda queue: queue.ready_count,
            "messages_unacknowledged": lambda queue: queue.unacked_count,
            "consumers": lambda queue: queue.consumer_count,
            "message_stats.publish_details.rate": lambda queue: rate(queue, "publish"),
            "message_stats.ack_details.rate": lambda queue: rate(queue, "ack"),
            "message_stats.deliver_get_details.rate": lambda queue: rate(queue, *DELIVERIES),
            "trouble": lambda queue: _trouble(call.broker, queue),
        },
        {
            "memory": lambda queue: queue.estimated_bytes,
            "message_bytes": message_bytes,
            "message_bytes_ram": lambda queue: queue.estimated_bytes,
            "idle_since": lambda queue: idle_since_ms(queue, view) or 0,
            "oldest_message_age_s": lambda queue: oldest_age_s(queue, view) or 0.0,
        },
    )
    return await listing(call, rows, kind)


def _trouble(broker: Broker, queue: Queue) -> tuple[Trouble, int]:
    """Returns a key that puts queues that need attention last, of equal trouble by messages."""
    if is_reserved(queue.name):
        return Trouble.NONE, 0
    messages = 0 if queue.persists_all else queue.ready_count + queue.unacked_count
    return trouble_of(broker, queue), messages


def _troubles(broker: Broker, queue: Queue) -> Iterator[str]:
    return troubles_of(queue, _trouble(broker, queue)[0])


async def get(call: Call) -> Response:
    """Returns a queue with its consumers."""
    vhost, queue = _found(call)
    view = View.of(call.request.query_params, call.broker)
    document = single_queue_json(queue, vhost, view, call.context.node)
    return answer(document | subscription_of(call, queue.name))


def _found(call: Call) -> tuple[VirtualHost, Queue]:
    """Returns the queue in the path; raises `ChannelError` 404. Queues of other connections are
    found too."""
    name, queue_name = call.names
    vhost = call.visible_vhost(name)
    found = vhost.queues.get(queue_name)
    return vhost, vhost.queue(queue_name) if found is None else found


async def put(call: Call) -> Response:
    """Declares a queue; a repeated declaration has to be equivalent."""
    vhost_name, name = call.names
    body = await call.body()
    short_string("name of the queue", name)
    vhost = call.own_vhost(vhost_name)
    spec = _spec(vhost, name, body)
    is_new = name not in vhost.queues
    if is_new:
        check_new_name("queue", name, vhost_name)
    to_declare(call.user, vhost_name, "queue", name, spec.arguments, is_new=is_new)
    await call.context.engine.declare_queue(vhost_name, spec)
    return await call.done(is_new=is_new)


def _spec(vhost: VirtualHost, name: str, body: Body) -> QueueSpec:
    durable, auto_delete = body.flag("durable"), body.flag("auto_delete")
    arguments = with_default_type(
        vhost, name, arguments_of(body), durable=durable, exclusive=False, auto_delete=auto_delete
    )
    return QueueSpec(name, durable=durable, auto_delete=auto_delete, arguments=arguments)


async def delete(call: Call) -> Response:
    """Deletes a queue with its messages; with `if-empty` or `if-unused` only if it is."""
    vhost_name, name = call.names
    vhost = call.own_vhost(vhost_name)
    vhost.queue(name, call.context.engine)
    to_delete(call.user, vhost_name, "queue", name)
    query = call.request.query_params
    await call.context.engine.delete_queue(
        vhost_name,
        name,
        if_unused=query.get("if-unused") == "true",
        if_empty=query.get("if-empty") == "true",
    )
    return await call.done()


async def pause(call: Call) -> Response:
    """Pauses a queue: it accepts messages, but delivers none to consumers until it is resumed, also
    after a restart."""
    _pausable(call).pause()
    return await call.done()


async def resume(call: Call) -> Response:
    """Ends the pause of a queue; one that is not paused stays as it is."""
    _pausable(call).resume()
    return await call.done()


def _pausable(call: Call) -> Queue:
    """Returns the queue in the path; raises `ChannelError` 404, 405 for a queue of another
    connection, or 403."""
    vhost_name, name = call.names
    queue = call.own_vhost(vhost_name).queue(name, call.context.engine)
    to_pause(call.user, vhost_name, name)
    return queue


_LIST = {"GET": list_of(list_all, MANAGEMENT, objects.Queue, WITHOUT_HUB, TROUBLE)}
ROUTES: Routes = {
    "/queues": _LIST,
    "/queues/detailed": _LIST,
    "/queues/{vhost}": {
        "GET": list_of(list_in_vhost, MANAGEMENT, objects.Queue, WITHOUT_HUB, TROUBLE)
    },
    "/queues/{vhost}/{queue}": {
        "GET": Operation(get, MANAGEMENT, {200: objects.SingleQueue}, query=STATISTICS_QUERY),
        "PUT": Operation(put, MANAGEMENT, SET, requests.Queue),
        "DELETE": Operation(delete, MANAGEMENT, GONE),
    },
    "/queues/{vhost}/{queue}/pause": {"PUT": Operation(pause, MANAGEMENT, GONE)},
    "/queues/{vhost}/{queue}/resume": {"PUT": Operation(resume, MANAGEMENT, GONE)},
}
