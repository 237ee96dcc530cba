"""Options that many commands have, and examples in their help."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import click

from ...core.errors import ConfigError
from .client import ApiClient
from .login import URL, VARIABLES, read_login
from .printer import Printer

Function = Callable[..., Any]

VHOST = click.option(
    "--vhost", default="/", show_default=True, metavar="NAME", help="Virtual host."
)
IDEMPOTENT = click.option(
    "--idempotent", is_flag=True, help="Succeed if there is nothing to remove."
)
SOURCE = click.argument("kind", type=click.Choice(["x", "q"]), metavar="x|q")
"""Whether the name behind it is an exchange or a queue."""
_LOGIN = (
    click.option("--user", "login_user", metavar="NAME",
        help=f"User who logs in; guest by default.  [{VARIABLES['user']}]"),
    click.option("--password", "login_password", metavar="TEXT",
        help="Password of that user. It is visible in the process list.  "
        f"[{VARIABLES['password']}]"),
    click.option("--password-file", "login_password_file", metavar="FILE",
        help="File whose first line is the password; - for the standard input."),
    click.option("--token", "login_token", metavar="TEXT",
        help=f"A bearer token in place of user and password.  [{VARIABLES['token']}]"),
    click.option("--profile", "login_profile", metavar="NAME",
        help="Of ~/.config/warren/config.toml; 'default' if there is one."
        f"  [{VARIABLES['profile']}]"),
)  # fmt: skip
JSON = click.option("--json", "as_json", is_flag=True, help="JSON for programs, one object a line.")


def with_login(function: Function) -> Function:
    """Adds the options that say where the server is and who logs in; the function gets `login`."""
    return _with_login(function, "--url")


def with_login_at_hub(function: Function) -> Function:
    """Does the same, with `--hub` for `--url`."""
    return _with_login(function, "--url", "--hub")


def _with_login(function: Function, *names: str) -> Function:
    @wraps(function)
    def run(**given: Any) -> Any:
        flags = {
            name.removeprefix("login_"): given.pop(name)
            for name in list(given)
            if name.startswith("login_")
        }
        return function(login=read_login(flags), **given)

    for option in reversed(_LOGIN):
        run = option(run)
    help_text = f"URL of the server; {URL} by default.  [{VARIABLES['url']}]"
    return click.option(*names, "login_url", metavar="URL", help=help_text)(run)


def with_server(function: Function) -> Function:
    """Adds those and `--json`; the function gets the client `api` and the printer `out`."""

    @wraps(function)
    def run(*, login: Any, as_json: bool, **given: Any) -> int:
        with ApiClient(login) as api:
            return function(api, Printer(as_json=as_json), **given) or 0

    return JSON(with_login(run))


def examples(*lines: str) -> str:
    """Returns the end of a help text, which click does not wrap."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def pairs(option: str, given: Iterable[str]) -> dict[str, str]:
    """Returns names and values of `NAME=VALUE`. Raises `ConfigError`."""
    found: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or name in found:
            wrong = "is given twice" if equals else "has no ="
            raise ConfigError(f"{option} {text} {wrong}: give each once, as NAME=VALUE")
        found[name] = value
    return found


def arguments_of(given: Iterable[str]) -> dict[str, Any]:
    """Returns arguments of a declaration; values that are numbers or booleans in JSON are those.
    Raises `ConfigError`."""
    return {name: _value(text) for name, text in pairs("--argument", given).items()}


def _value(text: str) -> Any:
    try:
        found = json.loads(text)
    except ValueError:
        return text
    return found if isinstance(found, bool | int | float) else text
