"""`/stream` of queues, streams and exchanges that keep messages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.server import WarrenServer
from tests.support.streams import TEXT, LiveSocket, LiveStream
from tests.support.websocket import CLOSE, client_frame


@pytest.fixture
def http(warren: WarrenServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=warren.http_url, auth=("guest", "guest")) as client:
        yield client


def publish(http: httpx.Client, path: str, *bodies: str) -> None:
    for body in bodies:
        http.post(f"/endpoint/{path}", content=body).raise_for_status()


def bodies(items: list[dict[str, Any]]) -> list[str]:
    return [item["body"] for item in items]


class TestQueues:
    @pytest.fixture
    def url(self, http: httpx.Client) -> Iterator[str]:
        http.put("/endpoint/q/jobs").raise_for_status()
        yield f"{http.base_url}/stream/q/jobs"
        http.delete("/endpoint/q/jobs")

    def test_each_message_is_delivered_once(self, http: httpx.Client, url: str) -> None:
        publish(http, "q/jobs", "1", "2")
        with LiveStream(url) as stream:
            found = stream.take(2)
            publish(http, "q/jobs", "3")
            found.append(stream.next())
        assert bodies(found) == ["1", "2", "3"]
        assert "cursor" not in found[0]
        with LiveStream(url) as again:
            publish(http, "q/jobs", "4")
            assert again.next()["body"] == "4"

    def test_head_takes_nothing(self, http: httpx.Client, url: str) -> None:
        publish(http, "q/jobs", "1")
        polling = {"Accept": "application/json"}
        assert http.head(url, headers=polling).headers["content-type"] == "application/json"
        assert bodies(http.get(url, headers=polling).json()["messages"]) == ["1"]

    def test_a_page_of_another_site(self, http: httpx.Client, url: str) -> None:
        """It could not read the answer to its GET, but what that takes from the queue is lost."""
        publish(http, "q/jobs", "1")
        refused = http.get(url, headers={"Sec-Fetch-Site": "cross-site"})
        assert refused.status_code == 403
        assert "a request from another site" in refused.json()["detail"]
        with LiveStream(url) as stream:
            assert stream.next()["body"] == "1"

    def test_messages_are_acked_and_nacked_over_websocket(
        self, http: httpx.Client, url: str
    ) -> None:
        publish(http, "q/jobs", *"123")
        with LiveSocket(f"{url}?ack=manual&prefetch=2") as socket:
            one, two = socket.take(2)
            socket.send({"ack": one["id"]}, {"nack": two["id"], "requeue": False})
            three = socket.next()
            socket.send({"nack": three["id"], "requeue": "false"})
            assert "requeue" in socket.next()["problem"]["detail"]
            socket.send({"nack": three["id"]})
            again = socket.next()
            assert (again["id"], again["redelivered"]) == (three["id"], True)
        with LiveStream(url) as stream:
            assert stream.next()["body"] == "3"

    def test_acks_just_before_a_close(self, http: httpx.Client, url: str) -> None:
        """They are carried out; messages that were not settled go back, and no others come."""
        publish(http, "q/jobs", *"1234")
        with LiveSocket(f"{url}?ack=manual&prefetch=3") as socket:
            found = socket.take(3)
            acks = [
                client_frame(TEXT, json.dumps({"ack": one["id"]}).encode()) for one in found[:2]
            ]
            socket.socket.sendall(b"".join([*acks, client_frame(CLOSE, b"\x03\xe8")]))
            while socket.frame()[0] != CLOSE:
                pass
        with LiveSocket(f"{url}?ack=manual") as socket:
            left = socket.take(2)
            socket.send({"ack": [one["id"] for one in left]})
        assert [one["body"] for one in left] == ["3", "4"]

    def test_an_ack_of_an_unknown_message_is_refused(self, url: str) -> None:
        with LiveSocket(f"{url}?ack=manual") as socket:
            socket.send({"ack": "msg_1", "ref": 7})
            answer = socket.next()
        assert (answer["refused"], answer["problem"]["status"]) == (7, 404)

    def test_readers_end_with_the_queue(self, http: httpx.Client, url: str) -> None:
        with LiveStream(url) as stream, LiveSocket(f"{url}?ack=manual") as socket:
            publish(http, "q/jobs", "1", "2")
            stream.next(), socket.next()
            http.delete("/endpoint/q/jobs").raise_for_status()
            (end,) = stream.rest()
            assert end["problem"]["detail"] == "queue 'jobs' in vhost '/' was deleted"
            assert socket.next()["problem"]["status"] == 404
            assert socket.frame() == (8, b"\x03\xe8")

    @pytest.mark.parametrize(
        "query", ["ack=never", "ack=manual&prefetch=0", "ack=manual&prefetch=1001",
                  "ack=manual&prefetch=x", "prefetch=5", "key=a", "cursor=1"],
    )  # fmt: skip
    def test_bad_parameters_are_refused(self, url: str, query: str) -> None:
        with LiveSocket(f"{url}?{query}") as socket:
            assert socket.status == 400

    def test_acks_need_websocket(self, http: httpx.Client, url: str) -> None:
        publish(http, "q/jobs", "1")
        assert http.get(f"{url}?ack=manual").status_code == 204
        with LiveStream(url) as stream:
            assert stream.next()["body"] == "1"

    def test_a_missing_queue_is_404(self, http: httpx.Client) -> None:
        assert http.get("/stream/q/none").status_code == 404


class TestKept:
    @pytest.fixture(params=["q/log", "x/log"])
    def path(self, http: httpx.Client, request: pytest.FixtureRequest) -> Iterator[str]:
        """A stream, and an exchange that keeps what is published to it."""
        path: str = request.param
        arguments = {
            "q/log": "?arg.x-queue-type=stream",
            "x/log": "?amqp.exchange_type=topic&arg.x-persist-messages=1000",
        }
        http.put(f"/endpoint/{path}{arguments[path]}").raise_for_status()
        yield path
        http.delete(f"/endpoint/{path}")

    def test_reading_without_a_cursor_begins_now(self, http: httpx.Client, path: str) -> None:
        publish(http, path, "old")
        with LiveStream(f"{http.base_url}/stream/{path}") as stream:
            publish(http, path, "new")
            assert stream.next()["body"] == "new"

    @pytest.mark.parametrize(
        ("cursor", "expected"),
        [
            ("first", "1 2 3"), ("last", "3"), ("1", "2 3"), ("3", ""), ("2001-01-01", "1 2 3"),
            ("2999-01-01T00:00:00Z", ""),
        ],
    )  # fmt: skip
    def test_reading_begins_at_any_cursor(
        self, http: httpx.Client, path: str, cursor: str, expected: str
    ) -> None:
        publish(http, path, *"123")
        with LiveStream(f"{http.base_url}/stream/{path}?cursor={cursor}") as stream:
            found = stream.take(len(expected.split()))
            publish(http, path, "next")
            assert bodies([*found, stream.next()]) == [*expected.split(), "next"]

    def test_going_on_after_a_restart_of_the_reader(self, http: httpx.Client, path: str) -> None:
        publish(http, path, *"123")
        url = f"{http.base_url}/stream/{path}"
        with LiveStream(f"{url}?cursor=first", sse=True) as stream:
            last = stream.take(2)[1]["id"]
        with LiveStream(url, sse=True, last_event_id=last) as again:
            assert again.next()["data"]["body"] == "3"

    def test_a_cursor_of_another_stream(self, http: httpx.Client, path: str) -> None:
        publish(http, path, "1")
        with LiveStream(f"{http.base_url}/stream/{path}?cursor=9@abcdef") as stream:
            gap = stream.next()
            assert (gap["event"], gap["from"]) == ("gap", "9@abcdef")
            first = stream.next()
        assert (first["body"], first["cursor"]) == ("1", gap["to"])
        with LiveStream(f"{http.base_url}/stream/{path}?cursor={gap['cursor']}") as again:
            assert again.next() == first

    def test_a_cursor_beyond_the_end_is_answered_with_a_gap(
        self, http: httpx.Client, path: str
    ) -> None:
        with LiveStream(f"{http.base_url}/stream/{path}?cursor=9") as stream:
            assert stream.next()["event"] == "gap"
            publish(http, path, "1")
            assert stream.next()["body"] == "1"

    def test_a_reader_ends_with_the_stream(self, http: httpx.Client, path: str) -> None:
        with LiveStream(f"{http.base_url}/stream/{path}") as stream:
            http.delete(f"/endpoint/{path}").raise_for_status()
            (end,) = stream.rest()
        assert end["problem"]["status"] == 404

    def test_acks_are_not_needed(self, http: httpx.Client, path: str) -> None:
        url = f"{http.base_url}/stream/{path}?ack=manual"
        with LiveSocket(url) as socket:
            assert socket.status == 400
        publish(http, path, "1")
        with LiveStream(f"{url}&cursor=first") as stream:
            assert stream.next()["body"] == "1"


def test_keys_of_an_exchange_that_keeps(http: httpx.Client) -> None:
    http.put("/endpoint/x/kept?amqp.exchange_type=topic&arg.x-persist-messages=1000")
    for key in ("eu.1", "us.1", "eu.2"):
        http.post(f"/endpoint/x/kept?hub.topic={key}", content=key).raise_for_status()
    with LiveStream(f"{http.base_url}/stream/x/kept?cursor=first&key=eu.%23&key=eu.1") as stream:
        assert bodies(stream.take(2)) == ["eu.1", "eu.2"]


def test_a_gap_that_retention_made(http: httpx.Client) -> None:
    http.put("/endpoint/q/short?arg.x-queue-type=stream&arg.x-max-length-bytes=1000")
    publish(http, "q/short", *("x" * 400 for _ in range(10)))
    url = f"{http.base_url}/stream/q/short"
    with LiveStream(f"{url}?cursor=0") as stream:
        gap, first = stream.take(2)
    assert (gap["event"], gap["from"].split("@")[0]) == ("gap", "first")
    assert first["cursor"] == gap["to"] != gap["cursor"]
    with LiveStream(f"{url}?cursor={gap['cursor']}") as stream:
        assert stream.next() == first


def test_a_stream_over_a_restart(warren: WarrenServer) -> None:
    with WarrenServer() as server:
        auth = ("guest", "guest")
        url = f"{server.http_url}/endpoint/q/log"
        httpx.put(f"{url}?arg.x-queue-type=stream", auth=auth).raise_for_status()
        httpx.post(url, content="1", auth=auth).raise_for_status()
        stream_url = f"{server.http_url}/stream/q/log"
        with LiveStream(f"{stream_url}?cursor=first") as stream:
            cursor = stream.next()["cursor"]
        server.restart()
        httpx.post(url, content="2", auth=auth).raise_for_status()
        with LiveStream(f"{stream_url}?cursor={cursor}") as stream:
            assert stream.next()["body"] == "2"
