"""`warren policy`: policies and operator policies."""

from __future__ import annotations

import json
from typing import Any

import click

from ...core.errors import ConfigError
from .client import ApiClient, segments
from .options import IDEMPOTENT, VHOST, examples, with_server
from .printer import Printer

_OPERATOR = click.option("--operator", is_flag=True, help="Operator policies in place of policies.")
_APPLY_TO = ("all", "queues", "classic_queues", "quorum_queues", "streams", "exchanges")


@click.group(
    "policy",
    help="List, set and remove policies.",
    epilog=examples(
        """warren policy set short '^tmp' '{"message-ttl": 60000}' --apply-to queues""",
        "warren policy list --json | jq .definition",
    ),
)
def policy() -> None:
    pass


@policy.command("list", help="List policies, the ones of all virtual hosts without --vhost.")
@click.option("--vhost", metavar="NAME", help="Virtual host.")
@_OPERATOR
@with_server
def list_policies(api: ApiClient, out: Printer, vhost: str | None, operator: bool) -> None:
    path = _path(operator) + (segments(vhost) if vhost else "")
    columns = ("vhost", "name", "pattern", "apply-to", "priority", "definition")
    out.rows(api.get(path), columns, "policies")


@policy.command(
    "set", help="Set the policy NAME for names that match PATTERN. DEFINITION is a JSON object."
)
@click.argument("name")
@click.argument("pattern")
@click.argument("definition")
@click.option("--apply-to", type=click.Choice(_APPLY_TO), default="all", show_default=True)
@click.option("--priority", type=int, default=0, show_default=True, metavar="N")
@VHOST
@_OPERATOR
@with_server
def set_policy(
    api: ApiClient, out: Printer, name: str, pattern: str, definition: str, apply_to: str,
    priority: int, vhost: str, operator: bool,
) -> None:  # fmt: skip
    document = {
        "pattern": pattern,
        "definition": _object(definition),
        "apply-to": apply_to,
        "priority": priority,
    }
    api.put(_path(operator) + segments(vhost, name), document)
    out.say(f"policy '{name}' in vhost '{vhost}' is in force")


@policy.command(help="Remove the policy NAME.")
@click.argument("name")
@VHOST
@_OPERATOR
@IDEMPOTENT
@with_server
def remove(
    api: ApiClient, out: Printer, name: str, vhost: str, operator: bool, idempotent: bool
) -> None:
    was_there = api.delete(_path(operator) + segments(vhost, name), idempotent=idempotent)
    state = "is removed" if was_there else "does not exist"
    out.say(f"policy '{name}' in vhost '{vhost}' {state}")


def _path(operator: bool) -> str:
    return "/api/operator-policies" if operator else "/api/policies"


def _object(text: str) -> dict[str, Any]:
    """Raises `ConfigError` unless the text is a JSON object."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"DEFINITION {text}: it is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise ConfigError(f'DEFINITION {text}: give an object, such as {{"max-length": 1000}}')
    return found
