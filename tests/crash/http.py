"""HTTP for workers: one kept connection, and errors that say whether the server went away."""

from __future__ import annotations

import base64
import http.client
from collections.abc import Mapping
from types import TracebackType
from typing import NamedTuple, Self

from tests.bench.client import Address

TIMEOUT_S = 60.0


class Answered(NamedTuple):
    status: int
    body: bytes


class Http:
    """Requests of one user; a connection that fails raises `OSError`, as AMQP's do."""

    def __init__(self, address: Address) -> None:
        token = base64.b64encode(f"{address.user}:{address.password}".encode()).decode()
        self._headers = {"Authorization": f"Basic {token}"}
        self._connection = http.client.HTTPConnection(address.host, address.port, timeout=TIMEOUT_S)

    def request(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> Answered:
        try:
            self._connection.request(method, path, body, {**self._headers, **(headers or {})})
            response = self._connection.getresponse()
            return Answered(response.status, response.read())
        except http.client.HTTPException as error:
            raise ConnectionResetError(repr(error)) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.close()
