"""`warren sub`: subscriptions of callbacks to exchanges and queues."""

from __future__ import annotations

import json

import click

from .client import ApiClient, segments
from .options import IDEMPOTENT, SOURCE, VHOST, examples, pairs, with_server
from .printer import Printer

_PATH = "/api/hub/subscriptions"
_WORDS = {"x": "exchange", "q": "queue"}


@click.group(
    "sub",
    help="List, add, pause and remove subscriptions of callbacks.",
    epilog=examples(
        "warren sub add x news https://app.example/hook --key 'eu.#' --lease 86400",
        "warren sub list --failing",
        "warren sub pause ID",
    ),
)
def sub() -> None:
    pass


@sub.command("list", help="List subscriptions; all of them for administrators, else your own.")
@click.option("--vhost", metavar="NAME", help="Only of this virtual host.")
@click.option("--callback", metavar="URL", help="Only those of this callback.")
@click.option("--status", type=click.Choice(["active", "inactive"]))
@click.option("--failing", is_flag=True, help="Only those whose deliveries fail.")
@with_server
def list_subscriptions(
    api: ApiClient, out: Printer, vhost: str | None, callback: str | None, status: str | None,
    failing: bool,
) -> None:  # fmt: skip
    query = {"vhost": vhost, "callback": callback, "status": status}
    found = api.pages(_PATH, "subscriptions", query)
    columns = ["id", "resource_type", "resource_name", "topic", "callback", "status", "breaker"]
    if failing:
        found = (one for one in found if (one["errors"] or {}).get("error_count"))
        columns += ["errors.error_count", "errors.last_error_msg"]
    out.rows(found, columns, "subscriptions")


@sub.command(help="Show the subscription with this ID.")
@click.argument("subscription_id", metavar="ID")
@with_server
def show(api: ApiClient, out: Printer, subscription_id: str) -> None:
    out.one(api.get(_PATH + segments(subscription_id)))


@sub.command(
    help="Subscribe CALLBACK to exchange x NAME or queue q NAME. The callback has to confirm that "
    "it wants to."
)
@SOURCE
@click.argument("name")
@click.argument("callback")
@click.option("--key", default="", metavar="KEY", help="Routing key that an exchange binds with.")
@click.option("--lease", type=int, metavar="SECONDS", help="How long it lasts.")
@click.option("--secret", metavar="TEXT", help="Deliveries are signed with it.")
@click.option("--max-tps", type=int, metavar="N", help="Deliveries a second.")
@click.option("--option", "options", multiple=True, metavar="NAME=VALUE",
    help="As in_flight=5 or strict_order=true; may be repeated.")  # fmt: skip
@VHOST
@with_server
def add(
    api: ApiClient, out: Printer, kind: str, name: str, callback: str, key: str, lease: int | None,
    secret: str | None, max_tps: int | None, options: tuple[str, ...], vhost: str,
) -> None:  # fmt: skip
    given = {
        "lease_seconds": lease, "secret": secret, "max_tps": max_tps,
        "options": pairs("--option", options),
    }  # fmt: skip
    document = {
        "vhost": vhost,
        "resource_type": _WORDS[kind],
        "resource_name": name,
        "topic": key,
        "callback": callback,
        **{name: value for name, value in given.items() if value not in (None, {})},
    }
    answer = api.send("POST", _PATH, json.dumps(document).encode())
    state = "is subscribed" if answer.status == 201 else "was subscribed before; it is changed"
    out.say(f"{callback} {state}")


def _action(action: str, text: str) -> None:
    """Adds the command for an action on one subscription."""

    @sub.command(action, help=text)
    @click.argument("subscription_id", metavar="ID")
    @with_server
    def act(api: ApiClient, out: Printer, subscription_id: str) -> None:
        found = api.post(f"{_PATH}{segments(subscription_id)}/{action}")
        if out.as_json:
            out.one(found)
        out.say(f"subscription {subscription_id} is {found['status']}")


_action("pause", "Pause a subscription: its messages wait.")
_action("resume", "Resume a paused subscription.")


@sub.command(help="Renew the lease of a subscription, from now on.")
@click.argument("subscription_id", metavar="ID")
@click.argument("lease", type=int, metavar="SECONDS")
@with_server
def renew(api: ApiClient, out: Printer, subscription_id: str, lease: int) -> None:
    path = f"{_PATH}{segments(subscription_id)}/renew"
    found = api.post(path, {"lease_seconds": lease})
    out.say(f"subscription {subscription_id} lasts until {found['expires_at']}")


@sub.command(help="End the subscription with this ID; its callback is told.")
@click.argument("subscription_id", metavar="ID")
@IDEMPOTENT
@with_server
def remove(api: ApiClient, out: Printer, subscription_id: str, idempotent: bool) -> None:
    was_there = api.delete(_PATH + segments(subscription_id), idempotent=idempotent)
    state = "has ended" if was_there else "does not exist"
    out.say(f"subscription {subscription_id} {state}")
