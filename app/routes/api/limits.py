"""Limits of virtual hosts and of users: `/vhost-limits` and `/user-limits`."""

from __future__ import annotations

from starlette.responses import Response

from ....core.errors import access_refused
from .call import Call, answer
from .required_tags import ADMINISTRATOR, MANAGEMENT, MONITORING, sees
from .route import Routes

# -- of virtual hosts


async def list_vhosts(call: Call) -> Response:
    found = {
        vhost.name: vhost.limits.as_table()
        for vhost in call.broker.vhosts.values()
        if sees(call.user, vhost.name)
    }
    return answer([{"vhost": name, "value": value} for name, value in found.items() if value])


async def get_vhost(call: Call) -> Response:
    vhost = call.visible_vhost(*call.names)
    value = vhost.limits.as_table()
    return answer([{"vhost": vhost.name, "value": value}] if value else [])


async def put_vhost(call: Call) -> Response:
    vhost, name = call.names
    body = await call.body()
    limits = call.vhost(vhost).limits
    is_new = name not in limits.as_table()
    limits.set_one(name, body.integer("value"))
    return await call.done(is_new=is_new)


async def delete_vhost(call: Call) -> Response:
    """There need not be such a limit."""
    vhost, name = call.names
    call.vhost(vhost).limits.set_one(name, None)
    return await call.done()


# -- of users


async def list_users(call: Call) -> Response:
    all_users = MONITORING.has(call.user)
    users = (user for user in call.broker.users if all_users or user is call.user)
    return answer(
        [{"user": user.name, "value": dict(user.limits)} for user in users if user.limits]
    )


async def get_user(call: Call) -> Response:
    user = call.broker.users.existing(*call.names)
    if user is not call.user and not MONITORING.has(call.user):
        raise access_refused(f"access to user '{user.name}' refused for user '{call.user.name}'")
    return answer([{"user": user.name, "value": dict(user.limits)}] if user.limits else [])


async def put_user(call: Call) -> Response:
    user, name = call.names
    body = await call.body()
    is_new = name not in call.broker.users.existing(user).limits
    call.broker.users.set_limit(user, name, body.integer("value"))
    return await call.done(is_new=is_new)


async def delete_user(call: Call) -> Response:
    """There need not be such a limit."""
    user, name = call.names
    call.broker.users.set_limit(user, name, None)
    return await call.done()


ROUTES: Routes = {
    "/vhost-limits": {"GET": (list_vhosts, MANAGEMENT)},
    "/vhost-limits/{vhost}": {"GET": (get_vhost, MANAGEMENT)},
    "/vhost-limits/{vhost}/{limit}": {
        "PUT": (put_vhost, ADMINISTRATOR),
        "DELETE": (delete_vhost, ADMINISTRATOR),
    },
    "/user-limits": {"GET": (list_users, MANAGEMENT)},
    "/user-limits/{user}": {"GET": (get_user, MANAGEMENT)},
    "/user-limits/{user}/{limit}": {
        "PUT": (put_user, ADMINISTRATOR),
        "DELETE": (delete_user, ADMINISTRATOR),
    },
}
