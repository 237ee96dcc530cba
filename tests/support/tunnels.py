"""Plain sockets that speak HTTP/1.1, for both ends of a tunnel."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable
from http.client import HTTPException, HTTPResponse
from types import TracebackType
from typing import Self

TIMEOUT_S = 60.0
GATEWAY = "/reversehttp"
TOKEN = "a-token-of-twenty-two-characters"


class Answer:
    """A response; `fields` in lower case, of equal names the last."""

    def __init__(self, response: HTTPResponse) -> None:
        self.status = response.status
        self.lines = response.getheaders()
        self.fields = {name.lower(): value for name, value in self.lines}
        self.body = response.read()

    def link(self, relation: str) -> str:
        """The URL of a link, found as the oldest clients do."""
        for part in self.fields["link"].split(", "):
            url, *parameters = part.split(";")
            if f'rel="{relation}"' in [parameter.strip() for parameter in parameters]:
                return url.strip().removeprefix("<").removesuffix(">")
        raise AssertionError(f"no link {relation}: {self.fields['link']}")


class Wire:
    """A connection. `send` writes octets as they are given."""

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        self._socket = socket.create_connection((host, port), TIMEOUT_S)
        self._file = self._socket.makefile("rb")
        self._method = "GET"
        self._text = ""

    def send(self, *lines: str, body: bytes = b"") -> Self:
        """Sends a head of these lines, and the body."""
        self._method = lines[0].split(" ")[0]
        self._socket.sendall("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
        return self

    def read(self) -> Answer:
        """Reads the response to the last request."""
        response = HTTPResponse(self._socket, method=self._method)
        response.begin()
        return Answer(response)

    def head(self) -> dict[str, str]:
        """Reads the head of a response whose body comes piece by piece."""
        assert self._file.readline().startswith(b"HTTP/1.1 ")
        fields: dict[str, str] = {}
        while line := self._file.readline().decode().strip():
            name, _, value = line.partition(": ")
            fields[name.lower()] = value
        return fields

    def chunk(self) -> bytes:
        """Reads the next chunk of that body."""
        size = int(self._file.readline(), 16)
        return self._file.read(size + 2)[:-2]

    def line(self) -> str:
        """Reads the next line of that body."""
        while "\n" not in self._text:
            self._text += self.chunk().decode()
        line, _, self._text = self._text.partition("\n")
        return line

    def raw(self, data: bytes) -> None:
        """Sends octets."""
        self._socket.sendall(data)

    def frame(self) -> tuple[int, bytes]:
        """Reads the opcode and payload of a WebSocket frame of the server."""
        first, size = self._file.read(2)
        wide = {126: 2, 127: 8}.get(size)
        if wide is not None:
            size = int.from_bytes(self._file.read(wide), "big")
        return first & 0x0F, self._file.read(size)

    def rest(self) -> bytes:
        """What comes until the server closes the connection."""
        return b"".join(iter(lambda: self._socket.recv(65536), b""))

    def close(self) -> None:
        self._file.close()  # the connection stays open as long as it is
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Tunnels:
    """Both ends of the tunnels of one server."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._open: list[Wire] = []

    def begin(self, method: str, url: str, *fields: str, body: bytes = b"") -> Wire:
        """Sends a request, to the path of a URL of the hub or to a public URL."""
        match = re.fullmatch(r"http://([^/]*)(/.*)|(/.*)", url)
        assert match is not None, url
        host, path = match[1] or f"127.0.0.1:{self.port}", match[2] or match[3]
        size = [f"Content-Length: {len(body)}"] if body or method in ("POST", "PUT") else []
        wire = Wire(self.port)
        self._open.append(wire)
        return wire.send(f"{method} {path} HTTP/1.1", f"Host: {host}", *size, *fields, body=body)

    def ask(self, method: str, url: str, *fields: str, body: bytes = b"") -> Answer:
        return self.begin(method, url, *fields, body=body).read()

    def enrol(self, name: str, token: str = TOKEN, **more: str) -> Answer:
        form = "&".join(
            f"{key}={value}" for key, value in dict(name=name, token=token, **more).items()
        )
        return self.ask(
            "POST", GATEWAY, "Content-Type: application/x-www-form-urlencoded", body=form.encode()
        )

    def poll(self, url: str) -> Answer:
        """Polls as clients do: again at the same URL after each 204."""
        while True:
            answer = self.ask("GET", url)
            if answer.status != 204:
                return answer

    def reply(self, url: str, message: bytes) -> Answer:
        return self.ask("POST", url, "Content-Type: message/http", body=message)

    def close(self) -> None:
        for wire in self._open:
            wire.close()


def response(body: bytes = b"", *fields: str, status: str = "200 OK") -> bytes:
    """A whole response, for a reply."""
    lines = [f"HTTP/1.1 {status}", *fields, f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


class Application(threading.Thread):
    """A tunnelled application: polls until it is stopped, and answers with `handle`.

    `handle` gets the request line with the target, and the body.
    """

    def __init__(self, port: int, first: str, handle: Callable[[str, bytes], bytes]) -> None:
        super().__init__(daemon=True)
        self._port = port
        self._url = first
        self._handle = handle
        self._stopped = threading.Event()
        self.seen: list[tuple[str, bytes]] = []
        self.start()

    def run(self) -> None:
        while not self._stopped.is_set():
            tunnels = Tunnels(self._port)
            try:
                self._serve(tunnels)
            except (OSError, HTTPException):
                self._stopped.wait(0.05)  # the server is away; clients back off
            finally:
                tunnels.close()

    def _serve(self, tunnels: Tunnels) -> None:
        answer = tunnels.ask("GET", self._url)
        if answer.status == 204:
            return
        if answer.status != 200:
            raise HTTPException(str(answer.status))
        head, _, body = answer.body.partition(b"\r\n\r\n")
        line = head.partition(b"\r\n")[0].decode()
        at, self._url = self._url, answer.link("next")
        self.seen.append((line, body))
        tunnels.reply(at, self._handle(line, body))

    def stop(self) -> None:
        self._stopped.set()
