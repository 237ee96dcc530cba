"""Consumers: `/consumers`."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.responses import Response

from ....core.queue.consumer import Consumer
from ....core.vhost import VirtualHost
from ...documents import objects
from ...responses.time_slice import TimeSlice
from .call import Call
from .consumer_json import consumer_json
from .lists import ListSpec, list_of, listing
from .required_tags import MANAGEMENT, sees
from .route import Routes


async def list_all(call: Call) -> Response:
    """Lists the consumers of all queues, those of the hub's subscriptions too."""
    vhosts = [one for one in call.broker.vhosts.values() if sees(call.user, one.name)]
    return await _listed(call, vhosts)


async def list_in_vhost(call: Call) -> Response:
    """Lists the consumers in a virtual host, those of the hub's subscriptions included."""
    return await _listed(call, [call.visible_vhost(*call.names)])


async def _listed(call: Call, vhosts: Iterable[VirtualHost]) -> Response:
    found: list[Consumer] = []
    time_slice = TimeSlice()
    for vhost in vhosts:
        for queue in tuple(vhost.queues.values()):
            if queue.ring is not None:
                found += queue.ring.members
                await time_slice.yield_if_over()
    kind = ListSpec[Consumer](
        lambda one: one.tag,
        lambda one: (one.queue.vhost, one.queue.name, one.tag),
        lambda one: consumer_json(one, call.broker, call.context.node),
    )
    return await listing(call, found, kind)


ROUTES: Routes = {
    "/consumers": {"GET": list_of(list_all, MANAGEMENT, objects.Consumer)},
    "/consumers/{vhost}": {"GET": list_of(list_in_vhost, MANAGEMENT, objects.Consumer)},
}
