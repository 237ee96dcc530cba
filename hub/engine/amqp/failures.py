"""Translates the client library's errors into those of the port."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from aiormq.exceptions import (
    AMQPError,
    ChannelAccessRefused,
    ChannelClosed,
    ChannelInvalidStateError,
    ChannelLockedResource,
    ChannelNotFoundEntity,
    ChannelPreconditionFailed,
)

from ....core.errors import REPLY_NAMES, ChannelError
from ..errors import EngineUnavailable

_CODES: Final[dict[type[ChannelClosed], int]] = {
    ChannelAccessRefused: 403,
    ChannelNotFoundEntity: 404,
    ChannelLockedResource: 405,
    ChannelPreconditionFailed: 406,
}


_ADVICE: Final = "the URL needs its name, and may end with ?cacertfile=FILE of its authority"


@contextmanager
def translated() -> Iterator[None]:
    """Raises `ChannelError` for what RabbitMQ has refused, and `EngineUnavailable` when it does not
    answer, or the connection is lost."""
    try:
        yield
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        # The library cancels what waits when a connection stalls; this task goes on.
        raise EngineUnavailable("the connection to RabbitMQ was lost") from error
    except ChannelClosed as error:
        raise _refused(error) from error
    except TimeoutError as error:
        raise EngineUnavailable("RabbitMQ did not answer in time") from error
    except (AMQPError, ChannelInvalidStateError, OSError, RuntimeError) as error:
        raise EngineUnavailable(f"the connection to RabbitMQ was lost: {reason(error)}") from error


def reason(error: BaseException) -> str:
    """Returns the library's error in words."""
    if isinstance(error, TimeoutError):
        return "no answer"
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError) and hasattr(cause, "verify_message"):
            return f"its certificate is refused, {cause.verify_message}; {_ADVICE}"
        cause = cause.__cause__
    return str(error.args[-1] if error.args else error) or type(error).__name__


def _refused(error: ChannelClosed) -> ChannelError:
    text = reason(error)
    code = _CODES.get(type(error))
    if code is None:
        return EngineUnavailable(f"RabbitMQ has closed the channel: {text}")
    return ChannelError(code, text.removeprefix(f"{REPLY_NAMES[code]} - "))
