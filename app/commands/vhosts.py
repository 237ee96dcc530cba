"""`warren vhost`: virtual hosts."""

from __future__ import annotations

import click

from .client import ApiClient, segments
from .options import IDEMPOTENT, examples, with_server
from .printer import Printer


@click.group(
    "vhost",
    help="List, add, change and remove virtual hosts.",
    epilog=examples(
        "warren vhost add orders --description 'Orders of the shop'",
        "warren vhost protect orders",
    ),
)
def vhost() -> None:
    pass


@vhost.command("list", help="List virtual hosts.")
@with_server
def list_vhosts(api: ApiClient, out: Printer) -> None:
    columns = ("name", "default_queue_type", "protected_from_deletion", "description", "tags")
    out.rows(api.get("/api/vhosts"), columns, "virtual hosts")


@vhost.command(help="Add the virtual host NAME, or change it.")
@click.argument("name")
@click.option("--description", metavar="TEXT")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="May be repeated.")
@click.option("--default-queue-type", type=click.Choice(["classic", "quorum", "stream"]))
@with_server
def add(
    api: ApiClient, out: Printer, name: str, description: str | None, tags: tuple[str, ...],
    default_queue_type: str | None,
) -> None:  # fmt: skip
    given = {
        "description": description, "tags": list(tags), "default_queue_type": default_queue_type,
    }  # fmt: skip
    document = {key: value for key, value in given.items() if value}
    is_new = api.put(f"/api/vhosts{segments(name)}", document)
    out.say(f"vhost '{name}' is {'added' if is_new else 'changed'}")


@vhost.command(help="Remove the virtual host NAME with all that is in it.")
@click.argument("name")
@IDEMPOTENT
@with_server
def remove(api: ApiClient, out: Printer, name: str, idempotent: bool) -> None:
    was_there = api.delete(f"/api/vhosts{segments(name)}", idempotent=idempotent)
    out.say(f"vhost '{name}' is removed" if was_there else f"there is no vhost '{name}'")


@vhost.command(help="Refuse to remove the virtual host NAME until that is taken back.")
@click.argument("name")
@click.option("--off", is_flag=True, help="Take it back.")
@with_server
def protect(api: ApiClient, out: Printer, name: str, off: bool) -> None:
    path = f"/api/vhosts{segments(name)}/deletion/protection"
    if off:
        api.delete(path)
    else:
        api.post(path)
    out.say(f"vhost '{name}' is {'not protected any more' if off else 'protected'}")
