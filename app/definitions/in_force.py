"""Puts definitions that were added into force in a running server."""

from __future__ import annotations

import asyncio
from typing import Final

from ...core.broker import Broker
from ...core.definitions.kinds import (
    BindingDefinition,
    Definition,
    ExchangeDefinition,
    GlobalParameterDefinition,
    OperatorPolicyDefinition,
    PermissionDefinition,
    PolicyDefinition,
    QueueDefinition,
    TopicPermissionDefinition,
    UserDefinition,
    UserLimitsDefinition,
    VhostDefinition,
    VhostLimitsDefinition,
)
from ...core.policy.policies import Policies
from ...core.resources.limits import USER_LIMITS, checked
from ...core.vhosts import put_vhost
from ...hub.engine.port import BindingSpec, Engine, ExchangeSpec, QueueSpec
from .addition import Addition, check_against

_ORDER: Final = (
    VhostDefinition, VhostLimitsDefinition, UserDefinition, UserLimitsDefinition,
    PermissionDefinition, TopicPermissionDefinition, PolicyDefinition, OperatorPolicyDefinition,
    GlobalParameterDefinition, ExchangeDefinition, QueueDefinition, BindingDefinition,
)  # fmt: skip
AT_ONCE: Final = 50
"""Definitions between two rounds of the event loop."""
_GENERATED: Final = "amq.gen-"


async def put_into_force(broker: Broker, engine: Engine, added: Addition) -> None:
    """Stores an addition as one group of the log, then puts it into force. A crash between the two
    loses nothing: the next start does the rest.

    Raises `ConfigError` before anything is stored, if the addition does not fit the server.
    """
    check_against(broker, added)
    with broker.store.together():
        for key, value in added.stored().items():
            broker.set_aside.define(key, value)
    ordered = sorted(added.definitions.items(), key=lambda pair: _ORDER.index(type(pair[1])))
    for number, (key, one) in enumerate(ordered, start=1):
        await _apply(broker, engine, one, durable=key not in added.transient)
        if number % AT_ONCE == 0:
            await asyncio.sleep(0)


async def _apply(broker: Broker, engine: Engine, one: Definition, *, durable: bool) -> None:
    match one:
        case ExchangeDefinition(vhost, name, type_name, auto_delete, internal, arguments):
            spec = ExchangeSpec(name, type_name, durable, auto_delete, internal, arguments)
            await engine.declare_exchange(vhost, spec)
        case QueueDefinition():
            await _declare(broker, engine, one, durable=durable)
        case BindingDefinition():
            found = BindingSpec(
                one.source, one.destination, not one.to_exchange, one.routing_key, one.arguments
            )
            await engine.bind(one.vhost, found)
        case PolicyDefinition() | OperatorPolicyDefinition():
            policies = broker.vhosts[one.vhost].policies
            policies.set(one)
            await policies_in_force(policies)
        case _:
            _govern(broker, one)


async def policies_in_force(policies: Policies) -> None:
    """Returns when the policies have been applied to every queue and exchange."""
    done = asyncio.Event()
    policies.updates.when_done(done.set)
    await done.wait()


async def _declare(broker: Broker, engine: Engine, one: QueueDefinition, *, durable: bool) -> None:
    if one.name.startswith(_GENERATED):
        broker.vhosts[one.vhost].declare_queue(
            "", server_named=one.name, durable=durable, auto_delete=one.auto_delete,
            arguments=one.arguments,
        )  # fmt: skip
        return
    spec = QueueSpec(one.name, durable, one.auto_delete, arguments=one.arguments)
    await engine.declare_queue(one.vhost, spec)


def _govern(broker: Broker, one: Definition) -> None:
    users = broker.users
    match one:
        case VhostDefinition(name, properties):
            put_vhost(broker, name, properties)
        case VhostLimitsDefinition(vhost, limits):
            broker.vhosts[vhost].limits.set(limits)
        case UserDefinition(name, password_hash, tags):
            users.add_hashed(name, password_hash, tags)
        case UserLimitsDefinition(name, limits):
            users.set_limits(name, checked(f"user '{name}'", USER_LIMITS, limits))
        case PermissionDefinition():
            users.set_permissions(*one)
        case TopicPermissionDefinition():
            users.set_topic_permission(*one)
        case GlobalParameterDefinition():
            broker.global_parameters.set(one)
