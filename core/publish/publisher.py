"""The interface of publishers: of AMQP channels, and of applications in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ..auth import User
    from ..context import BrokerContext
    from ..message.queue_entry import MessageRange
    from ..statistics.counters import Counted
    from ..vhost import VirtualHost
    from .single import RoutedPublish


class Publisher(Protocol):
    """A source of publishes, which receives their returns and confirms."""

    @property
    def broker(self) -> BrokerContext: ...
    @property
    def vhost(self) -> VirtualHost: ...
    @property
    def user(self) -> User | None:
        """The user whose permissions are needed; None for the server, which needs none."""

    @property
    def author(self) -> User | None:
        """The user whom a user-id has to name; None if any is allowed."""

    @property
    def number(self) -> int:
        """The channel's number."""

    @property
    def transaction(self) -> OpenTransaction | None:
        """The transaction that buffers its publishes until the commit, if any."""

    @property
    def confirming(self) -> bool:
        """Whether `published` is called for each publish."""

    @property
    def counted(self) -> Counted | None:
        """The channel whose publishes are counted; None for an application in this process."""

    @property
    def reply_name(self) -> str | None:
        """The queue name that replaces `amq.rabbitmq.reply-to` in its requests."""

    def published(self, count: int, commit: int) -> None:
        """Notes accepted publishes; they are confirmed with that commit."""

    def refused(self) -> None:
        """Notes a publish that a queue refused."""

    def send_return(self, code: int, text: str, returned: MessageRange) -> None:
        """Returns a message that could not be routed (312) or delivered (313)."""


class OpenTransaction(Protocol):
    """The transaction of a channel."""

    def buffer(self, publish: RoutedPublish) -> None:
        """Buffers a publish until the commit. Raises `ChannelError` 406 if there are too many."""
