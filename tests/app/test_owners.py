"""What owners may, asked of the broker's users."""

from __future__ import annotations

import pytest

from tests.support.users import GUEST_HASH, guest_users
from warrenmq.app.access.owners import OwnerRights
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
    assert rights.read_refusal("bob", NEWS, "eu.fr") is None
    assert rights.write_refusal("bob", INBOX, None) is None
    refused = rights.write_refusal("bob", NEWS, None)
    assert refused == "its owner may not write exchange 'news' in vhost '/'"
    broker.users.set_permissions("bob", "/", "", "", "")
    refused = rights.read_refusal("bob", NEWS, "eu.fr")
    assert refused == "its owner may not read exchange 'news' in vhost '/'"


def test_topic_permissions_decide_at_topic_exchanges(broker: Broker) -> None:
    rights = rights_of(broker)
    broker.users.set_topic_permission("bob", "/", "news", "", "^eu")
    assert rights.read_refusal("bob", NEWS, "eu.fr") is None
    refused = rights.read_refusal("bob", NEWS, "us")
    assert refused == "its owner may not read the key 'us' of exchange 'news' in vhost '/'"
    assert rights.write_refusal("guest", NEWS, "us") is None
    broker.vhosts["/"].delete_exchange("news")
    declare(broker, "fanout")
    assert rights.read_refusal("bob", NEWS, "us") is None


def test_a_deleted_owner_has_no_permission(broker: Broker) -> None:
    rights = rights_of(broker)
    broker.users.remove("bob")
    for refused in (
        rights.owner_refusal("bob"),
        rights.read_refusal("bob", NEWS, "eu"),
        rights.write_refusal("bob", INBOX, None),
    ):
        assert refused == "the user who owns it no longer exists"


def test_a_deleted_vhost_is_named(broker: Broker) -> None:
    refused = rights_of(broker).read_refusal("guest", Resource("mine", "x", "news"), "eu")
    assert refused == "the virtual host 'mine' was deleted"


def test_anonymous_owners_have_the_rights_of_hub_user(broker: Broker) -> None:
    nobody = rights_of(broker)
    assert nobody.owner_refusal("") is None
    refused = nobody.read_refusal("", NEWS, "eu")
    assert refused is not None and "only external topics" in refused
    assert nobody.write_refusal("", INBOX, None) == refused
    assert rights_of(broker, "bob").read_refusal("", NEWS, "eu") is None
    assert rights_of(broker, "missing").read_refusal("", NEWS, "eu") is not None


def test_watchers_are_called_until_unwatched(broker: Broker) -> None:
    told: list[str] = []
    rights = rights_of(broker, "bob")
    for owner in ("bob", "bob", "", "guest", "missing"):
        rights.watch(owner, told.append)
    broker.users.set_permissions("bob", "/", "", "", "")
    assert sorted(told) == ["", "bob"]
    rights.unwatch("", told.append)
    rights.unwatch("missing", told.append)
    broker.users.set_tags("bob", ("management",))
    broker.users.set_topic_permission("bob", "/", "news", "", "")
    assert sorted(told) == ["", "bob", "bob", "bob"]


def test_a_recreated_user_is_watched_again(broker: Broker) -> None:
    told: list[str] = []
    rights = rights_of(broker)
    rights.watch("bob", told.append)
    broker.users.remove("bob")
    broker.users.add_hashed("bob", GUEST_HASH)
    assert told == ["bob"]
    rights.watch("bob", told.append)
    broker.users.set_permissions("bob", "/", "", "", "")
    assert told == ["bob", "bob"]
