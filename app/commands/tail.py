"""`warren tail`: shows the messages of an exchange, queue or stream as they come."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any

import click

from .login import Login
from .options import JSON, SOURCE, VHOST, examples, with_login
from .printer import cell


@click.command(
    help="""Show the messages of an exchange or queue as they come.

    NAME is an exchange with x, a queue with q. Each message is one line. A message of a queue
    leaves it when it was shown; `warren queue peek` takes none. After a break the command connects
    again and continues where it was. `warren listen` hands messages to other programs.""",
    epilog=examples(
        "warren tail x news --key 'eu.#'",
        "warren tail q log --cursor first --count 10",
        "warren tail x news --json | jq .body",
    ),
)
@SOURCE
@click.argument("name")
@click.option("--key", "keys", multiple=True, metavar="KEY", help="Binding key; may be repeated.")
@click.option("--cursor", default="", metavar="TEXT", help="first, last, an offset, or a cursor.")
@click.option("--count", type=click.IntRange(0), default=0, metavar="N",
    help="Exit after this number of messages.")  # fmt: skip
@VHOST
@JSON
@with_login
def tail(
    login: Login, kind: str, name: str, keys: tuple[str, ...], cursor: str, count: int, vhost: str,
    as_json: bool,
) -> int:  # fmt: skip
    from .listener_agent import ListenerAgent  # late, because it imports an HTTP client
    from .message_handlers import printing

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    handle = printing if as_json else _show
    try:
        ListenerAgent(login, vhost, (kind, name), keys, cursor, handle).run(count)
    except KeyboardInterrupt:
        pass  # The usual way to end it.
    return 0


def _show(message: dict[str, Any]) -> str:
    """Prints time, routing key and body; on a terminal no more than fits a line."""
    body = message.get("body", f"<{len(message.get('body_base64', '')) * 3 // 4} bytes>")
    line = f"{time.strftime('%H:%M:%S')}  {cell(message['routing_key'])}  {cell(body)}"
    width = os.get_terminal_size().columns if sys.stdout.isatty() else len(line)
    click.echo(line if len(line) <= width else line[: width - 1] + "…")
    return ""
