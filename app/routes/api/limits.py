"""Limits of virtual hosts and of users: `/vhost-limits` and `/user-limits`."""

from __future__ import annotations

from starlette.responses import Response

from ....core.errors import access_refused
from ...documents import rabbitmq, requests
from .call import Call, answer
from .lists import list_of, listing_of
from .required_tags import ADMINISTRATOR, MANAGEMENT, MONITORING, sees
from .route import GONE, SET, Operation, Routes

# -- of virtual hosts


async def list_vhosts(call: Call) -> Response:
    """Lists the limits of the virtual hosts that the user sees and that have any."""
    found = {
        vhost.name: vhost.limits.as_table()
        for vhost in call.broker.vhosts.values()
        if sees(call.user, vhost.name)
    }
    limited = [{"vhost": name, "value": value} for name, value in found.items() if value]
    return await listing_of(call, limited, "vhost")


async def get_vhost(call: Call) -> Response:
    """Returns the limits of a virtual host; an empty list if it has none."""
    vhost = call.visible_vhost(*call.names)
    value = vhost.limits.as_table()
    return answer([{"vhost": vhost.name, "value": value}] if value else [])


async def put_vhost(call: Call) -> Response:
    """Sets a limit of a virtual host: `max-connections` or `max-queues`. Nobody is disconnected."""
    vhost, name = call.names
    body = await call.body()
    limits = call.vhost(vhost).limits
    is_new = name not in limits.as_table()
    limits.set_one(name, body.integer("value"))
    return await call.done(is_new=is_new)


async def delete_vhost(call: Call) -> Response:
    """Deletes the limit if there is one."""
    vhost, name = call.names
    call.vhost(vhost).limits.set_one(name, None)
    return await call.done()


# -- of users


async def list_users(call: Call) -> Response:
    """Lists the limits of users that have any; without the tag monitoring, the own."""
    all_users = MONITORING.has(call.user)
    users = (user for user in call.broker.users if all_users or user is call.user)
    found = [{"user": user.name, "value": dict(user.limits)} for user in users if user.limits]
    return await listing_of(call, found, "user")


async def get_user(call: Call) -> Response:
    """Returns the limits of a user; an empty list if there are none."""
    user = call.broker.users.existing(*call.names)
    if user is not call.user and not MONITORING.has(call.user):
        raise access_refused(f"access to user '{user.name}' refused for user '{call.user.name}'")
    return answer([{"user": user.name, "value": dict(user.limits)}] if user.limits else [])


async def put_user(call: Call) -> Response:
    """Sets a limit of a user: `max-connections` or `max-channels`. Nobody is disconnected."""
    user, name = call.names
    body = await call.body()
    is_new = name not in call.broker.users.existing(user).limits
    call.broker.users.set_limit(user, name, body.integer("value"))
    return await call.done(is_new=is_new)


async def delete_user(call: Call) -> Response:
    """Deletes the limit if there is one."""
    user, name = call.names
    call.broker.users.set_limit(user, name, None)
    return await call.done()


ROUTES: Routes = {
    "/vhost-limits": {"GET": list_of(list_vhosts, MANAGEMENT, rabbitmq.VirtualHostLimits)},
    "/vhost-limits/{vhost}": {
        "GET": Operation(get_vhost, MANAGEMENT, {200: list[rabbitmq.VirtualHostLimits]})
    },
    "/vhost-limits/{vhost}/{limit}": {
        "PUT": Operation(put_vhost, ADMINISTRATOR, SET, requests.Limit),
        "DELETE": Operation(delete_vhost, ADMINISTRATOR, GONE),
    },
    "/user-limits": {"GET": list_of(list_users, MANAGEMENT, rabbitmq.UserLimits)},
    "/user-limits/{user}": {
        "GET": Operation(get_user, MANAGEMENT, {200: list[rabbitmq.UserLimits]})
    },
    "/user-limits/{user}/{limit}": {
        "PUT": Operation(put_user, ADMINISTRATOR, SET, requests.Limit),
        "DELETE": Operation(delete_user, ADMINISTRATOR, GONE),
    },
}
