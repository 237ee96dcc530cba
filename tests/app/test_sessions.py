"""Sessions of browsers: begun, used, refused to forgers, and ended."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_network
from typing import Any

import httpx
import pytest
from httpx import AsyncClient
from starlette.types import Scope

from tests.app.conftest import World
from tests.app.support import problem
from warrenmq.app.access.authentication import Authenticator
from warrenmq.app.access.clients import Clients
from warrenmq.app.access.session_cookies import is_secure
from warrenmq.app.access.sessions import MAX_PER_USER, Sessions
from warrenmq.core import VERSION
from warrenmq.core.auth import Users
from warrenmq.hub.service import Hub

LOGIN, SESSION, LOGOUT = (f"/api/warren/{verb}" for verb in ("login", "session", "logout"))
TONY = {"name": "tony", "password": "secret"}
OWN = {"Origin": "http://hub"}
VHOST = "/api/vhosts/made"


@pytest.fixture(autouse=True)
def _tony_administers(world: World) -> None:
    world.users.add("tony", "secret", ["administrator"])


async def log_in(http: AsyncClient, **given: Any) -> dict[str, str]:
    """The fields that a page sends with each change."""
    answer = await http.post(LOGIN, **({"json": TONY} | given))
    assert answer.status_code == 200, answer.text
    return {**OWN, "X-CSRF-Token": answer.json()["csrf_token"]}


class TestLogin:
    @pytest.mark.parametrize("given", [{"json": TONY}, {"json": None, "data": TONY}])
    async def test_a_login_begins_a_session(self, world: World, given: dict[str, Any]) -> None:
        async with world.client(auth=None) as http:
            page = await log_in(http, **given)
            found = (await http.get(SESSION)).json()
            assert (found["name"], found["tags"]) == ("tony", ["administrator"])
            assert found["csrf_token"] == page["X-CSRF-Token"]
            assert found["version"] == VERSION
            assert (await http.get("/api/whoami")).json()["name"] == "tony"
            assert (await http.put(VHOST, headers=page)).status_code == 201

    async def test_a_page_makes_a_token_for_its_streams(self, world: World, hub: Hub) -> None:
        await world.exchange("news")
        world.users.set_permissions("tony", "/", ".*", ".*", ".*")
        token = {"name": "console", "scopes": [{"read": "x/news"}], "expires_in_s": 600}
        async with world.client(auth=None) as http:
            page = await log_in(http)
            made = await http.post("/api/hub/tokens", json=token, headers=page)
            assert made.status_code == 201 and made.json()["token"].startswith("warren_")
            path = f"/api/hub/tokens/{made.json()['id']}"
            assert (await http.delete(path, headers=page)).status_code == 204

    async def test_the_cookie_without_tls(self, world: World) -> None:
        async with world.client(auth=None) as http:
            cookie = (await http.post(LOGIN, json=TONY)).headers["set-cookie"]
            name, _, attributes = cookie.partition("=")
            assert name == "warren-session"
            assert attributes.split("; ")[1:] == ["Path=/", "HttpOnly", "SameSite=Strict"]

    async def test_the_cookie_is_secure_where_the_public_url_has_tls(self, world: World) -> None:
        async with world.client(auth=None, public_url="https://hub.example") as http:
            cookie = (await http.post(LOGIN, json=TONY)).headers["set-cookie"]
            assert cookie.startswith("__Host-warren-session=")
            assert cookie.endswith("; Secure")
            value = cookie.partition("=")[2].partition(";")[0]
            for name, status in (("__Host-warren-session", 200), ("warren-session", 401)):
                answer = await http.get(SESSION, headers={"Cookie": f"{name}={value}"})
                assert answer.status_code == (status if name.startswith("__") else 401)

    async def test_refusals_ask_for_no_dialog_of_the_browser(self, world: World) -> None:
        async with world.client(auth=None) as http:
            wrong = await http.post(LOGIN, json={**TONY, "password": "other"})
            assert problem(wrong, 401) == "wrong user or password"
            stale = await http.get("/api/whoami", headers={"Cookie": "warren-session=gone"})
            new_page = await http.get(SESSION, headers={"X-CSRF-Token": ""})
            for answer in (wrong, stale, new_page):
                assert answer.headers["www-authenticate"] == 'Cookie realm="warren"'
            assert (await http.get("/api/whoami")).headers["www-authenticate"].startswith("Basic")

    async def test_guesses_are_counted_with_those_of_other_logins(self, world: World) -> None:
        async with world.client(auth=("tony", "wrong"), peer="10.0.0.1") as http:
            for _ in range(5):
                await http.get("/api/whoami")
            answer = await http.post(LOGIN, json=TONY)
            problem(answer, 429)
            assert int(answer.headers["retry-after"]) > 0

    async def test_guest_is_refused_from_other_machines(self, world: World) -> None:
        async with world.client(auth=None) as near:
            await near.post(LOGIN, json={"name": "guest", "password": "guest"})
            cookie = {"Cookie": f"warren-session={near.cookies['warren-session']}"}
            assert (await near.get(SESSION)).status_code == 200
            async with world.client(auth=None, peer="10.0.0.1") as http:
                assert (await http.get(SESSION, headers=cookie)).status_code == 401
                refused = await http.post(LOGIN, json={"name": "guest", "password": "guest"})
                assert refused.status_code == 401

    @pytest.mark.parametrize(
        ("given", "status"),
        [
            ({"json": {"name": "tony"}}, 400),
            ({"data": {"name": ["tony", "tony"], "password": "secret"}}, 400),
            ({"json": {**TONY, "more": "x" * 20_000}}, 413),
            ({"content": b"<a/>", "headers": {"Content-Type": "text/xml"}}, 415),
            ({"json": TONY, "headers": {"Origin": "http://evil.example"}}, 403),
        ],
    )
    async def test_bad_logins_are_refused(
        self, world: World, given: dict[str, Any], status: int
    ) -> None:
        async with world.client(auth=None) as http:
            problem(await http.post(LOGIN, **given), status)


class TestForgery:
    @pytest.mark.parametrize(
        ("changed", "reason"),
        [
            ({"X-CSRF-Token": None}, "needs the field X-CSRF-Token"),
            ({"X-CSRF-Token": "of another session"}, "needs the field X-CSRF-Token"),
            ({"Origin": None}, "needs the field Origin"),
            ({"Origin": "http://evil.example"}, "another site"),
            ({"Sec-Fetch-Site": "same-site"}, "another site"),
        ],
    )
    async def test_forged_changes_are_refused(
        self, world: World, changed: dict[str, str | None], reason: str
    ) -> None:
        async with world.client(auth=None) as http:
            page = {**await log_in(http), **changed}
            headers = {name: value for name, value in page.items() if value is not None}
            answer = await http.put(VHOST, headers=headers)
            assert (answer.status_code, reason in answer.json()["reason"]) == (403, True)
            assert "made" not in world.broker.vhosts

    @pytest.mark.parametrize(
        "path",
        ["/endpoint/x/amq.topic", "/subscribe/x/amq.topic", "/hub", "/subscriptions",
         "/stream/x/amq.topic", "/reversehttp", "/streams/%2F/a/offsets"],
    )  # fmt: skip
    @pytest.mark.parametrize("method", ["GET", "POST"])
    async def test_the_cookie_is_for_the_api_only(
        self, world: World, hub: Hub, path: str, method: str
    ) -> None:
        async with world.client(auth=None) as http:
            page = await log_in(http)
            with_cookie = await http.request(method, path, headers=page)
            http.cookies.clear()
            without = await http.request(method, path, headers=OWN)
            assert with_cookie.status_code == without.status_code
            assert with_cookie.status_code in (401, 405) or path == "/hub"


class TestEnd:
    async def test_logout_ends_this_one(self, world: World) -> None:
        async with world.client(auth=None) as http, world.client(auth=None) as other:
            page, _ = await log_in(http), await log_in(other)
            cookie = f"warren-session={http.cookies['warren-session']}"
            assert (await http.post(LOGOUT, headers=OWN)).status_code == 403
            assert (await http.post(LOGOUT, headers=page)).status_code == 204
            assert not http.cookies
            answer = await http.get(SESSION, headers={"Cookie": cookie})
            assert problem(answer, 401) == "there is no such session, or it is over: log in again"
            assert (await other.get(SESSION)).status_code == 200

    async def test_a_login_ends_the_one_before(self, world: World) -> None:
        async with world.client(auth=None) as http:
            await log_in(http)
            cookie = f"warren-session={http.cookies['warren-session']}"
            await log_in(http)
            http.cookies.clear()
            assert (await http.get(SESSION, headers={"Cookie": cookie})).status_code == 401

    @pytest.mark.parametrize("change", ["password", "tags", "removal"])
    async def test_a_session_ends_with_a_change_of_the_account(
        self, world: World, change: str
    ) -> None:
        async with world.client(auth=None) as http:
            await log_in(http)
            world.users.set_permissions("tony", "/", "", "", "")
            assert (await http.get(SESSION)).status_code == 200
            if change == "password":
                world.users.add("tony", "another", ["administrator"])
            elif change == "tags":
                world.users.set_tags("tony", ["management"])
            else:
                world.users.remove("tony")
            assert (await http.get(SESSION)).status_code == 401

    async def test_a_session_ends_with_time(self, world: World) -> None:
        now = [0.0]
        world.context = replace(world.context, sessions=Sessions(60, 100, lambda: now[0]))
        async with world.client(auth=None) as http:
            for times_s, status in (((59.0, 99.0), 200), ((60.0,), 401), ((50.0, 100.0), 401)):
                now[0] = 0.0
                await log_in(http)
                for now[0] in times_s:
                    answer: httpx.Response = await http.get(SESSION)
                assert answer.status_code == status


def test_too_many() -> None:
    users, sessions = Users(), Sessions()
    users.add("ann", "secret")
    users.add("bob", "secret")
    ann, bob = users.existing("ann"), users.existing("bob")
    kept = sessions.begin(bob, 1)
    secrets = [sessions.begin(ann, 1) for _ in range(MAX_PER_USER)]
    assert sessions.find(secrets[0])  # now the second one is the oldest
    sessions.begin(ann, 1)
    assert [bool(sessions.find(one)) for one in (kept, *secrets[:3])] == [True, True, False, True]


def test_changed_during_the_login() -> None:
    users, sessions = Users(), Sessions()
    users.add("ann", "secret")
    before = users.existing("ann").credentials_version
    users.add("ann", "other")
    assert sessions.find(sessions.begin(users.existing("ann"), before)) is None


async def test_only_where_passwords_are_accepted(world: World) -> None:
    encrypted = True
    authenticator = Authenticator(world.users, may_log_in=lambda _: encrypted)
    world.context = replace(world.context, authenticator=authenticator)
    async with world.client(auth=None) as http:
        await log_in(http)
        encrypted = False
        assert "use https" in problem(await http.get(SESSION), 403)
        assert "use https" in problem(await http.post(LOGIN, json=TONY), 403)
    authenticator.close()


@pytest.mark.parametrize(
    ("client", "field", "secure"),
    [("10.0.0.1", "https", True), ("10.0.0.1", "http", False), ("10.0.0.2", "https", False)],
)
def test_tls_ends_at_a_listed_proxy(client: str, field: str, secure: bool) -> None:
    scope: Scope = {
        "scheme": "http", "client": (client, 1), "headers": [(b"x-forwarded-proto", field.encode())]
    }  # fmt: skip
    Clients([ip_network("10.0.0.1/32")]).reveal(scope)
    assert is_secure(scope) is secure
