"""Policies and operator policies, in virtual hosts where the user has a permission."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from ....core.definitions.kinds import OperatorPolicyDefinition, PolicyDefinition
from ....core.errors import not_found
from ....core.policy.policies import Policies
from ....core.policy.policy import Record
from ...definitions.values import table_from_json, table_to_json
from ...problems import Problem
from .call import Call, answer
from .required_tags import ADMINISTRATOR, POLICYMAKER, RequiredTag
from .route import Routes


def described(record: Record) -> dict[str, Any]:
    return {
        "vhost": record.vhost,
        "name": record.name,
        "pattern": record.pattern,
        "apply-to": record.apply_to,
        "definition": table_to_json(record.definition),
        "priority": record.priority,
    }


async def _in_force(policies: Policies) -> None:
    """Returns when every queue and exchange has the rules that it should have by now."""
    done = asyncio.Event()
    policies.rounds.when_done(done.set)
    await done.wait()


@dataclass(frozen=True, slots=True)
class _Sort:
    """The handlers of one sort."""

    path: str
    operator: bool
    changed_by: RequiredTag

    def routes(self) -> Routes:
        return {
            self.path: {"GET": (self.list_all, POLICYMAKER)},
            f"{self.path}/{{vhost}}": {"GET": (self.list_in_vhost, POLICYMAKER)},
            f"{self.path}/{{vhost}}/{{policy}}": {
                "GET": (self.get, POLICYMAKER),
                "PUT": (self.put, self.changed_by),
                "DELETE": (self.delete, self.changed_by),
            },
        }

    async def list_all(self, call: Call) -> Response:
        own = (one for one in call.broker.vhosts.values() if call.user.may_enter(one.name))
        found = (record for vhost in own for record in self._records(vhost.policies))
        return answer([described(record) for record in found])

    async def list_in_vhost(self, call: Call) -> Response:
        policies = call.own_vhost(*call.names).policies
        return answer([described(record) for record in self._records(policies)])

    async def get(self, call: Call) -> Response:
        vhost, name = call.names
        for record in self._records(call.own_vhost(vhost).policies):
            if record.name == name:
                return answer(described(record))
        raise self._missing(vhost, name)

    async def put(self, call: Call) -> Response:
        vhost, name = call.names
        call.own_vhost(vhost)
        body = await call.body()
        # It may have been deleted, or the user's rights in it, while the body came.
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
        await _in_force(policies)
        return await call.done(is_new=is_new)

    async def delete(self, call: Call) -> Response:
        vhost, name = call.names
        policies = call.own_vhost(vhost).policies
        call.broker.tick()
        if not policies.clear(name, operator=self.operator):
            raise self._missing(vhost, name)
        await _in_force(policies)
        return await call.done()

    def _records(self, policies: Policies) -> list[Record]:
        return [*policies.operator_records()] if self.operator else [*policies.records()]

    def _missing(self, vhost: str, name: str) -> Exception:
        kind = "operator policy" if self.operator else "policy"
        return not_found(f"no {kind} '{name}' in vhost '{vhost}'")


ROUTES: Routes = {
    **_Sort("/policies", False, POLICYMAKER).routes(),
    **_Sort("/operator-policies", True, ADMINISTRATOR).routes(),
}
