"""`/reversehttp` and public URLs, octet by octet on a real port."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator

import pytest
from httpx import AsyncClient

from tests.app.conftest import World
from tests.app.support import problem
from tests.support.process import wait_until
from tests.support.server import WarrenServer
from tests.support.tunnels import GATEWAY, TOKEN, Answer, Tunnels, Wire, response
from warrenmq.hub.service import Hub

HOLD_S, REPLY_WAIT_S = "1", "4"
BODY_BYTES = 4096
BASIC = f"Authorization: Basic {base64.b64encode(b'guest:guest').decode()}"


@pytest.fixture(scope="module")
def server() -> Iterator[WarrenServer]:
    settings = {"POLL_HOLD_S": HOLD_S, "REPLY_WAIT_S": REPLY_WAIT_S, "BODY_BYTES": f"{BODY_BYTES}"}
    env = {f"WARREN_TUNNEL_{name}": value for name, value in settings.items()}
    with WarrenServer(env=env, args=["--access-log"]) as server:
        yield server


@pytest.fixture
def tunnels(server: WarrenServer) -> Iterator[Tunnels]:
    found = Tunnels(server.http_port)
    yield found
    found.close()


def fails(answer: Answer, status: int, part: str) -> None:
    """The answer is a problem document that says this."""
    assert (answer.status, answer.fields["content-type"]) == (status, "application/problem+json")
    assert part in answer.body.decode(), answer.body


def counted(tunnels: Tunnels, label: str, **counts: int) -> None:
    """Waits until the label has so many `waiting_polls`, `queued` and `in_flight`."""

    def is_so() -> bool:
        found = json.loads(tunnels.ask("GET", GATEWAY, BASIC).body)["tunnels"]
        (one,) = [one for one in found if one["label"] == label]
        return {name: one[name] for name in counts} == counts

    wait_until(is_so, 20.0, f"{counts} of {label}")


class TestClients:
    """The exchanges of the first client libraries."""

    def test_the_javascript_library(self, tunnels: Tunnels) -> None:
        """It polls again at once, at the next URL, and replies to the one before."""
        enrolled = tunnels.ask(
            "POST", GATEWAY, "Content-Type: application/x-www-form-urlencoded", "Accept: */*",
            "X-Requested-With: XMLHttpRequest", body=b"name=Demo-JS&token=-",
        )  # fmt: skip
        assert (enrolled.status, enrolled.body) == (201, b"")
        base = f"http://127.0.0.1:{tunnels.port}{GATEWAY}/demo-js/-"
        assert enrolled.fields["location"] == base
        first, public = enrolled.link("first"), enrolled.link("related")
        assert first.startswith(f"{base}/")
        assert public == f"http://demo-js.tun.localhost:{tunnels.port}/"

        waiting = tunnels.begin("GET", first, "Accept: message/http", "Origin: null")
        host = public.removeprefix("http://").removesuffix("/")
        requestor = tunnels.begin(
            "POST", f"{public}a%20b?x=1", "X-Odd: 1", "Connection: close, X-Odd",
            "X-Forwarded-For: 1.2.3.4", "Forwarded: for=1.2.3.4",
            "Proxy-Authorization: Basic eA==",
            "Cookie: a=1; __Host-warren-session=s; warrenty=5", body=b"hi",
        )  # fmt: skip
        found = waiting.read()
        assert found.status == 200
        assert found.fields["content-type"] == "message/http"
        assert found.fields["access-control-allow-origin"] == "null"
        assert re.fullmatch(r"127\.0\.0\.1:\d+", found.fields["requesting-client"])
        assert (
            found.body
            == (
                f"POST /a%20b?x=1 HTTP/1.1\r\nHost: {host}\r\nCookie: a=1; warrenty=5\r\n"
                f'Forwarded: for=127.0.0.1;host="{host}";proto=http\r\nVia: 1.1 warren\r\n'
                "Content-Length: 2\r\n\r\nhi"
            ).encode()
        )
        following = tunnels.begin("GET", found.link("next"), "Accept: message/http")
        replied = tunnels.ask(
            "POST", first, "Content-Type: message/http",
            body=b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello",
        )  # fmt: skip
        assert (replied.status, replied.body) == (202, b"")
        got = requestor.read()
        assert (got.status, got.fields["content-type"], got.body) == (200, "text/plain", b"hello")
        assert "access-control-allow-origin" not in got.fields
        assert following.read().status == 204

    def test_the_python_library(self, tunnels: Tunnels) -> None:
        """It polls the same URL after a 204, and its handlers end a body with the message."""
        enrolled = tunnels.ask(
            "POST", f"{GATEWAY}?name=demo-py&token=-", "Accept-Encoding: identity"
        )
        first = enrolled.link("first")
        nothing = tunnels.ask("GET", first, "Accept-Encoding: identity")
        assert (nothing.status, nothing.body) == (204, b"")
        assert nothing.link("next") == first
        requestor = tunnels.begin("GET", enrolled.link("related"))
        found = tunnels.ask("GET", first, "Accept-Encoding: identity")
        assert found.body.startswith(b"GET / HTTP/1.1\r\n")
        body = (
            b"HTTP/1.0 200 OK\r\nServer: BaseHTTP/0.3 Python/2.6\r\n"
            b"Date: Mon, 07 Dec 2009 10:00:00 GMT\r\nContent-type: text/html\r\n\r\n<p>Hello\r\n"
        )
        assert tunnels.ask("POST", first, "Content-Type: message/http", body=body).status == 202
        got = requestor.read()
        assert (got.status, got.body) == (200, b"<p>Hello\r\n")
        assert [name.lower() for name, _ in got.lines].count("date") == 1
        assert tunnels.ask("GET", found.link("next")).status == 204

    def test_the_java_library(self, tunnels: Tunnels) -> None:
        """It sends what its URL class sends by itself, and wants one Link line."""
        usual = (
            "User-Agent: Java/1.6.0_17", "Connection: keep-alive",
            "Accept: text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2",
        )  # fmt: skip
        form = "Content-type: application/x-www-form-urlencoded"
        enrolled = tunnels.ask("POST", GATEWAY, *usual, form, body=b"name=demo-java&token=-")
        assert [name.lower() for name, _ in enrolled.lines].count("link") == 1
        again = tunnels.ask("POST", GATEWAY, *usual, form, body=b"name=demo-java&token=-")
        assert (again.status, again.link("related")) == (204, enrolled.link("related"))
        requestor = tunnels.begin("GET", enrolled.link("related") + "x")
        found = tunnels.ask("GET", again.link("first"), *usual)
        assert found.body.startswith(b"GET /x HTTP/1.1\r\nHost: demo-java.tun.localhost:")
        reply = response(b"ok", "Content-type: text/plain")
        tunnels.ask("POST", again.link("first"), *usual, "Content-type: message/http", body=reply)
        assert requestor.read().body == b"ok"

    def test_secrets_are_not_logged_cached_or_referred(
        self, tunnels: Tunnels, server: WarrenServer
    ) -> None:
        enrolled = tunnels.enrol("quiet")
        refused = tunnels.ask("GET", f"{GATEWAY}/quiet/{TOKEN}x/abc")
        fails(refused, 404, "not enrolled with this token")
        for answer in (enrolled, tunnels.ask("GET", enrolled.link("first")), refused):
            assert answer.fields["cache-control"] == "no-store"
            assert answer.fields["referrer-policy"] == "no-referrer"
        assert f"{GATEWAY}/..." in server.output()
        assert TOKEN not in server.output()


class TestEnrolling:
    def test_a_token_is_issued(self, tunnels: Tunnels) -> None:
        one, two = (tunnels.ask("POST", f"{GATEWAY}?name={name}") for name in ("One", "two"))
        issued = [answer.fields["location"].rsplit("/", 1)[1] for answer in (one, two)]
        assert "/one/" in one.fields["location"]
        assert len(set(issued)) == 2
        assert min(map(len, issued)) >= 22

    def test_again_with_the_same_token_and_with_another(self, tunnels: Tunnels) -> None:
        assert tunnels.enrol("mine").status == 201
        again = tunnels.enrol("MINE", lease="10000000")
        assert again.status == 204
        assert tunnels.ask("GET", again.fields["location"]).body == b"name=mine&lease=86400"
        fails(tunnels.enrol("mine", TOKEN + "x"), 403, "enrolled with another token")

    @pytest.mark.parametrize(
        ("form", "status", "part"),
        [
            ("token=abc", 400, "name: is required"),
            ("name=", 400, "name: is required"),
            ("name=a.b", 400, "is no DNS label"),
            ("name=-a", 400, "is no DNS label"),
            ("name=xn--a", 400, "is no DNS label"),
            (f"name={'a' * 64}", 400, "is no DNS label"),
            ("name=www", 403, "is reserved"),
            ("name=a&lease=x", 400, "is not a number of seconds"),
            ("name=a&lease=-1", 400, "is not a number of seconds"),
            ("name=a&token=a%2Fb", 400, "token: can't be used"),
            (f"name=a&token={'a' * 129}", 400, "token: can't be used"),
            ("name=a&x=" + "y" * 8192, 413, "more than 8192 bytes"),
        ],
    )
    def test_bad_fields_are_refused(
        self, tunnels: Tunnels, form: str, status: int, part: str
    ) -> None:
        fails(tunnels.ask("POST", GATEWAY, body=form.encode()), status, part)

    def test_a_host_that_is_not_the_servers(self, tunnels: Tunnels) -> None:
        wire = tunnels.begin("POST", f"http://evil.example{GATEWAY}?name=a")
        fails(wire.read(), 421, "the setting public_url names it")

    def test_status_is_for_users(self, tunnels: Tunnels) -> None:
        tunnels.enrol("shown")
        fails(tunnels.ask("GET", GATEWAY), 401, "credentials are needed")
        listed = tunnels.ask("GET", GATEWAY, BASIC)
        assert b'"label":"shown","url":"http://shown.tun.localhost:' in listed.body
        assert TOKEN.encode() not in listed.body

    @pytest.mark.parametrize(
        ("method", "path", "allowed"),
        [
            ("DELETE", GATEWAY, "GET, POST"),
            ("PATCH", f"{GATEWAY}/verbs/{TOKEN}", "GET, PUT, DELETE, POST"),
            ("PUT", f"{GATEWAY}/verbs/{TOKEN}/{'a' * 22}", "GET, POST"),
        ],
    )
    def test_other_methods_are_refused(
        self, tunnels: Tunnels, method: str, path: str, allowed: str
    ) -> None:
        tunnels.enrol("verbs")
        answer = tunnels.ask(method, path)
        assert (answer.status, answer.fields["allow"]) == (405, allowed)


class TestManaging:
    def test_lease_and_token_are_changed(self, tunnels: Tunnels) -> None:
        private_url = tunnels.enrol("changed").fields["location"]
        other = TOKEN + "-2"
        changed = tunnels.ask("PUT", private_url, body=f"lease=90&token={other}&name=x".encode())
        assert (changed.status, changed.fields["location"]) == (204, private_url + "-2")
        fails(tunnels.ask("GET", private_url), 404, "not enrolled with this token")
        assert tunnels.ask("GET", private_url + "-2").body == b"name=changed&lease=90"
        fails(tunnels.ask("PUT", private_url + "-2", body=b"lease=x"), 400, "lease")

    def test_another_token_ends_the_polls(self, tunnels: Tunnels) -> None:
        """What was passed on before can be replied to."""
        enrolled = tunnels.enrol("turned")
        requestor = tunnels.begin("GET", enrolled.link("related"))
        taken = tunnels.poll(enrolled.link("first"))
        waiting = tunnels.begin("GET", taken.link("next"))
        counted(tunnels, "turned", waiting_polls=1)
        private_url = enrolled.fields["location"]
        other = f"token={TOKEN}-2".encode()
        assert tunnels.ask("PUT", private_url, body=other).status == 204
        fails(waiting.read(), 404, "another token now")
        fails(tunnels.ask("GET", taken.link("next")), 404, "not enrolled with this token")
        assert tunnels.reply(enrolled.link("first"), response(b"late")).status == 202
        assert requestor.read().body == b"late"
        fails(tunnels.reply(enrolled.link("first"), response()), 404, "with this token")

    @pytest.mark.parametrize("is_beacon", [False, True])
    def test_a_release_ends_polls_and_waiting_requests(
        self, tunnels: Tunnels, *, is_beacon: bool
    ) -> None:
        """Polls end, what waits ends, and what is under way can be finished."""
        enrolled = tunnels.enrol("left")
        first, public = enrolled.link("first"), enrolled.link("related")
        served = tunnels.begin("GET", public + "served")
        taken = tunnels.poll(first)
        waiting = tunnels.begin("GET", taken.link("next"))
        counted(tunnels, "left", waiting_polls=1)
        if is_beacon:
            plain = "Content-Type: text/plain;charset=UTF-8"
            fails(tunnels.ask("POST", enrolled.fields["location"], plain), 400, "release=1")
            released = tunnels.ask("POST", enrolled.fields["location"], plain, body=b"release=1")
        else:
            released = tunnels.ask("DELETE", enrolled.fields["location"])
        assert (released.status, released.body) == (204, b"")
        fails(waiting.read(), 410, "was released")
        fails(tunnels.ask("GET", taken.link("next")), 410, "was released")
        fails(tunnels.ask("DELETE", enrolled.fields["location"]), 410, "was released")
        fails(tunnels.ask("GET", public), 410, "was released")
        assert tunnels.reply(first, response(b"late")).status == 202
        assert served.read().body == b"late"
        assert tunnels.enrol("left").status == 201

    def test_another_token_learns_nothing(self, tunnels: Tunnels) -> None:
        tunnels.enrol("secret")
        for label in ("secret", "unknown"):
            answer = tunnels.ask("GET", f"{GATEWAY}/{label}/{TOKEN}x")
            fails(answer, 404, "is not enrolled with this token")


class TestRequests:
    """What reaches the application, and when."""

    def test_several_pollers_take_turns_in_order(self, tunnels: Tunnels) -> None:
        """Each has enrolled, so each has Request URLs of its own."""
        enrolled = [tunnels.enrol("shared") for _ in range(2)]
        polls = []
        for number, one in enumerate(enrolled, 1):
            polls.append(tunnels.begin("GET", one.link("first")))
            counted(tunnels, "shared", waiting_polls=number)
        asked = [tunnels.begin("GET", f"{enrolled[0].link('related')}{n}") for n in "12"]
        for number, one in enumerate(enrolled):
            assert polls[number].read().body.startswith(b"GET /%d " % (number + 1))
            tunnels.reply(one.link("first"), response(b"%d" % number))
            assert asked[number].read().body == b"%d" % number

    def test_65_a_second_poll_at_the_same_url(self, tunnels: Tunnels) -> None:
        enrolled = tunnels.enrol("again")
        older = tunnels.begin("GET", enrolled.link("first"))
        counted(tunnels, "again", waiting_polls=1)
        later = tunnels.begin("GET", enrolled.link("first"))
        fails(older.read(), 409, "a later poll came")
        requestor = tunnels.begin("GET", enrolled.link("related"))
        assert later.read().status == 200
        tunnels.reply(enrolled.link("first"), response(b"ok"))
        assert requestor.read().body == b"ok"

    def test_a_pipelined_poll_is_answered_after_the_first(self, tunnels: Tunnels) -> None:
        """The connection serves on, and what was sent ahead is not lost."""
        enrolled = tunnels.enrol("piped")
        path = enrolled.link("first").split(str(tunnels.port))[1]
        wire = tunnels.begin("GET", path)
        counted(tunnels, "piped", waiting_polls=1)
        wire.send(f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{tunnels.port}", "Connection: close")
        assert [wire.read().status, wire.read().status] == [204, 204]

    def test_polls_in_one_packet(self, tunnels: Tunnels) -> None:
        """The second is parsed with the first, and ends with the connection: its client is told."""
        path = tunnels.enrol("ahead").link("first").split(str(tunnels.port))[1]
        head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{tunnels.port}\r\n\r\n"
        with Wire(tunnels.port) as wire:
            wire.raw(head.encode() * 2)
            answer = wire.read()
            assert (answer.status, answer.fields["connection"]) == (204, "close")
            assert wire.rest() == b""

    def test_requests_that_wait_for_polls(self, tunnels: Tunnels) -> None:
        """They are answers at once, on a connection that is kept."""
        enrolled = tunnels.enrol("waiting")
        url = enrolled.link("first")
        asked = []
        for number in range(3):
            asked.append(tunnels.begin("GET", f"{enrolled.link('related')}{number}"))
            counted(tunnels, "waiting", queued=number + 1)
        with Wire(tunnels.port) as wire:
            for number, requestor in enumerate(asked):
                path = url.split(str(tunnels.port))[1]
                answer = wire.send(f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{tunnels.port}").read()
                assert answer.body.startswith(b"GET /%d " % number)
                assert answer.fields["requesting-client"].startswith("127.0.0.1:")
                assert answer.fields["cache-control"] == "no-store"
                tunnels.reply(url, response(b"%d" % number))
                assert requestor.read().body == b"%d" % number
                url = answer.link("next")

    def test_the_request_of_a_lost_poll_goes_to_the_next(self, tunnels: Tunnels) -> None:
        enrolled = tunnels.enrol("lost")
        tunnels.begin("GET", enrolled.link("first")).close()
        counted(tunnels, "lost", waiting_polls=0)
        requestor = tunnels.begin("GET", enrolled.link("related"))
        found = tunnels.poll(enrolled.link("first"))
        assert found.body.startswith(b"GET / ")
        tunnels.reply(enrolled.link("first"), response(b"ok"))
        assert requestor.read().body == b"ok"

    def test_polling_again_answers_the_request_in_flight_with_504(self, tunnels: Tunnels) -> None:
        """A request is passed on once: its client may not repeat it."""
        enrolled = tunnels.enrol("given-up")
        requestor = tunnels.begin("POST", enrolled.link("related"))
        assert tunnels.poll(enrolled.link("first")).status == 200
        tunnels.begin("GET", enrolled.link("first"))
        fails(requestor.read(), 504, "polled again")

    def test_a_requestor_that_has_gone(self, tunnels: Tunnels) -> None:
        """Its request is dropped; a reply to one that was taken is accepted."""
        enrolled = tunnels.enrol("gone")
        queued = tunnels.begin("GET", enrolled.link("related") + "queued")
        counted(tunnels, "gone", queued=1)
        queued.close()
        counted(tunnels, "gone", queued=0)
        taken = tunnels.begin("GET", enrolled.link("related") + "taken")
        assert tunnels.poll(enrolled.link("first")).body.startswith(b"GET /taken ")
        taken.close()
        assert tunnels.reply(enrolled.link("first"), response(b"late")).status == 202

    def test_68_a_request_without_a_poll_is_503(self, tunnels: Tunnels) -> None:
        answer = tunnels.ask("GET", tunnels.enrol("away").link("related"))
        fails(answer, 503, "is not connected")
        assert answer.fields["retry-after"] == "5"

    def test_a_request_without_a_reply_is_504(self, tunnels: Tunnels) -> None:
        enrolled = tunnels.enrol("silent")
        requestor = tunnels.begin("GET", enrolled.link("related"))
        tunnels.poll(enrolled.link("first"))
        fails(requestor.read(), 504, f"within {REPLY_WAIT_S} s")
        fails(tunnels.reply(enrolled.link("first"), response()), 404, "its time is over")

    def test_labels_are_hosts_of_their_own(self, tunnels: Tunnels) -> None:
        """Nothing of the server is served there, whatever the path."""
        for host in ("nobody.tun.localhost", "tun.localhost", "a.b.tun.localhost"):
            for path in ("/", "/health/live", "/openapi.json", f"{GATEWAY}?name=x"):
                answer = tunnels.ask("GET", f"http://{host}:{tunnels.port}{path}")
                fails(answer, 404, "no application has this label")

    def test_browsers_get_a_page_of_the_label_itself(self, tunnels: Tunnels) -> None:
        public = f"http://nobody.tun.localhost:{tunnels.port}/"
        page = tunnels.ask("GET", public, "Accept: text/html,*/*;q=0.8")
        assert (page.status, page.fields["content-type"]) == (404, "text/html; charset=utf-8")
        assert b"The address may be misspelled" in page.body
        assert b"//" not in page.body and b"href" not in page.body
        assert page.fields["content-security-policy"].startswith("default-src 'none'; style-src 's")

    def test_a_request_loop_is_508(self, tunnels: Tunnels) -> None:
        public = tunnels.enrol("round").link("related")
        via = "Via: " + ", ".join(["1.1 warren"] * 20)
        fails(tunnels.ask("GET", public, via), 508, "request loop detected")


class TestReplies:
    """What of a reply reaches the requestor."""

    def exchange(
        self, tunnels: Tunnels, label: str, reply: bytes, method: str = "GET"
    ) -> tuple[Answer, Answer]:
        """Returns the answers to the reply and to the requestor, who waits on after a bad one."""
        enrolled = tunnels.enrol(label)
        requestor = tunnels.begin(method, enrolled.link("related"))
        tunnels.poll(enrolled.link("first"))
        replied = tunnels.reply(enrolled.link("first"), reply)
        if replied.status != 202:
            tunnels.reply(enrolled.link("first"), response(b"corrected"))
        return replied, requestor.read()

    def test_67_fields_of_the_connection_and_of_other_labels_are_dropped(
        self, tunnels: Tunnels
    ) -> None:
        """Those of one connection are dropped, and those that concern other labels."""
        reply = response(
            b"{}", "Content-Type: application/json", "Connection: keep-alive, X-Mine", "X-Mine: 1",
            "Keep-Alive: timeout=5", "Upgrade: h2c", "Strict-Transport-Security: max-age=1",
            'Clear-Site-Data: "*"', "Service-Worker-Allowed: /", "Alt-Svc: h3", "NEL: {}",
            "Set-Cookie: a=1; Domain=tun.localhost; Path=/", "Set-Cookie: b=2; HttpOnly",
            status="201 Made",
        )  # fmt: skip
        _, got = self.exchange(tunnels, "fields", reply)
        assert (got.status, got.body) == (201, b"{}")
        own = ("date", "x-request-id")
        assert sorted((name.lower(), value) for name, value in got.lines if name not in own) == [
            ("content-length", "2"), ("content-type", "application/json"),
            ("set-cookie", "a=1; Path=/"), ("set-cookie", "b=2; HttpOnly"),
        ]  # fmt: skip

    def test_a_chunked_reply_is_decoded(self, tunnels: Tunnels) -> None:
        reply = (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nX-Trailer: 1\r\n\r\n"
        )
        _, got = self.exchange(tunnels, "chunks", reply)
        assert (got.body, got.fields["content-length"]) == (b"abcde", "5")

    @pytest.mark.parametrize(
        ("reply", "method", "length"),
        [
            (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", "HEAD", "9"),
            (response(b"more"), "HEAD", "4"),
            (b"HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n", "GET", None),
        ],
    )
    def test_replies_without_a_body_are_passed_on(
        self, tunnels: Tunnels, reply: bytes, method: str, length: str | None
    ) -> None:
        replied, got = self.exchange(tunnels, "bodiless", reply, method)
        assert (replied.status, got.body, got.fields.get("content-length")) == (202, b"", length)

    @pytest.mark.parametrize(
        ("reply", "part"),
        [
            (b"", "is empty"),
            (b"hello", "no end of the header"),
            (b"HTTP/1.1 200 OK\r\nX-Big: " + b"x" * 65536 + b"\r\n\r\n", "no end of the header"),
            (b"GET / HTTP/1.1\r\n\r\n", "is not valid HTTP/1.1"),
            (b"HTTP/1.1 100 Continue\r\n\r\n", "the status 100"),
            (b"HTTP/1.1 101 Go\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", "reply: "),
            (b"HTTP/1.1 600 What\r\n\r\n", "the status 600"),
            (b"HTTP/2.0 200 OK\r\n\r\n", "HTTP/2.0"),
            (b"HTTP/1.1 200 OK\nA: b\n\r\n\r\n", "is not valid HTTP/1.1"),
            (b"HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n", "is not valid HTTP/1.1"),
            (b"HTTP/1.1 200 OK\r\nA : b\r\n\r\n", "is not valid HTTP/1.1"),
            (b"HTTP/1.1 200 OK\r\nA: b\x01\r\n\r\n", "is not valid HTTP/1.1"),
            (b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 101 + b"\r\n", "more than 100 fields"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", "is cut"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nabc", "bytes behind it"),
            (response(b"a") + response(b"b"), "bytes behind it"),
            (b"HTTP/1.1 204 No Content\r\n\r\nabc", "bytes behind it"),
            (
                b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\na",
                "is not valid HTTP",
            ),
            (
                b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"
                b"0\r\n\r\n",
                "is not valid HTTP",
            ),
            (
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nabc",
                "unsupported transfer coding",
            ),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc", "is cut"),
        ],
    )
    def test_bad_ones_are_refused_to_the_application(
        self, tunnels: Tunnels, reply: bytes, part: str
    ) -> None:
        replied, got = self.exchange(tunnels, "bad", reply)
        fails(replied, 400, part)
        assert got.body == b"corrected"

    def test_66_a_second_reply(self, tunnels: Tunnels) -> None:
        enrolled = tunnels.enrol("twice")
        requestor = tunnels.begin("GET", enrolled.link("related"))
        tunnels.poll(enrolled.link("first"))
        assert tunnels.reply(enrolled.link("first"), response(b"one")).status == 202
        fails(tunnels.reply(enrolled.link("first"), response(b"two")), 410, "has a reply already")
        assert requestor.read().body == b"one"

    def test_a_reply_is_bound_to_its_label(self, tunnels: Tunnels) -> None:
        victim, other = tunnels.enrol("victim"), tunnels.enrol("other")
        requestor = tunnels.begin("GET", victim.link("related"))
        tunnels.poll(victim.link("first"))
        request_id = victim.link("first").rsplit("/", 1)[1]
        spliced = f"{other.fields['location']}/{request_id}"
        fails(tunnels.reply(spliced, response(b"spliced")), 404, "is unknown")
        tunnels.reply(victim.link("first"), response(b"genuine"))
        assert requestor.read().body == b"genuine"


class TestLimits:
    def test_bodies_are_limited(self, tunnels: Tunnels) -> None:
        enrolled = tunnels.enrol("long")
        full = b"x" * BODY_BYTES
        fails(tunnels.ask("POST", enrolled.link("related"), body=full + b"x"), 413, "more than")
        requestor = tunnels.begin("POST", enrolled.link("related"), body=full)
        assert tunnels.poll(enrolled.link("first")).body.endswith(full)
        too_long = response(b"x" * (BODY_BYTES + 65536))
        fails(tunnels.reply(enrolled.link("first"), too_long), 413, "more than")
        assert tunnels.reply(enrolled.link("first"), response(full)).status == 202
        assert requestor.read().body == full

    def test_waiting_requests_are_limited(self, tunnels: Tunnels) -> None:
        enrolled = tunnels.enrol("crowd")
        for _ in range(64):
            tunnels.begin("GET", enrolled.link("related"))
        counted(tunnels, "crowd", queued=64)
        refused = tunnels.ask("GET", enrolled.link("related"))
        fails(refused, 503, "too many requests wait")
        assert refused.fields["retry-after"] == "1"

    def test_requests_without_a_reply(self, tunnels: Tunnels) -> None:
        enrolled = tunnels.enrol("slow")
        url = enrolled.link("first")
        for _ in range(33):
            tunnels.begin("GET", enrolled.link("related"))
        taken = []
        for _ in range(32):
            taken.append(url)
            url = tunnels.poll(url).link("next")
        counted(tunnels, "slow", in_flight=32, queued=1)
        poll = tunnels.begin("GET", url)
        counted(tunnels, "slow", in_flight=32, queued=1, waiting_polls=1)
        tunnels.reply(taken[0], response())
        assert poll.read().status == 200

    def test_waiting_polls_are_limited(self, tunnels: Tunnels) -> None:
        location = tunnels.enrol("many").fields["location"]
        for number in range(16):
            tunnels.begin("GET", f"{location}/{number:022d}")
        counted(tunnels, "many", waiting_polls=16)
        fails(tunnels.ask("GET", f"{location}/{16:022d}"), 503, "too many polls")

    def test_an_id_that_can_be_guessed(self, tunnels: Tunnels) -> None:
        location = tunnels.enrol("short").fields["location"]
        fails(tunnels.ask("GET", f"{location}/1"), 404, "no Request URL")


class TestWithoutDevelopmentMode:
    """Answers are compared with `/openapi.json`."""

    async def test_a_label_of_a_user(self, hub: Hub, http: AsyncClient) -> None:
        refused = await http.post(GATEWAY, data={"name": "ada", "token": "-"})
        assert "token: can't be used" in problem(refused, 400)
        enrolled = await http.post(GATEWAY, data={"name": "ada", "token": TOKEN})
        assert enrolled.status_code == 201
        (listed,) = (await http.get(GATEWAY)).json()["tunnels"]
        assert (listed["label"], listed["owner"], listed["waiting_polls"]) == ("ada", "guest", 0)
        page = await http.get(GATEWAY, headers={"Accept": "text/html,*/*;q=0.8"})
        assert (page.status_code, page.headers["location"]) == (303, "http://hub/#/tunnels")
        private_path = f"{GATEWAY}/ada/{TOKEN}"
        assert (await http.get(private_path)).text == "name=ada&lease=60"
        assert (await http.put(private_path, data={"lease": "90"})).status_code == 204
        assert (await http.delete(private_path)).status_code == 204
        problem(await http.get(private_path), 410)

    async def test_users_see_and_release_their_own(self, world: World, hub: Hub) -> None:
        path = "/api/hub/tunnels"
        async with world.client() as guest, world.client(auth=("tony", "secret")) as tony:
            await guest.post(GATEWAY, data={"name": "ada"})
            await tony.post(GATEWAY, data={"name": "tonys"})
            found = (await guest.get(path)).json()["tunnels"]
            assert [one["label"] for one in found] == ["ada", "tonys"]
            assert (found[0]["waiting_polls"], found[0]["requests"]) == (0, 0)
            assert found[0]["since"] > "2026"
            for place in (path, GATEWAY):
                (listed,) = (await tony.get(place)).json()["tunnels"]
                assert listed["label"] == "tonys"
            problem(await tony.delete(f"{path}/ada"), 404)
            assert "another user's" in problem(await tony.post(GATEWAY, data={"name": "ada"}), 403)
            assert (await tony.delete(f"{path}/tonys")).status_code == 204
            problem(await tony.delete(f"{path}/tonys"), 404)
            assert (await tony.post(GATEWAY, data={"name": "tonys"})).status_code == 201

    async def test_an_administrator_closes_a_label(self, world: World, hub: Hub) -> None:
        """It stays closed, and its owner enrols no other one, until the block ends."""
        path = "/api/hub/tunnels/phish"
        async with world.client() as guest, world.client(auth=("tony", "secret")) as tony:
            await tony.post(GATEWAY, data={"name": "phish"})
            problem(await tony.delete(path, params={"block_s": 60}), 403)
            for block_s in ("ever", "2592001", "000000000" + "9" * 12):
                problem(await guest.delete(path, params={"block_s": block_s}), 400)
            assert (await guest.delete(path)).status_code == 204
            for client, name in ((tony, "phish"), (tony, "another"), (guest, "phish")):
                refused = problem(await client.post(GATEWAY, data={"name": name}), 403)
                assert "an administrator has closed 'phish'" in refused
            (blocked,) = (await guest.get("/api/hub/tunnels")).json()["blocked"]
            assert (blocked["label"], blocked["owner"]) == ("phish", "tony")
            problem(await tony.delete(path), 404)
            assert (await guest.delete(path, params={"block_s": 0})).status_code == 204
            assert (await tony.post(GATEWAY, data={"name": "phish"})).status_code == 201

    async def test_credentials_are_needed(self, world: World, hub: Hub) -> None:
        async with world.client(auth=None) as nobody:
            problem(await nobody.post(GATEWAY, data={"name": "ada"}), 401)
            problem(await nobody.get(GATEWAY), 401)
            problem(await nobody.get(f"{GATEWAY}/a/b/c/d"), 404)
