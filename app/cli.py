"""The command line: `warren serve`, `warren --version`.

Exit codes: 0 after a clean stop, 2 for a configuration, data directory or port that can't be
used. What is wrong is one line on stderr.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import click

from ..core.errors import ConfigError
from . import config

BAD_CONFIGURATION = 2
_SHORT = {"data": "-D", "host": "-h"}


def main() -> None:
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    try:
        result = warren.main(arguments, prog_name="warren", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return BAD_CONFIGURATION
    except click.ClickException as error:
        return _complain(error.format_message())
    except ConfigError as error:
        return _complain(str(error))
    except click.Abort:
        return 130
    return result if isinstance(result, int) else 0


def _complain(text: str) -> int:
    print("warren: " + " ".join(text.split()), file=sys.stderr)
    return BAD_CONFIGURATION


def _print_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        click.echo(f"warren {version('warren')}")
        context.exit()


def _settings_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """A flag for each setting, in the order of the settings."""
    for name in reversed(config.NAMES):
        command = _option(name)(command)
    return command


def _option(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    default = getattr(config.Settings(), name)
    shown = f"  [{config.ENVIRONMENT_PREFIX}{name.upper()}; default {default or 'none'}]"
    flag = "--" + name.replace("_", "-")
    return click.option(
        *filter(None, (_SHORT.get(name), flag)),
        name,
        help=config.DESCRIPTIONS[name] + shown,
        metavar=None if isinstance(default, bool) else "VALUE",
        is_flag=isinstance(default, bool),
        default=None,  # None tells "not given", which leaves the say to the other sources
    )


@click.group(help="An HTTP-first pubsub hub over an AMQP 0-9-1 core.")
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version,
    help="Print the version.",
)  # fmt: skip
def warren() -> None:
    pass


@warren.command(help="Run the hub in the foreground until SIGTERM or Ctrl-C.")
@_settings_options
@click.option("--config", metavar="FILE", help="TOML file with the same names.  [WARREN_CONFIG]")
def serve(**flags: object) -> int:
    settings = config.load({name: value for name, value in flags.items() if value is not None})
    from .main import serve as run_server  # after the settings stand: a bad one is told at once

    run_server(settings)
    return 0
