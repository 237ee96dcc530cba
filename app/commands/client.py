"""The client of the HTTP API that all commands use."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from ssl import SSLError
from typing import Any, Final, NamedTuple, Self
from urllib.parse import quote, urlencode, urlsplit

from ...core.errors import ConfigError
from .exit_codes import RequestRefused, Unreachable, reason_of
from .login import Login

TIMEOUT_S: Final = 60.0
IDLE_S: Final = 2.0
"""After so long a new connection is made: the server may have closed the old one."""
PAGE_SIZE: Final = 500
_JSON: Final = {"Content-Type": "application/json", "Accept": "application/json"}
_FIELD_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")  # RFC 9110 5.6.2
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
Query = Mapping[str, Any]


class ServerAnswer(NamedTuple):
    """The answer to a request that was not refused; names of headers are in lower case."""

    status: int
    body: bytes
    headers: Mapping[str, str]

    def document(self) -> Any:
        """Returns what the body says in JSON, None if it is empty. Raises `ValueError`."""
        return json.loads(self.body) if self.body else None


class ApiClient:
    """Asks one server. Raises `Unreachable`, and `RequestRefused` with the server's reason."""

    def __init__(self, login: Login) -> None:
        self.login = login
        self._url = urlsplit(login.url)
        self._connection: HTTPConnection | None = None
        self._used_s = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    # -- documents

    def get(self, path: str, query: Query | None = None) -> Any:
        return self.ask("GET", with_query(path, query))

    def pages(self, path: str, key: str, query: Query | None = None) -> Iterator[Any]:
        """Yields the items of all pages of a list, which are below `key` of each."""
        number = 1
        while True:
            page = self.get(path, {**(query or {}), "page": number, "page_size": PAGE_SIZE})
            if not isinstance(page, dict) or key not in page:
                raise self._no_warren(f"GET {path}", f"has no '{key}'")
            yield from page[key]
            if number >= page["page_count"]:
                return
            number += 1

    def put(self, path: str, document: Any = None) -> bool:
        """Returns whether something new was made."""
        return self.send("PUT", path, _encoded(document)).status == 201

    def post(self, path: str, document: Any = None) -> Any:
        return self.ask("POST", path, _encoded(document or {}))

    def patch(self, path: str, document: Any) -> Any:
        return self.ask("PATCH", path, _encoded(document))

    def delete(
        self, path: str, *, idempotent: bool = False, headers: Mapping[str, str] | None = None
    ) -> bool:
        """Returns whether something was deleted; False only where that is `idempotent`."""
        try:
            self.send("DELETE", path, headers={**_JSON, **(headers or {})})
        except RequestRefused as error:
            if error.status != 404 or not idempotent:
                raise
            return False
        return True

    # -- requests

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] = _JSON,
    ) -> Any:
        """Returns the document that is answered, None if the answer is empty."""
        answer = self.send(method, path, body, headers)
        try:
            return answer.document()
        except ValueError as error:
            raise self._no_warren(f"{method} {path}", "is not JSON") from error

    def _no_warren(self, request: str, what: str) -> Unreachable:
        return Unreachable(
            f"the server at {self.login.url} is no Warren: its answer to {request} {what}; say "
            "where Warren is with --url"
        )

    def send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] = _JSON,
    ) -> ServerAnswer:
        """Returns the answer, of a status below 300."""
        try:
            connection = self._connected()
            try:
                encoded = encoded_fields({**self._login(), **headers})
                connection.request(method, self._url.path + path, body, encoded)
            except (BrokenPipeError, ConnectionResetError):
                pass  # A refusal may come before the server has read all.
            response = connection.getresponse()
            fields = {name.lower(): value for name, value in response.getheaders()}
            answer = ServerAnswer(response.status, response.read(), fields)
        except (OSError, HTTPException) as error:
            self._close()
            text = f"the server at {self.login.url} can't be reached: {reason_of(error)}"
            if not isinstance(error, SSLError):
                text += "; start it with 'warren serve', or say where it is with --url"
            raise Unreachable(text) from error
        self._used_s = time.monotonic()
        if answer.status >= 300:
            raise self._refused(answer, response.reason)
        return answer

    def _connected(self) -> HTTPConnection:
        if self._connection is not None and time.monotonic() - self._used_s > IDLE_S:
            self._close()
        if self._connection is None:
            connect = HTTPSConnection if self._url.scheme == "https" else HTTPConnection
            assert self._url.hostname is not None
            self._connection = connect(self._url.hostname, self._url.port, timeout=TIMEOUT_S)
        return self._connection

    def _login(self) -> dict[str, str]:
        return {"Authorization": self.login.authorization()}

    def _refused(self, answer: ServerAnswer, words: str) -> RequestRefused:
        document = _problem(answer)
        reason = document.get("detail") or document.get("reason") or words
        limit = f"; allowed: {document['limit']}" if document.get("limit") else ""
        return refused(self.login.url, answer.status, f"{reason}{limit}", document)

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def refused(
    url: str, status: int, reason: str, document: Mapping[str, Any] | None = None
) -> RequestRefused:
    """Returns the error for a refusal by the server at this URL."""
    text = f"the server at {url}: {status} {reason}"
    if status == 401:
        text += "; log in with --user and --password-file, --token, or a --profile"
    return RequestRefused(text, status, document)


def segments(*names: str) -> str:
    """Returns names as a path, each percent-encoded, with a slash before each."""
    return "".join("/" + quote(name, safe="") for name in names)


def place(vhost: str) -> str:
    """Returns the beginning of the paths of a virtual host outside `/api`."""
    return "" if vhost == "/" else segments(vhost)


def with_query(path: str, query: Query | None) -> str:
    given = {name: value for name, value in (query or {}).items() if value not in (None, "")}
    return f"{path}?{urlencode(given, doseq=True)}" if given else path


def encoded_fields(headers: Mapping[str, str]) -> dict[str, bytes]:
    """Returns header fields with their values in UTF-8. Raises `ConfigError` for one that HTTP
    can't carry; the value may be a secret."""
    for name, value in headers.items():
        if not _FIELD_NAME.fullmatch(name):
            raise ConfigError(f"'{name}' is no name of a header: give letters, digits and -")
        if _CONTROL.search(value):
            raise ConfigError(f"the value of header {name} has a control character: leave it out")
    return {name: value.encode() for name, value in headers.items()}


def _encoded(document: Any) -> bytes | None:
    return None if document is None else json.dumps(document).encode()


def _problem(answer: ServerAnswer) -> dict[str, Any]:
    """Returns what a refusal says: RabbitMQ's paths say "reason", others "detail"."""
    try:
        found = json.loads(answer.body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
