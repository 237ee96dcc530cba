"""Checks the permissions that an operation needs, for AMQP and HTTP alike.

| operation | configure | write | read |
|---|---|---|---|
| declare, delete | the exchange or queue | | |
| declare with an alternate or dead-letter exchange | | that exchange | the exchange or queue |
| bind, unbind | | the destination | the source |
| publish | | the exchange | |
| consume, get, purge | | | the queue |
| passive declare | any one of the three | | |

Names that begin with `hub.` are the hub's: nobody else declares a new one, deletes one, binds to
one, or publishes to such an exchange.

At a topic exchange the routing key is checked against topic permissions too: write to publish,
read to bind or unbind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..message.model import Table
from . import Kind, TopicRights, User
from .reserved import refuse_foreign_content, refuse_reserved

if TYPE_CHECKING:
    from ..vhost import VirtualHost

_ONWARD: Final = {"exchange": "alternate-exchange", "queue": "x-dead-letter-exchange"}
_TOPIC: Final = "topic"
_DELAYED_TYPE: Final = "x-delayed-type"


def to_declare(
    user: User, vhost: str, kind: Kind, name: str, arguments: Table, *, is_new: bool
) -> None:
    """Checks a declaration. With an alternate or dead-letter exchange it also needs read here and
    write there, unless the object exists already.

    Raises `ChannelError` 403.
    """
    user.require(vhost, "configure", kind, name)
    if is_new:
        refuse_reserved(vhost, kind, name)
    onward = arguments.get(_ONWARD[kind]) if is_new else None
    if isinstance(onward, str):
        user.require(vhost, "read", kind, name)
        to_publish(user, vhost, "exchange", onward)


def to_delete(user: User, vhost: str, kind: Kind, name: str) -> None:
    """Checks deleting an exchange or queue. Raises `ChannelError` 403."""
    user.require(vhost, "configure", kind, name)
    refuse_reserved(vhost, kind, name)


def to_pause(user: User, vhost: str, name: str) -> None:
    """Checks pausing and resuming a queue. Raises `ChannelError` 403."""
    user.require(vhost, "configure", "queue", name)
    refuse_reserved(vhost, "queue", name)


def to_publish(user: User, vhost: str, kind: Kind, name: str) -> None:
    """Checks publishing to an exchange or queue. Raises `ChannelError` 403."""
    user.require(vhost, "write", kind, name)
    if kind == "exchange":
        refuse_foreign_content(vhost, name)


def to_bind(
    user: User, vhost: VirtualHost, source: str, kind: Kind, destination: str, routing_key: str
) -> None:
    """Checks bind or unbind; source and destination need not exist. Raises `ChannelError` 403."""
    user.require(vhost.name, "write", kind, destination)
    user.require(vhost.name, "read", "exchange", source)
    refuse_reserved(vhost.name, kind, destination)
    exchange = vhost.exchanges.get(source)
    if exchange is not None:
        topics = at_topics(user, vhost.name, source, exchange.type_name, exchange.arguments)
        if topics is not None:
            topics.require("read", routing_key)


def at_topics(
    user: User, vhost: str, exchange: str, type_name: str, arguments: Table
) -> TopicRights | None:
    """Returns the topic permissions for routing keys at this exchange; None permits every key.

    A delayed exchange of type topic counts as a topic exchange.
    """
    if type_name != _TOPIC and arguments.get(_DELAYED_TYPE) != _TOPIC:
        return None
    return user.topic_rights(vhost, exchange)
