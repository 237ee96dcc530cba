"""Requests of this hub itself to tunnelled applications: deliveries and verifications.

They are passed to the tunnel in this process, as a requestor's are; nothing is dialled.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from ..sender.answers import pass_on
from ..sender.port import Answer, Answered, Sender, SendError, TimedOut
from ..sender.request_head import HeadWriter
from ..sender.response import Response
from ..settings import HubSettings
from .errors import TunnelError
from .pending_request import TunnelRequest
from .reply import Reply
from .tunnel import Tunnel
from .tunnels import Tunnels

CLIENT: Final = "127.0.0.1:0"
"""The requestor that applications are told: this server, without a connection."""
_URL: Final = re.compile(r"https?://([^/?#]*)([!-~]*)", re.IGNORECASE)

Done = Callable[["Response | SendError"], None]


class TunnelClient:
    """Implements `LocalClient`."""

    def __init__(self, tunnels: Tunnels) -> None:
        self._tunnels = tunnels
        self._heads = HeadWriter("utf-8", is_closing=False)

    def has(self, host: str) -> bool:
        return self._tunnels.settings.is_on and self._tunnels.addresses.has(host)

    def has_url(self, url: str) -> bool:
        """Returns whether the host of a URL is below the tunnel domain."""
        return self._tunnels.settings.is_on and self._tunnels.addresses.has_url(url)

    async def ask(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, within_s: float
    ) -> Response:
        done: asyncio.Future[Response | SendError] = asyncio.get_running_loop().create_future()
        withdraw = self.send(
            method, url, headers, body, within_s,
            lambda outcome: None if done.done() else done.set_result(outcome),
        )  # fmt: skip
        try:
            outcome = await done
        except asyncio.CancelledError:
            withdraw()
            raise
        if isinstance(outcome, SendError):
            raise outcome
        return outcome

    def send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        within_s: float,
        done: Done,
    ) -> Callable[[], None]:
        """Sends a request; `done` is called later, once. Returns what withdraws the request."""
        loop = asyncio.get_running_loop()
        try:
            host, message = self._message(method, url, headers, body)
            tunnel = self._tunnels.labels.of(self._tunnels.addresses.label_of(host) or "")
            question = _Question(tunnel, message, done)
            tunnel.ask(question.request)
        except SendError as error:
            loop.call_soon(done, error)
            return lambda: None
        except TunnelError as error:
            loop.call_soon(done, _refusal(error))
            return lambda: None
        question.end_in(within_s)
        return question.withdraw

    def _message(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[str, bytes]:
        match = _URL.fullmatch(url)
        if match is None:
            raise SendError("the URL has characters that must be percent-encoded")
        host, path = match[1], match[2]
        target = path if path.startswith("/") else f"/{path}"
        return host, self._heads.write(method, host, target, headers, len(body)) + body


class _Question:
    """A request that waits for its reply until the time of the sender is over."""

    def __init__(self, tunnel: Tunnel, message: bytes, done: Done) -> None:
        self.request = TunnelRequest(message, CLIENT, self._answered, is_head=False)
        self._tunnel = tunnel
        self._done = done
        self._timer: asyncio.TimerHandle | None = None

    def end_in(self, within_s: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(within_s, self._expire)

    def withdraw(self) -> None:
        self._stop_timer()
        self._tunnel.withdraw(self.request)

    def _answered(self, outcome: Reply | TunnelError) -> None:
        self._stop_timer()
        if isinstance(outcome, TunnelError):
            self._done(_refusal(outcome))
        else:
            self._done(Response(outcome.status, b"", outcome.fields, outcome.body))

    def _expire(self) -> None:
        self._tunnel.withdraw(self.request)
        self._done(TimedOut("no answer in time"))

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


def _refusal(error: TunnelError) -> Response:
    """Returns the answer that a requestor would get: 410 ends a subscription, all others are
    retried."""
    after = error.retry_after_s
    fields = [] if after is None else [(b"retry-after", str(after).encode())]
    return Response(error.status, error.title.encode(), fields, str(error).encode())


class CallbackSender:
    """Delivers messages, to tunnelled applications in this process; implements `Sender`."""

    def __init__(self, others: Sender, local: TunnelClient, settings: HubSettings) -> None:
        self._others = others
        self._local = local
        self._settings = settings

    def post(self, url: str, headers: Mapping[str, str], body: bytes, answered: Answered) -> None:
        if not self._local.has_url(url):
            self._others.post(url, headers, body, answered)
            return
        done = partial(pass_on, partial(self._cut, answered))
        self._local.send("POST", url, headers, body, self._settings.total_timeout_s, done)

    def _cut(self, answered: Answered, answer: Answer | Exception) -> None:
        """Passes on as much of the body as is kept of other answers."""
        if isinstance(answer, Answer):
            answer = replace(answer, body=answer.body[: self._settings.attempt_body_bytes])
        answered(answer)

    async def close(self) -> None:
        await self._others.close()
