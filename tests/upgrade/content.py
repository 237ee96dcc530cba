"""What a data directory of the fixtures has, and what of it a server shows."""

from __future__ import annotations

from typing import Any

import httpx
import pika

from tests.support.http import Callback
from tests.support.process import wait_until
from tests.support.server import WarrenServer
from warrenmq.core.auth.reserved import is_reserved

GUEST = ("guest", "guest")
ANN = ("ann", "eleven purple rabbits")
WAIT_S = 60
STREAM_LENGTH = 10
_STREAM = {"x-queue-type": "stream"}
_QUEUES: dict[str, dict[str, Any]] = {
    "orders": {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"},
    "dead": {},
    "jobs": {"x-queue-type": "quorum", "x-delivery-limit": 5},
    "ranked": {"x-max-priority": 9},
    "once": {"x-message-deduplication": True},
    "paused": {},
    "log": _STREAM,
}


def fill(server: WarrenServer, callback: Callback) -> dict[str, Any]:
    """Makes something of each kind that is stored; returns the secrets, which are shown once."""
    with httpx.Client(base_url=f"{server.http_url}/api", auth=GUEST, timeout=WAIT_S) as http:
        _definitions(http)
        _messages(server.amqp_url)
        http.put("/queues/%2F/paused/pause").raise_for_status()
        return _hub(http, server, callback)


def _definitions(http: httpx.Client) -> None:
    puts: dict[str, dict[str, Any]] = {
        "/vhosts/shop": {"description": "a shop", "tags": "a,b"},
        "/users/ann": {"password": ANN[1], "tags": "monitoring"},
        "/permissions/%2F/ann": {"configure": "", "write": "^orders$", "read": ".*"},
        "/permissions/shop/guest": {"configure": ".*", "write": ".*", "read": ".*"},
        "/topic-permissions/%2F/ann": {"exchange": "amq.topic", "write": "^a", "read": ".*"},
        "/vhost-limits/shop/max-queues": {"value": 7},
        "/user-limits/ann/max-channels": {"value": 9},
        "/policies/%2F/old": {"pattern": "^dead$", "definition": {"max-length": 99}},
        "/operator-policies/%2F/cap": {"pattern": "^dead$", "definition": {"max-length": 999}},
        "/global-parameters/color": {"value": ["green"]},
        "/exchanges/shop/late": {
            "type": "x-delayed-message", "arguments": {"x-delayed-type": "direct"},
        },
        "/queues/shop/late": {"durable": True},
    }  # fmt: skip
    puts |= {
        f"/queues/%2F/{name}": {"durable": True, "arguments": arguments}
        for name, arguments in _QUEUES.items()
    }
    for path, body in puts.items():
        http.put(path, json=body).raise_for_status()
    bindings: dict[str, Any] = {
        "/e/amq.headers/q/orders": {"arguments": {"x-match": "any", "n": 1}}
    }
    bindings["/e/amq.topic/q/log"] = {"routing_key": "logs.#"}
    for path, body in bindings.items():
        http.post(f"/bindings/%2F{path}", json=body).raise_for_status()
    http.post("/bindings/shop/e/late/q/late", json={"routing_key": "k"}).raise_for_status()


def _messages(url: str) -> None:
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()

        def publish(queue: str, body: str, **properties: Any) -> None:
            channel.basic_publish(
                "", queue, body.encode(), pika.BasicProperties(delivery_mode=2, **properties)
            )

        publish("orders", "all", content_type="text/plain", headers={"n": 1, "t": [None, True]},
            message_id="m", correlation_id="c", timestamp=1_700_000_000, app_id="a")  # fmt: skip
        publish("orders", "second")
        publish("orders", "rejected")
        for priority in (1, 9, 5):
            publish("ranked", str(priority), priority=priority)
        for _ in range(2):
            publish("once", "same", headers={"x-deduplication-header": "id"})
        publish("jobs", "returned")
        publish("paused", "kept")
        for number in range(STREAM_LENGTH):
            channel.basic_publish("amq.topic", f"logs.{number}", b"x" * number)
        tags = [channel.basic_get("orders")[0].delivery_tag for _ in range(3)]
        channel.basic_reject(tags[2], requeue=False)
        channel.basic_nack(channel.basic_get("jobs")[0].delivery_tag)
        channel.basic_nack(tags[0])
        channel.basic_ack(tags[1])
        channel.queue_declare("orders", passive=True)  # Its answer comes behind the rest.


def add(server: WarrenServer) -> None:
    """Publishes one more message, behind what the last stop has tidied up."""
    url = f"{server.http_url}/endpoint/q/orders"
    httpx.post(url, content="last", auth=GUEST, timeout=WAIT_S).raise_for_status()


def _hub(http: httpx.Client, server: WarrenServer, callback: Callback) -> dict[str, Any]:
    callback.script(500)
    form = {"hub.mode": "subscribe", "hub.callback": callback.url, "hub.secret": "s" * 32}
    url = f"{server.http_url}/subscribe/x/amq.direct"
    http.post(url, data={**form, "hub.topic": "hooked"}).raise_for_status()
    key = {"hub.topic": "hooked"}
    http.post(f"{server.http_url}/endpoint/x/amq.direct", params=key, content="failed")
    wait_until(
        lambda: http.get("/hub/dead-letters").json()["total_count"] == 1, WAIT_S, "a dead letter"
    )
    output = {"sources": [{"exchange": "amq.fanout"}], "title": "News"}
    http.put("/hub/outputs/news", json=output).raise_for_status()
    token = {"name": "page", "scopes": [{"read": "q/log"}], "expires_in_s": 365 * 86_400}
    capability = {"vhost": "/", "type": "q", "name": "orders", "note": "in"}
    return {
        "token": http.post("/hub/tokens", json=token).raise_for_status().json()["token"],
        "capability": http.post("/hub/capabilities", json=capability).raise_for_status().json(),
    }


_SHOWN: dict[str, tuple[str, tuple[str, ...]]] = {
    "subscriptions": (
        "hub/subscriptions",
        ("id", "callback", "topic", "vhost", "owner", "secret", "options"),
    ),
    "dead letters": ("hub/dead-letters", ("webhook_id", "callback", "routing_key", "attempts")),
    "tokens": ("hub/tokens", ("id", "name", "owner", "scopes")),
    "capabilities": ("hub/capabilities", ("id", "vhost", "note")),
    "outputs": ("hub/outputs", ("vhost", "name", "title")),
    "queues": ("queues", ("vhost", "name", "type", "state", "messages", "policy")),
}
"""Lists of the management API, with the keys whose values stay as they are."""
_LISTS = ("items", "dead_letters", "subscriptions")


def shown(server: WarrenServer, secrets: dict[str, Any]) -> dict[str, Any]:
    """What a server shows of this content."""
    with httpx.Client(base_url=f"{server.http_url}/api", auth=GUEST, timeout=WAIT_S) as http:
        found: dict[str, Any] = {
            name: _listed(http, path, keys) for name, (path, keys) in _SHOWN.items()
        }
        found["definitions"] = _without_own(_got(http, "/definitions"))
        found["messages"] = {
            name: _got(http, f"/warren/queues/%2F/{name}/messages?count=100")["messages"]
            for name in _QUEUES
        }
    poll = {"accept": "application/json", "authorization": f"Bearer {secrets['token']}"}
    with httpx.Client(base_url=server.http_url, headers=poll, timeout=WAIT_S) as page:
        found["stream"] = _got(page, "/stream/q/log?cursor=first")["messages"]
    found["ann"] = httpx.get(f"{server.http_url}/api/whoami", auth=ANN).json()
    return found


def _listed(http: httpx.Client, path: str, keys: tuple[str, ...]) -> list[Any]:
    found = _got(http, f"/{path}")
    rows = found if isinstance(found, list) else next(found[key] for key in _LISTS if key in found)
    return [{key: row[key] for key in keys} for row in rows if not _is_own(row)]


def _without_own(definitions: dict[str, Any]) -> dict[str, Any]:
    """Leaves out what a later version may add to."""
    lists = {name: rows for name, rows in definitions.items() if isinstance(rows, list)}
    return {name: [row for row in rows if not _is_own(row)] for name, rows in lists.items()}


def _is_own(row: dict[str, Any]) -> bool:
    """Whether it is the hub's."""
    names = (row.get("name"), row.get("source"), row.get("destination"))
    return any(isinstance(name, str) and is_reserved(name) for name in names)


def _got(http: httpx.Client, path: str) -> Any:
    return http.get(path).raise_for_status().json()
