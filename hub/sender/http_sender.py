"""The sender on the hub's own HTTP client."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial

from ..attempts.attempt import RESPONSE_CHARACTERS
from ..errors import CallbackRefused
from ..guard.egress import make_dialler
from ..guard.guard import Guard
from ..guard.lookups import Purpose
from ..settings import HubSettings
from .client import HttpClient
from .connection import Limits, Response
from .port import Answer, Answered, SendError

KEEP_S = 15.0


class HttpSender:
    def __init__(self, settings: HubSettings, guard: Guard) -> None:
        self._timeout_s = settings.total_timeout_s
        dialler = make_dialler(settings, guard, Purpose.DELIVER)
        limits = Limits(settings.max_response_bytes, kept_bytes=settings.attempt_body_bytes)
        self._client = HttpClient(guard, dialler, limits, keep_s=KEEP_S)

    def post(self, url: str, headers: Mapping[str, str], body: bytes, answered: Answered) -> None:
        done = partial(_answer, answered)
        try:
            self._client.send("POST", url, headers, body, self._timeout_s, done)
        except (CallbackRefused, SendError) as error:
            asyncio.get_running_loop().call_soon(done, error)

    async def close(self) -> None:
        self._client.close()


def _answer(answered: Answered, response: Response | Exception) -> None:
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
    lines = [b"HTTP/1.1 %d %s" % (response.status, response.reason)]
    lines[0] = lines[0].rstrip()
    room = RESPONSE_CHARACTERS
    for name, value in response.fields:
        lines.append(name + b": " + value)
        room -= len(lines[-1])
        if room < 0:
            break
    return b"\n".join(lines)[:RESPONSE_CHARACTERS].decode("latin-1")
