"""`warren listen`: prints or forwards the messages of an exchange, queue or stream of a server."""

from __future__ import annotations

import re
import signal
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import click

from ...core.errors import ConfigError
from .login import Login, server_url
from .options import SOURCE, VHOST, examples, with_login_at_hub

if TYPE_CHECKING:
    from .message_handlers import Handle

_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_AGO: Final = re.compile("([0-9]{1,5})([smhd])")


@click.command(
    help="""Print messages as JSON lines, or hand them to a program.

    These are the messages of exchange x NAME or queue q NAME, as they come. No public address is
    needed.

    A message leaves its queue when it was printed, or when CMD or URL has succeeded; otherwise it
    returns to the queue, and is tried again after 0.5 to 30 s. If the connection breaks, the
    command reconnects and continues where it was; gaps are reported on the standard error.

    Exit codes: 0 after SIGTERM or Ctrl-C, and after --count messages; 1 if handling one of them
    failed; 2, 4 and 5 as of other commands.""",
    epilog=examples(
        "warren listen x news --key 'eu.#'",
        "warren listen q jobs --exec 'jq .'",
        "warren listen q log --since 15m",
        "warren listen x news --forward http://localhost:9000/hook",
    ),
)
@SOURCE
@click.argument("name")
@click.option("--key", "keys", multiple=True, metavar="KEY", help="Binding key; may be repeated.")
@click.option("--cursor", default="", help="first, last, an offset, or the cursor of a message.")
@click.option(
    "--since",
    default="",
    metavar="TIME",
    help="From then on: an ISO 8601 time, or 90s, 15m, 2h, 3d ago.",
)
@click.option("--count", type=click.IntRange(0), default=0, metavar="N",
    help="Exit after this number of messages.")  # fmt: skip
@click.option(
    "--exec",
    "command",
    default="",
    metavar="CMD",
    help="Run CMD for each message, with the body on stdin.",
)
@click.option("--forward", default="", metavar="URL", help="Post each body to URL.")
@VHOST
@with_login_at_hub
def listen(
    login: Login, kind: str, name: str, keys: tuple[str, ...], cursor: str, since: str,
    count: int, command: str, forward: str, vhost: str,
) -> int:  # fmt: skip
    if command and forward:
        raise ConfigError("--exec and --forward: only one of them can have the messages")
    if since and cursor:
        raise ConfigError("--since and --cursor: only one of them can say where to begin")
    if forward:
        server_url("--forward", forward)
    from .listener_agent import PREFETCH, ListenerAgent  # late, because it imports an HTTP client

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    handle = _handle(command, forward)
    prefetch = 1 if command or forward else PREFETCH
    agent = ListenerAgent(
        login, vhost, (kind, name), keys, cursor or _moment(since), handle, prefetch
    )
    try:
        return 0 if agent.run(count) else 1
    except KeyboardInterrupt:
        return 0


def _moment(since: str) -> str:
    """Returns the time that is meant; what is no duration is for the server to judge."""
    ago = _AGO.fullmatch(since)
    if ago is None:
        return since
    moment = datetime.now(UTC) - timedelta(seconds=int(ago[1]) * _SECONDS[ago[2]])
    return moment.isoformat().replace("+00:00", "Z")


def _handle(command: str, forward: str) -> Handle:
    from .message_handlers import forwarding, printing, running

    if command:
        return running(command)
    return forwarding(forward) if forward else printing
