"""docs/reference/cli.md: what `--help` of each command says."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click

from warrenmq.app.cli import warren

from .tables import page

COLUMNS = 96
INTRODUCTION = """The output of `warren COMMAND --help` for each command. [The command \
line](../commands.md) gives an overview; the [exit codes](exit-codes.md) are common to all. The \
options of `warren serve` are the [settings](settings.md): `--amqp-port` is `WARREN_AMQP_PORT`. \
Not repeated here are `--help`, and the options that choose [the \
server](../commands.md#which-server): `--url`, `--user`, `--password`, `--password-file`, \
`--token` and `--profile`."""
WITHOUT_OPTIONS = "warren serve"
LEFT_OUT = re.compile(r"^  --url (?s:.*?)\[WARREN_PROFILE\]\n|^  (-h, )?--help .*\n", re.M)
"""Options that are the same everywhere."""


def commands(group: click.Group, parent: click.Context) -> Iterator[tuple[str, click.Command, str]]:
    """Every command in the order of the alphabet: its name, itself, and what its help says."""
    for word in group.list_commands(parent):
        command = group.get_command(parent, word)
        assert command is not None, word
        name = f"{parent.command_path} {word}"
        with _context(command, word, parent) as context:
            yield name, command, command.get_help(context)
            if isinstance(command, click.Group):
                yield from commands(command, context)


def write() -> str:
    with _context(warren, "warren", None) as context:
        return page("Command line reference", INTRODUCTION, _parts(context))


def _parts(context: click.Context) -> Iterator[str]:
    for name, _, text in commands(warren, context):
        yield f"{'#' * min(len(name.split()), 3)} {name}"
        yield f"```text\n{_shown(name, text)}\n```"


def _shown(name: str, text: str) -> str:
    if name == WITHOUT_OPTIONS:
        return "\n\n".join(text.split("\n\n")[:2])
    shown = LEFT_OUT.sub("", f"{text}\n")
    return re.sub(r"^Options:\n(?!  )\n?", "", shown, flags=re.M).strip()


def _context(command: click.Command, word: str, parent: click.Context | None) -> click.Context:
    # With the command's own settings: click keeps the help option that it makes first.
    context = click.Context(command, parent, word, **command.context_settings)
    context.terminal_width = context.max_content_width = COLUMNS
    context.color = False
    return context
