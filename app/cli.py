"""The command line: `warren serve`, `warren definitions`, `warren conformance` and others.

Exit codes: 0 after a clean stop; 1 if the disk failed or is full, `verify` found damage,
`conformance` found a violated MUST, or a job of the pipeline failed; 2 for a configuration, data
directory, file, port or hub that can't be used; 4 for an engine that lacks something; 5 for one
that can't be reached, and where Spark or Java is missing. Commands that ask a server have those of
`commands/exit_codes.py`. Errors are one line on stderr.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from typing import Any

import click

from ..core.counted import counted
from ..core.errors import ConfigError, StoreFailure
from ..hub.pipeline.errors import PipelineError
from .commands.exit_codes import CommandError
from .commands.options import JSON, examples
from .commands.passwords import password_of
from .commands.printer import Printer
from .commands.registry import OutputClosed, WarrenGroup
from .configuration import loading
from .configuration.descriptions import heading, help_text
from .configuration.settings import Settings

STORE_FAILED = 1
DAMAGED = 1
BROKEN = 1
BAD_CONFIGURATION = 2
INTERRUPTED = 130
_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Of files, commands report such errors themselves: this is the standard output."""
_SHORT = {"data": "-D"}
_HELP = {"help_option_names": ["-h", "--help"]}


def main() -> None:
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Runs a command line; returns its exit code."""
    try:
        result = warren.main(arguments, prog_name="warren", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return BAD_CONFIGURATION
    except click.ClickException as error:
        return _report_error(error.format_message())
    except ConfigError as error:
        return _report_error(str(error))
    except CommandError as error:
        _report_error(str(error))
        return error.exit_code
    except (OutputClosed, BrokenPipeError):
        return _end_of_output()
    except PipelineError as error:
        from ..hub.pipeline.command import exit_code

        _report_error(str(error))
        return exit_code(error)
    except StoreFailure as error:
        _report_error(str(error))
        return STORE_FAILED
    except click.Abort:
        return INTERRUPTED
    except OSError as error:
        if error.errno not in _UNWRITABLE:
            raise
        _report_error(f"the output can't be written: {error.strerror or error}")
        _end_of_output()
        return BAD_CONFIGURATION
    return result if isinstance(result, int) else 0


def _report_error(text: str) -> int:
    print("warren: " + " ".join(text.split()), file=sys.stderr)
    return BAD_CONFIGURATION


def _end_of_output() -> int:
    """Drops what is not printed yet, so that it is no error at exit either."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _print_version(context: click.Context, _: click.Parameter, is_set: bool) -> None:
    if is_set:
        from importlib.metadata import version

        click.echo(f"warren {version('warrenmq')}")
        context.exit()


def _settings_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds an option for each setting, in the order of the settings."""
    for name in reversed(loading.NAMES):
        command = _option(name)(command)
    return command


def _option(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    default = getattr(Settings(), name)
    shown_default = "off" if default is False else "on" if default is True else default or "none"
    sources = f"  [{loading.ENVIRONMENT_PREFIX}{name.upper()}; default {shown_default}]"
    flag = "--" + name.replace("_", "-")
    return click.option(
        *filter(None, (_SHORT.get(name), flag)),
        name,
        help=help_text(loading.TYPES[name]) + sources,
        metavar=None if isinstance(default, bool) else "VALUE",
        is_flag=isinstance(default, bool),
        default=None,  # None means not given, so that the other sources apply
    )


class ServeCommand(click.Command):
    """The `serve` command, whose help groups the options under headings."""

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        title, rows = "", list[tuple[str, str]]()
        for option in self.get_params(context):
            kind = loading.TYPES.get(option.name or "")
            next_title = heading(kind) if kind is not None else ""
            if next_title or option.name == "config":
                _write_section(formatter, title, rows)
                title, rows = next_title or "Other", []
            rows.extend(filter(None, [option.get_help_record(context)]))
        _write_section(formatter, title, rows)


def _write_section(formatter: click.HelpFormatter, title: str, rows: list[tuple[str, str]]) -> None:
    if rows:
        with formatter.section(title):
            formatter.write_dl(rows)


@click.group(
    cls=WarrenGroup,
    help="An HTTP-first pubsub hub over an AMQP 0-9-1 broker.",
    context_settings=_HELP,
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version,
    help="Print the version.",
)  # fmt: skip
def warren() -> None:
    pass


@warren.command(
    cls=ServeCommand,
    help="Run the hub in the foreground until SIGTERM or Ctrl-C.",
    epilog=examples(
        "warren serve --dev",
        "warren serve --config /etc/warren/warren.toml",
        "WARREN_DATA=/srv/warren warren serve --host 0.0.0.0 --log-format json",
    ),
)
@_settings_options
@click.option("--config", metavar="FILE", help="TOML file with the same names.  [WARREN_CONFIG]")
def serve(**flags: object) -> int:
    settings = loading.load({name: value for name, value in flags.items() if value is not None})
    from .main import serve as run_server  # late, so that a bad setting fails without delay

    run_server(settings)
    return 0


@warren.command(
    help="Print a configuration file that explains every setting.",
    epilog=examples("warren config > warren.toml", "warren serve --config warren.toml"),
)
def config() -> None:
    from .configuration.example import example

    click.echo(example(), nl=False)


def _data(flag: str | None) -> str:
    """Returns the data directory by the same rules as for `serve`."""
    return loading.load({} if flag is None else {"data": flag}).data


@warren.command(
    help="Check every byte of a stopped server's log; changes nothing. Exit code 1 for damage.",
    epilog=examples("warren verify --data warren-data", "warren verify --json | jq .faults"),
)
@_option("data")
@JSON
def verify(data: str | None, *, as_json: bool) -> int:
    from .commands.verify import run as run_verify

    return 0 if run_verify(_data(data), Printer(as_json=as_json)) else DAMAGED


@warren.group(
    help="""List, restore and discard data that can't be served.

    These are messages whose queue's definition was lost, and definitions that refer to lost
    objects. The server has to be stopped.""",
    epilog=examples(
        "warren repair list --data warren-data",
        "warren repair export 17 --file messages.jsonl",
        "warren repair restore 17 --queue orders",
        "warren repair discard 17",
    ),
)
def repair() -> None:
    pass


@repair.command("list", help="List data that can't be served; changes nothing.")
@_option("data")
@JSON
def repair_list(data: str | None, *, as_json: bool) -> int:
    from .commands.repair import show

    show(_data(data), Printer(as_json=as_json))
    return 0


@repair.command("export", help="Write the messages of QUEUE_ID as JSON, one per line.")
@_option("data")
@click.option("--file", default="-", metavar="FILE", help="Write to this file instead.")
@click.argument("queue_id", type=int)
def repair_export(data: str | None, file: str, queue_id: int) -> int:
    from .commands.repair import export

    export(_data(data), queue_id, file)
    return 0


@repair.command(
    "restore",
    help="Append the messages of QUEUE_ID to a durable queue. It is declared if it does not exist. "
    "The messages count as published now.",
)
@_option("data")
@click.option("--queue", required=True, metavar="NAME", help="The queue's name.")
@click.option("--vhost", default="/", show_default=True, metavar="NAME", help="Its virtual host.")
@click.argument("queue_id", type=int)
@JSON
def repair_restore(
    data: str | None, queue: str, vhost: str, queue_id: int, *, as_json: bool
) -> int:
    from .commands.repair import restore

    moved = restore(_data(data), queue_id, vhost, queue)
    out = Printer(as_json=as_json)
    if as_json:
        out.one({"messages": moved, "queue": queue, "vhost": vhost})
    found = counted(moved, "message is", "messages are")
    out.say(f"{found} in queue '{queue}' in vhost '{vhost}' now")
    return 0


@repair.command(
    "discard",
    help="Delete data that can't be served, for good. WHAT is a QUEUE_ID for its messages, "
    "`definitions` for those that are not applied, or a FILE that can't be read, which is deleted "
    "once none of its messages is needed.",
)
@_option("data")
@click.argument("what")
def repair_discard(data: str | None, what: str) -> int:
    from .commands.repair import discard

    discard(_data(data), what)
    return 0


@warren.command(
    help="Check which rules a WebSub hub follows. The command publishes and subscribes there. Exit "
    "code 1 if the hub violates a MUST.",
    epilog=examples(
        "warren conformance --hub http://localhost:15672/hub",
        "warren conformance --hub https://hub.example/ --listen 0.0.0.0:9000 \\",
        "  --public-url http://tests.example:9000 --json report.json",
    ),
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
    default=None,
    metavar="TEXT",
    envvar="WARREN_CONFORMANCE_PASSWORD",
    show_envvar=True,
    help="Asked for if absent, with --user.",
)
@click.option("--verbose", is_flag=True, help="Show all requests and responses.")
@click.option("--json", "json_file", default=None, metavar="FILE", help="Also write JSON to FILE.")
def conformance(
    json_file: str | None, verbose: bool, only: str, patience: float, **given: Any
) -> int:
    from .conformance import command
    from .conformance.options import Options

    ways = "--password or WARREN_CONFORMANCE_PASSWORD"
    user = given["user"]
    given["password"] = password_of(user, given["password"], ways) if user else ""
    options = Options(only=command.read_numbers(only), patience_s=patience, **given)
    return 0 if command.check_hub(options, json_file, verbose=verbose) else BROKEN
