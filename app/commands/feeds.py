"""`warren feeds`: registers feeds at a running server, and looks after them."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click

from ...core.counted import counted
from ...core.errors import ConfigError
from .client import ApiClient, segments, with_query
from .exit_codes import CommandError, PartlyDone, RequestRefused, reason_of
from .options import IDEMPOTENT, VHOST, examples, with_server
from .printer import Printer

_PATH: Final = "/api/hub/feeds"
_COLUMNS: Final = ("name", "state", "entries_a_week", "published", "next_poll_at", "push", "url")
_STATES: Final = ("new", "ok", "failing", "dead", "paused", "gone")
_OPML: Final = {"Content-Type": "text/x-opml", "Accept": "application/json"}
_IMPORT_AGAIN_S: Final = 0.2


@click.group(
    help="""Register and manage feeds of a running server.

    Each new or changed entry of a feed is published to the exchange hub.feeds, with the feed's
    name as its routing key.""",
    epilog=examples(
        "warren feeds add https://www.example.org/ --name news",
        "warren feeds import subscriptions.opml",
        "warren feeds list --state failing",
    ),
)
def feeds() -> None:
    pass


@feeds.command(help="Register the feed at URL, or one that the page there names.")
@click.argument("feed_url", metavar="URL")
@click.option("--name", metavar="NAME", help="Its name; derived from its title by default.")
@click.option("--first", default="none", show_default=True, metavar="N",
    help="How many of the entries found now are published.")  # fmt: skip
@click.option("--min-interval", type=int, metavar="S", help="Seconds between polls.")
@click.option("--selector", metavar="TEXT",
    help="For pages and data that are not feeds: a CSS selector, a JSON path, or *.")  # fmt: skip
@click.option("--hub", metavar="URL", help="A WebSub hub, if the feed names none.")
@click.option("--private", is_flag=True, help="Only its owner reads its documents.")
@VHOST
@with_server
def add(
    api: ApiClient, out: Printer, feed_url: str, name: str | None, first: str,
    min_interval: int | None, selector: str | None, hub: str | None, private: bool, vhost: str,
) -> None:  # fmt: skip
    wanted = {
        "url": feed_url, "vhost": vhost, "name": name, "min_interval_s": min_interval,
        "selector": selector, "hub": hub, "visibility": "private" if private else None,
        "first": first if first == "none" else _number(first),
    }  # fmt: skip
    given = {key: value for key, value in wanted.items() if value is not None}
    try:
        found = api.post(_PATH, given)
    except RequestRefused as error:
        candidates = error.document.get("candidates")
        if not candidates:
            raise
        out.rows(candidates, ("url", "title", "type"), "feeds")
        raise ConfigError(
            f"{feed_url} names {len(candidates)} feeds: give the URL of one of them"
        ) from error
    _show(found, out)


@feeds.command("list", help="List feeds.")
@click.option("--search", metavar="TEXT", help="Part of name, title or URL.")
@click.option("--state", type=click.Choice(_STATES))
@with_server
def list_feeds(api: ApiClient, out: Printer, search: str | None, state: str | None) -> None:
    asked = {"search": search, "state": state}
    found = list(api.pages(_PATH, "items", asked))
    if out.as_json:
        out.rows(found, _COLUMNS, "feeds")
        return
    out.rows([{**feed, "push": feed["push"]["state"]} for feed in found], _COLUMNS, "feeds")
    figures = api.get(_PATH, {**asked, "page": 1, "page_size": 1})["statistics"]
    a_week = figures["entries_a_week"]
    entries = f"{a_week:g} {'entry' if a_week == 1 else 'entries'} a week"
    out.say(f"\n{counted(figures['feeds'], 'feed')}, {entries}")


@feeds.command(help="Show a feed.")
@click.argument("name")
@with_server
def show(api: ApiClient, out: Printer, name: str) -> None:
    _show(api.get(_PATH + segments(name)), out)


def _action(action: str, text: str) -> None:
    """Adds the command for an action on one feed."""

    @feeds.command(action, help=text)
    @click.argument("name")
    @with_server
    def act(api: ApiClient, out: Printer, name: str) -> None:
        _show(api.post(f"{_PATH}{segments(name)}/{action}"), out)


_action("poll", "Poll a feed now.")
_action("pause", "Stop polling a feed.")
_action("resume", "Poll a feed again.")


@feeds.command(help="Remove a feed; messages that are in queues stay there.")
@click.argument("name")
@IDEMPOTENT
@with_server
def remove(api: ApiClient, out: Printer, name: str, idempotent: bool) -> None:
    was_there = api.delete(_PATH + segments(name), idempotent=idempotent)
    out.say(f"feed '{name}' is removed" if was_there else f"there is no feed '{name}'")


@feeds.command("import", help="Register all feeds of an OPML FILE, as feed readers export them.")
@click.argument("file")
@click.option("--first", default="none", show_default=True, metavar="N",
    help="How many of the entries found at the first poll of each are published.")  # fmt: skip
@VHOST
@with_server
def import_file(api: ApiClient, out: Printer, file: str, first: str, vhost: str) -> None:
    query = {"vhost": vhost, "first": str(0 if first == "none" else _number(first))}
    job = _import(api, _read(file), query)
    if out.as_json:
        out.one(job)
    known = counted(job["known"], "was there", "were there")
    out.say(f"{counted(job['added'], 'feed')} added, {known}, {job['refused_count']} refused")
    for refused in job["refused"]:
        out.say(f"  {refused['url']}: {refused['reason']}")
    if job["refused_count"]:
        refused = counted(job["refused_count"], f"feed of {file} is", f"feeds of {file} are")
        raise PartlyDone(f"{refused} refused")


def _import(api: ApiClient, body: bytes, query: Mapping[str, str]) -> Any:
    """Imports a document; returns the outcome when it is over."""
    job = api.ask("POST", with_query(f"{_PATH}/import", query), body, _OPML)
    while job["state"] == "running":
        time.sleep(_IMPORT_AGAIN_S)
        job = api.get(f"{_PATH}/import{segments(str(job['id']))}")
    if job["error"]:
        raise CommandError(f"the import ended at {job['done']} of {job['total']}: {job['error']}")
    return job


@feeds.command(help="Write all feeds to an OPML FILE, - for the standard output.")
@click.argument("file")
@with_server
def export(api: ApiClient, out: Printer, file: str) -> None:
    body = api.send("GET", f"{_PATH}.opml", headers={"Accept": "text/x-opml"}).body
    try:
        if file == "-":
            sys.stdout.buffer.write(body)
        else:
            Path(file).write_bytes(body)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise ConfigError(f"{file} can't be written: {reason_of(error)}") from error


def _read(file: str) -> bytes:
    """Raises `ConfigError`."""
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise ConfigError(f"{file} can't be read: {reason_of(error)}") from error


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ConfigError(f"--first {text}: give none or a number")
    return int(text)


def _show(feed: Mapping[str, Any], out: Printer) -> None:
    if out.as_json:
        out.one(feed)
        return
    out.say(f"{feed['name']}: {feed['title']}\n{feed['health']}\n")
    shown = {**feed, "push": feed["push"]["state"], "notices": "; ".join(feed["notices"])}
    left_out = ("name", "title", "health")
    out.one({key: value for key, value in shown.items() if key not in left_out})
