"""A client's text can't forge a line of the log."""

from __future__ import annotations

import logging
import sys

import httpx

from tests.support.http import Callback
from tests.support.server import WarrenServer
from warrenmq.app.logs.formats import TEXT, OneLineFormatter


def formatted(message: str, *, error: BaseException | None = None) -> str:
    raised = None if error is None else (type(error), error, error.__traceback__)
    record = logging.LogRecord("w", logging.WARNING, __file__, 1, message, (), raised)
    return OneLineFormatter(TEXT).format(record)


def test_line_ends_and_escapes_are_spelled_out() -> None:
    line = formatted("name 'a\nCRITICAL forged\x1b[31m\u2028'")
    assert line.endswith(r"name 'a\x0aCRITICAL forged\x1b[31m\x2028'")
    assert line.isprintable()


def test_printable_text_is_logged_unchanged() -> None:
    assert formatted("queue 'café ☕' is gone").endswith("queue 'café ☕' is gone")


def test_a_traceback_keeps_its_lines() -> None:
    try:
        raise ValueError("here")
    except ValueError as error:
        lines = formatted("broken", error=sys.exception() or error).splitlines()
    assert lines[0].endswith("broken")
    assert lines[-1] == "ValueError: here"


def test_callback_secrets_are_not_logged(callback: Callback) -> None:
    with WarrenServer(env={"WARREN_LOG_LEVEL": "debug"}) as server:
        form = {
            "hub.mode": "subscribe",
            "hub.topic": "#",
            "hub.callback": f"{callback.url}?token=t0ken",
            "hub.secret": "s3cret",
            "hub.verify_token": "v3rify",
            "hub.basic_auth": "bWU6eW91",
        }
        url = f"{server.http_url}/subscribe/x/amq.topic"
        assert httpx.post(url, data=form, auth=("guest", "guest"), timeout=60).status_code == 204
        output = server.output()
    for secret in ("t0ken", "s3cret", "v3rify", "bWU6eW91"):
        assert secret not in output
