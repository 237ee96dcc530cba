"""Sends requests to a server, again while it fails, is overloaded or starts.

It is the standard library's HTTP client: an answer of 8 MiB takes 2 ms of CPU there, and 18 in
httpx, which is as long as decoding it.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import urlsplit

from .errors import (
    DataLossError,
    EngineElsewhere,
    PipelineError,
    TooLargeError,
    UnavailableError,
)
from .options import ServerLogin

logger = logging.getLogger(__name__)

TIMEOUT_S: Final = 60.0
WAITS_S: Final = (0.1, 0.3, 1.0, 3.0, 5.0)
"""How long is waited before each new attempt; the last one again and again."""
NOTICED_S: Final = 1.0
"""A wait of this or more is logged."""
_TRANSIENT: Final = frozenset({429, 502, 503, 504, 507})
_ELSEWHERE: Final = 501
_ERRORS: Final[dict[int, type[PipelineError]]] = {410: DataLossError, 413: TooLargeError}

T = TypeVar("T")


class HttpRequest(NamedTuple):
    """A request; `path` is behind the server's URL and has its query."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes | None = None


class NotWarren(ValueError):
    """Another server has answered."""

    def __init__(self) -> None:
        super().__init__("what has answered there is no Warren; check the URL and its port")


class BlockingHttpClient:
    """Sends requests to one server. It can be pickled; a connection is made when it is needed.

    `name` is what messages of errors begin with, `error` what is raised, `patience_s` how long
    failures that pass are waited for: a server that can't be reached or is full.
    """

    def __init__(
        self, server: ServerLogin, name: str, error: type[PipelineError], patience_s: float
    ) -> None:
        self._given = (server, name, error, patience_s)
        self._server, self._name, self._error, self._patience_s = self._given
        self._url = urlsplit(server.url)
        self._connection: HTTPConnection | None = None

    def __reduce__(self) -> tuple[type[BlockingHttpClient], tuple[Any, ...]]:
        return BlockingHttpClient, self._given

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def send(self, request: HttpRequest, read: Callable[[HTTPResponse], T]) -> T:
        """Returns the result of `read` for the answer; it may raise `NotWarren`.

        Raises `DataLossError` for 410, `TooLargeError` for 413, `EngineElsewhere`, `error` for any
        other refusal, and `UnavailableError` if there was none of these in `patience_s`.
        """
        began_s, waits_s = time.monotonic(), _waits_s()
        while True:
            least_s = 0.0
            try:
                response = self._answer(request)
                if response.status not in _TRANSIENT:
                    return self._read(response, read)
                least_s = _retry_after_s(response)
                failure, advice = f": {_reason(response)}", "it was asked again"
            except (OSError, HTTPException) as error:
                self.close()
                failure = f" can't be reached: {str(error) or type(error).__name__}"
                advice = "start the server, or check the option url; it was asked"
            wait_s = max(least_s, next(waits_s))
            if time.monotonic() - began_s + wait_s > self._patience_s:
                asked = f"{advice} for {self._patience_s:g} s"
                raise UnavailableError(f"{self._name}{failure}; {asked}")
            if wait_s >= NOTICED_S:
                logger.warning("%s%s; trying again in %s s", self._name, failure, wait_s)
            time.sleep(wait_s)

    def _answer(self, request: HttpRequest) -> HTTPResponse:
        """Returns the answer; a connection that was kept may be closed by now, which is no
        failure."""
        if self._connection is not None:
            try:
                return self._request(request)
            except ConnectionError:
                self.close()
        return self._request(request)

    def _request(self, request: HttpRequest) -> HTTPResponse:
        connection = self._connected()
        headers = {"Authorization": self._server.authorization(), **request.headers}
        path = self._url.path + request.path
        try:
            connection.request(request.method, path, request.body, headers)
        except (BrokenPipeError, ConnectionResetError):
            # A refusal may come before the server has read all.
            pass
        return connection.getresponse()

    def _connected(self) -> HTTPConnection:
        if self._connection is None:
            secure = self._url.scheme == "https"
            connect = HTTPSConnection if secure else HTTPConnection
            assert self._url.hostname is not None
            self._connection = connect(self._url.hostname, self._url.port, timeout=TIMEOUT_S)
        return self._connection

    def _read(self, response: HTTPResponse, read: Callable[[HTTPResponse], T]) -> T:
        if 200 <= response.status < 300:
            try:
                return read(response)
            except NotWarren as error:
                raise self._error(f"{self._name}: {error}") from error
        document = _refusal(response)
        text = f"{self._name}: {_worded(response, document)}"
        if response.status == _ELSEWHERE and "engine" in document:
            raise EngineElsewhere(text, str(document["engine"]))
        raise _ERRORS.get(response.status, self._error)(text)


def read_json(response: HTTPResponse) -> Any:
    """Returns the value of an answer in JSON. Raises `NotWarren`."""
    try:
        return json.loads(response.read())
    except ValueError as error:
        raise NotWarren from error


def _waits_s() -> Iterator[float]:
    yield from WAITS_S
    while True:
        yield WAITS_S[-1]


def _retry_after_s(response: HTTPResponse) -> float:
    """Returns how long the server asks to wait; 0 if it doesn't say so in seconds."""
    text = response.headers.get("Retry-After", "")
    return float(text) if text.isdecimal() else 0.0


def _reason(response: HTTPResponse) -> str:
    """Returns the reason that a refusal gives."""
    return _worded(response, _refusal(response))


def _refusal(response: HTTPResponse) -> dict[str, Any]:
    """Returns the document of a refusal, empty if it has none."""
    try:
        document = json.loads(response.read())
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _worded(response: HTTPResponse, document: Mapping[str, Any]) -> str:
    # RabbitMQ's paths say "reason".
    reason = document.get("detail") or document.get("reason") or response.reason
    return f"{response.status} {reason}"
