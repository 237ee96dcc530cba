"""Authorization over HTTP: access to virtual hosts, routing keys, unverified callbacks."""

from __future__ import annotations

from collections.abc import Container

from ...core.auth import ADMINISTRATOR, TopicAccess, User
from ...core.auth.authorization import at_topics
from ...core.errors import access_refused, not_found
from ...hub.engine.port import Engine

TRUSTED = "hub-trusted"
"""The tag of users who may subscribe without verification (`hub.verify=none`)."""


def is_trusted(user: User) -> bool:
    """Returns whether the user may subscribe callbacks that can't answer a challenge, such as a
    chat's incoming webhook."""
    return not user.tags.isdisjoint((ADMINISTRATOR, TRUSTED))


def require_vhost(user: User, vhost: str, vhosts: Container[str]) -> None:
    """Raises `ChannelError` 404 for a virtual host that does not exist, 403 without permission."""
    if vhost not in vhosts:
        raise not_found(f"no vhost '{vhost}'")
    if not user.may_enter(vhost):
        raise access_refused(f"access to vhost '{vhost}' refused for user '{user.name}'")


async def require_topic(
    engine: Engine, user: User, access: TopicAccess, vhost: str, exchange: str, routing_key: str
) -> None:
    """Raises `ChannelError` 403 if the exchange is a topic exchange and the user's topic
    permissions don't allow publishing with this key (write) or binding it (read)."""
    found = await engine.exchange(vhost, exchange)
    if found is None:
        return
    topics = at_topics(user, vhost, exchange, found.type, found.arguments)
    if topics is not None:
        topics.require(access, routing_key)
