"""`warren token`: tokens that let others read, write, enrol tunnels or manage for a while."""

from __future__ import annotations

import click

from ...core.errors import ConfigError
from .client import ApiClient, segments
from .options import IDEMPOTENT, examples, with_server
from .printer import Printer


@click.group(
    "token",
    help="List, create and revoke access tokens.",
    epilog=examples(
        "warren token create dashboard --read x/news --expires-in 86400",
        "warren token create ci --manage read --manage 'write:policies/%2F/ci-*'",
        "warren token revoke ID",
    ),
)
def token() -> None:
    pass


@token.command("list", help="List valid tokens; their secrets are shown when they are created.")
@with_server
def list_tokens(api: ApiClient, out: Printer) -> None:
    out.rows(api.get("/api/hub/tokens"), ("id", "name", "owner", "expires_at", "scopes"), "tokens")


@token.command(help="Create a token that is called NAME, and print it once.")
@click.argument("name")
@click.option("--read", "reads", multiple=True, metavar="x/NAME", help="Or q/NAME; repeatable.")
@click.option("--write", "writes", multiple=True, metavar="x/NAME", help="Or q/NAME; repeatable.")
@click.option("--tunnel", "tunnels", multiple=True, metavar="LABEL", help="May be repeated.")
@click.option("--manage", "manages", multiple=True, metavar="read|write[:PATH]",
    help="The API below /api, or the paths there that match; repeatable.")  # fmt: skip
@click.option("--expires-in", type=int, metavar="SECONDS", help="How long it is valid.")
@click.option("--vhost", metavar="NAME",
    help="Virtual host, / for --read and --write, all for --manage without this.")  # fmt: skip
@with_server
def create(
    api: ApiClient, out: Printer, name: str, reads: tuple[str, ...], writes: tuple[str, ...],
    tunnels: tuple[str, ...], manages: tuple[str, ...], expires_in: int | None, vhost: str | None,
) -> None:  # fmt: skip
    scopes = [
        *({"read": one, "vhost": vhost or "/"} for one in reads),
        *({"write": one, "vhost": vhost or "/"} for one in writes),
        *({"tunnel": label} for label in tunnels),
        *(_manage_scope(one, vhost) for one in manages),
    ]
    if not scopes:
        raise ConfigError("what the token allows: give --read, --write, --tunnel or --manage")
    expiry = {} if expires_in is None else {"expires_in_s": expires_in}
    made = api.post("/api/hub/tokens", {"name": name, "scopes": scopes, **expiry})
    if out.as_json:
        out.one(made)
    else:
        click.echo(made["token"])


def _manage_scope(given: str, vhost: str | None) -> dict[str, str]:
    verb, _, path = given.partition(":")
    scope = {"manage": verb, "path": path, "vhost": vhost or ""}
    return {key: value for key, value in scope.items() if value}


@token.command(help="Revoke the token with this ID for good.")
@click.argument("token_id", metavar="ID")
@IDEMPOTENT
@with_server
def revoke(api: ApiClient, out: Printer, token_id: str, idempotent: bool) -> None:
    was_there = api.delete(f"/api/hub/tokens{segments(token_id)}", idempotent=idempotent)
    out.say("the token is revoked" if was_there else f"there is no token '{token_id}'")
