"""What is refused where other machines can reach the server."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.types import Scope

from tests.app.conftest import World
from tests.app.support import problem
from tests.support.users import guest_users
from warrenmq.app.access.authentication import Authenticator
from warrenmq.app.access.clients import Clients
from warrenmq.app.cli import run
from warrenmq.app.configuration.parsers import networks
from warrenmq.app.configuration.settings import Settings
from warrenmq.app.exposure import Exposure
from warrenmq.core.auth import Users
from warrenmq.core.errors import ConfigError

FAR = "203.0.113.5"
GOOD = {"default_user": "warren", "default_pass": "eleven purple rabbits"}


def beyond(**settings: object) -> Exposure:
    return Exposure(Settings(host="0.0.0.0", **settings))  # type: ignore[arg-type]


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.9.9.9", "::1"])
def test_on_this_machine_nothing_is_refused(host: str) -> None:
    exposure = Exposure(Settings(host=host, default_pass="x"))
    exposure.check_ports()
    assert exposure.first_user() == ("guest", "x")
    exposure.check_guest(guest_users())
    assert exposure.takes_plaintext


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_plaintext_passwords_are_refused(host: str) -> None:
    with pytest.raises(ConfigError, match="WARREN_ALLOW_PLAINTEXT=1") as caught:
        Exposure(Settings(host=host)).check_ports()
    assert str(caught.value).startswith(f"{host} can be reached from other machines")
    assert "tls_cert" in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "plaintext"),
    [
        ({"allow_plaintext": True}, True),
        ({"tls_cert": "cert.pem", "tls_key": "key.pem"}, False),
        ({"http_proxies": "10.0.0.0/8"}, False),
        ({"proxy_protocol_from": "10.0.0.0/8"}, False),
    ],
)
def test_settings_that_allow_passwords(settings: dict[str, object], plaintext: bool) -> None:
    exposure = beyond(**settings)
    exposure.check_ports()
    assert exposure.takes_plaintext is plaintext


def test_guest_as_the_first_user() -> None:
    assert beyond().first_user() is None  # a link creates one
    with pytest.raises(ConfigError, match="WARREN_DEFAULT_USER.*WARREN_ALLOW_GUEST=1"):
        beyond(default_pass=GOOD["default_pass"]).first_user()
    allowed = beyond(allow_guest=True, default_pass=GOOD["default_pass"])
    assert allowed.first_user() == ("guest", GOOD["default_pass"])
    assert beyond(**GOOD).first_user() == ("warren", GOOD["default_pass"])


@pytest.mark.parametrize(
    "password", ["something", "12345678901", "aaaaaaaaaaaaaaaa", "warrenwarren", "Warren123456"]
)
def test_weak_first_passwords(password: str) -> None:
    with pytest.raises(ConfigError, match="12 characters.*WARREN_ALLOW_WEAK_PASSWORD=1"):
        beyond(default_user="warren", default_pass=password).first_user()
    weak = beyond(default_user="warren", default_pass=password, allow_weak_password=True)
    assert weak.first_user() == ("warren", password)


def test_an_existing_guest_is_refused() -> None:
    with pytest.raises(ConfigError, match="delete the user"):
        beyond().check_guest(guest_users())
    beyond(allow_guest=True).check_guest(guest_users())
    beyond().check_guest(Users())
    users = Users()
    users.add("guest", "another password")
    beyond().check_guest(users)


def test_the_command_prints_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("signal.signal", lambda *_: None)
    assert run(["serve", "--data", str(tmp_path / "data"), "--host", "0.0.0.0"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "WARREN_ALLOW_PLAINTEXT=1" in line


@pytest.mark.parametrize(
    ("scope", "may"),
    [
        ({"client": (FAR, 1), "scheme": "http"}, False),
        ({"client": (FAR, 1), "scheme": "https"}, True),
        ({"client": ("127.0.0.1", 1), "scheme": "http"}, True),
    ],
)
def test_passwords_need_tls_from_other_machines(scope: Scope, may: bool) -> None:
    assert beyond(tls_cert="c", tls_key="k").may_log_in(scope) is may
    assert beyond(allow_plaintext=True).may_log_in(scope)


def test_passwords_through_a_trusted_proxy() -> None:
    headers = [(b"x-forwarded-for", FAR.encode())]
    scope: Scope = {"client": ("10.0.0.1", 1), "scheme": "http", "headers": headers}
    exposure = beyond(http_proxies="10.0.0.0/8")
    assert not exposure.may_log_in(scope)
    Clients(networks("10.0.0.0/8")).reveal(scope)
    assert exposure.may_log_in(scope)


async def test_http_refuses_a_password_that_others_could_read(world: World) -> None:
    exposure = beyond(tls_cert="c", tls_key="k")
    authenticator = Authenticator(world.users, may_log_in=exposure.may_log_in)
    object.__setattr__(world.context, "authenticator", authenticator)
    async with world.client(auth=("tony", "secret"), peer=FAR) as http:
        safe = await http.get("https://hub/endpoint/q/tony")
        assert safe.status_code == 404
        for password in ("secret", "wrong"):
            answer = await http.get("http://hub/endpoint/q/tony", auth=("tony", password))
            assert "use https" in problem(answer, 403)
    authenticator.close()
