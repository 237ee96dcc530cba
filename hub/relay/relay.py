"""Sends requests of applications to other servers (RelayHttp), off unless hosts are listed.

Only plain HTTP, only to listed hosts, and through the guard of all other requests of this hub.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import httptools

from ..connection_fields import connection_fields
from ..errors import BadRequest, CallbackRefused
from ..guard.egress import make_dialler
from ..guard.guard import Guard
from ..guard.lookups import Purpose
from ..sender.client import HttpClient
from ..sender.port import SendError
from ..sender.response import Response, ResponseLimits
from ..settings import HubSettings
from .errors import NotRelayed, RelayFull

AT_ONCE: Final = 32
"""Requests under way, each with a body in memory."""
MAX_FIELDS: Final = 100
_TARGET: Final = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?")
_REPLACED: Final = frozenset((b"host", b"content-length", b"expect"))


class HttpRelay:
    """Sends requests of applications to other servers. To be made outside the event loop, because
    it reads the system's certificates."""

    def __init__(self, settings: HubSettings, guard: Guard) -> None:
        self._hosts = settings.relay_hosts
        self._timeout_s = settings.fetch_timeout_s
        limits = ResponseLimits(settings.tunnels.max_body_bytes, keeps_body=True)
        dialler = make_dialler(settings, guard, Purpose.FETCH)
        self._client = HttpClient(guard, dialler, limits)
        self._under_way = 0

    async def send(self, target: str, message: bytes) -> bytes:
        """Sends a whole request to `HOST` or `HOST:PORT`, and returns the whole response.

        Raises `BadRequest`, `NotRelayed` for a host that is not listed, refused by the guard, or
        that does not answer, and `RelayFull`.
        """
        host, port = self._read(target)
        request = _RelayedRequest(message)
        if self._under_way >= AT_ONCE:
            raise RelayFull("too many concurrent requests", field="relay", limit=str(AT_ONCE))
        self._under_way += 1
        try:
            url = f"http://{host}:{port}{request.target}"
            found = await self._client.ask(
                request.method, url, request.headers, request.body, self._timeout_s
            )
        except CallbackRefused as error:
            raise NotRelayed(error.reason, field="host", value=target, limit=error.limit) from error
        except (SendError, OSError) as error:
            raise NotRelayed(f"can't be reached: {error}", field="host", value=target) from error
        finally:
            self._under_way -= 1
        if found.broken:
            raise NotRelayed(f"gave no whole answer: {found.broken}", field="host", value=target)
        return _written(found)

    def close(self) -> None:
        self._client.close()

    def _read(self, target: str) -> tuple[str, int]:
        match = _TARGET.fullmatch(target)
        port = int(match[2] or 80) if match else 0
        if match is None or not 0 < port < 65_536:
            raise BadRequest("is no HOST or HOST:PORT", field="host", value=target)
        host = match[1].lower()
        if not is_listed(host.removesuffix("."), port, self._hosts):
            reason = "is not listed in the setting relay_hosts"
            raise NotRelayed(reason, field="host", value=target, limit=", ".join(self._hosts))
        return host, port


def is_listed(host: str, port: int, hosts: Sequence[str]) -> bool:
    """Returns whether a list has the host; `*.example.org` is all hosts below a domain, and an
    entry without a port has port 80 only."""
    return any(
        (host == name or (name.startswith("*.") and host.endswith(name[1:])))
        and port == int(number or 80)
        for name, _, number in (entry.partition(":") for entry in hosts)
    )


class _RelayedRequest:
    """A request read from bytes. Raises `BadRequest` unless it is one whole request."""

    def __init__(self, message: bytes) -> None:
        self.target = ""
        self.body = b""
        self._fields: list[tuple[bytes, bytes]] = []
        self._is_whole = False
        parser = httptools.HttpRequestParser(self)
        try:
            parser.feed_data(message)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            raise _unreadable(str(error.__context__ or error)) from error
        if not self._is_whole or not self.target.startswith("/"):
            raise _unreadable("truncated request or invalid target")
        self.method = parser.get_method().decode()
        if self.method == "CONNECT":
            raise _unreadable("CONNECT is not relayed")

    @property
    def headers(self) -> dict[str, str]:
        """Returns the fields to send; of equal names in one line (RFC 9110 5.3)."""
        dropped = _REPLACED | connection_fields(self._fields)
        found: dict[str, str] = {}
        for name, value in self._fields:
            if name not in dropped:
                text = value.decode("utf-8", "surrogateescape")
                key, joint = name.decode("latin-1"), "; " if name == b"cookie" else ", "
                found[key] = f"{found[key]}{joint}{text}" if key in found else text
        return found

    # Called by the parser

    def on_message_begin(self) -> None:
        if self._is_whole:
            raise ValueError("more than one request, or bytes behind it")

    def on_url(self, url: bytes) -> None:
        self.target += url.decode("latin-1")

    def on_header(self, name: bytes, value: bytes) -> None:
        if len(self._fields) == MAX_FIELDS:
            raise ValueError(f"more than {MAX_FIELDS} fields")
        self._fields.append((name.lower(), value))

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        self._is_whole = True


def _written(found: Response) -> bytes:
    dropped = connection_fields((name.lower(), value) for name, value in found.fields)
    lines = [b"HTTP/1.1 %d %b" % (found.status, found.reason)]
    lines += [
        name + b": " + value
        for name, value in found.fields
        if name.lower() not in dropped and name.lower() != b"content-length"
    ]
    lines.append(b"Content-Length: %d" % len(found.body))
    return b"\r\n".join(lines) + b"\r\n\r\n" + found.body


def _unreadable(reason: str) -> BadRequest:
    return BadRequest(f"is not a complete HTTP request: {reason}", field="body")
