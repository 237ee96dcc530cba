"""Permissions: `/permissions` and `/topic-permissions`, also of a virtual host or a user."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from starlette.responses import Response

from ....core.auth import User
from ....core.errors import not_found
from ...documents import rabbitmq, requests
from .call import Call, answer
from .lists import list_of, listing_of
from .required_tags import ADMINISTRATOR
from .route import GONE, SET, Operation, Routes

Entries = Callable[[User], Iterator[dict[str, Any]]]


def _permissions(user: User) -> Iterator[dict[str, Any]]:
    for vhost, found in user.permissions.items():
        patterns = {"configure": found.configure, "write": found.write, "read": found.read}
        yield {"user": user.name, "vhost": vhost, **patterns}


def _topic_permissions(user: User) -> Iterator[dict[str, Any]]:
    for (vhost, exchange), found in user.topic_permissions.items():
        patterns = {"write": found.write, "read": found.read}
        yield {"user": user.name, "vhost": vhost, "exchange": exchange, **patterns}


# -- lists of permissions or topic permissions


async def _list_all(call: Call, entries: Entries) -> Response:
    found = [entry for user in call.broker.users for entry in entries(user)]
    return await listing_of(call, found, "user")


async def _list_of_user(call: Call, entries: Entries) -> Response:
    found = list(entries(call.broker.users.existing(*call.names)))
    return await listing_of(call, found, "vhost")


async def _list_in_vhost(call: Call, entries: Entries) -> Response:
    vhost = call.vhost(*call.names).name
    found = (entry for user in call.broker.users for entry in entries(user))
    return await listing_of(call, [entry for entry in found if entry["vhost"] == vhost], "user")


def _found(call: Call, entries: Entries) -> list[dict[str, Any]]:
    """Returns the permissions that the path names. Raises `ChannelError` 404 if there are none."""
    place, name, *exchange = call.names
    vhost = call.vhost(place).name
    found = [
        entry
        for entry in entries(call.broker.users.existing(name))
        if entry["vhost"] == vhost and (not exchange or entry["exchange"] == exchange[0])
    ]
    if not found:
        raise not_found(f"user '{name}' has none in vhost '{vhost}'")
    return found


# -- permissions


async def list_permissions(call: Call) -> Response:
    """Lists the permissions of all users."""
    return await _list_all(call, _permissions)


async def list_permissions_of_user(call: Call) -> Response:
    """Lists the permissions of a user in all virtual hosts."""
    return await _list_of_user(call, _permissions)


async def list_permissions_in_vhost(call: Call) -> Response:
    """Lists the permissions of all users in a virtual host."""
    return await _list_in_vhost(call, _permissions)


async def get_permissions(call: Call) -> Response:
    """Returns the permissions of a user in a virtual host."""
    (found,) = _found(call, _permissions)
    return answer(found)


async def put_permissions(call: Call) -> Response:
    """Sets the permissions of a user in a virtual host: regular expressions for the names that the
    user may configure, write to and read from."""
    vhost, name = call.names
    body = await call.body()
    is_new = not call.broker.users.existing(name).may_enter(call.vhost(vhost).name)
    patterns = body.text("configure"), body.text("write"), body.text("read")
    call.broker.users.set_permissions(name, vhost, *patterns)
    return await call.done(is_new=is_new)


async def delete_permissions(call: Call) -> Response:
    """Removes the permissions of a user in a virtual host, who can't enter it any more."""
    _found(call, _permissions)
    vhost, name = call.names
    call.broker.users.clear_permissions(name, vhost)
    return await call.done()


# -- topic permissions: several for one user and virtual host, each for one exchange


async def list_topic_permissions(call: Call) -> Response:
    """Lists the topic permissions of all users."""
    return await _list_all(call, _topic_permissions)


async def list_topic_permissions_of_user(call: Call) -> Response:
    """Lists the topic permissions of a user in all virtual hosts."""
    return await _list_of_user(call, _topic_permissions)


async def list_topic_permissions_in_vhost(call: Call) -> Response:
    """Lists the topic permissions of all users in a virtual host."""
    return await _list_in_vhost(call, _topic_permissions)


async def get_topic_permissions(call: Call) -> Response:
    """Returns the topic permissions of a user in a virtual host, for all exchanges or one."""
    return answer(_found(call, _topic_permissions))


async def put_topic_permissions(call: Call) -> Response:
    """Sets the topic permissions of a user for an exchange: regular expressions for the routing
    keys that the user may publish with and bind."""
    vhost, name = call.names
    body = await call.body()
    user, exchange = call.broker.users.existing(name), body.text("exchange")
    is_new = (call.vhost(vhost).name, exchange) not in user.topic_permissions
    patterns = body.text("write"), body.text("read")
    call.broker.users.set_topic_permission(name, vhost, exchange, *patterns)
    return await call.done(is_new=is_new)


async def delete_topic_permissions(call: Call) -> Response:
    """Removes the topic permissions of a user in a virtual host, for all exchanges or one."""
    _found(call, _topic_permissions)
    vhost, name, *exchange = call.names
    call.broker.users.clear_topic_permissions(name, vhost, exchange[0] if exchange else None)
    return await call.done()


ROUTES: Routes = {
    "/permissions": {"GET": list_of(list_permissions, ADMINISTRATOR, rabbitmq.Permission)},
    "/permissions/{vhost}/{user}": {
        "GET": Operation(get_permissions, ADMINISTRATOR, {200: rabbitmq.Permission}),
        "PUT": Operation(put_permissions, ADMINISTRATOR, SET, requests.Permissions),
        "DELETE": Operation(delete_permissions, ADMINISTRATOR, GONE),
    },
    "/topic-permissions": {
        "GET": list_of(list_topic_permissions, ADMINISTRATOR, rabbitmq.TopicPermission)
    },
    "/topic-permissions/{vhost}/{user}": {
        "GET": Operation(
            get_topic_permissions, ADMINISTRATOR, {200: list[rabbitmq.TopicPermission]}
        ),
        "PUT": Operation(put_topic_permissions, ADMINISTRATOR, SET, requests.TopicPermissions),
        "DELETE": Operation(delete_topic_permissions, ADMINISTRATOR, GONE),
    },
    "/topic-permissions/{vhost}/{user}/{exchange}": {
        "GET": Operation(
            get_topic_permissions, ADMINISTRATOR, {200: list[rabbitmq.TopicPermission]}
        ),
        "DELETE": Operation(delete_topic_permissions, ADMINISTRATOR, GONE),
    },
    "/users/{user}/permissions": {
        "GET": list_of(list_permissions_of_user, ADMINISTRATOR, rabbitmq.Permission)
    },
    "/users/{user}/topic-permissions": {
        "GET": list_of(list_topic_permissions_of_user, ADMINISTRATOR, rabbitmq.TopicPermission)
    },
    "/vhosts/{vhost}/permissions": {
        "GET": list_of(list_permissions_in_vhost, ADMINISTRATOR, rabbitmq.Permission)
    },
    "/vhosts/{vhost}/topic-permissions": {
        "GET": list_of(list_topic_permissions_in_vhost, ADMINISTRATOR, rabbitmq.TopicPermission)
    },
}
