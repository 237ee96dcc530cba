"""Access control (amqp.md section 8): operation by right, over AMQP and over HTTP.

The user of these tests may configure what has a `c` behind the dot of its name, write what has a
`w` and read what has an `r`, so a name says which rights there are for it.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import httpx
import pytest

from tests.support.definitions import server_with
from tests.support.server import WarrenServer
from tests.support.streams import LiveSocket
from warrenmq.core.message.model import Properties, Table
from warrenmq.core.wire.properties import encode

from .raw import Channel, Client
from .test_transactions import Writer, rows

pytestmark = pytest.mark.differs("3.10 words refusals without the right, and has users of its own")

USER = "p"
FILE = {
    "vhosts": [{"name": "/"}, {"name": "other"}],
    "users": [
        {"name": "guest", "password": "guest", "tags": "administrator"},
        {"name": USER, "password": USER},
        {"name": "named", "password": "named"},
        {"name": "topics", "password": "topics", "tags": "management"},
    ],
    "permissions": [
        {"user": "guest", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"},
        {"user": USER, "vhost": "/", **{
            right: rf"\.[cwr]*{right[0]}[cwr]*$" for right in ("configure", "write", "read")
        }},
        {"user": "named", "vhost": "/", "configure": r"^amq\.gen-.{22}$", "write": "default$",
         "read": ""},
        {"user": "topics", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"},
    ],
    "topic_permissions": [
        {"user": "topics", "vhost": "/", "exchange": exchange, "write": "^{username}\\.",
         "read": "^(eu|{vhost})\\."}
        for exchange in ("news", "amq.direct", "delayed")
    ],
}  # fmt: skip

Right = Literal["configure", "write", "read"]
ALL: tuple[Right, ...] = ("configure", "write", "read")


@pytest.fixture(scope="module")
def warren(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarrenServer]:
    with server_with(tmp_path_factory.mktemp("rights") / "data", FILE) as server:
        yield server
        assert "Traceback" not in server.output()


@pytest.fixture
def p(connect: Callable[..., Client]) -> Channel:
    """A channel of the user whose permissions are in the names."""
    return connect(user=USER, password=USER).channel()


@dataclass(frozen=True)
class Thing:
    """An exchange or a queue that an operation needs rights for."""

    kind: Literal["exchange", "queue"]
    needs: tuple[Right, ...]
    exists: bool = True

    def named(self, name: str, missing: Right | None = None) -> str:
        """With the rights that are needed and no more, or with all but one."""
        rights = self.needs if missing is None else [one for one in ALL if one != missing]
        return f"{name}.{''.join(right[0] for right in rights)}"

    def make(self, channel: Channel, name: str) -> None:
        if not self.exists:
            return
        if self.kind == "queue":
            channel.declare(name)
        else:
            channel.call("Exchange.Declare", exchange=name, exchange_type="fanout")


@dataclass(frozen=True)
class Operation:
    """`things` are put into the fields, and into the arguments, under their keys."""

    name: str
    things: dict[str, Thing]
    fields: dict[str, Any] = field(default_factory=dict)
    about: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.name, self.about)))

    def send(self, channel: Channel, names: dict[str, str]) -> None:
        arguments = {key: name for key, name in names.items() if "-" in key}
        fields: dict[str, Any] = {key: names[key] for key in names.keys() - arguments.keys()}
        if self.name == "Basic.Publish":
            channel.publish(b"", **fields, **self.fields)
            channel.send("Basic.Qos")  # has an answer, as a publish has not
        elif arguments:
            channel.send(self.name, **fields, **self.fields, arguments=arguments)
        else:
            channel.send(self.name, **fields, **self.fields)


def exchange(*needs: Right, exists: bool = True) -> Thing:
    return Thing("exchange", needs, exists)


def queue(*needs: Right, exists: bool = True) -> Thing:
    return Thing("queue", needs, exists)


NEW_EXCHANGE = {"exchange": exchange("configure", exists=False)}
FANOUT = {"exchange_type": "fanout"}
OPERATIONS = [
    Operation("Exchange.Declare", NEW_EXCHANGE, FANOUT),
    Operation("Exchange.Declare", {"exchange": exchange("configure")}, FANOUT, "again"),
    Operation(
        "Exchange.Declare",
        {"exchange": exchange("configure", "read", exists=False),
         "alternate-exchange": exchange("write", exists=False)},
        FANOUT, "with an alternate",
    ),
    Operation("Exchange.Delete", {"exchange": exchange("configure")}),
    Operation("Exchange.Delete", NEW_EXCHANGE, {}, "of none"),
    Operation("Exchange.Bind", {"destination": exchange("write"), "source": exchange("read")}),
    Operation("Exchange.Unbind", {"destination": exchange("write"), "source": exchange("read")}),
    Operation("Queue.Declare", {"queue": queue("configure", exists=False)}),
    Operation("Queue.Declare", {"queue": queue("configure")}, {}, "again"),
    Operation(
        "Queue.Declare",
        {"queue": queue("configure", "read", exists=False),
         "x-dead-letter-exchange": exchange("write", exists=False)},
        {}, "with a dead-letter exchange",
    ),
    Operation("Queue.Delete", {"queue": queue("configure")}),
    Operation("Queue.Delete", {"queue": queue("configure", exists=False)}, {}, "of none"),
    Operation("Queue.Bind", {"queue": queue("write"), "exchange": exchange("read")}),
    Operation("Queue.Unbind", {"queue": queue("write"), "exchange": exchange("read")}),
    Operation("Queue.Purge", {"queue": queue("read")}),
    Operation("Basic.Publish", {"exchange": exchange("write")}),
    Operation("Basic.Consume", {"queue": queue("read")}),
    Operation("Basic.Get", {"queue": queue("read")}),
]  # fmt: skip
ANSWERS = {"Basic.Publish": "Basic.QosOk", "Basic.Get": "Basic.GetEmpty"}
REFUSALS = [
    pytest.param(operation, key, right, id=f"{operation}: {right} of {key}")
    for operation in OPERATIONS
    for key, thing in operation.things.items()
    for right in thing.needs
]


def refusal(right: str, kind: str, name: str, user: str = USER) -> str:
    return f"{right} access to {kind} '{name}' in vhost '/' refused for user '{user}'"


def make(channel: Channel, operation: Operation, names: dict[str, str]) -> None:
    for key, thing in operation.things.items():
        thing.make(channel, names[key])


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_the_permissions_of_the_table_suffice(
    operation: Operation, p: Channel, channel: Channel, name: str
) -> None:
    names = {key: thing.named(f"{name}{key}") for key, thing in operation.things.items()}
    make(channel, operation, names)
    operation.send(p, names)
    p.expect(ANSWERS.get(operation.name, f"{operation.name}Ok"))


@pytest.mark.parametrize(("operation", "lacking", "right"), REFUSALS)
def test_each_permission_is_needed(
    operation: Operation, lacking: str, right: Right, p: Channel, channel: Channel, name: str
) -> None:
    names = {
        key: thing.named(f"{name}{key}", right if key == lacking else None)
        for key, thing in operation.things.items()
    }
    make(channel, operation, names)
    operation.send(p, names)
    kind = operation.things[lacking].kind
    text = f"ACCESS_REFUSED - {refusal(right, kind, names[lacking])}"
    assert p.refused(403, culprit=operation.name) == text


@pytest.mark.parametrize(
    ("kind", "declare", "fields"),
    [
        ("queue", "Queue.Declare", {"queue": "{}"}),
        ("exchange", "Exchange.Declare", {"exchange": "{}", "exchange_type": "fanout"}),
    ],
)
class TestPassiveDeclares:
    """RabbitMQ from 4.3.1 on: any right of the three."""

    @pytest.mark.parametrize("rights", ["c", "w", "r"])
    def test_any_right_is_enough(
        self, kind: str, declare: str, fields: dict[str, str], rights: str,
        p: Channel, channel: Channel, name: str,
    ) -> None:  # fmt: skip
        fields = {key: value.format(f"{name}.{rights}") for key, value in fields.items()}
        channel.call(declare, **fields)
        p.call(declare, **fields, passive=True)

    @pytest.mark.parametrize("exists", [True, False])
    def test_refusal_hides_whether_the_object_exists(
        self, kind: str, declare: str, fields: dict[str, str], exists: bool,
        p: Channel, channel: Channel, name: str,
    ) -> None:  # fmt: skip
        fields = {key: value.format(f"{name}.") for key, value in fields.items()}
        if exists:
            channel.call(declare, **fields)
        p.send(declare, **fields, passive=True)
        text = f"access to {kind} '{name}.' in vhost '/' refused for user 'p'"
        p.refused(403, f"ACCESS_REFUSED - {text}", declare)


def test_redeclaring_an_exchange_needs_no_rights_for_its_alternate(
    p: Channel, channel: Channel, name: str
) -> None:
    fields: dict[str, Any] = {
        "exchange": f"{name}.c", "exchange_type": "fanout",
        "arguments": {"alternate-exchange": "amq.fanout"},
    }  # fmt: skip
    channel.call("Exchange.Declare", **fields)
    p.call("Exchange.Declare", **fields)


def test_redeclaring_a_queue_needs_no_rights_for_its_dead_letters(
    p: Channel, channel: Channel, name: str
) -> None:
    arguments = {"x-dead-letter-exchange": "amq.fanout"}
    channel.declare(f"{name}.c", arguments=arguments)
    p.declare(f"{name}.c", arguments=arguments)


class TestNamesThatAreNotGiven:
    def test_a_server_named_queue_is_configured(self, p: Channel) -> None:
        p.send("Queue.Declare", queue="")
        text = p.refused(403, culprit="Queue.Declare")
        assert text.startswith("ACCESS_REFUSED - configure access to queue 'amq.gen-")
        assert text.endswith("' in vhost '/' refused for user 'p'")

    def test_pattern_is_matched_with_the_generated_name(
        self, connect: Callable[..., Client]
    ) -> None:
        channel = connect(user="named", password="named").channel()
        made = channel.declare("").queue
        assert made.startswith("amq.gen-")
        channel.send("Basic.Consume", queue=made)
        channel.refused(
            403, f"ACCESS_REFUSED - {refusal('read', 'queue', made, 'named')}", "Basic.Consume"
        )

    def test_server_named_queue_needs_rights_for_its_dead_letters(
        self, connect: Callable[..., Client]
    ) -> None:
        channel = connect(user="named", password="named").channel()
        channel.send("Queue.Declare", arguments={"x-dead-letter-exchange": "amq.fanout"})
        text = channel.refused(403, culprit="Queue.Declare")
        assert text.startswith("ACCESS_REFUSED - read access to queue 'amq.gen-")

    def test_the_last_queue_of_the_channel(self, p: Channel, name: str) -> None:
        p.declare(f"{name}.c")
        p.send("Queue.Purge")
        p.refused(403, f"ACCESS_REFUSED - {refusal('read', 'queue', f'{name}.c')}", "Queue.Purge")

    def test_the_default_exchange(self, p: Channel, connect: Callable[..., Client]) -> None:
        allowed = connect(user="named", password="named").channel()
        allowed.publish(routing_key="nowhere")
        allowed.call("Basic.Qos")
        p.publish(routing_key="x.w")
        text = f"ACCESS_REFUSED - {refusal('write', 'exchange', 'amq.default')}"
        p.refused(403, text, "Basic.Publish")

    def test_direct_reply_to_needs_no_rights(self, p: Channel) -> None:
        assert p.consume("amq.rabbitmq.reply-to", no_ack=True)


# -- topic permissions


@pytest.fixture
def t(connect: Callable[..., Client], channel: Channel) -> Channel:
    """A channel of the user with topic permissions, and the exchange they are for."""
    channel.call("Exchange.Declare", exchange="news", exchange_type="topic")
    return connect(user="topics", password="topics").channel()


def topic(access: str, key: str, source: str = "news") -> str:
    return (
        f"ACCESS_REFUSED - {access} access to topic '{key}' in exchange '{source}' in vhost '/' "
        f"refused for user 'topics'"
    )


class TestTopicPermissions:
    def test_only_permitted_keys_are_published(
        self, t: Channel, channel: Channel, name: str
    ) -> None:
        channel.declare(name)
        channel.call("Queue.Bind", queue=name, exchange="news", routing_key="#")
        t.call("Confirm.Select")
        for key in ("topics.a", "topics.b"):
            t.publish(key.encode(), exchange="news", routing_key=key)
            t.expect("Basic.Ack")
        t.publish(b"refused", exchange="news", routing_key="us.a")
        t.refused(403, topic("write", "us.a"), "Basic.Publish")
        assert channel.drain(name) == [b"topics.a", b"topics.b"]

    def test_many_keys_in_one_read(self, t: Channel, channel: Channel, name: str) -> None:
        """Each key is checked, on the fast path too."""
        channel.declare(name)
        channel.call("Queue.Bind", queue=name, exchange="news", routing_key="#")
        for number in range(2_000):
            t.publish(b"%d" % number, exchange="news", routing_key=f"topics.{number}")
        t.publish(b"refused", exchange="news", routing_key="us.a")
        t.publish(b"after it", exchange="news", routing_key="topics.1")
        t.refused(403, topic("write", "us.a"), "Basic.Publish")
        assert channel.drain(name) == [b"%d" % number for number in range(2_000)]

    @pytest.mark.parametrize("header", ["CC", "BCC"])
    def test_keys_in_headers(self, t: Channel, header: str) -> None:
        headers = {"headers": {header: ["topics.b", "us.b"]}}
        t.publish(b"", headers, exchange="news", routing_key="topics.a")
        t.refused(403, topic("write", "us.b"), "Basic.Publish")

    def test_the_order_of_checks(self, t: Channel) -> None:
        t.publish(b"", {"expiration": "x"}, exchange="news", routing_key="us.a")
        assert "invalid expiration 'x'" in t.refused(406)
        t.open()
        t.publish(b"", {"user_id": "x"}, exchange="news", routing_key="us.a")
        t.refused(403, topic("write", "us.a"))

    def test_content_in_pieces(self, t: Channel) -> None:
        t.publish(b"x" * 200_000, exchange="news", routing_key="us.a")
        t.refused(403, topic("write", "us.a"), "Basic.Publish")

    def test_in_a_transaction(self, t: Channel) -> None:
        t.call("Tx.Select")
        t.publish(b"", exchange="news", routing_key="us.a")
        t.refused(403, topic("write", "us.a"), "Basic.Publish")

    def test_dead_letters_may_have_any_key(self, t: Channel, channel: Channel, name: str) -> None:
        """As in RabbitMQ, and as docs/security.md says."""
        channel.declare(name)
        channel.call("Queue.Bind", queue=name, exchange="news", routing_key="#")
        channel.consume(name, no_ack=True)
        dead = {"x-dead-letter-exchange": "news", "x-dead-letter-routing-key": "us.a"}
        t.declare(f"{name}.jobs", arguments={**dead, "x-message-ttl": 0})
        t.publish(b"letter", routing_key=f"{name}.jobs")
        letter = channel.content()
        assert (letter.body, letter.method.routing_key) == (b"letter", "us.a")

    @pytest.mark.parametrize("method", ["Queue.Bind", "Queue.Unbind"])
    def test_keys_of_bindings(self, t: Channel, channel: Channel, name: str, method: str) -> None:
        channel.declare(name)
        for key in ("eu.#", "/.a"):
            t.call(method, queue=name, exchange="news", routing_key=key)
        t.send(method, queue=name, exchange="news", routing_key="#")
        t.refused(403, topic("read", "#"), method)

    @pytest.mark.parametrize("method", ["Exchange.Bind", "Exchange.Unbind"])
    def test_keys_of_bindings_of_exchanges(self, t: Channel, method: str) -> None:
        t.call(method, destination="amq.fanout", source="news", routing_key="eu.#")
        t.send(method, destination="amq.fanout", source="news", routing_key="#")
        t.refused(403, topic("read", "#"), method)

    def test_other_exchange_types_ignore_topic_permissions(
        self, t: Channel, channel: Channel, name: str
    ) -> None:
        channel.declare(name)
        t.call("Confirm.Select")
        t.call("Queue.Bind", queue=name, exchange="amq.direct", routing_key="us")
        t.publish(b"", exchange="amq.direct", routing_key="us")
        t.expect("Basic.Ack")

    def test_every_key_is_permitted_without_topic_permissions(
        self, t: Channel, channel: Channel, name: str
    ) -> None:
        channel.declare(name)
        t.call("Confirm.Select")
        t.call("Queue.Bind", queue=name, exchange="amq.topic", routing_key="#")
        t.publish(b"", exchange="amq.topic", routing_key="us")
        t.expect("Basic.Ack")


# -- over HTTP


@dataclass(frozen=True)
class Route:
    """A request; the thing's name is put into the path, others into the query."""

    method: str
    path: str
    thing: Thing
    query: str = ""
    onward: bool = False
    body: str = ""
    success: int = 204

    def __str__(self) -> str:
        return f"{self.method} {self.path}{self.query}"


SUBSCRIBE = "hub.mode=subscribe&hub.callback=http://127.0.0.1:9/&hub.topic=a&hub.verify=async"
TOKEN = "?hub.mode=generate_token&hub.intended_use=subscribe"
ROUTES = [
    Route("PUT", "/endpoint/x/{}", exchange("configure", exists=False), success=201),
    Route("PUT", "/endpoint/x/{}", exchange("configure")),
    Route("PUT", "/endpoint/x/{}", exchange("configure", "read", exists=False),
          "?arg.alternate-exchange={}", onward=True, success=201),
    Route("PUT", "/endpoint/q/{}", queue("configure", exists=False), success=201),
    Route("PUT", "/endpoint/q/{}", queue("configure"), "?durable=false"),
    Route("PUT", "/endpoint/q/{}", queue("configure", "read", exists=False),
          "?arg.x-dead-letter-exchange={}", onward=True, success=201),
    Route("DELETE", "/endpoint/x/{}", exchange("configure")),
    Route("DELETE", "/endpoint/q/{}", queue("configure")),
    Route("POST", "/endpoint/x/{}", exchange("write"), success=202),
    Route("POST", "/endpoint/q/{}", queue("write"), success=202),
    Route("GET", "/endpoint/x/{}", exchange("write"), TOKEN, success=200),
    Route("GET", "/endpoint/q/{}", queue("write"), TOKEN, success=200),
    Route("POST", "/subscribe/x/{}", exchange("read"), body=SUBSCRIBE, success=202),
    Route("POST", "/subscribe/q/{}", queue("read"), body=SUBSCRIBE, success=202),
]  # fmt: skip
FORM = {"content-type": "application/x-www-form-urlencoded"}


@pytest.fixture
def http(warren: WarrenServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=warren.http_url, auth=(USER, USER)) as client:
        yield client


def ask(http: httpx.Client, route: Route, name: str, onward: str) -> httpx.Response:
    path = route.path.format(name) + route.query.format(onward)
    headers = FORM if route.body else {}
    return http.request(route.method, path, content=route.body.encode(), headers=headers)


@pytest.mark.parametrize("route", ROUTES, ids=str)
def test_route_succeeds_with_exactly_its_rights(
    route: Route, http: httpx.Client, channel: Channel, name: str
) -> None:
    named = route.thing.named(name)
    route.thing.make(channel, named)
    response = ask(http, route, named, f"{name}on.w")
    assert response.status_code == route.success, response.text


@pytest.mark.parametrize(
    ("route", "right"),
    [
        pytest.param(route, right, id=f"{route}: {right}")
        for route in ROUTES
        for right in route.thing.needs
    ],
)
def test_route_needs_each_of_its_rights(
    route: Route, right: Right, http: httpx.Client, channel: Channel, name: str
) -> None:
    named = route.thing.named(name, right)
    route.thing.make(channel, named)
    response = ask(http, route, named, f"{name}on.w")
    assert response.status_code == 403, response.text
    assert response.json()["detail"] == refusal(right, route.thing.kind, named)


@pytest.mark.parametrize("route", [route for route in ROUTES if route.onward], ids=str)
def test_route_needs_write_on_the_exchange_named_in_arguments(
    route: Route, http: httpx.Client, name: str
) -> None:
    response = ask(http, route, route.thing.named(name), f"{name}on.cr")
    assert response.status_code == 403, response.text
    assert response.json()["detail"] == refusal("write", "exchange", f"{name}on.cr")


@dataclass(frozen=True)
class Site:
    """A server, a client of the user with topic permissions, and a queue that `us.b` is for."""

    server: WarrenServer
    http: httpx.Client
    channel: Channel
    queue: str


def over_management(site: Site, headers: Table) -> str:
    message = {
        "routing_key": "topics.a", "properties": {"headers": headers},
        "payload": "x", "payload_encoding": "string",
    }  # fmt: skip
    return refused_over_http(site.http.post("/api/exchanges/%2F/news/publish", json=message))


def over_websocket(site: Site, headers: Table) -> str:
    credentials = "Basic " + b64encode(b"topics:topics").decode()
    url = f"{site.server.http_url}/stream/x/news?mode=publish"
    with LiveSocket(url, authorization=credentials) as socket:
        socket.send({"publish": {"routing_key": "topics.a", "headers": headers, "body": "x"}})
        return str(socket.next()["problem"]["detail"])


def by_moving(site: Site, headers: Table) -> str:
    source = f"{site.queue}.source"
    site.channel.declare(source)
    properties = {"headers": headers, "user_id": "guest"}
    site.channel.put(source, b"x", properties=properties)
    path = f"/api/warren/queues/%2F/{source}/move"
    found = site.http.post(path, json={"exchange": "news", "routing_key": "topics.a"}).json()
    assert (found["moved"], found["left"]) == (0, 1)
    assert site.http.post(path, json={"queue": f"{site.queue}.copy"}).json()["moved"] == 1
    return str(found["reason"])


def by_transaction(site: Site, headers: Table) -> str:
    writer = Writer(site.server, "news", site.queue, ("topics", "topics"))
    properties = encode(Properties(headers=headers))
    writer.stage(0, (0, 0, 0), rows(("topics.a", b"x"), properties=properties)).raise_for_status()
    return refused_over_http(writer.commit(0, (0, 0, 1)))


def in_a_batch(site: Site, headers: Table) -> str:
    """Has no headers that are arrays: each event brings a key of its own."""
    events = [
        {"specversion": "1.0", "source": "s", "id": str(number), "type": key}
        for number, key in enumerate(("topics.a", "us.b"))
    ]
    batch = "application/cloudevents-batch+json"
    path = "/endpoint/x/news?hub.mode=batch"
    return refused_over_http(site.http.post(path, json=events, headers={"content-type": batch}))


def to_a_capability(site: Site, headers: Table) -> str:
    """Its holder has what its maker has, and no more."""
    made = site.http.post("/api/hub/capabilities", json={"vhost": "/", "type": "x", "name": "news"})
    return refused_over_http(httpx.post(made.json()["url"], params={"hub.topic": "us.b"}))


def refused_over_http(response: httpx.Response) -> str:
    assert response.status_code == 403, response.text
    answer = response.json()
    return str(answer["reason"] if "reason" in answer else answer["detail"])


Door = Callable[[Site, Table], str]


class TestTopicPermissionsOverHttp:
    @pytest.fixture
    def topics(self, warren: WarrenServer, channel: Channel) -> Iterator[httpx.Client]:
        channel.call("Exchange.Declare", exchange="news", exchange_type="topic")
        with httpx.Client(base_url=warren.http_url, auth=("topics", "topics")) as client:
            yield client

    def test_publishing(self, topics: httpx.Client) -> None:
        for _ in range(2):
            path = "/endpoint/x/news?hub.topic="
            assert topics.post(f"{path}topics.a").status_code == 202
            response = topics.post(f"{path}us.a")
            assert response.status_code == 403
            assert f"ACCESS_REFUSED - {response.json()['detail']}" == topic("write", "us.a")

    @pytest.mark.parametrize(
        ("door", "header"),
        [
            (over_management, "CC"),
            (over_management, "BCC"),
            (over_websocket, "CC"),
            (over_websocket, "BCC"),
            (by_moving, "CC"),
            (by_transaction, "CC"),
            (by_transaction, "BCC"),
            (in_a_batch, ""),
            (to_a_capability, ""),
        ],
    )
    def test_no_way_of_publishing_reaches_a_forbidden_key(
        self,
        warren: WarrenServer,
        topics: httpx.Client,
        channel: Channel,
        name: str,
        door: Door,
        header: str,
    ) -> None:
        for queue in (name, f"{name}.copy"):
            channel.declare(queue)
        channel.call("Queue.Bind", queue=name, exchange="news", routing_key="us.b")
        detail = door(Site(warren, topics, channel, name), {header: ["topics.b", "us.b"]})
        assert topic("write", "us.b") == f"ACCESS_REFUSED - {detail}"
        assert channel.drain(name) == []

    def test_cached_request_follows_a_change_of_the_exchange_type(
        self, topics: httpx.Client, channel: Channel
    ) -> None:
        for kind, status in (("topic", 403), ("direct", 202), ("topic", 403)):
            channel.call("Exchange.Delete", exchange="news")
            channel.call("Exchange.Declare", exchange="news", exchange_type=kind)
            assert topics.post("/endpoint/x/news?hub.topic=us.b").status_code == status

    def test_subscribing(self, topics: httpx.Client) -> None:
        for key, status in (("eu.%23", 202), ("%23", 403)):
            body = SUBSCRIBE.replace("topic=a", f"topic={key}").encode()
            response = topics.post("/subscribe/x/news", content=body, headers=FORM)
            assert response.status_code == status, response.text
        assert f"ACCESS_REFUSED - {response.json()['detail']}" == topic("read", "#")


def test_user_without_permissions_can_not_open_the_vhost(dial: Callable[[], Client]) -> None:
    """A user without permissions in a virtual host can't open it."""
    client = dial()
    client.start()
    client.log_in("named", "named")
    client.tune()
    client.send_method("Connection.Open", virtual_host="other")
    text = "access to vhost 'other' refused for user 'named'"
    client.closed(530, f"NOT_ALLOWED - {text}", "Connection.Open")
