"""Virtual hosts that come, change and go while the server runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from .equivalence import type_name
from .errors import not_found, precondition_failed
from .model import FieldValue, Table
from .vhost import VirtualHost

if TYPE_CHECKING:
    from .broker import Broker

MAX_NAME_BYTES = 255
"""A name travels as a short string (AMQP 0-9-1 1.4.2.7)."""


def put_vhost(broker: Broker, name: str, properties: Mapping[str, FieldValue]) -> bool:
    """Makes a virtual host, or describes the one of that name anew; True if there was none.

    `properties` are kept as they are; `description` has to be a string and `tags` a list of
    them. Raises `ChannelError` 406 for those, or a name, that can't be.
    """
    kept = _checked(name, properties)
    vhost = broker.vhosts.get(name)
    is_new = vhost is None
    if vhost is None:
        vhost = VirtualHost(name, broker)
    vhost.keeper.keep_vhost(kept)  # refuses what can't be kept, and then there is no vhost
    vhost.properties = kept
    broker.vhosts[name] = vhost
    return is_new


def delete_vhost(broker: Broker, name: str) -> None:
    """Ends a virtual host and all that is in it or refers to it, at once and for good.

    Whoever is connected to it is told (320) and disconnected; queues go with their messages.
    Raises `ChannelError` 404 if there is none.
    """
    vhost = broker.vhosts.get(name)
    if vhost is None:
        raise not_found(f"no vhost '{name}'")
    broker.tick()
    with broker.store.together():
        for connection in broker.occupancy.inside(vhost):
            connection.force(f"vhost '{name}' is deleted")
        broker.users.forget_vhost(name)
        vhost.clear()
        vhost.keeper.end_vhost()
        del broker.vhosts[name]
    broker.on_vhost_deleted(name)
    broker.on_work()


def _checked(name: str, properties: Mapping[str, FieldValue]) -> Table:
    size = len(name.encode(errors="surrogatepass"))
    if not 1 <= size <= MAX_NAME_BYTES:
        raise precondition_failed(f"the name of a vhost has {size} bytes, 1 to {MAX_NAME_BYTES}")
    if not name.isprintable():
        raise precondition_failed(f"the name of vhost {name!r} has characters that don't print")
    description, tags = properties.get("description", ""), properties.get("tags", [])
    if not isinstance(description, str):
        raise _bad_property(name, "description", description, "a string")
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise _bad_property(name, "tags", tags, "a list of strings")
    return dict(properties)


def _bad_property(vhost: str, name: str, value: FieldValue, wanted: str) -> Exception:
    return precondition_failed(
        f"property '{name}' of vhost '{vhost}' is of type '{type_name(value)}', not {wanted}"
    )
