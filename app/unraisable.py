"""Errors that Python can't raise, for there is no code of ours to raise them to: into the log.

Left alone they are printed with a traceback, and anybody can cause one: a TLS client that asks for
a host name in another alphabet (RFC 6066 3 wants ASCII). Its handshake has failed then.
"""

from __future__ import annotations

import logging
import sys

logger = logging.getLogger(__name__)


def log_unraisable_errors() -> None:
    """For the whole process."""
    sys.unraisablehook = _log


def _log(error: sys.UnraisableHookArgs) -> None:
    if isinstance(error.exc_value, UnicodeDecodeError) and isinstance(error.object, bytes):
        logger.debug("a TLS client asked for %r, which is no host name", error.object)
        return
    what = error.err_msg or "exception ignored in"
    logger.error("%s %r", what, error.object, exc_info=error.exc_value)
