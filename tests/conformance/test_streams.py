"""Streams over HTTP (docs/streams.md): offsets, chunks, and errors."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import httpx
import pyarrow.ipc
import pytest

from tests.app import openapi_check
from tests.app.support import problem
from tests.support.chunks import chunks, rows
from tests.support.process import wait_until
from tests.support.server import WarrenServer
from tests.support.streams import LiveStream
from warrenmq.hub.pipeline.chunk_format import read_chunks
from warrenmq.hub.pipeline.columns import decode
from warrenmq.hub.pipeline.schema import ARROW_SCHEMA
from warrenmq.hub.streams.streams import ANSWERS_MAX

from .raw import Channel

pytestmark = pytest.mark.differs("has no such interface")

STREAM = {"x-queue-type": "stream"}
BODIES = [b"%d" % number for number in range(10)]
NO_PASSWORD = httpx.Auth()


@pytest.fixture(scope="module")
def http(warren: WarrenServer) -> Iterator[httpx.Client]:
    """Each answer is held against `/openapi.json`."""
    with httpx.Client(
        base_url=warren.http_url, auth=("guest", "guest"), timeout=20,
        event_hooks={"response": [told]},
    ) as client:  # fmt: skip
        yield client


def told(response: httpx.Response) -> None:
    response.read()
    asyncio.run(openapi_check.check(response))


@pytest.fixture
def stream(channel: Channel, name: str) -> str:
    """The path of a stream of ten messages, published and confirmed one by one."""
    channel.declare(name, durable=True, arguments=STREAM)
    publish(channel, name, BODIES)
    return path(name)


def path(name: str, letter: str = "") -> str:
    return f"/streams/%2F/{letter}{quote(name, safe='')}"


def publish(channel: Channel, name: str, bodies: list[bytes], exchange: str = "") -> None:
    channel.call("Confirm.Select")
    for body in bodies:
        channel.publish(body, exchange=exchange, routing_key=name)
        channel.expect("Basic.Ack")


def offsets(http: httpx.Client, stream: str, **query: Any) -> Any:
    answer = http.get(f"{stream}/offsets", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def read(http: httpx.Client, stream: str, start: int, **query: Any) -> httpx.Response:
    answer = http.get(f"{stream}/chunks", params={"start": start} | query)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/vnd.warren.chunks"
    assert int(answer.headers["content-length"]) == len(answer.content)
    return answer


def bounds(answer: httpx.Response) -> tuple[int, int]:
    headers = answer.headers
    return int(headers["warren-first-offset"]), int(headers["warren-next-offset"])


def test_offsets_of_a_stream_are_reported(http: httpx.Client, stream: str, name: str) -> None:
    found = offsets(http, stream)
    assert found.pop("incarnation") and found.pop("bytes") > 0
    assert found == {
        "stream": name, "vhost": "/", "source": "queue", "first": 0, "next": 10,
        "archived_first": None,
    }  # fmt: skip


@pytest.mark.parametrize(("start", "end"), [(0, 10), (0, 3), (4, 7), (9, 10), (5, 99), (10, 10)])
def test_chunks_have_the_requested_offsets(
    http: httpx.Client, stream: str, name: str, start: int, end: int
) -> None:
    answer = read(http, stream, start, end=end)
    found = [row for row in rows(answer.content) if start <= row.offset < end]
    assert [row.offset for row in found] == list(range(start, min(end, 10)))
    assert [row.body for row in found] == BODIES[start:end]
    assert {(row.exchange, row.routing_key) for row in found} <= {("", name)}
    assert bounds(answer)[0] <= start and bounds(answer)[1] >= min(end, 10)


def test_each_answer_continues_where_the_last_one_ended(http: httpx.Client, stream: str) -> None:
    found, start = [], 0
    while (answer := read(http, stream, start, max_bytes=500)).content:
        assert len(answer.content) <= 500
        found += rows(answer.content)
        start = bounds(answer)[1]
    assert [row.body for row in found] == BODIES and start == 10


def test_conditional_and_head_requests(http: httpx.Client, stream: str) -> None:
    answer = read(http, stream, 2, end=5)
    etag = answer.headers["etag"]
    assert etag.startswith('"') and etag != read(http, stream, 2).headers["etag"]
    query = {"start": 2, "end": 5}
    same = http.get(f"{stream}/chunks", params=query, headers={"If-None-Match": f'"x", {etag}'})
    other = http.get(f"{stream}/chunks", params=query, headers={"If-None-Match": '"x"'})
    assert (same.status_code, same.content, bounds(same)) == (304, b"", bounds(answer))
    assert (other.status_code, other.content) == (200, answer.content)
    head = http.head(f"{stream}/chunks", params=query)
    assert head.status_code == 200 and head.headers["content-length"] == str(len(answer.content))


@pytest.mark.parametrize(
    ("wanted", "part"),
    [("bytes=0-0", slice(0, 1)), ("bytes=100-299", slice(100, 300)),
     ("bytes=300-", slice(300, None)), ("bytes=-50", slice(-50, None)),
     ("bytes=40-99999", slice(40, None)), ("bytes=-99999", slice(None))],
)  # fmt: skip
def test_a_range_of_bytes(http: httpx.Client, stream: str, wanted: str, part: slice) -> None:
    answer = read(http, stream, 0)
    whole, headers = answer.content, {"Range": wanted, "If-Range": answer.headers["etag"]}
    found = http.get(f"{stream}/chunks?start=0", headers=headers)
    first, behind, _ = part.indices(len(whole))
    assert (found.status_code, found.content) == (206, whole[part])
    assert found.headers["content-range"] == f"bytes {first}-{behind - 1}/{len(whole)}"
    assert found.headers["content-length"] == str(behind - first)
    assert found.headers["etag"] == answer.headers["etag"]


@pytest.mark.parametrize(
    "headers",
    [{"Range": "bytes=1-2, 4-5"}, {"Range": "bytes=5-1"}, {"Range": "bytes=-"},
     {"Range": "lines=1-2"}, {"Range": "bytes=1-2", "If-Range": '"x"'}],
)  # fmt: skip
def test_other_ranges_are_ignored(http: httpx.Client, stream: str, headers: dict[str, str]) -> None:
    answer = http.get(f"{stream}/chunks?start=0", headers=headers)
    assert (answer.status_code, answer.content) == (200, read(http, stream, 0).content)


def test_a_range_behind_the_end_is_refused(http: httpx.Client, stream: str) -> None:
    size = len(read(http, stream, 0).content)
    for _ in range(ANSWERS_MAX + 1):  # Each releases its memory.
        answer = http.get(f"{stream}/chunks?start=0", headers={"Range": f"bytes={size}-"})
        assert f"which has {size} bytes" in problem(answer, 416)
    assert answer.headers["content-range"] == f"bytes */{size}"
    empty = http.get(f"{stream}/chunks?start=10", headers={"Range": "bytes=0-"})
    assert (empty.status_code, empty.content) == (200, b"")


def test_offsets_are_found_by_time_and_by_size(http: httpx.Client, stream: str) -> None:
    arrivals = [chunk.arrived_ms for chunk in chunks(read(http, stream, 0).content)]
    for moment_ms in (arrivals[0], arrivals[5], arrivals[9], arrivals[9] + 1):
        moment = datetime.fromtimestamp(moment_ms / 1000, UTC).isoformat()
        first = next((at for at, ms in enumerate(arrivals) if ms >= moment_ms), 10)
        assert offsets(http, stream, timestamp=moment)["at"] == first
    assert offsets(http, stream, timestamp="2001-01-01")["at"] == 0
    assert offsets(http, stream, timestamp="2999-01-01T00:00:00Z")["at"] == 10
    assert offsets(http, stream, start=4, max_bytes=1)["limit"] == 5
    assert offsets(http, stream, start=4, max_bytes=10**9)["limit"] == 10
    assert offsets(http, stream, start=10, max_bytes=1)["limit"] == 10


def test_messages_stored_by_an_exchange_are_read(
    http: httpx.Client, channel: Channel, name: str
) -> None:
    """A queue that is a stream comes before an exchange of the same name."""
    channel.call(
        "Exchange.Declare", exchange=name, exchange_type="topic", durable=True,
        arguments={"x-persist-messages": 100},
    )  # fmt: skip
    publish(channel, "a.b", BODIES, name)
    found = offsets(http, path(name))
    assert (found["source"], found["next"]) == ("exchange", 10)
    answer = rows(read(http, path(name), 0).content)
    assert [(row.exchange, row.routing_key, row.body) for row in answer] == [
        (name, "a.b", body) for body in BODIES
    ]
    channel.declare(name, durable=True, arguments=STREAM)
    assert offsets(http, path(name))["source"] == "queue"
    assert offsets(http, path(name, "x/")) == found
    assert offsets(http, path(name, "q/"))["source"] == "queue"


# Other doors


def amqp_offsets(channel: Channel, name: str, letter: str, start: int) -> list[tuple[int, bytes]]:
    """The messages from an offset on, as an AMQP client gets them."""
    header = "x-stream-offset" if letter == "q" else "x-offset"
    channel.call("Basic.Qos", prefetch_count=100)
    if letter == "q":
        channel.consume(name, arguments={header: start})
    else:
        queue = channel.declare("").queue
        given = {"queue": queue, "exchange": name, "routing_key": "#"}
        channel.call("Queue.Bind", **given, arguments={"x-from": start})
        channel.consume(queue)
    found = [channel.content() for _ in BODIES[start:]]
    headers = [cast("dict[str, int]", one.properties.headers) for one in found]
    return [(one[header], message.body) for one, message in zip(headers, found, strict=True)]


@pytest.mark.parametrize("letter", ["q", "x"])
def test_a_message_has_the_same_number_at_each_door(
    http: httpx.Client, channel: Channel, name: str, letter: str
) -> None:
    """AMQP, `/stream` in each form, and the offsets and chunks that Spark reads."""
    if letter == "q":
        channel.declare(name, durable=True, arguments=STREAM)
    else:
        kept = {"exchange_type": "topic", "arguments": {"x-persist-messages": 100}}
        channel.call("Exchange.Declare", exchange=name, durable=True, **kept)
    url = f"{http.base_url}/stream/{letter}/{quote(name, safe='')}"
    poll = {"accept": "application/json"}
    before = http.get(f"{url}?wait_s=0", headers=poll).json()["cursor"]
    publish(channel, name, BODIES, name if letter == "x" else "")
    numbered = list(enumerate(BODIES))

    found = offsets(http, path(name, f"{letter}/"))
    assert (found["first"], found["next"]) == (0, 10)
    data = read(http, path(name, f"{letter}/"), 5).content
    rows_read = decode(data, read_chunks(data), name, 5, 10, ARROW_SCHEMA)
    spark = zip(rows_read["offset"].to_pylist(), rows_read["body"].to_pylist(), strict=True)
    assert list(spark) == numbered[5:]
    assert amqp_offsets(channel, name, letter, 5) == numbered[5:]

    with LiveStream(f"{url}?cursor={before}", sse=True) as stream:
        events = stream.take(10)
    tag = before.removeprefix("first@")
    ids = [f"{number}@{tag}" for number in range(10)]
    assert [one["id"] for one in events] == [one["data"]["cursor"] for one in events] == ids
    assert [one["data"]["body"].encode() for one in events] == BODIES
    with LiveStream(url, sse=True, last_event_id=ids[4]) as stream:
        assert stream.next() == events[5]
    for earlier in ("5", f"5-{tag}"):
        with LiveStream(f"{url}?cursor={earlier}") as stream:
            assert stream.next() == events[5]["data"]
    polled = http.get(f"{url}?cursor={ids[4]}", headers=poll).json()
    assert polled == {"messages": [one["data"] for one in events[5:]], "cursor": ids[9]}


# Arrow


ARROW = {"Accept": "application/vnd.apache.arrow.stream"}


@pytest.mark.parametrize(
    ("query", "first", "behind"),
    [({}, 0, 10), ({"start": 3, "end": 7}, 3, 7), ({"start": 10}, 10, 10),
     ({"start": 2, "max_bytes": 1}, 2, 3)],
)  # fmt: skip
def test_arrow(
    http: httpx.Client, stream: str, name: str, query: dict[str, int], first: int, behind: int
) -> None:
    """All that is wanted in one answer, trimmed."""
    answer = http.get(f"{stream}/chunks", params={"start": 0} | query, headers=ARROW)
    assert answer.status_code == 200
    found = pyarrow.ipc.open_stream(answer.content).read_all().to_pylist()
    assert [row["offset"] for row in found] == list(range(first, behind))
    assert [row["body"] for row in found] == BODIES[first:behind]
    assert {row["routing_key"] for row in found} <= {name}


def test_arrow_is_refused_as_chunks_are(http: httpx.Client, stream: str) -> None:
    answer = http.get(f"{stream}/chunks?start=11", headers=ARROW)
    assert "ends at offset 10" in problem(answer, 416)


def test_arrow_without_pyarrow_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pyarrow.py").write_text("raise ModuleNotFoundError('no', name='pyarrow')")
    with WarrenServer(env={"PYTHONPATH": str(tmp_path)}) as warren:
        auth = ("guest", "guest")
        with httpx.Client(base_url=warren.http_url, auth=auth, timeout=20) as http:
            http.put("/endpoint/q/s?arg.x-queue-type=stream")
            said = problem(http.get(f"{path('s')}/chunks?start=0", headers=ARROW), 406)
    assert "the server has no pyarrow" in said and "pip install 'warrenmq[arrow]'" in said


# What is refused


@pytest.mark.parametrize(
    ("query", "status", "said"),
    [
        ({"start": 11}, 416, "ends at offset 10, 11 is past it"),
        ({"start": 0, "incarnation": "x"}, 410, "deleted and declared again"),
        ({}, 400, "start is required"),
        ({"start": "-1"}, 400, "start is '-1', not a decimal number"),
        ({"start": 2**63}, 400, f"not from 0 to {2**63 - 1}"),
        ({"start": 0, "max_bytes": 0}, 400, "max_bytes is 0"),
        ({"start": 0, "skip_damaged": "maybe"}, 400, "neither true nor false"),
        ({"start": 0, "source": "exchange"}, 400, "unknown parameter source"),
        ({"start": 0, "ende": 5}, 400, "end"),
    ],
)
def test_refused_chunks(
    http: httpx.Client, stream: str, query: dict[str, Any], status: int, said: str
) -> None:
    assert said in problem(http.get(f"{stream}/chunks", params=query), status)


def test_invalid_requests_are_refused(http: httpx.Client, stream: str) -> None:
    assert "timestamp" in problem(http.get(f"{stream}/offsets?timestamp=noon"), 400)
    assert "no vhost" in problem(http.get("/streams/nowhere/s/offsets"), 404)
    for letter in ("", "x/", "q/"):
        assert "'nothing'" in problem(http.get(f"{path('nothing', letter)}/offsets"), 404)
    assert problem(http.post(f"{stream}/chunks"), 405)
    accept = {"Accept": "image/png"}
    assert "image/png" in problem(http.get(f"{stream}/chunks?start=0", headers=accept), 406)


def test_other_queues_and_exchanges_are_refused(
    http: httpx.Client, channel: Channel, name: str
) -> None:
    channel.declare(name, durable=True)
    said = problem(http.get(f"{path(name)}/offsets"), 409)
    assert "is of type classic, not stream" in said and "warren pipeline capture" in said
    channel.call(
        "Exchange.Declare", exchange=f"{name}.x", exchange_type="fanout",
        arguments={"x-persist-messages": 100},
    )  # fmt: skip
    said = problem(http.get(f"{path(name)}.x/offsets"), 409)
    assert "keeps no messages on disk" in said


def test_an_offset_that_retention_has_dropped(
    http: httpx.Client, channel: Channel, name: str
) -> None:
    channel.declare(name, durable=True, arguments=STREAM | {"x-max-length-bytes": 3_000})
    publish(channel, name, [bytes(500)] * 20)
    first = offsets(http, path(name))["first"]
    assert 0 < first < 20
    answer = http.get(f"{path(name)}/chunks?start=0")
    assert f"begins at offset {first}" in problem(answer, 410)
    assert (answer.json()["first"], answer.json()["next"]) == (first, 20)
    assert rows(read(http, path(name), first).content)[-1].offset == 19


def test_a_stream_that_was_recreated(
    http: httpx.Client, channel: Channel, stream: str, name: str
) -> None:
    before = offsets(http, stream)["incarnation"]
    assert read(http, stream, 0, incarnation=before).content
    channel.call("Queue.Delete", queue=name)
    channel.declare(name, durable=True, arguments=STREAM)
    after = offsets(http, stream)["incarnation"]
    answer = http.get(f"{stream}/chunks", params={"start": 0, "incarnation": before})
    said = problem(answer, 410)
    assert before in said and after in said and answer.json()["incarnation"] == after


@pytest.mark.parametrize(
    ("user", "name", "status"),
    [
        ("reader", "may.q", 200), ("reader", "not.q", 403), ("reader", "not.there", 403),
        ("reader", "may.x", 200), ("reader", "not.x", 403), ("reader", "may.there", 404),
        ("topics", "may.q", 200), ("topics", "may.x", 403), ("all-topics", "may.x", 200),
        ("stranger", "may.q", 401),
    ],
)  # fmt: skip
def test_permission_to_read(guarded: httpx.Client, user: str, name: str, status: int) -> None:
    """Read on the queue or exchange, and at a topic exchange for all keys."""
    for document in ("offsets", "chunks?start=0"):
        answer = guarded.get(f"{path(name)}/{document}", auth=(user, user))
        assert answer.status_code == status, answer.text


@pytest.fixture(scope="module")
def guarded(warren: WarrenServer, http: httpx.Client) -> httpx.Client:
    for user in ("reader", "topics", "all-topics"):
        http.put(f"/api/users/{user}", json={"password": user, "tags": ""})
        rights = {"configure": "", "write": "", "read": r"^may\."}
        http.put(f"/api/permissions/%2F/{user}", json=rights)
    for user, keys in (("topics", "^eu"), ("all-topics", ".*")):
        topic = {"exchange": "may.x", "write": "", "read": keys}
        http.put(f"/api/topic-permissions/%2F/{user}", json=topic)
    for word in ("may", "not"):
        http.put(f"/endpoint/q/{word}.q?arg.x-queue-type=stream")
        http.put(
            f"/endpoint/x/{word}.x?amqp.exchange_type=topic&durable=true&arg.x-persist-messages=9"
        )
    return http


# Another life of the server


@pytest.mark.parametrize(
    ("scope", "source", "status"),
    [
        ({"read": "q/{}"}, "queue", 200),
        ({"read": "x/{}"}, "exchange", 200),
        ({"read": "q/{}"}, "exchange", 403),
        ({"read": "x/{}"}, "queue", 403),
        ({"write": "q/{}"}, "queue", 403),
        ({"read": "q/another"}, "queue", 403),
    ],
)
def test_tokens_read_what_a_scope_names(
    http: httpx.Client, channel: Channel, name: str, scope: dict[str, str], source: str, status: int
) -> None:
    """The name is that of a queue, or of an exchange."""
    if source == "queue":
        channel.declare(name, durable=True, arguments=STREAM)
    else:
        channel.call(
            "Exchange.Declare",
            exchange=name,
            exchange_type="fanout",
            durable=True,
            arguments={"x-persist-messages": 10},
        )
    with_token = token(http, {access: text.format(name) for access, text in scope.items()})
    for what in ("offsets", "chunks?start=0"):
        answer = http.get(f"{path(name)}/{what}", auth=NO_PASSWORD, headers=with_token)
        assert answer.status_code == status, answer.text


def test_an_answer_ends_when_its_token_is_revoked(
    http: httpx.Client, channel: Channel, name: str
) -> None:
    channel.declare(name, durable=True, arguments=STREAM)
    publish(channel, name, [bytes(1024 * 1024)] * 40)
    headers = token(http, {"read": f"q/{name}"}) | ARROW
    url = f"{path(name)}/chunks?start=0"
    made = http.get("/api/hub/tokens").json()[-1]
    with (
        httpx.Client(base_url=http.base_url, timeout=20) as client,
        client.stream("GET", url, headers=headers) as answer,
    ):
        pieces = answer.iter_raw()
        next(pieces)
        http.delete(f"/api/hub/tokens/{made['id']}").raise_for_status()
        with pytest.raises(httpx.RemoteProtocolError):
            list(pieces)


def token(http: httpx.Client, scope: dict[str, str]) -> dict[str, str]:
    """Returns the header of a new token."""
    made = http.post("/api/hub/tokens", json={"name": "reader", "scopes": [scope]})
    return {"Authorization": f"Bearer {made.json()['token']}"}


def test_offsets_and_incarnation_survive_a_restart(tmp_path: Path) -> None:
    """Offsets and incarnation are the same; damage is found, told, and left out on demand."""
    with WarrenServer(data=tmp_path / "data") as warren:
        auth = ("guest", "guest")
        with httpx.Client(base_url=warren.http_url, auth=auth, timeout=20) as http:
            http.put("/endpoint/q/s?arg.x-queue-type=stream")
            for body in BODIES:
                assert http.post("/endpoint/q/s", content=body).status_code == 202
            before, answer = offsets(http, path("s")), read(http, path("s"), 0)
            warren.kill()
            warren.start()
            after = offsets(http, path("s"))
            assert after | {"bytes": None} == before | {"bytes": None}
            assert [row.body for row in rows(read(http, path("s"), 0).content)] == BODIES
            wait_until(lambda: offsets(http, path("s"))["bytes"] is not None, 10, "the size")
            warren.stop()
            damage(tmp_path / "data" / "log", chunks(answer.content)[4].location)
            warren.start()
            assert bounds(read(http, path("s"), 0)) == (0, 4)
            refused = http.get(f"{path('s')}/chunks?start=4")
            said = problem(refused, 500)
            assert "from offset 4 to 4 are damaged on disk; skip_damaged=true" in said
            assert refused.json()["unreadable"] == [4, 4]
            sound = read(http, path("s"), 0, skip_damaged="true")
            assert [row.offset for row in rows(sound.content)] == [0, 1, 2, 3, 5, 6, 7, 8, 9]


def damage(log: Path, location: tuple[int, int]) -> None:
    with (log / f"{location[0]:012d}.log").open("r+b") as file:
        file.seek(location[1] + 40)
        octet = file.read(1)[0]
        file.seek(location[1] + 40)
        file.write(bytes((octet ^ 1,)))
