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
from warrenmq.core.auth import imported
from warrenmq.core.broker import Broker

from .support import imported as merged

FILE = Path(__file__).with_name("rabbitmq_3_10_8.json")


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
    assert users.passwords.check(name, "wrong", loopback=False) is None
    assert users.passwords.check(name, "secret", loopback=False) is users.existing(name)
    users.passwords.store_better_hashes()
    assert users.password_hash(name).startswith("$argon2id$")
    again = restarted(NotingStore(broker.store.definitions))[0].users
    assert again.passwords.check(name, "secret", loopback=False)


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
