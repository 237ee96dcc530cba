"""Clients of `/stream`: what a connection with an endless answer brings, item by item."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import time
from base64 import b64encode
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from .websocket import client_frame

TEXT = 1
TIMEOUT_S = 60.0
Item = dict[str, Any]


class LiveStream:
    """An answer that is read item by item, with the credentials of `guest` unless others are given.

    `next` gives an item of JSON lines, or the fields of a Server-Sent Event. `tls` is for https.
    """

    def __init__(
        self, url: str, tls: ssl.SSLContext | None = None, /, *, sse: bool = False, **headers: str
    ) -> None:
        parts = urlsplit(url)
        self._connection = (
            http.client.HTTPConnection(parts.netloc, timeout=TIMEOUT_S)
            if tls is None
            else http.client.HTTPSConnection(parts.netloc, timeout=TIMEOUT_S, context=tls)
        )
        fields = {"authorization": "Basic " + b64encode(b"guest:guest").decode()}
        fields |= {"accept": "text/event-stream"} if sse else {}
        fields |= {name.replace("_", "-"): value for name, value in headers.items()}
        fields = {name: value for name, value in fields.items() if value}
        self._connection.request("GET", f"{parts.path}?{parts.query}", headers=fields)
        self.response = self._connection.getresponse()
        assert self.response.status == 200, self.response.read()
        self._items = _events(self._lines()) if sse else _objects(self._lines())

    def _lines(self) -> Iterator[str]:
        deadline_s = time.monotonic() + TIMEOUT_S
        while line := self.response.readline():
            # Signs of life would go on for ever.
            assert time.monotonic() < deadline_s, "nothing came that was waited for"
            yield line.decode().rstrip("\n")

    def next(self) -> Item:
        """Raises `StopIteration` when the answer has ended as it should."""
        return next(self._items)

    def take(self, count: int) -> list[Item]:
        return [self.next() for _ in range(count)]

    def rest(self) -> list[Item]:
        """Everything up to the end of the answer."""
        return list(self._items)

    def close(self) -> None:
        self.response.close()
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _objects(lines: Iterator[str]) -> Iterator[Item]:
    return (json.loads(line) for line in lines if line)


def _events(lines: Iterator[str]) -> Iterator[Item]:
    """Events as HTML 9.2.6 reads them, with `data` decoded; comments are left out."""
    event: Item = {}
    for line in lines:
        if line and not line.startswith(":"):
            name, _, value = line.partition(": ")
            event[name] = json.loads(value) if name == "data" else value
        elif not line and event:
            yield event
            event = {}


class LiveSocket:
    """A WebSocket of `/stream`: JSON in both directions, with the credentials of `guest`."""

    def __init__(
        self,
        url: str,
        tls: ssl.SSLContext | None = None,
        /,
        *,
        authorization: str = "",
        **headers: str,
    ) -> None:
        parts = urlsplit(url)
        guest = "Basic " + b64encode(b"guest:guest").decode()
        fields = {
            "Host": parts.netloc,
            "Upgrade": "websocket",
            "Connection": "Upgrade",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": b64encode(bytes(16)).decode(),
            "Authorization": authorization or guest,
            **headers,
        }
        lines = [f"GET {parts.path}?{parts.query} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in fields.items() if value]
        assert parts.hostname and parts.port
        self.socket = socket.create_connection((parts.hostname, parts.port), timeout=TIMEOUT_S)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname=parts.hostname)
        self.socket.sendall("\r\n".join([*lines, "", ""]).encode())
        self._file = self.socket.makefile("rb")
        self.status = int(self._file.readline().split()[1])
        while self._file.readline().strip():
            pass

    def send(self, *commands: Any) -> None:
        """Sends each as a message, all at once."""
        texts = [json.dumps(command).encode() for command in commands]
        self.socket.sendall(b"".join(client_frame(TEXT, text) for text in texts))

    def frame(self) -> tuple[int, bytes]:
        """Returns opcode and payload of the next frame."""
        first, size = self._file.read(2)
        if size == 126:
            size = int.from_bytes(self._file.read(2), "big")
        elif size == 127:
            size = int.from_bytes(self._file.read(8), "big")
        return first & 15, self._file.read(size)

    def next(self) -> Item:
        opcode, payload = self.frame()
        assert opcode == TEXT, (opcode, payload)
        found: Item = json.loads(payload)
        return found

    def take(self, count: int) -> list[Item]:
        return [self.next() for _ in range(count)]

    def close(self) -> None:
        self._file.close()
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
