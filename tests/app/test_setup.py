"""The first administrator of a new server, created with the link that it prints."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import httpx
import pika
import pika.exceptions
import pytest

from tests.app.conftest import World
from tests.app.support import problem
from tests.support.server import WarrenServer
from warrenmq.app.access.authentication import Authenticator
from warrenmq.app.access.setup_link import LASTS_S, SetupLink
from warrenmq.core.auth import Permissions

SETUP = "/api/warren/setup"
ADA = {"name": "ada", "password": "eleven purple rabbits"}


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


def offer(
    world: World, clock: Clock, takes_password: Callable[[str, str], bool] = lambda *_: True
) -> dict[str, str]:
    """The body of a request that uses a new link, which is the server's from now on."""
    link = SetupLink(world.users, takes_password, clock)
    world.context = replace(world.context, setup_link=link)
    return {**ADA, "secret": link.url("http://hub").removeprefix("http://hub/#/setup/")}


async def test_the_link_creates_one_administrator(world: World, clock: Clock) -> None:
    body = offer(world, clock)
    async with world.client(auth=None) as http:
        bodies = [body, {**body, "name": "bob"}]
        answers = await asyncio.gather(*(http.post(SETUP, json=one) for one in bodies))
        assert sorted(answer.status_code for answer in answers) == [201, 403]
        body["name"] = bodies[answers[0].status_code == 403]["name"]
        login = (body["name"], ADA["password"])
        found = await http.get("/api/whoami", auth=login)
        assert found.json() == {"name": body["name"], "tags": ["administrator"]}
        assert "no" in problem(await http.post(SETUP, json={**body, "name": "eve"}), 403)
    user = world.users.existing(body["name"])
    assert user.permissions == {"/": Permissions(".*", ".*", ".*")}
    assert world.hub.recorded == [(user.name, "127.0.0.1", "put", f"/api/users/{user.name}")]


@pytest.mark.parametrize(
    ("changed", "status", "reason"),
    [
        ({"secret": "guessed"}, 403, "this setup link does not work"),
        ({"secret": "gefunden: ä"}, 403, "this setup link does not work"),
        ({"name": "guest"}, 400, "choose another name"),
        ({"name": "tony"}, 409, "there is a user 'tony' already"),
        ({"name": ""}, 400, "name"),
        ({"password": ""}, 400, "password"),
        ({"password": "short"}, 400, "12 characters"),
    ],
)
async def test_bad_names_and_passwords_are_refused(
    world: World, clock: Clock, changed: dict[str, str], status: int, reason: str
) -> None:
    body = offer(world, clock, lambda _, password: password != "short") | changed
    async with world.client(auth=None) as http:
        assert reason in problem(await http.post(SETUP, json=body), status)
    assert {user.name for user in world.users} == {"guest", "tony"}


async def test_the_link_is_over_after_an_hour(world: World, clock: Clock) -> None:
    body = offer(world, clock)
    clock.now_s += LASTS_S
    async with world.client(auth=None) as http:
        problem(await http.post(SETUP, json=body), 403)
        clock.now_s -= 1
        assert (await http.post(SETUP, json=body)).status_code == 201


async def test_a_server_with_an_administrator_has_no_link(world: World, clock: Clock) -> None:
    body = offer(world, clock)
    async with world.client(auth=None) as http:
        world.context = replace(world.context, setup_link=None)
    async with world.client(auth=None) as http:
        problem(await http.post(SETUP, json=body), 403)


async def test_pages_of_others_and_plain_text_are_refused(world: World, clock: Clock) -> None:
    body = offer(world, clock)
    authenticator = Authenticator(world.users, may_log_in=lambda scope: scope["scheme"] == "https")
    world.context = replace(world.context, authenticator=authenticator)
    async with world.client(auth=None) as http:
        foreign = {"Origin": "http://evil.example"}
        url = f"https://hub{SETUP}"
        assert "another site" in problem(await http.post(url, json=body, headers=foreign), 403)
        assert "use https" in problem(await http.post(SETUP, json=body), 403)
        assert (await http.post(url, json=body)).status_code == 201
    authenticator.close()


def printed_link(server: WarrenServer) -> str:
    """The link of the last start; empty if none was printed."""
    lines = [line for line in server.output().splitlines() if "#/setup/" in line]
    assert len(lines) < 2
    return lines[0].rpartition(" ")[2] if lines else ""


def use(server: WarrenServer, link: str) -> httpx.Response:
    base_url, _, secret = link.partition("/#/setup/")
    assert base_url == f"http://localhost:{server.http_port}"
    return httpx.post(f"{server.http_url}{SETUP}", json={**ADA, "secret": secret})


def test_each_start_prints_a_new_link_until_one_is_used() -> None:
    with WarrenServer(dev=False) as server:
        first = printed_link(server)
        server.restart()
        second = printed_link(server)
        assert first != second
        assert use(server, first).status_code == 403
        assert use(server, second).status_code == 201
        with httpx.Client(base_url=server.http_url, auth=(ADA["name"], ADA["password"])) as http:
            assert http.get("/api/whoami").json()["name"] == "ada"
            with http.stream("GET", "/api/warren/log") as log:
                for line in log.iter_lines():
                    assert "#/setup/" not in line
                    if "ready after" in line:
                        break
        server.restart()
        assert not printed_link(server)
        assert httpx.get(f"{server.http_url}/api/whoami", auth=("ada", ADA["password"])).is_success


def test_no_link_where_somebody_can_log_in() -> None:
    admin = {"WARREN_DEFAULT_USER": "root", "WARREN_DEFAULT_PASS": ADA["password"]}
    for given in ({"WARREN_ALLOW_GUEST": "1"}, admin):
        with WarrenServer(dev=False, env=given) as server:
            assert not printed_link(server)


def test_without_a_first_user_nobody_logs_in_from_other_machines() -> None:
    env = {"WARREN_ALLOW_PLAINTEXT": "1"}
    with WarrenServer(dev=False, env=env, args=["--host", "0.0.0.0"]) as server:
        link = printed_link(server)
        with pytest.raises(pika.exceptions.AMQPConnectionError):
            pika.BlockingConnection(pika.URLParameters(server.amqp_url))
        weak = {**ADA, "password": "short", "secret": link.rpartition("/")[2]}
        assert "12 characters" in problem(httpx.post(f"{server.http_url}{SETUP}", json=weak), 400)
        assert use(server, link).status_code == 201
        url = server.amqp_url.replace("guest:guest", f"ada:{ADA['password'].replace(' ', '%20')}")
        pika.BlockingConnection(pika.URLParameters(url)).close()
