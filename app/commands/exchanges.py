"""`warren exchange`: exchanges and their bindings."""

from __future__ import annotations

import click

from .client import ApiClient, segments
from .exit_codes import CommandError
from .options import IDEMPOTENT, VHOST, Function, arguments_of, examples, with_server
from .printer import Printer

_PATH = "/api/exchanges"
_ARGUMENT = click.option(
    "--argument", "given", multiple=True, metavar="NAME=VALUE",
    help="As alternate-exchange=other; may be repeated.",
)  # fmt: skip


def _binding(function: Function) -> Function:
    """Adds the two ends of a binding, its key and arguments."""
    for option in (
        VHOST,
        click.option("--to-exchange", is_flag=True, help="TARGET is an exchange."),
        _ARGUMENT,
        click.option("--key", default="", metavar="KEY", help="Routing key."),
        click.argument("target"),
        click.argument("name"),
    ):
        function = option(function)
    return function


@click.group(
    "exchange",
    help="List, declare, bind and delete exchanges.",
    epilog=examples(
        "warren exchange declare news --type topic",
        "warren exchange bind news archive --key 'eu.#'",
        "warren exchange unbind news archive --key 'eu.#'",
    ),
)
def exchange() -> None:
    pass


@exchange.command("list", help="List exchanges, those of all virtual hosts without --vhost.")
@click.option("--vhost", metavar="NAME", help="Only of this virtual host.")
@click.option("--name", "pattern", metavar="PATTERN", help="Names that match this expression.")
@with_server
def list_exchanges(api: ApiClient, out: Printer, vhost: str | None, pattern: str | None) -> None:
    query = {"name": pattern, "use_regex": "true" if pattern else None}
    path = _PATH + (segments(vhost) if vhost else "")
    columns = ("vhost", "name", "type", "durable", "auto_delete", "arguments")
    out.rows(api.pages(path, "items", query), columns, "exchanges")


@exchange.command(help="Show the exchange NAME.")
@click.argument("name")
@VHOST
@with_server
def show(api: ApiClient, out: Printer, name: str, vhost: str) -> None:
    out.one(api.get(_PATH + segments(vhost, name)))


@exchange.command(help="Declare the exchange NAME.")
@click.argument("name")
@click.option("--type", "kind", default="topic", show_default=True, metavar="TYPE")
@click.option("--transient", is_flag=True, help="Not durable: lost in a restart.")
@_ARGUMENT
@VHOST
@with_server
def declare(
    api: ApiClient, out: Printer, name: str, kind: str, transient: bool, given: tuple[str, ...],
    vhost: str,
) -> None:  # fmt: skip
    document = {"type": kind, "durable": not transient, "arguments": arguments_of(given)}
    is_new = api.put(_PATH + segments(vhost, name), document)
    out.say(f"exchange '{name}' in vhost '{vhost}' {'is declared' if is_new else 'was there'}")


@exchange.command(help="Delete the exchange NAME.")
@click.argument("name")
@click.option("--if-unused", is_flag=True, help="Only without bindings.")
@VHOST
@IDEMPOTENT
@with_server
def delete(
    api: ApiClient, out: Printer, name: str, if_unused: bool, vhost: str, idempotent: bool
) -> None:
    path = _PATH + segments(vhost, name) + ("?if-unused=true" if if_unused else "")
    was_there = api.delete(path, idempotent=idempotent)
    state = "is deleted" if was_there else "does not exist"
    out.say(f"exchange '{name}' in vhost '{vhost}' {state}")


@exchange.command(help="List the bindings of the exchange NAME to queues and exchanges.")
@click.argument("name")
@VHOST
@with_server
def bindings(api: ApiClient, out: Printer, name: str, vhost: str) -> None:
    found = api.pages(f"{_PATH}{segments(vhost, name)}/bindings/source", "items")
    columns = ("destination_type", "destination", "routing_key", "arguments")
    out.rows(found, columns, "bindings")


@exchange.command(help="Bind TARGET, a queue, to the exchange NAME.")
@_binding
@with_server
def bind(
    api: ApiClient, out: Printer, name: str, target: str, key: str, given: tuple[str, ...],
    to_exchange: bool, vhost: str,
) -> None:  # fmt: skip
    document = {"routing_key": key, "arguments": arguments_of(given)}
    api.post(_between(vhost, name, target, to_exchange), document)
    out.say(
        f"{_kind(to_exchange)} '{target}' gets what is published to exchange '{name}' with key "
        f"'{key}'"
    )


@exchange.command(help="Remove the binding of TARGET to the exchange NAME with this key.")
@_binding
@IDEMPOTENT
@with_server
def unbind(
    api: ApiClient, out: Printer, name: str, target: str, key: str, given: tuple[str, ...],
    to_exchange: bool, vhost: str, idempotent: bool,
) -> None:  # fmt: skip
    path = _between(vhost, name, target, to_exchange)
    wanted = {"routing_key": key, "arguments": arguments_of(given)}
    found = [one for one in api.get(path) if wanted.items() <= one.items()]
    ends = f"of {_kind(to_exchange)} '{target}' to exchange '{name}'"
    if not found and not idempotent:
        raise CommandError(
            f"there is no binding {ends} with key '{key}' and these arguments: 'warren exchange "
            f"bindings {name}' lists all"
        )
    for one in found:
        api.delete(path + segments(one["properties_key"]), idempotent=idempotent)
    out.say(f"the binding {ends} with key '{key}' {'is removed' if found else 'does not exist'}")


def _kind(to_exchange: bool) -> str:
    return "exchange" if to_exchange else "queue"


def _between(vhost: str, name: str, target: str, to_exchange: bool) -> str:
    letter = "e" if to_exchange else "q"
    return f"/api/bindings{segments(vhost)}/e{segments(name)}/{letter}{segments(target)}"
