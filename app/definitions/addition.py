"""Adds a definitions document to those of a running server: all of it, or nothing.

Nothing is deleted. Users, virtual hosts, permissions, policies, parameters and limits of the same
name are replaced; an exchange or queue that exists has to be equivalent, and stays. Transient ones
are declared too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ...core.auth import ADMINISTRATOR
from ...core.broker import Broker
from ...core.counted import counted
from ...core.definitions.decode import decode
from ...core.definitions.kinds import (
    BindingDefinition,
    Definition,
    ExchangeDefinition,
    QueueDefinition,
    UserDefinition,
    VhostDefinition,
    VhostLimitsDefinition,
)
from ...core.errors import ConfigError
from ...core.queue.arguments import DeclaredArguments
from ...core.queue.redeclaration import check_redeclaration
from ...core.resources.limits import MAX_QUEUES
from ...core.route.registry import equivalent
from . import entries, governance
from .checks import at
from .document import DefinitionsDocument
from .left_out import LeftOut
from .merge import MergeTarget


@dataclass(slots=True)
class Addition:
    """The definitions that are new or changed. `transient` has the keys of exchanges and queues
    that are not durable, and of bindings to them: these are not stored."""

    definitions: dict[bytes, Definition] = field(default_factory=dict)
    transient: set[bytes] = field(default_factory=set)

    def stored(self) -> dict[bytes, bytes]:
        return {
            key: one.value() for key, one in self.definitions.items() if key not in self.transient
        }


def planned(
    current: Mapping[bytes, bytes], document: DefinitionsDocument, left_out: LeftOut
) -> Addition:
    """Returns what a document adds to the stored definitions, which are restored on trial: takes
    long with many. Raises `ConfigError` naming the place in the document."""
    found = Addition()
    target = MergeTarget(current, left_out)
    usual = governance.usual_hashing(document.rabbitmq_version or document.rabbit_version)
    target.add(governance.users(document.users, usual))
    target.add(governance.user_limits(document.users))
    target.add(governance.vhosts(document.vhosts))
    target.add(governance.permissions(document.permissions))
    target.add(governance.topic_permissions(document.topic_permissions))
    target.add(governance.policies(document.policies))
    placed = list(governance.parameters(document.parameters))
    limited = {one.vhost for _, one in placed if isinstance(one, VhostLimitsDefinition)}
    target.add(placed)
    target.add(
        one for one in governance.vhost_limits(document.vhosts) if one[1].vhost not in limited
    )
    target.add(governance.global_parameters(document.global_parameters))
    found.transient |= entries.made_durable(document)
    target.add(entries.exchanges(document.exchanges))
    target.add_queues(entries.queues(document.queues))
    target.add_bindings(entries.bindings(document.bindings))
    target.check()
    for key, value in target.changes().items():
        if value is not None:
            found.definitions[key] = decode(key, value)
    for key in found.transient & current.keys():
        # One like it is stored, so nothing changes; that it is durable is still to be refused.
        found.definitions[key] = decode(key, current[key])
    found.transient |= set(_to_transient(found))
    return found


def _to_transient(found: Addition) -> Iterable[bytes]:
    for key, one in found.definitions.items():
        if isinstance(one, BindingDefinition) and not found.transient.isdisjoint(one.ends()):
            yield key


def check_against(broker: Broker, found: Addition) -> None:
    """Drops from an addition what exists already. Raises `ConfigError` if something of it could not
    be put into force in the server as it is now."""
    made: Counter[str] = Counter()
    for key, one in list(found.definitions.items()):
        with at(one.description()):
            if isinstance(one, VhostDefinition) and one.name in broker.ending:
                raise ConfigError("it is being deleted; import again when that is done")
            if isinstance(one, ExchangeDefinition | QueueDefinition):
                if _exists(broker, one, durable=key not in found.transient):
                    del found.definitions[key]
                elif isinstance(one, QueueDefinition):
                    made[one.vhost] += 1
    _check_queue_limits(broker, found, made)
    _check_administrators(broker, found)


def _exists(broker: Broker, one: ExchangeDefinition | QueueDefinition, *, durable: bool) -> bool:
    """Returns whether it exists. Raises `ChannelError` 405 or 406 if it is another one."""
    vhost = broker.vhosts.get(one.vhost)
    if vhost is None:
        return False
    if isinstance(one, ExchangeDefinition):
        exchange = vhost.exchanges.get(one.name)
        if exchange is not None:
            equivalent(
                exchange, one.type_name, durable, one.auto_delete, one.internal, one.arguments
            )
        return exchange is not None
    queue = vhost.queues.get(one.name)
    if queue is not None:
        declared = DeclaredArguments(one.name, one.vhost, durable, auto_delete=one.auto_delete)
        check_redeclaration(queue, declared, one.arguments, None)
    return queue is not None


def _check_queue_limits(broker: Broker, found: Addition, made: Mapping[str, int]) -> None:
    limits = {
        one.vhost: one.limits
        for one in found.definitions.values()
        if isinstance(one, VhostLimitsDefinition)
    }
    for name, count in made.items():
        vhost = broker.vhosts.get(name)
        there = 0 if vhost is None else len(vhost.queues)
        known = limits.get(name, {} if vhost is None else vhost.limits.as_table())
        limit = known.get(MAX_QUEUES, -1)
        if isinstance(limit, int) and 0 <= limit < there + count:
            raise ConfigError(
                f"vhost '{name}' would have {counted(there + count, 'queue')}, its limit is {limit}"
            )


def _check_administrators(broker: Broker, found: Addition) -> None:
    tags = {user.name: user.tags for user in broker.users}
    for one in found.definitions.values():
        if isinstance(one, UserDefinition):
            tags[one.name] = frozenset(one.tags)
    if not any(ADMINISTRATOR in of_user for of_user in tags.values()):
        raise ConfigError(f"users: none with the tag {ADMINISTRATOR} would remain")
