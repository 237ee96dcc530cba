"""The policies of a virtual host: each queue and exchange has at most one of each kind in force.

A change checks every name once, and updates only the queues and exchanges whose policy it changes.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, NamedTuple

from ..auth.pcre import LimitedPattern, exceeded
from ..definitions.kinds import OperatorPolicyDefinition, PolicyDefinition
from ..message.model import Table
from ..queue.queue import Queue
from ..route.delayed import set_delayed
from ..route.exchange import ALTERNATE_EXCHANGE
from .keys import DELAYED_MESSAGE, PolicyError, without_effect
from .merge import effective_rules, merged
from .policy import Policy, Record, Target, described
from .updates import PolicyUpdates

if TYPE_CHECKING:
    from ..queue.context import QueueContext
    from ..vhost.virtual_host import VirtualHost

logger = logging.getLogger(__name__)


class AppliedPolicies(NamedTuple):
    """The policies in force for a queue or an exchange."""

    policy: Policy | None
    operator: Policy | None

    @property
    def definition(self) -> Table:
        """The definitions of both, merged."""
        return merged(*({} if found is None else found.record.definition for found in self))


_NOTHING: Final = AppliedPolicies(None, None)


class _Ranked:
    """The policies of one kind, by rank."""

    def __init__(self) -> None:
        self.by_name: dict[str, Policy] = {}
        self._ranked: list[Policy] = []

    def put(self, name: str, policy: Policy | None) -> Policy | None:
        """Sets or removes the policy of a name; returns the one before."""
        before = self.by_name.pop(name, None)
        if policy is not None:
            self.by_name[name] = policy
        self._ranked = sorted(self.by_name.values(), key=lambda found: found.rank)
        return before

    def winner(self, target: Target) -> Policy | None:
        return next((policy for policy in self._ranked if policy.applies_to(target)), None)


class Policies:
    """The policies of one virtual host, which calls `apply_to` for each queue and exchange that is
    declared, and `forget` for one that is deleted."""

    def __init__(self, vhost: VirtualHost, broker: QueueContext) -> None:
        self._vhost = vhost
        self.updates = PolicyUpdates(broker)
        """The updates after a change; with many names they continue in later turns."""
        self._policies = _Ranked()
        self._operator = _Ranked()
        self._applied: dict[Target, AppliedPolicies] = {}

    # -- the policies

    def records(self) -> list[PolicyDefinition]:
        found = (policy.record for policy in self._policies.by_name.values())
        return [record for record in found if isinstance(record, PolicyDefinition)]

    def operator_records(self) -> list[OperatorPolicyDefinition]:
        found = (policy.record for policy in self._operator.by_name.values())
        return [record for record in found if isinstance(record, OperatorPolicyDefinition)]

    @property
    def exceeded_patterns(self) -> list[LimitedPattern]:
        """The patterns of policies of both kinds that have exceeded a limit."""
        both = (*self._policies.by_name.values(), *self._operator.by_name.values())
        return exceeded(policy.matches for policy in both)

    def set(self, record: Record) -> bool:
        """Sets or replaces a policy; True if there was none of its name.

        With few queues and exchanges it is in force when this returns, with many once `updates` are
        done. Raises `PolicyError`, and `ChannelError` 406 for a record that can't be stored.
        """
        try:
            policy = Policy(record)
        except PolicyError as error:
            raise PolicyError(f"{described(record)}: {error}") from error
        ranked = self._ranked_for(record)
        found = ranked.by_name.get(record.name)
        if found is not None and found.record == record:
            return False
        for key in without_effect(record.definition):
            logger.warning("%s: key '%s' is stored and has no effect here", described(record), key)
        self._vhost.storage.save_policy(record)
        before = ranked.put(record.name, policy)
        self._update_targets(before, policy)
        return before is None

    def clear(self, name: str, *, operator: bool = False) -> bool:
        """Removes a policy; False if there is none of that name."""
        ranked = self._operator if operator else self._policies
        before = ranked.put(name, None)
        if before is None:
            return False
        self._vhost.storage.delete_policy(before.record)
        self._update_targets(before, None)
        return True

    def clear_all(self) -> None:
        """Removes all policies of a virtual host that is being deleted; nothing is updated."""
        for ranked in (self._policies, self._operator):
            for policy in ranked.by_name.values():
                self._vhost.storage.delete_policy(policy.record)
        self._policies, self._operator = _Ranked(), _Ranked()
        self._applied.clear()
        self.updates.stop()

    def _ranked_for(self, record: Record) -> _Ranked:
        return self._operator if isinstance(record, OperatorPolicyDefinition) else self._policies

    # -- the policies in force

    def of(self, target: Target) -> AppliedPolicies | None:
        """Returns the policies in force, None if none applies."""
        return self._applied.get(target)

    def apply_to(self, target: Target) -> None:
        """Applies policies to a queue or exchange that was just declared and is still empty."""
        if self._policies.by_name or self._operator.by_name:
            self._update(target)

    def forget(self, target: Target) -> None:
        """Forgets a deleted queue or exchange."""
        self._applied.pop(target, None)

    def _update_targets(self, before: Policy | None, after: Policy | None) -> None:
        """Updates all queues and exchanges that a change from one policy to another concerns."""

        def update(target: Target) -> bool:
            return self._is_concerned(target, before, after) and self._update(target)

        vhost = self._vhost
        self.updates.begin((*vhost.exchanges.values(), *vhost.queues.values()), update)

    def _is_concerned(self, target: Target, before: Policy | None, after: Policy | None) -> bool:
        """Returns whether one policy is in force for it, or the other may be."""
        applied = self._applied.get(target)
        if before is not None and applied is not None and before in applied:
            return True
        return after is not None and after.applies_to(target)

    def _is_there(self, target: Target) -> bool:
        if isinstance(target, Queue):
            return not target.deleted
        return self._vhost.exchanges.get(target.name) is target

    def _update(self, target: Target) -> bool:
        """Determines the policies in force for one queue or exchange; True if they changed."""
        now = AppliedPolicies(self._policies.winner(target), self._operator.winner(target))
        if now == self._applied.get(target, _NOTHING) or not self._is_there(target):
            return False
        if now == _NOTHING:
            del self._applied[target]
        else:
            self._applied[target] = now
        self._put_into_force(target, now)
        return True

    def _put_into_force(self, target: Target, applied: AppliedPolicies) -> None:
        definition = applied.definition
        if isinstance(target, Queue):
            rules = effective_rules(target.declared_rules, target.arguments, definition)
            if rules != target.rules:
                target.apply(rules)
            return
        alternate = target.arguments.get(ALTERNATE_EXCHANGE, definition.get(ALTERNATE_EXCHANGE))
        if alternate != target.alternate:
            self._vhost.alternates.change(target, None if alternate is None else str(alternate))
        if set_delayed(target, definition.get(DELAYED_MESSAGE) is True):
            self._vhost.attach_inner_queue(target)
