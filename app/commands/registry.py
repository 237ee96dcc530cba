"""Which commands there are; each is imported when it is used, so `warren serve` starts fast."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

import click

from ..suggestions import suggestion

COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "backup": ("backup", "backup"),
    "bench": ("bench", "bench"),
    "completion": ("completion", "completion"),
    "connection": ("connections", "connection"),
    "dead": ("dead_letters", "dead"),
    "definitions": ("definitions", "definitions"),
    "deliveries": ("deliveries", "deliveries"),
    "doctor": ("doctor", "doctor"),
    "exchange": ("exchanges", "exchange"),
    "feeds": ("feeds", "feeds"),
    "listen": ("listen", "listen"),
    "outputs": ("outputs", "outputs"),
    "pipeline": ("pipeline", "pipeline"),
    "policy": ("policies", "policy"),
    "publish": ("publish", "publish"),
    "queue": ("queues", "queue"),
    "restore": ("backup", "restore"),
    "run": ("run", "run"),
    "setup": ("setup", "setup"),
    "sub": ("subscriptions", "sub"),
    "tail": ("tail", "tail"),
    "token": ("tokens", "token"),
    "tunnel": ("tunnel", "tunnel"),
    "user": ("users", "user"),
    "vhost": ("vhosts", "vhost"),
}
"""Module of this package and name in it, by command."""


class OutputClosed(Exception):
    """The reader of the output has read enough, as `head` does."""


class WarrenGroup(click.Group):
    """The commands that were added to it, and `COMMANDS`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *COMMANDS})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return super().get_command(ctx, cmd_name)
        module, name = COMMANDS[cmd_name]
        command: click.Command = getattr(import_module(f"{__package__}.{module}"), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        is_command = name.startswith("-") or self.get_command(ctx, name) is not None
        if not (is_command or ctx.resilient_parsing):
            hint = suggestion(name, self.list_commands(ctx)) or "; 'warren --help' lists all"
            raise click.UsageError(f"there is no command '{name}'{hint}", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise OutputClosed from error  # click would exit with 1
