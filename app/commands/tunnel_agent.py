"""The client of a tunnel: polls a hub, passes requests on to a local server, and posts its replies.

Several polls wait at a time, so that a request need not wait for the next one. It enrols again when
the hub has forgotten the label, and tries for ever when a hub is away that was there before.
"""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

import httpx

from ...core.errors import ConfigError
from .exit_codes import RequestRefused, Unreachable
from .local_server import LocalServer
from .served_requests import Served

CONNECT_S: Final = 5.0
POLL_S: Final = 90.0
"""Longer than any hub or proxy lets a poll wait."""
LOCAL_S: Final = 60.0
"""As long as a hub waits for a reply."""
BACK_OFF_S: Final = (1.0, 30.0)
POLLS: Final = 4
MAX_AT_ONCE: Final = 32
"""Requests under way; a hub passes on no more without replies."""
_STATUS: Final = re.compile(rb"HTTP/1\.[01] ([0-9]{3})")
_AGAIN: Final = (408, 429)
"""Refusals that end by themselves; others with 3xx and 4xx, and 501, stay."""


@dataclass(frozen=True, slots=True)
class TunnelOptions:
    """`hub` is its base URL; `authorization` is empty for a hub in development mode."""

    hub: str
    host: str
    port: int
    label: str
    token: str
    authorization: str = ""
    is_kept: bool = False
    """Whether the label stays enrolled at the end."""


class TunnelAgent:
    """`served` is called for each request that was answered, `told` with lines about the
    connection."""

    def __init__(
        self,
        options: TunnelOptions,
        served: Callable[[Served], None],
        told: Callable[[str], None],
    ) -> None:
        self._options = options
        self._served = served
        self._told = told
        self._local = LocalServer(options.host, options.port)
        self._client = httpx.AsyncClient(timeout=httpx.Timeout(POLL_S, connect=CONNECT_S))
        self._slots = asyncio.Semaphore(MAX_AT_ONCE)
        self._under_way: set[asyncio.Task[None]] = set()
        self._private_url = ""
        self._is_told = False
        """Whether the public URL was told."""
        self._is_lost = False

    async def run(self) -> None:
        """Serves until it is cancelled.

        Raises `RequestRefused` if the hub refuses the label, or somebody else releases it,
        `Unreachable` if the hub can't be reached at first or is none, and `ConfigError` for one
        that would have tokens sent unencrypted.
        """
        polling = [asyncio.create_task(self._keep_polling()) for _ in range(POLLS)]
        try:
            await asyncio.gather(*polling)
        finally:
            await _cancel(polling)
            await self._end()

    async def _keep_polling(self) -> None:
        """Polls at Request URLs of its own. Raises as `run`."""
        wait_s, longest_s = BACK_OFF_S
        url = ""
        while True:
            try:
                url = await self._poll(url or await self._enrol())
                wait_s = BACK_OFF_S[0]
            except httpx.HTTPError as error:
                if not self._is_told and isinstance(error, httpx.TransportError):
                    raise Unreachable(f"{self._options.hub} can't be reached: {error}") from error
                self._tell_lost(error)
                await asyncio.sleep(wait_s * random.uniform(0.5, 1.0))
                wait_s = min(2 * wait_s, longest_s)

    async def _enrol(self) -> str:
        """Returns the first Request URL."""
        options = self._options
        form = {"name": options.label, "token": options.token}
        gateway = f"{options.hub}/reversehttp"
        fields = {"Authorization": options.authorization} if options.authorization else {}
        answer = await self._client.post(gateway, data=form, headers=fields)
        self._require_no_refusal(answer)
        first = _link(answer, "first")
        if options.hub.startswith("https:") and not first.startswith("https:"):
            raise ConfigError(
                f"{options.hub} links to {first.partition('/reversehttp')[0]}, where tokens would "
                f"be sent unencrypted: set public_url there to {options.hub}"
            )
        self._private_url = answer.headers.get("location", "")
        if not self._is_told:
            self._is_told = True
            self._told(f"{_link(answer, 'related')} -> http://{self._local}")
        return first

    async def _poll(self, url: str) -> str:
        """Returns the next Request URL, empty if the label has to be enrolled again."""
        async with self._slots:
            answer = await self._client.get(url, headers={"Accept": "message/http"})
        if answer.status_code == 404:
            return ""
        if answer.status_code != 409:  # An older poll of this command was replaced.
            self._require_no_refusal(answer)
        if self._is_lost:
            self._is_lost = False
            self._told("connected again")
        if answer.status_code != 200:
            return url
        task = asyncio.create_task(self._serve(url, answer.content))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return _link(answer, "next")

    async def _serve(self, url: str, message: bytes) -> None:
        started = time.monotonic()
        async with self._slots:
            reply, reason = await self._ask(message)
            try:
                answer = await self._reply(url, reply)
                if answer.status_code in (400, 413):
                    reason = _detail(answer)
                    reply = _failure(502, f"the answer can't be passed on: {reason}")
                    answer = await self._reply(url, reply)
                is_taken = answer.status_code == 202
            except httpx.HTTPError as error:
                is_taken, reason = False, str(error)
        status = _status_of(reply) if is_taken else 0
        self._served(Served(message, reply, status, _ms_since(started), reason))

    async def replay(self, number: int, first: Served) -> None:
        """Sends a request to the local server again; only this command gets the answer."""
        started = time.monotonic()
        reply, reason = await self._ask(first.request)
        took_ms = _ms_since(started)
        self._served(
            Served(first.request, reply, _status_of(reply), took_ms, reason, repeats=number)
        )

    async def _ask(self, message: bytes) -> tuple[bytes, str]:
        """Returns the answer of the local server, or one in its place and the reason."""
        try:
            async with asyncio.timeout(LOCAL_S):
                return await self._local.ask(message), ""
        except (OSError, TimeoutError) as error:
            reason = f"no answer from {self._local}: {error or 'it took too long'}"
            return _failure(502, reason), reason

    def _require_no_refusal(self, answer: httpx.Response) -> None:
        """Raises `RequestRefused` or `Unreachable` for what trying again does not change, and
        `HTTPStatusError` for other failures."""
        status = answer.status_code
        if status in _AGAIN or not (300 <= status < 500 or status == 501):
            answer.raise_for_status()
        elif "problem+json" in answer.headers.get("content-type", ""):
            label = self._options.label
            raise RequestRefused(
                f"{self._options.hub} refuses '{label}': {_detail(answer)}", status
            )
        else:
            raise Unreachable(f"{self._options.hub} is no Warren: {_detail(answer)}")

    async def _reply(self, url: str, message: bytes) -> httpx.Response:
        return await self._client.post(
            url, content=message, headers={"Content-Type": "message/http"}
        )

    def _tell_lost(self, error: httpx.HTTPError) -> None:
        if not self._is_lost:
            self._is_lost = True
            reason = str(error) or type(error).__name__
            self._told(f"{self._options.hub} can't be reached, trying again: {reason}")

    async def _end(self) -> None:
        """Releases the label, and ends what is under way."""
        await _cancel(self._under_way)
        if self._private_url and not self._options.is_kept:
            try:
                await self._client.delete(self._private_url, timeout=CONNECT_S)
            except httpx.HTTPError as error:
                self._told(f"the label could not be released, and lapses in a minute: {error}")
        await self._client.aclose()


async def _cancel(tasks: Collection[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _link(answer: httpx.Response, relation: str) -> str:
    """Raises `Unreachable` if there is no such link: that is no gateway."""
    for part in answer.headers.get("link", "").split(", "):
        url, _, parameter = part.partition("; ")
        if parameter == f'rel="{relation}"':
            return str(url).strip("<>")
    raise Unreachable(f"{answer.url.host} is no ReverseHttp gateway: no link '{relation}'")


def _detail(answer: httpx.Response) -> str:
    """Returns the reason in a problem document, else the status."""
    try:
        return str(answer.json()["detail"])
    except (ValueError, KeyError, TypeError):
        return f"{answer.status_code} {answer.reason_phrase}"


def _status_of(reply: bytes) -> int:
    match = _STATUS.match(reply)
    return int(match[1]) if match else 0


def _ms_since(started: float) -> float:
    return (time.monotonic() - started) * 1000


def _failure(status: int, text: str) -> bytes:
    body = f"{text}\n".encode()
    head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: text/plain"
    return f"{head}; charset=utf-8\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
