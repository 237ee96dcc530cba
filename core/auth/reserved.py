"""Reserved names of exchanges and queues: `hub.*` belongs to the hub.

A client that declared the hub's retry queue first, with other arguments, would control the failed
deliveries of everybody; one that published to an exchange of the hub could forge the content of
topics. Reading such a queue, binding from such an exchange and publishing to such a queue need the
usual permissions; an equivalent declaration of an existing one is accepted.
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
