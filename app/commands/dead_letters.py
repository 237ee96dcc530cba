"""`warren dead`: messages whose deliveries have failed for good."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from ...core.counted import counted
from ...core.errors import ConfigError
from .client import ApiClient, segments
from .exit_codes import PartlyDone
from .options import VHOST, examples, with_server
from .printer import Printer

_PATH = "/api/hub/dead-letters"
_COLUMNS = ("id", "vhost", "dead_at", "attempts", "exchange", "routing_key", "callback", "reason")
_FILTERS = (
    click.option("--vhost", metavar="NAME", help="Only of this virtual host."),
    click.option("--subscription", metavar="ID", help="Only of this subscription."),
    click.option("--callback", metavar="URL", help="Only for this callback."),
    click.option("--reason", metavar="TEXT", help="Only with this reason."),
    click.option("--older-than", "min_age_s", type=int, metavar="SECONDS"),
    click.option("--newer-than", "max_age_s", type=int, metavar="SECONDS"),
)


def _filters(function: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_FILTERS):
        function = option(function)
    return function


@click.group(
    "dead",
    help="List, replay and delete messages that could not be delivered.",
    epilog=examples(
        "warren dead list --callback https://app.example/hook",
        "warren dead replay --subscription ID --dry-run",
        "warren dead delete --older-than 604800",
    ),
)
def dead() -> None:
    pass


@dead.command("list", help="List dead letters, oldest first.")
@_filters
@with_server
def list_letters(api: ApiClient, out: Printer, **filters: Any) -> None:
    out.rows(api.pages(_PATH, "dead_letters", filters), _COLUMNS, "dead letters")


@dead.command(help="Show the dead letter with this ID, with its body.")
@click.argument("letter_id", metavar="ID")
@VHOST
@with_server
def show(api: ApiClient, out: Printer, letter_id: str, vhost: str) -> None:
    out.one(api.get(_PATH + segments(vhost, letter_id)))


@dead.command(help="Deliver dead letters again: these IDs, or all that match.")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@_filters
@click.option("--all", "everything", is_flag=True, help="All dead letters.")
@click.option("--dry-run", is_flag=True, help="Only print the number of messages.")
@with_server
def replay(
    api: ApiClient, out: Printer, ids: tuple[str, ...], everything: bool, dry_run: bool,
    **filters: Any,
) -> None:  # fmt: skip
    _carry_out(api, out, "replay", _wanted(ids, everything, filters), dry_run)


@dead.command(help="Delete dead letters for good: these IDs, or all that match.")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@_filters
@click.option("--all", "everything", is_flag=True, help="All dead letters.")
@click.option("--dry-run", is_flag=True, help="Only print the number of messages.")
@with_server
def delete(
    api: ApiClient, out: Printer, ids: tuple[str, ...], everything: bool, dry_run: bool,
    **filters: Any,
) -> None:  # fmt: skip
    _carry_out(api, out, "delete", _wanted(ids, everything, filters), dry_run)


def _wanted(ids: tuple[str, ...], everything: bool, filters: dict[str, Any]) -> dict[str, Any]:
    """Returns the filters that are given. Raises `ConfigError` if nothing says which are meant."""
    given = {name: value for name, value in filters.items() if value is not None}
    if ids:
        given["ids"] = list(ids)
    if bool(given) == everything:
        raise ConfigError("which dead letters are meant: give IDs, a filter, or --all for all")
    return given


def _carry_out(
    api: ApiClient, out: Printer, action: str, wanted: dict[str, Any], dry_run: bool
) -> None:
    """Raises `PartlyDone` if the server could not do all of it."""
    if dry_run:
        out.say(counted(_count(api, wanted), "dead letter matches", "dead letters match"))
        return
    needs_all = action == "delete" and not wanted
    done = api.post(f"{_PATH}/{action}", {"all": True} if needs_all else wanted)
    if out.as_json:
        out.one(done)
    verb = "replayed" if action == "replay" else "deleted"
    out.say(f"{counted(done[verb], 'dead letter is', 'dead letters are')} {verb}")
    if done.get("skipped"):
        skipped = counted(done["skipped"], "dead letter stays", "dead letters stay")
        raise PartlyDone(f"{skipped}: the subscription has ended or is paused")
    if not done["is_complete"]:
        left = counted(done["left"], "dead letter is", "dead letters are")
        raise PartlyDone(f"{left} left: run the command again")


def _count(api: ApiClient, wanted: dict[str, Any]) -> int:
    filters = {name: value for name, value in wanted.items() if name != "ids"}
    ids = wanted.get("ids")
    found = api.pages(_PATH, "dead_letters", filters)
    return sum(ids is None or letter["id"] in ids for letter in found)
