"""Answers that go on end with what let their request in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any, cast

import httpx
import pytest
from starlette.requests import Request

from tests.support.server import WarrenServer
from warrenmq.app.access.admission import Admission
from warrenmq.app.access.sessions import Sessions
from warrenmq.app.context import Context
from warrenmq.app.routes.api.call import Call
from warrenmq.app.routes.api.event_stream import event_stream
from warrenmq.app.routes.api.required_tags import ADMINISTRATOR
from warrenmq.core.auth import Users

GUEST = ("guest", "guest")
PATHS = ("/api/warren/live", "/api/warren/log")
Way = Callable[[httpx.Client, httpx.Client], Callable[[], httpx.Response]]


def add(admin: httpx.Client, password: str = "secret") -> httpx.Response:
    return admin.put("/api/users/ann", json={"password": password, "tags": "administrator"})


def log_in(http: httpx.Client) -> None:
    answer = http.post("/api/warren/login", json={"name": "ann", "password": "secret"})
    http.headers["X-CSRF-Token"] = answer.json()["csrf_token"]
    http.headers["Origin"] = str(http.base_url).rstrip("/")


def logout(http: httpx.Client, admin: httpx.Client) -> Callable[[], httpx.Response]:
    log_in(http)
    return lambda: http.post("/api/warren/logout")


def login_anew(http: httpx.Client, admin: httpx.Client) -> Callable[[], httpx.Response]:
    log_in(http)
    body = {"name": "ann", "password": "secret"}
    return lambda: http.post("/api/warren/login", json=body)


def new_password_in_a_session(
    http: httpx.Client, admin: httpx.Client
) -> Callable[[], httpx.Response]:
    log_in(http)
    return lambda: add(admin, "other")


def new_password(http: httpx.Client, admin: httpx.Client) -> Callable[[], httpx.Response]:
    http.auth = httpx.BasicAuth("ann", "secret")
    return lambda: add(admin, "other")


def deleted_user(http: httpx.Client, admin: httpx.Client) -> Callable[[], httpx.Response]:
    http.auth = httpx.BasicAuth("ann", "secret")
    return lambda: admin.delete("/api/users/ann")


def revoked_token(http: httpx.Client, admin: httpx.Client) -> Callable[[], httpx.Response]:
    scope = {"manage": "read", "path": "warren/*"}
    made = admin.post("/api/hub/tokens", json={"name": "watch", "scopes": [scope]}).json()
    http.headers["Authorization"] = f"Bearer {made['token']}"
    return lambda: admin.delete(f"/api/hub/tokens/{made['id']}")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "way",
    [
        logout, login_anew, new_password_in_a_session, new_password, deleted_user, revoked_token,
    ],
)  # fmt: skip
def test_streams_end_with_the_session_token_or_right_that_admitted_them(
    warren: WarrenServer, path: str, way: Way
) -> None:
    with (
        httpx.Client(base_url=warren.http_url, timeout=30, auth=GUEST) as admin,
        httpx.Client(base_url=warren.http_url, timeout=30) as http,
    ):
        add(admin).raise_for_status()
        end = way(http, admin)
        with http.stream("GET", path) as response:
            assert response.status_code == 200, response.read()
            lines = response.iter_lines()
            next(lines)
            assert end().is_success
            for _ in lines:  # until it ends
                pass
        assert way is login_anew or http.get(path).status_code == 401


def test_a_logout_ends_no_other_session(warren: WarrenServer) -> None:
    with (
        httpx.Client(base_url=warren.http_url, timeout=30, auth=GUEST) as admin,
        httpx.Client(base_url=warren.http_url, timeout=30) as http,
        httpx.Client(base_url=warren.http_url, timeout=30) as other,
    ):
        add(admin).raise_for_status()
        log_in(http)
        log_in(other)
        with http.stream("GET", PATHS[0]) as response:
            lines = (line for line in response.iter_lines() if line == "event: snapshot")
            next(lines)
            assert other.post("/api/warren/logout").is_success
            next(lines)
            next(lines)


class TestExpiry:
    """Of a session, while nothing happens."""

    def call(self, sessions: Sessions) -> tuple[Call, str]:
        users = Users()
        users.add("ann", "secret", ["administrator"])
        ann = users.existing("ann")
        secret = sessions.begin(ann, ann.credentials_version)
        admission = Admission(ann, sessions, sessions.find(secret))
        none = cast(Any, None)
        return Call(cast(Context, none), cast(Request, none), admission, (), ADMINISTRATOR), secret

    async def silence(self, closed: asyncio.Event) -> AsyncGenerator[bytes]:
        try:
            await asyncio.Event().wait()
            yield b""
        finally:
            closed.set()

    @pytest.mark.parametrize("times_s", [(0.05, 60.0), (60.0, 0.05)])
    async def test_it_ends_the_stream(self, times_s: tuple[float, float]) -> None:
        call, _ = self.call(Sessions(*times_s))
        closed = asyncio.Event()
        answer = event_stream(call, self.silence(closed))
        async with asyncio.timeout(30):
            assert [piece async for piece in answer.body_iterator] == []
        assert closed.is_set()

    async def test_requests_of_the_session_put_it_off(self) -> None:
        now = [0.0]
        sessions = Sessions(60.0, 100.0, lambda: now[0])
        call, secret = self.call(sessions)
        now[0] = 59.0
        assert call.lasts_s() == 1.0
        assert sessions.find(secret)
        assert call.lasts_s() == 41.0
        now[0] = 100.0
        assert call.lasts_s() == 0.0
