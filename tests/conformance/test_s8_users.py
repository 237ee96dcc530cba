"""Logins with all kinds of password hashes, throttling, and limits (amqp.md section 8)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from tests.support.definitions import server_with
from tests.support.server import WarrenServer

from . import raw
from .raw import Client

pytestmark = pytest.mark.differs("has users of its own")

HASHES = {  # what RabbitMQ 3.10.8 made of the password `secret`
    "sha256": "AooJzju8/26DNt7JG8KqzbTFtDL7hFOsSj4/uutyxYMdgAC3",
    "sha512": "ZWTDCt9Me6CjKJHGqaiq1fnRHN8/trxJ2VZD5JdfLUw1lybtQ8fbBq6jjrRwER/KN8nkcAfkTY/"
    "RmQAHiwu6YWuyAfI=",
    "md5": "/WNKzYzflEglYWJ1oeRPrUjwaHk=",
}
OTHERS = ("tony", "evan", "nina", "olga", "limited")
PATH = "/endpoint/x/amq.topic"
ALL = {"configure": ".*", "write": ".*", "read": ".*"}
FILE: dict[str, Any] = {
    "vhosts": [{"name": "/"}, {"name": "v", "limits": {"max-connections": 2, "max-queues": 1}}],
    "users": [
        {"name": "guest", "password": "guest", "tags": "administrator"},
        {"name": "nopass", "password_hash": ""},
        *(
            {"name": name, "password_hash": found,
             "hashing_algorithm": f"rabbit_password_hashing_{name}"}
            for name, found in HASHES.items()
        ),
        *({"name": name, "password": "secret"} for name in OTHERS[:-1]),
        {"name": "limited", "password": "secret",
         "limits": {"max-connections": 1, "max-channels": 2}},
    ],
    "permissions": [
        {"user": user, "vhost": vhost, **ALL}
        for user in ("guest", "nopass", *HASHES, *OTHERS)
        for vhost in ("/", "v")
    ],
}  # fmt: skip
REFUSED = (
    "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN. For details see "
    "the broker logfile."
)


@pytest.fixture(scope="module")
def warren(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarrenServer]:
    with server_with(tmp_path_factory.mktemp("users") / "data", FILE, dev=False) as server:
        yield server
        assert "Traceback" not in server.output()


Dial = Callable[[], Client]
Connect = Callable[..., Client]


def refused(dial: Dial, user: str, password: str) -> None:
    client = dial()
    client.start()
    client.log_in(user, password)
    client.closed(403, REFUSED)


@pytest.mark.parametrize("name", HASHES)
def test_passwords_that_rabbitmq_hashed(connect: Connect, dial: Dial, name: str) -> None:
    refused(dial, name, "wrong")
    for _ in range(2):
        connect(user=name, password="secret").channel()


@pytest.mark.parametrize("password", ["", "secret"])
def test_empty_hash_permits_no_login(dial: Dial, password: str) -> None:
    refused(dial, "nopass", password)


def five_wrong_ones(warren: WarrenServer, dial: Dial, user: str) -> None:
    for number in range(3):
        refused(dial, user, f"wrong{number}")
    for _ in range(2):
        answer = httpx.get(f"{warren.http_url}{PATH}", auth=(user, "wrong"))
        assert answer.status_code == 401


def test_the_sixth_login_is_refused_unchecked(
    warren: WarrenServer, connect: Connect, dial: Dial
) -> None:
    """reliability.md section 4: the answer is the same, and AMQP and HTTP count together."""
    five_wrong_ones(warren, dial, "olga")
    refused(dial, "olga", "secret")
    refused(dial, "olga", "wrong")
    answer = httpx.get(f"{warren.http_url}{PATH}", auth=("olga", "secret"))
    assert answer.status_code == 429
    assert 0 < int(answer.headers["retry-after"]) <= 60
    assert httpx.get(f"{warren.http_url}{PATH}", auth=("evan", "secret")).status_code == 200
    connect(user="evan", password="secret")


@pytest.mark.parametrize("by", ["amqp", "http"])
def test_a_trusted_address_may_log_in_after_failures(
    warren: WarrenServer, connect: Connect, dial: Dial, by: str
) -> None:
    user = {"amqp": "tony", "http": "sha512"}[by]
    if by == "amqp":
        connect(user=user, password="secret")
    else:
        httpx.get(f"{warren.http_url}{PATH}", auth=(user, "secret"))
    five_wrong_ones(warren, dial, user)
    refused(dial, user, "wrong0")
    connect(user=user, password="secret").channel()
    assert httpx.get(f"{warren.http_url}{PATH}", auth=(user, "secret")).status_code == 200


@pytest.mark.parametrize(
    "options",
    [{"dev": True}, {"env": {"WARREN_LOGIN_THROTTLE": "0", "WARREN_ALLOW_GUEST": "1"}}],
)
def test_without_a_throttle(options: dict[str, Any]) -> None:
    with WarrenServer(**{"dev": False, **options}) as server:
        for _ in range(6):
            answer = httpx.get(f"{server.http_url}{PATH}", auth=("guest", "wrong"))
            assert answer.status_code == 401
        answer = httpx.get(f"{server.http_url}{PATH}", auth=("guest", "guest"))
        assert answer.status_code == 200


def test_unknown_users_are_refused_like_known_ones(dial: Dial) -> None:
    for _ in range(7):
        refused(dial, "nobody", "secret")


def test_update_secret_does_not_count_as_a_failed_login(connect: Connect) -> None:
    for number in range(6):
        client = connect(user="nina", password="secret")
        client.send_method("Connection.UpdateSecret", new_secret=f"wrong{number}", reason="")
        client.expect("Connection.UpdateSecretOk")


# -- limits


def not_opened(dial: Dial, user: str, vhost: str, text: str) -> None:
    client = dial()
    client.start()
    client.log_in(user, "secret")
    client.tune()
    client.send_method("Connection.Open", virtual_host=vhost)
    client.closed(530, f"NOT_ALLOWED - {text}", "Connection.Open")


def test_connections_in_a_vhost(connect: Connect, dial: Dial) -> None:
    first = connect(user="evan", password="secret", vhost="v")
    connect(user="limited", password="secret", vhost="v").close()
    connect(user="evan", password="secret", vhost="v")
    text = "access to vhost 'v' refused for user 'evan': connection limit (2) is reached"
    not_opened(dial, "evan", "v", text)
    connect(user="evan", password="secret")
    first.close()
    connect(user="evan", password="secret", vhost="v").close()


def test_connections_and_channels_of_a_user(connect: Connect, dial: Dial) -> None:
    client: raw.Client = connect(user="limited", password="secret")
    text = "connection refused for user 'limited': user connection limit (1) is reached"
    not_opened(dial, "limited", "/", text)
    client.channel(1)
    client.channel(2)
    client.send_method("Channel.Open", 3)
    client.closed(
        530,
        "NOT_ALLOWED - number of channels opened for user 'limited' has reached the maximum "
        "allowed user limit of (2)",
        "Channel.Open",
    )
    connect(user="limited", password="secret").close()


def test_queues_in_a_vhost(connect: Connect) -> None:
    client = connect(user="evan", password="secret", vhost="v")
    channel = client.channel()
    channel.declare("one", exclusive=True)
    channel.declare("one", exclusive=True)
    channel.send("Queue.Declare", queue="two")
    channel.refused(
        406,
        "PRECONDITION_FAILED - cannot declare queue 'two': queue limit in vhost 'v' (1) is reached",
        "Queue.Declare",
    )
    channel.open()
    channel.call("Queue.Delete", queue="one")
    channel.declare("two", exclusive=True)
    client.close()
