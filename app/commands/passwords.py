"""Passwords that commands ask for on a terminal, or read from a file or the standard input."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import click

from ...core.errors import ConfigError
from .exit_codes import reason_of

STDIN: Final = "-"


def password_of(user: str, given: str | None, ways: str) -> str:
    """Returns the password of a user who logs in: the one given, or one asked for.

    Raises `ConfigError` where nobody can be asked, naming the `ways` to give one.
    """
    if given is not None:
        return given
    if not sys.stdin.isatty():
        raise ConfigError(f"user '{user}' needs a password: give {ways}")
    return _ask(user, is_new=False)


def new_password(user: str) -> str:
    """Returns a password to be set: asked for twice, or the first line of the standard input."""
    if sys.stdin.isatty():
        return _ask(user, is_new=True)
    return password_in(STDIN)


def password_in(file: str) -> str:
    """Returns the first line of a file, or with `-` the next of the standard input. Raises
    `ConfigError`."""
    try:
        if file == STDIN:
            # Not as text, of which more than a line would be taken: the rest may be a message.
            line = sys.stdin.buffer.readline()
        else:
            with Path(file).expanduser().open("rb") as opened:
                line = opened.readline()
        return line.decode().rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--password-file {file} can't be read: {reason_of(error)}") from error


def _ask(user: str, *, is_new: bool) -> str:
    """Raises `click.Abort` at Ctrl-C and at the end of the input. Standard output is for results,
    so the question is on standard error."""
    found: str = click.prompt(
        f"Password of '{user}'", hide_input=True, confirmation_prompt=is_new, err=True
    )
    return found
