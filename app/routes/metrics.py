"""`/metrics`: metrics for Prometheus, on the HTTP port and on a port of its own.

Aggregated by default; `/metrics/per-object` has a sample for each queue, channel and connection,
`/metrics/detailed` the families that `?family=` names, of the virtual hosts that `?vhost=` names.
"""

from __future__ import annotations

from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import replace
from functools import partial
from typing import Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from ...core.vhost import VirtualHost
from ..context import Context
from ..metrics.exposition import OPENMETRICS, Exposition
from ..metrics.family import Family
from ..metrics.hub_families import FAMILIES as OF_HUB
from ..metrics.message_families import CHURN, OBJECT_TOTALS
from ..metrics.message_families import FAMILIES as OF_MESSAGES
from ..metrics.object_family import AnyGroup, once
from ..metrics.object_groups import CLUSTER_GROUPS, GROUPS
from ..metrics.server_families import FAMILIES as OF_SERVER
from ..metrics.server_families import IDENTITY, PROCESS
from ..metrics.sources import ScrapedServer
from ..metrics.totals import Scrape, scrape
from ..problems import Problem
from ..responses.negotiation import names
from .api.required_tags import MONITORING

PER_OBJECT: Final = (*OF_SERVER, *OF_MESSAGES, *OF_HUB)
AGGREGATED: Final = (*PER_OBJECT, *OBJECT_TOTALS)
PREFIX, DETAILED, CLUSTER = "rabbitmq_", "rabbitmq_detailed_", "rabbitmq_cluster_"
OF_ENGINE: Final = frozenset(("warren_retries_waiting", "warren_dead_letters"))
"""Families of the hub that are counted in the embedded engine's queues."""
ON_RABBITMQ: Final = (*PROCESS, *(one for one in OF_HUB if one.name not in OF_ENGINE))
"""All families where a RabbitMQ cluster is the engine: the nodes there have the others."""
TOTALS: Final[Mapping[str, Sequence[Family[Scrape]]]] = {
    "connection_churn_metrics": [
        replace(one, name=DETAILED + one.name.removeprefix(PREFIX)) for one in CHURN
    ],
}
"""Families of `/metrics/detailed` that are of the whole server."""
FAMILIES: Final = (*GROUPS, *TOTALS, *CLUSTER_GROUPS)
"""The families of `/metrics/detailed`."""
WITHOUT_SAMPLES: Final = frozenset(
    (
        "auth_attempt_metrics", "channel_process_metrics", "channel_queue_exchange_metrics",
        "node_coarse_metrics", "node_metrics", "node_persister_metrics", "ra_metrics",
    )
)  # fmt: skip
"""Families of RabbitMQ that have nothing to say of this server."""


def metrics_routes(context: Context) -> list[BaseRoute]:
    """Returns the routes of the metrics."""
    handlers: dict[str, Callable[[Context, Request], Awaitable[Response]]] = {
        "/metrics": aggregated,
        "/metrics/per-object": per_object,
        "/metrics/detailed": detailed,
    }
    return [Route(path, partial(handler, context)) for path, handler in handlers.items()]


async def aggregated(context: Context, request: Request) -> Response:
    """Returns metrics for Prometheus: of the server, and totals over all objects."""
    await _require_reader(context, request)
    exposition = _exposition(request)
    found = await scrape(_server(context), "aggregated")
    families = ON_RABBITMQ if context.management_url else AGGREGATED
    return Response(
        "".join(_families(exposition, families, found)) + exposition.end,
        headers={"content-type": exposition.media_type},
    )


async def per_object(context: Context, request: Request) -> Response:
    """As /metrics, with a sample for each queue, channel and connection instead of totals."""
    await _require_reader(context, request)
    _require_own_engine(context)
    exposition = _exposition(request)
    vhosts = tuple(context.broker.vhosts.values())

    async def lines() -> AsyncIterator[str]:
        found = await scrape(_server(context), "per-object")
        yield "".join(_families(exposition, PER_OBJECT, found))
        async for some in _objects(context, exposition, PREFIX, GROUPS.values(), vhosts):
            yield some
        yield exposition.end

    return StreamingResponse(lines(), headers={"content-type": exposition.media_type})


async def detailed(context: Context, request: Request) -> Response:
    """Returns metrics of single objects: the families that `family` names, in the virtual hosts
    that `vhost` names; both may come several times."""
    await _require_reader(context, request)
    _require_own_engine(context)
    exposition = _exposition(request)
    wanted = dict.fromkeys(request.query_params.getlist("family"))
    for name in wanted:
        _require_known(name)
    vhosts = _vhosts(context, request.query_params.getlist("vhost"))

    async def lines() -> AsyncIterator[str]:
        found = await scrape(_server(context), "detailed")
        yield "".join(_families(exposition, IDENTITY, found))
        for name in TOTALS.keys() & wanted.keys():
            yield "".join(_families(exposition, TOTALS[name], found))
        for prefix, known in ((DETAILED, GROUPS), (CLUSTER, CLUSTER_GROUPS)):
            groups = [known[name] for name in wanted if name in known]
            async for some in _objects(context, exposition, prefix, groups, vhosts):
                yield some
        yield exposition.end

    return StreamingResponse(lines(), headers={"content-type": exposition.media_type})


def _require_own_engine(context: Context) -> None:
    """Raises `Problem` 501 where the objects are in a RabbitMQ cluster."""
    if context.management_url:
        detail = "this hub runs on RabbitMQ, whose nodes have metrics of single objects: /metrics"
        raise Problem(501, detail + " has those of the hub", title="Not on this engine")


async def _require_reader(context: Context, request: Request) -> None:
    """Raises `Problem` 401 or 403 for a client that may not read metrics."""
    readers = context.metrics_readers
    is_local = context.authenticator.is_local(request.scope)
    if readers == "anyone" or (readers == "local" and is_local):
        return
    MONITORING.require(await context.user(request))


def _exposition(request: Request) -> Exposition:
    accept = request.headers.get("accept", "")
    return Exposition(is_openmetrics=names(accept, OPENMETRICS.partition(";")[0]))


def _server(context: Context) -> ScrapedServer:
    return ScrapedServer(context.broker, context.hub, context.monitor, context.node)


def _families(
    exposition: Exposition, families: Sequence[Family[Scrape]], found: Scrape
) -> Iterator[str]:
    return (exposition.family(family, family.read(found)) for family in families)


async def _objects(
    context: Context,
    exposition: Exposition,
    prefix: str,
    groups: Iterable[AnyGroup],
    vhosts: Sequence[VirtualHost],
) -> AsyncIterator[str]:
    for group in once(groups):
        async for lines in group.lines(exposition, prefix, context.broker, vhosts):
            yield lines


def _require_known(family: str) -> None:
    if family not in FAMILIES and family not in WITHOUT_SAMPLES:
        raise Problem(400, f"family '{family[:80]}' is unknown; known: {', '.join(FAMILIES)}")


def _vhosts(context: Context, names: Sequence[str]) -> Sequence[VirtualHost]:
    """Returns the virtual hosts of these names, all without any; one that does not exist has no
    samples."""
    vhosts = context.broker.vhosts
    if not names:
        return tuple(vhosts.values())
    return [vhosts[name] for name in dict.fromkeys(names) if name in vhosts]
