"""Users: `/users` and `/whoami`."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from ....core.auth import ADMINISTRATOR as ADMINISTRATOR_TAG
from ....core.auth import User, Users, exported, imported
from ...problems import Problem
from .body import Body
from .call import Call, answer
from .required_tags import ADMINISTRATOR, MANAGEMENT
from .route import Routes


async def whoami(call: Call) -> Response:
    return answer({"name": call.user.name, "tags": sorted(call.user.tags)})


async def list_users(call: Call) -> Response:
    users = call.broker.users
    return answer([described(users, user) for user in users])


async def list_without_permissions(call: Call) -> Response:
    users = call.broker.users
    return answer([described(users, user) for user in users if not user.permissions])


async def get_user(call: Call) -> Response:
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
    }


async def put(call: Call) -> Response:
    """In place of what it was, so that without a password nobody logs in by one."""
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
    if "password" in body:
        return await call.context.authenticator.logins.hashed(body.text("password"))
    if "password_hash" not in body:
        return ""
    algorithm = body.text("hashing_algorithm") if "hashing_algorithm" in body else None
    return imported(body.text("password_hash"), algorithm)


async def delete(call: Call) -> Response:
    call.broker.users.existing(*call.names)
    call.broker.users.remove(*call.names)
    call.context.hub.forget_owner(*call.names)
    return await call.done()


async def delete_several(call: Call) -> Response:
    """All of them or none."""
    users, body = call.broker.users, await call.body()
    doomed = [users.existing(name) for name in dict.fromkeys(body.names("users"))]
    remaining = [user for user in users if user not in doomed]
    if doomed and not any(ADMINISTRATOR_TAG in user.tags for user in remaining):
        raise Problem(409, f"no user with the tag {ADMINISTRATOR_TAG} would remain")
    with call.broker.store.together():
        for user in doomed:
            users.remove(user.name)
    for user in doomed:
        call.context.hub.forget_owner(user.name)
    return await call.done()


ROUTES: Routes = {
    "/whoami": {"GET": (whoami, MANAGEMENT)},
    "/users": {"GET": (list_users, ADMINISTRATOR)},
    "/users/without-permissions": {"GET": (list_without_permissions, ADMINISTRATOR)},
    "/users/bulk-delete": {"POST": (delete_several, ADMINISTRATOR)},
    "/users/{user}": {
        "GET": (get_user, ADMINISTRATOR),
        "PUT": (put, ADMINISTRATOR),
        "DELETE": (delete, ADMINISTRATOR),
    },
}
