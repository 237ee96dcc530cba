"""The log over HTTP while the server runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.server import WarrenServer

GUEST = ("guest", "guest")


def events(response: httpx.Response) -> Iterator[tuple[int, dict[str, Any]]]:
    number = 0
    for line in response.iter_lines():
        if line.startswith("id: "):
            number = int(line.removeprefix("id: "))
        elif line.startswith("data: "):
            yield number, json.loads(line.removeprefix("data: "))


def fail_login(http: httpx.Client, user: str) -> None:
    assert http.get("/api/whoami", auth=(user, "wrong")).status_code == 401


def test_lines_are_sent_as_they_are_written(warren: WarrenServer) -> None:
    url = f"http://{warren.host}:{warren.http_port}"
    with httpx.Client(base_url=url, timeout=30, auth=GUEST) as http:
        fail_login(http, "first")
        with http.stream("GET", "/api/warren/log", params={"lines": 1}) as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            lines = events(response)
            number, event = next(lines)
            assert "'first'" in event["message"]
            assert (event["level"], event["area"]) == ("warning", "app.access.authentication")
            fail_login(http, "second")
            assert "'second'" in next(lines)[1]["message"]
        with http.stream("GET", "/api/hub/log", headers={"last-event-id": str(number)}) as response:
            assert "'second'" in next(events(response))[1]["message"]


@pytest.mark.parametrize("args", [[], ["--log-format", "json"], ["--log-level", "info"]])
def test_the_start_is_there_at_any_level(args: list[str]) -> None:
    with WarrenServer(dev=True, args=args) as server:
        for how in ("is new", "is restored"):
            printed = server.output().splitlines()
            with (
                httpx.Client(base_url=server.http_url, auth=GUEST, timeout=30) as http,
                http.stream("GET", "/api/warren/log") as response,
            ):
                lines = events(response)
                contents = next(lines)[1]
                assert (
                    f"data directory {server.data} {how}; virtual hosts: 1, "
                    in (contents["message"])
                )
                told = [contents]
                while not told[-1]["message"].startswith("ready after "):
                    told.append(next(lines)[1])
            assert {(one["area"], one["level"]) for one in told} == {("app.lifespan", "info")}
            start = [one["message"] for one in told[1:]]
            assert start[0].startswith("listening on amqp://")
            assert [line for line in printed if line in start] == start
            logged = [line for line in printed if "ready after" in line]
            assert len(logged) == (2 if "info" in args else 1)
            server.restart()


def test_bad_requests_are_refused(warren: WarrenServer) -> None:
    url = f"http://{warren.host}:{warren.http_port}/api/warren/log"
    with httpx.Client(auth=GUEST) as http:
        assert http.get(url, params={"lines": 1001}).status_code == 400
        assert http.get(url, headers={"last-event-id": "x"}).status_code == 400
        assert http.get(url, auth=None).status_code == 401


def test_readers_do_not_hold_up_a_stop() -> None:
    with WarrenServer(dev=True, env={"WARREN_DRAIN_S": "60"}) as server:
        url = f"http://{server.host}:{server.http_port}"
        with httpx.Client(base_url=url, auth=GUEST, timeout=30) as http:
            fail_login(http, "first")
            with http.stream("GET", "/api/warren/log") as response:
                lines = events(response)
                next(lines)
                assert server.stop() == 0
                assert all(number > 0 for number, _ in lines)
