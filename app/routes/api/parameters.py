"""Parameters: `/parameters`, in virtual hosts where the user has a permission, and
`/global-parameters`.

Operator policies and limits of virtual hosts are listed as RabbitMQ does, and changed at paths of
their own. Parameters of other components are refused: there is neither shovel nor federation here.
Those of the server are kept for the clients that read them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from starlette.responses import Response

from ....core.definitions.kinds import GlobalParameterDefinition, ParameterDefinition
from ....core.errors import ChannelError, not_found
from ....core.vhost import VirtualHost
from ...definitions.document import OPERATOR_POLICY, VHOST_LIMITS
from ...definitions.values import json_text, table_to_json
from ...documents import rabbitmq, requests
from ...problems import Problem
from .body import Body
from .call import Call, answer
from .lists import list_of, listing_of
from .required_tags import ADMINISTRATOR, POLICYMAKER
from .route import GONE, SET, Operation, Routes

_OTHER_PATHS = {
    "policy": "/api/policies",
    OPERATOR_POLICY: "/api/operator-policies",
    VHOST_LIMITS: "/api/vhost-limits",
}
Documents = Iterator[dict[str, Any]]


def parameters_of(vhost: VirtualHost) -> Documents:
    """Yields the limits of a virtual host and its operator policies."""
    limits = vhost.limits.as_table()
    if limits:
        yield _described(VHOST_LIMITS, vhost, "limits", limits)
    for policy in vhost.policies.operator_records():
        value = {
            "pattern": policy.pattern,
            "apply-to": policy.apply_to,
            "definition": table_to_json(policy.definition),
            "priority": policy.priority,
        }
        yield _described(OPERATOR_POLICY, vhost, policy.name, value)


def _described(component: str, vhost: VirtualHost, name: str, value: Any) -> dict[str, Any]:
    return {"value": value, "vhost": vhost.name, "component": component, "name": name}


async def list_all(call: Call) -> Response:
    """Lists all parameters, or those of the component in the path."""
    own = (one for one in call.broker.vhosts.values() if call.user.may_enter(one.name))
    found = (parameter for vhost in own for parameter in parameters_of(vhost))
    wanted = [one for one in found if call.names in ((), (one["component"],))]
    return await listing_of(call, wanted)


async def list_in_vhost(call: Call) -> Response:
    """Lists the parameters of a component in a virtual host."""
    component, vhost = call.names
    found = parameters_of(call.own_vhost(vhost))
    return await listing_of(call, [one for one in found if one["component"] == component])


async def get(call: Call) -> Response:
    """Returns a parameter."""
    component, vhost, name = call.names
    for one in parameters_of(call.own_vhost(vhost)):
        if (one["component"], one["name"]) == (component, name):
            return answer(one)
    raise _missing(component, vhost, name)


def _missing(component: str, vhost: str, name: str) -> ChannelError:
    return not_found(f"no {component} parameter '{name}' in vhost '{vhost}'")


async def put(call: Call) -> Response:
    """Refuses: the answer names the path at which the component's objects are changed, or what
    there is instead of the component."""
    component, vhost, name = call.names
    call.own_vhost(vhost)
    _refuse_other_paths(component)
    refused = ParameterDefinition(component, vhost, name, _value(await call.body()))
    raise Problem(400, f"{refused.description()} is not stored: {refused.why_not()}")


async def delete(call: Call) -> Response:
    """Refuses, as there is none, or the component's objects are deleted at another path."""
    component, vhost, name = call.names
    call.own_vhost(vhost)
    _refuse_other_paths(component)
    raise _missing(component, vhost, name)


def _value(body: Body) -> str:
    return json_text(body.anything("value"))


def _refuse_other_paths(component: str) -> None:
    path = _OTHER_PATHS.get(component)
    if path is not None:
        raise Problem(400, f"parameters of component '{component}' are changed at {path}")


# -- of the server


async def list_global(call: Call) -> Response:
    """Lists the parameters of the server."""
    found = [_global(one) for one in call.broker.global_parameters.all()]
    return await listing_of(call, found)


async def get_global(call: Call) -> Response:
    """Returns a parameter of the server."""
    return answer(_global(call.broker.global_parameters.get(*call.names)))


def _global(found: GlobalParameterDefinition) -> dict[str, Any]:
    return {"name": found.name, "value": json.loads(found.value_json)}


async def put_global(call: Call) -> Response:
    """Creates or replaces a parameter of the server."""
    (name,) = call.names
    definition = GlobalParameterDefinition(name, _value(await call.body()))
    return await call.done(is_new=call.broker.global_parameters.set(definition))


async def delete_global(call: Call) -> Response:
    """Deletes a parameter of the server."""
    call.broker.global_parameters.clear(*call.names)
    return await call.done()


ROUTES: Routes = {
    "/parameters": {"GET": list_of(list_all, POLICYMAKER, rabbitmq.Parameter)},
    "/parameters/{component}": {"GET": list_of(list_all, POLICYMAKER, rabbitmq.Parameter)},
    "/parameters/{component}/{vhost}": {
        "GET": list_of(list_in_vhost, POLICYMAKER, rabbitmq.Parameter)
    },
    "/parameters/{component}/{vhost}/{name}": {
        "GET": Operation(get, POLICYMAKER, {200: rabbitmq.Parameter}),
        "PUT": Operation(put, POLICYMAKER, {}, requests.ParameterValue),
        "DELETE": Operation(delete, POLICYMAKER, {}),
    },
    "/global-parameters": {"GET": list_of(list_global, POLICYMAKER, rabbitmq.ServerParameter)},
    "/global-parameters/{name}": {
        "GET": Operation(get_global, POLICYMAKER, {200: rabbitmq.ServerParameter}),
        "PUT": Operation(put_global, ADMINISTRATOR, SET, requests.ParameterValue),
        "DELETE": Operation(delete_global, ADMINISTRATOR, GONE),
    },
}
