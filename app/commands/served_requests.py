"""The last requests that `warren tunnel` has passed on, with their answers."""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

MAX_REQUESTS: Final = 100
MAX_BYTES: Final = 16 * 1024 * 1024
SHOWN_BYTES: Final = 4096
"""How much of a body is shown."""


@dataclass(frozen=True, slots=True)
class Served:
    """A request and its answer, as messages of HTTP.

    `status` is 0 where nobody got the answer; `repeats` is the number of the request that this one
    repeats.
    """

    request: bytes
    reply: bytes
    status: int
    took_ms: float
    reason: str = ""
    repeats: int | None = None

    def __str__(self) -> str:
        method, target, *_ = self.request.partition(b"\r\n")[0].decode("latin-1").split(" ")
        line = f"{method} {target}  {self.status or 'lost'}  {self.took_ms:.0f} ms"
        again = f"{self.repeats} again" if self.repeats is not None else ""
        return "  ".join(filter(None, (line, again, self.reason)))


class ServedRequests:
    """The last requests by their numbers, which begin with 1; bounded in number and bytes."""

    def __init__(self) -> None:
        self._found: OrderedDict[int, Served] = OrderedDict()
        self._last = self._bytes = 0

    def add(self, served: Served) -> int:
        """Returns the number of the request."""
        self._last += 1
        self._found[self._last] = served
        self._bytes += _size(served)
        while len(self._found) > MAX_REQUESTS or (self._bytes > MAX_BYTES and len(self._found) > 1):
            self._bytes -= _size(self._found.popitem(last=False)[1])
        return self._last

    def get(self, number: int) -> Served | None:
        return self._found.get(number)

    def lines(self) -> list[str]:
        """Returns a line for each, the newest last."""
        return [f"{number}  {served}" for number, served in self._found.items()]


def shown(message: bytes) -> list[str]:
    """Returns the lines of a message; of its body what is text, up to `SHOWN_BYTES`."""
    head, _, body = message.partition(b"\r\n\r\n")
    lines = [*head.decode("latin-1").split("\r\n"), ""]
    try:
        text = getincrementaldecoder("utf-8")().decode(body[:SHOWN_BYTES])  # its end may be cut
    except UnicodeDecodeError:
        return [*lines, f"({len(body)} bytes that are no text)"]
    if body:
        lines += text.expandtabs().splitlines()
    if len(body) > SHOWN_BYTES:
        lines.append(f"({len(body) - SHOWN_BYTES} more bytes)")
    return lines


def _size(served: Served) -> int:
    return len(served.request) + len(served.reply)
