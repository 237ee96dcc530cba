"""docs/reference/exit-codes.md: the exit codes of the code, and what ends with each."""

from __future__ import annotations

from warrenmq.app import cli
from warrenmq.app.commands import doctor, exit_codes
from warrenmq.hub.pipeline import command

from .tables import page, table

INTRODUCTION = """The exit codes of `warren` and all of its commands. An error is one line on the \
standard error; a script needs no more than the code to tell what to do."""
CODES = [
    (
        {exit_codes.DONE},
        "done",
        "`warren serve`: a clean stop after SIGTERM or Ctrl-C, requests and deliveries in "
        "progress completed",
    ),
    (
        {cli.STORE_FAILED, cli.DAMAGED, cli.BROKEN, command.FAILED, doctor.FOUND},
        "the check failed, or a failure ended the command",
        "`warren serve`: the disk failed, or is full, or another hub has taken over; "
        "`verify`: damage; `doctor`: problems; `conformance`: a violated MUST; "
        "`pipeline run`: a job that failed",
    ),
    (
        {cli.BAD_CONFIGURATION, command.UNUSABLE},
        "wrong parameters, or something that can't be used",
        "an unknown option, an invalid setting, an unusable file; `feeds add`: a page that "
        "names several feeds; `warren serve`: a data directory "
        "that another process uses or a newer Warren has written, a port that is taken, a "
        "database that can't be reached; `tunnel` also where other commands end "
        "with 4 or 5",
    ),
    (
        {exit_codes.PartlyDone.exit_code},
        "partly done",
        "the error says what is missing: run the command again",
    ),
    (
        {exit_codes.RequestRefused.exit_code},
        "the server refused",
        "the error contains the reason, and the status of HTTP if there is one; `warren serve`: "
        "the engine's cluster lacks something, a line for each reason",
    ),
    (
        {exit_codes.Unreachable.exit_code, command.NOT_INSTALLED},
        "the server can't be reached",
        "or does not answer; `warren serve`: no node of the engine's cluster does, or not "
        "the database of its hubs; `pipeline`: Spark or Java is missing",
    ),
    ({cli.INTERRUPTED}, "interrupted", "Ctrl-C at a question or in a command that waits"),
]
"""Every code with the constants that have it, what it means, and who ends so."""


def write() -> str:
    rows = [(f"{_only(found)}", meaning, who) for found, meaning, who in CODES]
    rest = "`warren run -- COMMAND` ends with the exit code of the command that it runs."
    return page("Exit codes", INTRODUCTION, [table(("code", "meaning", "where"), rows), rest])


def _only(found: set[int]) -> int:
    """Fails when constants that the table takes for the same differ."""
    (code,) = found
    return code
