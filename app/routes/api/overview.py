"""The server as a whole: `/overview`, `/cluster-name`, and what clients ask about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from starlette.responses import Response

from ....core import VERSION
from ....core.definitions.kinds import GlobalParameterDefinition
from ....core.parameters import CLUSTER_NAME
from ....core.proto.server_properties import COMPATIBLE_VERSION
from ....core.route.delayed import DELAYED
from ....core.route.registry import exchange_types
from ...definitions.values import json_text
from ...documents import requests, server
from ...node import ERLANG
from ...totals import Totals
from .call import Call, answer
from .kept_samples import length_samples
from .message_stats import CHURN_NAMES, message_stats, read_window
from .required_tags import ADMINISTRATOR, MANAGEMENT, MONITORING, NO_LOGIN, sees
from .route import GONE, Operation, Routes

OVERVIEW_QUERY: Final = (
    "msg_rates_age", "msg_rates_incr", "lengths_age", "lengths_incr", "disable_stats",
    "enable_queue_totals",
)  # fmt: skip
_LENGTHS: Final = {
    "messages": "messages",
    "messages_ready": "ready",
    "messages_unacknowledged": "unacknowledged",
}
"""Keys of `queue_totals`, with the totals that they are."""


async def overview(call: Call) -> Response:
    """Describes the server: versions, totals, rates and listeners. Totals of messages and objects
    are those of the virtual hosts that the user sees."""
    broker, node = call.broker, call.context.node
    window = read_window(call.request.query_params)
    totals = await node.totals.read(broker)
    shown = {name: one for name, one in totals.items() if sees(call.user, name)}
    all_vhosts = MONITORING.has(call.user)
    statistics = broker.statistics
    history = None if window is None else statistics.sampler.history.ring(window.age_s * 1000)
    return answer(
        {
            "management_version": COMPATIBLE_VERSION,
            "rates_mode": "basic",
            "sample_retention_policies": {"global": [600, 86400], "basic": [600], "detailed": []},
            "exchange_types": list(described_exchange_types()),
            "product_version": VERSION,
            "product_name": "Warren",
            "rabbitmq_version": COMPATIBLE_VERSION,
            "cluster_name": call.broker.global_parameters.cluster_name,
            "erlang_version": ERLANG,
            "erlang_full_version": f"Erlang/OTP {ERLANG} (not used: Warren runs on Python)",
            "release_series_support_status": "supported",
            "disable_stats": False,
            "enable_queue_totals": False,
            "default_queue_type": "classic",
            "message_stats": message_stats(broker, statistics.total, window=window, ring=history)
            if all_vhosts
            else {},
            "churn_rates": message_stats(broker, statistics.churn, CHURN_NAMES, window=window),
            "queue_totals": _queue_totals(call, shown, with_samples=all_vhosts),
            "object_totals": _object_totals(call, shown),
            "statistics_db_event_queue": 0,
            "node": node.name,
            "listeners": listeners(call) if all_vhosts else [],
            "contexts": contexts(call) if all_vhosts else [],
        }
    )


def described_exchange_types() -> Iterator[dict[str, Any]]:
    for name in (*exchange_types, DELAYED):
        yield {"name": name, "description": f"exchange type {name}", "enabled": True}


def _queue_totals(call: Call, shown: Mapping[str, Totals], *, with_samples: bool) -> dict[str, Any]:
    """Samples are kept of all virtual hosts together."""
    found: dict[str, Any] = {}
    samples = length_samples(call)
    for key, field in _LENGTHS.items():
        found[key] = sum(getattr(one, field) for one in shown.values())
        rate = call.context.node.totals.rate(shown, field)
        found[f"{key}_details"] = {"rate": rate, **(samples[key] if with_samples else {})}
    return found


def _object_totals(call: Call, shown: Mapping[str, Totals]) -> dict[str, int]:
    broker = call.broker
    vhosts = [broker.vhosts[name] for name in shown if name in broker.vhosts]
    connections = [one for vhost in vhosts for one in broker.occupancy.inside(vhost)]
    return {
        "channels": sum(connection.channel_count for connection in connections),
        "connections": len(connections),
        "consumers": sum(one.consumers for one in shown.values()),
        # The default exchange is one too.
        "exchanges": sum(len(vhost.exchanges) + 1 for vhost in vhosts),
        "queues": sum(one.queues for one in shown.values()),
    }


def listeners(call: Call) -> list[dict[str, Any]]:
    node = call.context.node
    return [
        {
            "node": node.name,
            "protocol": one.protocol,
            "ip_address": one.address,
            "port": one.port,
            "socket_opts": {},
        }
        for one in node.listeners
    ]


def contexts(call: Call) -> list[dict[str, Any]]:
    """Returns the listeners of this API."""
    node = call.context.node
    return [
        {
            "node": node.name,
            "description": "Warren management API",
            "path": "/",
            "ip": one.address,
            "port": str(one.port),
            "ssl": one.protocol == "https",
        }
        for one in node.listeners
        if one.protocol.startswith("http")
    ]


# -- the name


async def get_cluster_name(call: Call) -> Response:
    """Returns the name of the cluster, which is that of this server."""
    return answer({"name": call.broker.global_parameters.cluster_name})


async def put_cluster_name(call: Call) -> Response:
    """Sets the name of the cluster."""
    name = (await call.body()).text("name")
    definition = GlobalParameterDefinition(CLUSTER_NAME, json_text(name))
    call.broker.global_parameters.set(definition)
    return await call.done()


# -- what clients ask


async def version(call: Call) -> Response:
    """Names the version of RabbitMQ whose API this is, and that of Warren."""
    return answer({"version": COMPATIBLE_VERSION, "warren": VERSION})


async def auth(call: Call) -> Response:
    """Says how to log in: with user and password, not with OAuth."""
    return answer({"oauth_enabled": False, "enable_uaa": False})


async def extensions(call: Call) -> Response:
    """Lists plugins of a web UI: there are none."""
    return answer([])


ROUTES: Routes = {
    "/overview": {
        "GET": Operation(overview, MANAGEMENT, {200: server.Overview}, query=OVERVIEW_QUERY)
    },
    "/cluster-name": {
        "GET": Operation(get_cluster_name, MANAGEMENT, {200: server.ClusterName}),
        "PUT": Operation(put_cluster_name, ADMINISTRATOR, GONE, requests.Name),
    },
    "/extensions": {"GET": Operation(extensions, MANAGEMENT, {200: list[str]})},
    "/auth": {"GET": Operation(auth, NO_LOGIN, {200: server.AuthSettings})},
    "/version": {"GET": Operation(version, MANAGEMENT, {200: server.Version})},
}
