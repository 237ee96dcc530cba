"""Stages rows at a server and commits them."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import quote, urlencode

from .errors import WriteError
from .http_client import BlockingHttpClient, HttpRequest, read_json
from .options import ServerLogin

MEDIA_TYPE: Final = "application/vnd.warren.rows"
PATIENCE_S: Final = 60.0
"""How long a server may take to start again, or a queue to have room."""
Attempt = tuple[int, int, int]
"""The partition, the number of the attempt at it, and how many pieces it has staged."""


class TransactionClient:
    """Publishes to one exchange. It can be pickled; a connection is made when it is needed.

    `query` names a series of transactions, whose numbers go up: one that was committed is known
    to the server, and committing it again publishes nothing.
    """

    def __init__(self, server: ServerLogin, vhost: str, exchange: str) -> None:
        self._target = urlencode({"vhost": vhost, "exchange": exchange})
        name = f"exchange '{exchange}' in vhost '{vhost}' at {server.url}"
        self._http = BlockingHttpClient(server, name, WriteError, PATIENCE_S)

    def close(self) -> None:
        self._http.close()

    def require_permission(self) -> None:
        """Raises `WriteError` for a user who may not publish there: forgetting a series that never
        was needs the same permission, and does nothing."""
        self.forget(f"none-{secrets.token_hex(16)}")

    def stage(
        self, query: str, number: int, partition: int, attempt: int, piece: int, rows: bytes
    ) -> None:
        """Stores rows; they are on the server's disk when it returns.

        Raises as all requests do: `WriteError` if the server refused, `UnavailableError` if it
        could not be reached or had no room for a minute.
        """
        path = self._path(query, number, partition, attempt, piece)
        self._send(HttpRequest("PUT", path, {"Content-Type": MEDIA_TYPE}, rows))

    def commit(self, query: str, number: int, attempts: Iterable[Attempt]) -> int:
        """Publishes the rows of these attempts, all or none, unless that was done before; returns
        how many of them have reached no queue."""
        return int(self._commit(query, number, attempts)["unrouted"])

    def last(self, query: str) -> int:
        """Returns the number of the last transaction that is committed, 0 if none is; number 0
        belongs to this question."""
        return int(self._commit(query, 0, ())["last"])

    def abort(self, query: str, number: int) -> None:
        """Deletes what is staged; what is committed stays."""
        self._send(HttpRequest("DELETE", self._path(query, number), {}))

    def forget(self, query: str) -> None:
        """Has the server forget what is committed of a series that does not go on."""
        self._send(HttpRequest("DELETE", self._path(query), {}))

    def _commit(self, query: str, number: int, attempts: Iterable[Attempt]) -> dict[str, Any]:
        body = json.dumps({"attempts": list(attempts)}).encode()
        headers = {"Content-Type": "application/json"}
        request = HttpRequest("POST", self._path(query, number), headers, body)
        found: dict[str, Any] = self._http.send(request, read_json)
        return found

    def _send(self, request: HttpRequest) -> bytes:
        return self._http.send(request, lambda response: response.read())

    def _path(self, query: str, *numbers: Any) -> str:
        return (
            f"/transactions/{'/'.join([quote(query, safe=''), *map(str, numbers)])}?{self._target}"
        )
