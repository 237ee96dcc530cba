"""Connections and their channels: `/connections` and `/channels`.

Users see their own; those with the tag `monitoring` see all, and administrators close any.
"""

from __future__ import annotations

from collections.abc import Iterable

from starlette.responses import Response

from ....core.errors import access_refused, not_found
from ....core.proto.channel import Channel
from ....core.proto.connection import Connection
from ....core.proto.connections import connections_of
from ...documents import objects
from .call import Call, answer
from .connection_json import channel_json, connection_json, single_channel_json
from .consumer_json import channel_name
from .lists import ListSpec, list_of, listing
from .required_tags import ADMINISTRATOR, MANAGEMENT, MONITORING
from .route import GONE, Operation, Routes
from .view import STATISTICS_QUERY, View

_REASON = "Closed via management plugin"
_REASON_MAX_LENGTH = 200


# -- connections


async def list_all(call: Call) -> Response:
    """Lists the open connections."""
    return await _listed(call, _visible(call))


async def list_in_vhost(call: Call) -> Response:
    """Lists the open connections to a virtual host."""
    vhost = call.visible_vhost(*call.names)
    return await _listed(call, (one for one in _visible(call) if one.vhost is vhost))


async def list_of_user(call: Call) -> Response:
    """Lists the open connections of a user."""
    (user,) = call.names
    return await _listed(call, (one for one in _visible(call) if one.user.name == user))


def _visible(call: Call) -> Iterable[Connection]:
    """Returns the open connections that the user may see."""
    sees_all = MONITORING.has(call.user)
    opened = (one for one in connections_of(call.broker) if one.is_open)
    return (one for one in opened if sees_all or one.user is call.user)


async def _listed(call: Call, rows: Iterable[Connection]) -> Response:
    view, node = View.of(call.request.query_params, call.broker), call.context.node
    fields = {
        "name": lambda one: one.name,
        "user": lambda one: one.user.name,
        "vhost": lambda one: one.vhost.name,
        "channels": lambda one: len(one.channels),
    }
    kind = ListSpec[Connection](
        lambda one: one.name,
        lambda one: one.name,
        lambda one: connection_json(one, view, node),
        fields,
    )
    return await listing(call, list(rows), kind)


async def get(call: Call) -> Response:
    """Returns an open connection."""
    connection = connection_of(call, call.names[0])
    view = View.of(call.request.query_params, call.broker)
    document = connection_json(connection, view, call.context.node)
    return answer(document)


def connection_of(call: Call, name: str) -> Connection:
    """Returns the open connection of this name; raises `ChannelError` 404, or 403 for a connection
    of another user."""
    found = next((one for one in connections_of(call.broker) if one.name == name), None)
    if found is None or not found.is_open:
        raise not_found(f"no connection '{name}'")
    if found.user is not call.user and not MONITORING.has(call.user):
        raise access_refused(f"connection '{name}' is not one of user '{call.user.name}'")
    return found


async def close(call: Call) -> Response:
    """Closes a connection with the code 320, and with the reason in the header `X-Reason`."""
    connection = connection_of(call, call.names[0])
    require_closing(call, connection)
    connection.force(_reason(call))
    return await call.done()


def require_closing(call: Call, connection: Connection) -> None:
    """Raises `Problem` 403 unless the user may close the connection, and what is on it."""
    if connection.user is not call.user:
        ADMINISTRATOR.require(call.user)


async def close_of_user(call: Call) -> Response:
    """Closes all connections of a user, as for one."""
    (user,) = call.names
    for connection in connections_of(call.broker):
        if connection.user.name == user:
            connection.force(_reason(call))
    return await call.done()


def _reason(call: Call) -> str:
    given = call.request.headers.get("x-reason") or _REASON
    return given[:_REASON_MAX_LENGTH]


# -- channels


async def list_channels(call: Call) -> Response:
    """Lists the channels of all open connections."""
    return await _listed_channels(call, _visible(call))


async def list_channels_in_vhost(call: Call) -> Response:
    """Lists the channels of the open connections to a virtual host."""
    vhost = call.visible_vhost(*call.names)
    return await _listed_channels(call, (one for one in _visible(call) if one.vhost is vhost))


async def list_channels_of(call: Call) -> Response:
    """Lists the channels of a connection."""
    return await _listed_channels(call, [connection_of(call, call.names[0])])


async def _listed_channels(call: Call, connections: Iterable[Connection]) -> Response:
    view, node = View.of(call.request.query_params, call.broker), call.context.node
    rows = [
        channel
        for connection in connections
        for channel in connection.channels.values()
        if channel.open
    ]
    kind = ListSpec[Channel](
        channel_name,
        lambda one: (one.connection.name, one.number),
        lambda one: channel_json(one, view, node),
        {"name": channel_name, "number": lambda one: one.number},
    )
    return await listing(call, rows, kind)


async def get_channel(call: Call) -> Response:
    """Returns a channel with its consumers."""
    (name,) = call.names
    connection_name, _, number = name.rpartition(" (")
    connection = connection_of(call, connection_name)
    digits = number.removesuffix(")")
    channel = connection.channels.get(int(digits)) if digits.isdecimal() else None
    if channel is None or not channel.open:
        raise not_found(f"no channel '{name}'")
    view = View.of(call.request.query_params, call.broker)
    document = single_channel_json(channel, view, call.context.node)
    return answer(document)


ROUTES: Routes = {
    "/connections": {"GET": list_of(list_all, MANAGEMENT, objects.Connection)},
    "/connections/{connection}": {
        "GET": Operation(get, MANAGEMENT, {200: objects.Connection}, query=STATISTICS_QUERY),
        "DELETE": Operation(close, MANAGEMENT, GONE),
    },
    "/connections/{connection}/channels": {
        "GET": list_of(list_channels_of, MANAGEMENT, objects.Channel)
    },
    "/connections/username/{user}": {
        "GET": list_of(list_of_user, MANAGEMENT, objects.Connection),
        "DELETE": Operation(close_of_user, ADMINISTRATOR, GONE),
    },
    "/vhosts/{vhost}/connections": {"GET": list_of(list_in_vhost, MANAGEMENT, objects.Connection)},
    "/channels": {"GET": list_of(list_channels, MANAGEMENT, objects.Channel)},
    "/channels/{channel}": {
        "GET": Operation(
            get_channel, MANAGEMENT, {200: objects.SingleChannel}, query=STATISTICS_QUERY
        )
    },
    "/vhosts/{vhost}/channels": {
        "GET": list_of(list_channels_in_vhost, MANAGEMENT, objects.Channel)
    },
}
