"""Makes the answer of a callback from the response that was read."""

from __future__ import annotations

from ..attempts.attempt import RESPONSE_CHARACTERS
from ..errors import CallbackRefused
from .port import Answer, Answered, SendError
from .response import Response


def pass_on(answered: Answered, response: Response | Exception) -> None:
    """Calls `answered` with the answer, or with the reason why there is none."""
    if isinstance(response, Response):
        head = _head(response)
        answered(Answer(response.status, _retry_after(response), head, response.body))
    elif isinstance(response, CallbackRefused):
        answered(SendError(str(response)))
    else:
        answered(response)


def _retry_after(response: Response) -> str | None:
    for name, value in response.fields:
        if len(name) == 11 and name.lower() == b"retry-after":
            return value.decode("latin-1")
    return None


def _head(response: Response) -> str:
    """Returns the status line and the header fields, up to the limit."""
    lines = [b"HTTP/1.1 %d %s" % (response.status, response.reason)]
    lines[0] = lines[0].rstrip()
    room = RESPONSE_CHARACTERS
    for name, value in response.fields:
        lines.append(name + b": " + value)
        room -= len(lines[-1])
        if room < 0:
            break
    return b"\n".join(lines)[:RESPONSE_CHARACTERS].decode("latin-1")
