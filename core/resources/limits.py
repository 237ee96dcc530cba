"""Limits of virtual hosts and users, which can be set while the server runs.

A limit is 0 or more; -1, or none at all, is no limit. It applies to new connections, channels and
queues: nobody is disconnected and no queue deleted when it is set.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol, TypeVar

from ..errors import ConnectionFault, precondition_failed

if TYPE_CHECKING:
    from ..auth import User
    from ..message.model import Table
    from ..proto.connection import Connection
    from ..vhost import VirtualHost

Place = TypeVar("Place")

MAX_CONNECTIONS = "max-connections"
MAX_CHANNELS = "max-channels"
MAX_QUEUES = "max-queues"
VHOST_LIMITS = (MAX_CONNECTIONS, MAX_QUEUES)
USER_LIMITS = (MAX_CONNECTIONS, MAX_CHANNELS)
UNLIMITED = -1
_HIGHEST = 2**63 - 1


def checked(whose: str, known: tuple[str, ...], limits: Mapping[str, object]) -> dict[str, int]:
    """Returns valid limits; raises `ChannelError` 406 naming the first that is not."""
    found: dict[str, int] = {}
    for name, value in limits.items():
        if name not in known:
            raise precondition_failed(
                f"{whose} has no limit '{name}'; its limits are {' and '.join(known)}"
            )
        if isinstance(value, bool) or not isinstance(value, int):
            raise precondition_failed(
                f"limit '{name}' of {whose} has to be an integer, {value!r} is none"
            )
        if not UNLIMITED <= value <= _HIGHEST:
            raise precondition_failed(
                f"limit '{name}' of {whose} is {value}: 0 or more is needed, or -1 for no limit"
            )
        found[name] = value
    return found


def merged(
    whose: str, known: tuple[str, ...], limits: Mapping[str, int], name: str, value: int | None
) -> dict[str, int]:
    """Returns the limits with one changed, or removed by None. Raises as `checked`."""
    found = dict(limits)
    if value is not None:
        return found | checked(whose, known, {name: value})
    checked(whose, known, {name: UNLIMITED})
    found.pop(name, None)
    return found


class LimitStorage(Protocol):
    """Stores the limits of a virtual host."""

    def keep_limits(self, limits: Table) -> None: ...


class VhostLimits:
    """The limits of one virtual host."""

    def __init__(self, vhost: str, keeper: LimitStorage) -> None:
        self._vhost = vhost
        self._keeper = keeper
        self._values: Mapping[str, int] = {}

    def __getitem__(self, name: str) -> int:
        """-1 if there is no such limit."""
        return self._values.get(name, UNLIMITED)

    def as_table(self) -> dict[str, int]:
        """Those that were set."""
        return dict(self._values)

    def set(self, limits: Mapping[str, object]) -> None:
        """Replaces all limits. Raises `ChannelError` 406 for an invalid one."""
        values = checked(self._whose, VHOST_LIMITS, limits)
        self._keeper.keep_limits(dict(values))
        self._values = values

    def set_one(self, name: str, value: int | None) -> None:
        """Sets one limit, or clears it with None. Raises `ChannelError` 406 for an invalid one."""
        self.set(merged(self._whose, VHOST_LIMITS, self._values, name, value))

    def check_queues(self, name: str, count: int) -> None:
        """Raises `ChannelError` 406 if the virtual host has as many queues as it may."""
        limit = self[MAX_QUEUES]
        if 0 <= limit <= count:
            raise precondition_failed(
                f"cannot declare queue '{name}': queue limit in vhost '{self._vhost}' "
                f"({limit}) is reached"
            )

    @property
    def _whose(self) -> str:
        return f"vhost '{self._vhost}'"


class Occupancy:
    """Which connections are open, by virtual host and by user."""

    def __init__(self) -> None:
        self._vhosts: dict[Connection, VirtualHost] = {}
        self._in_vhost: dict[VirtualHost, dict[Connection, None]] = {}
        self._of_user: dict[User, dict[Connection, None]] = {}

    def enter(self, connection: Connection, vhost: VirtualHost) -> None:
        """Counts a connection that is about to be open. Raises `ConnectionFault` 530 if it is one
        too many."""
        user = connection.user
        inside, own = self._in_vhost.get(vhost, {}), self._of_user.get(user, {})
        _check_connections(vhost, user, len(inside), len(own))
        self._in_vhost[vhost], self._of_user[user] = inside, own
        self._vhosts[connection] = vhost
        inside[connection] = own[connection] = None

    def leave(self, connection: Connection) -> None:
        """Removes a connection; does nothing if it was refused by `enter`."""
        vhost = self._vhosts.pop(connection, None)
        if vhost is not None:
            _leave(self._in_vhost, vhost, connection)
            _leave(self._of_user, connection.user, connection)

    def inside(self, vhost: VirtualHost) -> tuple[Connection, ...]:
        """The connections in a virtual host."""
        return tuple(self._in_vhost.get(vhost, ()))

    def check_channels(self, user: User) -> None:
        """Raises `ConnectionFault` 530 if the user has as many channels open, on all of its
        connections together, as may be."""
        limit = user.limits.get(MAX_CHANNELS, UNLIMITED)
        if limit < 0 or _open_channels(self._of_user.get(user, ())) < limit:
            return
        raise ConnectionFault(
            530,
            f"number of channels opened for user '{user.name}' has reached the maximum allowed "
            f"user limit of ({limit})",
        )


def _check_connections(vhost: VirtualHost, user: User, inside: int, own: int) -> None:
    limit = vhost.limits[MAX_CONNECTIONS]
    if 0 <= limit <= inside:
        raise ConnectionFault(
            530,
            f"access to vhost '{vhost.name}' refused for user '{user.name}': connection limit "
            f"({limit}) is reached",
        )
    limit = user.limits.get(MAX_CONNECTIONS, UNLIMITED)
    if 0 <= limit <= own:
        raise ConnectionFault(
            530,
            f"connection refused for user '{user.name}': user connection limit ({limit}) is "
            f"reached",
        )


def _open_channels(connections: Iterable[Connection]) -> int:
    return sum(channel.open for one in connections for channel in one.channels.values())


def _leave(
    places: dict[Place, dict[Connection, None]], place: Place, connection: Connection
) -> None:
    connections = places[place]
    del connections[connection]
    if not connections:
        del places[place]
