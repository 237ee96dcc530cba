"""Log lines as JSON, ids of requests in answers and lines, and levels of areas."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from contextvars import copy_context
from typing import Any

import httpx
import pytest
from httpx import AsyncClient

from tests.app.conftest import World
from tests.app.support import problem
from tests.support.http import Callback
from tests.support.process import wait_until
from tests.support.server import WarrenServer
from tests.support.tunnels import Application, Tunnels, response
from warrenmq.app.logs.formats import TEXT, JsonFormatter, OneLineFormatter
from warrenmq.app.logs.levels import levels, set_level
from warrenmq.app.logs.request_context import enter

GUEST = ("guest", "guest")
TRACE_ID, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
TRACEPARENT = f"00-{TRACE_ID}-{PARENT}-01"


@pytest.fixture(scope="module")
def server() -> Iterator[WarrenServer]:
    args = ["--log-format", "json", "--access-log", "--log-level", "debug"]
    with WarrenServer(args=args) as warren:
        yield warren


def logged(server: WarrenServer) -> list[dict[str, Any]]:
    """All lines of the log so far; every line is an object, but for those of start and stop."""
    return [json.loads(line) for line in server.output().splitlines() if line.startswith("{")]


def accessed(server: WarrenServer, path: str) -> dict[str, Any]:
    """The line about the request with this path, which is written after its answer."""

    def lines() -> list[dict[str, Any]]:
        return [one for one in logged(server) if f" {path} " in one["message"]]

    wait_until(lambda: bool(lines()), 30, f"a line about {path}")
    (found,) = lines()
    return found


def test_a_request_has_one_id_in_answer_and_line(server: WarrenServer) -> None:
    with httpx.Client(base_url=server.http_url, auth=GUEST, timeout=60) as http:
        ids = [http.get("/api/whoami").headers["x-request-id"] for _ in range(2)]
        assert len(set(ids)) == 2 and all(re.fullmatch("[0-9a-f]{16}", one) for one in ids)
        own = {"x-request-id": "job-7/1", "traceparent": TRACEPARENT}
        assert http.get("/api/users/nobody", headers=own).headers["x-request-id"] == "job-7/1"
        for bad in ("a b", "", "a" * 129, 'x"y'):
            given = http.get("/health/live", headers={"x-request-id": bad}).headers["x-request-id"]
            assert given not in (bad, ids[0])
    line = accessed(server, "/api/users/nobody")
    assert (line["request_id"], line["trace_id"]) == ("job-7/1", TRACE_ID)
    assert (line["level"], line["area"]) == ("info", "app.http.access_log")
    assert (line["method"], line["path"], line["status"]) == ("GET", "/api/users/nobody", 404)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", line["time"])


def test_a_refused_request_has_an_id_too(server: WarrenServer) -> None:
    many = {f"x-{number}": "1" for number in range(101)}
    refused = httpx.get(f"{server.http_url}/refused", headers=many)
    assert refused.status_code == 431
    assert accessed(server, "/refused")["request_id"] == refused.headers["x-request-id"]


def test_a_tunnelled_application_may_give_its_own_id(server: WarrenServer) -> None:
    tunnels = Tunnels(server.http_port)
    enrolled = tunnels.enrol("ada")
    replies = [response(b"", "X-Request-Id: theirs"), response()]
    application = Application(server.http_port, enrolled.link("first"), lambda *_: replies.pop(0))
    theirs, own = (tunnels.ask("GET", enrolled.link("related")).lines for _ in range(2))
    application.stop()
    tunnels.close()
    assert [value for name, value in theirs if name.lower() == "x-request-id"] == ["theirs"]
    (found,) = [value for name, value in own if name.lower() == "x-request-id"]
    assert re.fullmatch("[0-9a-f]{16}", found)


def test_no_line_has_a_secret(server: WarrenServer, callback: Callback) -> None:
    form = {
        "hub.mode": "subscribe", "hub.topic": "#", "hub.secret": "s3cret",
        "hub.callback": f"{callback.url}?token=t0ken", "hub.verify_token": "v3rify",
    }  # fmt: skip
    callback.script(500)
    with httpx.Client(base_url=server.http_url, auth=GUEST, timeout=60) as http:
        assert http.post("/subscribe/x/amq.fanout", data=form).status_code == 204
        assert http.post("/endpoint/x/amq.fanout", content=b"b0dy").status_code == 202
        scopes = [{"vhost": "/", "read": "x/amq.fanout"}]
        token = http.post("/api/hub/tokens", json={"name": "page", "scopes": scopes}).json()[
            "token"
        ]
        http.get("/stream/x/amq.fanout", params={"token": token, "wait_s": 0})
        http.get("/api/whoami", auth=("guest", "wr0ng"))
    wait_until(
        lambda: any("attempt 1" in line["message"] for line in logged(server)), 60,
        "the attempt is logged",
    )  # fmt: skip
    output = server.output()
    for secret in ("s3cret", "t0ken", "v3rify", "b0dy", "wr0ng", "Z3Vlc3Q6", token):
        assert secret not in output


def test_the_trace_goes_from_publish_to_webhook(server: WarrenServer, callback: Callback) -> None:
    form = {"hub.mode": "subscribe", "hub.topic": "#", "hub.callback": callback.url}
    trace = {"traceparent": TRACEPARENT, "tracestate": "a=1"}
    callback.script(500)
    with httpx.Client(base_url=server.http_url, auth=GUEST, timeout=60) as http:
        assert http.post("/subscribe/x/amq.topic", data=form).status_code == 204
        for headers in (trace, {"traceparent": "no trace"}):
            assert http.post("/endpoint/x/amq.topic", headers=headers).status_code == 202
    found = [
        (one.headers.get("traceparent"), one.headers.get("tracestate")) for one in callback.wait(3)
    ]
    assert sorted(found, key=str) == [(TRACEPARENT, "a=1"), (TRACEPARENT, "a=1"), (None, None)]


def test_work_after_a_request_is_logged_without_its_id() -> None:
    """Connections and tasks that it has begun stay in its context."""
    record = logging.LogRecord("warrenmq.hub.x", 40, "f", 1, "event", (), None)
    context = copy_context()
    ids = context.run(enter, [(b"x-request-id", b"job-7")])
    assert context.run(OneLineFormatter(TEXT).format, record).endswith("event request=job-7")
    assert "request" not in OneLineFormatter(TEXT).format(record)
    ids.is_over = True
    assert context.run(OneLineFormatter(TEXT).format, record).endswith("event")


def test_a_json_line_has_the_traceback_and_any_name() -> None:
    try:
        raise ValueError("here")
    except ValueError as error:
        raised = (ValueError, error, error.__traceback__)
    record = logging.LogRecord("warrenmq.hub.x", 40, "f", 1, 'a\n"%s"', ("\udce9",), raised)
    line = JsonFormatter().format(record)
    assert "\n" not in line
    found = json.loads(line)
    assert found["error"].endswith("ValueError: here")
    assert (found["area"], found["message"]) == ("hub.x", 'a\n"\\udce9"')


@pytest.fixture
def no_levels() -> Iterator[None]:
    yield
    for area in ("hub.delivery", "core"):
        set_level(area, None)


async def test_levels_of_areas(no_levels: None, http: AsyncClient) -> None:
    path = "/api/warren/log-levels"
    assert (await http.put(f"{path}/hub.delivery", json={"level": "debug"})).status_code == 201
    assert (await http.put(f"{path}/hub.delivery", json={"level": "error"})).status_code == 204
    found = (await http.get(path)).json()
    assert {"area": "hub.delivery", "level": "error"} in found
    log = logging.getLogger("warrenmq.hub.delivery.events")
    assert log.getEffectiveLevel() == logging.ERROR
    assert (await http.delete(f"{path}/hub.delivery")).status_code == 204
    assert "hub.delivery" not in levels()
    problem(await http.delete(f"{path}/hub.delivery"), 404)
    assert "areas are folders" in problem(
        await http.put(f"{path}/hub.nothing", json={"level": "debug"}), 404
    )
    assert "none of debug, info" in problem(
        await http.put(f"{path}/core", json={"level": "loud"}), 400
    )


async def test_levels_are_for_administrators(world: World) -> None:
    async with world.client(auth=("tony", "secret")) as http:
        problem(await http.get("/api/warren/log-levels"), 403)
