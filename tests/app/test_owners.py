"""What owners may, asked of the broker's users."""

from __future__ import annotations

import httpx
import pytest

from tests.support.http import Callback
from tests.support.process import wait_until
from tests.support.server import WarrenServer
from tests.support.users import GUEST_HASH, guest_users
from warrenmq.app.owners import OwnerRights
from warrenmq.core.broker import Broker
from warrenmq.hub.requests import Resource

NEWS = Resource("/", "x", "news")
INBOX = Resource("/", "q", "in")


@pytest.fixture
def broker() -> Broker:
    broker = Broker(guest_users())
    declare(broker, "topic")
    broker.users.add_hashed("bob", GUEST_HASH)
    broker.users.set_permissions("bob", "/", "", "in", "news|in")
    return broker


def declare(broker: Broker, type_name: str) -> None:
    broker.vhosts["/"].declare_exchange(
        "news", type_name, durable=True, auto_delete=False, internal=False, arguments={}
    )


def rights_of(broker: Broker, hub_user: str = "") -> OwnerRights:
    return OwnerRights(broker.users, broker.vhosts, hub_user)


def test_permissions_decide(broker: Broker) -> None:
    rights = rights_of(broker)
    assert rights.refuse_read("bob", NEWS, "eu.fr") is None
    assert rights.refuse_write("bob", INBOX, None) is None
    refused = rights.refuse_write("bob", NEWS, None)
    assert refused == "its owner may not write exchange 'news' in vhost '/'"
    broker.users.set_permissions("bob", "/", "", "", "")
    refused = rights.refuse_read("bob", NEWS, "eu.fr")
    assert refused == "its owner may not read exchange 'news' in vhost '/'"


def test_topic_permissions_decide_at_topic_exchanges(broker: Broker) -> None:
    rights = rights_of(broker)
    broker.users.set_topic_permission("bob", "/", "news", "", "^eu")
    assert rights.refuse_read("bob", NEWS, "eu.fr") is None
    refused = rights.refuse_read("bob", NEWS, "us")
    assert refused == "its owner may not read the key 'us' of exchange 'news' in vhost '/'"
    assert rights.refuse_write("guest", NEWS, "us") is None
    broker.vhosts["/"].delete_exchange("news")
    declare(broker, "fanout")
    assert rights.refuse_read("bob", NEWS, "us") is None


def test_who_is_gone_may_nothing(broker: Broker) -> None:
    rights = rights_of(broker)
    broker.users.remove("bob")
    for refused in (
        rights.refuse_owner("bob"),
        rights.refuse_read("bob", NEWS, "eu"),
        rights.refuse_write("bob", INBOX, None),
    ):
        assert refused == "the user who owns it no longer exists"


def test_a_vhost_that_is_gone_is_named(broker: Broker) -> None:
    refused = rights_of(broker).refuse_read("guest", Resource("mine", "x", "news"), "eu")
    assert refused == "the virtual host 'mine' was deleted"


def test_strangers_have_the_rights_of_hub_user(broker: Broker) -> None:
    nobody = rights_of(broker)
    assert nobody.refuse_owner("") is None
    refused = nobody.refuse_read("", NEWS, "eu")
    assert refused is not None and "only external topics" in refused
    assert nobody.refuse_write("", INBOX, None) == refused
    assert rights_of(broker, "bob").refuse_read("", NEWS, "eu") is None
    assert rights_of(broker, "missing").refuse_read("", NEWS, "eu") is not None


def test_changes_are_told_until_nobody_asks(broker: Broker) -> None:
    told: list[str] = []
    rights = rights_of(broker, "bob")
    for owner in ("bob", "bob", "", "guest", "missing"):
        rights.watch(owner, told.append)
    broker.users.set_permissions("bob", "/", "", "", "")
    assert sorted(told) == ["", "bob"]
    rights.unwatch("")
    rights.unwatch("missing")
    broker.users.set_tags("bob", ("management",))
    broker.users.set_topic_permission("bob", "/", "news", "", "")
    assert sorted(told) == ["", "bob", "bob", "bob"]


def test_a_user_made_anew_is_followed_when_it_is_watched_again(broker: Broker) -> None:
    told: list[str] = []
    rights = rights_of(broker)
    rights.watch("bob", told.append)
    broker.users.remove("bob")
    broker.users.add_hashed("bob", GUEST_HASH)
    assert told == ["bob"]
    rights.watch("bob", told.append)
    broker.users.set_permissions("bob", "/", "", "", "")
    assert told == ["bob", "bob"]


AUTH = ("guest", "guest")
BOB = ("bob", "secret")
OF_BOB = "/api/permissions/%2F/bob"


def call(warren: WarrenServer, method: str, path: str, body: object = None) -> None:
    answer = httpx.request(method, warren.http_url + path, json=body, auth=AUTH)
    assert answer.is_success, answer.text


def add_bob(warren: WarrenServer) -> None:
    call(warren, "PUT", "/api/users/bob", {"password": BOB[1], "tags": ""})
    call(warren, "PUT", OF_BOB, {"configure": "", "write": "", "read": ".*"})
    call(warren, "PUT", "/endpoint/x/owned?amqp.exchange_type=topic")


def subscribe(warren: WarrenServer, callback: Callback, topic: str) -> None:
    form = {"hub.mode": "subscribe", "hub.callback": callback.url, "hub.topic": topic}
    asked = httpx.post(f"{warren.http_url}/subscribe/x/owned", data=form, auth=BOB, timeout=30)
    assert asked.status_code == 204, asked.text


def reasons(callback: Callback, count: int) -> list[str]:
    wait_until(lambda: len(callback.denials) >= count, 20.0, f"{count} denials")
    return [one.query["hub.reason"] for one in callback.denials]


def test_subscriptions_end_with_the_permission_of_their_owner(
    warren: WarrenServer, callback: Callback
) -> None:
    add_bob(warren)
    subscribe(warren, callback, "eu.#")
    subscribe(warren, callback, "us.#")
    topics = {"exchange": "owned", "write": "", "read": "^eu"}
    call(warren, "PUT", "/api/topic-permissions/%2F/bob", topics)
    refused = "its owner may not read the key 'us.#' of exchange 'owned' in vhost '/'"
    assert reasons(callback, 1) == [refused]
    call(warren, "PUT", OF_BOB, {"configure": "", "write": "", "read": "^other$"})
    refused = "its owner may not read exchange 'owned' in vhost '/'"
    assert reasons(callback, 2)[1:] == [refused]
    call(warren, "DELETE", "/api/users/bob")


def test_subscriptions_end_with_their_owner(warren: WarrenServer, callback: Callback) -> None:
    add_bob(warren)
    subscribe(warren, callback, "eu.#")
    call(warren, "DELETE", "/api/users/bob")
    assert reasons(callback, 1) == ["the user who owns it no longer exists"]
