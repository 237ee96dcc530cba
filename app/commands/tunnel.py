"""`warren tunnel`: gives a local HTTP server a public URL of a hub."""

from __future__ import annotations

import asyncio
import secrets
import signal
import sys
import time
from typing import TYPE_CHECKING

import click

from .login import Login
from .options import examples, with_login_at_hub

if TYPE_CHECKING:
    from .served_requests import Served
    from .tunnel_agent import TunnelOptions


@click.command(
    help="""Give the HTTP server at PORT here a public URL of a hub.

    Each request is printed with its number, its status and how long it took. The label is released
    at the end; with --label-token it is kept, so that webhooks stay subscribed while the command is
    restarted. Answers are passed on when they are complete, so event streams are not.

    While it runs, type `list` for the last 100 requests, `show 7` for the seventh with its answer,
    `replay 7` to send it to the local server again.

    Exit codes: 0 after SIGTERM or Ctrl-C; 2, 4 and 5 as of other commands. A hub that was there
    before is waited for.""",
    epilog=examples(
        "warren tunnel 8000",
        "warren tunnel 8000 --label ada --url https://hub.example.org --user tony",
    ),
)
@click.argument("port", type=click.IntRange(1, 65_535))
@click.option("--label", default="", metavar="NAME", help="Of the URL; without it a random one.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Of the HTTP server.")
@click.option(
    "--label-token", default="", metavar="TEXT", envvar="WARREN_TUNNEL_TOKEN", show_envvar=True,
    help="Keeps the label; at least 22 characters, and whoever has it has the label.",
)  # fmt: skip
@with_login_at_hub
def tunnel(login: Login, port: int, label: str, host: str, label_token: str) -> int:
    from .tunnel_agent import TunnelOptions  # late, because it imports an HTTP client

    options = TunnelOptions(
        hub=login.url,
        host=host,
        port=port,
        label=label or secrets.token_hex(16),
        token=label_token or secrets.token_urlsafe(24),
        # With --dev labels need no login, and guest has none on other machines.
        authorization=login.authorization() if login.is_given else "",
        is_kept=bool(label_token),
    )
    asyncio.run(_serve(options))
    return 0


async def _serve(options: TunnelOptions) -> None:
    from .served_requests import ServedRequests
    from .tunnel_agent import TunnelAgent
    from .tunnel_console import HELP, TunnelConsole

    requests = ServedRequests()

    def served(request: Served) -> None:
        _print(f"{requests.add(request)}  {request}")

    agent = TunnelAgent(options, served, _print)
    if sys.stdin is not None and sys.stdin.isatty():
        _print(HELP)
    running = asyncio.create_task(agent.run())
    console = asyncio.create_task(TunnelConsole(requests, agent.replay, _print_plain).run())
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, running.cancel)
    try:
        await running
    except asyncio.CancelledError:
        _print("stopped")
    finally:
        console.cancel()


def _print(line: str) -> None:
    """Prints a line with the time."""
    _print_plain(f"{time.strftime('%H:%M:%S')}  {line}")


def _print_plain(line: str) -> None:
    """Prints a line; what others sent can't control the terminal."""
    click.echo("".join(char if char.isprintable() else "?" for char in line))
