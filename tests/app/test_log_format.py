"""A client's text can't forge a line of the log."""

from __future__ import annotations

import logging
import sys

from warren.app.main import LOG_FORMAT, OneLineFormatter


def formatted(message: str, *, error: BaseException | None = None) -> str:
    raised = None if error is None else (type(error), error, error.__traceback__)
    record = logging.LogRecord("w", logging.WARNING, __file__, 1, message, (), raised)
    return OneLineFormatter(LOG_FORMAT).format(record)


def test_line_ends_and_escapes_are_spelled_out() -> None:
    line = formatted("name 'a\nCRITICAL forged\x1b[31m\u2028'")
    assert line.endswith(r"name 'a\x0aCRITICAL forged\x1b[31m\x2028'")
    assert line.isprintable()


def test_other_text_stays() -> None:
    assert formatted("queue 'café ☕' is gone").endswith("queue 'café ☕' is gone")


def test_a_traceback_keeps_its_lines() -> None:
    try:
        raise ValueError("here")
    except ValueError as error:
        lines = formatted("broken", error=sys.exception() or error).splitlines()
    assert lines[0].endswith("broken")
    assert lines[-1] == "ValueError: here"
