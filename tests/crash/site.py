"""What all publishers and consumers share: where the server is, whether it runs, the checker."""

from __future__ import annotations

import threading
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable

from tests.bench.client import Address, BenchError

from .checker import Checker
from .wire import Closed

RETRY_S = 0.01
SHUTDOWN = "320"
"""The code with which a server that stops in order closes connections."""


class Pace:
    """How many messages may have been attempted by now; the killer moves it on."""

    def __init__(self, checker: Checker) -> None:
        self._checker = checker
        self.allowed: Callable[[], float] = lambda: 0.0

    def room(self) -> int:
        """How many messages may be sent now, less than 1 for none."""
        return int(self.allowed()) - sum(one.attempted for one in self._checker.journals)


class Site:
    """`up` is set while the server runs and is meant to; `life` counts its starts."""

    def __init__(self, amqp: Address, http: Address | None = None) -> None:
        self.amqp = amqp
        self.http = http
        self.checker = Checker()
        self.pace = Pace(self.checker)
        self.fillers: dict[int, bytes] = {}
        """What the bodies of each publisher end with."""
        self.up = threading.Event()
        self.life = 0
        self.calm = threading.Event()
        """Nothing new is sent, and consumers neither stay away nor return anything."""

    def begin_life(self) -> None:
        self.life += 1
        self.up.set()

    def end_life(self) -> None:
        """To be called before the server is ended: who is disconnected then is not surprised."""
        self.up.clear()
        for journal in self.checker.journals:
            journal.end_life()

    def room(self) -> int:
        """How many messages may be sent now, less than 1 for none."""
        return 0 if self.calm.is_set() else self.pace.room()

    def lives(self, life: int) -> bool:
        return self.up.is_set() and self.life == life


class Worker(ABC):
    """A client in a thread of its own, which comes again in each life of the server."""

    def __init__(self, site: Site, name: str) -> None:
        self.site = site
        self.name = name
        self.stopping = threading.Event()
        self.life = 0
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout_s: float = 60.0) -> None:
        """Lets it end its session in order; one that does not is a fault."""
        self.stopping.set()
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            self.fault(f"did not end within {timeout_s} s")

    @abstractmethod
    def session(self) -> None:
        """One connection's life; returns when `stopping`, raises when the connection ends."""

    def fault(self, what: str) -> None:
        self.site.checker.breaks("client", f"{self.name}: {what}")

    @property
    def alive(self) -> bool:
        """Whether the server of this session is meant to run."""
        return self.site.lives(self.life)

    def _run(self) -> None:
        while not self.stopping.is_set():
            if not self.site.up.wait(RETRY_S):
                continue
            self.life = self.site.life
            try:
                self.session()
            except Exception as error:
                self._ended(error)
                self.stopping.wait(RETRY_S)

    def _ended(self, error: Exception) -> None:
        if isinstance(error, TimeoutError):
            self.fault("no answer in time")
        elif isinstance(error, Closed | BenchError) and SHUTDOWN in str(error):
            return
        elif isinstance(error, OSError | BenchError | Closed):
            if self.alive:
                self.fault(f"disconnected from a running server: {error!r}")
        else:
            self.fault("".join(traceback.format_exception(error)))
