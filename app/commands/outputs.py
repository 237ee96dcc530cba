"""`warren outputs`: makes outputs at a running server, and tokens for their readers."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Final

import click

from ...core.errors import ConfigError
from .client import ApiClient, segments, with_query
from .exit_codes import reason_of
from .options import IDEMPOTENT, VHOST, examples, with_server
from .printer import Printer

_PATH: Final = "/api/hub/outputs"


@click.group(
    help="""Make feeds from feeds, exchanges and streams.

    An output is defined by a JSON object, which docs/feeds.md describes.""",
    epilog=examples(
        """echo '{"sources": [{"exchange": "news"}]}' | warren outputs add eu -""",
        "warren outputs token eu 'Acme Ltd'",
    ),
)
def outputs() -> None:
    pass


@outputs.command(
    help="Create or change the output NAME, as FILE defines it. With - as FILE the definition is "
    "read from the standard input."
)
@click.argument("name")
@click.argument("file")
@VHOST
@with_server
def add(api: ApiClient, out: Printer, name: str, file: str, vhost: str) -> None:
    path = _path(vhost, name)
    api.send("PUT", path, _read(file))
    _show_documents(api.get(path), out)


@outputs.command("list", help="List outputs.")
@VHOST
@with_server
def list_outputs(api: ApiClient, out: Printer, vhost: str) -> None:
    found = api.pages(_PATH, "items", {"vhost": vhost})
    out.rows(found, ("name", "visibility", "documents.atom"), "outputs")


@outputs.command(help="Show an output, with the problems of its sources.")
@click.argument("name")
@VHOST
@with_server
def show(api: ApiClient, out: Printer, name: str, vhost: str) -> None:
    out.one(api.get(_path(vhost, name)))


@outputs.command(help="Remove an output with its items and tokens.")
@click.argument("name")
@VHOST
@IDEMPOTENT
@with_server
def remove(api: ApiClient, out: Printer, name: str, vhost: str, idempotent: bool) -> None:
    was_there = api.delete(_path(vhost, name), idempotent=idempotent)
    out.say(f"output '{name}' is removed" if was_there else f"there is no output '{name}'")


@outputs.command(help="Create a token of an output for PARTNER, and show its URLs once.")
@click.argument("name")
@click.argument("partner")
@VHOST
@with_server
def token(api: ApiClient, out: Printer, name: str, partner: str, vhost: str) -> None:
    _show_documents(api.post(_path(vhost, name, "tokens"), {"name": partner}), out)


@outputs.command(help="List the tokens of an output.")
@click.argument("name")
@VHOST
@with_server
def tokens(api: ApiClient, out: Printer, name: str, vhost: str) -> None:
    out.rows(api.get(_path(vhost, name, "tokens")), ("id", "made_at", "name"), "tokens")


@outputs.command(help="Revoke the token with this ID.")
@click.argument("name")
@click.argument("token_id", metavar="ID")
@VHOST
@IDEMPOTENT
@with_server
def revoke(
    api: ApiClient, out: Printer, name: str, token_id: str, vhost: str, idempotent: bool
) -> None:
    was_there = api.delete(_path(vhost, name, "tokens", token_id), idempotent=idempotent)
    out.say("the token is revoked" if was_there else f"there is no token '{token_id}'")


def _path(vhost: str, *names: str) -> str:
    return with_query(_PATH + segments(*names), {"vhost": vhost})


def _show_documents(found: dict[str, dict[str, str]], out: Printer) -> None:
    if out.as_json:
        out.one(found)
    for url in found["documents"].values():
        out.say(url)


def _read(file: str) -> bytes:
    """Raises `ConfigError` for a file that can't be read, or is no JSON."""
    try:
        body = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        json.loads(body)
    except OSError as error:
        raise ConfigError(f"{file} can't be read: {reason_of(error)}") from error
    except ValueError as error:
        raise ConfigError(f"{file} is no JSON: {error}") from error
    return body
