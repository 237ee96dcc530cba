"""The exceptions of Warren, by how much they close.

A `ChannelError` closes one channel, a `ConnectionFault` one connection (AMQP 0-9-1 1.5 and
4.2.10); every other connection lives on. HTTP maps the same errors to statuses, so a rule is
checked and worded once.
"""

from __future__ import annotations

from typing import Final

REPLY_NAMES: Final = {
    311: "CONTENT_TOO_LARGE",
    312: "NO_ROUTE",
    313: "NO_CONSUMERS",
    320: "CONNECTION_FORCED",
    402: "INVALID_PATH",
    403: "ACCESS_REFUSED",
    404: "NOT_FOUND",
    405: "RESOURCE_LOCKED",
    406: "PRECONDITION_FAILED",
    501: "FRAME_ERROR",
    502: "SYNTAX_ERROR",
    503: "COMMAND_INVALID",
    504: "CHANNEL_ERROR",
    505: "UNEXPECTED_FRAME",
    506: "RESOURCE_ERROR",
    530: "NOT_ALLOWED",
    540: "NOT_IMPLEMENTED",
    541: "INTERNAL_ERROR",
}


class WarrenError(Exception):
    """Base of every error that Warren raises on purpose."""


class ProtocolError(WarrenError):
    """An AMQP reply code with its explanation; the subclass tells how much it closes."""

    def __init__(self, code: int, explanation: str) -> None:
        super().__init__(explanation)
        self.code = code
        self.explanation = explanation

    @property
    def reply_text(self) -> str:
        """`NAME - explanation`, cut to the 255 bytes that a short string holds."""
        text = f"{REPLY_NAMES[self.code]} - {self.explanation}"
        return text.encode()[:255].decode(errors="ignore")


class ChannelError(ProtocolError):
    """Closes the channel that caused it (403, 404, 405, 406)."""


class QueueFull(ChannelError):
    """A queue that rejects publishes when it is full has no capacity for a transaction."""


class Shortage(WarrenError):
    """Publishers have to wait until there is room again."""


class LowOnMemory(Shortage):
    """Messages take all the memory that they may."""


class LowOnDisk(Shortage):
    """The file system of the data directory has too little space left."""


class ConnectionFault(ProtocolError):
    """Closes the connection that caused it (501-506, 530, 540, 541, 320)."""


class ConfigError(WarrenError):
    """The configuration, data directory or a listener can't be used: one line, exit code 2."""


def access_refused(explanation: str) -> ChannelError:
    return ChannelError(403, explanation)


def not_found(explanation: str) -> ChannelError:
    return ChannelError(404, explanation)


def resource_locked(explanation: str) -> ChannelError:
    return ChannelError(405, explanation)


def precondition_failed(explanation: str) -> ChannelError:
    return ChannelError(406, explanation)


class StoreFailure(Exception):
    """The log can't be written any more; nothing has been confirmed since."""
