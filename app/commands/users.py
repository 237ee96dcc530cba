"""`warren user`: users, their tags and permissions."""

from __future__ import annotations

import click

from .client import ApiClient, segments
from .options import IDEMPOTENT, VHOST, examples, with_server
from .passwords import new_password
from .printer import Printer


@click.group(
    "user",
    help="List, add, change and remove users.",
    epilog=examples(
        "warren user add ada --tags monitoring < password.txt",
        "warren user tag ada monitoring policymaker",
        "warren user permit ada --write '^news' --read '^news'",
        "warren user remove ada --idempotent",
    ),
)
def user() -> None:
    pass


@user.command("list", help="List users.")
@with_server
def list_users(api: ApiClient, out: Printer) -> None:
    out.rows(api.get("/api/users"), ("name", "tags", "limits"), "users")


@user.command(
    help="Add the user NAME, or replace password and tags. Their password is asked for, or read "
    "from the standard input; --user and --password are those of the administrator who does this."
)
@click.argument("name")
@click.option("--tags", default="", metavar="LIST",
    help="administrator, monitoring, policymaker or management, with commas between.")  # fmt: skip
@click.option("--no-password", is_flag=True, help="No login by password, as for certificates.")
@with_server
def add(api: ApiClient, out: Printer, name: str, tags: str, no_password: bool) -> None:
    document: dict[str, object] = {"tags": [tag.strip() for tag in tags.split(",") if tag.strip()]}
    if not no_password:
        document["password"] = new_password(name)
    is_new = api.put(f"/api/users{segments(name)}", document)
    out.say(f"user '{name}' is {'added' if is_new else 'changed'}")


@user.command(
    help="Change the password of the user NAME. Tags and permissions stay as they are. The new "
    "password is asked for, or read from the standard input."
)
@click.argument("name")
@with_server
def password(api: ApiClient, out: Printer, name: str) -> None:
    found = api.get(f"/api/users{segments(name)}")
    api.put(f"/api/users{segments(name)}", {"tags": found["tags"], "password": new_password(name)})
    out.say(f"user '{name}' has a new password")


@user.command(help="Give the user NAME these tags, and no others. The password stays as it is.")
@click.argument("name")
@click.argument("tags", nargs=-1, metavar="[TAG]...")
@with_server
def tag(api: ApiClient, out: Printer, name: str, tags: tuple[str, ...]) -> None:
    found = api.get(f"/api/users{segments(name)}")
    kept = {key: found[key] for key in ("password_hash", "hashing_algorithm")}
    api.put(f"/api/users{segments(name)}", {"tags": list(tags), **kept})
    out.say(f"user '{name}' has " + (f"the tags {', '.join(tags)}" if tags else "no tags"))


@user.command(help="Remove the user NAME.")
@click.argument("name")
@IDEMPOTENT
@with_server
def remove(api: ApiClient, out: Printer, name: str, idempotent: bool) -> None:
    was_there = api.delete(f"/api/users{segments(name)}", idempotent=idempotent)
    out.say(f"user '{name}' is removed" if was_there else f"there is no user '{name}'")


@user.command("permissions", help="List the permissions of all users, or of NAME.")
@click.argument("name", required=False)
@with_server
def list_permissions(api: ApiClient, out: Printer, name: str | None) -> None:
    path = f"/api/users{segments(name)}/permissions" if name else "/api/permissions"
    columns = ("user", "vhost", "configure", "write", "read")
    out.rows(api.get(path), columns, "permissions")


@user.command(
    help="Set what the user NAME may do in a virtual host. A pattern says with which names."
)
@click.argument("name")
@click.option("--configure", default="", metavar="PATTERN", help="Declare and delete.")
@click.option("--write", default="", metavar="PATTERN", help="Publish.")
@click.option("--read", default="", metavar="PATTERN", help="Consume and subscribe.")
@VHOST
@with_server
def permit(
    api: ApiClient, out: Printer, name: str, vhost: str, configure: str, write: str, read: str
) -> None:
    patterns = {"configure": configure, "write": write, "read": read}
    api.put(f"/api/permissions{segments(vhost, name)}", patterns)
    out.say(f"user '{name}' has these permissions in vhost '{vhost}' now")


@user.command(help="Take all permissions of the user NAME in a virtual host.")
@click.argument("name")
@VHOST
@IDEMPOTENT
@with_server
def forbid(api: ApiClient, out: Printer, name: str, vhost: str, idempotent: bool) -> None:
    api.delete(f"/api/permissions{segments(vhost, name)}", idempotent=idempotent)
    out.say(f"user '{name}' has no permissions in vhost '{vhost}' now")
