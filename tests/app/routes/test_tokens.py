"""Tokens with scopes, on a real server: made, used, refused, revoked, and in no log."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pika
import pytest
from pika.exceptions import (
    ChannelClosedByBroker,
    ConnectionClosedByBroker,
    ProbableAuthenticationError,
)

from tests.support.http import Callback
from tests.support.ports import accepts
from tests.support.process import wait_until
from tests.support.server import WarrenServer
from tests.support.streams import LiveSocket, LiveStream

READ: dict[str, str] = {"read": "x/news"}
WRITE: dict[str, str] = {"write": "x/news"}
PATH = "/api/hub/tokens"


@pytest.fixture(scope="module")
def warren() -> Iterator[WarrenServer]:
    """A server with an access log."""
    with WarrenServer(args=["--access-log"]) as server:
        yield server


@pytest.fixture
def http(warren: WarrenServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=warren.http_url, auth=("guest", "guest")) as client:
        client.put("/endpoint/x/news").raise_for_status()
        client.put("/endpoint/q/in").raise_for_status()
        yield client


@pytest.fixture
def page(warren: WarrenServer) -> Iterator[httpx.Client]:
    """Without credentials of its own."""
    with httpx.Client(base_url=warren.http_url) as client:
        yield client


def make(http: httpx.Client, *scopes: dict[str, str], **more: Any) -> dict[str, Any]:
    answer = http.post(PATH, json={"name": "page", "scopes": scopes, **more})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


class TestMaking:
    def test_a_token_is_shown_once(self, http: httpx.Client) -> None:
        made = make(http, READ, {"write": "q/in", "vhost": "/"}, expires_in_s=60)
        token = made.pop("token")
        assert made["scopes"] == [
            {"read": "x/news", "vhost": "/"},
            {"write": "q/in", "vhost": "/"},
        ]
        assert http.get(f"{PATH}/{made['id']}").json() == made
        assert made in http.get(PATH).json()
        assert token not in http.get(PATH).text

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            ({"scopes": []}, "scopes"),
            ({"scopes": [READ] * 21}, "scopes"),
            ({"scopes": [{"read": "news"}]}, "scopes"),
            ({"scopes": [{"read": "x/"}]}, "scopes"),
            ({"scopes": [{"read": "x/a", "write": "x/a"}]}, "scopes"),
            ({"scopes": [{"configure": "x/a"}]}, "scopes"),
            ({"scopes": [{"tunnel": "a", "vhost": "/"}]}, "scopes"),
            ({"scopes": [{"tunnel": "n" * 64}]}, "scopes"),
            ({"scopes": [{"manage": "all"}]}, "scopes"),
            ({"scopes": [{"manage": "read", "path": "/users"}]}, "scopes"),
            ({"scopes": [{"manage": "read", "vhost": 1}]}, "scopes"),
            ({"scopes": [{"read": "x/" + "n" * 256}]}, "scopes"),
            ({"scopes": [READ], "expires_in_s": 0}, "expires_in_s"),
            ({"scopes": [READ], "expires_in_s": 365 * 86_400 + 1}, "expires_in_s"),
            ({"scopes": [READ], "name": "n" * 201}, "name"),
        ],
    )
    def test_bad_requests_are_refused(
        self, http: httpx.Client, body: dict[str, Any], field: str
    ) -> None:
        answer = http.post(PATH, json={"name": "page", **body})
        assert (answer.status_code, answer.json().get("field")) == (400, field)

    def test_users_create_tokens_within_their_rights_and_see_their_own(
        self, http: httpx.Client
    ) -> None:
        http.put("/api/users/eve", json={"password": "eve has a password", "tags": "management"})
        rights = {"configure": "", "write": "", "read": "news"}
        http.put("/api/permissions/%2F/eve", json=rights).raise_for_status()
        with httpx.Client(base_url=http.base_url, auth=("eve", "eve has a password")) as eve:
            made = make(eve, READ)
            refused = eve.post(PATH, json={"name": "page", "scopes": [WRITE]})
            assert refused.status_code == 403
            assert [one["id"] for one in eve.get(PATH).json()] == [made["id"]]
        http.delete("/api/users/eve").raise_for_status()
        assert made["id"] not in http.get(PATH).text

    def test_the_number_of_tokens_is_limited(self, http: httpx.Client) -> None:
        http.put("/api/users/max", json={"password": "max has a password", "tags": "management"})
        rights = {"configure": "", "write": "", "read": ".*"}
        http.put("/api/permissions/%2F/max", json=rights).raise_for_status()
        with httpx.Client(base_url=http.base_url, auth=("max", "max has a password")) as ada:
            for _ in range(100):
                made = make(ada, READ)
            refused = ada.post(PATH, json={"name": "page", "scopes": [READ]})
            assert (refused.status_code, refused.json()["limit"]) == (429, "100")
            ada.delete(f"{PATH}/{made['id']}").raise_for_status()
            make(ada, READ)


class TestUsing:
    def test_a_token_opens_a_stream_by_header_and_query(
        self, http: httpx.Client, page: httpx.Client
    ) -> None:
        token = make(http, READ)["token"]
        url = f"{page.base_url}/stream/x/news"
        with (
            LiveStream(url, authorization=f"Bearer {token}") as by_header,
            LiveStream(f"{url}?token={token}", sse=True, authorization="") as by_query,
        ):
            http.post("/endpoint/x/news", content="x").raise_for_status()
            assert by_header.next()["body"] == by_query.next()["data"]["body"] == "x"

    def test_a_scope_may_be_a_prefix(self, http: httpx.Client, page: httpx.Client) -> None:
        token = make(http, {"write": "x/ne*"})["token"]
        assert page.post("/endpoint/x/news", headers=bearer(token)).status_code == 202
        assert page.post("/endpoint/x/amq.fanout", headers=bearer(token)).status_code == 403

    def test_a_token_publishes_from_any_origin(
        self, http: httpx.Client, page: httpx.Client
    ) -> None:
        token = make(http, WRITE)["token"]
        assert page.post("/endpoint/x/news", headers=bearer(token)).status_code == 202
        # A page of another site, which a stored password would be refused to.
        headers = {**bearer(token), "origin": "https://page.example"}
        assert page.post("/endpoint/x/news", headers=headers).status_code == 202

    def test_publish_over_a_websocket(self, http: httpx.Client) -> None:
        token = make(http, WRITE)["token"]
        url = f"{http.base_url}/stream/x/news?token={token}"
        with LiveSocket(url) as reading, LiveStream(f"{http.base_url}/stream/x/news") as other:
            assert reading.status == 403
            with LiveSocket(f"{url}&mode=publish") as socket:
                socket.send({"publish": {"body": "x"}, "ref": 1})
                assert socket.next() == {"confirmed": 1}
                assert other.next()["body"] == "x"
                (found,) = [one for one in http.get(PATH).json() if one["last_used_at"]][-1:]
                http.delete(f"{PATH}/{found['id']}").raise_for_status()
                assert socket.next()["problem"]["detail"] == "token 'page' was revoked"

    @pytest.mark.parametrize("query", ["key=a", "cursor=1", "ack=manual"])
    def test_a_websocket_for_publishing_reads_nothing(self, http: httpx.Client, query: str) -> None:
        url = f"{http.base_url}/stream/x/news?mode=publish"
        assert http.get(url).status_code == 400
        with LiveSocket(f"{url}&{query}") as refused:
            assert refused.status == 400
        token = make(http, READ)["token"]
        with LiveSocket(f"{url}&token={token}") as refused:
            assert refused.status == 403

    @pytest.mark.parametrize(
        ("method", "path"),
        [
            ("GET", "/stream/x/news"),
            ("POST", "/endpoint/q/in"),
            ("PUT", "/endpoint/x/news2"),
            ("DELETE", "/endpoint/x/news"),
            ("POST", "/subscribe/x/news?hub.mode=unsubscribe&hub.callback=a&hub.topic=b"),
            ("POST", "/subscribe/x/news?hub.mode=subscribe&hub.callback=a&hub.topic=b"),
        ],
    )
    def test_requests_beyond_the_scope_are_refused(
        self, http: httpx.Client, page: httpx.Client, method: str, path: str
    ) -> None:
        token = make(http, WRITE)["token"]
        form = {"content-type": "application/x-www-form-urlencoded"}
        answer = page.request(method, path, headers={**bearer(token), **form})
        assert answer.status_code == (401 if method in ("PUT", "DELETE") else 403)

    def test_a_token_unsubscribes_at_the_hub_if_it_may_read(
        self, http: httpx.Client, page: httpx.Client
    ) -> None:
        form = {"hub.mode": "unsubscribe", "hub.callback": "http://localhost:1/"}
        form["hub.topic"] = f"{page.base_url}/endpoint/x/news"
        for scope, status in ((WRITE, 403), (READ, 202)):
            token = make(http, scope)["token"]
            answer = page.post("/hub", data=form, headers=bearer(token))
            assert answer.status_code == status, answer.text

    @pytest.mark.parametrize("path", ["/api/whoami", PATH, "/subscriptions"])
    def test_other_paths_refuse_a_token(
        self, http: httpx.Client, page: httpx.Client, path: str
    ) -> None:
        token = make(http, READ)["token"]
        refused = page.get(path, headers=bearer(token))
        assert refused.status_code == (403 if path.startswith("/api/") else 401)
        assert page.get(f"{path}?token={token}").status_code == 401

    def test_an_unknown_token_is_401(self, http: httpx.Client, page: httpx.Client) -> None:
        answer = page.get("/stream/x/news", headers=bearer("warren_wrong"))
        assert answer.status_code == 401
        assert 'error="invalid_token"' in answer.headers["www-authenticate"]

    def test_after_a_restart_and_in_no_log(self, page: httpx.Client) -> None:
        with WarrenServer(args=["--access-log", "--log-level", "debug"]) as server:
            with httpx.Client(base_url=server.http_url, auth=("guest", "guest")) as http:
                http.put("/endpoint/x/news").raise_for_status()
                token = make(http, READ)["token"]
            output = server.output()
            server.stop()
            with ThreadPoolExecutor() as thread:
                early = thread.submit(first_login, server, token)
                server.start()
                early.result().close()
            url = f"{server.http_url}/stream/x/news?token={token}"
            LiveStream(url, authorization="").close()
            httpx.get(f"{url}&token=2")
            httpx.get(f"{server.http_url}/streams?token={token}")
            stored = b"".join(file.read_bytes() for file in server.data.rglob("*.sqlite3*"))
            server.stop()
            output += server.output()
        assert "/stream/x/news" in output
        assert token not in output
        assert token.encode() not in stored


def first_login(server: WarrenServer, token: str) -> pika.BlockingConnection:
    """Logs in as soon as the port is open, long before the server is ready."""
    wait_until(lambda: accepts(server.amqp_port), 60, "an open port")
    credentials = pika.PlainCredentials("guest", token)
    parameters = pika.ConnectionParameters(
        server.host, server.amqp_port, credentials=credentials, socket_timeout=60, stack_timeout=60
    )
    return pika.BlockingConnection(parameters)


def test_a_token_is_a_password_of_amqp_clients(http: httpx.Client, warren: WarrenServer) -> None:
    made = make(http, WRITE, {"read": "q/in"})
    credentials = pika.PlainCredentials("guest", made["token"])
    parameters = pika.ConnectionParameters(warren.host, warren.amqp_port, credentials=credentials)
    connection = pika.BlockingConnection(parameters)
    channel = connection.channel()
    channel.basic_publish("news", "eu", b"permitted")
    channel.basic_consume("in", lambda *_: None)
    refused = connection.channel()
    with pytest.raises(ChannelClosedByBroker, match="no scope to configure queue 'mine'"):
        refused.queue_declare("mine")
    http.delete(f"{PATH}/{made['id']}").raise_for_status()

    def serve() -> None:
        while True:
            connection.process_data_events(30)

    with pytest.raises(ConnectionClosedByBroker, match="token 'page' was revoked"):
        serve()
    with pytest.raises(ProbableAuthenticationError):
        pika.BlockingConnection(parameters)


def test_a_subscription_lasts_no_longer_than_its_token(
    http: httpx.Client, page: httpx.Client, callback: Callback
) -> None:
    page.headers.update(bearer(make(http, READ, expires_in_s=300)["token"]))
    form = {"hub.mode": "subscribe", "hub.callback": callback.url, "hub.topic": ""}
    for path, topic in (("/subscribe/x/news", ""), ("/hub", f"{http.base_url}/endpoint/x/news")):
        form |= {"hub.topic": topic, "hub.lease_seconds": "86400"}
        page.post(path, data=form).raise_for_status()
    for asked in callback.wait_verifications(2):
        assert 200 < int(asked.query["hub.lease_seconds"]) <= 300


class TestManaging:
    @pytest.fixture(autouse=True)
    def _another_virtual_host(self, http: httpx.Client) -> None:
        http.put("/api/vhosts/other", json={}).raise_for_status()

    def test_a_token_manages_the_paths_of_its_scopes(
        self, http: httpx.Client, page: httpx.Client
    ) -> None:
        page.headers.update(
            bearer(
                make(http, {"manage": "read"}, {"manage": "write", "path": "users/ci-*"})["token"]
            )
        )
        assert page.get("/api/users").status_code == 200
        assert page.put("/api/users/ci-1", json={"tags": ""}).status_code == 201
        refused = page.put("/api/users/ann", json={"tags": ""})
        assert refused.status_code == 403
        assert refused.json()["reason"] == (
            "token 'page' has no scope for PUT /api/users/ann: it needs "
            '{"manage": "write", "path": "users/ann"}, where * at the end stands for any end'
        )
        [entry] = http.get("/api/warren/audit?object=/api/users/ci-1").json()["entries"]
        assert (entry["user"], entry["token"]) == ("guest", "page")

    def test_elsewhere_it_has_no_tags(self, http: httpx.Client, page: httpx.Client) -> None:
        page.headers.update(bearer(make(http, {"manage": "write"})["token"]))
        assert page.get("/api/vhosts").status_code == 200
        assert page.get("/subscriptions").status_code == 401
        assert page.post("/endpoint/x/news").status_code == 403

    def test_a_scope_may_be_for_one_virtual_host(
        self, http: httpx.Client, page: httpx.Client
    ) -> None:
        scope = {"manage": "write", "vhost": "/"}
        page.headers.update(bearer(make(http, scope)["token"]))
        assert [one["name"] for one in page.get("/api/vhosts").json()] == ["/"]
        assert page.get("/api/policies/other").status_code == 403
        policy = {"pattern": "^in$", "definition": {"max-length": 5}}
        assert page.put("/api/policies/%2F/short", json=policy).status_code == 201
        assert page.get("/api/users").status_code == 403

    def test_it_makes_no_credentials(self, http: httpx.Client, page: httpx.Client) -> None:
        made = make(http, {"manage": "write"})
        page.headers.update(bearer(made["token"]))
        assert made["id"] in page.get(PATH).text
        paths = (PATH, "/api/hub/capabilities", "/api/hub/outputs/a/tokens")
        answers = [page.post(path, json={}) for path in paths]
        answers.append(page.delete(f"{PATH}/{made['id']}"))
        assert ["create or revoke tokens" in one.text for one in answers] == [True] * 4

    def test_it_has_the_tags_that_its_owner_has_now(
        self, http: httpx.Client, page: httpx.Client
    ) -> None:
        http.put("/api/users/kim", json={"password": "kim has a password", "tags": "monitoring"})
        with httpx.Client(base_url=http.base_url, auth=("kim", "kim has a password")) as kim:
            page.headers.update(bearer(make(kim, {"manage": "read"})["token"]))
        assert page.get("/api/health/checks/storage").status_code == 200
        http.put("/api/users/kim", json={"password": "kim has a password", "tags": "management"})
        assert page.get("/api/health/checks/storage").status_code == 403
        assert page.get("/api/whoami").json() == {"name": "kim", "tags": ["management"]}
        http.delete("/api/users/kim").raise_for_status()
        assert page.get("/api/whoami").status_code == 401

    def test_when_it_was_used(self, http: httpx.Client, page: httpx.Client) -> None:
        made = make(http, {"manage": "read"})
        assert made["last_used_at"] is None
        page.get("/api/whoami", headers=bearer(made["token"])).raise_for_status()
        assert http.get(f"{PATH}/{made['id']}").json()["last_used_at"] >= made["made_at"]


class TestTunnels:
    def test_labels_of_its_scopes_are_enrolled(
        self, http: httpx.Client, page: httpx.Client
    ) -> None:
        page.headers.update(bearer(make(http, READ, {"tunnel": "Page-*"})["token"]))
        assert page.post("/reversehttp", data={"name": "PAGE-1"}).status_code == 201
        refused = page.post("/reversehttp", data={"name": "ada"})
        assert refused.status_code == 403
        assert "no scope to enrol the label 'ada'" in refused.text


class TestTheEnd:
    @pytest.fixture
    def made(self, http: httpx.Client) -> dict[str, Any]:
        return make(http, READ)

    def stream(self, http: httpx.Client, token: str) -> LiveStream:
        return LiveStream(f"{http.base_url}/stream/x/news?token={token}", authorization="")

    def test_a_revoked_token_ends_its_streams(
        self, http: httpx.Client, made: dict[str, Any]
    ) -> None:
        with self.stream(http, made["token"]) as stream:
            http.delete(f"{PATH}/{made['id']}").raise_for_status()
            (end,) = stream.rest()
        assert (end["event"], end["problem"]["status"]) == ("error", 401)
        assert end["problem"]["detail"] == "token 'page' was revoked"
        answer = httpx.get(f"{http.base_url}/stream/x/news", headers=bearer(made["token"]))
        assert answer.status_code == 401

    def test_an_expired_token_ends_its_streams(self, http: httpx.Client) -> None:
        token = make(http, READ, WRITE, expires_in_s=1)["token"]
        with self.stream(http, token) as stream:
            (end,) = stream.rest()
        assert end["problem"]["detail"] == "token 'page' has expired"
        url = f"{http.base_url}/endpoint/x/news"
        assert httpx.post(url, headers=bearer(token)).status_code == 401

    def test_the_owner_loses_the_right(self, http: httpx.Client) -> None:
        http.put("/api/users/bob", json={"password": "bob has a password", "tags": "management"})
        rights = {"configure": "", "write": "", "read": ".*"}
        http.put("/api/permissions/%2F/bob", json=rights).raise_for_status()
        with httpx.Client(base_url=http.base_url, auth=("bob", "bob has a password")) as bob:
            token = make(bob, READ)["token"]
        with self.stream(http, token) as stream:
            http.put("/api/permissions/%2F/bob", json={**rights, "read": ""}).raise_for_status()
            (end,) = stream.rest()
        assert end["problem"]["status"] == 403

    def test_the_virtual_host_is_deleted(self, http: httpx.Client) -> None:
        http.put("/api/vhosts/there", json={}).raise_for_status()
        rights = {"configure": ".*", "write": ".*", "read": ".*"}
        http.put("/api/permissions/there/guest", json=rights).raise_for_status()
        made = make(http, {"read": "x/amq.fanout", "vhost": "there"})
        http.delete("/api/vhosts/there").raise_for_status()
        wait_until(lambda: made["id"] not in http.get(PATH).text, 10, "the token is gone")
