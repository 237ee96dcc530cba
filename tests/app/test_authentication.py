"""HTTP Basic with the broker's users (http_contract.md 4)."""

from __future__ import annotations

import asyncio
import base64
import threading
from typing import Any

import httpx
import pytest

from tests.app.conftest import World
from tests.app.support import problem
from tests.support.users import guest_users
from warren.app import authentication
from warren.app.authentication import Authenticator
from warren.core.auth import VERIFIED_FOR_S, User, Users

PATH = "/endpoint/x/amq.topic"


def basic(name: str, password: str) -> bytes:
    return b"Basic " + base64.b64encode(f"{name}:{password}".encode())


class TestAnswers:
    @pytest.mark.parametrize("method", ["GET", "PUT", "POST", "DELETE"])
    async def test_no_credentials(self, world: World, method: str) -> None:
        async with world.client(auth=None) as http:
            response = await http.request(method, PATH)
        problem(response, 401)
        assert response.headers["www-authenticate"] == 'Basic realm="warren"'

    @pytest.mark.parametrize(
        "authorization",
        [
            basic("guest", "wrong"),
            basic("nobody", "guest"),
            basic("", ""),
            b"Basic",
            b"Basic !!!!",
            b"Basic " + base64.b64encode(b"guest"),
            b"Basic " + base64.b64encode(b"\xff:\xff"),
            b"Bearer abc",
            b"",
        ],
    )
    async def test_wrong_ones(self, world: World, authorization: bytes) -> None:
        async with world.client(auth=None) as http:
            response = await http.get(PATH, headers={b"Authorization": authorization})
        problem(response, 401)
        assert "www-authenticate" in response.headers

    async def test_colon_and_umlaut_in_the_password(self, world: World) -> None:
        world.users.add("evan", "a:b:ü")
        world.users.set_permissions("evan", "/", "", "", "")
        async with world.client(auth=None) as http:
            headers = {b"Authorization": basic("evan", "a:b:ü").replace(b"Basic", b"bASIC")}
            assert (await http.get(PATH, headers=headers)).status_code == 200

    @pytest.mark.parametrize("peer", ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"])
    async def test_guest_from_loopback(self, world: World, peer: str) -> None:
        async with world.client(peer=peer) as http:
            assert (await http.get(PATH)).status_code == 200

    @pytest.mark.parametrize("peer", ["10.0.0.1", "::2", "::ffff:10.0.0.1", "testclient", ""])
    async def test_guest_from_afar(self, world: World, peer: str) -> None:
        async with world.client() as near:
            assert (await near.get(PATH)).status_code == 200
        async with world.client(peer=peer) as http:
            for header in ("X-Forwarded-For", "Forwarded", "X-Real-IP"):
                problem(await http.get(PATH, headers={header: "127.0.0.1"}), 401)

    async def test_others_from_afar(self, world: World) -> None:
        async with world.client(peer="10.0.0.1", auth=("tony", "secret")) as http:
            assert (await http.get(PATH)).status_code == 200


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Counting:
    """Counts what would have been argon2 runs, and can hold them."""

    def __init__(self, users: Users, monkeypatch: pytest.MonkeyPatch) -> None:
        self.runs = 0
        self.at_once = 0
        self.most_at_once = 0
        self.go = threading.Event()
        self.go.set()
        self._lock = threading.Lock()
        check = users.check

        def counted(name: str, password: str, *, loopback: bool) -> User | None:
            with self._lock:
                self.runs += 1
                self.at_once += 1
                self.most_at_once = max(self.most_at_once, self.at_once)
            assert threading.current_thread().name.startswith("password")
            assert self.go.wait(10)
            found = check(name, password, loopback=loopback)
            with self._lock:
                self.at_once -= 1
            return found

        monkeypatch.setattr(users, "check", counted)


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

    async def test_once_for_the_same_wrong_credentials(
        self, world: World, counting: Counting
    ) -> None:
        async with world.client(auth=("guest", "wrong")) as http:
            for _ in range(5):
                problem(await http.get(PATH), 401)
            assert counting.runs == 1
            world.users.add("guest", "wrong")
            assert (await http.get(PATH)).status_code == 200

    async def test_again_after_a_while(self, monkeypatch: pytest.MonkeyPatch) -> None:
        clock = Clock()
        users = guest_users(clock)
        authenticator, counting = Authenticator(users, clock), Counting(users, monkeypatch)
        for after_s, runs in ((0, 1), (VERIFIED_FOR_S - 1, 1), (2, 2)):
            clock.now += after_s
            assert await authenticator.user(basic("guest", "guest"), True)
            assert counting.runs == runs
        authenticator.close()

    async def test_four_at_once(self, world: World, counting: Counting) -> None:
        counting.go.clear()
        authenticator = world.context.authenticator
        headers = [basic("tony", f"wrong{number}") for number in range(10)]
        logins = [asyncio.ensure_future(authenticator.user(header, True)) for header in headers]
        while counting.runs < authentication.ARGON2_AT_ONCE:
            await asyncio.sleep(0)
        counting.go.set()
        await asyncio.gather(*logins, return_exceptions=True)
        assert (counting.runs, counting.most_at_once) == (10, 4)

    async def test_a_client_that_hangs_up_cancels_nobody(
        self, world: World, counting: Counting
    ) -> None:
        counting.go.clear()
        authenticator = world.context.authenticator
        first, second = (
            asyncio.ensure_future(authenticator.user(basic("tony", "secret"), True))
            for _ in range(2)
        )
        while not counting.runs:
            await asyncio.sleep(0)
        first.cancel()
        counting.go.set()
        assert (await second).name == "tony"
        assert counting.runs == 1

    async def test_a_change_while_verifying_is_not_remembered(
        self, world: World, counting: Counting
    ) -> None:
        counting.go.clear()
        authenticator = world.context.authenticator
        login = asyncio.ensure_future(authenticator.user(basic("tony", "secret"), True))
        while not counting.runs:
            await asyncio.sleep(0)
        world.users.set_permissions("guest", "/", "", "", "")
        counting.go.set()
        await login
        assert authenticator.remembered(basic("tony", "secret"), True) is None

    async def test_bounded(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(authentication, "MAX_REMEMBERED", 3)
        authenticator = world.context.authenticator
        for number in range(10):
            with pytest.raises(Exception, match="wrong user or password"):
                await authenticator.user(basic("x", str(number)), True)
        answers: dict[Any, Any] = authenticator._answers
        assert len(answers) <= 3
