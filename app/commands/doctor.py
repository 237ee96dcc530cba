"""`warren doctor`: looks for the usual mistakes, on this machine and at a running server."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

import click

from ...core.errors import ConfigError
from ..configuration import loading
from .client import ApiClient
from .doctor_machine import look_at_callback, look_at_machine
from .doctor_server import look_at_server, ports_here
from .findings import OK, PROBLEM, Finding
from .options import examples, with_server
from .printer import Printer

FOUND = 1
_MARKS = {OK: "ok", PROBLEM: "PROBLEM"}
_PORTS = {"http": 80, "https": 443}


@click.command(
    help="""Check for common problems, and say what to do about each.

    Among them are ports, disk, clock, file limit, alarms, guest from other machines, and callbacks
    that fail or can't be reached. The settings are those that `warren serve` would have here. Exit
    code 1 if there is a problem.
    """,
    epilog=examples(
        "warren doctor",
        "warren doctor --url https://hub.example --profile work --callback https://app.example/hook",
        "warren doctor --json | jq 'select(.level != \"ok\")'",
    ),
)
@click.option("--data", metavar="DIR", help="The data directory, as for 'warren serve'.")
@click.option("--config", metavar="FILE", help="The settings, as for 'warren serve'.")
@click.option("--callback", "callbacks", multiple=True, metavar="URL",
    help="Also connect to this one from here; may be repeated.")  # fmt: skip
@with_server
def doctor(
    api: ApiClient, out: Printer, data: str | None, config: str | None, callbacks: tuple[str, ...]
) -> int:
    flags = {"data": data, "config": config}
    settings = loading.load({name: value for name, value in flags.items() if value is not None})
    addresses = [_address(url) for url in callbacks]
    found = [*look_at_machine(settings, ports_here(api)), *look_at_server(api)]
    found += [look_at_callback(*address) for address in addresses]
    _show(out, found)
    return FOUND if any(one.level == PROBLEM for one in found) else 0


def _show(out: Printer, found: Iterable[Finding]) -> None:
    if out.as_json:
        out.rows([one.document() for one in found], (), "findings")
        return
    for one in found:
        out.say(f"{_MARKS.get(one.level, one.level):8} {one.subject}: {one.text}")
        if one.advice:
            out.say(f"{'':8} -> {one.advice}")


def _address(url: str) -> tuple[str, int]:
    """Raises `ConfigError`."""
    parts = urlsplit(url)
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ConfigError(f"--callback {url}: give http://HOST or https://HOST")
    return parts.hostname, parts.port or _PORTS[parts.scheme]
