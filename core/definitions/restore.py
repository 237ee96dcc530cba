"""Restores virtual hosts, users, exchanges, queues and bindings from their definitions.

Nothing is written and nothing is sent. Objects are made kind by kind, so the order of definitions
matters only within a kind. A definition that can't be used, because it or what it refers to was
damaged, is set aside: it stays in the store and is tried again at each start.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from ..auth import AuthError
from ..errors import ChannelError, ConfigError
from ..policy.keys import PolicyError
from ..queue.arguments import DeclaredArguments
from ..queue.names import INNER_MARK
from ..queue.registry import make_queue
from ..resources.limits import USER_LIMITS, checked
from ..route.exchange import DELAY_QUEUE
from ..route.registry import make
from ..route.route import Destination
from ..slices import for_each
from ..vhost import VirtualHost
from .decode import BadDefinition, NewerDefinition, decode
from .facts import exchange_owner, queue_owner, vhost_owner
from .keys import DefinitionKind, is_fact
from .kinds import (
    BindingDefinition,
    Definition,
    ExchangeDefinition,
    GlobalParameterDefinition,
    OperatorPolicyDefinition,
    ParameterDefinition,
    PermissionDefinition,
    PolicyDefinition,
    QueueDefinition,
    TopicPermissionDefinition,
    UserDefinition,
    UserLimitsDefinition,
    VhostDefinition,
    VhostLimitsDefinition,
)

if TYPE_CHECKING:
    from ..auth import Users
    from ..context import BrokerContext
    from ..parameters import ServerParameters

logger = logging.getLogger(__name__)


def restore(
    broker: BrokerContext,
    vhosts: dict[str, VirtualHost],
    users: Users,
    global_parameters: ServerParameters,
) -> None:
    """Replaces the virtual hosts of a broker, and adds its users, of whom there were none.

    Definitions that can't be used are in `Broker.set_aside` then. Raises `BadDefinition` for one
    that a newer Warren wrote, or that restricts rights and can't be applied; messages have not been
    recovered then.
    """
    restored = _Restored(broker, users, global_parameters)
    with ExitStack() as paused:
        broker.facts.collect()
        restored.make(paused)
    paused_queues = broker.facts.owners(DefinitionKind.PAUSED)
    vhosts.clear()
    vhosts.update(restored.vhosts)
    for vhost in restored.vhosts.values():
        vhost.committed.load()
        for exchange in vhost.exchanges.values():
            vhost.attach_inner_queue(exchange)
        _attach_delay_queues(vhost)
        queues = (*vhost.inner_queues.values(), *vhost.queues.values())
        for queue in queues:
            recovered = broker.store.recovered.of(
                queue, ranks=queue.has_priorities, in_order=queue.in_order
            )
            queue.recover(recovered)
            if queue_owner(queue.id) in paused_queues:
                queue.suspend_dispatch()
        broker.slices.start(for_each(queues, lambda queue: queue.scan_recovered()))


def end_orphans(broker: BrokerContext, vhosts: Mapping[str, VirtualHost]) -> None:
    """Deletes facts whose queue or exchange does not exist; not while something that they may
    belong to is damaged, set aside or in quarantine."""
    store = broker.store
    if not (store.recovered.is_damaged or broker.set_aside or store.recovered.quarantine):
        broker.facts.end_orphans(set(_owners(vhosts)))


def _attach_delay_queues(vhost: VirtualHost) -> None:
    """Attaches the inner queues of exchanges that were delayed by a policy before: their messages
    are released when they are due, or deleted with the exchange."""
    for name, queue in vhost.inner_queues.items():
        kind, _, exchange_name = name.partition(INNER_MARK)
        exchange = vhost.exchanges.get(exchange_name)
        if kind == DELAY_QUEUE and exchange is not None and exchange.inner is None:
            exchange.inner = queue


def _owners(vhosts: Mapping[str, VirtualHost]) -> Iterator[bytes]:
    for vhost in vhosts.values():
        yield vhost_owner(vhost.name)
        queues = (*vhost.inner_queues.values(), *vhost.queues.values())
        yield from (queue_owner(queue.id) for queue in queues)
        yield from (exchange_owner(vhost.name, name) for name in vhost.exchanges)


_ORDER: Final = (
    DefinitionKind.VHOST,
    DefinitionKind.VHOST_LIMITS,
    DefinitionKind.USER,
    DefinitionKind.USER_LIMITS,
    DefinitionKind.PERMISSION,
    DefinitionKind.TOPIC_PERMISSION,
    DefinitionKind.POLICY,
    DefinitionKind.OPERATOR_POLICY,
    DefinitionKind.PARAMETER,
    DefinitionKind.GLOBAL_PARAMETER,
    DefinitionKind.EXCHANGE,
    DefinitionKind.QUEUE,
    DefinitionKind.BINDING,
)
_UNKNOWN: Final = len(_ORDER)
_RESTRICTING: Final = frozenset(
    (
        DefinitionKind.VHOST_LIMITS,
        DefinitionKind.USER_LIMITS,
        DefinitionKind.TOPIC_PERMISSION,
        DefinitionKind.OPERATOR_POLICY,
    )
)
"""Kinds that restrict rights: ignoring one would allow what it forbids."""
_RANKS: Final = {kind.value: _ORDER.index(kind) for kind in _ORDER}


def _by_kind(definitions: Mapping[bytes, bytes]) -> list[bytes]:
    """Returns the keys of definitions by kind, those first that others refer to, unknown
    kinds last, without facts."""
    by_rank: list[list[bytes]] = [[] for _ in range(_UNKNOWN + 1)]
    for key in definitions:
        if not is_fact(key):
            by_rank[_RANKS.get(key[0], _UNKNOWN) if key else _UNKNOWN].append(key)
    return [key for keys in by_rank for key in keys]


class _Restored:
    """The objects that have been restored so far."""

    def __init__(
        self, broker: BrokerContext, users: Users, global_parameters: ServerParameters
    ) -> None:
        self.vhosts: dict[str, VirtualHost] = {}
        self._broker = broker
        self._users = users
        self._global_parameters = global_parameters

    def make(self, paused: ExitStack) -> None:
        definitions = self._broker.store.definitions
        for key in _by_kind(definitions):
            try:
                self._make_one(key, definitions[key], paused)
            except NewerDefinition:
                raise
            except BadDefinition as error:
                if key[0] in _RESTRICTING and not isinstance(error.__cause__, _Missing):
                    raise
                logger.error("%s; it is stored but not applied, see `warren repair`", error)
                self._broker.set_aside.add(key, str(error))

    def _make_one(self, key: bytes, value: bytes, paused: ExitStack) -> None:
        definition = decode(key, value)
        try:
            self._make(definition, paused)
        except PolicyError as error:
            raise BadDefinition(key, str(error)) from error  # names the policy
        except (AuthError, ChannelError, ConfigError) as error:
            raise BadDefinition(key, f"{definition.description()}: {error}") from error

    def _make(self, definition: Definition, paused: ExitStack) -> None:
        match definition:
            case BindingDefinition():
                self._binding(definition)
            case QueueDefinition():
                self._queue(definition)
            case ExchangeDefinition():
                self._exchange(definition)
            case PermissionDefinition():
                self._permission(definition)
            case UserDefinition():
                self._users.add_hashed(*definition)
            case UserLimitsDefinition(user, limits):
                self._user(user)
                whose = f"user '{user}'"
                self._users.set_limits(user, checked(whose, USER_LIMITS, limits))
            case TopicPermissionDefinition():
                self._user(definition.user)
                self._vhost(definition.vhost)
                self._users.set_topic_permission(*definition)
            case VhostLimitsDefinition(vhost, limits):
                self._vhost(vhost).limits.set(limits)
            case PolicyDefinition() | OperatorPolicyDefinition():
                self._vhost(definition.vhost).policies.set(definition)
            case ParameterDefinition():
                raise ConfigError(definition.why_not())
            case GlobalParameterDefinition():
                self._global_parameters.restore(definition)
            case VhostDefinition():
                self._new_vhost(definition, paused)

    def _new_vhost(self, found: VhostDefinition, paused: ExitStack) -> None:
        vhost = self.vhosts[found.name] = VirtualHost(found.name, self._broker)
        vhost.properties = found.properties
        paused.enter_context(vhost.storage.paused())

    def _permission(self, found: PermissionDefinition) -> None:
        self._vhost(found.vhost)
        self._users.set_permissions(
            found.user, found.vhost, found.configure, found.write, found.read
        )

    def _exchange(self, found: ExchangeDefinition) -> None:
        vhost = self._vhost(found.vhost)
        if found.name in vhost.exchanges:
            raise ConfigError("every vhost has it, it can't be redefined")
        exchange = make(
            found.type_name, found.name, durable=True, auto_delete=found.auto_delete,
            internal=found.internal, arguments=found.arguments, vhost=vhost.name,
        )  # fmt: skip
        vhost.add_exchange(exchange)

    def _queue(self, found: QueueDefinition) -> None:
        vhost = self._vhost(found.vhost)
        declared = DeclaredArguments(found.name, vhost.name, auto_delete=found.auto_delete)
        queue = make_queue(declared, self._broker, found.id, arguments=found.arguments)
        queues = vhost.inner_queues if INNER_MARK in found.name else vhost.queues
        queues[found.name] = queue
        if queues is vhost.queues:
            vhost.policies.apply_to(queue)

    def _binding(self, found: BindingDefinition) -> None:
        vhost = self._vhost(found.vhost)
        source = vhost.exchanges.get(found.source)
        destinations: Mapping[str, Destination]
        destinations = vhost.exchanges if found.to_exchange else vhost.queues
        destination = destinations.get(found.destination)
        if source is None or destination is None:
            missing = "exchange" if source is None or found.to_exchange else "queue"
            name = found.source if source is None else found.destination
            raise _missing(missing, name)
        vhost.bindings.attach(source, destination, found.routing_key, found.arguments)

    def _user(self, name: str) -> None:
        if self._users.get(name) is None:
            raise _missing("user", name)

    def _vhost(self, name: str) -> VirtualHost:
        vhost = self.vhosts.get(name)
        if vhost is None:
            raise _missing("vhost", name)
        return vhost


class _Missing(ConfigError):
    """An object that a definition refers to does not exist."""


def _missing(kind: str, name: str) -> _Missing:
    return _Missing(f"there is no {kind} '{name}'")
