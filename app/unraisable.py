"""Logs errors that Python can't propagate to a caller (`sys.unraisablehook`).

By default they are printed with a traceback, and a client can cause one: a TLS client that sends a
server name that is not ASCII (RFC 6066 3). Its handshake has already failed.
"""

from __future__ import annotations

import logging
import sys

logger = logging.getLogger(__name__)


def log_unraisable_errors() -> None:
    """Installs the hook for the whole process."""
    sys.unraisablehook = _log


def _log(error: sys.UnraisableHookArgs) -> None:
    if isinstance(error.exc_value, UnicodeDecodeError) and isinstance(error.object, bytes):
        logger.debug("a TLS client sent an invalid server name: %r", error.object)
        return
    what = error.err_msg or "exception ignored in"
    logger.error("%s %r", what, error.object, exc_info=error.exc_value)
