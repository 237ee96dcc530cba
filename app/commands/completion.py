"""`warren completion`: what a shell needs to complete commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from .options import examples

PROGRAM = "warren"
VARIABLE = "_WARREN_COMPLETE"


@click.command(
    help="Print the script that lets a SHELL complete commands.",
    epilog=examples(
        'eval "$(warren completion bash)"        # in ~/.bashrc',
        "warren completion fish > ~/.config/fish/completions/warren.fish",
    ),
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    kind = get_completion_class(shell)
    assert kind is not None, "the choices are those of click"
    click.echo(kind(context.find_root().command, {}, PROGRAM, VARIABLE).source())
