"""Maps errors to HTTP responses, all of them `application/problem+json` (RFC 9457).

The status follows from the error's class. An unexpected error becomes a 500 without details, which
are logged.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response

from ..core.auth import AuthError, LastAdministrator, Unknown
from ..core.errors import (
    REPLY_NAMES,
    ChannelError,
    LowOnDisk,
    ProtocolError,
    Shortage,
    WarrenError,
)
from ..core.policy.keys import PolicyError
from ..hub.engine.errors import REFUSED_BY_QUEUE, EngineUnavailable
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
    406: 400,  # routes that detect a conflict raise 409
    501: 400,
    502: 400,
    530: 403,
    540: 501,
}


class Problem(WarrenError):
    """An HTTP error: status, detail, extra headers, and extra members of the document."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        title: str | None = None,
        headers: Mapping[str, str] | None = None,
        members: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.title = title or HTTPStatus(status).phrase
        self.type = TYPE_PREFIX + "-".join(title.lower().split()) if title else "about:blank"
        self.headers = dict(headers or {})
        self.members = {key: value for key, value in (members or {}).items() if value is not None}

    def body(self) -> bytes:
        """Returns JSON in one line, with a line end so that a terminal's prompt starts a new
        line."""
        return msgspec.json.encode(self.document()) + b"\n"

    def document(self) -> dict[str, Any]:
        return {
            "type": self.type,
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            **self.members,
        }

    def response(self) -> Response:
        return Response(
            self.body(), status_code=self.status, headers=self.headers, media_type=MEDIA_TYPE
        )


def invalid_operation(method: str, mode: str | None) -> Problem:
    """Returns the 400 for an unknown combination of method and `hub.mode` (RabbitHub)."""
    given = "without hub.mode" if mode is None else f"with hub.mode={mode[:80]}"
    detail = f"{method} {given} is not an operation here; GET describes the operations"
    return Problem(400, detail, title="Invalid operation")


def method_not_allowed(method: str, allowed: str) -> Problem:
    """Returns the 405 with the methods that the path supports, separated by commas."""
    return Problem(405, f"{method} is not allowed here", headers={"Allow": allowed})


def conflict(error: ChannelError) -> WarrenError:
    """Returns a 409 if the error is a failed precondition of an existing resource, else the
    error."""
    if error.code != 406:
        return error
    return Problem(409, error.explanation, title=_words(406))


def unauthenticated(detail: str) -> Problem:
    """Returns a 401 that asks for HTTP Basic."""
    return Problem(401, detail, headers={"WWW-Authenticate": 'Basic realm="warren"'})


def too_many_failures(wait_s: int) -> Problem:
    """Returns the 429 for a login that was refused without checking the password."""
    return Problem(
        429,
        f"too many failed logins of this user from this address; try again in {wait_s} s",
        headers={"Retry-After": str(wait_s)},
    )


def busy(detail: str) -> Problem:
    """Returns a 503: nothing was published, and a retry may succeed soon."""
    return Problem(503, detail, headers={"Retry-After": "1"})


def refused_by_queue() -> Problem:
    """Returns the 503 for a message that a queue would not take."""
    return busy(REFUSED_BY_QUEUE)


def low_on_memory() -> Problem:
    return Problem(
        503,
        "low on memory: publishing resumes when messages have been consumed",
        title="Low on memory",
        headers={"Retry-After": "5"},
    )


def low_on_disk() -> Problem:
    return Problem(
        507,
        "low on disk: publishing resumes when messages have been consumed or space was freed",
        title="Low on disk",
        headers={"Retry-After": "30"},
    )


def problem_of(error: Exception) -> Problem:
    """Returns the response to a request that raised this error."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, EngineUnavailable):
        return busy(error.explanation)
    if isinstance(error, ProtocolError):
        return _from_protocol(error)
    if isinstance(error, Shortage):
        return low_on_disk() if isinstance(error, LowOnDisk) else low_on_memory()
    if isinstance(error, HTTPException):
        return Problem(error.status_code, error.detail, headers=error.headers)
    if isinstance(error, HubError):
        return _from_hub(error)
    if isinstance(error, AuthError):
        return Problem(_status_of(error), str(error))
    if isinstance(error, PolicyError):
        return Problem(400, str(error))
    logger.error("unexpected error in a request", exc_info=error)
    return Problem(500, "internal server error; see the log of the server")


def _from_protocol(error: ProtocolError) -> Problem:
    status = STATUS_BY_REPLY_CODE.get(error.code)
    if status is None:
        logger.error("unexpected AMQP error in a request", exc_info=error)
        return Problem(500, error.explanation)
    return Problem(status, error.explanation, title=_words(error.code))


def _from_hub(error: HubError) -> Problem:
    given = {"field": error.field, "value": error.value, "limit": error.limit}
    members = {**given, **error.members}
    headers = {} if error.retry_after_s is None else {"Retry-After": str(error.retry_after_s)}
    return Problem(error.status, str(error), title=error.title, headers=headers, members=members)


def _status_of(error: AuthError) -> int:
    if isinstance(error, LastAdministrator):
        return 409
    return 404 if isinstance(error, Unknown) else 400


def _words(reply_code: int) -> str:
    return REPLY_NAMES[reply_code].replace("_", " ").capitalize()
