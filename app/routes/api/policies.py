"""Policies and operator policies, in virtual hosts where the user has a permission."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from ....core.definitions.kinds import OperatorPolicyDefinition, PolicyDefinition
from ....core.errors import not_found
from ....core.policy.policies import Policies
from ....core.policy.policy import Record
from ...definitions.in_force import policies_in_force
from ...definitions.values import table_from_json, table_to_json
from ...documents import rabbitmq, requests
from ...problems import Problem
from .call import Call, answer
from .lists import list_of, listing_of
from .required_tags import ADMINISTRATOR, POLICYMAKER, RequiredTag
from .route import GONE, SET, Operation, Routes


def described(record: Record) -> dict[str, Any]:
    return {
        "vhost": record.vhost,
        "name": record.name,
        "pattern": record.pattern,
        "apply-to": record.apply_to,
        "definition": table_to_json(record.definition),
        "priority": record.priority,
    }


@dataclass(frozen=True, slots=True)
class _Handlers:
    """The handlers of policies or of operator policies."""

    path: str
    operator: bool
    changed_by: RequiredTag

    def routes(self) -> Routes:
        return {
            self.path: {"GET": list_of(self.list_all, POLICYMAKER, rabbitmq.Policy)},
            f"{self.path}/{{vhost}}": {
                "GET": list_of(self.list_in_vhost, POLICYMAKER, rabbitmq.Policy)
            },
            f"{self.path}/{{vhost}}/{{policy}}": {
                "GET": Operation(self.get, POLICYMAKER, {200: rabbitmq.Policy}),
                "PUT": Operation(self.put, self.changed_by, SET, requests.Policy),
                "DELETE": Operation(self.delete, self.changed_by, GONE),
            },
        }

    async def list_all(self, call: Call) -> Response:
        """Lists the policies or operator policies of the virtual hosts that the user may enter."""
        own = (one for one in call.broker.vhosts.values() if call.user.may_enter(one.name))
        found = (record for vhost in own for record in self._records(vhost.policies))
        return await listing_of(call, [described(record) for record in found])

    async def list_in_vhost(self, call: Call) -> Response:
        """Lists the policies or operator policies of a virtual host."""
        policies = call.own_vhost(*call.names).policies
        found = [described(record) for record in self._records(policies)]
        return await listing_of(call, found)

    async def get(self, call: Call) -> Response:
        """Returns a policy or operator policy."""
        vhost, name = call.names
        for record in self._records(call.own_vhost(vhost).policies):
            if record.name == name:
                return answer(described(record))
        raise self._missing(vhost, name)

    async def put(self, call: Call) -> Response:
        """Creates or replaces a policy or operator policy, which applies at once."""
        vhost, name = call.names
        call.own_vhost(vhost)
        body = await call.body()
        # Again: it, or the user's permissions, may have been deleted while the body was received.
        policies = call.own_vhost(vhost).policies
        try:
            definition = table_from_json(body.table("definition"))
        except ValueError as error:
            raise Problem(400, f"definition: {error}") from error
        apply_to = body.text("apply-to") if "apply-to" in body else "all"
        pattern, priority = body.text("pattern"), body.integer("priority", 0)
        kind = OperatorPolicyDefinition if self.operator else PolicyDefinition
        call.broker.tick()
        with call.broker.store.together():
            is_new = policies.set(kind(vhost, name, pattern, apply_to, priority, definition))
        await policies_in_force(policies)
        return await call.done(is_new=is_new)

    async def delete(self, call: Call) -> Response:
        """Deletes a policy or operator policy, which ends at once."""
        vhost, name = call.names
        policies = call.own_vhost(vhost).policies
        call.broker.tick()
        if not policies.clear(name, operator=self.operator):
            raise self._missing(vhost, name)
        await policies_in_force(policies)
        return await call.done()

    def _records(self, policies: Policies) -> list[Record]:
        return [*policies.operator_records()] if self.operator else [*policies.records()]

    def _missing(self, vhost: str, name: str) -> Exception:
        kind = "operator policy" if self.operator else "policy"
        return not_found(f"no {kind} '{name}' in vhost '{vhost}'")


ROUTES: Routes = {
    **_Handlers("/policies", False, POLICYMAKER).routes(),
    **_Handlers("/operator-policies", True, ADMINISTRATOR).routes(),
}
