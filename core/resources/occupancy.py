"""The open connections by virtual host and by user, and the limits of their number."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeVar

from ..errors import ConnectionFault
from .limits import MAX_CHANNELS, MAX_CONNECTIONS, UNLIMITED

if TYPE_CHECKING:
    from ..auth import User
    from ..context import ClientConnection
    from ..vhost import VirtualHost

Place = TypeVar("Place")


class Occupancy:
    """The open connections, by virtual host and by user."""

    def __init__(self) -> None:
        self._vhosts: dict[ClientConnection, VirtualHost] = {}
        self._in_vhost: dict[VirtualHost, dict[ClientConnection, None]] = {}
        self._of_user: dict[User, dict[ClientConnection, None]] = {}

    def enter(self, connection: ClientConnection, vhost: VirtualHost) -> None:
        """Counts a connection that is being opened. Raises `ConnectionFault` 530 if it exceeds a
        limit."""
        user = connection.user.limited
        inside, own = self._in_vhost.get(vhost, {}), self._of_user.get(user, {})
        _check_connections(vhost, user, len(inside), len(own))
        self._in_vhost[vhost], self._of_user[user] = inside, own
        self._vhosts[connection] = vhost
        inside[connection] = own[connection] = None

    def leave(self, connection: ClientConnection) -> None:
        """Removes a connection; does nothing if it was refused by `enter`."""
        vhost = self._vhosts.pop(connection, None)
        if vhost is not None:
            _leave(self._in_vhost, vhost, connection)
            _leave(self._of_user, connection.user.limited, connection)

    def inside(self, vhost: VirtualHost) -> tuple[ClientConnection, ...]:
        """Returns the connections in a virtual host."""
        return tuple(self._in_vhost.get(vhost, ()))

    def check_channels(self, user: User) -> None:
        """Raises `ConnectionFault` 530 if the user has as many channels open, on all of its
        connections together, as its limit."""
        user = user.limited
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


def _open_channels(connections: Iterable[ClientConnection]) -> int:
    return sum(one.open_channel_count for one in connections)


def _leave(
    places: dict[Place, dict[ClientConnection, None]], place: Place, connection: ClientConnection
) -> None:
    connections = places[place]
    del connections[connection]
    if not connections:
        del places[place]
