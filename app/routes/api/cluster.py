"""Paths of clusters, plugins and features, as far as they mean something on a server of one node
in which everything is built in."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from ....core.auth.hashes import rabbitmq_hash
from ....core.errors import not_found
from ...documents import requests, server
from .call import Call, answer
from .required_tags import ADMINISTRATOR, MANAGEMENT, MONITORING
from .route import GONE, Operation, Routes

FEATURES: Final = {
    "classic_queue": "queues of type `classic`",
    "drop_unroutable_metric": "counts of messages that no queue wanted",
    "empty_basic_get_metric": "counts of basic.get on empty queues",
    "implicit_default_bindings": "bindings of the default exchange are implied",
    "message_containers": "properties and headers of every type are kept",
    "quorum_queue": "queues of type `quorum`",
    "stream_filtering": "filters of consumers of streams",
    "stream_queue": "queues of type `stream`",
    "user_limits": "limits of connections and channels for users",
    "virtual_host_metadata": "descriptions and tags of virtual hosts",
}


async def list_features(call: Call) -> Response:
    """Lists features, which are always enabled."""
    return answer(
        [
            {
                "name": name,
                "desc": text,
                "doc_url": "",
                "state": "enabled",
                "stability": "stable",
                "provided_by": "warren",
            }
            for name, text in FEATURES.items()
        ]
    )


async def enable_feature(call: Call) -> Response:
    """Accepts what is enabled already."""
    (name,) = call.names
    if name not in FEATURES:
        raise not_found(f"unknown feature flag '{name}'; known: {', '.join(FEATURES)}")
    return Response(status_code=204)


async def list_deprecated(call: Call) -> Response:
    """Lists deprecated features: there are none."""
    return answer([])


# -- shovels and federation


async def list_none(call: Call) -> Response:
    """Lists nothing: no shovel and no federation link runs here."""
    if call.names:
        call.own_vhost(*call.names)
    return answer([])


# -- the rest


async def rebalance(call: Call) -> Response:
    """Does nothing: all queues are on the only node."""
    return Response(status_code=204)


async def reset(call: Call) -> Response:
    """Drops the samples of charts. Counters keep their values, since clients compute rates."""
    if call.names:
        _check_node(call)
    call.broker.statistics.sampler.forget()
    return Response(status_code=204)


def _check_node(call: Call) -> None:
    """Raises `ChannelError` 404 for a name that is not this node's."""
    node = call.context.node.name
    if call.names[0] != node:
        raise not_found(f"no node '{call.names[0]}', there is '{node}'")


async def attempts(call: Call) -> Response:
    """Counts logins over AMQP since the start."""
    _check_node(call)
    churn = call.broker.statistics.churn
    return answer(
        [
            {
                "protocol": "amqp091",
                "auth_attempts": churn.login_succeeded + churn.login_failed,
                "auth_attempts_succeeded": churn.login_succeeded,
                "auth_attempts_failed": churn.login_failed,
            }
        ]
    )


async def attempts_by_source(call: Call) -> Response:
    """Lists nothing, as RabbitMQ does unless it is told to note where logins come from:
    `/api/warren/audit` has each login with its address."""
    _check_node(call)
    return answer([])


async def hash_password(call: Call) -> Response:
    """Returns the hash of a password in RabbitMQ's form, for definitions files. What is in a path
    may be logged by proxies; PUT takes the password in the body."""
    return answer({"ok": rabbitmq_hash(call.names[0])})


async def hash_given_password(call: Call) -> Response:
    """Returns the hash of `password` in RabbitMQ's form."""
    return answer({"ok": rabbitmq_hash((await call.body()).text("password"))})


ROUTES: Routes = {
    "/feature-flags": {
        "GET": Operation(list_features, MANAGEMENT, {200: list[server.FeatureFlag]})
    },
    "/feature-flags/{name}/enable": {"PUT": Operation(enable_feature, ADMINISTRATOR, GONE)},
    "/deprecated-features": {"GET": Operation(list_deprecated, MANAGEMENT, {200: list[str]})},
    "/deprecated-features/used": {"GET": Operation(list_deprecated, MANAGEMENT, {200: list[str]})},
    **{
        path: {"GET": Operation(list_none, MONITORING, {200: list[str]})}
        for path in (
            "/shovels",
            "/shovels/{vhost}",
            "/federation-links",
            "/federation-links/{vhost}",
        )
    },
    "/rebalance/queues": {"POST": Operation(rebalance, ADMINISTRATOR, GONE)},
    "/reset": {"DELETE": Operation(reset, ADMINISTRATOR, GONE)},
    "/reset/{node}": {"DELETE": Operation(reset, ADMINISTRATOR, GONE)},
    "/auth/attempts/{node}": {"GET": Operation(attempts, MONITORING, {200: list[server.Attempts]})},
    "/auth/attempts/{node}/source": {
        "GET": Operation(attempts_by_source, MONITORING, {200: list[server.Attempts]})
    },
    "/auth/hash_password": {
        "PUT": Operation(hash_given_password, MANAGEMENT, {200: server.Hash}, requests.Password)
    },
    "/auth/hash_password/{password}": {
        "GET": Operation(hash_password, MANAGEMENT, {200: server.Hash})
    },
}
