"""What of a definitions document is valid in RabbitMQ and can't be held here: it is left out, and
listed with its place in the file, so that the rest of an export can be imported unchanged."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final

from ...core.definitions.kinds import (
    BindingDefinition,
    Definition,
    ExchangeDefinition,
    OperatorPolicyDefinition,
    ParameterDefinition,
    PolicyDefinition,
    QueueDefinition,
)
from ...core.policy.keys import is_unknown
from ...core.queue.registry import queue_types
from ...core.route.registry import is_exchange_type

logger = logging.getLogger(__name__)

NOT_DURABLE: Final = "it is not durable, and a stopped server keeps durable ones only"
Placed = Iterable[tuple[str, Definition]]
Policy = PolicyDefinition | OperatorPolicyDefinition


class LeftOut:
    """Collects a sentence for each thing that is left out. `transient` has the keys of exchanges
    and queues that are to be left out because they are not durable."""

    def __init__(self) -> None:
        self.sentences: list[str] = []
        self.transient: Collection[bytes] = ()
        self._absent: set[bytes] = set()
        """Keys of the exchanges and queues that were left out."""

    def note(self, what: str, reason: str) -> None:
        self.sentences.append(f"{what}: left out: {reason}")

    def log(self) -> None:
        for sentence in self.sentences:
            logger.warning("definitions: %s", sentence)

    def unknown_keys(self, found: Any, known: Collection[str], place: str = "") -> None:
        """Removes the keys of an object that are not known: RabbitMQ ignores them too."""
        for key in [key for key in found if key not in known] if isinstance(found, dict) else ():
            del found[key]
            self.note(f"{place}.{key}" if place else key, "the key is not known")

    def sift(self, placed: Placed) -> Iterator[tuple[str, Definition]]:
        """Returns what can be held. Exchanges and queues come before their bindings."""
        held: Definition | None
        for place, one in placed:
            if isinstance(one, Policy):
                held = self._known_part(place, one)
            else:
                reason = self._reason(one)
                held = None if reason else one
                if reason:
                    self.note(f"{place}: {one.description()}", reason)
            if held is not None:
                yield place, held
            elif isinstance(one, ExchangeDefinition | QueueDefinition):
                self._absent.add(one.key())

    def _known_part(self, place: str, policy: Policy) -> Policy | None:
        """Returns a policy without its unknown keys; None if there are no others."""
        unknown = [key for key in policy.definition if is_unknown(key)]
        for key in unknown:
            self.note(f"{place}: {policy.description()}", f"the key '{key}' is not known")
        if not unknown:
            return policy
        known = {key: one for key, one in policy.definition.items() if key not in unknown}
        return policy._replace(definition=known) if known else None

    def _reason(self, one: Definition) -> str | None:
        match one:
            case ExchangeDefinition() | QueueDefinition() if one.key() in self.transient:
                return NOT_DURABLE
            case ExchangeDefinition(type_name=type_name) if not is_exchange_type(type_name):
                return f"there is no exchange type '{type_name}'"
            case QueueDefinition(arguments={"x-queue-type": str(kind)}) if kind not in queue_types:
                return f"there is no queue type '{kind}'"
            case ParameterDefinition():
                return one.why_not()
            case BindingDefinition() if not self._absent.isdisjoint(one.ends()):
                return "its source or destination is"
        return None
