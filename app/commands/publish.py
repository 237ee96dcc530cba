"""`warren publish`: publishes a message, or each line of the standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import click

from ...core.counted import counted
from ...core.errors import ConfigError
from .client import ApiClient, place, segments, with_query
from .exit_codes import CommandError, PartlyDone
from .options import SOURCE, VHOST, examples, pairs, with_server
from .printer import Printer

STDIN = "-"
PROGRESS_EVERY = 100


@click.command(
    help="""Publish BODY to exchange x NAME or queue q NAME.

    With - as BODY it is read from the standard input. The command ends when the message is stored,
    as by a publisher confirm.""",
    epilog=examples(
        "warren publish x news 'it rains' --key eu.weather",
        "warren publish x news - --content-type application/json < event.json",
        "tail -f app.log | warren publish q log - --lines",
    ),
)
@SOURCE
@click.argument("name")
@click.argument("body")
@click.option("--key", default="", metavar="KEY", help="Routing key.")
@click.option("--content-type", default="text/plain; charset=utf-8", show_default=True,
    metavar="TYPE")  # fmt: skip
@click.option("--header", "headers", multiple=True, metavar="NAME=VALUE", help="May be repeated.")
@click.option("--property", "properties", multiple=True, metavar="NAME=VALUE",
    help="As priority=5 or correlation_id=7; may be repeated.")  # fmt: skip
@click.option("--transient", is_flag=True, help="Not durable: lost in a restart.")
@click.option("--mandatory", is_flag=True, help="Refuse the message if no queue gets it.")
@click.option("--lines", is_flag=True, help="With -: each line is a message.")
@VHOST
@with_server
def publish(
    api: ApiClient, out: Printer, kind: str, name: str, body: str, key: str, content_type: str,
    headers: tuple[str, ...], properties: tuple[str, ...], transient: bool, mandatory: bool,
    lines: bool, vhost: str,
) -> None:  # fmt: skip
    if lines and body != STDIN:
        raise ConfigError("--lines takes the messages from the standard input: give - as BODY")
    query: dict[str, Any] = {
        f"amqp.{name}": value for name, value in pairs("--property", properties).items()
    }
    query |= {"hub.topic": key, "amqp.mandatory": "true" if mandatory else ""}
    query |= {"hub.persistmsg": "0" if transient else ""}
    fields = {f"X-Amqp-Header-{name}": value for name, value in pairs("--header", headers).items()}
    path = f"{place(vhost)}/endpoint/{kind}{segments(name)}"
    target = _Target(api, path, query, {**fields, "Content-Type": content_type})
    if lines:
        count = _publish_lines(target)
        out.say(_published(count))
    else:
        target.publish(sys.stdin.buffer.read() if body == STDIN else body.encode())
        out.say("published")


class _Target:
    """Where messages go, with all that is the same for each."""

    def __init__(
        self, api: ApiClient, path: str, query: dict[str, Any], headers: dict[str, str]
    ) -> None:
        self._api = api
        self._path = with_query(path, query)
        self._headers = headers

    def publish(self, body: bytes) -> None:
        """Returns when the message is stored."""
        self._api.send("POST", self._path, body, self._headers)


def _publish_lines(target: _Target) -> int:
    """Publishes each line; returns how many. Raises `PartlyDone` if only some could be."""
    count = 0
    try:
        for line in _lines():
            target.publish(line)
            count += 1
            if not count % PROGRESS_EVERY and sys.stderr.isatty():
                click.echo(f"\r{count:,} messages", nl=False, err=True)
    except CommandError as error:
        if not count:
            raise
        raise PartlyDone(f"{_published(count)}, then: {error}") from error
    return count


def _published(count: int) -> str:
    return counted(count, "message is published", "messages are published")


def _lines() -> Iterator[bytes]:
    for line in sys.stdin.buffer:
        yield line.removesuffix(b"\n").removesuffix(b"\r")
