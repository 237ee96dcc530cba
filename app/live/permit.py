"""The permissions to read a source live, or to publish to it; checked again at each change of the
user."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...core.auth import User
from ...core.auth.authorization import at_topics, to_publish
from ...core.broker import Broker
from ...core.errors import ChannelError
from ...hub.live.reasons import Reason
from ...hub.requests import Resource
from ..access.token_users import TokenUser


class ReadPermit:
    """The permission to read a source, of an exchange with these keys."""

    __slots__ = ("_broker", "_keys", "_source", "_user")

    def __init__(
        self, broker: Broker, user: User, source: Resource, keys: Sequence[str] = ()
    ) -> None:
        self._broker = broker
        self._user = user
        self._source = source
        self._keys = keys

    def require(self) -> None:
        """Raises `ChannelError` 403."""
        user, source = self._user, self._source
        user.require(source.vhost, "read", source.word, source.name)
        vhost = self._broker.vhosts.get(source.vhost)
        exchange = None if vhost is None else vhost.exchanges.get(source.name)
        if source.kind == "q" or exchange is None:
            return
        topics = at_topics(user, source.vhost, source.name, exchange.type_name, exchange.arguments)
        if topics is not None:
            for key in self._keys:
                topics.require("read", key)

    def refusal(self) -> Reason | None:
        try:
            self.require()
        except ChannelError as error:
            if isinstance(self._user, TokenUser) and self._user.over:
                return Reason.unauthenticated(error.explanation)
            return Reason.refused(error.explanation)
        return None

    def watch(self, changed: Callable[[], None]) -> None:
        self._user.watch(changed)

    def unwatch(self, changed: Callable[[], None]) -> None:
        self._user.unwatch(changed)


class WritePermit(ReadPermit):
    """The permission to publish to a source; each routing key is checked when it is used."""

    __slots__ = ()

    def require(self) -> None:
        """Raises `ChannelError` 403."""
        source = self._source
        to_publish(self._user, source.vhost, source.word, source.name)
