"""`warren pipeline`: captures exchanges in streams, and runs Spark jobs on these."""

from __future__ import annotations

from pathlib import Path

import click

from ...hub.pipeline import command, listing, server
from ...hub.pipeline.capture import capture as start_capture
from ...hub.pipeline.capture import read_time, stop_capture, wait_until
from ...hub.pipeline.errors import OptionError, ReadError, UnavailableError
from ...hub.pipeline.jobs.job import RESULTS
from ...hub.pipeline.jobs.registry import JOBS
from ...hub.pipeline.options import ServerLogin
from ...hub.pipeline.outages import WAIT_S
from ...hub.pipeline.session import LOCAL, NICENESS
from .login import Login
from .options import JSON, VHOST, examples, pairs, with_login
from .printer import Printer

_MASTER = click.option(
    "--master", default=LOCAL, show_default=True, metavar="MASTER",
    help="Spark's master: local[PROCESSORS,ATTEMPTS], or spark://HOST:7077.",
)  # fmt: skip
_NICENESS = click.option(
    "--niceness", type=click.IntRange(0, 19), default=NICENESS, show_default=True,
    metavar="N", envvar="WARREN_PIPELINE_NICENESS", show_envvar=True,
    help="Of Spark on this machine. With 0 it takes processors as the server does.",
)  # fmt: skip


@click.group(
    help="""Capture exchanges in streams, and run Spark jobs on them.

    Spark runs in processes of its own, on this machine or on a cluster; it needs
    pip install 'warrenmq[spark]' and Java 17 or 21.

    Exit codes: 0 when it is done, or was stopped by SIGTERM or Ctrl-C; 1 if the job failed; 2 for
    wrong parameters, a server that can't be reached or refuses, a directory that can't be written,
    and a stream that was made again or has dropped what was not read; 5 without Java or Spark.""",
    epilog=examples(
        "warren pipeline list",
        "warren pipeline shell",
        "warren pipeline capture x news --stream news.log --max-age 30D",
        "warren pipeline run archive --stream news.log --out archive --follow",
        "warren pipeline run rollup --stream news.log --out rollup --set late_s=120",
        "warren pipeline run replay --archive archive --to news --rate 500",
    ),
)
def pipeline() -> None:
    pass


@pipeline.command(
    epilog=examples(
        "warren pipeline capture x news --stream news.log",
        "warren pipeline capture x news --stream eu.log --key 'eu.#' --until 2026-12-31T18:00:00Z",
        "warren pipeline capture x news --stream news.log --stop",
    ),
)
@click.argument("kind", type=click.Choice(["x"]), metavar="x")
@click.argument("exchange")
@click.option("--stream", required=True, metavar="NAME", help="The stream queue.")
@click.option(
    "--key", default=None, metavar="KEY",
    help="The routing key to bind with: # if not given. With --stop: all if not given.",
)  # fmt: skip
@click.option(
    "--max-age", default="", metavar="AGE",
    help="Retention, such as 7D or 12h; unlimited by default.",
)  # fmt: skip
@click.option(
    "--until", default=None, metavar="TIME",
    help="Stay, and stop at this time, such as 2026-12-31T18:00:00Z, or at SIGTERM or Ctrl-C.",
)  # fmt: skip
@click.option("--stop", is_flag=True, help="Unbind the stream. It keeps its messages.")
@VHOST
@with_login
def capture(
    login: Login, kind: str, exchange: str, stream: str, key: str | None, max_age: str,
    until: str | None, stop: bool, vhost: str,
) -> int:  # fmt: skip
    """Declare a stream and bind it to an exchange (x).

    From then on, all that is published there can be read again and again. `warren pipeline list`
    shows which streams capture what."""
    if stop and (until or max_age):
        raise OptionError("--stop goes with --key alone: leave out --until and --max-age")
    end = None if until is None else read_time(until)
    with server.ServerClient(_server(login)) as client:
        if not stop:
            key = start_capture(client, vhost, exchange, stream, key, max_age)
            click.echo(
                f"stream '{stream}' in vhost '{vhost}' gets what is published to exchange "
                f"'{exchange}' with key '{key}' from now on"
            )
            if end is None:
                return 0
            wait_until(end)
        for one in stop_capture(client, vhost, exchange, stream, key):
            click.echo(
                f"stream '{stream}' in vhost '{vhost}' no longer gets what is published to "
                f"exchange '{exchange}' with key '{one}'"
            )
    return 0


@pipeline.command(help="Run a JOB on a stream. `warren pipeline list` shows the jobs.")
@click.argument("job")
@click.option("--stream", default="", metavar="NAME", help="The stream that it reads.")
@click.option(
    "--source", type=click.Choice(["queue", "exchange"]),
    help="What the stream is, where a queue and an exchange have its name.",
)  # fmt: skip
@click.option(
    "--out", default="", metavar="DIR",
    help="Directory for the job's table, its manifest and its checkpoint. Reusing it continues "
    "where the last run stopped. All jobs but replay need it.",
)  # fmt: skip
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A job's parameter.")
@click.option("--archive", metavar="DIR", help="The job's parameter archive.")
@click.option("--to", metavar="EXCHANGE", help="The parameter to of the job replay.")
@click.option("--rate", metavar="N", help="The parameter rate of the job replay.")
@click.option("--follow", is_flag=True, help="Keep following the stream until stopped.")
@click.option("--wait", "wait_s", type=click.FloatRange(0), default=WAIT_S, show_default=True,
    metavar="SECONDS",
    help="With --follow, how long it waits for a server that can't be reached.")  # fmt: skip
@click.option("--results", default=RESULTS, show_default=True, metavar="EXCHANGE",
    help="Exchange that results are published to; off for none.")  # fmt: skip
@click.option("--chart", metavar="FILE.svg",
    help="Draw the table as a picture at the end: of rollup and delivery-health.")  # fmt: skip
@_MASTER
@_NICENESS
@VHOST
@with_login
def run(
    login: Login, job: str, stream: str, source: str | None, out: str, settings: tuple[str, ...],
    follow: bool, wait_s: float, results: str, chart: str | None, master: str, niceness: int,
    vhost: str,
    **parameters: str | None,
) -> int:  # fmt: skip
    exchange = None if results == "off" else results
    named = [f"{name}={value}" for name, value in parameters.items() if value is not None]
    given = pairs("--set", (*settings, *named))
    command.run_job(
        command.RunRequest(
            job, _server(login), vhost, stream, out, given, source, follow, exchange, master,
            wait_s, niceness, None if chart is None else Path(chart),
        )
    )  # fmt: skip
    return 0


@pipeline.command(help="Open a Python shell with a Spark session. In it are spark, the session, "
    "and stream('NAME'), a data frame.")  # fmt: skip
@_MASTER
@_NICENESS
@VHOST
@with_login
def shell(login: Login, master: str, niceness: int, vhost: str) -> int:
    command.open_shell(_server(login), vhost, master, niceness)
    return 0


@pipeline.command("list", help="List jobs with their parameters, runs, captures, and archives. "
    "Without a server it lists the jobs.")  # fmt: skip
@JSON
@with_login
@click.pass_context
def list_jobs(context: click.Context, /, login: Login, *, as_json: bool) -> int:
    out = Printer(as_json=as_json)
    out.say(listing.describe_jobs(JOBS))
    if as_json:
        out.rows(listing.job_documents(JOBS), (), "jobs")
    try:
        with server.ServerClient(_server(login)) as client:
            found = client.get("/api/hub/pipeline")
    except (ReadError, UnavailableError) as error:
        if context.get_parameter_source("login_url") is click.core.ParameterSource.COMMANDLINE:
            raise
        click.echo(f"runs are not shown: {error}", err=True)
    else:
        out.say("\n" + listing.describe_runs(found))
        if as_json:
            out.rows((*found["runs"], *found["captures"], *found["archives"]), (), "runs")
    return 0


def _server(login: Login) -> ServerLogin:
    return ServerLogin(login.url, login.user, login.password, login.token)
