"""`warren run`: runs a command beside a Warren of its own."""

from __future__ import annotations

import os
import subprocess

import click

from ...core.errors import ConfigError
from ..testing.server import Warren
from .options import examples, pairs


@click.command(
    help="""Run COMMAND together with an empty Warren of its own.

    The server listens on free ports, and is stopped when the command ends. COMMAND finds it by the
    variables AMQP_URL and WARREN_URL. The exit code is that of COMMAND.""",
    epilog=examples(
        "warren run -- npm test",
        "warren run --set max_message_bytes=1000 -- sh -c 'warren publish q x hi'",
    ),
    context_settings={"ignore_unknown_options": True},
)
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Of the server.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def run(settings: tuple[str, ...], command: tuple[str, ...]) -> int:
    try:
        with Warren(settings=pairs("--set", settings)) as warren:
            urls = {"AMQP_URL": warren.amqp_url, "WARREN_URL": warren.http_url}
            return subprocess.run(command, env={**os.environ, **urls}, check=False).returncode
    except FileNotFoundError as error:
        raise ConfigError(f"{command[0]}: there is no such command") from error
    except (RuntimeError, ValueError) as error:
        raise ConfigError(str(error)) from error
