"""The permissions that operations need; `tests/conformance/test_s8_rights.py` has the whole table,
over AMQP and HTTP."""

from __future__ import annotations

import pytest

from tests.support.users import guest_users
from warrenmq.core.auth import User
from warrenmq.core.auth.authorization import at_topics, to_declare
from warrenmq.core.message.model import Table


@pytest.fixture
def tony() -> User:
    users = guest_users()
    users.add_hashed("tony", users.password_hash("guest"))
    users.set_permissions("tony", "/", ".*", "", "")
    users.set_topic_permission("tony", "/", "x", "^a", "")
    return users.existing("tony")


@pytest.mark.parametrize(
    ("type_name", "arguments", "asked"),
    [
        ("topic", {}, True),
        ("x-delayed-message", {"x-delayed-type": "topic"}, True),
        ("x-delayed-message", {"x-delayed-type": "direct"}, False),
        ("direct", {}, False),
    ],
)
def test_only_topic_exchanges_have_topic_permissions(
    tony: User, type_name: str, arguments: Table, asked: bool
) -> None:
    assert (at_topics(tony, "/", "x", type_name, arguments) is not None) is asked
    assert at_topics(tony, "/", "y", type_name, arguments) is None


def test_arguments_of_the_other_kind_are_ignored(tony: User) -> None:
    onward: Table = {"x-dead-letter-exchange": "a", "alternate-exchange": 5}
    to_declare(tony, "/", "exchange", "x", onward, is_new=True)
    to_declare(tony, "/", "queue", "q", {"alternate-exchange": "a"}, is_new=True)
