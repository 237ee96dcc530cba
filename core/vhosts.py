"""Creates, changes and deletes virtual hosts while the server runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from .errors import not_found, precondition_failed, resource_locked
from .message.equivalence import type_name
from .message.model import FieldValue, Table
from .slices import for_each
from .vhost import VirtualHost

if TYPE_CHECKING:
    from .broker import Broker

MAX_NAME_BYTES: Final = 255
"""A name travels as a short string (AMQP 0-9-1 1.4.2.7)."""


def put_vhost(broker: Broker, name: str, properties: Mapping[str, FieldValue]) -> bool:
    """Creates a virtual host, or replaces its properties; True if it is new.

    `properties` are stored as they are; `description` has to be a string and `tags` a list of
    strings. Raises `ChannelError` 406 for an invalid name or property, 405 while an earlier one
    of that name is being deleted.
    """
    checked = _checked(name, properties)
    if name in broker.ending:
        raise resource_locked(
            f"vhost '{name}' is being deleted; retry when the deletion is complete"
        )
    vhost = broker.vhosts.get(name)
    is_new = vhost is None
    if vhost is None:
        vhost = VirtualHost(name, broker)
    vhost.storage.save_vhost(checked)  # Raises before the virtual host exists.
    vhost.properties = checked
    broker.vhosts[name] = vhost
    return is_new


def delete_vhost(broker: Broker, name: str, done: Callable[[], None] = lambda: None) -> None:
    """Deletes a virtual host with everything in it and all permissions for it.

    It can't be found any more at once. In slices, its connections are closed (320), then its
    queues are deleted with their messages; until `done` is called the name can't be used again,
    and a crash may bring back what was left. Raises `ChannelError` 404 if there is none.
    """
    vhost = broker.vhosts.get(name)
    if vhost is None:
        raise not_found(f"no vhost '{name}'")
    broker.tick()
    broker.ending[name] = broker.vhosts.pop(name)
    vhost.policies.updates.stop()
    broker.on_vhost_deleted(name)
    broker.slices.start(_end(broker, vhost, done))
    broker.on_work()


def _end(broker: Broker, vhost: VirtualHost, done: Callable[[], None]) -> Iterator[None]:
    reason = f"vhost '{vhost.name}' is deleted"
    try:
        inside = broker.occupancy.inside(vhost)
        yield from for_each(inside, lambda connection: connection.force(reason))
        yield from vhost.deletion.delete_all()
        with broker.store.together():
            broker.users.forget_vhost(vhost.name)
            vhost.storage.delete_vhost()
    finally:
        broker.statistics.forget_vhost(vhost.name)
        del broker.ending[vhost.name]
        done()


def check_name(name: str) -> None:
    """Raises `ChannelError` 406 for a name that no virtual host can have."""
    size = len(name.encode(errors="surrogatepass"))
    if not 1 <= size <= MAX_NAME_BYTES:
        raise precondition_failed(f"the name of a vhost has {size} bytes, 1 to {MAX_NAME_BYTES}")
    if not name.isprintable():
        raise precondition_failed(f"the name of vhost {name!r} contains non-printable characters")


def _checked(name: str, properties: Mapping[str, FieldValue]) -> Table:
    check_name(name)
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
