"""Requests of the pipeline to a server beside messages: to bind a stream, and to show its runs."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Any, Final, Self
from urllib.parse import quote

from .errors import EngineElsewhere, OptionError, PipelineError, ReadError, WriteError
from .http_client import BlockingHttpClient, HttpRequest, read_json
from .options import ServerLogin
from .progress import Report
from .transactions import TransactionClient

logger = logging.getLogger(__name__)

ERROR_MAX_BYTES: Final = 8_000
"""The length of a run's error that the server takes."""
PATIENCE_S: Final = 1.0
"""A person waits for it, or a run that is busy."""


class ServerClient:
    """Asks one server. Raises `ReadError` if it refuses, `UnavailableError` if it can't be
    reached."""

    def __init__(self, server: ServerLogin, patience_s: float = PATIENCE_S) -> None:
        self._server = server
        self._http = BlockingHttpClient(
            server, f"the server at {server.url}", ReadError, patience_s
        )

        self._patience_s = patience_s
        self._of_objects: ServerClient | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()
        if self._of_objects is not None:
            self._of_objects._http.close()

    def of_objects(self, path: str) -> tuple[ServerClient, Any]:
        """Returns the document at a path of exchanges or queues, and the client of who has them:
        the server, or the management API of the RabbitMQ on which it runs."""
        try:
            return self, self.get(path)
        except EngineElsewhere as error:
            there = replace(self._server, url=error.url)
        self._of_objects = ServerClient(there, self._patience_s)
        return self._of_objects, self._of_objects.get(path)

    def get(self, path: str) -> Any:
        request = HttpRequest("GET", path, {"Accept": "application/json"})
        return self._http.send(request, read_json)

    def put(self, path: str, document: Any = None) -> bool:
        """Returns whether something new was made."""
        request = HttpRequest("PUT", path, _JSON, _encoded(document))
        return self._http.send(request, lambda response: response.status) == _CREATED

    def post(self, path: str, document: Any) -> None:
        self._send(HttpRequest("POST", path, _JSON, _encoded(document)))

    def delete(self, path: str) -> None:
        self._send(HttpRequest("DELETE", path, _JSON))

    def _send(self, request: HttpRequest) -> bytes:
        return self._http.send(request, lambda response: response.read())


_CREATED: Final = 201
_JSON: Final = {"Content-Type": "application/json", "Accept": "application/json"}


def _encoded(document: Any) -> bytes | None:
    return None if document is None else json.dumps(document).encode()


def segment(name: str) -> str:
    return quote(name, safe="")


def exchange_type(client: ServerClient, vhost: str, name: str) -> str:
    """Returns the type of an exchange. Raises `ReadError` if there is none of the name."""
    found = client.get(f"/{segment(vhost)}/endpoint/x/{segment(name)}")
    values = {one["name"]: one["value"] for one in found["parameters"]}
    return str(values.get("arg.x-delayed-type", values["exchange_type"]))


def require_queue(client: ServerClient, vhost: str, name: str) -> None:
    """Raises `ReadError` if there is no queue of the name, or the user has no permission on it."""
    client.get(f"/{segment(vhost)}/endpoint/q/{segment(name)}")


def require_exchange(server: ServerLogin, vhost: str, exchange: str) -> None:
    """Raises `ReadError` if there is no exchange of the name, `WriteError` if the user may not
    publish to it."""
    with ServerClient(server) as client:
        exchange_type(client, vhost, exchange)
    with closing(TransactionClient(server, vhost, exchange)) as publisher:
        publisher.require_permission()


def declare_results(server: ServerLogin, vhost: str, exchange: str) -> None:
    """Declares the exchange for results, unless it is there. Raises `OptionError` for a user who
    may not do that, or not publish to it."""
    try:
        with ServerClient(server) as client:
            _declare_topic(client, vhost, exchange)
        require_exchange(server, vhost, exchange)
    except (ReadError, WriteError) as error:
        raise OptionError(
            f"{error}; results go to exchange '{exchange}': --results off leaves that out, "
            "--results EXCHANGE names another one"
        ) from error


def _declare_topic(client: ServerClient, vhost: str, exchange: str) -> None:
    try:
        exchange_type(client, vhost, exchange)
    except ReadError:
        path = f"/{segment(vhost)}/endpoint/x/{segment(exchange)}"
        client.put(f"{path}?amqp.exchange_type=topic&durable=true")


def reporter(
    client: ServerClient, vhost: str, stream: str, job: str, run: str
) -> Callable[[Report], None]:
    """Returns a reporter that keeps the server up to date; if that fails the run goes on, and says
    so once."""
    path = f"/api/hub/pipeline/runs/{segment(job)}/{segment(run)}"
    failures: list[PipelineError] = []

    def report(found: Report) -> None:
        document = {
            "state": found.state, "rows": found.rows, "lag": found.lag, "dropped": found.dropped,
            "error": _cut(found.error or ""), "vhost": vhost, "stream": stream,
        }  # fmt: skip
        try:
            client.put(path, document)
        except PipelineError as error:
            if not failures:
                logger.warning("progress can't be reported, the run goes on: %s", error)
            failures.append(error)

    return report


def _cut(text: str) -> str:
    """Returns a text as the server takes it: without octets 0, and its beginning if it is too
    long."""
    raw = text.replace("\0", "\ufffd").encode(errors="replace")
    if len(raw) <= ERROR_MAX_BYTES:
        return raw.decode()
    return f"{raw[: ERROR_MAX_BYTES - 3].decode(errors='ignore')}..."


def report_archive(
    client: ServerClient, vhost: str, stream: str, source: str | None, name: str, offset: int,
    manifest: str, incarnation: str,
) -> None:  # fmt: skip
    """Reports that an archive has all messages of a stream before an offset."""
    path = "/".join(map(segment, (vhost, stream, name)))
    query = "" if source is None else f"?source={source}"
    document = {"offset": offset, "manifest": manifest, "incarnation": incarnation}
    client.put(f"/api/hub/pipeline/archives/{path}{query}", document)
