"""`/transactions`: staged rows are published by one commit, once; also over kill -9."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.app.support import problem
from tests.support.server import WarrenServer

from .queues import Queues

pytestmark = [pytest.mark.promise, pytest.mark.differs("RabbitMQ has no transactions over HTTP")]

AUTH = ("guest", "guest")
ROWS = "application/vnd.warren.rows"
PERSISTENT = b"\x10\x00\x02"


def rows(*messages: tuple[str, bytes], properties: bytes = PERSISTENT) -> bytes:
    encoded = b"".join(
        struct.pack("<HII", len(key), len(properties), len(body)) + key.encode() + properties + body
        for key, body in messages
    )
    return b"WSR1" + struct.pack("<I", len(messages)) + encoded


class Writer:
    """A task and its driver: what a data pipeline does."""

    def __init__(
        self,
        server: WarrenServer,
        exchange: str,
        query: str = "query",
        user: tuple[str, str] = AUTH,
    ) -> None:
        self._user = user
        self._url = f"{server.http_url}/transactions/{query}"
        self._exchange = exchange

    def stage(self, number: int, piece: tuple[int, int, int], data: bytes) -> httpx.Response:
        path = "/".join(map(str, (number, *piece)))
        return self._request("PUT", path, content=data, headers={"Content-Type": ROWS})

    def commit(self, number: int, *attempts: tuple[int, int, int]) -> httpx.Response:
        return self._request("POST", str(number), json={"attempts": attempts})

    def abort(self, number: int) -> httpx.Response:
        return self._request("DELETE", str(number))

    def forget(self) -> httpx.Response:
        return self._request("DELETE", "")

    def _request(self, method: str, path: str, **content: Any) -> httpx.Response:
        return httpx.request(
            method, f"{self._url}/{path}".rstrip("/"), params={"exchange": self._exchange},
            auth=self._user, timeout=30, **content,
        )  # fmt: skip


@pytest.fixture
def writer(warren: WarrenServer, name: str) -> Writer:
    """Writes to a topic exchange from which the queue of the same name gets everything."""
    queues = Queues(warren.amqp_url)
    with queues.channel() as channel:
        channel.exchange_declare(name, "topic", durable=True)
    queues.bind(name, name)
    return Writer(warren, name)


def bodies(server: WarrenServer, queue: str) -> list[tuple[str, bytes]]:
    return [(message.key, message.body) for message in Queues(server.amqp_url).take(queue)]


def test_attempts_are_published_in_their_order(
    warren: WarrenServer, writer: Writer, name: str
) -> None:
    assert writer.stage(0, (1, 5, 0), rows(("c", b"3"))).status_code == 201
    assert writer.stage(0, (0, 3, 0), rows(("a", b"1"))).json() == {"rows": 1}
    writer.stage(0, (0, 3, 1), rows(("b", b"2"), ("b", b"2b")))
    writer.stage(0, (0, 4, 0), rows(("x", b"of an attempt that lost")))
    answer = writer.commit(0, (0, 3, 2), (1, 5, 1))
    assert answer.json() == {"published": 4, "unrouted": 0, "replayed": False, "last": 0}
    assert bodies(warren, name) == [("a", b"1"), ("b", b"2"), ("b", b"2b"), ("c", b"3")]


def test_a_repeated_commit_publishes_nothing(
    warren: WarrenServer, writer: Writer, name: str
) -> None:
    for _ in range(2):
        writer.stage(7, (0, 0, 0), rows(("a", b"1")))
        answer = writer.commit(7, (0, 0, 1))
    assert answer.json() == {"published": 1, "unrouted": 0, "replayed": True, "last": 7}
    earlier = writer.commit(3).json()
    assert earlier == {"published": None, "unrouted": 0, "replayed": True, "last": 7}
    assert len(bodies(warren, name)) == 1
    other = Writer(warren, name, "other%20query")
    other.stage(7, (0, 0, 0), rows(("a", b"2")))
    assert not other.commit(7, (0, 0, 1)).json()["replayed"]


def test_forgotten_query_starts_again(writer: Writer) -> None:
    for _ in range(2):
        writer.stage(7, (0, 0, 0), rows(("a", b"1")))
        assert not writer.commit(7, (0, 0, 1)).json()["replayed"]
        assert writer.forget().status_code == 204


def test_commit_publishes_all_or_nothing(warren: WarrenServer, writer: Writer, name: str) -> None:
    writer.stage(0, (0, 0, 0), rows(("a", b"1")))
    missing = writer.commit(0, (0, 0, 1), (1, 2, 1))
    assert "piece 0 of attempt 2 of partition 1 is not staged" in problem(missing, 409)
    writer.stage(0, (1, 2, 0), rows(("a", b"2"), properties=b"\xff\xff"))
    assert "property" in problem(writer.commit(0, (0, 0, 1), (1, 2, 1)), 400)
    table = b"\1hS" + struct.pack(">I", 140_000) + bytes(140_000)
    headers = b"\x20\x00" + struct.pack(">I", len(table)) + table
    writer.stage(0, (1, 2, 0), rows(("a", b"2"), properties=headers))
    assert "fit a content header frame" in problem(writer.commit(0, (0, 0, 1), (1, 2, 1)), 400)
    writer.stage(0, (1, 2, 0), rows(("a", b"2"))[:-1])
    assert "the rows need" in problem(writer.commit(0, (0, 0, 1), (1, 2, 1)), 400)
    assert bodies(warren, name) == []
    writer.stage(0, (1, 2, 0), rows(("a", b"2")))
    assert writer.commit(0, (0, 0, 1), (1, 2, 1)).json()["published"] == 2


def test_a_full_queue_refuses_the_whole(warren: WarrenServer, name: str) -> None:
    with Queues(warren.amqp_url).channel() as channel:
        arguments = {"x-max-length": 2, "x-overflow": "reject-publish"}
        channel.queue_declare(name, durable=True, arguments=arguments)
    writer = Writer(warren, "")
    writer.stage(0, (0, 0, 0), rows((name, b"1"), (name, b"2"), (name, b"3")))
    answer = writer.commit(0, (0, 0, 1))
    assert f"queue '{name}'" in problem(answer, 503) and answer.headers["Retry-After"]
    writer.stage(0, (0, 0, 0), rows((name, b"1"), (name, b"2"), ("nowhere", b"")))
    assert writer.commit(0, (0, 0, 1)).json()["unrouted"] == 1
    assert len(bodies(warren, name)) == 2


def test_more_than_fits_is_refused() -> None:
    with WarrenServer(env={"WARREN_MAX_TRANSACTION_BYTES": "100000"}) as server:
        writer = Writer(server, "amq.topic")
        writer.stage(0, (0, 0, 0), rows(*[("a", b"1")] * 1_000))
        refusal = problem(writer.commit(0, (0, 0, 1)), 413)
        assert "max_transaction_bytes, which is 100000 bytes of memory, after 500 rows" in refusal
        writer.stage(0, (0, 1, 0), rows(*[("a", b"1")] * 300))
        assert writer.commit(0, (0, 1, 1)).json()["published"] == 300


def test_aborted_transaction_is_dropped(writer: Writer) -> None:
    writer.stage(0, (0, 0, 0), rows(("a", b"1")))
    assert writer.abort(0).status_code == 204
    assert problem(writer.commit(0, (0, 0, 1)), 409)


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("/transactions/q/0?exchange=amq.direct", {"attempts": [[0]]}, 400, "attempts"),
        ("/transactions/q/0?exchange=amq.direct", {"attempts": [[0, 0, -1]]}, 400, ">= 0"),
        (
            "/transactions/q/0?exchange=amq.direct",
            {"attempts": [[3, 0, 1], [3, 1, 1]]},
            400,
            "partition 3 is there twice",
        ),
        ("/transactions/q/x?exchange=amq.direct", {"attempts": []}, 400, "number 'x'"),
        (
            f"/transactions/q/{'0' * 20}{'9' * 30}?exchange=amq.direct",
            {"attempts": []},
            400,
            "a number from 0",
        ),
        ("/transactions/%FF/0?exchange=amq.direct", {"attempts": []}, 400, "not UTF-8"),
        ("/transactions/q/0", {"attempts": []}, 400, "'exchange' is missing"),
        ("/transactions/q/0?exchange=nowhere", {"attempts": []}, 200, ""),
        (f"/transactions/{'q' * 201}/0?exchange=amq.direct", {"attempts": []}, 400, "200 bytes"),
        ("/transactions/q/0?exchange=amq.direct&vhost=no", {"attempts": []}, 404, "no vhost 'no'"),
    ],
)
def test_bad_requests(
    warren: WarrenServer, path: str, body: object, status: int, words: str
) -> None:
    answer = httpx.post(warren.http_url + path, auth=AUTH, json=body)
    if status == 200:
        assert answer.json()["published"] == 0
    else:
        assert words in problem(answer, status)


def test_rights_are_those_of_every_publish(warren: WarrenServer, name: str) -> None:
    """Write permission on the exchange, and the topic permissions of each row's key."""
    http = httpx.Client(base_url=warren.http_url, auth=AUTH)
    with http, Queues(warren.amqp_url).channel() as channel:
        channel.exchange_declare(name, "topic", durable=True)
        http.put(f"/api/users/{name}", json={"password": "secret-of-a-test", "tags": ""})
        rights = {"configure": "", "write": f"^{name}$", "read": ""}
        http.put(f"/api/permissions/%2F/{name}", json=rights)
        topics = {"exchange": name, "write": "^eu[.]", "read": ""}
        http.put(f"/api/topic-permissions/%2F/{name}", json=topics)
    user = (name, "secret-of-a-test")
    other = Writer(warren, "amq.topic", user=user).stage(0, (0, 0, 0), rows(("eu.a", b"1")))
    assert "refused" in problem(other, 403)
    writer = Writer(warren, name, user=user)
    writer.stage(0, (0, 0, 0), rows(("eu.a", b"1"), ("us.b", b"2")))
    assert "us.b" in problem(writer.commit(0, (0, 0, 1)), 403)
    writer.stage(0, (0, 0, 0), rows(("eu.a", b"1")))
    assert writer.commit(0, (0, 0, 1)).json()["published"] == 1


def test_a_token_for_the_exchange_is_enough(
    warren: WarrenServer, writer: Writer, name: str
) -> None:
    scopes = [{"write": f"x/{name}"}]
    made = httpx.post(
        f"{warren.http_url}/api/hub/tokens", json={"name": "job", "scopes": scopes}, auth=AUTH
    ).json()
    bearer = {"Authorization": f"Bearer {made['token']}"}
    url = f"{warren.http_url}/transactions/by-token/0"
    for exchange, status in ((name, 201), ("amq.topic", 403)):
        staged = httpx.put(
            f"{url}/0/0/0", params={"exchange": exchange}, content=rows(("a", b"1")),
            headers={"Content-Type": ROWS, **bearer},
        )  # fmt: skip
        assert staged.status_code == status, staged.text
    committed = httpx.post(
        url, params={"exchange": name}, json={"attempts": [(0, 0, 1)]}, headers=bearer
    )
    assert committed.json()["published"] == 1 and bodies(warren, name) == [("a", b"1")]


def test_rows_of_another_format(warren: WarrenServer) -> None:
    url = f"{warren.http_url}/transactions/q/0/0/0/0?exchange=amq.direct"
    assert problem(httpx.put(url, auth=AUTH, content=b"{}"), 415)
    wrong = httpx.put(url, auth=AUTH, content=b"{}", headers={"Content-Type": ROWS})
    assert "WSR1" in problem(wrong, 400)


def test_staged_and_committed_rows_survive_a_kill(tmp_path: Path) -> None:
    """What was staged and what was committed are both known afterwards."""
    with WarrenServer(data=tmp_path) as server:
        with Queues(server.amqp_url).channel() as channel:
            channel.queue_declare("work", durable=True)
        writer = Writer(server, "")
        writer.stage(0, (0, 0, 0), rows(("work", b"1")))
        assert writer.commit(0, (0, 0, 1)).is_success
        writer.stage(1, (0, 1, 0), rows(("work", b"2")))
        server.kill()
    with WarrenServer(data=tmp_path) as server:
        writer = Writer(server, "")
        assert writer.commit(0, (0, 0, 1)).json()["replayed"]
        assert json.loads(writer.commit(1, (0, 1, 1)).text)["published"] == 1
        assert bodies(server, "work") == [("work", b"1"), ("work", b"2")]
