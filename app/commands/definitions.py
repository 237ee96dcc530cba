"""`warren definitions`: users, virtual hosts, queues and more as one document."""

from __future__ import annotations

from collections.abc import Sequence

import click

from ...core.counted import counted
from ...core.errors import ConfigError
from ..definitions import command
from .client import ApiClient, segments
from .options import examples, with_server
from .printer import Printer

_PATH = "/api/definitions"
_DATA = click.option(
    "--data", "-D", metavar="DIR",
    help="The data directory of a stopped server, in place of a running server.",
)  # fmt: skip
_VHOST = click.option("--vhost", metavar="NAME", help="Only what is in this virtual host.")


@click.group(
    help="""Export or import users, queues, bindings and policies.

    Virtual hosts, permissions, exchanges and parameters are among them. The format is
    RabbitMQ's.""",
    epilog=examples(
        "warren definitions export --file definitions.json",
        "warren definitions import definitions.json --vhost orders",
        "warren definitions export --data warren-data",
    ),
)
def definitions() -> None:
    pass


@definitions.command(help="Print the definitions as JSON, including password hashes.")
@click.option("--file", default=command.STANDARD, metavar="FILE",
    help="Write to this file instead.")  # fmt: skip
@_VHOST
@_DATA
@with_server
def export(api: ApiClient, out: Printer, file: str, vhost: str | None, data: str | None) -> None:
    if data is not None:
        _refuse_vhost(vhost)
        command.export_definitions(data, file)
        return
    command.write(api.send("GET", _path(vhost)).body, file)


@definitions.command(
    "import",
    help="""Apply a FILE as a whole or not at all; - reads the standard input.

    What of RabbitMQ can't be held here is left out, and listed.

    In a running server, nothing is deleted: users, virtual hosts, permissions, policies,
    parameters and limits of the same name are replaced; queues and exchanges that exist must be
    equivalent to those of the file. In the data directory of a stopped server, all users, virtual
    hosts and permissions are replaced by those of the file; exchanges, queues and bindings are
    added or changed.""",
)
@click.argument("file")
@_VHOST
@_DATA
@with_server
def import_definitions(
    api: ApiClient, out: Printer, file: str, vhost: str | None, data: str | None
) -> None:
    if data is not None:
        _refuse_vhost(vhost)
        changed, left_out = command.import_definitions(data, file)
        _say(out, counted(changed, "definition") + " changed", left_out)
        return
    answer = api.ask("POST", _path(vhost), command.read(file))
    _say(out, f"the definitions of {file} are in force", answer["left_out"] if answer else ())


def _say(out: Printer, what: str, left_out: Sequence[str]) -> None:
    out.say("\n".join([what, *left_out]))


def _path(vhost: str | None) -> str:
    return _PATH if vhost is None else _PATH + segments(vhost)


def _refuse_vhost(vhost: str | None) -> None:
    if vhost is not None:
        raise ConfigError("--vhost is for a running server: leave out --data or --vhost")
