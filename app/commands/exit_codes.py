"""Exit codes of commands, and the errors that end a command with one of them.

2 is that of `ConfigError` and of click: wrong parameters, or a file that can't be used.
"""

from __future__ import annotations

from collections.abc import Mapping
from ssl import SSLCertVerificationError, SSLError
from typing import Any, Final

from ...core.errors import WarrenError

DONE: Final = 0
PARTLY: Final = 3
REFUSED: Final = 4
UNREACHABLE: Final = 5


class CommandError(WarrenError):
    """A command that could not do what was asked."""

    exit_code = REFUSED


class RequestRefused(CommandError):
    """The server has refused a request; `status` is that of HTTP, and `document` what it has sent
    with it."""

    def __init__(self, text: str, status: int, document: Mapping[str, Any] | None = None) -> None:
        super().__init__(text)
        self.status = status
        self.document = document or {}


class Unreachable(CommandError):
    """There is no server, or it does not answer."""

    exit_code = UNREACHABLE


class PartlyDone(CommandError):
    """Some of what was asked is done; the text says what is not."""

    exit_code = PARTLY


def reason_of(error: Exception) -> str:
    """Returns what went wrong, without the number of an `OSError` and the name of its file."""
    if isinstance(error, SSLCertVerificationError):
        return (
            f"its certificate is not trusted ({error.verify_message}); the variable SSL_CERT_FILE "
            "names a file with the certificate of your own authority"
        )
    if isinstance(error, SSLError) and error.reason == "WRONG_VERSION_NUMBER":
        return "it speaks no TLS there; write http:// in place of https://"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
