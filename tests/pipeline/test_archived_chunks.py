"""What retention has dropped is read from the archive, with the same offsets."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pika
import pyarrow as pa
import pytest

from tests.app.support import problem
from tests.support.chunks import chunks, rows
from tests.support.process import wait_until
from tests.support.server import WarrenServer
from warrenmq.hub.pipeline.jobs.archive_task import write_range
from warrenmq.hub.pipeline.jobs.merging import MANY, merge_small
from warrenmq.hub.pipeline.manifest import Manifest
from warrenmq.hub.pipeline.options import read_options
from warrenmq.hub.pipeline.planner import StreamPartition
from warrenmq.hub.pipeline.reading import RangeReader
from warrenmq.hub.pipeline.schema import ARROW_SCHEMA

STREAM = "/streams/%2F/log"
REPORTS = "/api/hub/pipeline/archives/%2F/log"
COUNT = 60


class Archived:
    """A server with a stream, and an archive of its first messages."""

    def __init__(self, warren: WarrenServer, http: httpx.Client, top: Path) -> None:
        self.http, self.directory, self.outside = http, top / "archives" / "log", top / "outside"
        self.options = read_options({"url": warren.http_url, "stream": "log"})
        with pika.BlockingConnection(pika.URLParameters(warren.amqp_url)) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            arguments = {"x-queue-type": "stream", "x-max-length-bytes": 20_000}
            channel.queue_declare("log", durable=True, arguments={**arguments, "x-archive": "cold"})
            channel.exchange_declare("news", "topic", durable=True)
            channel.queue_bind("log", "news", "#")
            for number in range(COUNT):
                channel.basic_publish("news", f"n.{number}", *message(number))
        self.offsets = self.get_offsets()
        self.before = self.rows()
        self.archive(self.directory, (0, 20, 40), (40, COUNT))
        self.merged = top / "archives" / "merged"
        self.archive(self.merged, *((number, number + 1) for number in range(COUNT)))
        merge_small(Manifest(self.merged))
        assert len({file.path for file in Manifest(self.merged).files()}) < MANY

    def get_offsets(self) -> dict[str, Any]:
        return dict(self.http.get(f"{STREAM}/offsets").json())

    def rows(self) -> pa.Table:
        part = StreamPartition(0, COUNT, self.offsets["incarnation"])
        return pa.Table.from_batches(RangeReader(self.options, part, ARROW_SCHEMA).batches())

    def archive(self, directory: Path, *commits: tuple[int, ...]) -> None:
        """Makes commits; each has a file from each of its offsets to the next one."""
        incarnation = self.offsets["incarnation"]
        details = {"job": "archive", "vhost": "/", "stream": "log", "incarnation": incarnation}
        manifest = Manifest(directory)
        for bounds in commits:
            group = [StreamPartition(*pair, incarnation) for pair in pairwise(bounds)]
            files = [file for part in group for file in write_range(self.options, directory, part)]
            first, end = group[0].start, group[-1].end
            manifest.commit(str(first), files, first=first, next=end, details=details)

    def report(self, name: str, place: Path, offset: int = COUNT) -> None:
        document = {"offset": offset, "manifest": str(place)}
        assert self.http.put(f"{REPORTS}/{name}", json=document).is_success

    def drop(self) -> int:
        """Has retention drop messages; returns where the log begins then."""
        self.report("cold", self.outside)
        wait_until(lambda: self.get_offsets()["first"] > 0, 20, "dropping")
        return int(self.get_offsets()["first"])

    def read(self, start: int, **query: Any) -> httpx.Response:
        return self.http.get(f"{STREAM}/chunks", params={"start": start} | query)


def message(number: int) -> tuple[bytes, pika.BasicProperties]:
    """Returns body and properties; some have neither, some headers of several types."""
    if number % 5 == 0:
        return b"", pika.BasicProperties()
    headers = {"n": number, "text": "ü", "nested": {"a": [1]}, "void": None}
    return f"{number} ".encode() * 300, pika.BasicProperties(
        content_type="text/plain", delivery_mode=1, priority=number, timestamp=1_700_000_000,
        headers=headers, message_id=f"m-{number}", app_id="test",
    )  # fmt: skip


@pytest.fixture(scope="module")
def archived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archived]:
    top = tmp_path_factory.mktemp("archived")
    with (
        WarrenServer(env={"WARREN_ARCHIVES": str(top / "archives")}) as warren,
        httpx.Client(base_url=warren.http_url, auth=("guest", "guest"), timeout=60) as http,
    ):
        yield Archived(warren, http, top)


@pytest.fixture(params=["directory", "merged"])
def place(archived: Archived, request: pytest.FixtureRequest) -> Path:
    """An archive, and one whose small commits were merged."""
    found: Path = getattr(archived, request.param)
    return found


def test_messages_dropped_from_the_log_are_read_from_the_archive(
    archived: Archived, place: Path
) -> None:
    archived.http.delete(f"{REPORTS}/warm")
    first = archived.drop()
    assert archived.get_offsets()["archived_first"] is None
    said = problem(archived.read(0), 410)
    assert f"begins at offset {first}" in said and "is not below" in said

    archived.report("warm", place)
    assert archived.get_offsets()["archived_first"] == 0
    assert archived.rows().equals(archived.before)

    answer = archived.read(10, max_bytes=2_000)
    behind = int(answer.headers["Warren-Next-Offset"])
    assert answer.headers["Warren-First-Offset"] == "10" and len(answer.content) <= 2_000
    assert [row.offset for row in rows(answer.content)] == list(range(10, behind))
    (stream,) = {chunk.stream_id for chunk in chunks(answer.content)}
    (live,) = {chunk.stream_id for chunk in chunks(archived.read(first).content)}
    assert stream == live and all(chunk.copied for chunk in chunks(answer.content))
    etag = {"If-None-Match": answer.headers["ETag"]}
    assert archived.http.get(str(answer.url), headers=etag).status_code == 304
    limit = archived.http.get(f"{STREAM}/offsets?start=3&max_bytes=1").json()["limit"]
    assert limit == 4

    arrow = archived.http.get(
        f"{STREAM}/chunks?start=0", headers={"Accept": "application/vnd.apache.arrow.stream"}
    )
    assert pa.ipc.open_stream(arrow.content).read_all().equals(archived.before)


@pytest.mark.thorough
def test_a_time_is_looked_for_in_the_archive_too(archived: Archived, place: Path) -> None:
    first = archived.drop()
    archived.report("warm", place)
    times = archived.before["timestamp"].to_pylist()
    asked = [datetime(2001, 1, 1, tzinfo=UTC), *(times[at] for at in (0, 15, 25, first, COUNT - 1))]
    for time in [*asked, datetime(2101, 1, 1, tzinfo=UTC)]:
        wanted = next((at for at, arrived in enumerate(times) if arrived >= time), COUNT)
        found = archived.http.get(f"{STREAM}/offsets", params={"timestamp": time.isoformat()})
        assert found.json()["at"] == wanted


def test_a_file_that_is_missing_and_a_link_out_of_the_archive(archived: Archived) -> None:
    archived.drop()
    archived.report("warm", archived.directory)
    (name,) = {file.path for file in Manifest(archived.directory).files() if file.first == 0}
    file = archived.directory / name
    file.rename(archived.outside)
    said = problem(archived.read(0), 500)
    assert "the archive of stream 'log' in vhost '/' can't be read" in said and name in said
    file.symlink_to(archived.outside)
    assert f"'{file}' is not below" in problem(archived.read(0), 410)
    archived.outside.rename(file)
    assert archived.read(0).is_success
