"""Names `hub.*` are reserved for the hub, over AMQP and HTTP; older data directories may have
others."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import unquote

import httpx
import pytest

from tests.core.life import Life
from tests.support.http import Callback
from tests.support.server import WarrenServer
from tests.support.users import GUEST_HASH
from warrenmq.core.definitions.user_writer import UserWriter

from .raw import Channel, connect

pytestmark = pytest.mark.differs("has no hub")

RETRY = {
    "x-message-ttl": 1_000,
    "x-dead-letter-exchange": "",
    "x-dead-letter-strategy": "at-least-once",
}
ALTERNATE = {"alternate-exchange": "hub.topics"}
STEPS_S = (1, 2, 5)
"""Of which the first wait of a retry is made."""
UNSUBSCRIBE = {"hub.mode": "unsubscribe"}


@pytest.mark.parametrize(
    ("method", "fields"),
    [
        ("Queue.Declare", {"queue": "hub.dead", "durable": True}),
        ("Queue.Declare", {"queue": "hub.retry.1s", "durable": True, "arguments": RETRY}),
        ("Exchange.Declare", {"exchange": "hub.topics", "exchange_type": "fanout"}),
        ("Exchange.Declare", {"exchange": "hub.mine", "exchange_type": "fanout"}),
        ("Queue.Delete", {"queue": "hub.dead"}),
        ("Exchange.Delete", {"exchange": "hub.retry.1s"}),
        ("Queue.Bind", {"queue": "hub.dead", "exchange": "amq.fanout"}),
        ("Queue.Unbind", {"queue": "hub.retry.1s", "exchange": "hub.retry.1s"}),
        ("Exchange.Bind", {"destination": "hub.topics", "source": "amq.fanout"}),
    ],
)
def test_clients_can_not_declare_reserved_names(
    channel: Channel, method: str, fields: dict[str, Any]
) -> None:
    channel.send(method, **fields)
    text = channel.refused(403, culprit=method)
    name = fields.get("queue") or fields.get("exchange") or fields["destination"]
    kind = "queue" if "queue" in fields else "exchange"
    assert f"{kind} name '{name}' in vhost '/' contains reserved prefix 'hub.*'" in text


@pytest.mark.parametrize(
    ("method", "fields"),
    [
        ("Basic.Publish", {"exchange": "hub.topics", "routing_key": "http://a.example/"}),
        ("Basic.Publish", {"exchange": "hub.entries"}),
        ("Queue.Declare", {"queue": "q", "arguments": {"x-dead-letter-exchange": "hub.topics"}}),
        ("Exchange.Declare", {"exchange": "x", "exchange_type": "fanout", "arguments": ALTERNATE}),
    ],
)
def test_clients_can_not_publish_for_topics(
    channel: Channel, method: str, fields: dict[str, Any]
) -> None:
    channel.send(method, **fields)
    assert "clients can't publish to it" in channel.refused(403, culprit=method)


@pytest.mark.parametrize("query", ["", "?hub.mode=generate_token&hub.intended_use=subscribe"])
def test_http_can_not_publish_for_topics(warren: WarrenServer, query: str) -> None:
    url = f"{warren.http_url}/endpoint/x/hub.topics{query}"
    answer = httpx.request("GET" if query else "POST", url, auth=("guest", "guest"))
    assert answer.status_code == 403, answer.text
    assert "clients can't publish to it" in answer.json()["detail"]


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
@pytest.mark.parametrize("place", ["q/hub.dead", "x/hub.topics"])
def test_http_can_not_declare_reserved_names(warren: WarrenServer, method: str, place: str) -> None:
    answer = httpx.request(method, f"{warren.http_url}/endpoint/{place}", auth=("guest", "guest"))
    assert answer.status_code == 403, answer.text
    assert "reserved prefix 'hub.*'" in answer.json()["detail"]


def test_tokens_can_not_bind_reserved_names(warren: WarrenServer, channel: Channel) -> None:
    """A binding would let a delay queue return messages that were never in a retry queue."""
    with httpx.Client(base_url=warren.http_url, auth=("guest", "guest")) as http:
        path = f"/endpoint/q/{fail_once(http, channel)}"
        use = {"hub.mode": "generate_token", "hub.intended_use": "subscribe"}
        made = http.get(path, params=use)
        form = {
            "hub.mode": "subscribe", "hub.topic": "", "hub.callback": warren.http_url + path,
            "hub.verify_token": unquote(made.text.partition("=")[2]),
        }  # fmt: skip
        answer = http.post("/subscribe/x/amq.fanout", data=form)
    assert answer.status_code == 403, answer.text
    assert "reserved prefix 'hub.*'" in answer.json()["detail"]


def fail_once(http: httpx.Client, channel: Channel) -> str:
    """Makes a delivery that is tried again; returns the name of its delay queue."""
    with Callback() as callback:
        callback.script(503)
        form = {"hub.mode": "subscribe", "hub.callback": callback.url, "hub.topic": ""}
        answer = http.post("/subscribe/x/amq.fanout", data=form)
        assert answer.status_code == 204, answer.text
        channel.publish(b"again", exchange="amq.fanout")
        callback.wait(2)
        assert http.post("/subscribe/x/amq.fanout", data=form | UNSUBSCRIBE).status_code == 204
    names = [f"hub.retry.{seconds}s" for seconds in STEPS_S]
    return next(one for one in names if http.get(f"/endpoint/q/{one}").status_code == 200)


def test_existing_reserved_names_can_be_read(
    warren: WarrenServer, channel: Channel, name: str
) -> None:
    """With permission. Declaring one again with equal arguments is allowed."""
    with httpx.Client(base_url=warren.http_url, auth=("guest", "guest")) as http:
        delay = fail_once(http, channel)
    seconds = int(delay.removeprefix("hub.retry.").removesuffix("s"))
    channel.declare(delay, durable=True, arguments=RETRY | {"x-message-ttl": seconds * 1_000})
    channel.call("Queue.Purge", queue=delay)
    channel.declare(name)
    channel.call("Queue.Bind", queue=name, exchange=delay)
    channel.send("Queue.Declare", queue=delay, durable=True)
    channel.refused(406)


def test_reserved_names_of_an_older_directory_are_renamed(tmp_path: Path) -> None:
    """They would be retry queues with wrong arguments."""
    life = Life(tmp_path / "log")
    for seconds in STEPS_S:
        name = f"hub.retry.{seconds}s"
        vhost = life.broker.vhosts["/"]
        vhost.declare_queue(name, durable=True, arguments={"x-max-length": 1})
        vhost.declare_exchange(
            name, "direct", durable=True, auto_delete=False, internal=False, arguments={}
        )
        life.publish(b"mine", name)
    broker = life.broker
    storage, guest = UserWriter(broker.set_aside, broker.vhosts), broker.users.existing("guest")
    storage.save_user(guest, GUEST_HASH)
    storage.save_permissions(guest, "/", guest.permissions["/"])
    life.stop()
    with (
        WarrenServer(data=tmp_path) as warren,
        connect(warren.amqp_port) as client,
        httpx.Client(base_url=warren.http_url, auth=("guest", "guest")) as http,
    ):
        channel = client.channel()
        name = fail_once(http, channel)
        assert f"it was renamed to 'renamed.{name}'" in warren.output()
        assert channel.drain(f"renamed.{name}") == [b"mine"]
        channel.call("Queue.Delete", queue=f"renamed.{name}")
