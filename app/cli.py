"""The command line: `warren serve`, `warren definitions`, `warren conformance` and others.

Exit codes: 0 after a clean stop; 1 if the disk failed, `verify` found damage, or `conformance`
found a violated MUST; 2 for a configuration, data directory, file, port or hub that can't be used.
Errors are one line on stderr.
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
    """Runs a command line; returns its exit code."""
    try:
        result = warren.main(arguments, prog_name="warren", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return BAD_CONFIGURATION
    except click.ClickException as error:
        return _report_error(error.format_message())
    except ConfigError as error:
        return _report_error(str(error))
    except StoreFailure as error:
        _report_error(str(error))
        return STORE_FAILED
    except click.Abort:
        return 130
    return result if isinstance(result, int) else 0


def _report_error(text: str) -> int:
    print("warren: " + " ".join(text.split()), file=sys.stderr)
    return BAD_CONFIGURATION


def _print_version(context: click.Context, _: click.Parameter, is_set: bool) -> None:
    if is_set:
        from importlib.metadata import version

        click.echo(f"warren {version('warrenmq')}")
        context.exit()


def _settings_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds an option for each setting, in the order of the settings."""
    for name in reversed(config.NAMES):
        command = _option(name)(command)
    return command


def _option(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    default = getattr(config.Settings(), name)
    shown_default = "off" if default is False else "on" if default is True else default or "none"
    sources = f"  [{config.ENVIRONMENT_PREFIX}{name.upper()}; default {shown_default}]"
    flag = "--" + name.replace("_", "-")
    return click.option(
        *filter(None, (_SHORT.get(name), flag)),
        name,
        help=config.DESCRIPTIONS[name] + sources,
        metavar=None if isinstance(default, bool) else "VALUE",
        is_flag=isinstance(default, bool),
        default=None,  # None means not given, so that the other sources apply
    )


class ServeCommand(click.Command):
    """The `serve` command, whose help groups the options under headings."""

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


@click.group(help="An HTTP-first pubsub hub over an AMQP 0-9-1 broker.", context_settings=_HELP)
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
    from .main import serve as run_server  # late, so that a bad setting fails without delay

    run_server(settings)
    return 0


@warren.group(help="Export or import the users, vhosts and queues of a stopped server.")
def definitions() -> None:
    pass


@definitions.command("export", help="Print the definitions as JSON, in RabbitMQ's format.")
@_option("data")
@click.option("--file", default="-", metavar="FILE", help="Write to this file instead.")
def export_definitions(data: str | None, file: str) -> int:
    directory = _data(data)
    from .definitions import command

    command.export_definitions(directory, file)
    return 0


@definitions.command(
    "import",
    help="Apply a file as a whole or not at all. Users, vhosts and permissions are replaced by "
    "those of the file; exchanges, queues and bindings are added or changed, never deleted.",
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
    """Returns the data directory by the same rules as for `serve`."""
    return config.load({} if flag is None else {"data": flag}).data


@warren.command(help="Check every byte of a stopped server's log; changes nothing.")
@_option("data")
def verify(data: str | None) -> int:
    from .verify import run as run_verify

    return 0 if run_verify(_data(data)) else DAMAGED


@warren.group(
    help="List, export, restore and discard data of a stopped server that can't be served: "
    "messages whose queue's definition was lost, and definitions that refer to lost objects.",
)
def repair() -> None:
    pass


@repair.command("list", help="List data that can't be served; changes nothing.")
@_option("data")
def repair_list(data: str | None) -> int:
    from .repair import show

    show(_data(data))
    return 0


@repair.command("export", help="Write the messages of QUEUE_ID as JSON, one per line.")
@_option("data")
@click.option("--file", default="-", metavar="FILE", help="Write to this file instead.")
@click.argument("queue_id", type=int)
def repair_export(data: str | None, file: str, queue_id: int) -> int:
    from .repair import export

    export(_data(data), queue_id, file)
    return 0


@repair.command(
    "restore",
    help="Append the messages of QUEUE_ID to a durable queue, which is declared if it does not "
    "exist. They count as published now.",
)
@_option("data")
@click.option("--queue", required=True, metavar="NAME", help="The queue's name.")
@click.option("--vhost", default="/", show_default=True, metavar="NAME", help="Its virtual host.")
@click.argument("queue_id", type=int)
def repair_restore(data: str | None, queue: str, vhost: str, queue_id: int) -> int:
    from .repair import restore

    moved = restore(_data(data), queue_id, vhost, queue)
    click.echo(f"{moved} messages are in queue '{queue}' in vhost '{vhost}' now")
    return 0


@repair.command(
    "discard",
    help="Delete the messages of a QUEUE_ID, or `definitions` that are not in force, for good. A "
    "FILE that can't be read is deleted once none of its messages is needed.",
)
@_option("data")
@click.argument("what")
def repair_discard(data: str | None, what: str) -> int:
    from .repair import discard

    discard(_data(data), what)
    return 0


@warren.command(
    help="Check any WebSub hub: publishes and subscribes there, and reports which rules it "
    "follows. Exit code 1 if it violates a MUST.",
)
@click.option("--hub", required=True, metavar="URL", help="URL of the hub, as topics name it.")
@click.option(
    "--listen",
    default="127.0.0.1:0",
    show_default=True,
    metavar="HOST:PORT",
    help="Address to listen on as publisher and subscriber; port 0 chooses a free one.",
)
@click.option(
    "--public-url",
    default="",
    metavar="URL",
    help="URL at which a hub on another machine reaches this address.",
)
@click.option("--only", default="", metavar="NUMBERS", help="Run only these: 101,104.")
@click.option("--slow", is_flag=True, help="Also wait for leases to end: some minutes.")
@click.option(
    "--patience",
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    type=click.FloatRange(min=0, min_open=True),
    help="How long to wait for an action of the hub, including a second attempt.",
)
@click.option("--user", default="", metavar="NAME", help="For hubs that require credentials.")
@click.option(
    "--password",
    default="",
    metavar="TEXT",
    envvar="WARREN_CONFORMANCE_PASSWORD",
    show_envvar=True,
)
@click.option("--verbose", is_flag=True, help="Show all requests and responses.")
@click.option("--json", "json_file", default=None, metavar="FILE", help="Also write JSON to FILE.")
def conformance(
    json_file: str | None, verbose: bool, only: str, patience: float, **given: Any
) -> int:
    from .conformance import command
    from .conformance.options import Options

    options = Options(only=command.read_numbers(only), patience_s=patience, **given)
    return 0 if command.check_hub(options, json_file, verbose=verbose) else BROKEN
