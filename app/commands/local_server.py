"""Asks the local server behind `warren tunnel`: passes a request on, and returns the answer as one
message."""

from __future__ import annotations

import asyncio
from typing import Final

import h11

MAX_ANSWER_BYTES: Final = 64 * 1024 * 1024
READ_BYTES: Final = 65_536


class LocalServer:
    """An HTTP server that is asked over a connection of its own for each request."""

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port

    def __str__(self) -> str:
        return f"{self._host}:{self._port}"

    async def ask(self, message: bytes) -> bytes:
        """Returns the final answer to a whole request, with its length in place of chunks.

        Raises `OSError` if there is none: no server, a lost connection, an answer that is too long
        or is no HTTP/1.1.
        """
        line, _, rest = message.partition(b"\r\n")
        reader, writer = await asyncio.open_connection(self._host, self._port)
        try:
            writer.write(line + b"\r\nConnection: close\r\n" + rest)
            await writer.drain()
            return await _answer(reader, line.partition(b" ")[0])
        except h11.RemoteProtocolError as error:
            raise OSError(f"the answer is no HTTP/1.1: {error}") from error
        finally:
            writer.close()


async def _answer(reader: asyncio.StreamReader, method: bytes) -> bytes:
    """Raises `RemoteProtocolError`, and `OSError` for an answer that is too long."""
    parser = h11.Connection(h11.CLIENT, max_incomplete_event_size=READ_BYTES)
    # The parser has to know the method: an answer to HEAD has no body.
    parser.send(h11.Request(method=method, target=b"/", headers=[(b"Host", b"local")]))
    head: h11.Response | None = None
    body = bytearray()
    while True:
        event = parser.next_event()
        if event is h11.NEED_DATA:
            parser.receive_data(await reader.read(READ_BYTES))
        elif isinstance(event, h11.Response):
            head = event
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > MAX_ANSWER_BYTES:
                raise OSError(f"the answer has more than {MAX_ANSWER_BYTES} bytes")
        elif isinstance(event, h11.EndOfMessage):
            assert head is not None
            return _message(head, bytes(body))
        elif not isinstance(event, h11.InformationalResponse):
            raise OSError("the connection was closed before the answer was complete")


def _message(head: h11.Response, body: bytes) -> bytes:
    """Returns the answer with the length of its body, which is known now."""
    fields = head.headers.raw_items()
    names = {name.lower() for name, _ in fields}
    if b"transfer-encoding" in names:
        framing = (b"transfer-encoding", b"content-length")
        fields = [field for field in fields if field[0].lower() not in framing]
    if body and (b"transfer-encoding" in names or b"content-length" not in names):
        fields = [*fields, (b"Content-Length", b"%d" % len(body))]
    lines = [b"HTTP/1.1 %d %b" % (head.status_code, head.reason)]
    lines += [b"%b: %b" % field for field in fields]
    return b"\r\n".join([*lines, b"", body])
