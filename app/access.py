"""What a user may do over HTTP: enter a virtual host, use a routing key, vouch for a callback."""

from __future__ import annotations

from collections.abc import Container

from ..core.auth import ADMINISTRATOR, TopicAccess, User
from ..core.auth.authorization import at_topics
from ..core.errors import access_refused, not_found
from ..hub.engine.port import Engine

TRUSTED = "hub-trusted"
"""The tag of users who may say that a callback is not asked (`hub.verify=none`)."""


def is_trusted(user: User) -> bool:
    """Whether the user may subscribe callbacks that can't repeat a challenge, such as those of
    chats."""
    return not user.tags.isdisjoint((ADMINISTRATOR, TRUSTED))


def require_vhost(user: User, vhost: str, vhosts: Container[str]) -> None:
    """Raises `ChannelError` 404 for a virtual host that does not exist, 403 without permission."""
    if vhost not in vhosts:
        raise not_found(f"no vhost '{vhost}'")
    if not user.may_enter(vhost):
        raise access_refused(f"access to vhost '{vhost}' refused for user '{user.name}'")


def has_topic(user: User, access: TopicAccess, vhost: str, exchange: str, routing_key: str) -> bool:
    """Whether the key is permitted whatever the type of the exchange; if not, `require_topic`
    knows whether its type matters. Costs next to nothing for who has no topic permissions.
    """
    topics = user.topic_rights(vhost, exchange)
    return topics is None or topics.allow(access, routing_key)


async def require_topic(
    engine: Engine, user: User, access: TopicAccess, vhost: str, exchange: str, routing_key: str
) -> None:
    """Raises `ChannelError` 403 for a key that topic permissions don't let the user publish with
    (write) or bind (read), if that is a topic exchange."""
    if has_topic(user, access, vhost, exchange, routing_key):
        return
    found = await engine.exchange(vhost, exchange)
    if found is None:
        return
    topics = at_topics(user, vhost, exchange, found.type, found.arguments)
    if topics is not None:
        topics.require(access, routing_key)
