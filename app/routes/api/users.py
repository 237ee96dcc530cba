"""Users: `/users` and `/whoami`."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from ....core.auth import ADMINISTRATOR as ADMINISTRATOR_TAG
from ....core.auth import User, Users, exported, imported
from ...documents import rabbitmq, requests
from ...problems import Problem
from .body import Body
from .call import Call, answer
from .lists import list_of, listing_of
from .required_tags import ADMINISTRATOR, MANAGEMENT
from .route import GONE, SET, Operation, Routes


async def whoami(call: Call) -> Response:
    """Returns the name and the tags of the user who asks."""
    return answer({"name": call.user.name, "tags": sorted(call.user.tags)})


async def list_users(call: Call) -> Response:
    """Lists all users."""
    users = call.broker.users
    return await listing_of(call, [described(users, user) for user in users])


async def list_without_permissions(call: Call) -> Response:
    """Lists the users without permissions in any virtual host."""
    users = call.broker.users
    found = [described(users, user) for user in users if not user.permissions]
    return await listing_of(call, found)


async def get_user(call: Call) -> Response:
    """Returns a user, with the hash of the password."""
    users = call.broker.users
    return answer(described(users, users.existing(*call.names)))


def described(users: Users, user: User) -> dict[str, Any]:
    password_hash, algorithm = exported(users.password_hash(user.name))
    return {
        "name": user.name,
        "password_hash": password_hash,
        "hashing_algorithm": algorithm,
        "tags": sorted(user.tags),
        "limits": dict(user.limits),
        "vhosts": sorted(user.permissions),
    }


async def put(call: Call) -> Response:
    """Creates or replaces a user; without a password or hash, no login by password is possible."""
    (name,) = call.names
    body = await call.body()
    tags = body.names("tags")
    password_hash = await _password_hash(call, body)
    call.still_permitted()
    users = call.broker.users
    is_new = users.get(name) is None
    users.add_hashed(name, password_hash, tags)
    return await call.done(is_new=is_new)


async def _password_hash(call: Call, body: Body) -> str:
    if "password" in body and "password_hash" in body:
        raise Problem(400, "the body has both password and password_hash: one of them is needed")
    algorithm = body.text("hashing_algorithm") if "hashing_algorithm" in body else None
    if "password" in body:
        return await call.context.authenticator.logins.hashed(body.text("password"))
    if "password_hash" not in body:
        return ""
    return imported(body.text("password_hash"), algorithm)


async def delete(call: Call) -> Response:
    """Deletes a user: closes the connections, and ends subscriptions and tokens. 409 for the last
    administrator."""
    call.broker.users.existing(*call.names)
    call.broker.users.remove(*call.names)
    call.context.hub.forget_owner(*call.names)
    return await call.done()


async def delete_several(call: Call) -> Response:
    """Deletes the users that the body names, all or none."""
    users, body = call.broker.users, await call.body()
    deleted = [users.existing(name) for name in dict.fromkeys(body.names("users"))]
    remaining = [user for user in users if user not in deleted]
    if deleted and not any(ADMINISTRATOR_TAG in user.tags for user in remaining):
        raise Problem(409, f"no user with the tag {ADMINISTRATOR_TAG} would remain")
    with call.broker.store.together():
        for user in deleted:
            users.remove(user.name)
    for user in deleted:
        call.context.hub.forget_owner(user.name)
    return await call.done()


ROUTES: Routes = {
    "/whoami": {"GET": Operation(whoami, MANAGEMENT, {200: rabbitmq.Whoami})},
    "/users": {"GET": list_of(list_users, ADMINISTRATOR, rabbitmq.User)},
    "/users/without-permissions": {
        "GET": list_of(list_without_permissions, ADMINISTRATOR, rabbitmq.User)
    },
    "/users/bulk-delete": {"POST": Operation(delete_several, ADMINISTRATOR, GONE, requests.Users)},
    "/users/{user}": {
        "GET": Operation(get_user, ADMINISTRATOR, {200: rabbitmq.User}),
        "PUT": Operation(put, ADMINISTRATOR, SET, requests.User),
        "DELETE": Operation(delete, ADMINISTRATOR, GONE),
    },
}
