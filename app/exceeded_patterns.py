"""Lists the patterns of policies and permissions that have exceeded a limit."""

from __future__ import annotations

from ..core.broker import Broker


def exceeded_patterns(broker: Broker) -> list[str]:
    """Returns a line for each, with its owner and the first name that it did not match for that."""
    policies = (vhost.policies for vhost in broker.vhosts.values())
    found = (owner.exceeded_patterns for owner in (*policies, *broker.users))
    return [pattern.complaint for patterns in found for pattern in patterns]
