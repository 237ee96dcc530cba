"""A subscription as a value; `hub/storage/tables.py` defines its row."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit

from ...core.message.model import Table
from ..engine.port import BindingSpec, QueueSpec
from ..requests import Resource, SubscribeRequest
from .options import DEFAULTS, NO_KEYS, Keys, Options
from .websub import normal_url

OWN_QUEUE_PREFIX = "hub.sub."
ANONYMOUS_LIMITS: Table = {
    "x-max-length": 1_000,
    "x-max-length-bytes": 64 * 1024 * 1024,
    "x-message-ttl": 86_400_000,
}
"""Arguments of the queue of an anonymous client. They must not change: existing queues have
them."""


class SubscriptionStatus(StrEnum):
    """The status of a row. A start undoes `PENDING` and `ENDING`."""

    PENDING = "pending"
    """Verified and stored; its queue may not be declared."""
    ACTIVE = "active"
    PAUSED = "paused"
    """Its messages wait in its queue (RabbitHub: `inactive`)."""
    UNVERIFIED = "unverified"
    """Uploaded as `inactive`: it has no queue until its callback has agreed."""
    ENDING = "ending"
    """Over; its queue may exist, and its callback may have to be notified."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """A subscription as it is stored. `expires_at` is wall time in seconds. `sink` is set if a
    token bound a resource of this hub instead of a callback. `topic` is the key of the binding.
    `topic_url` is set for subscriptions by `/hub`: their callbacks get this URL, and are posted to
    exactly as given (WebSub 5.1, 7). `base_url` is the address at which the subscriber reached the
    hub; deliveries name hub and topic below it. `reason` says why it is paused or ending."""

    id: str
    source: Resource
    topic: str
    callback: str
    lease_seconds: int
    expires_at: float
    owner: str
    keys: Keys = NO_KEYS
    sink: Resource | None = None
    status: SubscriptionStatus = SubscriptionStatus.PENDING
    topic_url: str = ""
    base_url: str = ""
    options: Options = DEFAULTS
    reason: str = ""

    @property
    def host(self) -> str:
        """The host and port of the callback, without credentials."""
        return urlsplit(self.callback).netloc.rpartition("@")[2]

    @property
    def is_websub(self) -> bool:
        return bool(self.topic_url)

    def concerns(self, vhost: str) -> bool:
        """Whether source or sink is in the virtual host."""
        return vhost == self.source.vhost or (self.sink is not None and vhost == self.sink.vhost)

    @property
    def identity(self) -> str:
        return identity_of(self.source, self.topic, self.callback, self.topic_url)

    @property
    def is_binding(self) -> bool:
        """Whether it is only a binding inside the broker."""
        return (
            self.sink is not None
            and self.source.kind == "x"
            and self.sink.vhost == self.source.vhost
        )

    @property
    def owns_queue(self) -> bool:
        """Whether it has a queue of its own: subscriptions to a queue share their source."""
        return self.source.kind == "x" and not self.is_binding

    @property
    def binds(self) -> bool:
        """Whether its messages come by a binding, which is deleted with its source."""
        return self.is_binding or self.owns_queue

    @property
    def binding(self) -> BindingSpec:
        """The binding of a subscription that `binds`."""
        if self.is_binding and self.sink is not None:
            return BindingSpec(self.source.name, self.sink.name, self.sink.kind == "q", self.topic)
        return BindingSpec(self.source.name, self.queue, True, self.topic)

    @property
    def is_anonymous(self) -> bool:
        """Whether it was made without credentials."""
        return self.options.anonymous_client is not None

    @property
    def queue_spec(self) -> QueueSpec:
        """The queue of a subscription that `owns_queue`."""
        return QueueSpec(self.queue, arguments=ANONYMOUS_LIMITS if self.is_anonymous else {})

    @property
    def queue(self) -> str:
        """The queue that is consumed for it."""
        return OWN_QUEUE_PREFIX + self.id if self.owns_queue else self.source.name


def identity_of_request(request: SubscribeRequest) -> str:
    """Returns the identity of the requested subscription."""
    topic, callback = request.topic or "", request.callback or ""
    return identity_of(request.source, topic, callback, request.topic_url)


def identity_of(source: Resource, topic: str, callback: str, topic_url: str = "") -> str:
    """Returns a digest that is the same for a repeated subscribe; callbacks are too long for an
    index.

    It is of source, topic and callback (RabbitHub), or of topic URL and callback, however they are
    percent-encoded (WebSub 5.1).
    """
    if topic_url:
        parts: tuple[str, ...] = ("websub", normal_url(topic_url), normal_url(callback))
    else:
        parts = (source.vhost, source.kind, source.name, topic, callback)
    return hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()
