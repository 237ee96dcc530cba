"""`/stream` on a real server: what readers get, how they go on, how they end."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from decimal import Decimal
from itertools import pairwise
from socket import create_connection
from typing import Any
from urllib.parse import quote

import httpx
import pika
import pytest

from tests.support.process import wait_until
from tests.support.server import WarrenServer
from tests.support.streams import Item, LiveStream

GUEST = ("guest", "guest")


def basic(user: str, password: str) -> str:
    return "Basic " + b64encode(f"{user}:{password}".encode()).decode()


@pytest.fixture
def http(warren: WarrenServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=warren.http_url, auth=GUEST) as client:
        yield client


@pytest.fixture
def news(http: httpx.Client) -> Iterator[str]:
    """The URL of a topic exchange's stream."""
    http.put("/endpoint/x/news?amqp.exchange_type=topic").raise_for_status()
    yield f"{http.base_url}/stream/x/news"
    http.delete("/endpoint/x/news")


def publish(http: httpx.Client, key: str, body: str | bytes, **headers: str) -> None:
    path = f"/endpoint/x/news?hub.topic={quote(key)}"
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    http.post(path, content=body, headers=fields).raise_for_status()


@pytest.fixture
def ada(http: httpx.Client) -> Iterator[tuple[str, str]]:
    """A user who may read everything."""
    user = {"password": "ada has a password", "tags": ""}
    http.put("/api/users/ada", json=user).raise_for_status()
    permit(http, ".*")
    yield "ada", user["password"]
    http.delete("/api/users/ada")


def permit(http: httpx.Client, read: str) -> None:
    rights = {"configure": "", "write": "", "read": read}
    http.put("/api/permissions/%2F/ada", json=rights).raise_for_status()


class TestForms:
    def test_messages_are_json_lines_by_default(self, http: httpx.Client, news: str) -> None:
        with LiveStream(news) as stream:
            publish(http, "eu.1", "grüße", content_type="text/plain", x_amqp_header_kind="a")
            found = stream.next()
        assert stream.response.headers["content-type"] == "application/x-ndjson"
        assert found.pop("id").startswith("msg_")
        assert found.pop("cursor").startswith("0@")
        assert found == {
            "exchange": "news",
            "routing_key": "eu.1",
            "headers": {"kind": "a"},
            "content_type": "text/plain",
            "body": "grüße",
        }

    def test_messages_are_server_sent_events_if_accepted(
        self, http: httpx.Client, news: str
    ) -> None:
        with LiveStream(news, sse=True) as stream:
            publish(http, "eu.1", "two\nlines")
            event = stream.next()
        assert stream.response.headers["content-type"] == "text/event-stream"
        assert event["id"] == event["data"]["cursor"]
        assert event["data"]["body"] == "two\nlines"

    def test_a_body_that_is_no_text_is_sent_in_base64(self, http: httpx.Client, news: str) -> None:
        with LiveStream(news) as stream:
            publish(http, "eu.1", b"\xff\x00")
            found = stream.next()
        assert found["body_base64"] == "/wA="
        assert "body" not in found

    def test_what_amqp_clients_send(self, warren: WarrenServer, news: str) -> None:
        """Each type of header, each property; a long body, and an empty one."""
        moment = datetime(2026, 1, 2, 3, 4, 5)
        headers: dict[str, Any] = {
            "text": "a", "octets": b"\xff\x00", "long": 2**40, "bool": True,
            "decimal": Decimal("1.25"), "time": moment, "list": [1, ["a"]], "table": {"x": 1},
            "void": None,
        }  # fmt: skip
        properties: dict[str, Any] = {
            "content_encoding": "identity", "priority": 3, "correlation_id": "c", "reply_to": "r",
            "expiration": "60000", "message_id": "m", "timestamp": 1_700_000_000, "type": "t",
            "user_id": "guest", "app_id": "a",
        }  # fmt: skip
        with (
            LiveStream(news) as stream,
            pika.BlockingConnection(pika.URLParameters(warren.amqp_url)) as connection,
        ):
            send = connection.channel().basic_publish
            send("news", "k", b"", pika.BasicProperties(headers=headers, **properties))
            send("news", "k", b"x" * 2**20)
            found, long = stream.take(2)
        shown = {"octets": "/wA=", "decimal": "1.25", "time": "2026-01-02T03:04:05Z"}
        assert found["headers"] == headers | shown
        assert {name: found.get(name) for name in properties} == properties
        assert "content_type" not in found and found["body"] == ""
        assert long["body"] == "x" * 2**20

    def test_an_unknown_media_type_is_406(self, http: httpx.Client, news: str) -> None:
        assert http.get(news, headers={"accept": "image/png"}).status_code == 406

    def test_head_answers_the_media_type(self, http: httpx.Client, news: str) -> None:
        assert http.head(news).headers["content-type"] == "application/x-ndjson"


class TestKeys:
    def test_several_keys_are_joined(self, http: httpx.Client, news: str) -> None:
        with LiveStream(f"{news}?key=eu.%23&key=us.1") as stream:
            for key in ("eu.1", "asia.1", "us.2", "us.1"):
                publish(http, key, key)
            assert [one["body"] for one in stream.take(2)] == ["eu.1", "us.1"]

    def test_a_direct_exchange_needs_one(self, http: httpx.Client) -> None:
        http.put("/endpoint/x/jobs?amqp.exchange_type=direct").raise_for_status()
        answer = http.get("/stream/x/jobs")
        assert (answer.status_code, answer.json()["field"]) == (400, "key")

    @pytest.mark.parametrize(
        "kind", ["x-random", "x-local-random", "x-modulus-hash", "x-consistent-hash"]
    )
    def test_one_that_distributes_would_take_from_others(
        self, http: httpx.Client, kind: str
    ) -> None:
        http.put(f"/endpoint/x/of-{kind}?amqp.exchange_type={kind}").raise_for_status()
        answer = http.get(f"/stream/x/of-{kind}?key=1")
        assert (answer.status_code, answer.json()["field"]) == (400, "source")
        assert f"{kind} gives each message to one binding" in answer.json()["detail"]

    def test_an_exchange_of_another_virtual_host_is_read(self, http: httpx.Client) -> None:
        http.put("/api/vhosts/here", json={}).raise_for_status()
        rights = {"configure": ".*", "write": ".*", "read": ".*"}
        http.put("/api/permissions/here/guest", json=rights).raise_for_status()
        http.put("/here/endpoint/x/all").raise_for_status()
        with LiveStream(f"{http.base_url}/here/stream/x/all") as stream:
            http.post("/here/endpoint/x/all", content="here").raise_for_status()
            assert stream.next()["body"] == "here"


class TestGoingOn:
    def test_reading_resumes_after_the_cursor(self, http: httpx.Client, news: str) -> None:
        with LiveStream(news) as stream:
            publish(http, "a", "1")
            cursor = stream.next()["cursor"]
        publish(http, "a", "2")
        with LiveStream(f"{news}?cursor={cursor}") as again:
            publish(http, "a", "3")
            assert [one["body"] for one in again.take(2)] == ["2", "3"]

    def test_last_event_id_resumes_after_that_event(self, http: httpx.Client, news: str) -> None:
        with LiveStream(news, sse=True) as stream:
            publish(http, "a", "1")
            last = stream.next()["id"]
        publish(http, "a", "2")
        with LiveStream(news, sse=True, last_event_id=last) as again:
            assert again.next()["data"]["body"] == "2"

    def test_an_unknown_cursor_is_answered_with_a_gap(self, http: httpx.Client, news: str) -> None:
        with LiveStream(f"{news}?cursor=7@abc", sse=True) as stream:
            event = stream.next()
            assert (event["event"], event["data"]["from"]) == ("gap", "7@abc")
            assert event["id"] == event["data"]["to"].replace("0@", "first@")
            publish(http, "a", "new")
            new = stream.next()
        assert (new["id"], new["data"]["body"]) == (event["data"]["to"], "new")
        with LiveStream(news, sse=True, last_event_id=event["id"]) as again:
            assert again.next() == new

    def test_an_invalid_cursor_is_refused(self, http: httpx.Client, news: str) -> None:
        answer = http.get(f"{news}?cursor=yesterday")
        assert (answer.status_code, answer.json()["field"]) == (400, "cursor")


POLL = {"accept": "application/json"}


def burst(http: httpx.Client, source: str, count: int) -> None:
    """Publishes messages of 1 kB all at once."""
    body = f'"{"x" * 1_000}"\n' * count
    fields = {"content-type": "application/x-ndjson"}
    url = f"/endpoint/{source}?hub.mode=batch&hub.topic=a"
    http.post(url, content=body, headers=fields).raise_for_status()


def number(found: Item) -> int:
    """Of the message that the reader of a message, a gap or an answer has seen last."""
    return number_of(found["cursor"])


def number_of(cursor: str) -> int:
    number, _ = cursor.split("@")
    return -1 if number == "first" else int(number)


class TestLongPolls:
    def test_one_after_the_other(self, http: httpx.Client, news: str) -> None:
        none = http.get(f"{news}?wait_s=0", headers=POLL).json()
        assert none["messages"] == []
        publish(http, "a", "1")
        publish(http, "a", "2")
        found = http.get(f"{news}?cursor={none['cursor']}", headers=POLL).json()
        assert [one["body"] for one in found["messages"]] == ["1", "2"]
        again = http.get(f"{news}?wait_s=0&cursor={found['cursor']}", headers=POLL).json()
        assert again == {"messages": [], "cursor": found["cursor"]}

    def test_a_gap_is_the_first_message(self, http: httpx.Client, news: str) -> None:
        found = http.get(f"{news}?cursor=5@abc", headers=POLL).json()
        assert found["messages"][0]["event"] == "gap"
        assert found["cursor"] == found["messages"][0]["cursor"]

    def test_a_queue_is_polled_without_a_cursor(self, http: httpx.Client) -> None:
        http.put("/endpoint/q/polled").raise_for_status()
        http.post("/endpoint/q/polled", content="x").raise_for_status()
        found = http.get("/stream/q/polled", headers=POLL).json()
        assert ([one["body"] for one in found["messages"]], found["cursor"]) == (["x"], "")
        found = http.get("/stream/q/polled?wait_s=0", headers=POLL).json()
        assert found["messages"] == []

    def test_a_stream_is_polled_by_its_cursor(self, http: httpx.Client) -> None:
        http.put("/endpoint/q/kept?arg.x-queue-type=stream").raise_for_status()
        http.post("/endpoint/q/kept", content="x").raise_for_status()
        found = http.get("/stream/q/kept?cursor=first", headers=POLL).json()
        path = f"/stream/q/kept?wait_s=0&cursor={found['cursor']}"
        assert http.get(path, headers=POLL).json() == {
            "messages": [],
            "cursor": found["cursor"],
        }

    @pytest.mark.parametrize(("source", "misses"), [("x/news", True), ("q/bursts", False)])
    def test_a_burst(self, http: httpx.Client, news: str, source: str, misses: bool) -> None:
        """An answer has some 256 KiB, also while another reader keeps up. The next one goes on
        behind it; what an exchange has not kept so long is a gap."""
        http.put("/endpoint/q/bursts?arg.x-queue-type=stream").raise_for_status()
        url = f"{http.base_url}/stream/{source}"
        found = http.get(f"{url}?wait_s=0", headers=POLL).json()
        last, cursor = number(found) + 2_000, found["cursor"]
        with ThreadPoolExecutor(1) as pool, LiveStream(url) as other:
            waiting = pool.submit(http.get, f"{url}?cursor={cursor}", headers=POLL)
            metrics = "\nwarren_live_readers 2\n"
            wait_until(lambda: metrics in http.get("/metrics").text, 10, "a poll that waits")
            burst(http, source, 2_000)
            answers = [waiting.result().json()]
            assert number(other.take(2_000)[-1]) == last
        while number(answers[-1]) < last:
            cursor = answers[-1]["cursor"]
            answers.append(http.get(f"{url}?cursor={cursor}", headers=POLL).json())
        items = [item for answer in answers for item in answer["messages"]]
        gaps = {number(one): number_of(one["from"]) for one in items if "event" in one}
        for before, item in pairwise([found, *items]):
            assert number(before) == gaps.get(number(item), number(item) - 1)
        assert bool(gaps) is misses
        assert items[-1]["body"]
        http.delete("/endpoint/q/bursts")

    @pytest.mark.parametrize("wait_s", ["61", "-1", "soon"])
    def test_bad_waiting_times_are_refused(
        self, http: httpx.Client, news: str, wait_s: str
    ) -> None:
        assert http.get(f"{news}?wait_s={wait_s}", headers=POLL).status_code == 400

    def test_waiting_is_for_long_polls(self, http: httpx.Client, news: str) -> None:
        assert http.get(f"{news}?wait_s=1").status_code == 400


class TestRights:
    def stream(self, url: str, user: tuple[str, str]) -> LiveStream:
        return LiveStream(url, authorization=basic(*user))

    def test_credentials_are_needed(self, http: httpx.Client, news: str) -> None:
        assert httpx.get(news).status_code == 401

    def test_the_permission_to_read_is_needed(
        self, http: httpx.Client, news: str, ada: tuple[str, str]
    ) -> None:
        permit(http, "else")
        assert httpx.get(news, auth=ada).status_code == 403

    def test_not_to_bind_a_key(self, http: httpx.Client, news: str, ada: tuple[str, str]) -> None:
        topics = {"exchange": "news", "write": "", "read": "^eu"}
        http.put("/api/topic-permissions/%2F/ada", json=topics).raise_for_status()
        assert httpx.get(f"{news}?key=us.1", auth=ada).status_code == 403
        with self.stream(f"{news}?key=eu.1", ada) as stream:
            publish(http, "eu.1", "hers")
            assert stream.next()["body"] == "hers"

    def test_a_reader_ends_with_its_permission(
        self, http: httpx.Client, news: str, ada: tuple[str, str]
    ) -> None:
        with self.stream(news, ada) as stream, LiveStream(news) as other:
            permit(http, "else")
            (end,) = stream.rest()
            assert (end["event"], end["problem"]["status"]) == ("error", 403)
            publish(http, "a", "goes on")
            assert other.next()["body"] == "goes on"

    def test_the_user_is_deleted(self, http: httpx.Client, news: str, ada: tuple[str, str]) -> None:
        with self.stream(news, ada) as stream:
            http.delete("/api/users/ada").raise_for_status()
            (end,) = stream.rest()
            assert end["problem"]["status"] == 403


class TestEnd:
    def test_a_reader_ends_with_its_exchange(self, http: httpx.Client, news: str) -> None:
        with LiveStream(news) as stream:
            http.delete("/endpoint/x/news").raise_for_status()
            (end,) = stream.rest()
        assert end["event"] == "error"
        assert end["problem"]["detail"] == "exchange 'news' in vhost '/' was deleted"

    def test_a_reader_ends_with_its_virtual_host(self, http: httpx.Client) -> None:
        http.put("/api/vhosts/gone", json={}).raise_for_status()
        rights = {"configure": ".*", "write": ".*", "read": ".*"}
        http.put("/api/permissions/gone/guest", json=rights).raise_for_status()
        with LiveStream(f"{http.base_url}/gone/stream/x/amq.fanout") as stream:
            http.delete("/api/vhosts/gone").raise_for_status()
            (end,) = stream.rest()
        assert end["event"] == "error"

    def test_readers_end_when_the_server_stops(self) -> None:
        with (
            WarrenServer() as server,
            LiveStream(f"{server.http_url}/stream/x/amq.fanout") as stream,
        ):
            assert server.stop() == 0
            (end,) = stream.rest()
        assert (end["event"], end["problem"]["status"]) == ("error", 503)


class TestRefusals:
    def test_a_missing_exchange_is_404(self, http: httpx.Client) -> None:
        assert http.get("/stream/x/nothing").status_code == 404

    def test_other_methods_are_refused(self, http: httpx.Client, news: str) -> None:
        assert http.post(news).headers["allow"] == "GET, HEAD"

    @pytest.mark.parametrize("query", ["keys=a", "cursor=1&cursor=2", "key=" + "k" * 256])
    def test_bad_parameters_are_refused(self, http: httpx.Client, news: str, query: str) -> None:
        assert http.get(f"{news}?{query}").status_code == 400

    def test_ten_thousand_keys_are_refused(self, http: httpx.Client, news: str) -> None:
        assert http.get(f"{news}?{'&'.join(['key=k'] * 10_000)}").status_code == 431

    def test_http_1_0_is_refused(
        self, warren: WarrenServer, news: str, ada: tuple[str, str]
    ) -> None:
        lines = [
            "GET /stream/x/news HTTP/1.0",
            "Host: localhost",
            f"Authorization: {basic(*ada)}",
        ]
        with create_connection((warren.host, warren.http_port)) as socket:
            socket.sendall("\r\n".join([*lines, "", ""]).encode())
            assert b" 505 " in socket.recv(4096)


class TestSlowReaders:
    def test_is_cut_off_alone(self, http: httpx.Client, news: str) -> None:
        """It has a reason and a cursor; who reads gets everything."""
        body = "x" * 100_000
        with LiveStream(news) as slow, LiveStream(news) as quick:
            for number in range(120):
                publish(http, "a", f"{number} {body}")
                assert quick.next()["body"].startswith(f"{number} ")
            *found, end = slow.rest()
            assert (end["event"], end["problem"]["status"]) == ("error", 408)
        numbers = [int(one["body"].split()[0]) for one in found]
        assert numbers == list(range(len(numbers)))
        assert len(numbers) < 120
        with LiveStream(f"{news}?cursor={found[-1]['cursor']}") as again:
            gap = again.next()
            assert gap["event"] == "gap" or gap["body"].startswith(f"{len(numbers)} ")

    def test_of_a_stream_misses_nothing(self, http: httpx.Client) -> None:
        http.put("/endpoint/q/large?arg.x-queue-type=stream").raise_for_status()
        body = "x" * 100_000
        with LiveStream(f"{http.base_url}/stream/q/large?cursor=first") as slow:
            for number in range(120):
                http.post("/endpoint/q/large", content=f"{number} {body}").raise_for_status()
            found = slow.take(120)
        assert [int(one["body"].split()[0]) for one in found] == list(range(120))
        http.delete("/endpoint/q/large")

    def test_of_a_queue_leaves_messages_there(self, http: httpx.Client) -> None:
        http.put("/endpoint/q/pile").raise_for_status()
        body = "x" * 100_000
        with LiveStream(f"{http.base_url}/stream/q/pile"):
            for number in range(120):
                http.post("/endpoint/q/pile", content=f"{number} {body}").raise_for_status()
        with LiveStream(f"{http.base_url}/stream/q/pile") as other:
            assert other.next()["body"].endswith("x")
        http.delete("/endpoint/q/pile")
