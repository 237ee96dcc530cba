"""The entries of a file as definitions, each with its place in the file.

Here is checked what concerns an entry alone; what it refers to, its arguments and its patterns
are checked by making all of it (`merge.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from msgspec import UnsetType

from ...core.auth import hashed
from ...core.definitions.kinds import (
    BindingDefinition,
    ExchangeDefinition,
    PermissionDefinition,
    QueueDefinition,
    UserDefinition,
    VhostDefinition,
)
from ...core.errors import ChannelError, ConfigError
from ...core.model import Table
from ...core.vhost import check_name
from .document import (
    ARGON2,
    BindingEntry,
    ExchangeEntry,
    PermissionEntry,
    QueueEntry,
    UserEntry,
    VhostEntry,
)
from .values import table_from_json

MAX_NAME_BYTES = 255
"""A name travels as a short string (AMQP 0-9-1 4.2.5.3)."""
_GENERATED = "amq.gen-"
"""How names begin that were given by a server; they are as good as others here."""
_ARGON2_PREFIX = "$argon2"


@contextmanager
def at(place: str) -> Iterator[None]:
    """Names the place in every complaint about what stands there."""
    try:
        yield
    except (ChannelError, ConfigError, ValueError) as error:
        raise ConfigError(f"{place}: {error}") from error


def users(entries: list[UserEntry] | UnsetType) -> Iterator[tuple[str, UserDefinition]]:
    for number, entry in enumerate(entries or ()):
        place = f"users[{number}]"
        with at(place):
            tags = entry.tags.split(",") if isinstance(entry.tags, str) else entry.tags
            kept = tuple(sorted({tag.strip() for tag in tags} - {""}))
            yield place, UserDefinition(entry.name, _password_hash(entry), kept)


def _password_hash(entry: UserEntry) -> str:
    if (entry.password is None) == (entry.password_hash is None):
        raise ConfigError(f"user '{entry.name}' needs either password_hash or password")
    if entry.password is not None:
        return hashed(entry.password)
    password_hash = entry.password_hash or ""
    algorithm = entry.hashing_algorithm or ARGON2
    if algorithm != ARGON2 or not password_hash.startswith(_ARGON2_PREFIX):
        raise ConfigError(
            f"the password_hash of user '{entry.name}' is not of algorithm {ARGON2}, the only one "
            f"that this version can check; give the password in clear as password, "
            f"which is hashed when it is imported"
        )
    return password_hash


def vhosts(entries: list[VhostEntry] | UnsetType) -> Iterator[tuple[str, VhostDefinition]]:
    for number, entry in enumerate(entries or ()):
        place = f"vhosts[{number}]"
        with at(place):
            _check_length("vhost", entry.name)
            yield place, VhostDefinition(entry.name)


def permissions(
    entries: list[PermissionEntry] | UnsetType,
) -> Iterator[tuple[str, PermissionDefinition]]:
    for number, entry in enumerate(entries or ()):
        yield (
            f"permissions[{number}]",
            PermissionDefinition(entry.user, entry.vhost, entry.configure, entry.write, entry.read),
        )


def exchanges(
    entries: list[ExchangeEntry] | UnsetType,
) -> Iterator[tuple[str, ExchangeDefinition]]:
    for number, entry in enumerate(entries or ()):
        place = f"exchanges[{number}]"
        with at(place):
            _check_length("exchange", entry.name)
            check_name("exchange", entry.name, entry.vhost)
            _check_durable("exchange", entry.name, entry.durable)
            yield place, ExchangeDefinition(
                entry.vhost, entry.name, entry.type, entry.auto_delete, entry.internal,
                _arguments(entry.arguments),
            )  # fmt: skip


def queues(entries: list[QueueEntry] | UnsetType) -> Iterator[tuple[str, QueueDefinition]]:
    """Their ids are 0: the file has none."""
    for number, entry in enumerate(entries or ()):
        place = f"queues[{number}]"
        with at(place):
            _check_length("queue", entry.name)
            check_name("queue", entry.name.removeprefix(_GENERATED), entry.vhost)
            _check_durable("queue", entry.name, entry.durable)
            yield (
                place,
                QueueDefinition(
                    entry.vhost, entry.name, 0, entry.auto_delete, _arguments(entry.arguments)
                ),
            )


def bindings(entries: list[BindingEntry] | UnsetType) -> Iterator[tuple[str, BindingDefinition]]:
    for number, entry in enumerate(entries or ()):
        place = f"bindings[{number}]"
        with at(place):
            _check_key(entry.routing_key)
            yield place, BindingDefinition(
                entry.vhost, entry.source, entry.destination_type == "exchange",
                entry.destination, entry.routing_key, _arguments(entry.arguments),
            )  # fmt: skip


def _arguments(found: dict[str, Any]) -> Table:
    with at("arguments"):
        return table_from_json(found)


def _check_length(kind: str, name: str) -> None:
    size = len(name.encode())
    if not 1 <= size <= MAX_NAME_BYTES:
        raise ConfigError(f"the name of a {kind} has {size} bytes, 1 to {MAX_NAME_BYTES} can be")


def _check_key(key: str) -> None:
    size = len(key.encode())
    if size > MAX_NAME_BYTES:
        raise ConfigError(f"a routing key has {size} bytes, at most {MAX_NAME_BYTES}")


def _check_durable(kind: str, name: str, durable: bool) -> None:
    if not durable:
        raise ConfigError(f"{kind} '{name}' is not durable: only durable ones are kept")
