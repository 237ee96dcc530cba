"""What `rabbitmqctl export_definitions` of RabbitMQ 3.10.8 wrote, imported.

`rabbitmq_3_10_8.json` is its file, laid out anew. The password of all users is `secret`, but
that `guest` has its own and `nopass` none.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.core.definitions.support import NotingStore, restarted
from warrenmq.core.auth import hashes, imported
from warrenmq.core.broker import Broker

from .support import document
from .support import imported as merged

FILE = Path(__file__).with_name("rabbitmq_3_10_8.json")


@pytest.fixture(autouse=True)
def _cheap_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashes, "ARGON2_MEMORY_KIB", 8)
    monkeypatch.setattr(hashes, "ARGON2_TIME_COST", 1)


@pytest.fixture
def exported() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(FILE.read_bytes())
    return found


@pytest.fixture
def broker() -> Broker:
    return restarted(NotingStore(merged({}, FILE.read_bytes())))[0]


@pytest.mark.parametrize("name", ["tony", "limited", "sha512", "md5"])
def test_passwords_are_as_they_were(broker: Broker, name: str) -> None:
    users = broker.users
    assert users.check(name, "wrong", loopback=False) is None
    assert users.check(name, "secret", loopback=False) is users.existing(name)
    users.keep_better_hashes()
    assert users.password_hash(name).startswith("$argon2id$")
    again = restarted(NotingStore(broker.store.definitions))[0].users
    assert again.check(name, "secret", loopback=False)


def test_who_has_no_password_does_not_log_in(broker: Broker) -> None:
    assert broker.users.get("nopass")
    for password in ("", "x", "secret"):
        assert broker.users.check("nopass", password, loopback=True) is None


def test_rights_and_limits(broker: Broker) -> None:
    tony, limited = broker.users.existing("tony"), broker.users.existing("limited")
    assert tony.tags == {"management", "monitoring"}
    assert tony.permitted("v1", "write", "w") and not tony.permitted("v1", "write", "r")
    assert not tony.may_enter("/")
    topics = tony.topic_rights("v1", "amq.topic")
    assert topics is not None
    assert topics.allow("write", "tony.a") and not topics.allow("write", "evan.a")
    assert topics.allow("read", "v1.a") and not topics.allow("read", "v2.a")
    assert limited.limits == {"max-connections": 1, "max-channels": 2}
    assert tony.limits == {"max-connections": -1}
    assert broker.vhosts["v1"].limits.as_table() == {"max-connections": 3, "max-queues": 2}


def test_queues_and_bindings(broker: Broker) -> None:
    vhost = broker.vhosts["v1"]
    route = vhost.route(vhost.exchange("news"), ("eu.x",), None, watched=False)
    assert route.queues == (vhost.queues["orders"],)


def test_hashes_are_given_again_as_they_came(exported: dict[str, Any]) -> None:
    keys = ("name", "password_hash", "hashing_algorithm", "tags", "limits")
    again = document(merged({}, FILE.read_bytes()))
    found = [{key: user[key] for key in keys} for user in again["users"]]
    expected = [{key: user[key] for key in keys} for user in exported["users"]]
    assert sorted(found, key=str) == sorted(expected, key=str)
    assert again["topic_permissions"] == exported["topic_permissions"]


@pytest.mark.parametrize(
    ("version", "algorithm"),
    [
        ("3.5.8", "rabbit_password_hashing_md5"),
        ("3.6.0", "rabbit_password_hashing_sha256"),
        ("", "rabbit_password_hashing_sha256"),
        ("unknown", "rabbit_password_hashing_sha256"),
    ],
)
@pytest.mark.parametrize("key", ["rabbit_version", "rabbitmq_version"])
def test_hashes_that_do_not_name_their_algorithm(
    exported: dict[str, Any], version: str, algorithm: str, key: str
) -> None:
    user = next(one for one in exported["users"] if one.get("hashing_algorithm") == algorithm)
    named = imported(user["password_hash"], user.pop("hashing_algorithm"))
    file = {key: version, "users": [user], "vhosts": [{"name": "/"}]}
    broker = restarted(NotingStore(merged({}, file)))[0]
    assert broker.users.password_hash(user["name"]) == named


def test_a_hash_that_can_not_be_checked(exported: dict[str, Any]) -> None:
    exported["users"][0] |= {"password_hash": "abc", "hashing_algorithm": "bcrypt"}
    with pytest.raises(Exception, match="users.0.: hashing algorithm 'bcrypt' can't be checked"):
        merged({}, exported)
