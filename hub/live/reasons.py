"""The reasons for which a reader ends, as problem documents (RFC 9457)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from ...core.errors import ProtocolError

_WORDS: Final = {403: (403, "Access refused"), 404: (404, "Not found")}


@dataclass(frozen=True, slots=True)
class Reason:
    """The end of a live subscription; `status` is what a new request would be answered with, or
    408 for a reader that was too slow."""

    status: int
    title: str
    detail: str

    def document(self) -> dict[str, Any]:
        name = "-".join(self.title.lower().split())
        return {
            "type": f"urn:warren:{name}",
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
        }

    @staticmethod
    def slow(unsent_bytes: int, limit_bytes: int) -> Reason:
        return Reason(
            408,
            "Too slow",
            f"{unsent_bytes} bytes are unread (limit {limit_bytes}); go on at the last cursor",
        )

    @staticmethod
    def stalled(seconds: int) -> Reason:
        return Reason(
            408, "Too slow", f"nothing was read for {seconds} s; go on at the last cursor"
        )

    @staticmethod
    def deleted(what: object) -> Reason:
        return Reason(404, "Not found", f"{what} was deleted")

    @staticmethod
    def cancelled(what: object, error: Exception | None) -> Reason:
        """Returns the reason for a source that was deleted, or that an error keeps from being
        read."""
        if error is None:
            return Reason.deleted(what)
        return Reason(
            500, "Internal error", f"{what} could not be read; the log of the server says why"
        )

    @staticmethod
    def stopping() -> Reason:
        return Reason(503, "Stopping", "the server is stopping; go on at the last cursor")

    @staticmethod
    def of(error: ProtocolError) -> Reason:
        """Returns the reason for a queue that can't be consumed, or not any more."""
        status, title = _WORDS.get(error.code, (409, "Not available"))
        return Reason(status, title, error.explanation)

    @staticmethod
    def refused(detail: str) -> Reason:
        return Reason(403, "Access refused", detail)

    @staticmethod
    def unauthenticated(detail: str) -> Reason:
        return Reason(401, "Unauthorized", detail)
