"""Sets and clears policies of the first virtual host."""

from __future__ import annotations

from tests.support.amqp import take_turns
from warrenmq.core.broker import Broker
from warrenmq.core.clock import ManualClock
from warrenmq.core.definitions.kinds import OperatorPolicyDefinition, PolicyDefinition
from warrenmq.core.message.model import FieldValue
from warrenmq.core.policy.policies import Policies


def policies(broker: Broker) -> Policies:
    return broker.vhosts["/"].policies


def put(
    broker: Broker,
    name: str,
    pattern: str = "",
    *,
    apply_to: str = "all",
    priority: int = 0,
    operator: bool = False,
    **definition: FieldValue,
) -> bool:
    """Sets a policy of `/`, and takes the turns that put it into force; keys have `_` for `-`."""
    record = OperatorPolicyDefinition if operator else PolicyDefinition
    table = {key.replace("_", "-"): value for key, value in definition.items()}
    is_new = policies(broker).set(record("/", name, pattern, apply_to, priority, table))
    take_turns(broker)
    return is_new


def clear(broker: Broker, name: str, *, operator: bool = False) -> bool:
    found = policies(broker).clear(name, operator=operator)
    take_turns(broker)
    return found


def in_force(broker: Broker, queue: str) -> tuple[str | None, str | None]:
    """Returns the names of policy and operator policy of a queue."""
    applied = policies(broker).of(broker.vhosts["/"].queues[queue])
    if applied is None:
        return None, None
    policy, operator = applied
    return (
        None if policy is None else policy.record.name,
        None if operator is None else operator.record.name,
    )


def later(broker: Broker, clock: ManualClock, ms: int) -> None:
    clock.advance(ms)
    take_turns(broker)
