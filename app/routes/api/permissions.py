"""What users may do: `/permissions` and `/topic-permissions`, in a virtual host and of a user."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from starlette.responses import Response

from ....core.auth import User
from ....core.errors import not_found
from .call import Call, answer
from .required_tags import ADMINISTRATOR
from .route import Handler, Routes

Entries = Callable[[User], Iterator[dict[str, Any]]]


def _permissions(user: User) -> Iterator[dict[str, Any]]:
    for vhost, found in user.permissions.items():
        patterns = {"configure": found.configure, "write": found.write, "read": found.read}
        yield {"user": user.name, "vhost": vhost, **patterns}


def _topic_permissions(user: User) -> Iterator[dict[str, Any]]:
    for (vhost, exchange), found in user.topic_permissions.items():
        patterns = {"write": found.write, "read": found.read}
        yield {"user": user.name, "vhost": vhost, "exchange": exchange, **patterns}


# -- lists, of both sorts


def _list_all(entries: Entries) -> Handler:
    async def handler(call: Call) -> Response:
        return answer([entry for user in call.broker.users for entry in entries(user)])

    return handler


def _list_of_user(entries: Entries) -> Handler:
    async def handler(call: Call) -> Response:
        return answer(list(entries(call.broker.users.existing(*call.names))))

    return handler


def _list_in_vhost(entries: Entries) -> Handler:
    async def handler(call: Call) -> Response:
        vhost = call.vhost(*call.names).name
        found = (entry for user in call.broker.users for entry in entries(user))
        return answer([entry for entry in found if entry["vhost"] == vhost])

    return handler


def _found(call: Call, entries: Entries) -> list[dict[str, Any]]:
    """Those that the path names. Raises `ChannelError` 404 if there are none."""
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


async def get_permissions(call: Call) -> Response:
    (found,) = _found(call, _permissions)
    return answer(found)


async def put_permissions(call: Call) -> Response:
    vhost, name = call.names
    body = await call.body()
    is_new = not call.broker.users.existing(name).may_enter(call.vhost(vhost).name)
    patterns = body.text("configure"), body.text("write"), body.text("read")
    call.broker.users.set_permissions(name, vhost, *patterns)
    return await call.done(is_new=is_new)


async def delete_permissions(call: Call) -> Response:
    _found(call, _permissions)
    vhost, name = call.names
    call.broker.users.clear_permissions(name, vhost)
    return await call.done()


# -- topic permissions: several for one user and virtual host, each for one exchange


async def get_topic_permissions(call: Call) -> Response:
    return answer(_found(call, _topic_permissions))


async def put_topic_permissions(call: Call) -> Response:
    vhost, name = call.names
    body = await call.body()
    user, exchange = call.broker.users.existing(name), body.text("exchange")
    is_new = (call.vhost(vhost).name, exchange) not in user.topic_permissions
    patterns = body.text("write"), body.text("read")
    call.broker.users.set_topic_permission(name, vhost, exchange, *patterns)
    return await call.done(is_new=is_new)


async def delete_topic_permissions(call: Call) -> Response:
    _found(call, _topic_permissions)
    vhost, name, *exchange = call.names
    call.broker.users.clear_topic_permissions(name, vhost, exchange[0] if exchange else None)
    return await call.done()


ROUTES: Routes = {
    "/permissions": {"GET": (_list_all(_permissions), ADMINISTRATOR)},
    "/permissions/{vhost}/{user}": {
        "GET": (get_permissions, ADMINISTRATOR),
        "PUT": (put_permissions, ADMINISTRATOR),
        "DELETE": (delete_permissions, ADMINISTRATOR),
    },
    "/topic-permissions": {"GET": (_list_all(_topic_permissions), ADMINISTRATOR)},
    "/topic-permissions/{vhost}/{user}": {
        "GET": (get_topic_permissions, ADMINISTRATOR),
        "PUT": (put_topic_permissions, ADMINISTRATOR),
        "DELETE": (delete_topic_permissions, ADMINISTRATOR),
    },
    "/topic-permissions/{vhost}/{user}/{exchange}": {
        "GET": (get_topic_permissions, ADMINISTRATOR),
        "DELETE": (delete_topic_permissions, ADMINISTRATOR),
    },
    "/users/{user}/permissions": {"GET": (_list_of_user(_permissions), ADMINISTRATOR)},
    "/users/{user}/topic-permissions": {"GET": (_list_of_user(_topic_permissions), ADMINISTRATOR)},
    "/vhosts/{vhost}/permissions": {"GET": (_list_in_vhost(_permissions), ADMINISTRATOR)},
    "/vhosts/{vhost}/topic-permissions": {
        "GET": (_list_in_vhost(_topic_permissions), ADMINISTRATOR)
    },
}
