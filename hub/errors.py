"""What can be wrong with a request to the hub: each error has its HTTP status.

Every error names the field, what it held and the limit that it broke, so that a client can
tell which of its parameters to mend. A secret or token is never repeated.
"""

from __future__ import annotations

from typing import ClassVar

from ..core.errors import WarrenError

_VALUE_SHOWN = 200  # characters of an offending value: a 2 MB field must not come back whole


class HubError(WarrenError):
    """`reason` is for people; `field`, `value` and `limit` are for programs."""

    status: ClassVar[int] = 400
    title: ClassVar[str] = "Bad request"
    retry_after_s: ClassVar[int | None] = None
    """When the same request may succeed."""

    def __init__(
        self, reason: str, *, field: str, value: str | None = None, limit: str | None = None
    ) -> None:
        super().__init__(f"{field}: {reason}")
        self.reason = reason
        self.field = field
        self.value = None if value is None else value[:_VALUE_SHOWN]
        self.limit = limit


class BadRequest(HubError):
    """A parameter is missing, unknown or out of its limits."""


class TokenRefused(HubError):
    """A token of this hub, used for something it was not made for, or too late."""

    title = "Bad hub.verify_token"


class VerificationFailed(HubError):
    """The callback did not confirm the intent (WebSub 5.3)."""

    title = "Request verification failed"


class CallbackRefused(HubError):
    """The callback is no URL that this hub sends to."""

    status = 422
    title = "Callback refused"


class SourceMissing(HubError):
    """The exchange or queue to subscribe to, or to bind to, does not exist."""

    status = 404
    title = "Not found"


class NotSubscribed(HubError):
    """No such subscription."""

    status = 404
    title = "Not subscribed"


class NotOwner(HubError):
    """The subscription is somebody else's."""

    status = 403
    title = "Not the owner"


class TopicDenied(HubError):
    """The topic is none that its publisher offers (WebSub 5.2)."""

    title = "Topic denied"


class TooManyPending(HubError):
    """More verifications are waiting than this hub takes; nothing of the request has happened."""

    status = 503
    title = "Too many verifications"
    retry_after_s = 5


class TooManySubscriptions(HubError):
    """There are as many of those who have no credentials as this hub takes."""

    status = 429
    title = "Too many subscriptions"


class NotResolved(HubError):
    """A host could not be looked up, for reasons that are this hub's: says nothing about it."""

    status = 503
    title = "Names can't be resolved"
    retry_after_s = 5


class NotDistributed(HubError):
    """Content of a topic that a queue, or the disk, did not take; asking again does no harm."""

    status = 503
    title = "Not distributed"


class NoSuchDeadLetter(HubError):
    """No dead letter of this id, or none that is any business of who asks."""

    status = 404
    title = "Not found"


class NotReplayed(HubError):
    """A dead letter can't go back to the queue of its subscription now."""

    status = 409
    title = "Not replayed"


class StorageFailed(HubError):
    """The database did not take a change; nothing of the request has happened.

    Where the connection was lost under a commit nobody can tell; asking again does no harm.
    """

    status = 503
    title = "Storage failed"


class DatabaseUnavailable(WarrenError):
    """No session with the database: for the operator, whose log or start it ends up in."""
