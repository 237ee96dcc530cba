"""The command line: `warren serve`, `warren definitions`, `warren conformance` and others.

Exit codes: 0 after a clean stop, 1 if the disk failed, `verify` found damage or `conformance` a
broken rule, 2 for a configuration, data directory, file, port or hub that can't be used. What is
wrong is one line on stderr.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import click

from ..core.errors import ConfigError, StoreFailure
from . import config

STORE_FAILED = 1
DAMAGED = 1
BROKEN = 1
BAD_CONFIGURATION = 2
_SHORT = {"data": "-D"}
_HELP = {"help_option_names": ["-h", "--help"]}


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
    except StoreFailure as error:
        _complain(str(error))
        return STORE_FAILED
    except click.Abort:
        return 130
    return result if isinstance(result, int) else 0


def _complain(text: str) -> int:
    print("warren: " + " ".join(text.split()), file=sys.stderr)
    return BAD_CONFIGURATION


def _print_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        click.echo(f"warren {version('warrenmq')}")
        context.exit()


def _settings_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """A flag for each setting, in the order of the settings."""
    for name in reversed(config.NAMES):
        command = _option(name)(command)
    return command


def _option(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    default = getattr(config.Settings(), name)
    shown_default = "off" if default is False else "on" if default is True else default or "none"
    shown = f"  [{config.ENVIRONMENT_PREFIX}{name.upper()}; default {shown_default}]"
    flag = "--" + name.replace("_", "-")
    return click.option(
        *filter(None, (_SHORT.get(name), flag)),
        name,
        help=config.DESCRIPTIONS[name] + shown,
        metavar=None if isinstance(default, bool) else "VALUE",
        is_flag=isinstance(default, bool),
        default=None,  # None tells "not given", which leaves the say to the other sources
    )


class ServeCommand(click.Command):
    """Its help shows the options by topic, in the order of the settings."""

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        title, rows = "", list[tuple[str, str]]()
        for option in self.get_params(context):
            heading = config.TOPICS.get(option.name or "", "")
            if heading or option.name == "config":
                _write_section(formatter, title, rows)
                title, rows = heading or "Other", []
            rows.extend(filter(None, [option.get_help_record(context)]))
        _write_section(formatter, title, rows)


def _write_section(formatter: click.HelpFormatter, title: str, rows: list[tuple[str, str]]) -> None:
    if rows:
        with formatter.section(title):
            formatter.write_dl(rows)


@click.group(help="An HTTP-first pubsub hub over an AMQP 0-9-1 core.", context_settings=_HELP)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version,
    help="Print the version.",
)  # fmt: skip
def warren() -> None:
    pass


@warren.command(cls=ServeCommand, help="Run the hub in the foreground until SIGTERM or Ctrl-C.")
@_settings_options
@click.option("--config", metavar="FILE", help="TOML file with the same names.  [WARREN_CONFIG]")
def serve(**flags: object) -> int:
    settings = config.load({name: value for name, value in flags.items() if value is not None})
    from .main import serve as run_server  # after the settings stand: a bad one is told at once

    run_server(settings)
    return 0


@warren.group(help="Read and mend users, vhosts and queues of a server that does not run.")
def definitions() -> None:
    pass


@definitions.command("export", help="Print the definitions as JSON, in RabbitMQ's form.")
@_option("data")
@click.option("--file", default="-", metavar="FILE", help="Write to this file instead.")
def export_definitions(data: str | None, file: str) -> int:
    directory = _data(data)
    from .definitions import command

    command.export_definitions(directory, file)
    return 0


@definitions.command(
    "import",
    help="Apply a file, all of it or nothing. Users, vhosts and permissions become those of the "
    "file; exchanges, queues and bindings are added or changed, never deleted.",
)
@_option("data")
@click.argument("file")
def import_definitions(data: str | None, file: str) -> int:
    directory = _data(data)
    from .definitions import command

    changed = command.import_definitions(directory, file)
    click.echo(f"{changed} definitions changed")
    return 0


def _data(flag: str | None) -> str:
    """The data directory by the same rules as for `serve`."""
    return config.load({} if flag is None else {"data": flag}).data


@warren.command(help="Check every byte of a stopped server's log; changes nothing.")
@_option("data")
def verify(data: str | None) -> int:
    from .verify import run as run_verify

    return 0 if run_verify(_data(data)) else DAMAGED


@warren.group(
    help="List, export and put back what a stopped server keeps and can't serve: messages whose "
    "queue's definition was lost, and definitions that refer to something that was.",
)
def repair() -> None:
    pass


@repair.command("list", help="Say what there is; changes nothing.")
@_option("data")
def repair_list(data: str | None) -> int:
    from .repair import show

    show(_data(data))
    return 0


@repair.command("export", help="Write the messages of QUEUE_ID as JSON, one a line.")
@_option("data")
@click.option("--file", default="-", metavar="FILE", help="Write to this file instead.")
@click.argument("queue_id", type=int)
def repair_export(data: str | None, file: str, queue_id: int) -> int:
    from .repair import export

    export(_data(data), queue_id, file)
    return 0


@repair.command(
    "restore",
    help="Put the messages of QUEUE_ID at the end of a durable queue, which is made if there is "
    "none of that name. They count as published now.",
)
@_option("data")
@click.option("--queue", required=True, metavar="NAME", help="The queue's name.")
@click.option("--vhost", default="/", show_default=True, metavar="NAME", help="Where it is.")
@click.argument("queue_id", type=int)
def repair_restore(data: str | None, queue: str, vhost: str, queue_id: int) -> int:
    from .repair import restore

    moved = restore(_data(data), queue_id, vhost, queue)
    click.echo(f"{moved} messages are in queue '{queue}' in vhost '{vhost}' now")
    return 0


@repair.command(
    "discard",
    help="Delete what is listed for good: a QUEUE_ID, or `definitions` for those. A FILE that "
    "can't be read is deleted when nothing in it is wanted any more.",
)
@_option("data")
@click.argument("what")
def repair_discard(data: str | None, what: str) -> int:
    from .repair import discard

    discard(_data(data), what)
    return 0


@warren.command(
    help="Check any WebSub hub: publishes to it, subscribes at it, and says which rules it keeps. "
    "Exit code 1 if it breaks one that a hub MUST keep.",
)
@click.option("--hub", required=True, metavar="URL", help="The hub, as a topic would name it.")
@click.option(
    "--listen",
    default="127.0.0.1:0",
    show_default=True,
    metavar="HOST:PORT",
    help="Where to wait for the hub, as publisher and subscriber; port 0 is any free one.",
)
@click.option(
    "--public-url",
    default="",
    metavar="URL",
    help="Where the hub reaches that, for a hub that is not on this machine.",
)
@click.option("--only", default="", metavar="NUMBERS", help="Some checks, like 101,104.")
@click.option("--slow", is_flag=True, help="Wait for leases to end, too: some minutes.")
@click.option(
    "--patience",
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    type=click.FloatRange(min=0, min_open=True),
    help="How long to wait for what the hub should do, a second attempt included.",
)
@click.option("--user", default="", metavar="NAME", help="For hubs that ask who subscribes.")
@click.option(
    "--password",
    default="",
    metavar="TEXT",
    envvar="WARREN_CONFORMANCE_PASSWORD",
    show_envvar=True,
)
@click.option("--verbose", is_flag=True, help="Show what was sent and what came.")
@click.option("--json", "json_file", default=None, metavar="FILE", help="Results as JSON, too.")
def conformance(
    json_file: str | None, verbose: bool, only: str, patience: float, **given: Any
) -> int:
    from .conformance import command
    from .conformance.options import Options

    options = Options(only=command.read_numbers(only), patience_s=patience, **given)
    return 0 if command.check_hub(options, json_file, verbose=verbose) else BROKEN
