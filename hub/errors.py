"""The errors of requests to the hub, each with its HTTP status.

Every error names the field, its value and the limit, so that clients can correct their parameters.
A secret or token is never repeated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ..core.errors import ConfigError, WarrenError

_VALUE_SHOWN = 200  # characters of an invalid value


class HubError(WarrenError):
    """Base of the errors of requests to the hub. `reason` is for people; `field`, `value` and
    `limit` are for programs."""

    status: ClassVar[int] = 400
    title: ClassVar[str] = "Bad request"
    retry_after_s: ClassVar[int | None] = None
    """The seconds after which the same request may succeed."""

    def __init__(
        self,
        reason: str,
        *,
        field: str,
        value: str | None = None,
        limit: str | None = None,
        members: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(f"{field}: {reason}")
        self.members = members or {}
        """Further members of the problem document."""
        self.reason = reason
        self.field = field
        self.value = None if value is None else value[:_VALUE_SHOWN]
        self.limit = limit


class BadRequest(HubError):
    """A parameter is missing, unknown or out of its bounds."""


class TokenRefused(HubError):
    """A token of this hub was used for another purpose, or too late."""

    title = "Bad hub.verify_token"


class VerificationFailed(HubError):
    """The callback did not confirm the intent (WebSub 5.3)."""

    title = "Request verification failed"


class CallbackRefused(HubError):
    """The callback is a URL that this hub does not send to."""

    status = 422
    title = "Callback refused"


class SourceMissing(HubError):
    """The exchange or queue to subscribe to, or to bind to, does not exist."""

    status = 404
    title = "Not found"


class NotSubscribed(HubError):
    """There is no such subscription."""

    status = 404
    title = "Not subscribed"


class NotOwner(HubError):
    """The subscription is another user's."""

    status = 403
    title = "Not the owner"


class TopicDenied(HubError):
    """The publisher does not offer the topic (WebSub 5.2)."""

    title = "Topic denied"


class TooManyPending(HubError):
    """Too many verifications are waiting; the request has had no effect."""

    status = 503
    title = "Too many verifications"
    retry_after_s = 5


class TooManySubscriptions(HubError):
    """The limit of subscriptions without credentials is reached."""

    status = 429
    title = "Too many subscriptions"


class NotResolved(HubError):
    """A host could not be looked up, for reasons on this side."""

    status = 503
    title = "Names can't be resolved"
    retry_after_s = 5


class NotDistributed(HubError):
    """A queue or the disk did not take content of a topic; the request can be repeated."""

    status = 503
    title = "Not distributed"


class NoSuchDeadLetter(HubError):
    """There is no dead letter with this id, or none that the user may see."""

    status = 404
    title = "Not found"


class NotReplayed(HubError):
    """A dead letter can't be published to the queue of its subscription now."""

    status = 409
    title = "Not replayed"


class NotResent(HubError):
    """A message can't be sent again."""

    status = 409
    title = "Not resent"


class NoSuchAttempt(HubError):
    """There is no attempt with this id, or none that the user may see."""

    status = 404
    title = "Not found"


class StorageFailed(HubError):
    """The database did not take a change; the request has had no effect.

    If the connection was lost during a commit, that is unknown; the request can be repeated.
    """

    status = 503
    title = "Storage failed"


class DatabaseUnavailable(WarrenError):
    """The database can't be reached or used."""


class DatabaseInUse(DatabaseUnavailable):
    """Another Warren uses the database."""


class DatabaseDown(ConfigError):
    """The database can't be reached or used at the start."""
