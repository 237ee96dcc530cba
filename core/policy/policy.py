"""One policy: the names that it matches, and the queues and exchanges that it applies to."""

from __future__ import annotations

from typing import Final

from ..auth.errors import AuthError
from ..auth.patterns import Matcher, matcher
from ..auth.reserved import is_reserved
from ..definitions.kinds import OperatorPolicyDefinition, PolicyDefinition
from ..message.equivalence import resource
from ..queue.queue import Queue
from ..route.delayed import can_be_delayed
from ..route.exchange import Exchange
from .keys import DELAYED_MESSAGE, PolicyError, check_definition, is_for

Record = PolicyDefinition | OperatorPolicyDefinition
Target = Queue | Exchange

_REFUSED_FOR_HUB: Final = frozenset({"expires", "delivery-limit", "consumer-timeout"})
"""Keys that would delete the hub's own queues with their messages, or drop a message that the hub
returns for a later delivery."""

_APPLY_TO: Final = {
    "all": {"exchange", "classic", "quorum", "stream"},
    "exchanges": {"exchange"},
    "queues": {"classic", "quorum", "stream"},
    "classic_queues": {"classic"},
    "quorum_queues": {"quorum"},
    "streams": {"stream"},
}


class Policy:
    """A checked policy. Raises `PolicyError` for an invalid record."""

    __slots__ = ("_kinds", "matches", "record")

    def __init__(self, record: Record) -> None:
        if not record.name:
            raise PolicyError("it needs a name")
        kinds = _APPLY_TO.get(record.apply_to)
        if kinds is None:
            raise PolicyError(f"apply-to: '{record.apply_to}' is not one of {', '.join(_APPLY_TO)}")
        if not -(2**63) <= record.priority < 2**63:
            raise PolicyError(f"priority: {record.priority} does not fit into 64 bits")
        self.record = record
        self._kinds = kinds
        self.matches = _matcher(record)
        check_definition(record.definition, operator=self.is_operator)

    @property
    def is_operator(self) -> bool:
        return isinstance(self.record, OperatorPolicyDefinition)

    @property
    def rank(self) -> tuple[int, str]:
        """The lowest rank wins: the highest priority, and of equal ones the first name in the
        alphabet, so that neither the order of creation nor a restart changes the winner."""
        return -self.record.priority, self.record.name

    def applies_to(self, target: Target) -> bool:
        """Returns whether it may be in force there: by name, kind, and the keys it sets."""
        kind = target.kind if isinstance(target, Queue) else "exchange"
        if kind not in self._kinds or not self.matches(target.name):
            return False
        if is_reserved(target.name) and not self._is_safe_for_hub(target):
            return False
        if isinstance(target, Queue):
            return is_for(self.record.definition, kind)
        return not self.record.definition.get(DELAYED_MESSAGE) or can_be_delayed(target)

    def _is_safe_for_hub(self, target: Target) -> bool:
        """Returns whether the hub can still work with its own exchange or queue: a queue may have
        limits and a TTL, unless it was declared with arguments."""
        if isinstance(target, Exchange) or target.arguments:
            return False
        return self.record.definition.keys().isdisjoint(_REFUSED_FOR_HUB)


def described(record: Record) -> str:
    kind = "operator policy" if isinstance(record, OperatorPolicyDefinition) else "policy"
    return resource(kind, record.name, record.vhost)


def _matcher(record: Record) -> Matcher:
    """Returns an unanchored matcher; unlike in permissions, an empty pattern matches every name."""
    try:
        return matcher(record.pattern or ".*", described(record))
    except AuthError as error:
        raise PolicyError(f"pattern: {error}") from error
