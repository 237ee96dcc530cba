"""One map from errors to HTTP answers, all of them `application/problem+json` (RFC 9457).

The error alone decides; a route never words its own. What is unforeseen becomes a 500 that
tells the client nothing and the log everything.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response

from ..core.auth import AuthError, LastAdministrator, Unknown
from ..core.errors import REPLY_NAMES, ChannelError, ProtocolError, WarrenError
from ..hub.errors import HubError

MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:warren:"
logger = logging.getLogger(__name__)

STATUS_BY_REPLY_CODE = {
    311: 413,
    320: 503,
    403: 403,
    404: 404,
    405: 409,  # the queue is locked by another connection; HTTP's 405 is about methods
    406: 400,  # a route that knows of a conflict says 409
    501: 400,
    502: 400,
    530: 403,
    540: 501,
}


class Problem(WarrenError):
    """An answer that a route decided on: status, what was wrong, extra headers and members."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        title: str | None = None,
        headers: Mapping[str, str] | None = None,
        members: Mapping[str, str | None] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.title = title or HTTPStatus(status).phrase
        self.type = TYPE_PREFIX + "-".join(title.lower().split()) if title else "about:blank"
        self.headers = dict(headers or {})
        self.members = {key: value for key, value in (members or {}).items() if value is not None}

    def body(self) -> bytes:
        """One line of JSON, with its end: the next prompt of a terminal is on its own."""
        document = {
            "type": self.type,
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            **self.members,
        }
        return msgspec.json.encode(document) + b"\n"

    def response(self) -> Response:
        return Response(
            self.body(), status_code=self.status, headers=self.headers, media_type=MEDIA_TYPE
        )


def invalid_operation(method: str, mode: str | None) -> Problem:
    """400 for a method and `hub.mode` that mean nothing together (RabbitHub)."""
    told = "without hub.mode" if mode is None else f"with hub.mode={mode[:80]}"
    detail = f"{method} {told} is no operation here; a GET describes those that are"
    return Problem(400, detail, title="Invalid operation")


def conflict(error: ChannelError) -> WarrenError:
    """409 for a precondition that the state of an existing resource fails; else the error."""
    if error.code != 406:
        return error
    return Problem(409, error.explanation, title=_words(406))


def unauthenticated(detail: str) -> Problem:
    return Problem(401, detail, headers={"WWW-Authenticate": 'Basic realm="warren"'})


def too_many_failures(wait_s: int) -> Problem:
    """429: the password was not looked at."""
    return Problem(
        429,
        f"too many failed logins of this user from this address, try again in {wait_s} s",
        headers={"Retry-After": str(wait_s)},
    )


def busy(detail: str) -> Problem:
    """503: nothing was published, the same request may succeed soon."""
    return Problem(503, detail, headers={"Retry-After": "1"})


def low_on_memory() -> Problem:
    return Problem(
        503,
        "low on memory: nothing is published until messages have been consumed",
        title="Low on memory",
        headers={"Retry-After": "5"},
    )


def low_on_disk() -> Problem:
    return Problem(
        507,
        "low on disk: nothing is published until messages have been consumed or space was made",
        title="Low on disk",
        headers={"Retry-After": "30"},
    )


def problem_of(error: Exception) -> Problem:
    """What to answer when a request ended with this error."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, ProtocolError):
        return _from_protocol(error)
    if isinstance(error, HTTPException):
        return Problem(error.status_code, error.detail, headers=error.headers)
    if isinstance(error, HubError):
        return _from_hub(error)
    if isinstance(error, AuthError):
        return Problem(_status_of(error), str(error))
    logger.error("a request failed unforeseen", exc_info=error)
    return Problem(500, "the server met an error it did not foresee; its log has it")


def _from_protocol(error: ProtocolError) -> Problem:
    status = STATUS_BY_REPLY_CODE.get(error.code)
    if status is None:
        logger.error("a request failed with an AMQP fault", exc_info=error)
        return Problem(500, error.explanation)
    return Problem(status, error.explanation, title=_words(error.code))


def _from_hub(error: HubError) -> Problem:
    members = {"field": error.field, "value": error.value, "limit": error.limit}
    headers = {} if error.retry_after_s is None else {"Retry-After": str(error.retry_after_s)}
    return Problem(error.status, str(error), title=error.title, headers=headers, members=members)


def _status_of(error: AuthError) -> int:
    if isinstance(error, LastAdministrator):
        return 409
    return 404 if isinstance(error, Unknown) else 400


def _words(reply_code: int) -> str:
    return REPLY_NAMES[reply_code].replace("_", " ").capitalize()
