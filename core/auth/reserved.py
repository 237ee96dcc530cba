"""Reserved names: `hub.*` belongs to the hub, but for `hub.pipeline`.

A client that declared the hub's retry queue first, with other arguments, would control the failed
deliveries of everybody; one that published to an exchange of the hub could forge the content of
topics. Reading such a queue, binding from such an exchange and publishing to such a queue need the
usual permissions; an equivalent declaration of an existing one is accepted. The exchange
`hub.pipeline` gets results of jobs, which are clients: they declare it and publish to it, if they
are permitted to.
"""

from __future__ import annotations

from typing import Final

from ..errors import access_refused

PREFIX: Final = "hub."
ATTEMPTS_EXCHANGE: Final = f"{PREFIX}attempts"
FEEDS_EXCHANGE: Final = f"{PREFIX}feeds"
RESULTS_EXCHANGE: Final = f"{PREFIX}pipeline"


def is_reserved(name: str) -> bool:
    """Whether an exchange or queue of this name is the hub's."""
    return name.startswith(PREFIX) and name != RESULTS_EXCHANGE


def refuse_reserved(vhost: str, kind: str, name: str) -> None:
    """Raises `ChannelError` 403 if only the hub may declare, delete and bind this name."""
    if is_reserved(name):
        raise access_refused(
            f"{kind} name '{name}' in vhost '{vhost}' contains reserved prefix '{PREFIX}*': only "
            f"the hub declares, deletes and binds to such names, choose another one"
        )


def refuse_foreign_content(vhost: str, exchange: str) -> None:
    """Raises `ChannelError` 403 if only the hub may publish to this exchange."""
    if exchange == ATTEMPTS_EXCHANGE:
        raise access_refused(
            f"exchange '{exchange}' in vhost '{vhost}' is reserved: it contains the hub's "
            "delivery attempts; clients can't publish to it"
        )
    if exchange == FEEDS_EXCHANGE:
        raise access_refused(
            f"exchange '{exchange}' in vhost '{vhost}' is reserved: it contains the entries of "
            "feeds (POST /api/hub/feeds); clients can't publish to it"
        )
    if is_reserved(exchange):
        raise access_refused(
            f"exchange '{exchange}' in vhost '{vhost}' has reserved prefix '{PREFIX}*': clients "
            "can't publish to it; notify the hub with POST /hub, hub.mode=publish and hub.url"
        )
