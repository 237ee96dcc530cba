"""`warren serve`: opens data directory and ports, then runs the event loop until a signal."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..hub.processes.starter import ProcessStarter
from .configuration.settings import Settings
from .data_directory import locked
from .exposure import Exposure
from .file_limit import make_room, raise_file_limit
from .http.listen import listen_on_all
from .logs.formats import formatter
from .unraisable import log_unraisable_errors

if TYPE_CHECKING:
    from ..core.server.certificates import Certificates

RESOLVER_THREADS = 32
"""Threads that resolve host names. With libuv's default of 4, four callbacks with an unresponsive
name server would delay all others."""


def serve(settings: Settings) -> None:
    """Runs the server; returns after a clean stop.

    Raises `ConfigError` if the data directory, a certificate or a port can't be used. They are
    opened before slow modules are imported, so that the error appears at once.
    """
    started = time.perf_counter()
    # Until the event loop installs its handlers there is nothing to drain.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    _configure_logging(settings)
    log_unraisable_errors()
    make_room(raise_file_limit())
    with locked(settings.data) as directory:
        certificates = _certificates(settings)
        exposure = Exposure(settings)
        exposure.check_ports()
        sockets = listen_on_all(settings)
        gc.disable()  # until all parts have started (core/server/tuning.py)
        from .lifespan import Warren
        from .startup import Startup

        startup = Startup(settings, directory, sockets, certificates, exposure)
        with ProcessStarter() as starter:
            warren = Warren(startup, starter)
            with asyncio.Runner(loop_factory=_loop_factory()) as runner:
                runner.run(warren.run(started))
    print("stopped", flush=True)


def _certificates(settings: Settings) -> Certificates | None:
    if not settings.tls_cert:
        return None
    from .configuration.tls import certificates

    return certificates(settings)


def _configure_logging(settings: Settings) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter(settings.log_format))
    logging.basicConfig(level=settings.log_level.upper(), handlers=[handler])
    for name in ("aiosqlite", "httpcore", "httpx"):
        # They log whole rows, URLs and headers, which may contain credentials of callbacks.
        logging.getLogger(name).setLevel(logging.WARNING)
    # What it says of lost connections, with a traceback, is said in one line by the engine too.
    logging.getLogger("aiormq").setLevel(logging.CRITICAL)
    if settings.log_level != "debug":
        # It warns of every malformed request, so clients could flood the log.
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None  # not available for Windows and some versions of Python
    os.environ.setdefault("UV_THREADPOOL_SIZE", str(RESOLVER_THREADS))
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
