"""Asks a server for a stream's offsets and chunks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from http.client import HTTPResponse
from typing import Any, Final, TypeVar
from urllib.parse import quote, urlencode

from .errors import ReadError
from .http_client import BlockingHttpClient, HttpRequest, NotWarren, read_json
from .options import ServerLogin

CHUNKS: Final = "application/vnd.warren.chunks"
_HEADERS: Final = {"Accept": f"{CHUNKS}, application/json"}
_LETTERS: Final = {None: "", "exchange": "x/", "queue": "q/"}
PATIENCE_S: Final = 20.0
"""How long a server may take to start again."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Offsets:
    """The first offset of a stream, the one behind the last, and which stream of its name it is.

    `at` and `limit` are there if they were asked for.
    """

    first: int
    next: int
    incarnation: str
    bytes: int | None
    archived_first: int | None = None
    at: int | None = None
    limit: int | None = None

    @property
    def earliest(self) -> int:
        """The first offset that the server can send, from the log or from an archive."""
        return self.first if self.archived_first is None else min(self.first, self.archived_first)

    @property
    def has_times_of_rows(self) -> bool:
        """Whether offsets are known to be sought by the times that rows have. RabbitMQ, which tells
        no `bytes`, has times of its own; nor does a server tell them that still counts."""
        return self.bytes is not None


@dataclass(frozen=True, slots=True)
class ChunksRead:
    """Chunks, and the offset behind them."""

    data: bytes
    next: int


class StreamClient:
    """Asks for one stream. It can be pickled; a connection is made when it is needed."""

    def __init__(self, server: ServerLogin, vhost: str, stream: str, source: str | None) -> None:
        path = f"/streams/{quote(vhost, safe='')}/{_LETTERS[source]}{quote(stream, safe='')}"
        self._path = path
        self.name = f"stream '{stream}' in vhost '{vhost}' at {server.url}"
        self._http = BlockingHttpClient(server, self.name, ReadError, PATIENCE_S)

    def close(self) -> None:
        self._http.close()

    def offsets(self) -> Offsets:
        """Returns the offsets as they are now. Raises `ReadError` as all requests do."""
        return self._offsets({})

    def offset_at(self, time: datetime) -> int:
        """Returns the offset of the first message that arrived at `time` or later."""
        found = self._offsets({"timestamp": time.isoformat()}).at
        assert found is not None
        return found

    def limit(self, start: int, max_bytes: int) -> int:
        """Returns an offset such that the messages from `start` to it have about `max_bytes`."""
        found = self._offsets({"start": start, "max_bytes": max_bytes}).limit
        assert found is not None
        return found

    def _offsets(self, query: dict[str, Any]) -> Offsets:
        document = self._get("offsets", query, read_json)
        return Offsets(**{name: document.get(name) for name in Offsets.__slots__})

    def chunks(self, start: int, end: int, incarnation: str, *, skip_damaged: bool) -> ChunksRead:
        """Returns whole chunks from the one with `start` on, as many as one answer holds.

        Raises:
            DataLossError: the stream has dropped `start`, or was deleted and made again.
            ReadError: the server refused.
            UnavailableError: it could not be reached in 20 seconds.
        """
        query = {"start": start, "end": end, "incarnation": incarnation}
        if skip_damaged:
            query["skip_damaged"] = "true"
        return self._get("chunks", query, _answer)

    def _get(self, what: str, query: dict[str, Any], read: Callable[[HTTPResponse], T]) -> T:
        path = f"{self._path}/{what}?{urlencode(query)}"
        return self._http.send(HttpRequest("GET", path, _HEADERS), read)


def _answer(response: HTTPResponse) -> ChunksRead:
    found = response.headers["Warren-Next-Offset"]
    if found is None:
        raise NotWarren
    return ChunksRead(response.read(), int(found))
