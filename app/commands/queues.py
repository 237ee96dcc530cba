"""`warren queue`: queues and their messages."""

from __future__ import annotations

from typing import Any

import click

from ...core.counted import counted
from ...core.errors import ConfigError
from .client import ApiClient, segments
from .exit_codes import PartlyDone
from .options import IDEMPOTENT, VHOST, arguments_of, examples, with_server
from .printer import Printer

_PATH = "/api/queues"
_MESSAGES = "/api/warren/queues"
_COLUMNS = (
    "vhost", "name", "type", "messages_ready", "messages_unacknowledged", "consumers", "state",
)  # fmt: skip
_MESSAGE_COLUMNS = ("exchange", "routing_key", "redelivered", "properties", "payload")
_TYPE = "x-queue-type"


@click.group(
    "queue",
    help="List, declare, peek into, pause, move and delete queues.",
    epilog=examples(
        "warren queue list --sort messages_ready",
        "warren queue declare jobs --type quorum --argument x-delivery-limit=5",
        "warren queue peek jobs --from last",
        "warren queue move jobs.failed --queue jobs",
    ),
)
def queue() -> None:
    pass


@queue.command("list", help="List queues, those of all virtual hosts without --vhost.")
@click.option("--vhost", metavar="NAME", help="Only of this virtual host.")
@click.option("--name", "pattern", metavar="PATTERN", help="Names that match this expression.")
@click.option("--sort", metavar="KEY", help="The largest first, such as messages_ready.")
@with_server
def list_queues(
    api: ApiClient, out: Printer, vhost: str | None, pattern: str | None, sort: str | None
) -> None:
    query = {"name": pattern, "use_regex": "true" if pattern else None}
    query |= {"sort": sort, "sort_reverse": "true" if sort else None}
    path = _PATH + (segments(vhost) if vhost else "")
    out.rows(api.pages(path, "items", query), _COLUMNS, "queues")


@queue.command(help="Show the queue NAME.")
@click.argument("name")
@VHOST
@with_server
def show(api: ApiClient, out: Printer, name: str, vhost: str) -> None:
    out.one(api.get(_PATH + segments(vhost, name)))


@queue.command(help="Declare the queue NAME.")
@click.argument("name")
@click.option("--type", "kind", type=click.Choice(["classic", "quorum", "stream"]))
@click.option("--transient", is_flag=True, help="Not durable: lost in a restart.")
@click.option("--auto-delete", is_flag=True, help="Deleted after its last consumer.")
@click.option("--argument", "given", multiple=True, metavar="NAME=VALUE",
    help="As x-max-length=1000; may be repeated.")  # fmt: skip
@VHOST
@with_server
def declare(
    api: ApiClient, out: Printer, name: str, kind: str | None, transient: bool, auto_delete: bool,
    given: tuple[str, ...], vhost: str,
) -> None:  # fmt: skip
    table = arguments_of(given) | ({} if kind is None else {_TYPE: kind})
    document = {"durable": not transient, "auto_delete": auto_delete, "arguments": table}
    is_new = api.put(_PATH + segments(vhost, name), document)
    out.say(f"queue '{name}' in vhost '{vhost}' {'is declared' if is_new else 'was there'}")


@queue.command(help="Delete the queue NAME with its messages.")
@click.argument("name")
@click.option("--if-empty", is_flag=True, help="Only without messages.")
@click.option("--if-unused", is_flag=True, help="Only without consumers.")
@VHOST
@IDEMPOTENT
@with_server
def delete(
    api: ApiClient, out: Printer, name: str, if_empty: bool, if_unused: bool, vhost: str,
    idempotent: bool,
) -> None:  # fmt: skip
    words = [word for word, is_set in (("if-empty", if_empty), ("if-unused", if_unused)) if is_set]
    query = "&".join(f"{word}=true" for word in words)
    path = _PATH + segments(vhost, name) + (f"?{query}" if query else "")
    was_there = api.delete(path, idempotent=idempotent)
    state = "is deleted" if was_there else "does not exist"
    out.say(f"queue '{name}' in vhost '{vhost}' {state}")


@queue.command(help="Pause the queue NAME. It takes messages and delivers none.")
@click.argument("name")
@VHOST
@with_server
def pause(api: ApiClient, out: Printer, name: str, vhost: str) -> None:
    api.put(f"{_PATH}{segments(vhost, name)}/pause", {})
    out.say(f"queue '{name}' in vhost '{vhost}' is paused")


@queue.command(help="Resume the queue NAME after a pause.")
@click.argument("name")
@VHOST
@with_server
def resume(api: ApiClient, out: Printer, name: str, vhost: str) -> None:
    api.put(f"{_PATH}{segments(vhost, name)}/resume", {})
    out.say(f"queue '{name}' in vhost '{vhost}' is running")


@queue.command(help="Remove all ready messages of the queue NAME for good.")
@click.argument("name")
@VHOST
@with_server
def purge(api: ApiClient, out: Printer, name: str, vhost: str) -> None:
    api.delete(f"{_PATH}{segments(vhost, name)}/contents")
    out.say(f"queue '{name}' in vhost '{vhost}' is purged")


@queue.command(help="Take messages from the front of the queue NAME.")
@click.argument("name")
@click.option("--count", type=click.IntRange(1), default=1, show_default=True, metavar="N")
@click.option("--requeue", is_flag=True, help="Return them to the queue, marked as redelivered.")
@VHOST
@with_server
def get(api: ApiClient, out: Printer, name: str, count: int, requeue: bool, vhost: str) -> None:
    mode = "ack_requeue_true" if requeue else "ack_requeue_false"
    wanted = {"count": count, "ackmode": mode, "encoding": "auto"}
    found = api.post(f"{_PATH}{segments(vhost, name)}/get", wanted)
    out.rows(found, _MESSAGE_COLUMNS, "messages")


@queue.command(
    help="Show ready messages of the queue NAME, and take none of them. Streams can be shown too."
)
@click.argument("name")
@click.option("--from", "start", default="first", show_default=True, metavar="PLACE",
    help="first, last, or a position.")  # fmt: skip
@click.option("--count", type=click.IntRange(1), default=10, show_default=True, metavar="N")
@VHOST
@with_server
def peek(api: ApiClient, out: Printer, name: str, start: str, count: int, vhost: str) -> None:
    path = f"{_MESSAGES}{segments(vhost, name)}/messages"
    found = api.get(path, {"from": start, "count": count})
    out.rows(found["messages"], ("position", *_MESSAGE_COLUMNS), "messages")


@queue.command(help="Move ready messages of the queue NAME to a queue or exchange.")
@click.argument("name")
@click.option("--queue", "target", metavar="NAME", help="The queue that gets them.")
@click.option("--exchange", metavar="NAME", help="The exchange that they are published to.")
@click.option("--key", metavar="KEY", help="In place of their routing keys, with --exchange.")
@click.option("--count", type=click.IntRange(1), metavar="N", help="Maximum number of messages.")
@VHOST
@with_server
def move(
    api: ApiClient, out: Printer, name: str, target: str | None, exchange: str | None,
    key: str | None, count: int | None, vhost: str,
) -> None:  # fmt: skip
    if (target is None) == (exchange is None):
        raise ConfigError("where to: give either --queue or --exchange")
    wanted: dict[str, Any] = {
        "queue": target, "exchange": exchange, "routing_key": key, "count": count,
    }  # fmt: skip
    document = {name: value for name, value in wanted.items() if value is not None}
    moved = api.post(f"{_MESSAGES}{segments(vhost, name)}/move", document)
    if out.as_json:
        out.one(moved)
    done = counted(moved["moved"], "message is moved", "messages are moved")
    out.say(f"{done}, {counted(moved['left'], 'is left', 'are left')}")
    if moved["reason"]:
        raise PartlyDone(f"the move has ended: {moved['reason']}")
