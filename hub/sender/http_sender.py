"""The sender on the hub's own HTTP client."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial

from ..errors import CallbackRefused
from ..guard.egress import make_dialler
from ..guard.guard import Guard
from ..guard.lookups import Purpose
from ..settings import HubSettings
from .answers import pass_on
from .client import HttpClient
from .port import Answered, SendError
from .response import ResponseLimits

KEEP_S = 15.0
"""How long a connection is kept after a delivery."""


class HttpSender:
    """Delivers messages; implements `Sender`."""

    def __init__(self, settings: HubSettings, guard: Guard) -> None:
        self._timeout_s = settings.total_timeout_s
        dialler = make_dialler(settings, guard, Purpose.DELIVER)
        limits = ResponseLimits(settings.max_response_bytes, kept_bytes=settings.attempt_body_bytes)
        self._client = HttpClient(guard, dialler, limits, keep_s=KEEP_S)

    def post(self, url: str, headers: Mapping[str, str], body: bytes, answered: Answered) -> None:
        done = partial(pass_on, answered)
        try:
            self._client.send("POST", url, headers, body, self._timeout_s, done)
        except (CallbackRefused, SendError) as error:
            asyncio.get_running_loop().call_soon(done, error)

    async def close(self) -> None:
        self._client.close()
