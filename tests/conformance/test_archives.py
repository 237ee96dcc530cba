"""Retention by archive (docs/streams.md): messages that an archive has not reported are kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.process import wait_until
from tests.support.server import WarrenServer

from .queues import Queues

pytestmark = pytest.mark.differs("RabbitMQ has no archives of streams")

LIMIT = 20_000
MESSAGES, BODY = 100, bytes(1_000)


@contextmanager
def archived(directory: Path) -> Iterator[Archived]:
    with (
        WarrenServer(data=directory) as server,
        httpx.Client(base_url=server.http_url, auth=("guest", "guest"), timeout=20) as http,
    ):
        yield Archived(server, http)


@dataclass
class Archived:
    """A stream of a server, with a limit in bytes and an archive in one policy."""

    server: WarrenServer
    http: httpx.Client

    def declare(self) -> None:
        definition = {"max-length-bytes": LIMIT, "archive": "cold"}
        policy = {"pattern": "^news-log$", "definition": definition, "apply-to": "queues"}
        assert self.http.put("/api/policies/%2F/keep", json=policy).is_success
        with Queues(self.server.amqp_url).channel() as channel:
            arguments = {"x-queue-type": "stream"}
            channel.queue_declare("news-log", durable=True, arguments=arguments)

    def fill(self) -> None:
        with Queues(self.server.amqp_url).channel() as channel:
            channel.confirm_delivery()
            for _ in range(MESSAGES):
                channel.basic_publish("", "news-log", BODY)

    def report(self, offset: int) -> None:
        path = "/api/hub/pipeline/archives/%2F/news-log/cold"
        assert self.http.put(path, json={"offset": offset, "manifest": "/cold"}).is_success

    def first(self) -> int:
        return int(self.http.get("/streams/%2F/news-log/offsets").json()["first"])

    def archive(self) -> dict[str, Any]:
        (found,) = self.http.get("/api/hub/pipeline").json()["archives"]
        return dict(found)


def test_floor_of_the_archive_survives_a_kill(tmp_path: Path) -> None:
    with archived(tmp_path) as stream:
        stream.declare()
        stream.fill()
        found = stream.archive()
        assert (stream.first(), found["offset"], found["lag"]) == (0, None, MESSAGES)
        assert found["retention_waits"] and f"over its limit of {LIMIT}" in found["exceeded"]
        assert "everything from offset 0 on is kept, since archive 'cold'" in stream.server.output()
        stream.report(30)
        wait_until(lambda: stream.first() == 30, 20, "dropping")
        stream.server.kill()
    with archived(tmp_path) as stream:
        stream.fill()
        assert stream.first() == 30
        found = stream.archive()
        assert (found["offset"], found["lag"], found["manifest"]) == (30, 170, "/cold")
        stream.report(2 * MESSAGES)
        wait_until(lambda: stream.first() > MESSAGES, 20, "dropping")
        found = stream.archive()
        assert (found["lag"], found["exceeded"]) == (0, None)
        refused = stream.http.get("/streams/%2F/q/news-log/chunks?start=0")
        assert (refused.status_code, refused.json()["manifests"]) == (410, ["/cold"])
        assert "archives report that it is in /cold" in refused.json()["detail"]
