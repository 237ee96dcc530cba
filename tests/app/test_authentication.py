"""HTTP Basic with the broker's users (http_contract.md 4)."""

from __future__ import annotations

import asyncio
import base64
import threading
from collections.abc import Awaitable, Callable
from types import SimpleNamespace

import httpx
import pytest
from starlette.requests import ClientDisconnect
from starlette.types import Scope

from tests.app.conftest import World
from tests.app.support import problem
from tests.support.users import GUEST_HASH, guest_users
from warrenmq.app.access import authentication
from warrenmq.app.access.authentication import Authenticator
from warrenmq.app.access.local_requests import CYCLE
from warrenmq.app.problems import Problem
from warrenmq.core.auth import VERIFIED_FOR_S, User, Users
from warrenmq.core.auth.throttle import FAILURES, UNCACHED_MAX
from warrenmq.core.server import login_queue as waiting_room
from warrenmq.core.server.logins import AT_ONCE, Logins

PATH = "/endpoint/x/amq.topic"
HERE = "127.0.0.1"
REQUEST: Scope = {"client": (HERE, 1234), "headers": []}


@pytest.fixture(autouse=True)
def _tony_may_look(world: World) -> None:
    world.users.set_permissions("tony", "/", "^tony", "^tony", "^tony|^amq.topic$")


def basic(name: str, password: str) -> bytes:
    return b"Basic " + base64.b64encode(f"{name}:{password}".encode())


class TestAnswers:
    @pytest.mark.parametrize("peer", ["10.0.0.1", "::ffff:10.0.0.1", ""])
    async def test_guest_is_refused_from_other_machines(self, world: World, peer: str) -> None:
        async with world.client() as near:
            assert (await near.get(PATH)).status_code == 200
        async with world.client(peer=peer) as http:
            problem(await http.get(PATH), 401)

    async def test_answer_and_log_have_the_reason(
        self, world: World, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with world.client(peer="10.0.0.1") as http:
            detail = problem(await http.get(PATH), 401)
        assert detail.startswith("user guest may log in over HTTP only from the server's machine")
        assert caplog.messages == [f"HTTP from 10.0.0.1: login refused for user 'guest': {detail}"]
        caplog.clear()
        async with world.client(auth=("tony", "wrong")) as http:
            assert problem(await http.get(PATH), 401) == "wrong user or password"
        assert caplog.messages == [
            "HTTP from 127.0.0.1: login refused for user 'tony': wrong user or password"
        ]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def note(pauses: list[float]) -> Callable[[float], Awaitable[None]]:
    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    return pause


class Counting:
    """Counts what would have been argon2 runs, and can hold them."""

    def __init__(self, users: Users, monkeypatch: pytest.MonkeyPatch) -> None:
        self.runs = 0
        self.go = threading.Event()
        self.go.set()
        self._lock = threading.Lock()
        check = users.passwords.check

        def counted(name: str, password: str, *, loopback: bool) -> User | None:
            with self._lock:
                self.runs += 1
            assert threading.current_thread().name.startswith("password")
            assert self.go.wait(10)
            return check(name, password, loopback=loopback)

        monkeypatch.setattr(users.passwords, "check", counted)


@pytest.fixture
def counting(world: World, monkeypatch: pytest.MonkeyPatch) -> Counting:
    return Counting(world.users, monkeypatch)


class TestCost:
    async def test_once_for_the_same_credentials(
        self, http: httpx.AsyncClient, counting: Counting
    ) -> None:
        responses = await asyncio.gather(*(http.get(PATH) for _ in range(20)))
        assert {response.status_code for response in responses} == {200}
        assert counting.runs == 1

    async def test_a_new_password_is_right_at_once(self, world: World) -> None:
        async with world.client(auth=("guest", "wrong")) as http:
            problem(await http.get(PATH), 401)
            world.users.add("guest", "wrong", ["administrator"])
            assert (await http.get(PATH)).status_code == 200

    async def test_again_after_a_while(self, monkeypatch: pytest.MonkeyPatch) -> None:
        clock = Clock()
        users = guest_users(clock)
        authenticator, counting = Authenticator(users, clock), Counting(users, monkeypatch)
        for after_s, runs in ((0, 1), (VERIFIED_FOR_S - 1, 1), (2, 2)):
            clock.now += after_s
            assert await authenticator.user(basic("guest", "guest"), REQUEST)
            assert counting.runs == runs
        authenticator.close()

    async def test_a_disconnected_client_does_not_cancel_a_shared_check(
        self, world: World, counting: Counting
    ) -> None:
        counting.go.clear()
        authenticator = world.context.authenticator
        first, second = (
            asyncio.ensure_future(authenticator.user(basic("tony", "secret"), REQUEST))
            for _ in range(2)
        )
        while not counting.runs:
            await asyncio.sleep(0)
        first.cancel()
        counting.go.set()
        assert (await second).name == "tony"
        assert counting.runs == 1

    async def test_logins_of_disconnected_clients_are_dropped(
        self, world: World, counting: Counting
    ) -> None:
        """600 abandoned guesses kept the next user waiting for a minute and a half."""
        counting.go.clear()
        authenticator = world.context.authenticator
        connections = [SimpleNamespace(disconnected=False) for _ in range(600)]
        scopes = [
            {**REQUEST, "extensions": {CYCLE: {"cycle": connection}}} for connection in connections
        ]
        guesses = [
            asyncio.ensure_future(authenticator.user(basic(f"user{number}", "x"), scope))
            for number, scope in enumerate(scopes)
        ]
        while not counting.runs:
            await asyncio.sleep(0)
        for connection in connections:
            connection.disconnected = True
        counting.go.set()
        ended = await asyncio.gather(*guesses, return_exceptions=True)
        assert sum(isinstance(one, ClientDisconnect) for one in ended) == 600 - counting.runs
        assert counting.runs <= 2 * AT_ONCE

    async def test_a_change_while_verifying_is_not_cached(
        self, world: World, counting: Counting
    ) -> None:
        counting.go.clear()
        authenticator = world.context.authenticator
        login = asyncio.ensure_future(authenticator.user(basic("tony", "secret"), REQUEST))
        while not counting.runs:
            await asyncio.sleep(0)
        world.users.set_permissions("guest", "/", "", "", "")
        counting.go.set()
        await login
        assert authenticator.cached(basic("tony", "secret"), REQUEST) is None

    async def test_bounded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(authentication, "MAX_CACHED", 3)
        users = guest_users()
        authenticator = Authenticator(users)
        for number in range(5):
            users.add_hashed(f"user{number}", GUEST_HASH)
            assert await authenticator.user(basic(f"user{number}", "guest"), REQUEST)
        cached = [
            authenticator.cached(basic(f"user{number}", "guest"), REQUEST) for number in range(5)
        ]
        assert sum(user is not None for user in cached) <= 3
        authenticator.close()


class TestThrottle:
    """reliability.md section 6, 69: the sixth login that fails within a minute."""

    @pytest.mark.parametrize("passwords", [["wrong"] * 5, list("abcde")])
    async def test_the_sixth_is_429(
        self, world: World, counting: Counting, passwords: list[str]
    ) -> None:
        for password in passwords:
            async with world.client(auth=("tony", password)) as http:
                problem(await http.get(PATH), 401)
        runs = counting.runs
        for password in ("f", "secret", "wrong"):
            async with world.client(auth=("tony", password)) as http:
                response = await http.get(PATH)
            assert "too many failed logins of this user" in problem(response, 429)
            assert 0 < int(response.headers["retry-after"]) <= 60
            assert "www-authenticate" not in response.headers
        assert counting.runs == runs

    @pytest.mark.parametrize("method", ["GET", "PUT", "POST", "DELETE"])
    async def test_on_every_route(self, world: World, method: str) -> None:
        for _ in range(5):
            world.users.throttle.failed("tony", HERE)
        async with world.client(auth=("tony", "secret")) as http:
            problem(await http.request(method, "/endpoint/x/tony"), 429)

    async def test_the_cache_is_not_used_after_many_wrong_guesses(self) -> None:
        users = guest_users()
        authenticator = Authenticator(users, logins=Logins(users, note([])))
        right = basic("guest", "guest")
        assert await authenticator.user(right, REQUEST)
        for number in range(FAILURES + UNCACHED_MAX + 1):
            assert authenticator.cached(right, REQUEST)
            with pytest.raises(Problem, match="wrong user or password"):
                await authenticator.user(basic("guest", f"wrong{number}"), REQUEST)
        assert authenticator.cached(right, REQUEST) is None
        # It is refused to nobody, but stands in line with the guesses.
        assert await authenticator.user(right, REQUEST)
        authenticator.close()

    async def test_failures_through_a_proxy_do_not_lock_out_local_clients(
        self, world: World
    ) -> None:
        async with world.client(auth=("tony", "wrong")) as http:
            for number in range(5):
                response = await http.get(PATH, headers={"X-Forwarded-For": f"10.0.0.{number}"})
                problem(response, 401)
            problem(await http.get(PATH, headers={"X-Forwarded-For": "10.0.0.5"}), 429)
        async with world.client(auth=("tony", "secret")) as http:
            assert (await http.get(PATH)).status_code == 200

    async def test_more_logins_than_may_wait(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(waiting_room, "MAX_BYTES", 0)
        async with world.client() as http:
            response = await http.get(PATH)
        assert "too many logins wait" in problem(response, 503)
        assert response.headers["retry-after"] == "1"
