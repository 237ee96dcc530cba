"""`warren connection`: connections of AMQP clients."""

from __future__ import annotations

import click

from ...core.errors import ConfigError
from .client import ApiClient, segments
from .options import IDEMPOTENT, examples, with_server
from .printer import Printer

_PATH = "/api/connections"
_COLUMNS = ("name", "user", "vhost", "state", "channels", "user_provided_name")


@click.group(
    "connection",
    help="List and close connections of AMQP clients.",
    epilog=examples(
        "warren connection list --of ada",
        "warren connection close '10.0.0.7:51442 -> 10.0.0.1:5672' --reason maintenance",
        "warren connection close --of ada",
    ),
)
def connection() -> None:
    pass


@connection.command("list", help="List connections, those of all virtual hosts without --vhost.")
@click.option("--vhost", metavar="NAME", help="Only of this virtual host.")
@click.option("--of", "user", metavar="USER", help="Only of this user.")
@with_server
def list_connections(api: ApiClient, out: Printer, vhost: str | None, user: str | None) -> None:
    wanted = {"vhost": vhost, "user": user}
    given = {key: value for key, value in wanted.items() if value is not None}
    found = (one for one in api.pages(_PATH, "items") if given.items() <= one.items())
    out.rows(found, _COLUMNS, "connections")


@connection.command(help="Close the connection NAME, or all connections of a user.")
@click.argument("name", required=False)
@click.option("--of", "user", metavar="USER", help="All connections of this user.")
@click.option("--reason", metavar="TEXT", help="What the clients are told.")
@IDEMPOTENT
@with_server
def close(
    api: ApiClient, out: Printer, name: str | None, user: str | None, reason: str | None,
    idempotent: bool,
) -> None:  # fmt: skip
    if (name is None) == (user is None):
        raise ConfigError("which connections: give either NAME or --of")
    if reason is not None and not (reason.isascii() and reason.isprintable()):
        raise ConfigError(f"--reason {reason}: give printable ASCII characters")
    headers = {} if reason is None else {"X-Reason": reason}
    if name is None:
        api.delete(_PATH + segments("username", str(user)), headers=headers)
        out.say(f"all connections of user '{user}' are closed")
        return
    was_there = api.delete(_PATH + segments(name), idempotent=idempotent, headers=headers)
    out.say(f"connection '{name}' {'is closed' if was_there else 'does not exist'}")
