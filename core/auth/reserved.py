"""Names of exchanges and queues that clients can't have: `hub.*` belongs to the hub.

Whoever declared the hub's delay queue first, with arguments of their own, would decide what becomes
of everybody's failed deliveries; whoever published to an exchange of the hub would speak for the
topics of others. Reading such a queue, binding from such an exchange and publishing to such a queue
are as rights say; an equal declaration of one that exists changes nothing and is accepted.
"""

from __future__ import annotations

from ..errors import access_refused

PREFIX = "hub."


def is_reserved(name: str) -> bool:
    return name.startswith(PREFIX)


def refuse_reserved(vhost: str, kind: str, name: str) -> None:
    """Raises `ChannelError` 403."""
    if is_reserved(name):
        raise access_refused(
            f"{kind} name '{name}' in vhost '{vhost}' contains reserved prefix '{PREFIX}*': only "
            f"the hub declares, deletes and binds to such names, choose another one"
        )


def refuse_foreign_content(vhost: str, exchange: str) -> None:
    """Raises `ChannelError` 403."""
    if is_reserved(exchange):
        raise access_refused(
            f"exchange '{exchange}' in vhost '{vhost}' has reserved prefix '{PREFIX}*': only the "
            f"hub publishes there, ping it with POST /hub, hub.mode=publish and hub.url"
        )
