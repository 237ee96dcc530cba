"""`warren setup`: the first administrator of a new server, without a browser."""

from __future__ import annotations

import click

from ...core.errors import ConfigError
from ..requests.paths import SETUP_FRAGMENT
from .client import ApiClient
from .login import GUEST, URL, Login, server_url
from .options import examples
from .passwords import new_password, password_in


@click.command(
    help="Create the first administrator, NAME, of a new server. LINK is what the server has "
    "printed when it started. Without --password-file the password is asked for, or read from the "
    "standard input.",
    epilog=examples(
        f"warren setup '{URL}{SETUP_FRAGMENT}SECRET' ada",
        f"warren setup '{URL}{SETUP_FRAGMENT}SECRET' ada --password-file password.txt",
    ),
)
@click.argument("link")
@click.argument("name")
@click.option("--password-file", metavar="FILE",
    help="File whose first line is the password of NAME; - for the standard input.")  # fmt: skip
def setup(link: str, name: str, password_file: str | None) -> None:
    base_url, found, secret = link.partition(SETUP_FRAGMENT)
    if not found or not secret:
        raise ConfigError(f"LINK has no {SETUP_FRAGMENT}SECRET: give it as the server printed it")
    password = new_password(name) if password_file is None else password_in(password_file)
    # The secret of the link is all that the server asks for.
    with ApiClient(Login(server_url("LINK", base_url), GUEST, "", "")) as api:
        document = {"name": name, "password": password, "secret": secret}
        api.post("/api/warren/setup", document)
    click.echo(f"user '{name}' is an administrator now: --user {name} logs in")
